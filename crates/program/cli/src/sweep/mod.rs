//! `sweetspot sweep`.

mod definition;
mod runs;

use std::path::Path;

use anyhow::{Context, Result, bail};
use sweetspot_decide::{Criteria, NoChoice, Objective};
use sweetspot_report::{Line, Role, Text, plan_text, study_text, suggested_runs};
use sweetspot_session::{
    DevicesError, SessionError, Sweep, SweepError, all_runs_succeeded, has_submitted_jobs,
};
use sweetspot_study::{AddedRuns, Outline, Store, Study, StudyError};
use sweetspot_virtual_time::SimulationError;

use crate::args::SweepArgs;
use crate::confirm::ask_user;
use crate::documents::{Content, Documents, Format, print, study_content};
use crate::exit::{ErrorWithMessage, Outcome};
use crate::hints::hint_for_objective;
use crate::messages::{print_error, print_note, print_warning};
use crate::next_step::{after_study, flags_beyond};
use crate::run::is_read_only;

use definition::{definition_per_network, read_definition};
pub use runs::{SweepEnd, run_to_study};
use runs::{delete_if_empty, make_runs};

/// Runs `sweetspot sweep`.
pub fn run(args: Box<SweepArgs>) -> Result<Outcome> {
    let args = *args;
    // Bad criteria are reported before anything runs.
    let criteria = args.criteria.criteria()?;
    if let Some(study) = &args.resume {
        return resume(&args, study);
    }
    reject_missing_price(&criteria)?;
    let definition = read_definition(&args)?;
    if let Some(path) = &args.write_study {
        let documents = Documents::open([(Format::Toml, Some(path.as_path()))])?;
        definition.check()?;
        let text = definition.to_toml()?;
        let written = documents.write(Content::default().toml(|| Ok(text)));
        return Ok(Outcome {
            written,
            ..Outcome::DONE
        });
    }
    if let Some(text) = crate::slurm::unplanned(&args, &definition)? {
        print(text)?;
        return Ok(Outcome::DONE);
    }
    // All sweeps are checked before the first one starts.
    let mut sweeps = Vec::new();
    for definition in definition_per_network(&args, definition) {
        sweeps.push(crate::slurm::prepare(&args, &definition)?);
    }
    let documents = Documents::open(args.export.requested())?;
    if sweeps.len() > 1 && (args.study.is_some() || !documents.is_empty()) {
        bail!("each network has its own study: give --study and --export only with one network");
    }
    let mut all_succeeded = true;
    for sweep in &sweeps {
        let outcome = start_sweep(&args, sweep, &documents)?;
        if sweeps.len() == 1 || outcome.interrupted_by.is_some() {
            return Ok(outcome);
        }
        all_succeeded &= outcome.is_success();
    }
    Ok(Outcome::met(all_succeeded))
}

/// Creates the study and runs a new sweep.
fn start_sweep(args: &SweepArgs, sweep: &Sweep, documents: &Documents) -> Result<Outcome> {
    if args.dry_run {
        print(plan_text(&sweep.outline, &sweep.estimate(), 0))?;
        return Ok(Outcome::DONE);
    }
    args.training.read_values(&sweep.outline.plan.axes)?;
    confirm_many_runs(args, sweep.outline.plan.max_runs())?;
    let mut store = match args.no_study {
        true => None,
        false => Some(create_store(args, sweep)?),
    };
    for note in &sweep.notes {
        print_note(note);
    }
    report_prior_studies(args, sweep);
    let result = run_sweep(args, sweep, store.as_mut(), documents);
    store.and_then(|store| delete_if_empty(store, &sweep.outline));
    result
}

/// Whether a study has no runs and will not get any from jobs that were submitted.
fn is_without_use(store: &Store, outline: &Outline) -> bool {
    store.stored_runs().is_ok_and(|info| info.runs == 0)
        && store.waiting_results() == 0
        && !has_submitted_jobs(outline, store.folder())
}

