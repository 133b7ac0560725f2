//! The measurements of a study that a profile is fitted to: one point for each successful configuration.

use sweetspot_device::{Descriptor, Settings};
use sweetspot_quantity::{Joules, Quantity, Ratio, Seconds, Watts};
use sweetspot_sim::{Mode, PhaseShare};
use sweetspot_stats::Summary;
use sweetspot_study::{Axis, BATCH_PARAMETER, Configuration, EnergyOf, Point, Status, Study};

use super::StudyFitError;

/// A configuration and the means of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPoint {
    /// The configuration in the study.
    pub configuration: Configuration,
    /// The settings that were in force. If the GPU enforced a lower cap than requested, this is the lower cap.
    pub settings: Settings,
    /// The batch size, from the study or assumed.
    pub batch: u64,
    /// The number of items in a run.
    pub items: u64,
    /// The mean time of a run.
    pub time: Seconds,
    /// The mean energy of a run.
    pub energy: Joules,
    /// The relative standard errors of time and energy.
    pub(super) relative_errors: [f64; 2],
}

/// The measurements of a study that a profile is fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredStudy {
    /// The GPU on which the study ran.
    pub device: Descriptor,
    /// The name of the workload.
    pub network: String,
    /// Whether the workload was training or inference.
    pub mode: Mode,
    /// A point for each successful configuration, in the study's order.
    pub points: Vec<MeasuredPoint>,
    /// The index of the reference in `points`; `None` if it did not succeed.
    pub reference: Option<usize>,
    /// The phases of an iteration and their shares; empty if the study has no phases.
    pub phases: Vec<PhaseShare>,
    /// The relative standard deviation from run to run; `None` if no configuration was repeated.
    pub noise: Option<Ratio>,
    /// The smallest batch size that ran out of memory, if any did.
    pub smallest_failed_batch: Option<u64>,
    /// Whether the study contains batch sizes; if not, they are assumed.
    pub batch_known: bool,
    /// The ranges of settings that the study measured, in words; outside them the profile extrapolates.
    pub explored: String,
    /// Warnings for the user about missing or excluded data.
    pub notes: Vec<String>,
}

/// The assumed time of an iteration if neither items nor batch sizes are known; no result depends on it.
const ASSUMED_ITERATION_S: f64 = 0.1;
/// The assumed relative error of a configuration with a single run.
const SINGLE_RUN_ERROR: f64 = 0.01;
/// The largest accepted number of items in a run; a billion items take years on any GPU.
const MAX_ITEMS: f64 = 1e9;
/// The number of characters to which names are shortened.
const MAX_NAME_CHARS: usize = 60;

/// Extracts the measurements of a study, or returns why no profile can be fitted to them.
pub fn measured_study(study: &Study) -> Result<MeasuredStudy, StudyFitError> {
    check_energy_of(study)?;
    let all = distinct_points(study);
    if all.iter().all(|point| point.runs.is_empty()) {
        return Err(StudyFitError::NoRuns);
    }
    let successful: Vec<&Point> = all
        .iter()
        .copied()
        .filter(|point| succeeded(point))
        .collect();
    if successful.is_empty() {
        let failures = all.iter().filter_map(|point| point.failure());
        let reason = failures.map(|failure| failure.reason.clone()).next();
        return Err(StudyFitError::AllFailed(reason.unwrap_or_default()));
    }
    let mut notes = Vec::new();
    let on_one_gpu: Vec<&Point> = successful
        .iter()
        .copied()
        .filter(|point| is_on_one_gpu(point))
        .collect();
    if on_one_gpu.is_empty() {
        return Err(StudyFitError::SeveralGpus(successful[0].configuration.gpus));
    }
    check_parameters(study, &on_one_gpu)?;
    let left_out = |count: usize, why: &str| match count {
        0 => None,
        1 => Some(format!("1 configuration {why} is left out")),
        _ => Some(format!("{count} configurations {why} are left out")),
    };
    let run = all.iter().filter(|point| !point.runs.is_empty()).count();
    notes.extend(left_out(all.len() - run, "without runs"));
    notes.extend(left_out(run - successful.len(), "that failed"));
    notes.extend(left_out(
        successful.len() - on_one_gpu.len(),
        "on several GPUs",
    ));
    let with_energy: Vec<&Point> = on_one_gpu
        .into_iter()
        .filter(|point| point.energy().is_some())
        .collect();
    if with_energy.is_empty() {
        return Err(StudyFitError::NoEnergies(study.energy_of().to_string()));
    }
    if with_energy.len() < 2 {
        return Err(StudyFitError::OneConfiguration);
    }
    let (points, batch_known) = measured_points(study, &with_energy, &mut notes)?;
    let workload = &study.subject.workload;
    let reference = |point: &&Point| point.configuration == study.reference.configuration;
    Ok(MeasuredStudy {
        device: study.device().clone(),
        network: shortened_name(workload.network.as_ref().unwrap_or(&workload.name)),
        mode: match workload.mode.as_deref() {
            Some("inference") => Mode::Infer,
            _ => Mode::Train,
        },
        reference: with_energy.iter().position(reference),
        phases: phases(&with_energy),
        noise: noise(&with_energy),
        smallest_failed_batch: smallest_failed_batch(&all),
        batch_known,
        explored: explored(&points),
        points,
        notes,
    })
}

