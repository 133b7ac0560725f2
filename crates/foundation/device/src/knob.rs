//! What can be set on a device, and to which values.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Megahertz, Quantity, Watts};

/// A knob on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knob {
    /// The most power it may draw.
    PowerCap,
    /// The clock of its cores.
    CoreClock,
    /// The clock of its memory.
    MemoryClock,
}

impl std::fmt::Display for Knob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::PowerCap => "power cap",
            Self::CoreClock => "core clock",
            Self::MemoryClock => "memory clock",
        })
    }
}

/// The values a knob takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Domain<Q> {
    /// Any value between two ends, the ends included.
    Range {
        /// Smallest.
        min: Q,
        /// Largest.
        max: Q,
    },
    /// These values and no others, ascending.
    Levels(Vec<Q>),
}

impl<Q: Quantity + std::fmt::Display> Domain<Q> {
    /// Whether the value can be set.
    pub fn contains(&self, value: Q) -> bool {
        match self {
            Self::Range { min, max } => *min <= value && value <= *max,
            Self::Levels(levels) => levels.contains(&value),
        }
    }

    /// What is offered in place of a value that is not, in words.
    pub fn offered_near(&self, value: Q) -> String {
        match self {
            Self::Range { min, max } => format!("it goes from {min} to {max}"),
            Self::Levels(levels) => {
                let below = levels.iter().rev().find(|level| **level < value);
                let above = levels.iter().find(|level| **level > value);
                match (below, above) {
                    (Some(below), Some(above)) => format!("the nearest are {below} and {above}"),
                    (Some(nearest), None) | (None, Some(nearest)) => {
                        format!("the nearest is {nearest}")
                    }
                    (None, None) => "there is no level to choose".to_owned(),
                }
            }
        }
    }
}

/// A knob's values, the one it has by default, and whether what is set can be read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnobRange<Q> {
    /// What it takes.
    pub domain: Domain<Q>,
    /// What the vendor set; not always what is set now.
    pub default: Q,
    /// NVML can set and reset a locked clock, but not tell it.
    pub readable: bool,
}

/// A knob and its values in its own quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "knob", rename_all = "kebab-case")]
pub enum KnobDescriptor {
    /// See [`Knob::PowerCap`].
    PowerCap(KnobRange<Watts>),
    /// See [`Knob::CoreClock`].
    CoreClock(KnobRange<Megahertz>),
    /// See [`Knob::MemoryClock`].
    MemoryClock(KnobRange<Megahertz>),
}

impl KnobDescriptor {
    /// Which knob is described.
    pub const fn knob(&self) -> Knob {
        match self {
            Self::PowerCap(_) => Knob::PowerCap,
            Self::CoreClock(_) => Knob::CoreClock,
            Self::MemoryClock(_) => Knob::MemoryClock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_levels_are_named() {
        let levels = Domain::Levels([510.0, 652.0, 802.0].map(Megahertz::new).to_vec());
        assert!(levels.contains(Megahertz::new(652.0)));
        let near = |mhz| levels.offered_near(Megahertz::new(mhz));
        assert_eq!(near(700.0), "the nearest are 652 MHz and 802 MHz");
        assert_eq!(near(900.0), "the nearest is 802 MHz");
        assert_eq!(near(1.0), "the nearest is 510 MHz");
    }

    #[test]
    fn a_range_includes_its_ends() {
        let range = Domain::Range {
            min: Watts::new(150.0),
            max: Watts::new(300.0),
        };
        assert!(range.contains(Watts::new(150.0)) && range.contains(Watts::new(300.0)));
        assert!(!range.contains(Watts::new(149.9)));
        assert_eq!(
            range.offered_near(Watts::new(90.0)),
            "it goes from 150 W to 300 W"
        );
    }
}
