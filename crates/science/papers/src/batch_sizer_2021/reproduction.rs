//! Reproduces the card, throughput and power by batch size, and the jobs of table 2.

use sweetspot_decide::Objective;
use sweetspot_sim::find_gpu;
use sweetspot_study::{AxisText, BATCH_PARAMETER, Definition, Point, Study};

use super::figures::{NOT_DRAWN, figures};
use super::job_conclusions::{figure_5_by_mode, job_conclusions};
use super::jobs::{JobResult, figures_5_and_6, run_jobs};
use super::tables::{read_card_facts, read_jobs};
use crate::PapersError;
use crate::Reproduction;
use crate::ValueOrigin;
use crate::row::{Conclusion, Judgement, Label, ReproducedRow, Rows, ValueKind, range_of};
use crate::simulated_runs::SweepRunner;

/// The name of the paper on the command line.
pub const PAPER: &str = "batch-sizer-2021";
/// The citation of the paper.
const SOURCE: &str = "S. M. Nabavinejad, S. Reda, M. Ebrahimi: BatchSizer: Power-Performance Trade-off for DNN Inference. ASP-DAC 2021";
/// The name of the study, which selects the workload profiles.
pub(super) const STUDY: &str = "batch_sizer_2021";
/// The profile of the GPU card that the paper used.
pub(super) const GPU: &str = "tesla_p40";

/// The batch sizes of the sweeps, as the text of an axis.
const BATCHES: &str = "1,2,4,8,16,32,64,128,256,512";
/// The core clocks in MHz among which the paper's baseline searches, separated by commas.
pub(super) const CLOCKS: &str = "544,632,734,835,949,1063,1189,1303,1430,1531";
/// The batch size that the paper's baseline uses while it searches clocks.
pub(super) const BASELINE_BATCH: u64 = 16;

/// The power of the GPU.
const POWER: ValueKind = ValueKind::difference("power_w", "power [W]", 1.0, 0);
/// The throughput with a batch size of 512 relative to 256, minus 1.
const SATURATION: ValueKind =
    ValueKind::difference("throughput_gain", "throughput, 512 over 256 [%]", 100.0, 1);
/// The throughput in items per second.
const THROUGHPUT: ValueKind = ValueKind::relative("items_per_s", "throughput [1/s]", 1.0, 0);
/// The networks that figure 1 shows.
const FIGURE_1_NETWORKS: [&str; 3] = ["inception_v3", "resnet50", "mobilenet_v1"];

/// The results of a sweep over batch sizes for one network and one dataset.
struct Workload {
    network: &'static str,
    dataset: String,
    batches: Study,
}

impl Workload {
    /// Sweeps the batch sizes of a network with a dataset.
    fn sweep(
        runner: &mut SweepRunner,
        network: &'static str,
        dataset: &str,
    ) -> Result<Self, PapersError> {
        let both = Definition {
            dataset: Some(dataset.to_owned()),
            repeat: Some(3),
            ..Definition::simulated(GPU, &format!("{network}@{STUDY}"))
        };
        let axis = AxisText(BATCHES.to_owned());
        let batches = runner.sweep(Definition {
            axis: [(BATCH_PARAMETER.to_owned(), axis)].into(),
            ..both
        })?;
        Ok(Self {
            network,
            dataset: dataset.to_owned(),
            batches,
        })
    }

    /// The mean throughput at a batch size, in items per second.
    fn throughput(&self, batch: u64) -> Option<f64> {
        let mut points = self.batches.points.iter();
        let outcome = points
            .find(|point| point.configuration.batch() == Some(batch))?
            .outcome()?;
        Objective::Throughput.value(&outcome, &outcome).ok()
    }

    /// The mean power while a batch of this size is computed, in watts.
    fn power(&self, batch: u64) -> Option<f64> {
        let mut points = self.batches.points.iter();
        power_while_computing(points.find(|point| point.configuration.batch() == Some(batch))?)
    }
}

/// The power while a batch is computed, which the paper's system keeps below the cap. Between batches the GPU waits for
/// its host and draws little power.
fn power_while_computing(point: &Point) -> Option<f64> {
    let phases = point.phases();
    let forward = phases.iter().find(|phase| phase.name == "forward")?;
    Some((forward.energy? / forward.time).get()).filter(|power| power.is_finite())
}

/// Runs the sweeps and jobs of the paper and compares the results with its tables and text.
pub fn reproduce(runner: &mut SweepRunner) -> Result<Reproduction, PapersError> {
    let printed = read_jobs()?;
    let mut workloads: Vec<Workload> = Vec::new();
    for job in &printed {
        workloads.push(Workload::sweep(runner, job.network, &job.dataset)?);
    }
    let (jobs, over_time) = run_jobs(&printed, runner.seed)?;
    runner.runs += jobs.iter().map(|job| job.modes.len()).sum::<usize>();
    let mut rows = card_rows()?;
    rows.extend(saturation_rows(&workloads));
    rows.extend(figure_1(&workloads));
    rows.extend(figures_5_and_6(&jobs)?);
    rows.extend(figure_5_by_mode(&jobs));
    rows.extend(over_time);
    Ok(Reproduction {
        fit: None,
        paper: PAPER,
        source: SOURCE,
        runs: runner.clone(),
        conclusions: conclusions(&workloads, &jobs),
        figures: figures(&rows),
        figures_not_drawn: NOT_DRAWN.into(),
        rows,
        counted_tolerances: Vec::new(),
        not_reproduced: Vec::new(),
        jobs,
    })
}

