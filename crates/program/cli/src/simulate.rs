//! `sweetspot simulate`.

use anyhow::{Result, bail};
use sweetspot_papers::{Profiles, SimulatorDeviations, deviations, deviations_of, papers, studies};
use sweetspot_report::{Line, Text, deviations_summary, deviations_text, profiles_text};
use sweetspot_session::SessionError;
use sweetspot_sim::{gpus, nodes, workloads};
use sweetspot_sim_host::{HostParts, TemporaryHost};
use sweetspot_sim_meters::{MeterList, OfferedMeters};
use sweetspot_workload::{
    CommandSpec, NoHandler, OnSignal, ProgressReader, RunLimits, SignalSource, run_until_exit,
};

use crate::args::SimulateArgs;
use crate::documents::{WriteError, print, print_unchanged};
use crate::exit::Outcome;
use crate::fit::{RowsFit, fit_rows};
use crate::messages::print_note;

/// The simulated NVML library, which is part of this program.
static NVML_LIBRARY: &[u8] = include_bytes!(env!("SWEETSPOT_NVML_SIM"));

/// Runs `sweetspot simulate`.
pub fn run(args: SimulateArgs) -> Result<Outcome> {
    args.profiles.use_folder()?;
    if let Some(rows) = &args.fit {
        return fit_rows(&RowsFit {
            path: rows,
            gpu: args.gpu.as_deref().unwrap_or_default(),
            network: args.network.as_deref(),
            mode: args.mode(),
            output: Some(&args.output),
        });
    }
    if args.gpu.is_some() || args.node.is_some() {
        return run_on_host(args);
    }
    if args.list {
        print_as(&args, &profiles_text(&gpus()?, &nodes()?, &workloads()?))?;
        if !args.markdown {
            let next = Line::with_command(
                "Try one:",
                "sweetspot sweep --simulate v100 --network resnet50",
            );
            print(Text::empty_line() + next)?;
        }
        return Ok(Outcome::DONE);
    }
    let studies = compare_with_papers(args.errors.as_ref().and_then(|name| name.as_deref()))?;
    match args.summary {
        true => print(deviations_summary(&studies))?,
        false => print_as(&args, &deviations_text(&studies))?,
    }
    if !args.markdown {
        print(Text::empty_line() + after_deviations(&studies))?;
    }
    let is_met = studies.iter().all(|study| {
        let (met, judged) = study.count_met();
        met == judged
    });
    Ok(Outcome::met(is_met))
}

/// Runs a command on a simulated host, and offers it the meters of the host's node.
fn run_on_host(args: SimulateArgs) -> Result<Outcome> {
    let parts = HostParts::new(args.gpu.as_deref(), args.node.as_deref())?;
    let mut host = TemporaryHost::new(parts, NVML_LIBRARY, args.seed)?;
    if args.meters.is_some() {
        host.remove_when_killed()?;
    }
    let mut environment: Vec<_> = host
        .environment()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let list = args.meters.map(|list| list.unwrap_or_else(MeterList::all));
    let meters = list
        .map(|list| OfferedMeters::start(host.folder(), &list, &args.meter_fault, args.seed))
        .transpose()?;
    if let Some(meters) = &meters {
        print_note(&describe_meters(meters));
        environment.extend(meters.environment());
    }
    run_in_environment(&CommandSpec {
        environment,
        ..CommandSpec::new(args.cmd)
    })
}

/// Says which meters the command finds, and how.
fn describe_meters(meters: &OfferedMeters) -> String {
    let offered = meters.meters().iter();
    let names = offered.map(|meter| format!("{} ({})", meter.kind.given_name(), meter.spec));
    format!(
        "meters by name: {}\nprocessors and sensors on the board: SWEETSPOT_SYSFS={}",
        names.collect::<Vec<_>>().join(", "),
        meters.sysfs().display()
    )
}

/// After the deviations: a published study itself, on the simulator.
fn after_deviations(studies: &[SimulatorDeviations]) -> Line {
    let mut names = studies.iter().map(|study| study.study.replace('_', "-"));
    match names.find(|name| papers().any(|paper| paper == name)) {
        Some(name) => Line::with_command(
            "The study itself, on the simulator:",
            &format!("sweetspot reproduce {name}"),
        ),
        None => Line::with_command("All profiles:", "sweetspot simulate --list"),
    }
}

/// Prints a text for people, or as Markdown.
fn print_as(args: &SimulateArgs, text: &Text) -> Result<(), WriteError> {
    match args.markdown {
        true => print_unchanged(&text.to_markdown()),
        false => print(text),
    }
}

/// Runs a command as `env` would: signals are passed on, and its exit code is returned.
fn run_in_environment(command: &CommandSpec) -> Result<Outcome> {
    let signals = SignalSource::listen().map_err(SessionError::from)?;
    let limits = RunLimits {
        on_signal: OnSignal::PassOn,
        ..RunLimits::default()
    };
    let mut reader = ProgressReader::without_link();
    let outcome = run_until_exit(command, limits, None, &signals, &mut reader, &mut NoHandler);
    Ok(Outcome {
        command: Some(outcome.map_err(SessionError::from)?.ended),
        ..Outcome::DONE
    })
}

/// Compares the simulator with all studies or the named one. Words of the name may be separated by `-` or `_`.
fn compare_with_papers(name: Option<&str>) -> Result<Vec<SimulatorDeviations>> {
    let profiles = Profiles::built_in()?;
    let Some(name) = name else {
        return Ok(deviations(&profiles)?);
    };
    match deviations_of(&name.replace('-', "_"), &profiles)? {
        Some(study) => Ok(vec![study]),
        None => bail!(
            "--errors: there is no study `{name}`; there are {}",
            studies().collect::<Vec<_>>().join(", ")
        ),
    }
}
