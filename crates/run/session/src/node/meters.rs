//! Open meters, and the energy that they measured in a time span.

use std::time::{Duration, Instant};

use sweetspot_device::{Amount, Clock, Meter, MeterTrace, Moment, MonotonicClock, SensorKind};
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
    /// The energy of all meters together.
    pub energy: TotalEnergy,
    /// The energy of each channel of each meter.
    pub meters: Vec<MeterEnergy>,
    /// The share of the GPUs' energy in it; `None` if theirs is unknown.
    pub gpu_share: Option<Ratio>,
}

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
            let covered = meter.covered.length();
            if window.length() - covered > Seconds::new(0.05) {
                warnings.push(format!(
                    "meter {name}: its energy covers only {covered:.2} of the {:.2} that were to be measured",
                    window.length()
                ));
            }
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

    /// Whether the readings of all meters cover the whole window.
    pub fn is_whole(&self, window: &Span) -> bool {
        let is_whole =
            |meter: &MeterEnergy| window.length() - meter.covered.length() <= Seconds::new(0.05);
        self.meters.iter().all(is_whole)
    }
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
                let shown = |trace: &MeterTrace| {
                    let known = trace.properties;
                    let late = known.max_delay.min(MAX_WAIT) + known.period * 1.5;
                    let newest = trace.readings.last().map(|reading| reading.at);
                    newest.is_some_and(|newest| newest > moment + late)
                };
                let waited = MonotonicClock.now() - moment;
                (is_failing && waited > Seconds::new(2.0)) || meter.traces(None).iter().all(shown)
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
        let traces = self.traces(None);
        let known = traces.iter().map(|trace| &trace.properties);
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
    let energy = TotalEnergy::sum(&parts);
    let share = gpus.filter(|_| energy.value.get() > 0.0);
    Ok(NodeEnergy {
        energy,
        gpu_share: share.map(|gpus| gpus.value / energy.value),
        meters,
    })
}
