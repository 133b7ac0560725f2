//! What a holder wants done.

use sweetspot_device::Knob;
use sweetspot_quantity::{Megahertz, Seconds, Watts};

/// What a step asks for; what is absent stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Actions {
    /// The batch size from now on.
    pub batch: Option<u64>,
    /// The core clock from now on.
    pub core_clock: Option<Megahertz>,
    /// The device's power cap from now on.
    pub power_cap: Option<Watts>,
    /// What a person should know; the next one comes with the next step.
    pub notice: Option<Notice>,
}

impl Actions {
    /// Whether a setting is to be changed.
    pub fn changes(&self) -> bool {
        self.batch.is_some() || self.core_clock.is_some() || self.power_cap.is_some()
    }
}

/// What is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// The batch size.
    pub batch: u64,
    /// The core clock, where it is the knob.
    pub core_clock: Option<Megahertz>,
    /// The device's power cap, where it is the knob.
    pub power_cap: Option<Watts>,
}

/// Something a person should know; each is said once until it no longer holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    /// The lowest setting draws more than the cap.
    Infeasible {
        /// What it draws.
        power: Watts,
        /// The cap.
        cap: Watts,
    },
    /// The cap is below what the device draws while the program waits.
    CapBelowIdle {
        /// What it draws.
        idle: Watts,
        /// The cap.
        cap: Watts,
    },
    /// The smallest batch takes longer than the bound.
    LatencyInfeasible {
        /// 99 of 100 items take no longer.
        p99: Seconds,
        /// The bound.
        bound: Seconds,
    },
    /// More requests come than the best setting serves.
    FallsBehind {
        /// That come.
        arrivals_per_s: f64,
        /// That are served.
        served_per_s: f64,
    },
    /// The cap can be kept again, or the latency.
    FeasibleAgain,
    /// The program has not asked for its batch size.
    NeverAsked {
        /// Since the begin.
        waited: Seconds,
    },
    /// The program uses another batch size than it was given.
    IgnoresBatch {
        /// Given.
        asked: u64,
        /// Used.
        used: u64,
    },
    /// No reading of power for long: the setting is lowered no more and raised no more.
    SensorStopped {
        /// Since the last reading.
        silent: Seconds,
    },
    /// Readings come again.
    SensorBack,
    /// A batch did not fit; none of its size or above is tried again.
    OutOfMemory {
        /// Its size.
        size: u64,
    },
    /// The smallest batch does not fit.
    NothingFits {
        /// Its size.
        size: u64,
    },
    /// The device did not take a setting; that knob is left alone.
    Refused(Knob),
    /// The device holds itself below the cap that is to be held.
    DeviceLimit {
        /// What it enforces.
        enforced: Watts,
        /// The cap that is to be held.
        cap: Watts,
    },
}
