//! Turns the flags and the study file of a sweep into a definition.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use sweetspot_decide::search::StrategyName;
use sweetspot_decide::{CarbonIntensity, Criteria, Objective, Preference, Price};
use sweetspot_study::{AxisText, Definition, Store, is_study};

use crate::args::{SweepArgs, parse_network};
use crate::config::{self, Config};
use crate::hints::NETWORK_WITHOUT_SIMULATION;
use crate::run::is_read_only;

/// The definition of the study, from the flags and the study file.
pub fn read_definition(args: &SweepArgs) -> Result<Definition> {
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
    let command = command
        .context("the command is not valid UTF-8 text, so it cannot be stored in a study")?;
    let variant = &args.work.variant;
    let is_simulated = args.simulate.is_some() || args.node.is_some();
    if !command.is_empty() && !args.network.is_empty() && !is_simulated {
        bail!(NETWORK_WITHOUT_SIMULATION);
    }
    if args.write_study.is_some() && args.network.len() > 1 {
        bail!("a study file has one network: give --network once");
    }
    let flags = Definition {
        folder: match command.is_empty() {
            true => None,
            false => Some(current_folder()?),
        },
        command: (!command.is_empty()).then_some(command),
        device: args.device.clone(),
        simulate: args.simulate.clone(),
        node: args.node.clone(),
        network: args.network.first().cloned(),
        mode: variant.mode().map(str::to_owned),
        conv_algorithm: variant.conv_algorithm.clone(),
        dataset: variant.dataset.clone(),
        batch: args.work.batch,
        items: args.work.items,
        power_cap: axis(&args.power_cap),
        core_clock: axis(&args.core_clock),
        memory_clock: axis(&args.memory_clock),
        cpu_power_cap: axis(&args.cpu_power_cap),
        gpus: axis(&args.gpus),
        reference: args.reference.clone(),
        energy_of: args.energy_of,
        meter: (!args.meters.meter.is_empty()).then(|| args.meters.meter.clone()),
        host: args.meters.host.then_some(true),
        calibration: (!args.meters.calibration.is_empty()).then(|| args.meters.calibration.clone()),
        reproduces: args.reproduces.clone(),
        repeat: args.repeat,
        until: args.until,
        at_most: args.at_most,
        order: args.order,
        training: args.training.training.clone(),
        strategy: args.strategy,
        objective: args.criteria.objective,
        prefer: args.prefer.prefer,
        limit: args.criteria.limits(),
        evaluations: args.evaluations,
        prior: None,
        seed: args.seed,
        warmup: args.warmup,
        settle: args.settle,
        cool_to: args.cool_to,
        timeout: args.timeout,
        window: args.window.clone(),
        progress: args.progress.clone(),
        metrics: args.metrics.as_ref().map(ToString::to_string),
        method: args.method,
        samples: args.no_samples.then_some(false),
        read_only: (args.read_only || is_read_only()).then_some(true),
        axis: parameters,
    };
    let mut definition = match &args.file {
        Some(path) => flags.or(read_study_file(path)?),
        None => flags,
    };
    let is_configured = definition.objective.is_none();
    if is_configured {
        definition.objective = Config::load()?.objective;
    }
    // The preference decides which runs are added, so it must not change with the file.
    if definition.is_until_sure() && definition.prefer.is_none() {
        let prefer = Config::load()?.prefer;
        definition.prefer = prefer.filter(|prefer| *prefer != Preference::default());
    }
    if definition.command.is_some() && definition.folder.is_none() {
        definition.folder = Some(current_folder()?);
    }
    let is_default = searches_by_default(&definition);
    if is_default {
        definition.strategy = Some(StrategyName::Guided);
    }
    if is_default || args.strategy == Some(StrategyName::Guided) || !args.prior.is_empty() {
        definition.prior = Some(prior_studies(args)?);
    }
    definition.objective = stored_objective(&definition, is_default, &args.criteria.criteria()?)?;
    if let Some(objective @ (Objective::Cost | Objective::Carbon)) = definition.objective
        && is_configured
    {
        bail!(
            "the objective {objective} of {} cannot choose runs, because prices may change later: give --objective energy or eds:K",
            config::path_text()
        )
    }
    Ok(definition)
}

