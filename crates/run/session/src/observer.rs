//! Reports the progress of a command to the user.

use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_study::{RunRecord, SweepProgress, Task};

use crate::budget::BudgetStatus;
use crate::hold::HoldStatus;
use crate::sweep::{QueueSummary, TimeLeft};

/// Shows the user the progress of a command. The default methods show nothing.
pub trait Observer {
    /// Shows a message to the user at once.
    fn note(&mut self, message: &str) {
        let _ = message;
    }

    /// Shows the current state of a running command; called about ten times a second.
    fn status(&mut self, status: &Status<'_>) {
        let _ = status;
    }

    /// Removes the status line, because the command has exited.
    fn clear(&mut self) {}

    /// Shows that a run of a sweep begins.
    fn run_begins(&mut self, progress: &SweepProgress<'_>, task: Task) {
        let _ = (progress, task);
    }

    /// Shows how long the rest of a sweep takes, once the reference has run, and returns whether it shall go on. A
    /// question to the user ends when `is_interrupted` returns true.
    fn time_left(&mut self, left: &TimeLeft, is_interrupted: &dyn Fn() -> bool) -> bool {
        let _ = (left, is_interrupted);
        true
    }

    /// Shows a run of a sweep that is finished and stored.
    fn run_done(&mut self, progress: &SweepProgress<'_>, run: &RunRecord) {
        let _ = (progress, run);
    }
}

/// The state of a running command.
#[derive(Clone, Copy, Debug)]
pub enum Status<'a> {
    /// The state of a command that is measured.
    Measure {
        /// The time since the start of the command.
        elapsed: Seconds,
        /// The present power of the command's devices; `None` if it is unknown.
        power: Option<Watts>,
        /// The number of items completed so far.
        items: f64,
    },
    /// A program whose GPU is kept below a power cap.
    Hold(&'a HoldStatus),
    /// The jobs of a study on Slurm.
    Queue(&'a QueueSummary),
    /// GPUs that are kept together under a budget.
    Budget(&'a BudgetStatus),
    /// A job that is tuned.
    Tune(&'a TuneStatus),
}

/// The state of a job that is tuned; reported about once a second.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneStatus {
    /// The time since the start of the job.
    pub elapsed: Seconds,
    /// The mean power of all its GPUs since the last report; `None` without readings.
    pub power: Option<Watts>,
    /// The speed in the last measurement window; `None` without progress.
    pub items_per_s: Option<f64>,
    /// The energy of an item in the last measurement window; `None` without progress.
    pub energy_per_item: Option<Joules>,
    /// The energy saved so far against the measured reference; `None` while there is none.
    pub saved: Option<Joules>,
    /// The tried settings as shown to users, with the energy of an item at each, in the order of trying.
    pub tried: Vec<(String, f64)>,
    /// The setting in force.
    pub setting: String,
}

/// An observer that shows nothing.
impl Observer for () {}
