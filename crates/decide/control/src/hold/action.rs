//! The settings and notices that a holder returns.

use sweetspot_device::Knob;
use sweetspot_quantity::{Megahertz, Seconds, Watts};

/// The changes that a step asks for; an absent field stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HoldActions {
    /// The new batch size.
    pub batch: Option<u64>,
    /// The new core clock.
    pub core_clock: Option<Megahertz>,
    /// The new power cap of the device.
    pub power_cap: Option<Watts>,
    /// A notice for the user; further notices come with the next steps.
    pub notice: Option<HoldNotice>,
}

impl HoldActions {
    /// Whether the step changes a setting.
    pub fn has_changes(&self) -> bool {
        self.batch.is_some() || self.core_clock.is_some() || self.power_cap.is_some()
    }
}

/// The setting that a holder asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldSetting {
    /// The batch size.
    pub batch: u64,
    /// The core clock, where the holder sets it.
    pub core_clock: Option<Megahertz>,
    /// The power cap of the device, where the holder sets it.
    pub power_cap: Option<Watts>,
}

/// Something that the user should know; each notice is given once until its condition ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HoldNotice {
    /// The lowest setting draws more than the cap.
    CapInfeasible {
        /// The power at the lowest setting.
        power: Watts,
        /// The cap to hold.
        cap: Watts,
    },
    /// The cap is below the idle power of the device.
    CapBelowIdle {
        /// The power of the device while the program waits.
        idle: Watts,
        /// The cap to hold.
        cap: Watts,
    },
    /// The smallest batch exceeds the latency bound.
    LatencyInfeasible {
        /// The 99th percentile of the latency.
        p99: Seconds,
        /// The latency bound.
        bound: Seconds,
    },
    /// More requests arrive than the best setting serves.
    Overloaded {
        /// Items that arrive in a second.
        arrivals_per_s: f64,
        /// Items that are served in a second.
        served_per_s: f64,
    },
    /// The cap and the latency bound can be met again.
    FeasibleAgain,
    /// The program has not asked for its batch size.
    NoBatchSizeRequests {
        /// The time since the start.
        waited: Seconds,
    },
    /// The program uses another batch size than the one it was given.
    BatchSizeIgnored {
        /// The batch size that the holder set.
        requested: u64,
        /// The batch size that the program used.
        used: u64,
    },
    /// No power reading has arrived for long; the setting stays as it is.
    SensorStopped {
        /// The time since the last reading.
        silent: Seconds,
    },
    /// Power readings arrive again.
    SensorResumed,
    /// A batch did not fit into memory; this size and larger ones are not tried again.
    OutOfMemory {
        /// The size of the batch.
        size: u64,
    },
    /// The smallest batch does not fit into memory.
    SmallestBatchTooLarge {
        /// The smallest batch size.
        size: u64,
    },
    /// The device rejected a setting; the holder no longer sets this knob.
    KnobRejected(Knob),
    /// The device enforces a lower limit than the cap to hold.
    DeviceLimit {
        /// The limit that the device enforces.
        enforced: Watts,
        /// The cap to hold.
        cap: Watts,
    },
}
