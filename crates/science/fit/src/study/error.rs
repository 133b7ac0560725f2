//! Why no profile could be fitted to a study.

/// A study that no profile can be fitted to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StudyFitError {
    /// Energy at the wall, or of GPUs that idle.
    #[error(
        "the study counts the energy of {0}, and a profile is of one GPU: take that of the job's with --energy-of job-gpus"
    )]
    EnergyOf(String),
    /// Nothing was run.
    #[error("the study has no runs yet: `sweetspot sweep --resume` goes on with it")]
    NoRuns,
    /// Nothing ended well.
    #[error("no run of the study ended well, so there is nothing to fit to: {0}")]
    AllFailed(String),
    /// Times only.
    #[error(
        "the study has no energies of {0}: without them there is no telling what the GPU draws"
    )]
    NoEnergies(String),
    /// Every run was on several GPUs.
    #[error(
        "every run of the study was on {0} GPUs: a profile is fitted to runs on one (--gpus 1)"
    )]
    SeveralGpus(u64),
    /// A parameter that the simulator does not have.
    #[error(
        "the study varies {0}, which the simulator's model does not have: it has power caps, core and memory clocks and batch sizes; sweep those with one {0}"
    )]
    Parameter(String),
    /// A batch size that is none.
    #[error("the study has a batch size that is no number of items: `{0}`")]
    Batch(String),
    /// Nothing to compare.
    #[error(
        "the study has one configuration only that ended well: at least two are needed, with different caps, clocks or batch sizes"
    )]
    OneConfiguration,
    /// Times or energies that cannot be.
    #[error("the study has a run of {0}: no profile can be fitted to that")]
    Impossible(String),
    /// The simulator refuses it.
    #[error("the simulator cannot run what the study ran: {0}")]
    Refused(String),
    /// The least squares went nowhere.
    #[error("no profile comes near this study")]
    NoResult,
}