/// Checks that the study counts the energy of one GPU.
fn check_energy_of(study: &Study) -> Result<(), StudyFitError> {
    let several = study.subject.devices.len() > 1;
    match study.energy_of() {
        EnergyOf::Node => Err(StudyFitError::EnergyOf("a whole node".to_owned())),
        EnergyOf::AllGpus if several => {
            Err(StudyFitError::EnergyOf("all GPUs of a machine".to_owned()))
        }
        _ => Ok(()),
    }
}

/// The points of the study and its reference, without duplicates.
fn distinct_points(study: &Study) -> Vec<&Point> {
    let mut all: Vec<&Point> = Vec::new();
    for point in study.points.iter().chain([&study.reference]) {
        if !all
            .iter()
            .any(|other| other.configuration == point.configuration)
        {
            all.push(point);
        }
    }
    all
}

/// Whether the point has a successful run.
fn succeeded(point: &Point) -> bool {
    point.status() == Status::Ok && !point.runs.is_empty()
}

/// Whether the point's runs used one GPU.
fn is_on_one_gpu(point: &Point) -> bool {
    point.configuration.gpus == 1
}

/// Checks that the study varies no parameter but the batch size.
fn check_parameters(study: &Study, points: &[&Point]) -> Result<(), StudyFitError> {
    for axis in &study.plan.axes {
        let Axis::Parameter(name) = axis else {
            continue;
        };
        let first = axis.text(&points[0].configuration);
        let differs = |point: &&Point| axis.text(&point.configuration) != first;
        if name != BATCH_PARAMETER && points.iter().any(differs) {
            return Err(StudyFitError::Parameter(name.clone()));
        }
    }
    Ok(())
}

/// Computes the means of each point; assumes items and batch sizes if the study does not contain them. Also returns
/// whether the study contains batch sizes.
fn measured_points(
    study: &Study,
    points: &[&Point],
    notes: &mut Vec<String>,
) -> Result<(Vec<MeasuredPoint>, bool), StudyFitError> {
    let of = |summary: Option<Summary>, what: &str, unit: &str| match summary {
        Some(summary) if summary.mean.is_finite() && summary.mean > 0.0 => Ok(summary),
        summary => Err(StudyFitError::Impossible(match summary {
            Some(summary) => format!("{} {unit}", summary.mean),
            None => format!("no {what}"),
        })),
    };
    let batches = batch_sizes(study, points)?;
    let mut measured = Vec::new();
    for (point, batch) in points.iter().zip(&batches) {
        let time = of(point.time(), "time", "s")?;
        let energy = of(point.energy(), "energy", "J")?;
        let items = mean_items(point).filter(|items| (1.0..=MAX_ITEMS).contains(items));
        measured.push((point, *batch, items, time, energy));
    }
    let shortest = measured
        .iter()
        .map(|(.., time, _)| time.mean)
        .fold(f64::INFINITY, f64::min);
    let largest = batches.iter().flatten().copied().max();
    let items_known = measured.iter().all(|(_, _, items, ..)| items.is_some());
    let assumed_items =
        (shortest / ASSUMED_ITERATION_S).round().max(1.0) * largest.unwrap_or(1) as f64;
    if !items_known {
        notes.push("the study has no progress: every run is assumed to do the same work, and an item is a small part of it".to_owned());
    }
    let rate = measured
        .iter()
        .map(|(_, _, items, time, _)| items.unwrap_or(assumed_items) / time.mean)
        .fold(0.0, f64::max);
    let usual_batch = largest.unwrap_or_else(|| match items_known {
        true => (rate * ASSUMED_ITERATION_S).round().max(1.0) as u64,
        false => 1,
    });
    if largest.is_none() && items_known {
        notes.push(format!(
            "the study has no batch sizes: {usual_batch} is assumed, and predictions for other batch sizes are unreliable"
        ));
    }
    let all = measured
        .into_iter()
        .map(|(point, batch, items, time, energy)| {
            let items = items.filter(|_| items_known).unwrap_or(assumed_items);
            MeasuredPoint {
                configuration: point.configuration.clone(),
                settings: enforced_settings(point),
                batch: batch.unwrap_or(usual_batch),
                items: items.round().clamp(1.0, MAX_ITEMS) as u64,
                time: Seconds::new(time.mean),
                energy: Joules::new(energy.mean),
                relative_errors: [standard_error(&time), standard_error(&energy)],
            }
        });
    Ok((all.collect(), largest.is_some()))
}