/// The definition of each sweep: every network that the user named has its own.
pub fn definition_per_network(args: &SweepArgs, definition: Definition) -> Vec<Definition> {
    if args.network.len() < 2 {
        return vec![definition];
    }
    let networks = args.network.iter().map(|network| Definition {
        network: Some(network.clone()),
        ..definition.clone()
    });
    networks.collect()
}

/// Whether a sweep searches for the best power cap although the user named no strategy: running a command at every cap
/// of a GPU would take hundreds of runs. Flags about the runs of each configuration ask for all of them.
fn searches_by_default(definition: &Definition) -> bool {
    let knobs = [
        &definition.power_cap,
        &definition.core_clock,
        &definition.memory_clock,
        &definition.cpu_power_cap,
        &definition.gpus,
    ];
    let has_axes = knobs.iter().any(|axis| axis.is_some()) || !definition.axis.is_empty();
    let runs_all = definition.repeat.is_some()
        || definition.until.is_some()
        || definition.order.is_some()
        || definition.strategy.is_some();
    definition.command.is_some() && !has_axes && !runs_all && !definition.read_only()
}

/// The objective that is stored with the study. An objective that needs prices is not stored, because prices are not
/// stored: the user has to give both again. Where runs are chosen by it, it is kept, and refused by the definition; only
/// a search that the user did not ask for looks for the least energy in its place, if that is the same setting.
fn stored_objective(
    definition: &Definition,
    is_default: bool,
    criteria: &Criteria,
) -> Result<Option<Objective>> {
    let Some(objective @ (Objective::Cost | Objective::Carbon)) = definition.objective else {
        return Ok(definition.objective);
    };
    let tariff = &criteria.tariff;
    let follows_energy = match objective {
        Objective::Cost => tariff.price.as_ref().is_some_and(Price::is_for_energy_only),
        _ => matches!(tariff.carbon, Some(CarbonIntensity::Flat(_))),
    };
    match is_default {
        true if follows_energy => Ok(Some(Objective::Energy)),
        true => bail!(
            "a search cannot weigh {objective} by the hour: name the settings to run, such as --power-cap 150..300:25"
        ),
        false => Ok(definition.objective_chooses_runs().then_some(objective)),
    }
}

/// The studies that a guided search may learn from: those that the user named, else all below studies/.
fn prior_studies(args: &SweepArgs) -> Result<Vec<String>> {
    let folders: Vec<PathBuf> = match args.prior.as_slice() {
        [none] if none == Path::new("none") => Vec::new(),
        [] => {
            let entries = std::fs::read_dir("studies").into_iter().flatten().flatten();
            let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            folders.retain(|folder| is_study(folder));
            folders.sort();
            folders
        }
        named => {
            let folders: Vec<PathBuf> = named
                .iter()
                .map(|study| crate::study::find_folder(study))
                .collect();
            for folder in &folders {
                Store::open(folder)?;
            }
            folders
        }
    };
    let texts = folders.iter().map(|folder| {
        let absolute = folder.canonicalize();
        let absolute =
            absolute.with_context(|| format!("cannot find the study {}", folder.display()))?;
        Ok(absolute.display().to_string())
    });
    texts.collect()
}

/// The current folder, in which the command also runs if the sweep is resumed from another folder.
fn current_folder() -> Result<String> {
    let folder = std::env::current_dir().context("cannot find the current folder")?;
    let text = folder.to_str().map(str::to_owned);
    text.context(
        "the name of the current folder is not valid UTF-8 text, so it cannot be stored in a study",
    )
}

/// Reads a study file.
fn read_study_file(path: &Path) -> Result<Definition> {
    /// The maximum size of a study file, in bytes.
    const MAX_BYTES: u64 = 1 << 20;
    let text = sweetspot_input::read_text(path, MAX_BYTES)
        .with_context(|| format!("cannot read the study file {}", path.display()))?;
    let file = || format!("study file {}", path.display());
    let definition = Definition::parse(&text).with_context(file)?;
    if let Some(network) = &definition.network {
        let one = parse_network(network).map_err(|form| anyhow!("network: {form}"));
        one.with_context(file)?;
    }
    Ok(definition)
}
