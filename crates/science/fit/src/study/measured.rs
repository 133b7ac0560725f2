//! What a study says about its GPU and workload: one point for each configuration that ended well.

use sweetspot_device::{Descriptor, Settings};
use sweetspot_quantity::{Joules, Quantity, Ratio, Seconds};
use sweetspot_sim::{Mode, PhaseShare};
use sweetspot_stats::Summary;
use sweetspot_study::{Axis, BATCH_PARAMETER, Configuration, EnergyOf, Point, Status, Study};

use super::StudyFitError;

/// A configuration and the means of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPoint {
    /// As the study has it.
    pub configuration: Configuration,
    /// What was in force: a cap that the board enforced only in part is the lower one.
    pub settings: Settings,
    /// Items in a batch.
    pub batch: u64,
    /// Items in a run.
    pub items: u64,
    /// Of a run.
    pub time: Seconds,
    /// Of a run.
    pub energy: Joules,
    /// How well both are known: standard errors against the means.
    pub(super) known: [f64; 2],
}

/// A study as a fit sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredStudy {
    /// The GPU.
    pub device: Descriptor,
    /// The workload's name.
    pub network: String,
    /// What was done with it.
    pub mode: Mode,
    /// One for each configuration, the study's order.
    pub points: Vec<MeasuredPoint>,
    /// Which of them all others are compared with, where it ended well.
    pub reference: Option<usize>,
    /// How an iteration divides, where the study tells.
    pub phases: Vec<PhaseShare>,
    /// From run to run, where there were several of a configuration.
    pub noise: Option<Ratio>,
    /// The smallest batch that did not fit the GPU's memory.
    pub too_large: Option<u64>,
    /// Whether the batch size is the study's own and not made up.
    pub batch_known: bool,
    /// What was tried, in words; beyond it the profile is physics alone.
    pub tried: String,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Where neither items nor batches are known, an iteration takes about so long; nothing depends on it.
const ITERATION: f64 = 0.1;
/// A single run tells nothing of how well it is known.
const SINGLE: f64 = 0.01;
/// A billion items take years on any GPU.
const MOST_ITEMS: f64 = 1e9;
/// Longer names are of no use.
const NAME: usize = 60;

/// The study's points, or why they are none to fit to.
pub fn measured_study(study: &Study) -> Result<MeasuredStudy, StudyFitError> {
    whose_energy(study)?;
    let all = different(study);
    if all.iter().all(|point| point.runs.is_empty()) {
        return Err(StudyFitError::NoRuns);
    }
    let well: Vec<&Point> = all
        .iter()
        .copied()
        .filter(|point| ended_well(point))
        .collect();
    if well.is_empty() {
        let failures = all.iter().filter_map(|point| point.failure());
        let reason = failures.map(|failure| failure.reason.clone()).next();
        return Err(StudyFitError::AllFailed(reason.unwrap_or_default()));
    }
    let mut notes = Vec::new();
    let alone: Vec<&Point> = well.iter().copied().filter(|point| on_one(point)).collect();
    if alone.is_empty() {
        return Err(StudyFitError::SeveralGpus(well[0].configuration.gpus));
    }
    varied(study, &alone)?;
    let left = |count: usize, why: &str| match count {
        0 => None,
        1 => Some(format!("1 configuration {why} is left out")),
        _ => Some(format!("{count} configurations {why} are left out")),
    };
    let run = all.iter().filter(|point| !point.runs.is_empty()).count();
    notes.extend(left(all.len() - run, "without runs"));
    notes.extend(left(run - well.len(), "that failed"));
    notes.extend(left(well.len() - alone.len(), "on several GPUs"));
    let with_energy: Vec<&Point> = alone
        .into_iter()
        .filter(|point| point.energy().is_some())
        .collect();
    if with_energy.is_empty() {
        return Err(StudyFitError::NoEnergies(study.energy_of().to_string()));
    }
    if with_energy.len() < 2 {
        return Err(StudyFitError::OneConfiguration);
    }
    let (points, batch_known) = points(study, &with_energy, &mut notes)?;
    let workload = &study.subject.workload;
    let reference = |point: &&Point| point.configuration == study.reference.configuration;
    Ok(MeasuredStudy {
        device: study.device().clone(),
        network: name(workload.network.as_ref().unwrap_or(&workload.name)),
        mode: match workload.mode.as_deref() {
            Some("inference") => Mode::Infer,
            _ => Mode::Train,
        },
        reference: with_energy.iter().position(reference),
        phases: phases(&with_energy),
        noise: noise(&with_energy),
        too_large: too_large(&all),
        batch_known,
        tried: tried(&points),
        points,
        notes,
    })
}

fn whose_energy(study: &Study) -> Result<(), StudyFitError> {
    let several = study.subject.devices.len() > 1;
    match study.energy_of() {
        EnergyOf::Node => Err(StudyFitError::EnergyOf("a whole node".to_owned())),
        EnergyOf::AllGpus if several => {
            Err(StudyFitError::EnergyOf("all GPUs of a machine".to_owned()))
        }
        _ => Ok(()),
    }
}