/// The batch size of each point; `None` for a point whose batch size is unknown.
fn batch_sizes(study: &Study, points: &[&Point]) -> Result<Vec<Option<u64>>, StudyFitError> {
    let mut batches = Vec::new();
    for point in points {
        let text = point.configuration.parameters.get(BATCH_PARAMETER);
        let batch = point.configuration.batch().or(study.subject.workload.batch);
        match (text, batch.filter(|batch| *batch > 0)) {
            (Some(text), None) => return Err(StudyFitError::Batch(text.clone())),
            (_, batch) => batches.push(batch),
        }
    }
    Ok(batches)
}

/// The settings of a point, with the lowest power cap that was in force.
fn enforced_settings(point: &Point) -> Settings {
    let mut settings = point.configuration.settings(0);
    let reduced = point.reduced_caps();
    let enforced = reduced.iter().map(|cap| cap.enforced).reduce(Watts::min);
    if let (Some(cap), Some(enforced)) = (settings.power_cap, enforced) {
        settings.power_cap = Some(cap.min(enforced));
    }
    settings
}

/// The range of each knob that was varied, such as `power caps from 150 W to 300 W`.
fn explored(points: &[MeasuredPoint]) -> String {
    /// The range of a knob as text; `None` if the knob was not varied.
    fn span<Q: Quantity + std::fmt::Display>(
        what: &str,
        values: impl Iterator<Item = Option<Q>>,
    ) -> Option<String> {
        let mut values: Vec<Q> = values.flatten().collect();
        values.sort_by(|a, b| a.base().total_cmp(&b.base()));
        let (first, last) = (*values.first()?, *values.last()?);
        (first < last).then(|| format!("{what} from {first} to {last}"))
    }
    let settings = || points.iter().map(|point| point.settings);
    let mut batches: Vec<u64> = points.iter().map(|point| point.batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let spans = [
        span("power caps", settings().map(|set| set.power_cap)),
        span("core clocks", settings().map(|set| set.core_clock)),
        span("memory clocks", settings().map(|set| set.memory_clock)),
        match batches.as_slice() {
            [first, .., last] => Some(format!("batch sizes from {first} to {last}")),
            _ => None,
        },
    ];
    let spans: Vec<String> = spans.into_iter().flatten().collect();
    spans.join(", ")
}

/// The mean number of items of a point's runs; `None` if it is unknown.
fn mean_items(point: &Point) -> Option<f64> {
    let items: Option<Vec<f64>> = point.results().map(|run| run.items).collect();
    Some(Summary::of(&items?)?.mean)
}

/// The relative standard error of a mean.
fn standard_error(summary: &Summary) -> f64 {
    match summary.deviation {
        Some(sd) => sd / summary.mean / (summary.count as f64).sqrt(),
        None => SINGLE_RUN_ERROR,
    }
}

/// The relative standard deviation from run to run, pooled over the configurations.
fn noise(points: &[&Point]) -> Option<Ratio> {
    let spreads: Vec<f64> = points
        .iter()
        .filter_map(|point| {
            let time = point.time()?;
            Some((time.deviation? / time.mean).powi(2))
        })
        .collect();
    let mean = Summary::of(&spreads)?.mean;
    Some(Ratio::new(mean.sqrt().min(0.2)))
}

/// The smallest batch size that ran out of memory; `None` if none did.
fn smallest_failed_batch(points: &[&Point]) -> Option<u64> {
    let failed = points
        .iter()
        .filter(|point| point.status() == Status::OutOfMemory);
    failed.filter_map(|point| point.configuration.batch()).min()
}

/// The phases and their shares of the time, from the first point that has phases. Phases in which the GPU waits are
/// left out, because the simulator adds them itself.
fn phases(points: &[&Point]) -> Vec<PhaseShare> {
    let found = points
        .iter()
        .map(|point| point.phases())
        .find(|phases| !phases.is_empty());
    let own = ["host", "startup", "wait", "exchange"];
    let mut kept: Vec<(String, f64)> = Vec::new();
    for phase in found.unwrap_or_default() {
        let text = shortened_name(&phase.name);
        let usable = !own.contains(&text.as_str()) && phase.time > Seconds::ZERO;
        if usable && !kept.iter().any(|(other, _)| *other == text) {
            kept.push((text, phase.time.get()));
        }
    }
    let sum: f64 = kept.iter().map(|(_, time)| time).sum();
    let shares = kept.into_iter().map(|(name, time)| PhaseShare {
        name,
        core: Ratio::new((time / sum * 1e4).round() / 1e4),
        memory: Ratio::new((time / sum * 1e4).round() / 1e4),
        switching: Ratio::new(1.0),
    });
    shares.collect()
}

/// Shortens a name and removes line breaks.
fn shortened_name(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(plain).collect();
    let text = text.trim();
    if text.is_empty() {
        return "workload".to_owned();
    }
    match text.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => format!("{}...", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
