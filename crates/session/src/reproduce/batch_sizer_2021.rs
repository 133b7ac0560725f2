//! The card, throughput and power by batch size, and the jobs of table 2 as far as fixed settings go.

use sweetspot_decide::{Candidate, Comparison, Objective, Tariff};
use sweetspot_sim::find_gpu;
use sweetspot_study::{Axis, AxisText, BATCH, Definition, Point, Study};

use super::Reproduction;
use super::row::{Conclusion, Judgement, Kind, Label, ReproducedRow, Rows, ends};
use super::study::Runs;
use crate::SessionError;
use crate::published::{
    PrintedJob, batch_sizer_2021, batch_sizer_2021_facts, batch_sizer_2021_jobs,
};

pub const PAPER: &str = "batch-sizer-2021";
const SOURCE: &str = "S. M. Nabavinejad, S. Reda, M. Ebrahimi: BatchSizer: Power-Performance Trade-off for DNN Inference. ASP-DAC 2021";
const STUDY: &str = "batch_sizer_2021";
const GPU: &str = "tesla_p40";

const BATCHES: &str = "1,2,4,8,16,32,64,128,256,512";
const CLOCKS: &str = "544,632,734,835,949,1063,1189,1303,1430,1531";
/// The largest that BatchSizer may choose.
const LARGEST: u64 = 256;
/// The batch size with which the paper's baseline sets clocks.
const BASELINE: u64 = 16;

const POWER: Kind = Kind::difference("power_w", "power [W]", 1.0, 0);
const SATURATION: Kind =
    Kind::difference("throughput_gain", "throughput, 512 over 256 [%]", 100.0, 1);
const GAIN: Kind = Kind::difference("throughput_vs_dvfs", "throughput over DVFS [%]", 100.0, 1);

/// A job of table 2 with settings that stay as they are for the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct JobResult {
    /// Its number.
    pub job: u64,
    /// The network's name here.
    pub network: &'static str,
    /// Its data set.
    pub dataset: String,
    /// The power cap in watts.
    pub power_cap_w: f64,
    /// The batch size with most items a second whose power at work is below the cap, and those items.
    pub batch: Option<(u64, f64)>,
    /// The core clock in MHz with most items a second in batches of 16 below the cap, and those items.
    pub clock: Option<(f64, f64)>,
}

impl JobResult {
    /// By how much the best batch size is ahead of the best clock.
    pub fn gain(&self) -> Option<f64> {
        Some(self.batch?.1 / self.clock?.1 - 1.0)
    }
}

/// One network with one data set: over batch sizes, and over clocks in batches of 16.
struct Workload {
    network: &'static str,
    dataset: String,
    batches: Study,
    clocks: Study,
}

impl Workload {
    fn sweep(runs: &mut Runs, network: &'static str, dataset: &str) -> Result<Self, SessionError> {
        let both = Definition {
            dataset: Some(dataset.to_owned()),
            repeat: Some(3),
            ..Definition::simulated(GPU, &format!("{network}@{STUDY}"))
        };
        let axis = AxisText(BATCHES.to_owned());
        let batches = runs.sweep(Definition {
            axis: [(BATCH.to_owned(), axis)].into(),
            ..both.clone()
        })?;
        let clocks = runs.sweep(Definition {
            batch: Some(BASELINE),
            core_clock: Some(AxisText(CLOCKS.to_owned())),
            ..both
        })?;
        Ok(Self {
            network,
            dataset: dataset.to_owned(),
            batches,
            clocks,
        })
    }

    fn throughput(&self, batch: u64) -> Option<f64> {
        let mut points = self.batches.points.iter();
        let outcome = points
            .find(|point| point.configuration.batch() == Some(batch))?
            .outcome()?;
        Objective::Throughput.value(&outcome, &outcome).ok()
    }

    fn power(&self, batch: u64) -> Option<f64> {
        let mut points = self.batches.points.iter();
        at_work(points.find(|point| point.configuration.batch() == Some(batch))?)
    }

    fn job(&self, job: &PrintedJob) -> JobResult {
        let cap = job.power_cap.get();
        let batch = Axis::Parameter(BATCH.to_owned());
        let is_offered = |point: &Point| point.configuration.batch() <= Some(LARGEST);
        let fastest = |study: &Study, axis: &Axis| {
            let fits = |point: &&Point| at_work(point).is_some_and(|power| power <= cap);
            let offered = study.points.iter().filter(|point| is_offered(point));
            let points: Vec<&Point> = offered.filter(fits).collect();
            let candidates: Vec<Candidate> = points.iter().map(|point| point.candidate()).collect();
            let comparison = Comparison::new(&candidates, None, Tariff::NONE);
            let choice = comparison.choose(Objective::Throughput, &[]).ok()?;
            let point = points.get(choice.candidate)?;
            Some((axis.number(&point.configuration)?, choice.value.value))
        };
        JobResult {
            job: job.job,
            network: job.network,
            dataset: job.dataset.clone(),
            power_cap_w: cap,
            batch: fastest(&self.batches, &batch).map(|(batch, speed)| (batch as u64, speed)),
            clock: fastest(&self.clocks, &Axis::CoreClock),
        }
    }
}

