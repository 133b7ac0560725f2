//! `sweetspot hold --slo`.

use std::time::Duration;

use anyhow::{Result, bail};
use sweetspot_session::hold::{CapSource, HoldKnob, LatencyRequest, hold_latency};

use crate::args::{HoldArgs, KnobName, ObjectiveName};
use crate::documents::{Documents, Format};
use crate::exit::Outcome;
use crate::guard_launcher::GuardLauncher;
use crate::measure::{content, outcome};
use crate::observer::TerminalObserver;
use crate::run::is_read_only;

/// Runs `sweetspot hold --slo`.
pub fn run(args: &HoldArgs) -> Result<Outcome> {
    if args.export_svg.is_some() || args.paper.export_pdf.is_some() {
        bail!("--export-svg and --export-pdf are not supported with --slo: use --export-json");
    }
    if matches!(
        args.objective,
        Some(ObjectiveName::Throughput | ObjectiveName::EnergyPerItem)
    ) {
        bail!(
            "with --slo the only objective is energy: remove --objective, or give --objective energy"
        );
    }
    let documents = Documents::open([(Format::Json, args.export_json.as_deref())])?;
    let Some(mut metrics) = args.metrics.source()? else {
        bail!("--slo needs the metrics page of the server: give --metrics URL too");
    };
    metrics.sends_probes = args.probe_request;
    let below = match args.below {
        Some(CapSource::Power(power)) => Some(power),
        Some(CapSource::Device) => {
            bail!("--below device is not supported with --slo: give a power such as 400W")
        }
        None => None,
    };
    let request = LatencyRequest {
        device: args.device.clone(),
        command: args.cmd.clone(),
        attach: args.attach,
        duration: args
            .duration
            .map(|time| Duration::from_secs_f64(time.get())),
        metrics,
        slos: args.slo.clone(),
        knob: match args.knob {
            KnobName::Auto => HoldKnob::Auto,
            KnobName::Batch => HoldKnob::Batch,
            KnobName::CoreClock => HoldKnob::CoreClock,
            KnobName::PowerCap => HoldKnob::PowerCap,
            KnobName::Joint => HoldKnob::Joint,
        },
        below,
        read_only: args.read_only || is_read_only(),
        keep_stdout: documents.on_stdout(),
    };
    let guard = GuardLauncher::new(&args.sudo)?;
    let held = hold_latency(&request, guard.program(), &mut TerminalObserver::new())?;
    let ((measurement, recording), is_restored) = held;
    let written = documents.write(content(&measurement, &recording));
    Ok(Outcome {
        is_restored,
        ..outcome(&measurement, written)
    })
}
