//! The events that a budgeter takes, and the actions that it asks for.

use sweetspot_quantity::{Ratio, Seconds, Watts};

/// The mean state of a GPU over the time since the last reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuReading {
    /// The mean power.
    pub power: Watts,
    /// The share of the time in which the power cap limited the GPU; `None` if the GPU does not report it.
    pub limited: Option<Ratio>,
    /// Whether a program uses the GPU.
    pub is_busy: bool,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BudgetEvent {
    /// The budget has changed.
    Budget(Watts),
    /// A GPU was read.
    Read {
        /// The number of the GPU in the configuration.
        gpu: usize,
        /// What was read.
        reading: GpuReading,
    },
    /// The power of a GPU is unknown: its sensor gave no new value for a while.
    Unread {
        /// The number of the GPU in the configuration.
        gpu: usize,
        /// Whether a program uses the GPU.
        is_busy: bool,
    },
    /// The program on a GPU is another one, or has ended (`None`). GPUs with the same program work on one job.
    Program {
        /// The number of the GPU in the configuration.
        gpu: usize,
        /// A number that identifies the program.
        program: Option<u64>,
    },
    /// The program on a GPU has reported its progress.
    Progress {
        /// The number of the GPU in the configuration.
        gpu: usize,
        /// When the program reported.
        at: Seconds,
        /// All items that the program has done by then.
        items: f64,
    },
    /// A power cap was set and read back.
    Applied {
        /// The number of the GPU in the configuration.
        gpu: usize,
        /// The cap that was read back.
        cap: Watts,
    },
    /// The power cap of a GPU cannot be set.
    Rejected {
        /// The number of the GPU in the configuration.
        gpu: usize,
    },
    /// The power cap of a GPU can be set from now on.
    Settable {
        /// The number of the GPU in the configuration.
        gpu: usize,
        /// The highest power cap that the GPU may have: the one that it has now.
        max_cap: Watts,
    },
    /// A GPU no longer responds.
    Lost {
        /// The number of the GPU in the configuration.
        gpu: usize,
    },
    /// Time has passed. Expected about ten times per second, after the readings.
    Tick,
}

/// Something to do, in this order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BudgetAction {
    /// Set the power cap of a GPU, and confirm it by [`BudgetEvent::Applied`].
    Set {
        /// The number of the GPU in the configuration.
        gpu: usize,
        /// The power cap to set.
        cap: Watts,
    },
    /// Tell the user.
    Notify(BudgetNotice),
}

/// A message for the user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BudgetNotice {
    /// The budget is below the lowest caps of the GPUs, which are set.
    BelowFloor {
        /// The budget.
        budget: Watts,
        /// The sum of the lowest caps, and of what GPUs draw whose cap cannot be set.
        floor: Watts,
        /// What GPUs draw whose cap cannot be set.
        uncapped: Watts,
        /// Whether a GPU has a floor above its lowest cap.
        has_floors: bool,
    },
    /// The budget can be kept again.
    Feasible {
        /// The budget.
        budget: Watts,
    },
    /// A GPU draws more than its cap, because it cannot lower its clock any further.
    AboveCap {
        /// The number of the GPU in the configuration.
        gpu: usize,
        /// The power that the GPU draws.
        power: Watts,
        /// The power cap of the GPU.
        cap: Watts,
    },
}
