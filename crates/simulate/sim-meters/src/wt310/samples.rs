//! The samples of the meter: timing, ranges and accuracy.

use sweetspot_device::Moment;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_stats::Seed;

use crate::NodeEnergy;

/// The voltage of the mains.
const MAINS: f64 = 230.0;
/// The power factor of the node's supply (assumed; supplies with correction have 0.95 to 0.99 under load).
const POWER_FACTOR: f64 = 0.98;
/// The time from the end of an interval until its sample is shown (assumed).
const DELAY: Seconds = Seconds::new(0.03);
/// The largest constant error, relative to the reading (data sheet: 0.1 %).
const READING_ERROR: f64 = 0.001;
/// The largest random error, relative to the range (data sheet: 0.05 %).
const RANGE_ERROR: f64 = 0.0005;
/// The share of its current range from which the meter shows an over-range.
pub(super) const OVER_RANGE: f64 = 1.4;
/// The share of its current range from which the peak of the current is above the range: a crest factor of 3.
pub(super) const PEAK_OVER_RANGE: f64 = 3.0 / std::f64::consts::SQRT_2;
/// The update intervals that the meter offers, in seconds.
pub(super) const RATES: [f64; 6] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0];
/// The voltage ranges, in volts.
pub(super) const VOLTAGES: [f64; 6] = [15.0, 30.0, 60.0, 150.0, 300.0, 600.0];
/// The current ranges, in amperes.
pub(super) const CURRENTS: [f64; 6] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

/// What a value of the meter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    None,
    Voltage,
    Current,
    Power,
    ApparentPower,
    ReactivePower,
    PowerFactor,
    Frequency,
    WattHours,
    Time,
}

/// The names of the items.
const ITEMS: [(&str, Item); 10] = [
    ("NONE", Item::None),
    ("U", Item::Voltage),
    ("I", Item::Current),
    ("P", Item::Power),
    ("S", Item::ApparentPower),
    ("Q", Item::ReactivePower),
    ("LAMBDA", Item::PowerFactor),
    ("FU", Item::Frequency),
    ("WH", Item::WattHours),
    ("TIME", Item::Time),
];

impl Item {
    /// The items of a meter that was just switched on.
    pub fn defaults() -> Vec<Self> {
        let mut items = vec![Self::None; 10];
        items[..3].copy_from_slice(&[Self::Voltage, Self::Current, Self::Power]);
        items
    }

    /// The item with this name, which may be followed by the number of an element.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.split(',').next()?.trim();
        let name = name.strip_prefix("URMS").map_or(name, |_| "U");
        ITEMS.iter().find(|item| item.0 == name).map(|item| item.1)
    }

    /// The name of the item.
    pub fn name(self) -> &'static str {
        let found = ITEMS.iter().find(|item| item.1 == self);
        found.map_or("NONE", |item| item.0)
    }
}

/// The samples of the meter.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    seed: Seed,
    /// The constant error, relative to the reading.
    gain: f64,
    /// The start of the first interval.
    origin: Moment,
    rate: Seconds,
    /// The ranges that are set; `None` chooses a range automatically.
    pub voltage_range: Option<f64>,
    pub current_range: Option<f64>,
}

/// A sample of the meter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub power: Watts,
    pub voltage: f64,
    pub current: f64,
}

impl Samples {
    /// Creates the samples of a meter that was switched on at this moment.
    pub fn new(now: Moment, seed: Seed) -> Self {
        Self {
            seed,
            gain: 1.0 + READING_ERROR * (2.0 * seed.label("gain").uniform() - 1.0),
            origin: now,
            rate: Seconds::new(0.25),
            voltage_range: None,
            current_range: None,
        }
    }

    /// The factor on every power and energy that the meter shows.
    pub fn gain(&self) -> f64 {
        self.gain
    }

    /// The update interval.
    pub fn rate(&self) -> Seconds {
        self.rate
    }

    /// Sets the update interval, which begins anew.
    pub fn set_rate(&mut self, rate: Seconds, now: Moment) {
        (self.rate, self.origin) = (rate, now);
    }

    /// The number of the sample that is shown at a moment; 0 before the first.
    fn shown(&self, now: Moment) -> u64 {
        let since = (now.nanos() as i128) - (self.origin + DELAY).nanos() as i128;
        (since / i128::from(self.rate.nanos())).max(0) as u64
    }

    /// The end of the interval of a sample. Counted in nanoseconds, so that no sample is lost by rounding.
    fn end_of(&self, sample: u64) -> Moment {
        Moment::from_nanos(self.origin.nanos() + sample * self.rate.nanos() as u64)
    }

    /// The first moment after `moment` at which a new sample is shown.
    pub fn update_after(&self, moment: Moment) -> Moment {
        self.end_of(self.shown(moment) + 1) + DELAY
    }

    /// The moment up to which the shown sample was measured.
    pub fn measured_until(&self, now: Moment) -> Moment {
        self.end_of(self.shown(now))
    }

    /// The current as a share of its range, at a moment.
    pub fn current_use(&self, now: Moment, node: &dyn NodeEnergy) -> f64 {
        let power = self.exact_power(self.shown(now), node);
        let current = power.get() / (MAINS * POWER_FACTOR);
        current / self.current_range_for(current)
    }

    /// The mean power over the interval of a sample. Before the first sample, it is the power at the start.
    fn exact_power(&self, sample: u64, node: &dyn NodeEnergy) -> Watts {
        let to = self.end_of(sample);
        node.mean_power(to + -self.rate, to)
    }

    /// The current range that is set, or the smallest that suits.
    fn current_range_for(&self, current: f64) -> f64 {
        let suits = |range: &&f64| current <= **range;
        let chosen = CURRENTS.iter().find(suits).or(CURRENTS.last());
        self.current_range.or(chosen.copied()).unwrap_or(20.0)
    }

    /// The sample that is shown at a moment.
    pub fn sample(&self, now: Moment, node: &dyn NodeEnergy) -> Sample {
        let number = self.shown(now);
        let exact = self.exact_power(number, node);
        let current = exact.get() / (MAINS * POWER_FACTOR);
        let range = self.voltage_range.unwrap_or(300.0) * self.current_range_for(current);
        let noise = |label: &str| 2.0 * self.seed.label(label).number(number).uniform() - 1.0;
        Sample {
            power: exact * self.gain + Watts::new(RANGE_ERROR * range * noise("power")),
            voltage: MAINS * (1.0 + 0.002 * noise("voltage")),
            current,
        }
    }

    /// The mains frequency at a moment.
    pub fn frequency(&self, now: Moment) -> f64 {
        let seed = self.seed.label("frequency").number(self.shown(now));
        50.0 + 0.02 * (2.0 * seed.uniform() - 1.0)
    }
}
