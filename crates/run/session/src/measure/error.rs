//! Why a command cannot be measured.

use sweetspot_measure::SamplerError;

/// Why a command cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The threads that read the devices cannot be started or have failed.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The energy of the whole machine was asked for without a meter.
    #[error(
        "the energy of the whole node needs a power meter: name it with --meter, such as --meter wt310:/dev/usbtmc0 or --meter shelly:http://ADDRESS"
    )]
    NoMeter,
    /// The shell command that prepares each run failed; the text is its exit status.
    #[error("the command that prepares each run failed ({0})")]
    Prepare(String),
}
