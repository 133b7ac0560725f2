//! Reproductions: the published studies, run again on simulated GPUs and compared with the printed values.
//!
//! A reproduction uses ordinary sweeps with noise and the paper's repeats, comparisons and choices. Printed values are
//! read only for comparison and shown as printed; if a number contradicts others, a note in its row says so.

use crate::batch_sizer_2021::JobResult;
use crate::deviations::HeldOut;
use crate::figure::{FigureNotDrawn, PaperFigure};
use crate::forms::FORMS;
use crate::held_out::deviations_of;
use crate::origin::OriginCounts;
use crate::row::{Conclusion, CountedTolerance, ReproducedRow};
use crate::{
    PapersError, Profiles, SweepRunner, batch_sizer_2021, dvfs_2019, multi_gpu_2018,
    node_power_capping_2023, power_capping_2022,
};

/// A published study beside its reproduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Reproduction {
    /// The name of the paper on the command line.
    pub paper: &'static str,
    /// The authors, title and venue of the paper.
    pub source: &'static str,
    /// The sweeps that were run, and how many.
    pub runs: SweepRunner,
    /// The printed values beside the reproduced ones, in the order of the paper's tables.
    pub rows: Vec<ReproducedRow>,
    /// The rules that at least a given number of rows must be within a tolerance.
    pub counted_tolerances: Vec<CountedTolerance>,
    /// The conclusions of the paper, and whether the reproduction confirms them.
    pub conclusions: Vec<Conclusion>,
    /// The parts of the paper that cannot be reproduced, and why.
    pub not_reproduced: Vec<String>,
    /// The results of the jobs in batch_sizer_2021; empty for other papers.
    pub jobs: Vec<JobResult>,
    /// The figures of the paper, reproduced and as far as the paper prints their numbers.
    pub figures: Vec<PaperFigure>,
    /// The figures of the paper that are not drawn, and why.
    pub figures_not_drawn: Vec<FigureNotDrawn>,
    /// How the profiles were fitted to the paper; `None` if that is not stated.
    pub fit: Option<FitSummary>,
}

/// How the profiles of a study were fitted to its published values.
#[derive(Clone, Debug, PartialEq)]
pub struct FitSummary {
    /// The number of free parameters.
    pub free_parameters: usize,
    /// The number of these parameters that were not fitted but chosen by hand with the published values in view.
    pub by_hand: usize,
    /// The number of independent published values that they were fitted to.
    pub values: usize,
    /// The predictions of values that a fit did not use.
    pub held_out: Vec<HeldOut>,
    /// The number of fitted values for which no fits without a part of the study are stored.
    pub not_held_out: usize,
    /// The profiles that are not as they were fitted, because somebody has changed them.
    pub changed_profiles: Vec<String>,
    /// How far other forms of the study with fewer parameters are off.
    pub forms: Vec<FormSummary>,
}

/// Another form of a study: how many parameters it has, and how far it is off.
#[derive(Clone, Debug, PartialEq)]
pub struct FormSummary {
    /// The name of the form, by which `simulate --errors` shows it.
    pub name: &'static str,
    /// What is different in this form, in words.
    pub what: &'static str,
    /// The number of free parameters.
    pub free_parameters: usize,
    /// The number of these parameters that were chosen by hand with the published values in view.
    pub by_hand: usize,
    /// The values that the parameters were fitted to, or chosen with in view, beside the simulated ones.
    pub values: HeldOut,
    /// The predictions of values that a fit did not use.
    pub held_out: Vec<HeldOut>,
}

/// The other forms of a published study.
fn other_forms(study: &str, profiles: &Profiles) -> Result<Vec<FormSummary>, PapersError> {
    let mut forms = Vec::new();
    for form in FORMS.iter().filter(|form| form.study == study) {
        if let Some(compared) = deviations_of(form.name, profiles)? {
            forms.push(FormSummary {
                name: form.name,
                what: form.what,
                free_parameters: compared.free_parameters,
                by_hand: compared.by_hand,
                values: compared.fitted(),
                held_out: compared.held_out,
            });
        }
    }
    Ok(forms)
}

impl Reproduction {
    /// How many rows are within their tolerance, and how many rows must be. Rows without an own tolerance do not count.
    pub fn count_met(&self) -> (usize, usize) {
        let judged = self.rows.iter().filter(|row| row.must_hold());
        let judged: Vec<bool> = judged
            .map(|row| row.is_within_tolerance() == Some(true))
            .collect();
        (judged.iter().filter(|met| **met).count(), judged.len())
    }

    /// How many printed values of the paper are inputs, fitted or predicted; values of unknown origin do not count.
    pub fn count_origins(&self) -> OriginCounts {
        OriginCounts::of(self.rows.iter().map(|row| row.origin))
    }

    /// The conclusions of the paper that the reproduction contradicts.
    pub fn failed_conclusions(&self) -> impl Iterator<Item = &Conclusion> {
        let conclusions = self.conclusions.iter();
        conclusions.filter(|conclusion| conclusion.holds == Some(false))
    }

    /// Whether the reproduction confirms the paper: all tolerances are met and no conclusion fails.
    pub fn confirms_paper(&self) -> bool {
        self.is_within() && self.failed_conclusions().next().is_none()
    }

    /// Whether every row that must be within its tolerance is, and every rule on a number of rows is met.
    pub fn is_within(&self) -> bool {
        let (met, judged) = self.count_met();
        met == judged && self.counted_tolerances.iter().all(CountedTolerance::is_met)
    }
}

/// The names of the published studies on the command line.
pub fn papers() -> impl Iterator<Item = &'static str> {
    PAPERS.iter().map(|(name, _)| *name)
}

/// Reproduces a published study; `seed` determines the noise. `None` if there is no study with this name.
pub fn reproduce(
    paper: &str,
    seed: u64,
    threads: std::num::NonZeroUsize,
) -> Result<Option<Reproduction>, PapersError> {
    let paper = paper.replace('_', "-");
    let Some((_, run)) = PAPERS.iter().find(|(name, _)| *name == paper) else {
        return Ok(None);
    };
    let reproduction = run(&mut SweepRunner::new(seed, threads))?;
    let (study, profiles) = (paper.replace('-', "_"), Profiles::built_in()?);
    let compared = deviations_of(&study, &profiles)?;
    let forms = other_forms(&study, &profiles)?;
    let fit = compared.map(|compared| FitSummary {
        forms,
        by_hand: compared.by_hand,
        free_parameters: compared.free_parameters,
        values: compared.values,
        held_out: compared.held_out,
        not_held_out: compared.not_held_out,
        changed_profiles: compared.changed_profiles,
    });
    Ok(Some(Reproduction {
        fit,
        ..reproduction
    }))
}

/// A function that reproduces one published study.
type Reproduce = fn(&mut SweepRunner) -> Result<Reproduction, PapersError>;

/// Each paper's name and the function that reproduces it.
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
