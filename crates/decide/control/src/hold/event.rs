//! The events that the caller passes to a holder.

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
    /// The user changed the cap.
    CapChanged(Watts),
    /// The device reported the power limit that it enforces by itself.
    DeviceLimit {
        /// The power limit in force.
        enforced: Watts,
        /// Whether the limit slows the device down now.
        throttled: bool,
    },
    /// The program reported how many requests wait.
    Queue {
        /// The number of waiting items.
        length: u64,
        /// Items that arrive per second, if known.
        arrivals_per_s: Option<f64>,
    },
    /// A batch did not fit into memory.
    OutOfMemory {
        /// The size of the batch.
        size: u64,
    },
    /// The device rejected a setting.
    SettingRejected(Knob),
    /// Time passed and nothing else happened.
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
    /// The start of the span, on the same clock as the times of the events.
    pub from: Seconds,
    /// The end of the span.
    pub to: Seconds,
    /// The mean power of the span.
    pub power: Watts,
}
