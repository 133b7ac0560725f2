//! What `devices` says about the user's meters.

use std::time::Duration;

use sweetspot_device::{Clock, Meter, MonotonicClock, SensorKind};
use sweetspot_hosts::{MetersFile, observe_meters};
use sweetspot_measure::math::Span;
use sweetspot_measure::math::meter::{FastPower, MeterBehaviour, meter_behaviour, meter_energy};
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_quantity::{Seconds, Watts};

use crate::SessionError;

/// A meter as `devices` lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct MeterReport {
    /// The name or the spec, as the user wrote it.
    pub name: String,
    /// The model and the observed behaviour, or why the meter cannot be read.
    pub state: Result<MeterState, String>,
}

/// A meter that answers.
#[derive(Clone, Debug, PartialEq)]
pub struct MeterState {
    /// The model that the meter reports.
    pub model: String,
    /// The present power; `None` if the meter counts energy only.
    pub power: Option<Watts>,
    /// The update period and the resolution that were observed.
    pub behaviour: MeterBehaviour,
    /// The longest delay that this kind of meter is known to have.
    pub max_delay: Seconds,
    /// The delay that was observed against the GPUs' power; `None` if their power did not change enough.
    pub delay: Option<Seconds>,
}

/// How long meters are observed.
const OBSERVATION_TIME: Duration = Duration::from_secs(6);

/// Describes the meters of the user's `meters.toml`, and those given, after observing them for some seconds.
pub fn meter_reports(given: &[String]) -> Result<Vec<MeterReport>, SessionError> {
    let mut names: Vec<String> = MetersFile::load()?.names().map(str::to_owned).collect();
    names.extend(
        given
            .iter()
            .filter(|text| !names.contains(text))
            .cloned()
            .collect::<Vec<_>>(),
    );
    // One that does not answer does not keep the others waiting.
    let reports = std::thread::scope(|scope| {
        let threads: Vec<_> = names
            .into_iter()
            .map(|name| {
                scope.spawn(move || MeterReport {
                    state: observe(&name),
                    name,
                })
            })
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect()
    });
    Ok(reports)
}

/// Observes one meter, and the GPUs beside it.
fn observe(name: &str) -> Result<MeterState, String> {
    let mut meters = observe_meters(&[name.to_owned()]).map_err(|error| error.to_string())?;
    let meter: &mut Box<dyn Meter> = meters.first_mut().ok_or("there is no such meter")?;
    let begin = MonotonicClock.now();
    let fast = gpu_power(OBSERVATION_TIME);
    let span = Span::new(begin, MonotonicClock.now());
    let power = meter.read(SensorKind::AveragePower).ok();
    let power = power.and_then(|reading| match reading.amount {
        sweetspot_device::Amount::Power(power) => Some(power),
        _ => None,
    });
    let model = meter.descriptor().name.clone();
    let traces = meter.traces(None);
    let trace = traces.first().ok_or("it has no channel")?;
    let energy = meter_energy(trace, fast.as_ref(), &span).ok();
    // A delay that fits hardly better than any other was not observed.
    let alignment = energy.and_then(|energy| energy.alignment);
    let observed = alignment.filter(|found| {
        found.correlation > 0.5
            && found.delay_deviation.get() < 0.2 * trace.properties.max_delay.get().max(0.2)
    });
    Ok(MeterState {
        model,
        power,
        behaviour: meter_behaviour(trace),
        max_delay: trace.properties.max_delay,
        delay: observed.map(|found| found.delay),
    })
}

/// Reads the power of the GPUs for some time; `None` if there is none. In any case the time passes.
fn gpu_power(time: Duration) -> Option<FastPower> {
    let gpus = sweetspot_hosts::open_host()
        .ok()
        .and_then(|host| host.list().ok())
        .unwrap_or_default();
    let gpus = gpus
        .into_iter()
        .filter(|gpu| !gpu.is_lost() && gpu.descriptor().parent.is_none());
    let gpus = gpus
        .map(|gpu| gpu as Box<dyn sweetspot_device::Device + Send>)
        .collect();
    let sampler = Sampler::start(
        gpus,
        MethodChoice::Auto,
        std::sync::Arc::new(MonotonicClock),
    )
    .ok();
    std::thread::sleep(time);
    let recorded = sampler?.stop().ok()?;
    FastPower::new(recorded.iter().map(|one| &one.trace))
}
