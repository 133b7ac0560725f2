//! `sweetspot sweep`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sweetspot_decide::search::StrategyName;
use sweetspot_decide::{NoChoice, Objective};
use sweetspot_report::{plan_text, study_text};
use sweetspot_session::{
    DevicesError, SessionError, Sweep, SweepError, SweepOptions, all_runs_succeeded,
};
use sweetspot_study::{AxisText, Definition, Outline, Store, is_study};
use sweetspot_virtual_time::SimulationError;

use crate::args::SweepArgs;
use crate::ask::ask;
use crate::documents::{Content, Documents, Format, print, study_content};
use crate::exit::{Outcome, Rephrased};
use crate::progress::Bar;
use crate::run::{guard_program, read_only};

pub fn run(args: Box<SweepArgs>) -> Result<Outcome> {
    let mut args = *args;
    args.question.question()?;
    if let Some(study) = args.resume.take() {
        return resume(&args, &study);
    }
    let definition = definition(&args)?;
    if let Some(path) = &args.write_study {
        let documents = Documents::open([(Format::Toml, Some(path.as_path()))])?;
        definition.check()?;
        let text = definition.text()?;
        let written = documents.write(Content::default().toml(|| Ok(text)));
        return Ok(Outcome {
            written,
            ..Outcome::DONE
        });
    }
    let networks = definition.network.as_deref().unwrap_or_default();
    let of_each = networks.split(',').map(|network| Definition {
        network: definition
            .network
            .as_ref()
            .map(|_| network.trim().to_owned()),
        ..definition.clone()
    });
    // All of them are looked at before the first begins.
    let mut sweeps = Vec::new();
    for definition in of_each {
        sweeps.push(Sweep::prepare(&definition)?);
    }
    let documents = Documents::open(args.export.asked())?;
    if sweeps.len() > 1 && (args.study.is_some() || !documents.is_empty()) {
        bail!("several networks are a study each: give --study and --export for one at a time");
    }
    let mut met = true;
    for sweep in &sweeps {
        let outcome = one(&args, sweep, &documents)?;
        if sweeps.len() == 1 || outcome.stopped_by.is_some() {
            return Ok(outcome);
        }
        met &= outcome.is_success();
    }
    Ok(Outcome::met(met))
}

fn one(args: &SweepArgs, sweep: &Sweep, documents: &Documents) -> Result<Outcome> {
    if args.dry_run {
        print(&plan_text(&sweep.outline, &sweep.estimate()))?;
        return Ok(Outcome::DONE);
    }
    confirm(args, sweep.outline.plan.at_most())?;
    let mut store = match args.no_study {
        true => None,
        false => Some(create(args, sweep)?),
    };
    report_prior_studies(args, sweep);
    let done = conduct(args, sweep, store.as_mut(), documents);
    // A study without a run is none.
    if let Some(store) = store
        && store.info().is_ok_and(|info| info.runs == 0)
        && store.waiting() == 0
    {
        let _ = store.delete();
    }
    done
}

fn resume(args: &SweepArgs, study: &Path) -> Result<Outcome> {
    let documents = Documents::open(args.export.asked())?;
    let folder = crate::study::folder(study);
    let mut store = Store::resume(&folder)?;
    let outline = store.outline()?;
    allowed(&outline, args.read_only)?;
    let sweep = Sweep::resume(&outline)?;
    if sweep.uses_other_gpus() {
        eprintln!(
            "sweetspot: the study goes on with other GPUs of the same kind than it began with"
        );
    }
    if args.dry_run {
        print(&plan_text(&sweep.outline, &sweep.estimate()))?;
        return Ok(Outcome::DONE);
    }
    if args.retry_failed {
        store.forget_failed()?;
    }
    conduct(args, &sweep, Some(&mut store), &documents)
}

/// Whether a study's command may be run: not where it sets devices and no setting may be changed.
pub fn allowed(outline: &Outline, read_only_flag: bool) -> Result<()> {
    let definition = &outline.definition;
    let writes = definition.command.is_some() && !definition.read_only();
    match writes && (read_only_flag || read_only()) {
        true => Err(SessionError::from(DevicesError::ReadOnly).into()),
        false => Ok(()),
    }
}

