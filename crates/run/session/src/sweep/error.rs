//! Why a sweep cannot start or continue.

use sweetspot_quantity::Celsius;
use sweetspot_study::{StudyError, TemplateError};

/// Why a sweep cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Neither a command nor a simulated GPU was given.
    #[error("nothing to run")]
    NothingToRun,
    /// A command was given, but simulated GPUs in virtual time cannot run one.
    #[error("simulated GPUs in virtual time cannot run a command")]
    CommandInVirtualTime,
    /// The progress pattern is invalid; the text says why.
    #[error("progress: {0}")]
    Progress(String),
    /// The address of the metrics page is invalid.
    #[error("metrics: {0}")]
    Metrics(sweetspot_http::InvalidUrl),
    /// The placeholders of the command cannot be filled.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The energy of the whole node was asked for without a meter.
    #[error(
        "the energy of the whole node needs a power meter: name it with --meter, such as --meter wt310:/dev/usbtmc0 or --meter shelly:http://ADDRESS; --host adds the processors to the GPUs without one"
    )]
    NoMeter,
    /// The energy of the host was asked for with a measurement method that its sensors do not offer.
    #[error(
        "the processors have energy counters alone: use the measurement method auto or counter"
    )]
    HostMethod,
    /// The study cannot be planned, run or stored.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The study cannot be resumed because something has changed since its start; the text says what.
    #[error("the study cannot be resumed: {0}; begin a new one")]
    Changed(&'static str),
    /// The study was merged from other studies.
    #[error("a merged study cannot be resumed: resume or repeat its parts, and merge again")]
    Merged,
    /// A GPU did not cool down in time.
    #[error(
        "{device} is still at {temperature} after {minutes} min, but runs start only at {wanted} or below: improve its cooling or allow a higher temperature"
    )]
    TooHot {
        /// The name of the GPU.
        device: String,
        /// The GPU's temperature after the wait.
        temperature: Celsius,
        /// The highest temperature at which a run may start.
        wanted: Celsius,
        /// How long the sweep waited, in minutes.
        minutes: u64,
    },
    /// A signal interrupted the sweep.
    #[error("interrupted by signal {signal}: {done} of {planned} runs are stored")]
    Interrupted {
        /// The number of the signal that interrupted the sweep.
        signal: i32,
        /// The number of runs that are stored.
        done: usize,
        /// The number of all planned runs.
        planned: usize,
        /// Whether the earlier settings of every device were restored.
        restored: bool,
    },
    /// The user decided not to make the remaining runs.
    #[error("stopped after {done} of about {planned} runs")]
    Declined {
        /// The number of runs that are stored.
        done: usize,
        /// The expected number of all runs.
        planned: usize,
    },
    /// The earlier settings of a device could not be restored.
    #[error("not every setting could be restored: try `sweetspot restore`; the study is stored")]
    NotRestored,
}