/// The points and the reference, each once.
fn different(study: &Study) -> Vec<&Point> {
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

fn ended_well(point: &Point) -> bool {
    point.status() == Status::Ok && !point.runs.is_empty()
}

fn on_one(point: &Point) -> bool {
    point.configuration.gpus == 1
}

/// Refuses what the model cannot follow.
fn varied(study: &Study, points: &[&Point]) -> Result<(), StudyFitError> {
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

/// Means of each, with items and batches made up where the study does not know them; and whether its batch
/// sizes are its own.
fn points(
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
    let mut batches = Vec::new();
    for point in points {
        let text = point.configuration.parameters.get(BATCH_PARAMETER);
        let batch = point.configuration.batch().or(study.subject.workload.batch);
        match (text, batch.filter(|batch| *batch > 0)) {
            (Some(text), None) => return Err(StudyFitError::Batch(text.clone())),
            (_, batch) => batches.push(batch),
        }
    }
    let mut measured = Vec::new();
    for (point, batch) in points.iter().zip(&batches) {
        let time = of(point.time(), "time", "s")?;
        let energy = of(point.energy(), "energy", "J")?;
        let items = mean_items(point).filter(|items| (1.0..=MOST_ITEMS).contains(items));
        measured.push((point, *batch, items, time, energy));
    }
    let shortest = measured
        .iter()
        .map(|(.., time, _)| time.mean)
        .fold(f64::INFINITY, f64::min);
    let largest = batches.iter().flatten().copied().max();
    let items_known = measured.iter().all(|(_, _, items, ..)| items.is_some());
    let made_up = (shortest / ITERATION).round().max(1.0) * largest.unwrap_or(1) as f64;
    if !items_known {
        notes.push("the study knows of no progress: every run is taken to do the same work, and an item is a small part of it".to_owned());
    }
    let rate = measured
        .iter()
        .map(|(_, _, items, time, _)| items.unwrap_or(made_up) / time.mean)
        .fold(0.0, f64::max);
    let usual_batch = largest.unwrap_or_else(|| match items_known {
        true => (rate * ITERATION).round().max(1.0) as u64,
        false => 1,
    });
    if largest.is_none() && items_known {
        notes.push(format!(
            "the study knows of no batch size: {usual_batch} is assumed, and others say nothing"
        ));
    }
    let all = measured
        .into_iter()
        .map(|(point, batch, items, time, energy)| {
            let mut settings = point.configuration.settings(0);
            let enforced = point.reduced_caps().iter().map(|one| one.enforced).fold(
                None,
                |least: Option<_>, one| {
                    Some(least.map_or(one, |least: sweetspot_quantity::Watts| least.min(one)))
                },
            );
            if let (Some(cap), Some(enforced)) = (settings.power_cap, enforced) {
                settings.power_cap = Some(cap.min(enforced));
            }
            let items = items.filter(|_| items_known).unwrap_or(made_up);
            MeasuredPoint {
                configuration: point.configuration.clone(),
                settings,
                batch: batch.unwrap_or(usual_batch),
                items: items.round().clamp(1.0, MOST_ITEMS) as u64,
                time: Seconds::new(time.mean),
                energy: Joules::new(energy.mean),
                known: [standard_error(&time), standard_error(&energy)],
            }
        });
    Ok((all.collect(), largest.is_some()))
}

/// `power caps from 150 W to 300 W`, for each knob that was varied.
fn tried(points: &[MeasuredPoint]) -> String {
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

fn mean_items(point: &Point) -> Option<f64> {
    let items: Option<Vec<f64>> = point.results().map(|run| run.items).collect();
    Some(Summary::of(&items?)?.mean)
}

fn standard_error(summary: &Summary) -> f64 {
    match summary.deviation {
        Some(sd) => sd / summary.mean / (summary.count as f64).sqrt(),
        None => SINGLE,
    }
}

/// Pooled over the configurations.
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

fn too_large(points: &[&Point]) -> Option<u64> {
    let refused = points
        .iter()
        .filter(|point| point.status() == Status::OutOfMemory);
    refused
        .filter_map(|point| point.configuration.batch())
        .min()
}

/// By their time in the first point that has any; those in which the GPU waits are the simulator's own.
fn phases(points: &[&Point]) -> Vec<PhaseShare> {
    let found = points
        .iter()
        .map(|point| point.phases())
        .find(|phases| !phases.is_empty());
    let own = ["host", "startup", "exchange"];
    let mut kept: Vec<(String, f64)> = Vec::new();
    for phase in found.unwrap_or_default() {
        let text = name(&phase.name);
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

/// One line that is not too long.
fn name(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(plain).collect();
    let text = text.trim();
    if text.is_empty() {
        return "workload".to_owned();
    }
    match text.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}...", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
