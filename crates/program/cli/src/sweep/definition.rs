//! Turns the flags and the study file of a sweep into a definition.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use sweetspot_decide::Objective;
use sweetspot_decide::search::StrategyName;
use sweetspot_study::{AxisText, Definition, Store, is_study};

use crate::args::{SweepArgs, parse_network};
use crate::config::{self, Config};
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
    if args.write_study.is_some() && args.network.len() > 1 {
        bail!("a study file has one network: give --network once");
    }
    let mut flags = Definition {
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
        gpus: axis(&args.gpus),
        reference: args.reference.clone(),
        energy_of: args.energy_of,
        repeat: args.repeat,
        until: args.until,
        at_most: args.at_most,
        order: args.order,
        strategy: args.strategy,
        objective: None,
        limit: args.criteria.limits(),
        evaluations: args.evaluations,
        prior: prior_studies(args)?,
        seed: args.seed,
        warmup: args.warmup,
        settle: args.settle,
        cool_to: args.cool_to,
        timeout: args.timeout,
        window: args.window.clone(),
        progress: args.progress.clone(),
        method: args.method,
        samples: args.no_samples.then_some(false),
        read_only: (args.read_only || is_read_only()).then_some(true),
        axis: parameters,
    };
    flags.objective = stored_objective(args.criteria.objective, &flags);
    let mut definition = match &args.file {
        Some(path) => flags.or(read_study_file(path)?),
        None => flags,
    };
    if args.criteria.objective.is_none() && definition.objective.is_none() {
        definition.objective = configured_objective(&definition)?;
    }
    if definition.command.is_some() && definition.folder.is_none() {
        let folder = Some(current_folder()?);
        return Ok(Definition {
            folder,
            ..definition
        });
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

/// The objective that is stored with the study. An objective that needs prices is not stored, because prices are not
/// stored: the user has to give both again. Where runs are chosen by it, it is kept, and refused by the definition.
fn stored_objective(objective: Option<Objective>, definition: &Definition) -> Option<Objective> {
    let is_priced =
        |objective: &Objective| matches!(objective, Objective::Cost | Objective::Carbon);
    objective.filter(|objective| definition.objective_chooses_runs() || !is_priced(objective))
}

/// The objective of the configuration file, which is stored as if the user had given it.
fn configured_objective(definition: &Definition) -> Result<Option<Objective>> {
    match Config::load()?.objective {
        Some(objective @ (Objective::Cost | Objective::Carbon))
            if definition.objective_chooses_runs() =>
        {
            bail!(
                "the objective {objective} of {} cannot choose runs, because prices may change later: give --objective energy or eds:K",
                config::path_text()
            )
        }
        objective => Ok(stored_objective(objective, definition)),
    }
}

/// The studies that a guided search may learn from: those that the user named, else all below studies/.
fn prior_studies(args: &SweepArgs) -> Result<Option<Vec<String>>> {
    if args.strategy != Some(StrategyName::Guided) {
        return Ok(None);
    }
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
    texts.collect::<Result<Vec<String>>>().map(Some)
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
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the study file {}", path.display()))?;
    let file = || format!("study file {}", path.display());
    let definition = Definition::parse(&text).with_context(file)?;
    if let Some(network) = &definition.network {
        let one = parse_network(network).map_err(|form| anyhow!("network: {form}"));
        one.with_context(file)?;
    }
    Ok(definition)
}
