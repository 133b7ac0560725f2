//! `hold --knob auto`: chooses what to adjust, from what the device has and what the user may set.

use sweetspot_control::hold::{HoldGoal, HoldMode};
use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor, Settings};
use sweetspot_quantity::Watts;
use sweetspot_workload::{GuardProgram, Lease, SignalSource, WorkloadError};

use super::cap::CapSource;
use super::request::{HoldKnob, HoldRequest};
use crate::SessionError;
use crate::observer::Observer;

/// What `hold --knob auto` adjusts: the request with its knob, and the lease of the device if it is set.
pub struct AutomaticChoice<'a> {
    pub request: HoldRequest,
    pub lease: Option<Lease<'a>>,
}

/// Chooses the knob of a request. Where the user may set the device, the device itself keeps the cap and the batch size
/// is chosen below it: no other setting allows more throughput. Otherwise only the batch size is adjusted.
pub fn choose_knob<'a>(
    request: &HoldRequest,
    device: &Descriptor,
    cap: Watts,
    guard: GuardProgram<'a>,
    signals: &SignalSource,
    observer: &mut dyn Observer,
) -> Result<AutomaticChoice<'a>, SessionError> {
    let with = |knob: HoldKnob| HoldRequest {
        knob,
        ..request.clone()
    };
    let without_lease = |knob| AutomaticChoice {
        request: with(knob),
        lease: None,
    };
    // A control algorithm that the user names has one knob.
    match request.mode {
        Some(HoldMode::Dvfs | HoldMode::StepUp) => return Ok(without_lease(HoldKnob::CoreClock)),
        Some(HoldMode::Joint) => return Ok(without_lease(HoldKnob::Joint)),
        Some(_) => return Ok(without_lease(HoldKnob::Batch)),
        None => {}
    }
    let follows_device = request.cap == Some(CapSource::Device);
    let wanted = wanted_knob(request.goal, device, cap);
    let Some((knob, probe)) = wanted.filter(|_| !request.read_only && !follows_device) else {
        return Ok(without_lease(HoldKnob::Batch));
    };
    let devices = std::slice::from_ref(device);
    let mut note = |text: &str| observer.note(text);
    let lease = Lease::take(devices, guard, signals, &mut note);
    // Some rights are only known once something is set.
    let tried = lease.and_then(|mut lease| match lease.set(&device.id, &probe) {
        Ok(_) => Ok(lease),
        Err(problem) => {
            let _ = lease.release(&mut note);
            Err(WorkloadError::from(problem))
        }
    });
    match tried {
        Ok(lease) => Ok(AutomaticChoice {
            request: with(knob),
            lease: Some(lease),
        }),
        Err(problem @ WorkloadError::Interrupted(_)) => Err(problem.into()),
        // The user may lack the right, or another job may hold the GPU.
        Err(problem) => {
            note(&format!(
                "only the batch size is adjusted, because the GPU cannot be set: {problem}"
            ));
            Ok(without_lease(HoldKnob::Batch))
        }
    }
}

/// The best knob that a device has, with a setting that shows whether it may be set; `None` if it has none.
fn wanted_knob(goal: HoldGoal, device: &Descriptor, cap: Watts) -> Option<(HoldKnob, Settings)> {
    if let Some((lowest, highest)) = cap_range(device)
        && lowest <= cap
        && goal == HoldGoal::Throughput
    {
        let probe = Settings {
            power_cap: Some(cap.min(highest)),
            ..Settings::default()
        };
        return Some((HoldKnob::Auto, probe));
    }
    let Some(KnobDescriptor::CoreClock(range)) = device.knob(Knob::CoreClock) else {
        return None;
    };
    let probe = Settings {
        core_clock: Some(range.default),
        ..Settings::default()
    };
    Some((HoldKnob::Joint, probe))
}

/// The lowest and the highest power cap that a device can have; `None` if its cap cannot be set.
pub fn cap_range(device: &Descriptor) -> Option<(Watts, Watts)> {
    let Some(KnobDescriptor::PowerCap(range)) = device.knob(Knob::PowerCap) else {
        return None;
    };
    match &range.domain {
        Domain::Range { min, max } => Some((*min, *max)),
        Domain::Levels(levels) => Some((*levels.first()?, *levels.last()?)),
    }
}
