//! `reproduce`: a published study, run again on simulated GPUs, beside what was printed.
//!
//! A study goes the ordinary way: definitions, sweeps with their noise and the paper's repeats, comparisons
//! and choices. What was printed is read only to be compared with, and is shown as it was printed: where a
//! number does not follow from its neighbours, a note at its row says so.

use crate::batch_sizer_2021::JobResult;
use crate::row::{Conclusion, Counted, ReproducedRow};
use crate::{
    PapersError, Runs, batch_sizer_2021, dvfs_2019, multi_gpu_2018, node_power_capping_2023,
    power_capping_2022,
};

/// A published study beside its reproduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Reproduction {
    /// Its name, as the command takes it.
    pub paper: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// What was run.
    pub runs: Runs,
    /// Value by value, in the order of the paper's tables.
    pub rows: Vec<ReproducedRow>,
    /// Tolerances that so many of the rows must keep.
    pub counted: Vec<Counted>,
    /// What the paper concludes.
    pub conclusions: Vec<Conclusion>,
    /// What cannot be reproduced yet, and for want of what.
    pub waits: Vec<String>,
    /// The jobs of batch_sizer_2021.
    pub jobs: Vec<JobResult>,
}

impl Reproduction {
    /// Rows that are judged one by one, and how many of them are near enough.
    pub fn met(&self) -> (usize, usize) {
        let judged = self.rows.iter().filter(|row| row.must_hold());
        let judged: Vec<bool> = judged.map(|row| row.within() == Some(true)).collect();
        (judged.iter().filter(|met| **met).count(), judged.len())
    }

    /// Whether every tolerance is kept.
    pub fn is_within(&self) -> bool {
        let (met, judged) = self.met();
        met == judged && self.counted.iter().all(Counted::is_met)
    }
}

/// The names of the published studies.
pub fn papers() -> impl Iterator<Item = &'static str> {
    PAPERS.iter().map(|(name, _)| *name)
}

/// Runs a published study again, with this seed, and compares; nothing where there is none of this name.
pub fn reproduce(
    paper: &str,
    seed: u64,
    threads: std::num::NonZeroUsize,
) -> Result<Option<Reproduction>, PapersError> {
    let paper = paper.replace('_', "-");
    let found = PAPERS.iter().find(|(name, _)| *name == paper);
    found
        .map(|(_, reproduce)| reproduce(&mut Runs::new(seed, threads)))
        .transpose()
}

type Reproduce = fn(&mut Runs) -> Result<Reproduction, PapersError>;

const PAPERS: [(&str, Reproduce); 5] = [
    (power_capping_2022::PAPER, power_capping_2022::reproduce),
    (dvfs_2019::PAPER, dvfs_2019::reproduce),
    (multi_gpu_2018::PAPER, multi_gpu_2018::reproduce),
    (batch_sizer_2021::PAPER, batch_sizer_2021::reproduce),
    (
        node_power_capping_2023::PAPER,
        node_power_capping_2023::reproduce,
    ),
];
