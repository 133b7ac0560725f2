//! `hold --knob auto`: chooses what to adjust, from what the device has and what the user may set.

use sweetspot_control::hold::{HoldGoal, HoldMode};
use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor, Settings};
use sweetspot_quantity::Watts;
use sweetspot_workload::{GuardProgram, Lease, SignalSource, WorkloadError};

use super::cap::CapSource;
use super::group::GroupLimits;
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
    devices: &[Descriptor],
    (cap, limits): (Watts, &GroupLimits),
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
    let wanted = wanted_knob(request.goal, devices, (cap, limits));
    let wanted = wanted.filter(|_| !request.read_only && !follows_device);
    if let Some(text) = low_cap_note(
        devices,
        (cap, limits),
        wanted.as_ref().map(|(knob, _)| *knob),
    ) {
        observer.note(&text);
    }
    let Some((knob, probes)) = wanted else {
        return Ok(without_lease(HoldKnob::Batch));
    };
    let mut note = |text: &str| observer.note(text);
    let lease = Lease::take(devices, guard, signals, &mut note);
    // Some rights are only known once something is set.
    let tried = lease.and_then(|mut lease| {
        let mut each = devices.iter().zip(&probes);
        match each.try_for_each(|(one, probe)| lease.set(&one.id, probe).map(drop)) {
            Ok(()) => Ok(lease),
            Err(problem) => {
                let _ = lease.release(&mut note);
                Err(WorkloadError::from(problem))
            }
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
                "only the batch size is adjusted, because the {} cannot be set: {problem}",
                if devices.len() > 1 { "GPUs" } else { "GPU" }
            ));
            Ok(without_lease(HoldKnob::Batch))
        }
    }
}

/// Says what keeps the cap of several GPUs if it is below the sum of their lowest power caps; `None` if it is not.
fn low_cap_note(
    devices: &[Descriptor],
    (cap, limits): (Watts, &GroupLimits),
    knob: Option<HoldKnob>,
) -> Option<String> {
    let (lowest, _) = limits.cap_range()?;
    let keeper = match knob {
        Some(HoldKnob::Auto) => return None,
        Some(_) => "their core clocks and the batch size keep",
        None => "the batch size alone keeps",
    };
    (devices.len() > 1 && cap < lowest).then(|| {
        format!(
            "the lowest power caps of these {} GPUs are {lowest:.0} together, so {keeper} the cap of {cap:.0}",
            devices.len()
        )
    })
}

/// The best knob that all devices have, with a setting of each that shows whether it may be set; `None` if they have none in
/// common.
fn wanted_knob(
    goal: HoldGoal,
    devices: &[Descriptor],
    (cap, limits): (Watts, &GroupLimits),
) -> Option<(HoldKnob, Vec<Settings>)> {
    if let (Some((lowest, _)), Some(ranges)) = (limits.cap_range(), &limits.caps)
        && lowest <= cap
        && goal == HoldGoal::Throughput
    {
        let equal = cap / devices.len() as f64;
        let probes = ranges.iter().map(|range| Settings {
            power_cap: Some(equal.max(range.lowest).min(range.highest)),
            ..Settings::default()
        });
        return Some((HoldKnob::Auto, probes.collect()));
    }
    let clocks = devices
        .iter()
        .map(|device| match device.knob(Knob::CoreClock) {
            Some(KnobDescriptor::CoreClock(range)) => Some(Settings {
                core_clock: Some(range.default),
                ..Settings::default()
            }),
            _ => None,
        });
    Some((HoldKnob::Joint, clocks.collect::<Option<_>>()?))
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
