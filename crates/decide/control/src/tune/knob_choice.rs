//! Which knob to tune for a load: the power cap or the core clock.

use std::fmt::{Display, Formatter};

use sweetspot_device::Knob;
use sweetspot_quantity::Watts;

use crate::limit::{CapEffect, Limit, LoadLimit};

/// Power caps are tuned only if the job draws at least this multiple of the lowest cap: a cap above the draw has no effect,
/// and the cap with the least energy is usually at 50 to 60 % of the draw. A higher multiple gains little in the cases of
/// `benchmarks/src/bin/tune`, and is worse in more of them, because the search misses the best clock by more where it
/// misses it (docs/decisions/019-tune-chooses-the-knob.md).
const MIN_DRAW_OF_LOWEST_CAP: f64 = 1.3;

/// What to tune for a load, and why. Its text is a sentence for the user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KnobChoice {
    /// The power cap: caps can be set far below what the job draws.
    PowerCap {
        /// The mean power of a device.
        power: Watts,
        /// The lowest power cap of a device.
        lowest: Watts,
        /// What limits the load.
        limit: LoadLimit,
    },
    /// The core clock: the lowest cap is above what the job draws, or hardly below.
    ClockBelowCaps {
        /// The mean power of a device.
        power: Watts,
        /// The lowest power cap of a device.
        lowest: Watts,
    },
    /// The core clock: it is known what limits the load, and that is not the cap.
    ClockByLimit(LoadLimit),
    /// No setting can save energy under this load.
    Nothing(LoadLimit),
}

impl KnobChoice {
    /// Chooses the knob for a load that draws this power per device at the reference.
    pub fn decide(power: Watts, lowest: Watts, limit: &LoadLimit) -> Self {
        let limit = *limit;
        let is_reached = power >= lowest * MIN_DRAW_OF_LOWEST_CAP;
        match (limit.limit, limit.cap) {
            (Limit::Idle, _) => Self::Nothing(limit),
            _ if !is_reached => Self::ClockBelowCaps { power, lowest },
            // The units' counters tell that the load waits for the memory or the cores at a power below the cap.
            (Limit::Memory | Limit::Compute, CapEffect::DoesNotBind) => Self::ClockByLimit(limit),
            _ => Self::PowerCap {
                power,
                lowest,
                limit,
            },
        }
    }

    /// The knob to tune; `None` if no setting can help.
    pub const fn knob(&self) -> Option<Knob> {
        match self {
            Self::PowerCap { .. } => Some(Knob::PowerCap),
            Self::ClockBelowCaps { .. } | Self::ClockByLimit(_) => Some(Knob::CoreClock),
            Self::Nothing(_) => None,
        }
    }
}

impl Display for KnobChoice {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PowerCap { limit, .. } if limit.cap == CapEffect::Binds => {
                write!(f, "the power cap is tuned: {limit}")
            }
            Self::PowerCap { power, lowest, .. } => write!(
                f,
                "the power cap is tuned: a GPU draws {power:.0}, and caps down to {lowest:.0} can be set"
            ),
            Self::ClockBelowCaps { power, lowest } if power <= lowest => write!(
                f,
                "the core clock is tuned: a GPU draws {power:.0}, so that even the lowest power cap of {lowest:.0} has no effect"
            ),
            Self::ClockBelowCaps { power, lowest } => write!(
                f,
                "the core clock is tuned: a GPU draws {power:.0}, and the lowest power cap of {lowest:.0} is hardly below"
            ),
            Self::ClockByLimit(limit) => write!(f, "the core clock is tuned: {limit}"),
            Self::Nothing(limit) => write!(f, "no setting can save energy: {limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_device::UnitUse;
    use sweetspot_quantity::Ratio;

    use super::*;
    use crate::limit::LoadEvidence;

    /// The choice for a load on an H200 (caps from 200 to 700 W) with this power, share of throttled time, and use of
    /// cores, tensor units and memory.
    fn choice(
        power: f64,
        capped: impl Into<Option<f64>>,
        units: Option<[f64; 3]>,
    ) -> (KnobChoice, String) {
        let share = |index: usize| units.map(|units| Ratio::new(units[index]));
        let limit = LoadLimit::decide(&LoadEvidence {
            power: Some(Watts::new(power)),
            power_cap: Some(Watts::new(700.0)),
            throttled_by_cap: capped.into().map(Ratio::new),
            units: UnitUse {
                cores: share(0),
                tensor: share(1),
                memory: share(2),
            },
            ..LoadEvidence::default()
        });
        let choice = KnobChoice::decide(Watts::new(power), Watts::new(200.0), &limit);
        (choice, choice.to_string())
    }

    #[test]
    fn the_knob_follows_from_what_limits_the_load_and_from_the_range_of_caps() {
        use Knob::{CoreClock, PowerCap};
        let table = [
            (
                "matrix products",
                choice(695.0, 0.98, Some([0.99, 0.9, 0.3])),
                Some(PowerCap),
            ),
            (
                "no counters, at the cap",
                choice(695.0, None, None),
                Some(PowerCap),
            ),
            (
                "copies",
                choice(577.0, 0.0, Some([0.98, 0.0, 0.92])),
                Some(CoreClock),
            ),
            (
                "small tensors",
                choice(420.0, 0.0, Some([0.9, 0.5, 0.3])),
                Some(CoreClock),
            ),
            (
                "copies, no counters",
                choice(577.0, None, None),
                Some(PowerCap),
            ),
            (
                "near the cap, no throttle times",
                choice(650.0, None, Some([0.9, 0.5, 0.3])),
                Some(PowerCap),
            ),
            (
                "hardly above the lowest cap",
                choice(250.0, 0.0, None),
                Some(CoreClock),
            ),
            (
                "below the lowest cap",
                choice(150.0, None, None),
                Some(CoreClock),
            ),
            (
                "slow input",
                choice(180.0, 0.0, Some([0.3, 0.1, 0.1])),
                Some(CoreClock),
            ),
            (
                "nothing runs",
                choice(120.0, 0.0, Some([0.0, 0.0, 0.0])),
                None,
            ),
        ];
        for (name, (choice, text), knob) in table {
            assert_eq!(choice.knob(), knob, "{name}: {text}");
        }
    }

    #[test]
    fn the_sentence_says_why() {
        assert_eq!(
            choice(577.0, 0.0, Some([0.98, 0.0, 0.92])).1,
            "the core clock is tuned: the power cap of 700 W does not limit this load, which draws 577 W: it is limited by memory bandwidth (92 %); a lower core clock saves energy"
        );
        assert_eq!(
            choice(250.0, None, None).1,
            "the core clock is tuned: a GPU draws 250 W, and the lowest power cap of 200 W is hardly below"
        );
        assert_eq!(
            choice(120.0, 0.0, Some([0.0, 0.0, 0.0])).1,
            "no setting can save energy: the power cap of 700 W does not limit this load, which draws 120 W: no work runs on the GPU"
        );
    }
}
