//! Why a request of the user could not be carried out.

use sweetspot_virtual_time::SimulationError;
use sweetspot_workload::WorkloadError;

use crate::budget::BudgetError;
use crate::calibrate::CalibrateError;
use crate::hold::HoldError;
use crate::host::DevicesError;
use crate::measure::MeasureError;
use crate::sweep::{SlurmError, SweepError};
use crate::tune::TuneError;

/// Why a request of the user could not be carried out, grouped by subcommand.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The devices cannot be used as requested.
    #[error(transparent)]
    Devices(#[from] DevicesError),
    /// The command cannot be run, or its devices cannot be leased.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The command cannot be measured.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// The sweep cannot begin or go on.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// The study cannot run on Slurm.
    #[error(transparent)]
    Slurm(#[from] SlurmError),
    /// The command cannot be tuned.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// `hold` cannot keep the power below the cap.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// `budget` cannot keep the budget.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// A sensor cannot be calibrated, or a calibration cannot be applied.
    #[error(transparent)]
    Calibrate(#[from] CalibrateError),
    /// A power meter cannot be used.
    #[error(transparent)]
    Meter(#[from] sweetspot_hosts::MeterError),
    /// The simulation cannot be run.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The operating system refused an operation.
    #[error("{what}: {problem}")]
    System {
        /// What failed, in words for the user.
        what: &'static str,
        /// The operating system's error.
        problem: std::io::Error,
    },
}

impl SessionError {
    /// The signal, if a signal ended the work before anything was measured.
    pub fn interrupted(&self) -> Option<i32> {
        match self {
            Self::Workload(WorkloadError::Interrupted(signal)) => Some(*signal),
            _ => None,
        }
    }

    /// If another guard process has restored all devices after the first one died, replaces the error by one
    /// that says so.
    pub(crate) fn after_release(self, restored: &Result<bool, WorkloadError>) -> Self {
        match self {
            Self::Workload(problem) => Self::Workload(problem.after_release(restored)),
            other => other,
        }
    }

    /// Converts an error of the operating system; `what` describes the failed operation.
    pub(crate) fn system(what: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |problem| Self::System { what, problem }
    }
}

/// Lets `?` turn the errors of other crates into the variant of [`SessionError`] that they belong to.
macro_rules! from_through {
    ($($source:ty => $group:ty),* $(,)?) => {
        $(impl From<$source> for SessionError {
            fn from(error: $source) -> Self {
                <$group>::from(error).into()
            }
        })*
    };
}

from_through! {
    sweetspot_device::HostError => DevicesError,
    sweetspot_device::OpenError => DevicesError,
    sweetspot_guard::GuardError => WorkloadError,
    sweetspot_guard::JournalError => WorkloadError,
    sweetspot_measure::SamplerError => MeasureError,
    sweetspot_study::StudyError => SweepError,
    sweetspot_study::TemplateError => SweepError,
    sweetspot_control::tune::TuneSpaceError => TuneError,
    sweetspot_control::hold::HoldConfigError => HoldError,
}

/// Lets `?` turn the errors of a study into [`SessionError::Sweep`].
macro_rules! from_study {
    ($($source:ty),*) => {
        $(impl From<$source> for SessionError {
            fn from(error: $source) -> Self {
                sweetspot_study::StudyError::from(error).into()
            }
        })*
    };
}

from_study!(
    sweetspot_study::AxesError,
    sweetspot_study::DefinitionError,
    sweetspot_study::ReferenceFailed,
    sweetspot_study::SearchError,
    sweetspot_study::StoreError
);