fn conduct(
    args: &SweepArgs,
    sweep: &Sweep,
    mut store: Option<&mut Store>,
    documents: &Documents,
) -> Result<Outcome> {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let conduct = SweepOptions {
        threads: args.threads.unwrap_or(cores),
        guard: &guard_program()?,
        show_output: args.show_output,
    };
    let question = args.question.question_of(&sweep.outline.definition)?;
    let mut bar = Bar::new(question.clone());
    let study = sweep.run(store.as_deref_mut(), &conduct, &mut bar);
    bar.end();
    let study = match study {
        Err(error) => return ended(error, store.as_deref()),
        Ok(study) => study,
    };
    let store = store.as_deref();
    let place = store.map(|store| format!("Study: {}", store.folder().display()));
    let shown_place = place.clone();
    let mut content = study_content(store, &study, &question).text(|| {
        let place = shown_place.map_or(String::new(), |place| format!("\n{place}\n"));
        study_text(&study, &question) + &place
    });
    if documents.on_stdout() {
        content = content.notes(place);
    }
    let written = documents.write(content);
    let comparison = study.comparison(&question.tariff);
    let choice = study.choose(&comparison, &question);
    let unmet = matches!(
        choice,
        Err(NoChoice::OutsideLimits { .. } | NoChoice::UnknownValue { .. })
    );
    Ok(Outcome {
        is_met: all_runs_succeeded(&study) && !unmet,
        written,
        ..Outcome::DONE
    })
}

/// A sweep that did not come to its end: what is kept, and how to go on.
fn ended(error: SessionError, store: Option<&Store>) -> Result<Outcome> {
    let kept = store.and_then(|store| Some((store.folder(), store.info().ok()?.runs)));
    let nothing_ran = is_reference_failed(&error);
    let go_on = kept
        .filter(|(_, runs)| *runs > 0)
        .map_or(String::new(), |(folder, _)| match nothing_ran {
            true => format!("; `sweetspot study show {}` tells more", folder.display()),
            false => format!(
                "; go on with `sweetspot sweep --resume {}`",
                folder.display()
            ),
        });
    let SessionError::Sweep(SweepError::Interrupted {
        signal,
        done,
        planned,
        restored,
    }) = error
    else {
        // The error keeps its type, which decides the exit code.
        let message = format!("{error}{go_on}");
        return Err(Rephrased { error, message }.into());
    };
    let devices = match (store, restored) {
        (Some(_), true) => "everything is as before, ",
        (_, true) => "",
        (_, false) => "not every setting could be put back (`sweetspot restore` tries again), ",
    };
    eprintln!(
        "sweetspot: ended by signal {signal}: {devices}{done} of {planned} runs are kept{go_on}"
    );
    Ok(Outcome {
        is_restored: restored,
        ..Outcome::stopped_by(signal)
    })
}

/// What the flags say, and the file where there is one.
fn definition(args: &SweepArgs) -> Result<Definition> {
    let axis = |text: &Option<String>| text.clone().map(AxisText);
    let mut parameters = std::collections::BTreeMap::new();
    for (name, values) in &args.axis {
        if parameters
            .insert(name.clone(), AxisText(values.clone()))
            .is_some()
        {
            bail!("--axis {name} is given twice: give all its values at once");
        }
    }
    let words = args.cmd.iter().map(|word| word.to_str().map(str::to_owned));
    let command: Option<Vec<String>> = words.collect();
    let command =
        command.context("the command is no text (UTF-8), so that a study cannot keep it")?;
    let variant = &args.work.variant;
    let flags = Definition {
        folder: match command.is_empty() {
            true => None,
            false => Some(here()?),
        },
        command: (!command.is_empty()).then_some(command),
        device: args.device.clone(),
        simulate: args.simulate.clone(),
        node: args.node.clone(),
        network: args.network.clone(),
        mode: variant.mode().map(str::to_owned),
        conv_algorithm: variant.conv_algorithm.clone(),
        dataset: variant.dataset.clone(),
        batch: args.work.batch,
        items: args.work.items,
        power_cap: axis(&args.power_cap),
        core_clock: axis(&args.core_clock),
        memory_clock: axis(&args.memory_clock),
        gpus: axis(&args.gpus),
        reference: args.reference.clone(),
        energy_of: args.energy_of,
        repeat: args.repeat,
        until: args.until,
        at_most: args.at_most,
        order: args.order,
        strategy: args.strategy,
        objective: stored_objective(args),
        limit: args.question.limits(),
        evaluations: args.evaluations,
        prior: prior(args)?,
        seed: args.seed,
        warmup: args.warmup,
        settle: args.settle,
        cool_to: args.cool_to,
        timeout: args.timeout,
        window: args.window.clone(),
        progress: args.progress.clone(),
        method: args.method,
        samples: args.no_samples.then_some(false),
        read_only: (args.read_only || read_only()).then_some(true),
        axis: parameters,
    };
    let definition = match &args.file {
        Some(path) => flags.or(read(path)?),
        None => flags,
    };
    if definition.command.is_some() && definition.folder.is_none() {
        let folder = Some(here()?);
        return Ok(Definition {
            folder,
            ..definition
        });
    }
    Ok(definition)
}