/// Resumes the sweep of a stored study.
fn resume(args: &SweepArgs, study: &Path) -> Result<Outcome> {
    let documents = Documents::open(args.export.requested())?;
    let folder = crate::study::find_folder(study);
    let mut store = Store::resume(&folder)?;
    let mut outline = store.outline()?;
    check_read_only(&outline, args.read_only)?;
    let criteria = args
        .criteria
        .criteria_for(&outline.definition, args.prefer)?;
    reject_missing_price(&criteria)?;
    let added = AddedRuns {
        repeat: args.repeat,
        until: args.until,
        at_most: args.at_most,
        prefer: Some(criteria.preference),
    };
    if !added.is_empty() {
        outline.add_runs(&added)?;
    }
    let sweep = crate::slurm::resume(args, &outline, store.folder())?;
    if sweep.uses_other_gpus() {
        print_note("the study is resumed on other GPUs of the same model than it was started on");
    }
    if args.dry_run {
        let points = store.points(&outline, outline.subject.energy_of)?;
        let done = points.iter().map(|point| point.runs.len()).sum();
        print(plan_text(&sweep.outline, &sweep.estimate(), done))?;
        return Ok(Outcome::DONE);
    }
    if !added.is_empty() {
        confirm_many_runs(args, outline.plan.max_runs())?;
        store.add_runs(&added)?;
    }
    if args.retry_failed {
        store.delete_failed_runs()?;
    }
    run_sweep(args, &sweep, Some(&mut store), &documents)
}

/// What to do next, below the results of a study: the flags that the objective lacks, or the command that adds the runs
/// which would tell more settings apart. Empty if there is nothing to do.
pub fn advice(study: &Study, criteria: &Criteria, store: Option<&Store>) -> Text {
    let choice = study.choose(&study.comparison(&criteria.tariff), criteria);
    let hint = match choice {
        Err(NoChoice::NoValue { objective, .. }) => {
            let hint = hint_for_objective(&objective.to_string());
            hint.map(|hint| Line::new(format!("To compare by {objective}: {hint}")))
        }
        _ => suggested_runs(study, criteria)
            .zip(store)
            .map(|(runs, store)| {
                let folder = store.folder().display();
                Line::with_command(
                    "More runs would tell more settings apart:",
                    &format!("sweetspot sweep --resume {folder} --repeat {runs}"),
                )
            }),
    };
    hint.map_or(Text::default(), |hint| Text::empty_line() + hint)
}

/// Rejects an objective whose price or factor is missing: after all runs nothing could be recommended.
pub fn reject_missing_price(criteria: &Criteria) -> Result<()> {
    let objective = criteria.objective;
    let tariff = &criteria.tariff;
    let is_missing = match objective {
        Objective::Cost => tariff.price.is_none(),
        Objective::Carbon => tariff.carbon.is_none(),
        _ => false,
    };
    match hint_for_objective(&objective.to_string()).filter(|_| is_missing) {
        Some(hint) => bail!("the objective {objective} needs to know what energy costs: {hint}"),
        None => Ok(()),
    }
}

/// Rejects a study that changes device settings in read-only mode.
pub fn check_read_only(outline: &Outline, read_only_flag: bool) -> Result<()> {
    let definition = &outline.definition;
    let writes = definition.command.is_some() && !definition.read_only();
    match writes && (read_only_flag || is_read_only()) {
        true => Err(SessionError::from(DevicesError::ReadOnly).into()),
        false => Ok(()),
    }
}

/// Runs a sweep, stores its runs, and writes its documents.
fn run_sweep(
    args: &SweepArgs,
    sweep: &Sweep,
    mut store: Option<&mut Store>,
    documents: &Documents,
) -> Result<Outcome> {
    let criteria = args
        .criteria
        .criteria_for(&sweep.outline.definition, args.prefer)?;
    let study = match make_runs(args, sweep, store.as_deref_mut())? {
        Err(outcome) => return Ok(outcome),
        Ok(study) => study,
    };
    // The runs are done and stored: a problem with the file of values or the length of a training does not lose them.
    let applied = args
        .training
        .apply(study.clone(), &sweep.outline.definition);
    let problem = applied.as_ref().err().map(|problem| format!("{problem:#}"));
    if let Some(problem) = &problem {
        print_warning(&format!("{problem}; the results are those of the runs"));
    }
    let study = applied.unwrap_or(study);
    let store = store.as_deref();
    let place = store.map(|store| format!("Study: {}", store.folder().display()));
    let comparison = study.comparison(&criteria.tariff);
    let choice = study.choose(&comparison, &criteria);
    let flags = flags_beyond(&args.criteria, args.prefer, &sweep.outline.definition);
    let mut content = study_content(store, &study, &criteria).text(|| {
        let mut text = study_text(&study, &criteria) + advice(&study, &criteria, store);
        if let Some((store, place)) = store.zip(place.as_ref()) {
            text += Text::empty_line() + Line::with_introduction(Role::Heading, place);
            text += after_study(&sweep.outline.definition, store, &choice, &flags);
        }
        text
    });
    if documents.on_stdout() {
        content = content.notes(place.clone());
    }
    let written = documents.write(content);
    let is_unmet = matches!(
        choice,
        Err(NoChoice::OutsideLimits { .. } | NoChoice::UnknownValue { .. })
    );
    Ok(Outcome {
        is_met: all_runs_succeeded(&study) && !is_unmet && problem.is_none(),
        written,
        ..Outcome::DONE
    })
}

