//! The control algorithms under which the jobs of table 2 run.

use sweetspot_control::hold::{CapOn, HoldMode};
use sweetspot_virtual_time::hold::Sensor;

/// A control algorithm of `hold`, and what the cap binds for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controller {
    /// The control algorithm.
    pub mode: HoldMode,
    /// What the cap binds.
    pub cap_on: CapOn,
}

impl Controller {
    /// The default algorithm with the cap that the paper's algorithms have.
    pub(super) const ROBUST_ON_READINGS: Self = Self {
        mode: HoldMode::Robust,
        cap_on: CapOn::Reading,
    };
    /// The search over batch size and clock with the cap that the paper's algorithms have.
    pub(super) const JOINT_ON_READINGS: Self = Self {
        mode: HoldMode::Joint,
        cap_on: CapOn::Reading,
    };

    /// A control algorithm with its default cap: on every reading for the paper's, on the mean of a second for the
    /// others.
    pub(super) fn of(mode: HoldMode) -> Self {
        Self {
            mode,
            cap_on: mode.default_cap_on(),
        }
    }

    /// All control algorithms, in display order. Those that are not the paper's run with both caps: only with the cap on
    /// readings can they be compared with the paper's.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let both = [Self::ROBUST_ON_READINGS, Self::JOINT_ON_READINGS];
        HoldMode::ALL.into_iter().map(Self::of).chain(both)
    }

    /// The name in documents: that of the control algorithm, with the cap if it is not the default one.
    pub fn name(self) -> String {
        match self == Self::of(self.mode) {
            true => self.mode.name().to_owned(),
            false => format!("{}:{}", self.mode.name(), self.cap_on),
        }
    }

    /// The sensor that the control algorithm reads: single readings as fast as the card gives them, or means.
    pub(super) fn sensor(self) -> Sensor {
        match self.cap_on {
            CapOn::Reading => Sensor::Instant,
            CapOn::Mean(_) => Sensor::Averaged,
        }
    }
}
