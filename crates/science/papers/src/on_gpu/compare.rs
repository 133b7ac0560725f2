//! Published, simulated and measured values side by side.

use std::num::NonZeroUsize;

use sweetspot_decide::{Objective, Outcome, Tariff};
use sweetspot_study::{Configuration, Study};

use super::plan::{CapScale, cap_range, caps_of, core_clocks};
use super::published::{self, Printed};
use super::{OwnChange, OwnOrigin, OwnPlanError, PaperPlan, Swept, find_paper, simulated};
use crate::{PapersError, Profiles, SweepRunner};

/// A study of the user beside the paper that it reproduces.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnComparison {
    /// What is reproduced.
    pub origin: OwnOrigin,
    /// The citation of the paper.
    pub source: &'static str,
    /// The quantity that was varied: `power_cap_w`, `core_clock_mhz` or `batch`.
    pub quantity: &'static str,
    /// Every setting of the study.
    pub rows: Vec<OwnRow>,
    /// The best setting by each metric of the paper.
    pub best: Vec<OwnBest>,
    /// The profiles of the paper's study that are not as they were fitted, because somebody has changed them. The
    /// simulated values come from the profiles as they are.
    pub changed_profiles: Vec<String>,
}

/// One setting of the study, and what it changed against the reference of each column.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnRow {
    /// The number of GPUs of the job.
    pub gpus: u64,
    /// The setting of the paper's GPU.
    pub paper_value: f64,
    /// The setting of the user's GPU.
    pub own_value: f64,
    /// What the paper prints; `None` if it prints nothing for this setting.
    pub published: Option<OwnChange>,
    /// What the simulated GPU of the paper does.
    pub simulated: Option<OwnChange>,
    /// What the user's GPU did; `None` if a run failed.
    pub measured: Option<OwnChange>,
}

/// The best setting by one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnBest {
    /// The number of GPUs of the job.
    pub gpus: u64,
    /// The metric.
    pub metric: Objective,
    /// The best setting of the paper's GPU as printed, and its gain as a fraction. Some settings are not printed.
    pub published: Option<(Option<f64>, f64)>,
    /// The best setting of the simulated GPU, and its gain.
    pub simulated: Option<(f64, f64)>,
    /// The best setting of the user's GPU, and its gain.
    pub measured: Option<(f64, f64)>,
}

/// The mean time and energy at one setting, whose value is on the paper's scale.
struct Sample {
    gpus: u64,
    value: f64,
    own: f64,
    outcome: Outcome,
}

/// Compares a study of the user with the paper that it reproduces. The simulated values follow from `seed`.
pub fn compare_own(
    origin: &OwnOrigin,
    study: &Study,
    seed: u64,
    threads: NonZeroUsize,
) -> Result<OwnComparison, PapersError> {
    let plan = find_paper(&origin.paper).ok_or_else(|| OwnPlanError::NoPlan {
        name: origin.paper.clone(),
    })?;
    let swept = plan
        .swept(&origin.gpu)
        .ok_or_else(|| OwnPlanError::BadOrigin(origin.to_string()))?;
    let measured = measured_samples(&plan, origin, swept, study);
    let mut counts: Vec<u64> = measured.iter().map(|sample| sample.gpus).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut runner = SweepRunner::new(seed, threads);
    let mut simulated = Vec::new();
    for study in simulated::sweep(&mut runner, &plan, origin, &counts, study.energy_of())? {
        simulated.extend(samples(&study, |configuration| {
            value_of(swept, configuration)
        }));
    }
    let printed = published::read(origin)?;
    let reference = |gpus: u64| reference_of(swept, gpus);
    let rows = measured.iter().map(|sample| OwnRow {
        gpus: sample.gpus,
        paper_value: sample.value,
        own_value: sample.own,
        published: printed_at(&printed, sample.gpus, sample.value),
        simulated: nearest(&simulated, sample.gpus, sample.value).and_then(|here| {
            let (gpus, value) = reference(sample.gpus);
            change(here, nearest(&simulated, gpus, value)?)
        }),
        measured: {
            let (gpus, value) = reference(sample.gpus);
            nearest(&measured, gpus, value).and_then(|base| change(sample, base))
        },
    });
    let rows = rows.collect();
    let best = best_rows(&plan, swept, &counts, (&printed, &simulated, &measured));
    Ok(OwnComparison {
        origin: origin.clone(),
        source: plan.source,
        quantity: match swept {
            Swept::PowerCap(_) => "power_cap_w",
            Swept::CoreClock(..) => "core_clock_mhz",
            Swept::Batch(_) => "batch",
        },
        rows,
        best,
        changed_profiles: Profiles::built_in()?.changed(plan.study)?,
    })
}

/// The best setting by each metric and number of GPUs.
fn best_rows(
    plan: &PaperPlan,
    swept: &Swept,
    counts: &[u64],
    (printed, simulated, measured): (&Printed, &[Sample], &[Sample]),
) -> Vec<OwnBest> {
    let mut best = Vec::new();
    for gpus in counts {
        for metric in &plan.metrics {
            let found = printed
                .best
                .iter()
                .find(|one| one.gpus == *gpus && one.metric == *metric);
            best.push(OwnBest {
                gpus: *gpus,
                metric: *metric,
                published: found.map(|one| (one.value, one.gain)),
                simulated: best_of(swept, simulated, *gpus, *metric)
                    .map(|(one, gain)| (one.value, gain)),
                measured: best_of(swept, measured, *gpus, *metric)
                    .map(|(one, gain)| (one.own, gain)),
            });
        }
    }
    best
}

