//! What was read, when: the input of everything else here.

use serde::{Deserialize, Serialize};
use sweetspot_device::{Descriptor, Moment, SensorKind};
use sweetspot_quantity::{Joules, Seconds, Watts};

/// A stretch of monotonic time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Its first moment.
    pub begin: Moment,
    /// Its last moment.
    pub end: Moment,
}

impl Span {
    /// From one moment to another.
    pub const fn new(begin: Moment, end: Moment) -> Self {
        Self { begin, end }
    }

    /// How long it is.
    pub fn length(&self) -> Seconds {
        self.end - self.begin
    }

    /// Halfway.
    pub fn middle(&self) -> Moment {
        self.begin + self.length() / 2.0
    }

    /// What it shares with another.
    pub fn overlap(&self, other: &Self) -> Option<Self> {
        let (begin, end) = (self.begin.max(other.begin), self.end.min(other.end));
        (begin < end).then_some(Self { begin, end })
    }
}

/// One read of an energy counter: the call blocks, so it has a beginning and an end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterReading {
    /// The call.
    pub call: Span,
    /// What it gave.
    pub value: Joules,
}

/// One sample with a time of its own, from the driver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerSample {
    /// The driver's time, on the monotonic clock.
    pub at: Moment,
    /// Power.
    pub power: Watts,
}

/// A new value of a sensor that has to be looked at: it appeared somewhere between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolledPower {
    /// From the last look that showed another value to the first that showed this one.
    pub appeared: Span,
    /// Power.
    pub power: Watts,
}

/// Why a stretch of time has no readings of a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapReason {
    /// The device no longer answered.
    Lost,
    /// Reads failed.
    Failed,
    /// The sensor went on repeating one value.
    Stuck,
    /// Samples were dropped before they were fetched.
    Overrun,
    /// A counter was set back: what it had counted since its last reading is unknown.
    Reset,
    /// Nothing was read before or after.
    NotRead,
}

impl std::fmt::Display for GapReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Lost => "the device was lost",
            Self::Failed => "reads failed",
            Self::Stuck => "the sensor was stuck",
            Self::Overrun => "samples were dropped",
            Self::Reset => "the counter was set back",
            Self::NotRead => "nothing was read",
        })
    }
}

/// A stretch of time without readings of a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Which sensor.
    pub sensor: SensorKind,
    /// From the last good reading to the next.
    pub span: Span,
    /// Why.
    pub reason: GapReason,
}

/// A power sensor that shows the mean of a window now and then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowSensor {
    /// Between two values.
    pub period: Seconds,
    /// What one value covers.
    pub window: Seconds,
    /// From the end of the window to the value's appearance.
    pub lag: Seconds,
}

/// How samples of the driver's buffer follow power.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Of a first-order response.
    pub time_constant: Seconds,
    /// Before it sets in.
    pub delay: Seconds,
}

/// What is known about the sensors of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensorModel {
    /// Between two moves of the energy counter.
    pub counter_period: Seconds,
    /// The driver's buffer.
    pub response: Response,
    /// Power over a short window.
    pub instant: WindowSensor,
    /// Power over a long window.
    pub average: WindowSensor,
    /// The highest power that the device may draw for long, where known.
    pub cap: Option<Watts>,
    /// Where the counter starts again from zero, where known.
    pub counter_modulus: Option<Joules>,
}

impl Default for SensorModel {
    /// As measured on an H200; the short window is the poorest that is known, 25 of 100 ms.
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

/// Everything that was read from one device, each kind in the order of its times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// How its sensors behave.
    pub model: SensorModel,
    /// The energy counter.
    pub counter: Vec<CounterReading>,
    /// The driver's buffer.
    pub buffer: Vec<PowerSample>,
    /// Power over a short window.
    pub instant: Vec<PolledPower>,
    /// Power over a long window.
    pub average: Vec<PolledPower>,
    /// What is missing.
    pub gaps: Vec<Gap>,
    /// Moments at which the wall clock, by which the driver stamps its samples, was set.
    pub clock_steps: Vec<Moment>,
}

impl Trace {
    /// From the first reading to the last.
    pub fn extent(&self) -> Option<Span> {
        let firsts = [
            self.counter.first().map(|reading| reading.call.begin),
            self.buffer.first().map(|sample| sample.at),
            self.instant.first().map(|value| value.appeared.end),
            self.average.first().map(|value| value.appeared.end),
        ];
        let lasts = [
            self.counter.last().map(|reading| reading.call.end),
            self.buffer.last().map(|sample| sample.at),
            self.instant.last().map(|value| value.appeared.end),
            self.average.last().map(|value| value.appeared.end),
        ];
        let begin = firsts.into_iter().flatten().min()?;
        let end = lasts.into_iter().flatten().max()?;
        Some(Span { begin, end })
    }
}

impl SensorModel {
    /// As far as the device's backend tells; for the rest, the poorest sensor that is known.
    pub fn of(descriptor: &Descriptor, cap: Option<Watts>) -> Self {
        let mut model = Self {
            cap,
            ..Self::default()
        };
        let told = |kind, sensor: &mut WindowSensor| {
            let Some(told) = descriptor.sensor(kind) else {
                return;
            };
            sensor.period = told.update_period.unwrap_or(sensor.period);
            sensor.window = told.window.unwrap_or(sensor.window);
            // Seen on boards whose window is a quarter of the period; the others show a value at once.
            if sensor.window > sensor.period * 0.3 {
                sensor.lag = Seconds::ZERO;
            }
        };
        told(SensorKind::InstantPower, &mut model.instant);
        told(SensorKind::AveragePower, &mut model.average);
        let counter = descriptor.sensor(SensorKind::EnergyCounter);
        if let Some(period) = counter.and_then(|sensor| sensor.update_period) {
            model.counter_period = period;
        }
        model
    }

    /// Between two values of a power sensor.
    pub fn period_of(&self, sensor: SensorKind) -> Seconds {
        match sensor {
            SensorKind::AveragePower => self.average.period,
            _ => self.instant.period,
        }
    }
}
