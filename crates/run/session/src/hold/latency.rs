//! `hold --slo`: the lowest core clock at which a server keeps its latency bounds.

use std::ffi::OsString;
use std::time::Duration;

use sweetspot_control::hold::DeviceKnob;
use sweetspot_control::slo::{Slo, SloConfig};
use sweetspot_device::MigSlices;
use sweetspot_measure::RunWindow;
use sweetspot_quantity::{Megahertz, Seconds, Watts};
use sweetspot_workload::{GuardProgram, Lease, MetricsSource, RunLimits, SignalSource};

use super::HoldError;
use super::request::{HoldKnob, clock_knob};
use crate::host::{descriptors, select_working, visibility_variables};
use crate::measure::{MeasureRequest, Measurement, Recording, measure_on};
use crate::observer::Observer;
use crate::{DevicesError, SessionError};

/// A request to keep latency bounds with little energy.
#[derive(Clone, Debug)]
pub struct LatencyRequest {
    /// The GPUs, by index or UUID; all visible GPUs if `None`.
    pub device: Option<String>,
    /// The command and its arguments; empty if a process is attached to.
    pub command: Vec<OsString>,
    /// The number of a process that runs already.
    pub attach: Option<u32>,
    /// How long an attached process is held; until it exits if `None`.
    pub duration: Option<Duration>,
    /// The metrics page of the server.
    pub metrics: MetricsSource,
    /// The bounds on latencies.
    pub slos: Vec<Slo>,
    /// What is set; only the core clock can be.
    pub knob: HoldKnob,
    /// The highest mean power of all GPUs, if there is a bound.
    pub below: Option<Watts>,
    /// Whether writes to the devices are forbidden.
    pub read_only: bool,
    /// Whether standard output is reserved for the result document.
    pub keep_stdout: bool,
}

/// The largest number of clocks that are told apart: steps of a few percent are enough.
const MAX_CLOCKS: usize = 28;
/// How long a change of the clock takes to have an effect, at most.
const SWITCH_TIME: Seconds = Seconds::new(0.1);

/// Runs or attaches to a server, and keeps its latency bounds with the lowest core clock. Returns the measurement, and
/// whether the earlier settings were restored.
pub fn hold_latency(
    request: &LatencyRequest,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<((Measurement, Recording), bool), SessionError> {
    if !matches!(request.knob, HoldKnob::Auto | HoldKnob::CoreClock) {
        return Err(HoldError::KnobForSlo(request.knob).into());
    }
    if request.read_only {
        return Err(HoldError::ReadOnly(HoldKnob::CoreClock).into());
    }
    let gpus = select_working(request.device.as_deref(), MigSlices::Exclude)?;
    let devices = descriptors(&gpus);
    let Some(DeviceKnob::CoreClock(clocks)) = clock_knob(&devices) else {
        let device = devices
            .first()
            .map_or(String::new(), |device| device.name.clone());
        return Err(DevicesError::NotSupported {
            device,
            problem: "the core clock of this GPU cannot be set, which --slo needs".to_owned(),
        }
        .into());
    };
    let measure = MeasureRequest {
        device: request.device.clone(),
        metrics: Some(request.metrics.clone()),
        attach: request.attach,
        timeout: request.duration,
        window: RunWindow::Run,
        keep_stdout: request.keep_stdout,
        environment: match request.device {
            Some(_) => visibility_variables(&gpus).to_vec(),
            None => Vec::new(),
        },
        slo: Some(SloConfig {
            slos: request.slos.clone(),
            clocks: thin_out(clocks),
            below: request.below,
            switch_time: SWITCH_TIME,
        }),
        ..MeasureRequest::new(request.command.clone())
    };
    let signals = SignalSource::listen()?;
    let mut note = |text: &str| observer.note(text);
    let mut lease = Lease::take(&devices, guard, &signals, &mut note)?;
    let limits = RunLimits {
        timeout: request.duration.filter(|_| request.attach.is_some()),
        ..RunLimits::default()
    };
    let reopened = gpus.iter().map(|gpu| Ok(gpu.reopen()?));
    let done = reopened
        .collect::<Result<Vec<_>, SessionError>>()
        .and_then(|gpus| measure_on(gpus, &measure, Some(&mut lease), &signals, limits, observer));
    let restored = lease.release(&mut |text| observer.note(text));
    match done {
        Ok(measured) => Ok((measured, restored?)),
        Err(problem) => Err(problem.after_release(&restored)),
    }
}

/// At most [`MAX_CLOCKS`] evenly spaced clocks, with the highest one.
fn thin_out(clocks: Vec<Megahertz>) -> Vec<Megahertz> {
    let last = clocks.len().saturating_sub(1);
    if last < MAX_CLOCKS {
        return clocks;
    }
    let picked = (0..MAX_CLOCKS).filter_map(|n| clocks.get(n * last / (MAX_CLOCKS - 1)));
    picked.copied().collect()
}