/// Power while a batch is computed, which is what the paper holds below the cap: between batches the GPU
/// waits for its host and draws little.
fn at_work(point: &Point) -> Option<f64> {
    let phases = point.phases();
    let forward = phases.iter().find(|phase| phase.name == "forward")?;
    Some((forward.energy / forward.time).get()).filter(|power| power.is_finite())
}

pub fn again(runs: &mut Runs) -> Result<Reproduction, SessionError> {
    let printed = batch_sizer_2021_jobs()?;
    let mut workloads: Vec<Workload> = Vec::new();
    let mut jobs = Vec::new();
    for job in &printed {
        let workload = Workload::sweep(runs, job.network, &job.dataset)?;
        jobs.push(workload.job(job));
        workloads.push(workload);
    }
    let mut rows = card()?;
    rows.extend(saturation(&workloads));
    rows.extend(table_2(&jobs)?);
    Ok(Reproduction {
        paper: PAPER,
        source: SOURCE,
        runs: runs.clone(),
        conclusions: conclusions(&workloads, &jobs),
        rows,
        counted: Vec::new(),
        waits: vec![
            "the jobs of table 2 under BatchSizer itself wait for `sweetspot hold`: shown are the batch size and, for the DVFS baseline, the clock that a study would choose once and keep, by the power while a batch is computed".to_owned(),
        ],
        jobs,
    })
}

fn card() -> Result<Vec<ReproducedRow>, SessionError> {
    let facts = batch_sizer_2021()?;
    let (_, gpu) = find_gpu(GPU)?;
    let loaded = gpu.power.idle + gpu.power.context;
    let mut rows = Rows::new("section 5.1");
    for (what, printed, here) in [
        ("with a model loaded", facts.loaded, loaded),
        ("at most", facts.most, gpu.cap.max),
    ] {
        let labels: [(&'static str, Label); 2] = [("gpu", GPU.into()), ("what", what.into())];
        let each = Judgement::Each(1.0);
        rows.add(&labels, POWER, Some(printed.get()), Some(here.get()), each);
    }
    Ok(rows.rows)
}

fn saturation(workloads: &[Workload]) -> Vec<ReproducedRow> {
    let mut rows = Rows::new("section 3");
    for workload in workloads {
        let labels: [(&'static str, Label); 2] = [
            ("network", workload.network.into()),
            ("dataset", workload.dataset.as_str().into()),
        ];
        let both = workload.throughput(512).zip(workload.throughput(256));
        let here = both.map(|(beyond, last)| beyond / last - 1.0);
        rows.add(&labels, SATURATION, Some(0.0), here, Judgement::Each(0.03));
    }
    rows.rows
}

fn table_2(jobs: &[JobResult]) -> Result<Vec<ReproducedRow>, SessionError> {
    let mut rows = Rows::new("2, throughput in figure 5");
    let ends = [
        ("throughput_best_gain_job", "throughput_best_gain_pct"),
        ("throughput_worst_loss_job", "throughput_worst_loss_pct"),
    ];
    let mut printed = Vec::new();
    for (job, percent) in ends {
        let job = batch_sizer_2021_facts(job)?;
        printed.push((job, batch_sizer_2021_facts(percent)? / 100.0));
    }
    for job in jobs {
        let labels: [(&'static str, Label); 4] = [
            ("job", job.job.into()),
            ("network", job.network.into()),
            ("dataset", job.dataset.as_str().into()),
            ("power_cap_w", job.power_cap_w.into()),
        ];
        let known = printed.iter().find(|(number, _)| *number == job.job as f64);
        let published = known.map(|(_, gain)| *gain);
        *rows.add(&labels, GAIN, published, job.gain(), Judgement::Shown) =
            Some("with fixed settings; BatchSizer itself waits for `sweetspot hold`".to_owned());
    }
    Ok(rows.rows)
}

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
    let (speed, power) = (ends(speed), ends(power));
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
    let beyond = ends(saturated);
    let gains = ends(jobs.iter().filter_map(JobResult::gain));
    vec![
        Conclusion::new(
            "throughput and power grow with the batch size",
            grows,
            format!(
                "from 1 to 256: {:.1} to {:.1} times the throughput, {:.1} to {:.1} times the power at work",
                speed.0, speed.1, power.0, power.1
            ),
        ),
        Conclusion::new(
            "beyond a batch of 256 throughput does not grow",
            beyond.1 <= 3.0,
            format!("{:+.1} to {:+.1} % from 256 to 512", beyond.0, beyond.1),
        ),
        Conclusion::new(
            "for MobileNet the batch size gains much on Caltech and little on ImageNet",
            caltech > 2.0 * imagenet,
            format!("{caltech:.1} times on Caltech, {imagenet:.1} times on ImageNet"),
        ),
        Conclusion::waits(
            "BatchSizer beats DVFS in most jobs, by up to 29 %, and loses up to 8 % in others",
            format!(
                "waits for `sweetspot hold`; with fixed settings {:+.0} to {:+.0} %",
                100.0 * gains.0,
                100.0 * gains.1
            ),
        ),
    ]
}