/// The objective that is stored with the study. Prices are not stored, so that an objective that needs them is
/// named again in a later question.
fn stored_objective(args: &SweepArgs) -> Option<Objective> {
    let is_priced =
        |objective: &Objective| matches!(objective, Objective::Cost | Objective::Carbon);
    let objective = args.question.objective;
    objective.filter(|objective| args.strategy.is_some() || !is_priced(objective))
}

/// Reports which earlier studies the search learns from. Most studies that happen to be in the folder do not help;
/// only for studies that the user named is it said why.
fn report_prior_studies(args: &SweepArgs, sweep: &Sweep) {
    let prior = &sweep.prior;
    for (study, why) in &prior.damaged {
        eprintln!("sweetspot: the search learns nothing from {study}: {why}");
    }
    for (study, why) in prior.unused.iter().filter(|_| !args.prior.is_empty()) {
        eprintln!("sweetspot: the search learns nothing from {study}: {why}");
    }
    let search = sweep.outline.plan.search.iter();
    for earlier in search.flat_map(|search| &search.earlier) {
        eprintln!("sweetspot: the search learns from {}", earlier.name);
    }
}

/// The studies that a guided search may learn from: those that are named, else all that are here.
fn prior(args: &SweepArgs) -> Result<Option<Vec<String>>> {
    if args.strategy != Some(StrategyName::Guided) {
        return Ok(None);
    }
    let folders: Vec<PathBuf> = match args.prior.as_slice() {
        [none] if none == Path::new("none") => Vec::new(),
        [] => {
            let here = std::fs::read_dir("studies").into_iter().flatten().flatten();
            let mut folders: Vec<PathBuf> = here.map(|entry| entry.path()).collect();
            folders.retain(|folder| is_study(folder));
            folders.sort();
            folders
        }
        named => {
            let folders: Vec<PathBuf> = named
                .iter()
                .map(|study| crate::study::folder(study))
                .collect();
            for folder in &folders {
                Store::open(folder)?;
            }
            folders
        }
    };
    let texts = folders.iter().map(|folder| {
        let whole = folder.canonicalize();
        let whole = whole.with_context(|| format!("cannot find the study {}", folder.display()))?;
        Ok(whole.display().to_string())
    });
    texts.collect::<Result<Vec<String>>>().map(Some)
}

/// Where the command is to run, in later resumes too.
fn here() -> Result<String> {
    let folder = std::env::current_dir().context("the present folder cannot be told")?;
    let text = folder.to_str().map(str::to_owned);
    text.context("the present folder's name is no text (UTF-8), so that a study cannot keep it")
}

fn read(path: &Path) -> Result<Definition> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the study file {}", path.display()))?;
    Definition::parse(&text).with_context(|| format!("study file {}", path.display()))
}

/// More runs than this are asked about first.
const MANY: usize = 10_000;

fn confirm(args: &SweepArgs, runs: usize) -> Result<()> {
    if runs <= MANY || args.yes {
        return Ok(());
    }
    match ask(&format!("the study has {runs} runs: begin?"))? {
        Some(true) => Ok(()),
        Some(false) => bail!("nothing was run"),
        None => bail!(
            "the study has {runs} runs, more than {MANY}: take a larger step or fewer repeats, or say --yes"
        ),
    }
}

/// A new study in the folder that the user names, else in one with a name of its own.
fn create(args: &SweepArgs, sweep: &Sweep) -> Result<Store> {
    if let Some(folder) = &args.study {
        return Ok(Store::create(folder, &sweep.outline)?);
    }
    let base = Path::new("studies");
    let cannot = |folder: &Path| {
        let folder = folder.display();
        format!(
            "cannot make {folder} for the study (--study names another place, --no-study keeps none)"
        )
    };
    std::fs::create_dir_all(base).with_context(|| cannot(base))?;
    let name = sweep.name();
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    for name in std::iter::once(name.clone()).chain(numbered) {
        let folder = base.join(name);
        // Whoever makes the folder has it.
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(Store::create(&folder, &sweep.outline)?),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| cannot(&folder)),
        }
    }
    bail!("no name is left for a study")
}

/// Whether the reference failed, so that resuming would fail again.
fn is_reference_failed(error: &SessionError) -> bool {
    matches!(
        error,
        SessionError::Sweep(SweepError::ReferenceFailed(_))
            | SessionError::Simulation(SimulationError::ReferenceFailed(_))
    )
}
