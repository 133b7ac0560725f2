//! `sweetspot hold` and `sweetspot hold set`.

use anyhow::{Result, bail};
use sweetspot_control::hold::{CapOn, HoldGoal, HoldMode, fine_batches};
use sweetspot_device::SensorKind;
use sweetspot_quantity::Seconds;
use sweetspot_report::{Line, Text, hold_figure, hold_json, hold_text};
use sweetspot_session::hold::{
    ControlledVerb, HoldKnob, HoldRequest, HoldResult, SimulatedService, default_batches, hold,
    hold_simulated, set_cap,
};

use crate::args::{HoldArgs, HoldCommand, KnobName, ModeName, ObjectiveName, SensorName};
use crate::documents::{Content, Documents, Format, print};
use crate::exit::Outcome;
use crate::guard_launcher::GuardLauncher;
use crate::next_step::after_hold;
use crate::observer::TerminalObserver;
use crate::run::is_read_only;

/// The largest batch size that is tried unless the user names others.
const LARGEST_BATCH: u64 = 256;

/// How long a simulated program serves requests unless the user says otherwise.
const SIMULATED_TIME: Seconds = Seconds::new(120.0);

/// Runs `sweetspot hold` and `sweetspot hold set`.
pub fn run(args: HoldArgs) -> Result<Outcome> {
    if let Some(HoldCommand::Set { cap, pid }) = args.command {
        let answer = set_cap(ControlledVerb::Hold, cap, pid)?;
        let next = Line::with_command("The GPU at the moment:", "sweetspot devices");
        print(Text::from(answer.to_string()) + Text::empty_line() + next)?;
        return Ok(Outcome::DONE);
    }
    if !args.slo.is_empty() {
        return crate::hold_latency::run(&args);
    }
    if let Some(flag) = latency_flag(&args) {
        bail!(
            "{flag} needs latency bounds from a metrics page: give --slo, such as --slo itl-p95=40ms, and --metrics URL too"
        );
    }
    args.paper
        .check(args.export_svg.is_some(), "--export-svg")?;
    let documents = Documents::open([
        (Format::Json, args.export_json.as_deref()),
        (Format::Svg, args.export_svg.as_deref()),
        (Format::Pdf, args.paper.export_pdf.as_deref()),
    ])?
    .with_figure_width(args.paper.figure_width);
    let request = request(&args, documents.on_stdout());
    let held = match (&args.simulate, &args.network) {
        (Some(gpu), Some(network)) => {
            let service = SimulatedService {
                gpus: gpu.clone(),
                network: network.clone(),
                dataset: args.dataset.clone(),
                time: args.seconds.unwrap_or(SIMULATED_TIME),
                arrivals: args.arrivals.clone().unwrap_or_default(),
                seed: args.seed.unwrap_or(1),
            };
            hold_simulated(&request, &service)?
        }
        _ => {
            if let Some(flag) = args.simulation_flag() {
                bail!("{flag} is about a simulated program: give --simulate GPU too");
            }
            let guard = GuardLauncher::new(&args.sudo)?;
            hold(&request, guard.program(), &mut TerminalObserver::new())?
        }
    };
    let next = after_hold(&args, &held);
    let written = documents.write(content(&held).next_step(next));
    Ok(Outcome {
        command: Some(held.ended),
        is_met: is_met(&held),
        is_restored: held.restored,
        written,
        ..Outcome::DONE
    })
}

/// A flag that has a meaning with --slo only, if one is given.
fn latency_flag(args: &HoldArgs) -> Option<&'static str> {
    let given = [
        ("--attach", args.attach.is_some()),
        ("--metrics", args.metrics.metrics.is_some()),
        (
            "--objective energy",
            matches!(args.objective, Some(ObjectiveName::Energy)),
        ),
    ];
    let found = given.into_iter().find(|(_, is_given)| *is_given);
    found.map(|(flag, _)| flag)
}

/// The request that the flags describe; `keep_stdout` reserves standard output for a document.
fn request(args: &HoldArgs, keep_stdout: bool) -> HoldRequest {
    let mode = args.mode.map(hold_mode);
    let default_cap_on = mode.map_or_else(CapOn::default, HoldMode::default_cap_on);
    HoldRequest {
        device: args.device.clone(),
        scope: args.settings,
        command: args.cmd.clone(),
        cap: args.below,
        cap_file: args.cap_file.clone(),
        cap_on: args.cap_on.unwrap_or(default_cap_on),
        knob: match args.knob {
            KnobName::Auto => HoldKnob::Auto,
            KnobName::Batch => HoldKnob::Batch,
            KnobName::CoreClock => HoldKnob::CoreClock,
            KnobName::PowerCap => HoldKnob::PowerCap,
            KnobName::Joint => HoldKnob::Joint,
        },
        mode,
        goal: match args.objective {
            None | Some(ObjectiveName::Throughput) => HoldGoal::Throughput,
            Some(ObjectiveName::EnergyPerItem | ObjectiveName::Energy) => HoldGoal::EnergyPerItem,
        },
        batches: match (&args.batches, args.knob, args.mode) {
            (Some(sizes), ..) => sizes.0.clone(),
            (None, KnobName::Auto, None) => fine_batches(LARGEST_BATCH),
            _ => default_batches(),
        },
        fixed_batch: args.fixed_batch,
        latency_p99: args.latency_p99,
        alpha: args.alpha,
        window: args.window,
        settle: args.settle,
        expiry: args.expiry,
        probe: args.probe,
        patience: args.patience,
        sensor: args.sensor.map(|sensor| match sensor {
            SensorName::Buffer => SensorKind::BufferedPower,
            SensorName::Instant => SensorKind::InstantPower,
            SensorName::Average => SensorKind::AveragePower,
        }),
        // A simulated device may be set.
        read_only: args.simulate.is_none() && (args.read_only || is_read_only()),
        keep_stdout,
    }
}

/// The control algorithm that a flag names.
const fn hold_mode(name: ModeName) -> HoldMode {
    match name {
        ModeName::Robust => HoldMode::Robust,
        ModeName::Paper => HoldMode::Paper,
        ModeName::Text => HoldMode::Text,
        ModeName::Windowed => HoldMode::Windowed,
        ModeName::Dvfs => HoldMode::Dvfs,
        ModeName::StepUp => HoldMode::StepUp,
        ModeName::Joint => HoldMode::Joint,
    }
}

/// The text and documents of a run with `hold`.
fn content(held: &HoldResult) -> Content<'_> {
    Content::default()
        .text(|| Text::empty_line() + hold_text(held))
        .json(|| hold_json(held))
        .figures(|| vec![hold_figure(held)])
}

/// Whether nothing is known to have gone wrong. A run without power readings for a part of its time is not all right,
/// but one that was too short for a verdict may be.
fn is_met(held: &HoldResult) -> bool {
    match held.verdict.is_met() {
        Some(is_met) => is_met,
        None => held.summary.unread_time <= Seconds::ZERO && held.lost.is_empty(),
    }
}