/// Reports a sweep that failed or was interrupted: how many runs are stored, and how to resume.
fn report_unfinished(
    error: SessionError,
    store: Option<&Store>,
    outline: &Outline,
) -> Result<Outcome> {
    let kept = store.filter(|store| !is_without_use(store, outline));
    let has_reference_failed = is_reference_failed(&error);
    let next_step = kept.map_or(String::new(), |store| match has_reference_failed {
        true => format!(
            "; when the command works, resume with `sweetspot sweep --resume {} --retry-failed`",
            store.folder().display()
        ),
        false => format!(
            "; resume with `sweetspot sweep --resume {}`",
            store.folder().display()
        ),
    });
    if let SessionError::Sweep(SweepError::Declined { .. }) = error {
        print_error(&format!("{error}{next_step}"));
        return Ok(Outcome::met(false));
    }
    let SessionError::Sweep(SweepError::Interrupted {
        signal,
        done,
        planned,
        restored,
    }) = error
    else {
        // The error keeps its type, which decides the exit code.
        let message = format!("{error}{next_step}");
        return Err(ErrorWithMessage { error, message }.into());
    };
    let devices = match (store, restored) {
        // Jobs have settings of their own, and may go on.
        (Some(store), true) if has_submitted_jobs(outline, store.folder()) => "",
        (Some(_), true) => "all settings are restored, ",
        (_, true) => "",
        (_, false) => "not every setting could be restored (`sweetspot restore` tries again), ",
    };
    print_note(&format!(
        "interrupted by signal {signal}: {devices}{done} of {planned} runs are stored{next_step}"
    ));
    Ok(Outcome {
        is_restored: restored,
        ..Outcome::interrupted_by(signal)
    })
}

/// Reports which earlier studies the search learns from. Why a study is not used is reported only for studies that the
/// user named, because most studies that happen to be in the folder do not match.
fn report_prior_studies(args: &SweepArgs, sweep: &Sweep) {
    let prior = &sweep.prior;
    for (study, why) in &prior.damaged {
        print_note(&format!("the search learns nothing from {study}: {why}"));
    }
    for (study, why) in prior.unused.iter().filter(|_| !args.prior.is_empty()) {
        print_note(&format!("the search learns nothing from {study}: {why}"));
    }
    let search = sweep.outline.plan.search.iter();
    for earlier in search.flat_map(|search| &search.prior) {
        print_note(&format!("the search learns from {}", earlier.name));
    }
}

/// The largest number of runs that a sweep may have without the user's confirmation.
const MAX_UNCONFIRMED_RUNS: usize = 10_000;

/// Asks the user to confirm a sweep with very many runs.
fn confirm_many_runs(args: &SweepArgs, runs: usize) -> Result<()> {
    if runs <= MAX_UNCONFIRMED_RUNS || args.yes {
        return Ok(());
    }
    match ask_user(&format!("the study has {runs} runs: start it?"))? {
        Some(true) => Ok(()),
        Some(false) => bail!("nothing was run"),
        None => bail!(
            "the study has {runs} runs, more than {MAX_UNCONFIRMED_RUNS}: use a larger step or fewer repeats, or give --yes"
        ),
    }
}

/// Creates a new study in the folder that the user named, or in an unused folder below studies/.
fn create_store(args: &SweepArgs, sweep: &Sweep) -> Result<Store> {
    if let Some(folder) = &args.study {
        return Ok(Store::create(folder, &sweep.outline)?);
    }
    let base = Path::new("studies");
    let cannot = |folder: &Path| {
        let folder = folder.display();
        format!(
            "cannot create the folder {folder} for the study (choose another one with --study, or store nothing with --no-study)"
        )
    };
    std::fs::create_dir_all(base).with_context(|| cannot(base))?;
    let name = sweep.name();
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    for name in std::iter::once(name.clone()).chain(numbered) {
        let folder = base.join(name);
        // The process that creates the folder owns it.
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(Store::create(&folder, &sweep.outline)?),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| cannot(&folder)),
        }
    }
    bail!("no unused folder name for the study: choose one with --study")
}

/// Whether the error is that the reference failed. If so, resuming would fail again.
fn is_reference_failed(error: &SessionError) -> bool {
    matches!(
        error,
        SessionError::Sweep(SweepError::Study(StudyError::ReferenceFailed(_)))
            | SessionError::Simulation(SimulationError::Study(StudyError::ReferenceFailed(_)))
    )
}
