//! The knobs of a device and their values.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Megahertz, Quantity, Watts};

/// A setting of a device that can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knob {
    /// The power cap: the maximum power of the device.
    PowerCap,
    /// The frequency to which the cores are locked.
    CoreClock,
    /// The frequency to which the memory is locked.
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

/// The values that a knob of a device supports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Domain<Q> {
    /// Any value from `min` to `max`, both included.
    Range {
        /// The smallest supported value.
        min: Q,
        /// The largest supported value.
        max: Q,
    },
    /// Only these values, in ascending order.
    Levels(Vec<Q>),
}

impl<Q: Quantity + std::fmt::Display> Domain<Q> {
    /// Whether the value is supported.
    pub fn contains(&self, value: Q) -> bool {
        match self {
            Self::Range { min, max } => *min <= value && value <= *max,
            Self::Levels(levels) => levels.contains(&value),
        }
    }

    /// The supported value nearest to `value`, if it is between the smallest and the largest supported value.
    pub fn nearest(&self, value: Q) -> Option<Q> {
        match self {
            Self::Range { .. } => self.contains(value).then_some(value),
            Self::Levels(levels) => {
                let distance = |level: &&Q| (level.base() - value.base()).abs();
                let is_between = levels.first()? <= &value && &value <= levels.last()?;
                let nearest = levels
                    .iter()
                    .min_by(|a, b| distance(a).total_cmp(&distance(b)));
                nearest.copied().filter(|_| is_between)
            }
        }
    }

    /// Returns a phrase for an error message that names the supported values nearest to an unsupported one.
    pub fn describe_nearest(&self, value: Q) -> String {
        match self {
            Self::Range { min, max } => format!("choose {min} to {max}"),
            Self::Levels(levels) => {
                let below = levels.iter().rev().find(|level| **level < value);
                let above = levels.iter().find(|level| **level > value);
                match (below, above) {
                    (Some(below), Some(above)) => {
                        format!("the nearest values are {below} and {above}")
                    }
                    (Some(nearest), None) | (None, Some(nearest)) => {
                        format!("the nearest value is {nearest}")
                    }
                    (None, None) => "the device lists no supported values".to_owned(),
                }
            }
        }
    }
}

/// A knob's supported values, its default, and whether its setting can be read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnobRange<Q> {
    /// The values that the knob supports.
    pub domain: Domain<Q>,
    /// The vendor's default, which may differ from the present setting.
    pub default: Q,
    /// Whether the present setting can be read back. NVML, for example, cannot report a locked clock.
    pub readable: bool,
}

/// A knob of a device with its supported values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "knob", rename_all = "kebab-case")]
pub enum KnobDescriptor {
    /// The power cap ([`Knob::PowerCap`]) and the values that it supports.
    PowerCap(KnobRange<Watts>),
    /// The core clock ([`Knob::CoreClock`]) and the values that it supports.
    CoreClock(KnobRange<Megahertz>),
    /// The memory clock ([`Knob::MemoryClock`]) and the values that it supports.
    MemoryClock(KnobRange<Megahertz>),
}

impl KnobDescriptor {
    /// The knob that this descriptor belongs to.
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
        let near = |mhz| levels.describe_nearest(Megahertz::new(mhz));
        assert_eq!(near(700.0), "the nearest values are 652 MHz and 802 MHz");
        assert_eq!(near(900.0), "the nearest value is 802 MHz");
        assert_eq!(near(1.0), "the nearest value is 510 MHz");
        let nearest = |mhz| levels.nearest(Megahertz::new(mhz)).map(Megahertz::get);
        assert_eq!(nearest(700.0), Some(652.0));
        assert_eq!(nearest(802.0), Some(802.0));
        assert_eq!((nearest(509.0), nearest(803.0)), (None, None));
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
            range.describe_nearest(Watts::new(90.0)),
            "choose 150 W to 300 W"
        );
    }
}
