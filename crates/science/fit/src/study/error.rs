//! Errors of fitting a profile to a study.

/// Why no profile can be fitted to a study.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StudyFitError {
    /// The energy in the study is not that of one GPU; the text says whose it is.
    #[error("the study counts the energy of {0}, but a profile needs the energy of one GPU")]
    EnergyOf(String),
    /// The study has no runs.
    #[error("the study has no runs yet: resume it")]
    NoRuns,
    /// Every run of the study failed; the text is the first failure.
    #[error("every run of the study failed: {0}")]
    AllFailed(String),
    /// No run has a measured energy; the text says whose energy was to be measured.
    #[error("no run of the study has an energy of {0}, but a profile needs energies")]
    NoEnergies(String),
    /// Every run used several GPUs; the number says how many.
    #[error("every run of the study was on {0} GPUs, but a profile needs runs on one GPU")]
    SeveralGpus(u64),
    /// The study varies the named parameter, which the simulator does not have.
    #[error(
        "the study varies {0}, which the simulator does not model: vary power caps, clocks or batch sizes, with one value of {0}"
    )]
    Parameter(String),
    /// The text is a batch size that is not a number.
    #[error("the study has a batch size that is not a number: `{0}`")]
    Batch(String),
    /// Only one configuration succeeded.
    #[error(
        "the study has only one successful configuration: at least two are needed, with different caps, clocks or batch sizes"
    )]
    OneConfiguration,
    /// A run has a time or energy that is not above zero; the text says which.
    #[error("the study has a run of {0}: no profile can be fitted to it")]
    Impossible(String),
    /// The simulator cannot run a configuration of the study; the text says why.
    #[error("the simulator cannot run a configuration of the study: {0}")]
    Refused(String),
    /// The fit did not converge.
    #[error("no profile fits this study")]
    NoResult,
}