/// The rows of section 5.1: the power of the card with a model loaded, and its highest power. Both are parameters of the
/// card's profile and cannot be missed.
fn card_rows() -> Result<Vec<ReproducedRow>, PapersError> {
    let facts = read_card_facts()?;
    let (_, gpu) = find_gpu(GPU)?;
    let loaded = gpu.power.idle + gpu.power.context;
    let mut rows = Rows::new("section 5.1").with_origin(ValueOrigin::Input);
    for (what, printed, here) in [
        ("with a model loaded", facts.loaded, loaded),
        ("at most", facts.max_power, gpu.cap.max),
    ] {
        let labels: [(&'static str, Label); 2] = [("gpu", GPU.into()), ("what", what.into())];
        let (printed, here) = (Some(printed.get()), Some(here.get()));
        rows.add(&labels, POWER, printed, here, Judgement::Shown);
    }
    Ok(rows.rows)
}

/// The rows of section 3: the throughput gained by a batch size of 512 over 256. The paper prints no numbers; it concludes
/// that there is no gain.
fn saturation_rows(workloads: &[Workload]) -> Vec<ReproducedRow> {
    let mut rows = Rows::new("section 3");
    for workload in workloads {
        let labels: [(&'static str, Label); 2] = [
            ("network", workload.network.into()),
            ("dataset", workload.dataset.as_str().into()),
        ];
        let both = workload.throughput(512).zip(workload.throughput(256));
        let here = both.map(|(beyond, last)| beyond / last - 1.0);
        rows.add(&labels, SATURATION, None, here, Judgement::Shown);
    }
    rows.rows
}

/// The rows of figure 1: throughput, and power while a batch is computed, for each batch size.
fn figure_1(workloads: &[Workload]) -> Vec<ReproducedRow> {
    let mut rows = Rows::new("figure 1");
    let shown = workloads
        .iter()
        .filter(|workload| FIGURE_1_NETWORKS.contains(&workload.network));
    for workload in shown {
        for batch in BATCHES.split(',').filter_map(|batch| batch.parse().ok()) {
            let labels: [(&'static str, Label); 3] = [
                ("network", workload.network.into()),
                ("dataset", workload.dataset.as_str().into()),
                ("batch", Label::from(batch)),
            ];
            for (kind, here) in [
                (THROUGHPUT, workload.throughput(batch)),
                (POWER, workload.power(batch)),
            ] {
                rows.add(&labels, kind, None, here, Judgement::Shown);
            }
        }
    }
    rows.rows
}

/// The paper's conclusions, and whether the reproduction confirms them.
fn conclusions(workloads: &[Workload], jobs: &[JobResult]) -> Vec<Conclusion> {
    let ratio = |workload: &Workload, of: fn(&Workload, u64) -> Option<f64>| {
        Some(of(workload, 256)? / of(workload, 1)?)
    };
    let speed: Vec<f64> = workloads
        .iter()
        .filter_map(|one| ratio(one, Workload::throughput))
        .collect();
    let power: Vec<f64> = workloads
        .iter()
        .filter_map(|one| ratio(one, Workload::power))
        .collect();
    let grows = speed.iter().chain(&power).all(|ratio| *ratio > 1.0);
    let (speed, power) = (range_of(speed), range_of(power));
    let mobile = |dataset: &str| {
        let of = |one: &&Workload| one.network == "mobilenet_v1" && one.dataset == dataset;
        let found = workloads.iter().find(of);
        found.and_then(|one| ratio(one, Workload::throughput))
    };
    let (caltech, imagenet) = (
        mobile("caltech").unwrap_or_default(),
        mobile("imagenet").unwrap_or_default(),
    );
    let saturated = workloads.iter().filter_map(|one| {
        let beyond = one.throughput(512)? / one.throughput(256)?;
        Some(100.0 * (beyond - 1.0))
    });
    let beyond = range_of(saturated);
    vec![
        Conclusion::new(
            "throughput and power grow with the batch size",
            grows,
            format!(
                "from 1 to 256: {:.1} to {:.1} times the throughput, {:.1} to {:.1} times the power while computing",
                speed.0, speed.1, power.0, power.1
            ),
        ),
        Conclusion::new(
            "beyond a batch of 256 throughput does not grow",
            beyond.1 <= 3.0,
            format!("{:+.1} to {:+.1} % from 256 to 512", beyond.0, beyond.1),
        ),
        Conclusion::new(
            "for MobileNet throughput gains much from larger batches on Caltech",
            caltech > 2.0,
            format!("{caltech:.2} times from 1 to 256"),
        ),
        Conclusion::new(
            "for MobileNet throughput gains next to nothing on ImageNet",
            imagenet < 1.05,
            format!("{imagenet:.2} times from 1 to 256"),
        ),
    ]
    .into_iter()
    .chain(job_conclusions(jobs))
    .collect()
}
