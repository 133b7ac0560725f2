//! The events that the caller passes to a controller.

use sweetspot_device::Knob;
use sweetspot_quantity::{Seconds, Watts};

/// An event of a run; [`super::Holder::step`] takes it together with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HoldEvent {
    /// The program asked for its batch size.
    BatchSizeRequested,
    /// The program completed a batch.
    BatchCompleted(CompletedBatch),
    /// A power reading arrived.
    PowerRead(PowerReading),
    /// The user changed the power cap to this value.
    CapChanged(Watts),
    /// The device reported the power limit that it enforces by itself.
    DeviceLimit {
        /// The power limit that the device enforces.
        enforced: Watts,
        /// Whether the device currently runs slower because of the limit.
        throttled: bool,
    },
    /// The program reported how many requests wait.
    Queue {
        /// The number of items that wait to be processed.
        length: u64,
        /// The number of items that arrive per second; absent if it is unknown.
        arrivals_per_s: Option<f64>,
    },
    /// A batch did not fit into memory.
    OutOfMemory {
        /// The size of the batch that did not fit.
        size: u64,
    },
    /// The device rejected a setting of this knob.
    SettingRejected(Knob),
    /// Watts no longer move between the GPUs of a job.
    Balanced {
        /// Whether watts have moved at all: what was measured before is then no longer true.
        has_changed: bool,
    },
    /// Time passed without another event; the caller sends it regularly.
    Tick,
}

/// A batch that the program completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletedBatch {
    /// The batch size that the program used.
    pub size: u64,
    /// The number of items in the batch; below the batch size if too few items waited.
    pub items: u64,
    /// The time that the program worked on the batch, preparation included and waiting for items excluded.
    pub duration: Seconds,
    /// The time from the arrival of the oldest item to the end of the batch; if absent, the duration is used as the
    /// latency.
    pub latency: Option<Seconds>,
}

/// The mean power over a time span, such as 1 s of an averaging sensor or 20 ms in a driver's sample buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerReading {
    /// The start of the time span that the reading covers, on the same clock as the times of the events.
    pub from: Seconds,
    /// The end of the time span that the reading covers.
    pub to: Seconds,
    /// The mean power over the time span of the reading.
    pub power: Watts,
}

/// A power reading in the units of tests: seconds and watts.
#[cfg(test)]
pub(crate) fn reading(from: f64, to: f64, power: f64) -> PowerReading {
    PowerReading {
        from: Seconds::new(from),
        to: Seconds::new(to),
        power: Watts::new(power),
    }
}
