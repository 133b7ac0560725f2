//! The plans of published studies for the user's own GPUs and program, and the comparison of what came out.
//!
//! A plan is that of the paper: its settings, its repeats, its numbers of GPUs, its metrics. Where the user's GPU has another
//! range than the paper's, power caps are at the same share of the range from the lowest to the default one, and core clocks
//! at the same share of the default one. Every change is against the default settings of the same GPU, so that published,
//! simulated and measured values can stand side by side although the work is another.

mod compare;
mod papers;
mod plan;
mod published;
mod simulated;

pub use compare::{OwnBest, OwnComparison, OwnRow, compare_own};
pub use plan::{OwnPlan, OwnPlanError, PlanOptions, plan_for};

use papers::{PaperPlan, Swept, find_paper};

/// What a study of the user reproduces: a paper, one of its networks and one of its GPUs. Its text is stored with the study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnOrigin {
    /// The name of the paper on the command line.
    pub paper: String,
    /// The network of the paper that is compared with.
    pub network: String,
    /// The profile of the paper's GPU that is compared with.
    pub gpu: String,
}

impl std::fmt::Display for OwnOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.paper, self.network, self.gpu)
    }
}

impl std::str::FromStr for OwnOrigin {
    type Err = OwnPlanError;

    fn from_str(text: &str) -> Result<Self, OwnPlanError> {
        let mut parts = text.split(':').map(str::to_owned);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(paper), Some(network), Some(gpu), None) => Ok(Self {
                paper,
                network,
                gpu,
            }),
            _ => Err(OwnPlanError::BadOrigin(text.to_owned())),
        }
    }
}

/// A change against the reference, as a fraction: -0.2 is a fifth less.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnChange {
    /// The change of the time; `None` if it is unknown.
    pub time: Option<f64>,
    /// The change of the energy; `None` if it is unknown.
    pub energy: Option<f64>,
}
