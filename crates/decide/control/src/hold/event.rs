//! What a holder is told.

use sweetspot_device::Knob;
use sweetspot_quantity::{Seconds, Watts};

/// Something that happened; [`super::Holder::step`] takes its time beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// The program asked for its batch size.
    Asked,
    /// A batch was done.
    Batch(BatchDone),
    /// Power was read.
    Power(PowerReading),
    /// Somebody set another cap.
    Cap(Watts),
    /// What the device enforces by itself; and whether it slows down for it now.
    Limit {
        /// The power limit in force.
        enforced: Watts,
        /// Whether its power is why it does not run faster.
        throttled: bool,
    },
    /// What waits for the program.
    Queue {
        /// Items.
        length: u64,
        /// Items that arrive in a second, where known.
        arrivals_per_s: Option<f64>,
    },
    /// A batch of this size did not fit.
    OutOfMemory {
        /// Items in it.
        size: u64,
    },
    /// The device did not take what was asked of it.
    Refused(Knob),
    /// Time passed.
    Tick,
}

/// A batch that was done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchDone {
    /// The batch size that the program used.
    pub size: u64,
    /// Items in it: fewer than its size where no more were there.
    pub items: u64,
    /// How long the program was busy with it, its preparation included; not how long it waited for items.
    pub duration: Seconds,
    /// From the arrival of its oldest item to its end, where known; otherwise its duration counts.
    pub latency: Option<Seconds>,
}

/// The mean power of a span of time: a second of an averaging sensor, 20 ms of a driver's buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerReading {
    /// The begin of the span, on the clock of the steps.
    pub from: Seconds,
    /// Its end.
    pub to: Seconds,
    /// The mean power in it.
    pub power: Watts,
}
