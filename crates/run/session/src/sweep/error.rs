//! Why a sweep cannot begin or go on.

use sweetspot_quantity::Celsius;
use sweetspot_study::{StudyError, TemplateError};

/// Why a sweep cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// There is neither a command nor a simulated GPU.
    #[error("nothing to run")]
    NothingToRun,
    /// A command was given together with simulated GPUs in virtual time.
    #[error("simulated GPUs in virtual time cannot run a command")]
    CommandInVirtualTime,
    /// The progress pattern cannot be used.
    #[error("progress: {0}")]
    Progress(String),
    /// The placeholders of the command cannot be filled.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The energy of the node was asked for, but there is no meter.
    #[error("the energy of the node needs a meter at the wall, and there is none here")]
    NoMeter,
    /// The study cannot be planned, run or stored.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The study cannot be resumed as it was begun.
    #[error("the study cannot be resumed: {0}; begin a new one")]
    Changed(&'static str),
    /// The study was merged from others.
    #[error("a merged study cannot be resumed: resume or repeat its parts, and merge again")]
    Merged,
    /// A GPU does not cool down.
    #[error(
        "{device} is still at {temperature} after {minutes} min, and runs begin at {wanted} or below: improve its cooling or allow a higher temperature"
    )]
    TooHot {
        /// The name of the GPU.
        device: String,
        /// Its temperature.
        temperature: Celsius,
        /// The temperature at which runs begin.
        wanted: Celsius,
        /// How long the sweep waited, in minutes.
        minutes: u64,
    },
    /// A signal interrupted the sweep.
    #[error("interrupted by signal {signal}: {done} of {planned} runs are kept")]
    Interrupted {
        /// The number of the signal.
        signal: i32,
        /// The number of runs that are kept.
        done: usize,
        /// The number of runs in all.
        planned: usize,
        /// Whether every device has its earlier settings again.
        restored: bool,
    },
    /// A device did not get its earlier settings back.
    #[error("not every setting could be restored: try `sweetspot restore`; the study is kept")]
    NotRestored,
}
