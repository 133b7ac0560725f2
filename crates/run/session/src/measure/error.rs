//! Why a command cannot be measured.

use sweetspot_measure::SamplerError;

/// Why a command cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The threads that read the devices cannot be started or have failed.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The shell command that prepares each run failed; the text is its exit status.
    #[error("the command that prepares each run failed ({0})")]
    Prepare(String),
}
