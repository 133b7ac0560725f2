//! What energy and devices cost, in money and in carbon.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use sweetspot_quantity::{Joules, Seconds};

const JOULES_PER_KWH: f64 = 3.6e6;
const SECONDS_PER_HOUR: f64 = 3600.0;
const HOURS: usize = 24;

/// What the objectives `cost` and `carbon` need, where known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tariff {
    /// Of energy and devices.
    pub price: Option<Price>,
    /// Of the electricity.
    pub carbon: Option<CarbonIntensity>,
}

impl Tariff {
    /// Nothing known.
    pub const NONE: Self = Self {
        price: None,
        carbon: None,
    };
}

/// A tariff that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TariffError {
    /// Not a price.
    #[error("a price is a number of at least 0, and one of the two is above 0")]
    Price,
    /// Not the carbon of electricity.
    #[error(
        "`{0}` is not the carbon of electricity: write its grams per kWh, one number or 24 by the hour of day with commas between"
    )]
    Carbon(String),
    /// Not an hour.
    #[error("`{0}` is not an hour of the day: write 0 to 24, such as 14.5 or 14:30")]
    Hour(String),
}

/// What energy and devices cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    per_kwh: f64,
    per_device_hour: f64,
    currency: String,
}

impl Price {
    /// In a currency: for a kilowatt-hour, and for a device in use for an hour; one may be 0.
    pub fn new(
        per_kwh: f64,
        per_device_hour: f64,
        currency: impl Into<String>,
    ) -> Result<Self, TariffError> {
        let usable = |price: f64| price.is_finite() && price >= 0.0;
        if !usable(per_kwh) || !usable(per_device_hour) || per_kwh + per_device_hour == 0.0 {
            return Err(TariffError::Price);
        }
        Ok(Self {
            per_kwh,
            per_device_hour,
            currency: currency.into(),
        })
    }

    /// Its label: `EUR`.
    pub fn currency(&self) -> &str {
        &self.currency
    }

    /// Whether the energy matters: it does not where only the devices are paid for.
    pub(crate) fn needs_energy(&self) -> bool {
        self.per_kwh > 0.0
    }

    pub(crate) fn of(&self, energy: Joules, device_time: Seconds) -> f64 {
        energy.get() / JOULES_PER_KWH * self.per_kwh
            + device_time.get() / SECONDS_PER_HOUR * self.per_device_hour
    }
}

/// An hour of the day, fractions included.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Hour(f64);

impl Hour {
    /// From hours since some midnight; nothing where that is not a number.
    pub fn new(hours: f64) -> Option<Self> {
        // The remainder of a tiny negative number rounds up to 24.
        let hour = hours.rem_euclid(HOURS as f64);
        hours
            .is_finite()
            .then_some(Self(if hour < HOURS as f64 { hour } else { 0.0 }))
    }

    /// In 0 to 24, 24 excluded.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Hour {
    type Err = TariffError;

    fn from_str(text: &str) -> Result<Self, TariffError> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let hours = match text.split_once(':') {
            Some((hours, minutes)) => number(hours)
                .zip(number(minutes))
                .filter(|(hours, minutes)| hours.fract() == 0.0 && (0.0..60.0).contains(minutes))
                .map(|(hours, minutes)| hours + minutes / 60.0),
            None => number(text),
        };
        hours
            .filter(|hours| (0.0..=HOURS as f64).contains(hours))
            .and_then(Self::new)
            .ok_or_else(|| TariffError::Hour(text.to_owned()))
    }
}

/// Grams of carbon dioxide for a kilowatt-hour.
#[derive(Clone, Debug, PartialEq)]
pub enum CarbonIntensity {
    /// The same all day.
    Flat(f64),
    /// By the hour of day, from midnight on.
    Hourly {
        /// For each hour.
        grams: [f64; HOURS],
        /// When a job is to start: all runs are then compared as if they had started at this hour. Without
        /// it each counts by the hour at which it started.
        start: Option<Hour>,
    },
}

impl CarbonIntensity {
    /// One number of grams per kWh, or 24.
    pub fn new(grams: &[f64], start: Option<Hour>) -> Result<Self, TariffError> {
        let refused = || TariffError::Carbon(format!("{grams:?}"));
        if grams.iter().any(|grams| !grams.is_finite() || *grams < 0.0) {
            return Err(refused());
        }
        match grams {
            [grams] => Ok(Self::Flat(*grams)),
            _ => Ok(Self::Hourly {
                grams: grams.try_into().map_err(|_| refused())?,
                start,
            }),
        }
    }

    /// In grams, of energy drawn evenly over a run; nothing where the hour matters and is not known.
    pub(crate) fn of(&self, energy: Joules, time: Seconds, started: Option<Hour>) -> Option<f64> {
        let grams = match self {
            Self::Flat(grams) => *grams,
            Self::Hourly { grams, start } => {
                mean_over(grams, start.or(started)?, time.get() / SECONDS_PER_HOUR)
            }
        };
        Some(energy.get() / JOULES_PER_KWH * grams)
    }
}

/// The mean from an hour on for so many hours; whole days count by the mean of a day.
fn mean_over(grams: &[f64; HOURS], start: Hour, hours: f64) -> f64 {
    let at = |hour: f64| grams[hour as usize % HOURS];
    if hours <= 0.0 || !hours.is_finite() {
        return at(start.get());
    }
    let day: f64 = grams.iter().sum();
    let days = (hours / HOURS as f64).floor();
    let mut sum = days * day;
    let end = start.get() + (hours - days * HOURS as f64);
    let mut hour = start.get();
    while hour < end {
        let next = (hour.floor() + 1.0).min(end);
        sum += at(hour) * (next - hour);
        hour = next;
    }
    sum / hours
}

impl FromStr for CarbonIntensity {
    type Err = TariffError;

    fn from_str(text: &str) -> Result<Self, TariffError> {
        let numbers: Result<Vec<f64>, _> =
            text.split(',').map(|part| part.trim().parse()).collect();
        let refused = |_| TariffError::Carbon(text.to_owned());
        numbers
            .map_err(|_| TariffError::Carbon(text.to_owned()))
            .and_then(|numbers| Self::new(&numbers, None).map_err(refused))
    }
}

impl Display for CarbonIntensity {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flat(grams) => write!(f, "{grams}"),
            Self::Hourly { grams, .. } => {
                let grams: Vec<String> = grams.iter().map(f64::to_string).collect();
                f.write_str(&grams.join(","))
            }
        }
    }
}
