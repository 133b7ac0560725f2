//! Objectives: what a choice minimises or maximises.

use sweetspot_quantity::{Joules, Seconds};

use crate::value::{energy, finite, time};
use crate::{Direction, NoValue, Outcome, Tariff, Value};

/// What a choice minimises or maximises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// Minimises the energy.
    Energy,
    /// Minimises the time.
    Time,
    /// Minimises the average power.
    Power,
    /// Minimises energy times time.
    Edp,
    /// Minimises energy times time squared.
    Ed2p,
    /// Minimises the energy-delay sum of power_capping_2022: relative energy and relative time, weighted by this
    /// `k`; a larger `k` gives energy more weight.
    Eds(f64),
    /// Maximises the energy saved minus the time lost, both as shares of the reference.
    GainMinusLoss,
    /// Minimises the energy per item.
    EnergyPerItem,
    /// Maximises the items per joule.
    ItemsPerJoule,
    /// Maximises the items per second.
    Throughput,
    /// Minimises the cost in money.
    Cost,
    /// Minimises the emitted carbon dioxide.
    Carbon,
}

/// The reference and the tariff that values of objectives are computed with.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    /// The outcome that relative objectives and limits compare with.
    pub reference: Option<&'a Outcome>,
    /// The prices and the carbon intensity for `cost` and `carbon`.
    pub tariff: &'a Tariff,
}

impl<'a> Basis<'a> {
    /// Returns the reference, or an error if there is none.
    pub(crate) fn reference(&self) -> Result<&'a Outcome, NoValue> {
        self.reference.ok_or(NoValue::NoReference)
    }
}

impl<'a> From<&'a Outcome> for Basis<'a> {
    fn from(reference: &'a Outcome) -> Self {
        Self {
            reference: Some(reference),
            tariff: &Tariff::NONE,
        }
    }
}

impl Objective {
    /// Returns the value of the objective for an outcome, or why there is none.
    pub fn value<'a>(
        &self,
        outcome: &Outcome,
        basis: impl Into<Basis<'a>>,
    ) -> Result<f64, NoValue> {
        let basis = basis.into();
        finite(match *self {
            Self::Energy => energy(outcome)?,
            Self::Time => time(outcome)?,
            Self::Power => Value::AveragePower.of(outcome)?,
            Self::Edp => energy(outcome)? * time(outcome)?,
            Self::Ed2p => energy(outcome)? * time(outcome)?.powi(2),
            // Equations 3 and 4 of power_capping_2022, alpha E + beta t with alpha = (k-1) / (k Eref) and
            // beta = 1 / (k tref), in the form that gives the reference exactly 1.
            Self::Eds(k) => {
                let (relative_time, relative_energy) = relative(outcome, basis)?;
                ((k - 1.0) * relative_energy + relative_time) / k
            }
            Self::GainMinusLoss => {
                let (relative_time, relative_energy) = relative(outcome, basis)?;
                (1.0 - relative_energy) - (relative_time - 1.0)
            }
            Self::EnergyPerItem => Value::EnergyPerItem.of(outcome)?,
            Self::ItemsPerJoule => Value::ItemsPerJoule.of(outcome)?,
            Self::Throughput => Value::ItemsPerSecond.of(outcome)?,
            Self::Cost => cost(outcome, basis.tariff)?,
            Self::Carbon => carbon(outcome, basis.tariff)?,
        })
    }

    /// Whether the value of the objective can be computed only relative to a reference.
    pub const fn needs_reference(&self) -> bool {
        matches!(self, Self::Eds(_) | Self::GainMinusLoss)
    }

    /// Whether a higher value of the objective is better.
    pub const fn is_maximised(&self) -> bool {
        matches!(self.direction(), Direction::Most)
    }

    /// Whether a lower or a higher value of the objective is better.
    pub const fn direction(&self) -> Direction {
        match self {
            Self::GainMinusLoss | Self::ItemsPerJoule | Self::Throughput => Direction::Most,
            _ => Direction::Least,
        }
    }

    /// Whether `value` is better than the value `than`.
    pub fn is_better(&self, value: f64, than: f64) -> bool {
        self.direction().as_cost(value) < self.direction().as_cost(than)
    }

    /// The unit of the objective's values; empty if they have none. The unit of a cost is the tariff's currency.
    pub fn unit<'a>(&self, tariff: &'a Tariff) -> &'a str {
        match self {
            Self::Energy => "J",
            Self::Time => "s",
            Self::Power => "W",
            Self::Edp => "J s",
            Self::Ed2p => "J s²",
            Self::Eds(_) | Self::GainMinusLoss => "",
            Self::EnergyPerItem => "J/item",
            Self::ItemsPerJoule => "items/J",
            Self::Throughput => "items/s",
            Self::Cost => tariff.price.as_ref().map_or("", |price| price.currency()),
            Self::Carbon => "g",
        }
    }

    /// Whether two values differ by no more than floating-point rounding.
    pub(crate) fn is_same(&self, a: f64, b: f64) -> bool {
        // `gain-minus-loss` is a difference of two shares near 1, so its rounding error is that of a number near 1
        // even if the difference is near 0.
        let least = match self {
            Self::GainMinusLoss => 1.0,
            _ => 0.0,
        };
        same_within(a, b, least)
    }
}

/// Whether two numbers are equal except for floating-point rounding.
pub(crate) fn same(a: f64, b: f64) -> bool {
    same_within(a, b, 0.0)
}

/// Whether two numbers differ by no more than the rounding error of numbers of their size, or of size `least_scale`.
fn same_within(a: f64, b: f64, least_scale: f64) -> bool {
    /// The relative difference that counts as rounding.
    const ROUNDING: f64 = 1e-12;
    a == b || (a - b).abs() <= ROUNDING * a.abs().max(b.abs()).max(least_scale)
}

/// The time and the energy of an outcome, each divided by that of the reference.
fn relative(outcome: &Outcome, basis: Basis<'_>) -> Result<(f64, f64), NoValue> {
    let reference = basis.reference()?;
    let (own_time, own_energy) = (time(outcome)?, energy(outcome)?);
    let of_reference =
        |value: Result<f64, NoValue>| value.map_err(|reason| NoValue::Reference(Box::new(reason)));
    Ok((
        own_time / of_reference(time(reference))?,
        own_energy / of_reference(energy(reference))?,
    ))
}

/// The cost of an outcome in money.
fn cost(outcome: &Outcome, tariff: &Tariff) -> Result<f64, NoValue> {
    let price = tariff.price.as_ref().ok_or(NoValue::NoPrice)?;
    let energy = match price.needs_energy() {
        true => Joules::new(energy(outcome)?),
        false => Joules::ZERO,
    };
    let device_time = Seconds::new(Value::DeviceTime.of(outcome)?);
    Ok(price.total(energy, device_time))
}

/// The carbon dioxide that an outcome's energy emits, in grams.
fn carbon(outcome: &Outcome, tariff: &Tariff) -> Result<f64, NoValue> {
    let carbon = tariff.carbon.as_ref().ok_or(NoValue::NoIntensity)?;
    let energy = Joules::new(energy(outcome)?);
    let time = Seconds::new(time(outcome)?);
    carbon
        .emissions(energy, time, outcome.start)
        .ok_or(NoValue::NoStart)
}
