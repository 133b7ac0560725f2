//! Open meters, and the energy that they measured in a time span.

use std::time::{Duration, Instant};

use sweetspot_device::{
    Amount, Clock, Meter, MeterProperties, MeterTrace, Moment, MonotonicClock, SensorKind,
};
use sweetspot_hosts::open_meters;
use sweetspot_measure::DeviceRecording;
use sweetspot_measure::math::Span;
use sweetspot_measure::math::meter::{FastPower, MeterEnergy, meter_energy};
use sweetspot_quantity::{Ratio, Seconds, Watts};

use crate::SessionError;
use crate::measure::TotalEnergy;

/// The energy of the whole machine in a time span.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeEnergy {
    /// The energy of all meters together; the error says why it is unknown: a meter's readings do not cover the whole
    /// span, and a part of its energy is not that of the machine.
    pub energy: Result<TotalEnergy, String>,
    /// The energy of each channel of each meter, in the part of the span that its readings cover.
    pub meters: Vec<MeterEnergy>,
    /// The share of the GPUs' energy in it; `None` if one of both is unknown.
    pub gpu_share: Option<Ratio>,
}

/// The longest part of a span that a meter's readings may leave out.
const MAX_UNCOVERED: Seconds = Seconds::new(0.05);

impl NodeEnergy {
    /// The method of the energy, in words.
    pub fn method(&self) -> String {
        let mut methods: Vec<String> = Vec::new();
        for meter in &self.meters {
            let aligned = match meter.alignment {
                Some(_) => ", aligned with the GPUs",
                None => "",
            };
            let method = format!("{}{aligned}", meter.method);
            if !methods.contains(&method) {
                methods.push(method);
            }
        }
        methods.join(" + ")
    }

    /// Warnings about the energy.
    pub fn warnings(&self, window: &Span) -> Vec<String> {
        let mut warnings = Vec::new();
        for meter in &self.meters {
            let name = &meter.name;
            warnings.extend(uncovered(meter, window));
            let gaps = meter
                .gaps
                .iter()
                .filter(|gap| gap.to - gap.from > Seconds::ZERO);
            warnings.extend(gaps.map(|gap| {
                format!(
                    "meter {name}: no readings for {:.2}: {}",
                    gap.to - gap.from,
                    gap.reason
                )
            }));
            warnings.extend(
                meter
                    .notes
                    .iter()
                    .map(|note| format!("meter {name}: {note}")),
            );
        }
        warnings
    }
}

/// Says which part of a span the readings of a meter leave out; `None` if they cover it all.
pub(crate) fn uncovered(meter: &MeterEnergy, window: &Span) -> Option<String> {
    let covered = meter.covered.length();
    let missing = window.length() - covered;
    (missing > MAX_UNCOVERED).then(|| {
        format!(
            "meter {}: its readings cover only {covered:.2} of the {:.2} that were to be measured, so that the energy of the whole machine is unknown",
            meter.name,
            window.length()
        )
    })
}

/// Meters that are being read, whose energies add up to that of the machine.
pub(crate) struct NodeMeters {
    meters: Vec<Box<dyn Meter>>,
}

/// The longest wait for the last readings of a meter.
const MAX_WAIT: Seconds = Seconds::new(20.0);

impl NodeMeters {
    /// Opens meters by name or spec; `None` without any.
    pub fn open(texts: &[String]) -> Result<Option<Self>, SessionError> {
        match texts.is_empty() {
            true => Ok(None),
            false => Ok(Some(Self {
                meters: open_meters(texts)?,
            })),
        }
    }

    /// The names of the meters, for messages.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.meters.iter().map(|meter| meter.name()).collect();
        names.join(" + ")
    }

    /// Waits until the readings show the power up to a moment: a slow meter shows it late. A meter that does not answer
    /// is not waited for.
    pub fn wait_until_shown(&mut self, moment: Moment) {
        let until = Instant::now() + Duration::from_secs_f64(MAX_WAIT.get());
        while Instant::now() < until {
            let is_shown = self.meters.iter_mut().all(|meter| {
                let is_failing = meter.problem().is_some();
                let shown = |(known, newest): &(MeterProperties, Option<Moment>)| {
                    let late = known.max_delay.min(MAX_WAIT) + known.period * 1.5;
                    newest.is_some_and(|newest| newest > moment + late)
                };
                let waited = MonotonicClock.now() - moment;
                (is_failing && waited > Seconds::new(2.0)) || meter.newest().iter().all(shown)
            });
            if is_shown {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The readings of all channels; those before `forget` are then removed.
    pub fn traces(&mut self, forget: Option<Moment>) -> Vec<MeterTrace> {
        self.meters
            .iter_mut()
            .flat_map(|meter| meter.traces(forget))
            .collect()
    }

    /// The power that all meters together show now, and the oldest moment of their readings; the error says why it is
    /// unknown.
    pub fn power(&mut self) -> Result<(Moment, Watts), String> {
        let mut sum = (Moment::from_nanos(u64::MAX), Watts::ZERO);
        for meter in &mut self.meters {
            let reading = meter.read(SensorKind::AveragePower);
            let reading = reading.map_err(|error| format!("meter {}: {error}", meter.name()))?;
            let Amount::Power(power) = reading.amount else {
                return Err(format!("meter {} shows no power", meter.name()));
            };
            sum = (sum.0.min(reading.at), sum.1 + power);
        }
        Ok(sum)
    }

    /// The time that the slowest meter may take to show a change of power, and the longest time between two values.
    pub fn delay_and_period(&mut self) -> (Seconds, Seconds) {
        let newest = self.meters.iter().flat_map(|meter| meter.newest());
        let known = newest.map(|(known, _)| known);
        known.fold((Seconds::ZERO, Seconds::ZERO), |(delay, period), known| {
            let late = known.max_delay + known.period;
            (delay.max(late), period.max(known.period))
        })
    }
}

/// The energy of the machine in a window, from the readings of its meters; `fast` are the readings of devices that are
/// part of the machine, and `gpus` the energy of all its GPUs.
pub(crate) fn node_energy(
    traces: &[MeterTrace],
    fast: &[DeviceRecording],
    gpus: Option<&TotalEnergy>,
    window: &Span,
) -> Result<NodeEnergy, String> {
    let fast = FastPower::new(fast.iter().map(|recorded| &recorded.trace));
    let energies = traces
        .iter()
        .map(|trace| meter_energy(trace, fast.as_ref(), window));
    let meters: Result<Vec<MeterEnergy>, _> = energies.collect();
    let meters = meters.map_err(|error| error.to_string())?;
    let parts: Vec<_> = meters
        .iter()
        .map(|one| (one.value, one.interval95))
        .collect();
    let energy = match meters.iter().find_map(|meter| uncovered(meter, window)) {
        Some(problem) => Err(problem),
        None => Ok(TotalEnergy::sum(&parts)),
    };
    let known = energy.as_ref().ok().zip(gpus);
    let share = known.filter(|(energy, _)| energy.value.get() > 0.0);
    Ok(NodeEnergy {
        gpu_share: share.map(|(energy, gpus)| gpus.value / energy.value),
        energy,
        meters,
    })
}