/// The number of GPUs and the setting that a setting is compared with: the default one of the same GPUs, or one GPU with the
/// smallest batch.
fn reference_of(swept: &Swept, gpus: u64) -> (u64, f64) {
    match swept {
        Swept::PowerCap(caps) => (gpus, caps.last().copied().unwrap_or_default()),
        Swept::CoreClock(_, default) => (gpus, *default),
        Swept::Batch(batches) => (1, batches.first().map_or(0.0, |batch| *batch as f64)),
    }
}

/// The setting of a configuration.
fn value_of(swept: &Swept, configuration: &Configuration) -> Option<f64> {
    match swept {
        Swept::PowerCap(_) => configuration.power_caps.first().map(|cap| cap.get()),
        Swept::CoreClock(..) => configuration.core_clock.map(|clock| clock.get()),
        Swept::Batch(_) => configuration.batch().map(|batch| batch as f64),
    }
}

/// The mean of each configuration of a study; `scale` gives its setting on the paper's scale.
fn samples(study: &Study, scale: impl Fn(&Configuration) -> Option<f64>) -> Vec<Sample> {
    let comparison = study.comparison(&Tariff::NONE);
    let points = study.points.iter().enumerate();
    let sample = |(index, point): (usize, &sweetspot_study::Point)| {
        let value = scale(&point.configuration)?;
        Some(Sample {
            gpus: point.configuration.gpus,
            value,
            own: value,
            outcome: comparison.mean(index)?.clone(),
        })
    };
    points.filter_map(sample).collect()
}

/// The settings of the user's study, on the paper's scale.
fn measured_samples(
    plan: &PaperPlan,
    origin: &OwnOrigin,
    swept: &Swept,
    study: &Study,
) -> Vec<Sample> {
    let device = study.device();
    let caps = cap_range(device).map(|own| CapScale::new(caps_of(plan, &origin.gpu), own));
    let default = core_clocks(device).map(|clocks| clocks.default);
    let to_paper = |own: f64| match swept {
        Swept::PowerCap(_) => Some(caps?.to_paper(own)),
        Swept::CoreClock(_, paper) => Some(own / default? * paper),
        Swept::Batch(_) => Some(own),
    };
    let mut found = samples(study, |configuration| value_of(swept, configuration));
    found.retain_mut(|sample| match to_paper(sample.own) {
        Some(value) => {
            sample.value = value;
            true
        }
        None => false,
    });
    found.sort_by(|a, b| a.gpus.cmp(&b.gpus).then(a.value.total_cmp(&b.value)));
    found
}

/// Settings count as the same if they differ by at most this share. Caps are rounded to whole watts, and clocks are levels.
const SAME_SHARE: f64 = 0.02;

/// The sample whose setting is nearest; `None` if none is near.
fn nearest(samples: &[Sample], gpus: u64, value: f64) -> Option<&Sample> {
    let own = samples.iter().filter(|sample| sample.gpus == gpus);
    let nearest = own.min_by(|a, b| (a.value - value).abs().total_cmp(&(b.value - value).abs()))?;
    ((nearest.value - value).abs() <= SAME_SHARE * value).then_some(nearest)
}

/// The printed change at a setting.
fn printed_at(printed: &Printed, gpus: u64, value: f64) -> Option<OwnChange> {
    let own = printed.points.iter().filter(|point| point.gpus == gpus);
    let near = |point: &&published::PrintedPoint| (point.value - value).abs() <= 0.01 * value;
    own.filter(near).map(|point| point.change).next()
}

/// The change of time and energy from a reference.
fn change(here: &Sample, base: &Sample) -> Option<OwnChange> {
    let ratio = |here: f64, base: f64| (base > 0.0).then(|| here / base - 1.0);
    let energy = here.outcome.energy.zip(base.outcome.energy);
    Some(OwnChange {
        time: ratio(here.outcome.time.get(), base.outcome.time.get()),
        energy: energy.and_then(|(here, base)| ratio(here.get(), base.get())),
    })
}

/// The sample with the best value of a metric among those with this number of GPUs, and its gain over the reference.
fn best_of<'a>(
    swept: &Swept,
    samples: &'a [Sample],
    gpus: u64,
    metric: Objective,
) -> Option<(&'a Sample, f64)> {
    let (base_gpus, base) = reference_of(swept, gpus);
    let base = nearest(samples, base_gpus, base)?;
    let value = |sample: &Sample| metric.value(&sample.outcome, &base.outcome).ok();
    let of_base = value(base)?;
    let gain = |sample: &'a Sample| {
        let own = value(sample)?;
        // The metric of gain and loss is a gain already, and is largest at the best setting.
        let gain = match metric {
            Objective::GainMinusLoss => own,
            _ => 1.0 - own / of_base,
        };
        Some((sample, gain))
    };
    let own = samples.iter().filter(|sample| sample.gpus == gpus);
    own.filter_map(gain).max_by(|a, b| a.1.total_cmp(&b.1))
}
