//! Prices of energy and devices, and the carbon intensity of electricity.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use sweetspot_quantity::{Joules, Seconds};

const JOULES_PER_KWH: f64 = 3.6e6;
const SECONDS_PER_HOUR: f64 = 3600.0;
const HOURS_PER_DAY: usize = 24;

/// The price for the objective `cost` and the carbon intensity for the objective `carbon`; what is unknown is
/// absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tariff {
    /// The price of energy and devices; absent if it is unknown.
    pub price: Option<Price>,
    /// The carbon intensity of the electricity; absent if it is unknown.
    pub carbon: Option<CarbonIntensity>,
}

impl Tariff {
    /// A tariff without a price and without a carbon intensity.
    pub const NONE: Self = Self {
        price: None,
        carbon: None,
    };
}

/// Why a tariff is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TariffError {
    /// The price is negative, not finite, or zero for both energy and devices.
    #[error("prices must be at least 0, and one of them above 0")]
    Price,
    /// The carbon intensity is invalid.
    #[error(
        "invalid carbon intensity `{0}`: write grams per kWh, either one number or 24 numbers by the hour of day, separated by commas"
    )]
    Carbon(String),
    /// The hour of the day is invalid.
    #[error("invalid hour of the day `{0}`: write 0 to 24, such as 14.5 or 14:30")]
    Hour(String),
}

/// The price of energy and devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    per_kwh: f64,
    per_device_hour: f64,
    currency: String,
}

impl Price {
    /// Creates a price in `currency`: per kilowatt-hour of energy, and per hour of each device. One of the two may
    /// be 0.
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

    /// The name of the currency, such as `EUR`.
    pub fn currency(&self) -> &str {
        &self.currency
    }

    /// Whether only energy has a price, so that the setting with the least energy also costs least.
    pub fn is_for_energy_only(&self) -> bool {
        self.per_device_hour == 0.0
    }

    /// Whether energy has a price; if not, only device time is paid for, and the energy need not be known.
    pub(crate) fn needs_energy(&self) -> bool {
        self.per_kwh > 0.0
    }

    /// The price of this energy and this device time together.
    pub fn total(&self, energy: Joules, device_time: Seconds) -> f64 {
        energy.get() / JOULES_PER_KWH * self.per_kwh
            + device_time.get() / SECONDS_PER_HOUR * self.per_device_hour
    }
}

/// A time of day in hours, such as 14.5 for 14:30.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Hour(f64);

impl Hour {
    /// Creates an hour of the day from hours since any midnight, modulo 24; `None` if the number is not finite.
    pub fn new(hours: f64) -> Option<Self> {
        // `rem_euclid` of a tiny negative number rounds up to 24.0.
        let hour = hours.rem_euclid(HOURS_PER_DAY as f64);
        hours
            .is_finite()
            .then_some(Self(if hour < HOURS_PER_DAY as f64 {
                hour
            } else {
                0.0
            }))
    }

    /// The hours since midnight, from 0 to below 24.
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
            .filter(|hours| (0.0..=HOURS_PER_DAY as f64).contains(hours))
            .and_then(Self::new)
            .ok_or_else(|| TariffError::Hour(text.to_owned()))
    }
}

/// The carbon intensity of electricity, in grams of carbon dioxide per kilowatt-hour.
#[derive(Clone, Debug, PartialEq)]
pub enum CarbonIntensity {
    /// The same carbon intensity at every hour.
    Flat(f64),
    /// A carbon intensity for each hour of the day.
    Hourly {
        /// The intensity in each of the 24 hours, from midnight on.
        grams: [f64; HOURS_PER_DAY],
        /// The hour at which the job will start: all runs are compared as if they had started then. If absent, the
        /// hour at which each run started is used.
        start: Option<Hour>,
    },
}

impl CarbonIntensity {
    /// Creates an intensity from grams per kWh: one number for the whole day, or 24 numbers, one for each hour.
    pub fn new(grams: &[f64], start: Option<Hour>) -> Result<Self, TariffError> {
        let invalid = || TariffError::Carbon(format!("{grams:?}"));
        if grams.iter().any(|grams| !grams.is_finite() || *grams < 0.0) {
            return Err(invalid());
        }
        match grams {
            [grams] => Ok(Self::Flat(*grams)),
            _ => Ok(Self::Hourly {
                grams: grams.try_into().map_err(|_| invalid())?,
                start,
            }),
        }
    }

    /// The grams of carbon dioxide for energy that is drawn evenly over a run; `None` if the intensity depends on
    /// the hour and the hour is unknown.
    pub(crate) fn emissions(
        &self,
        energy: Joules,
        time: Seconds,
        started: Option<Hour>,
    ) -> Option<f64> {
        let grams = match self {
            Self::Flat(grams) => *grams,
            Self::Hourly { grams, start } => {
                mean_over(grams, start.or(started)?, time.get() / SECONDS_PER_HOUR)
            }
        };
        Some(energy.get() / JOULES_PER_KWH * grams)
    }
}

/// The mean carbon intensity over a run that begins at `start` and lasts `hours`.
fn mean_over(grams: &[f64; HOURS_PER_DAY], start: Hour, hours: f64) -> f64 {
    let at = |hour: f64| grams[hour as usize % HOURS_PER_DAY];
    if hours <= 0.0 || !hours.is_finite() {
        return at(start.get());
    }
    let day: f64 = grams.iter().sum();
    let days = (hours / HOURS_PER_DAY as f64).floor();
    let mut sum = days * day;
    let end = start.get() + (hours - days * HOURS_PER_DAY as f64);
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
        let invalid = |_| TariffError::Carbon(text.to_owned());
        numbers
            .map_err(|_| TariffError::Carbon(text.to_owned()))
            .and_then(|numbers| Self::new(&numbers, None).map_err(invalid))
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
