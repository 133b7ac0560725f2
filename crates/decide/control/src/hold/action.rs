//! The setting changes and notices that a controller returns.

use sweetspot_device::Knob;
use sweetspot_quantity::{Megahertz, Seconds, Watts};

/// The setting changes that [`super::Holder::step`] asks for; a setting whose field is absent stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HoldActions {
    /// The new batch size; absent if it does not change.
    pub batch: Option<u64>,
    /// The new core clock; absent if it does not change.
    pub core_clock: Option<Megahertz>,
    /// The new power cap of the device; absent if it does not change.
    pub power_cap: Option<Watts>,
    /// A notice for the user; further notices come with the next steps.
    pub notice: Option<HoldNotice>,
}

impl HoldActions {
    /// Whether at least one setting changes.
    pub fn has_changes(&self) -> bool {
        self.batch.is_some() || self.core_clock.is_some() || self.power_cap.is_some()
    }
}

/// The complete setting that a controller asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldSetting {
    /// The batch size that the program is to use.
    pub batch: u64,
    /// The core clock; absent if the controller does not set it.
    pub core_clock: Option<Megahertz>,
    /// The power cap of the device; absent if the controller does not set it.
    pub power_cap: Option<Watts>,
}

/// A message for the user. Each is given once, and again only after its condition has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HoldNotice {
    /// Even the lowest setting draws more power than the cap.
    CapInfeasible {
        /// The measured power at the lowest setting.
        power: Watts,
        /// The power cap that the user gave.
        cap: Watts,
    },
    /// The cap is below the idle power of the device.
    CapBelowIdle {
        /// The power of the device while the program waits for requests.
        idle: Watts,
        /// The power cap that the user gave.
        cap: Watts,
    },
    /// Even the smallest batch exceeds the latency bound.
    LatencyInfeasible {
        /// The measured 99th percentile of the latency.
        p99: Seconds,
        /// The bound on the 99th percentile of the latency that the user gave.
        bound: Seconds,
    },
    /// More requests arrive than the best setting serves.
    Overloaded {
        /// The number of items that arrive per second.
        arrivals_per_s: f64,
        /// The number of items that are served per second.
        served_per_s: f64,
    },
    /// The cap and the latency bound can be met again.
    FeasibleAgain,
    /// The program has not asked for a batch size over the shared-memory link.
    NoBatchSizeRequests {
        /// The time since the start of the run, without a request.
        waited: Seconds,
    },
    /// The program uses another batch size than the one that was requested.
    BatchSizeIgnored {
        /// The batch size that the controller set.
        requested: u64,
        /// The batch size that the program used.
        used: u64,
    },
    /// No power reading has arrived for a long time; the setting stays as it is.
    SensorStopped {
        /// The time since the last power reading.
        silent: Seconds,
    },
    /// Power readings arrive again.
    SensorResumed,
    /// A batch did not fit into memory; this size and larger ones are not tried again.
    OutOfMemory {
        /// The size of the batch that did not fit.
        size: u64,
    },
    /// The smallest batch does not fit into memory.
    SmallestBatchTooLarge {
        /// The smallest batch size.
        size: u64,
    },
    /// The device rejected a setting; the controller no longer sets this knob.
    KnobRejected(Knob),
    /// The device itself enforces a lower power limit than the cap that the user gave.
    DeviceLimit {
        /// The power limit that the device enforces.
        enforced: Watts,
        /// The power cap that the user gave.
        cap: Watts,
    },
}
