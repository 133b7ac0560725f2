//! What a person sees while a verb works.

use sweetspot_quantity::{Seconds, Watts};
use sweetspot_study::{RunRecord, SweepProgress, Task};

use crate::hold::HoldStatus;

/// Shows a person how the work goes. A method that is not implemented shows nothing.
pub trait Observer {
    /// Something that the user should know at once.
    fn note(&mut self, message: &str) {
        let _ = message;
    }

    /// The present state of a command that runs; called some ten times a second.
    fn status(&mut self, status: &Status<'_>) {
        let _ = status;
    }

    /// The command has exited: the line that shows its state can go.
    fn clear(&mut self) {}

    /// A run of a sweep begins.
    fn run_begins(&mut self, progress: &SweepProgress<'_>, task: Task) {
        let _ = (progress, task);
    }

    /// A run of a sweep is done and kept.
    fn run_done(&mut self, progress: &SweepProgress<'_>, run: &RunRecord) {
        let _ = (progress, run);
    }
}

/// The state of a command that runs.
#[derive(Clone, Copy, Debug)]
pub enum Status<'a> {
    /// A command that is measured.
    Measure {
        /// Since its start.
        elapsed: Seconds,
        /// What its devices draw, where that is known.
        power: Option<Watts>,
        /// Items done so far.
        items: f64,
    },
    /// A program that is held below a power cap.
    Hold(&'a HoldStatus),
}

/// An observer that shows nothing.
impl Observer for () {}
