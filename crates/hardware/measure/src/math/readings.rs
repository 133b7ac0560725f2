//! Sensor readings with their times, from which energies are computed.

use serde::{Deserialize, Serialize};
use sweetspot_device::{Descriptor, Moment, SensorKind};
use sweetspot_quantity::{Joules, Seconds, Watts};

/// A span of monotonic time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The moment at which the span begins.
    pub begin: Moment,
    /// The moment at which the span ends.
    pub end: Moment,
}

impl Span {
    /// The span between two moments.
    pub const fn new(begin: Moment, end: Moment) -> Self {
        Self { begin, end }
    }

    /// The length of the span.
    pub fn length(&self) -> Seconds {
        self.end - self.begin
    }

    /// The moment halfway through the span.
    pub fn middle(&self) -> Moment {
        self.begin + self.length() / 2.0
    }

    /// The time that two spans have in common; `None` if there is none.
    pub fn overlap(&self, other: &Self) -> Option<Self> {
        let (begin, end) = (self.begin.max(other.begin), self.end.min(other.end));
        (begin < end).then_some(Self { begin, end })
    }
}

/// One read of an energy counter: the call blocks, so it has a beginning and an end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterReading {
    /// The time span of the read call.
    pub call: Span,
    /// The energy that the counter showed.
    pub value: Joules,
}

/// One power sample of the driver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerSample {
    /// The driver's time stamp of the sample, converted to the monotonic clock.
    pub at: Moment,
    /// The power that the sensor showed.
    pub power: Watts,
}

/// A new value of a polled power sensor: it appeared somewhere between two polls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolledPower {
    /// The span from the last poll with the previous value to the first poll with this value.
    pub appeared: Span,
    /// The power that the sensor showed.
    pub power: Watts,
}

/// The reason why a span has no readings of a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapReason {
    /// The device no longer responded.
    Lost,
    /// Reads of the sensor failed.
    Failed,
    /// The sensor repeated one value for too long.
    Stuck,
    /// Samples were overwritten in the driver's buffer before they were read.
    Overrun,
    /// The energy counter was reset: the energy counted since its last reading is unknown.
    Reset,
    /// The sensor had a value that the device cannot have reached: it is ignored.
    Implausible,
    /// The sensor was not read.
    NotRead,
}

impl std::fmt::Display for GapReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Lost => "the device was lost",
            Self::Failed => "reads failed",
            Self::Stuck => "the sensor was stuck",
            Self::Overrun => "samples were dropped",
            Self::Reset => "the counter was reset",
            Self::Implausible => "a reading was implausible and is ignored",
            Self::NotRead => "nothing was read",
        })
    }
}

/// A span without readings of a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// The sensor of which there are no readings.
    pub sensor: SensorKind,
    /// The span from the last good reading to the next.
    pub span: Span,
    /// The reason why there are no readings.
    pub reason: GapReason,
}

/// A power sensor whose value is a mean over some time and is updated regularly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowSensor {
    /// The time between two updates of the value.
    pub period: Seconds,
    /// The time over which each value is averaged.
    pub window: Seconds,
    /// The time from the end of the averaging until the value can be read.
    pub lag: Seconds,
}

/// The response of the driver's buffered samples to power.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The time constant of the first-order response.
    pub time_constant: Seconds,
    /// The delay before the response begins.
    pub delay: Seconds,
}

/// The known properties of a device's sensors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensorModel {
    /// The time between two steps of the energy counter.
    pub counter_period: Seconds,
    /// The response of the driver's buffered samples to power.
    pub response: Response,
    /// The power sensor with a short averaging time ([`SensorKind::InstantPower`]).
    pub instant: WindowSensor,
    /// The power sensor with a long averaging time ([`SensorKind::AveragePower`]).
    pub average: WindowSensor,
    /// The highest power that the device may draw continuously; `None` if unknown.
    pub cap: Option<Watts>,
    /// The energy at which the counter wraps around to zero; `None` if unknown.
    pub counter_modulus: Option<Joules>,
}

impl Default for SensorModel {
    /// The properties measured on an H200, but with the poorest known sensor of instantaneous power, which
    /// measures only 25 of every 100 ms.
    fn default() -> Self {
        let second = Seconds::new;
        Self {
            counter_period: second(0.1),
            response: Response {
                time_constant: second(0.015),
                delay: Seconds::ZERO,
            },
            instant: WindowSensor {
                period: second(0.1),
                window: second(0.025),
                lag: second(0.05),
            },
            average: WindowSensor {
                period: second(0.1),
                window: second(1.0),
                lag: Seconds::ZERO,
            },
            cap: None,
            counter_modulus: None,
        }
    }
}

/// All readings of one device, each kind in order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The properties of the device's sensors.
    pub model: SensorModel,
    /// The readings of the energy counter.
    pub counter: Vec<CounterReading>,
    /// The samples of the driver's buffer.
    pub buffer: Vec<PowerSample>,
    /// The values of [`SensorKind::InstantPower`].
    pub instant: Vec<PolledPower>,
    /// The values of [`SensorKind::AveragePower`].
    pub average: Vec<PolledPower>,
    /// The spans without readings, with sensor and reason.
    pub gaps: Vec<Gap>,
    /// The moments at which the system's wall clock was set. The driver stamps its samples with that clock.
    pub clock_steps: Vec<Moment>,
}

impl SensorModel {
    /// The sensor properties that the device's backend reports; for unknown ones, those of the poorest sensor
    /// known. `cap` is the device's power cap.
    pub fn of(descriptor: &Descriptor, cap: Option<Watts>) -> Self {
        let mut model = Self {
            cap,
            ..Self::default()
        };
        let apply = |kind, sensor: &mut WindowSensor| {
            let Some(reported) = descriptor.sensor(kind) else {
                return;
            };
            sensor.period = reported.update_period.unwrap_or(sensor.period);
            sensor.window = reported.window.unwrap_or(sensor.window);
            // The lag was seen on boards whose window is a quarter of the period; others show a value at once.
            if sensor.window > sensor.period * 0.3 {
                sensor.lag = Seconds::ZERO;
            }
        };
        apply(SensorKind::InstantPower, &mut model.instant);
        apply(SensorKind::AveragePower, &mut model.average);
        let counter = descriptor.sensor(SensorKind::EnergyCounter);
        if let Some(period) = counter.and_then(|sensor| sensor.update_period) {
            model.counter_period = period;
        }
        model
    }

    /// The time between two values of one of the two polled power sensors.
    pub fn period_of(&self, sensor: SensorKind) -> Seconds {
        match sensor {
            SensorKind::AveragePower => self.average.period,
            _ => self.instant.period,
        }
    }
}
