//! Simulates the jobs of table 2 of batch_sizer_2021 with every control algorithm of `hold`.

use sweetspot_control::hold::{DeviceKnob, HoldConfig, HoldMode, HoldSetting, HoldSummary};
use sweetspot_quantity::{Megahertz, Seconds};
use sweetspot_sim::Variant;

use super::reproduction::{BASELINE_BATCH, CLOCKS, GPU, STUDY};
use super::tables::{PrintedJob, read_fact};
use crate::PapersError;
use crate::row::{Judgement, Label, ReproducedRow, Rows, ValueKind};
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{Conditions, HoldOutcome};

/// The batch sizes that the paper's system chooses from.
const BATCH_SIZES: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// The duration of a job: long compared with the time until its setting is found.
const JOB_TIME: Seconds = Seconds::new(600.0);
/// The numbers of the table-2 jobs whose power and batch size are shown over time: loose and tight caps, small and
/// large networks.
const JOBS_OVER_TIME: [u64; 5] = [5, 9, 13, 14, 19];
/// The times at which the jobs of figures 7 and 8 are shown, in seconds since their start.
const SHOWN_SECONDS: [f64; 8] = [2.0, 4.0, 6.0, 8.0, 12.0, 20.0, 40.0, 80.0];

/// The throughput of a control algorithm relative to the paper's clock search (DVFS).
const GAIN: ValueKind =
    ValueKind::difference("throughput_vs_dvfs", "throughput over DVFS [%]", 100.0, 1);
/// The mean batch size over a job.
const BATCH: ValueKind = ValueKind::difference("average_batch", "average batch", 1.0, 0);
/// The mean power over one second.
const POWER: ValueKind = ValueKind::difference("power_w", "mean of a second [W]", 1.0, 0);
/// The batch size at one moment of a job.
const BATCH_THEN: ValueKind = ValueKind::difference("batch", "batch", 1.0, 0);

/// The results of a job of table 2 with every control algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct JobResult {
    /// The number of the job in table 2.
    pub job: u64,
    /// The name of the network in the profiles.
    pub network: &'static str,
    /// The name of the data set.
    pub dataset: String,
    /// The job's power cap in watts.
    pub cap_w: f64,
    /// The results of the job, one for each control algorithm.
    pub modes: Vec<ModeResult>,
}

/// The result of one control algorithm on a job.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeResult {
    /// The control algorithm that was used.
    pub mode: HoldMode,
    /// Throughput, power and energy of the whole job, including the search for a setting.
    pub summary: HoldSummary,
    /// The batch size and clock at the end of the job.
    pub last: HoldSetting,
}

impl JobResult {
    /// Finds the result of a control algorithm on this job; `None` if that algorithm was not run.
    pub fn of(&self, mode: HoldMode) -> Option<&ModeResult> {
        self.modes.iter().find(|result| result.mode == mode)
    }

    /// The throughput of a control algorithm relative to the paper's baseline (a search over clocks), minus 1.
    pub fn gain(&self, mode: HoldMode) -> Option<f64> {
        let speed = |mode| Some(self.of(mode)?.summary.items_per_s);
        Some(speed(mode)? / speed(HoldMode::Dvfs)? - 1.0)
    }

    /// The labels that identify a row about this job under a control algorithm.
    fn row_labels(&self, mode: HoldMode) -> Vec<(&'static str, Label)> {
        vec![
            ("job", self.job.into()),
            ("network", self.network.into()),
            ("dataset", self.dataset.as_str().into()),
            ("power_cap_w", self.cap_w.into()),
            ("mode", mode.name().into()),
        ]
    }
}

/// Simulates the jobs of table 2 under every control algorithm, and returns their results and the rows of figures 7 and
/// 8.
pub(super) fn run_jobs(
    printed: &[PrintedJob],
    seed: u64,
) -> Result<(Vec<JobResult>, Vec<ReproducedRow>), PapersError> {
    let mut results = Vec::new();
    let mut over_time = Vec::new();
    for job in printed {
        let variant = Variant {
            dataset: Some(job.dataset.clone()),
            ..Variant::default()
        };
        let server = SimulatedServer::new(GPU, &format!("{}@{STUDY}", job.network), &variant)?;
        let mut result = JobResult {
            job: job.job,
            network: job.network,
            dataset: job.dataset.clone(),
            cap_w: job.power_cap.get(),
            modes: Vec::new(),
        };
        for mode in HoldMode::ALL {
            let conditions = Conditions {
                keep_samples: JOBS_OVER_TIME.contains(&job.job),
                ..Conditions::steady(JOB_TIME, seed)
            };
            let held = server.hold(hold_config(mode, job), &conditions)?;
            if conditions.keep_samples && matches!(mode, HoldMode::Dvfs | HoldMode::Robust) {
                over_time.extend(rows_over_time(&result, mode, &held));
            }
            result.modes.push(ModeResult {
                mode,
                summary: held.summary,
                last: held.last,
            });
        }
        results.push(result);
    }
    over_time.sort_by(|a, b| a.table.cmp(&b.table));
    Ok((results, over_time))
}

/// The configuration of `hold` for a job: the paper's batch sizes or clocks, and the job's power cap.
fn hold_config(mode: HoldMode, job: &PrintedJob) -> HoldConfig {
    let clocks = CLOCKS.split(',').filter_map(|clock| clock.parse().ok());
    let knob = match mode.is_batch_only() {
        true => DeviceKnob::None,
        false => DeviceKnob::CoreClock(clocks.map(Megahertz::new).collect()),
    };
    HoldConfig {
        fixed_batch: BASELINE_BATCH,
        ..HoldConfig::new(mode, job.power_cap, BATCH_SIZES.to_vec(), knob)
    }
}

/// The rows of figures 7 and 8 for one job: its power and batch size over time.
fn rows_over_time(job: &JobResult, mode: HoldMode, held: &HoldOutcome) -> Vec<ReproducedRow> {
    let (mut power, mut batch) = (Rows::new("figure 7"), Rows::new("figure 8"));
    for moment in SHOWN_SECONDS {
        let second: Vec<_> = held
            .samples
            .iter()
            .filter(|sample| (moment - 1.0..moment).contains(&(sample.at.get() - 1e-6)))
            .collect();
        let mut labels = job.row_labels(mode);
        labels.push(("time_s", moment.into()));
        let sum: f64 = second.iter().map(|sample| sample.power.get()).sum();
        let mean = sum / second.len() as f64;
        power.add(&labels, POWER, None, Some(mean), Judgement::Shown);
        if mode == HoldMode::Robust {
            let then = second.last().map(|sample| sample.batch as f64);
            batch.add(&labels, BATCH_THEN, None, then, Judgement::Shown);
        }
    }
    [power.rows, batch.rows].concat()
}

/// The rows of figures 5 and 6 for two control algorithms: the paper's as its text intends it, and the default one.
pub(super) fn figures_5_and_6(jobs: &[JobResult]) -> Result<Vec<ReproducedRow>, PapersError> {
    let ends = [
        ("throughput_best_gain_job", "throughput_best_gain_pct"),
        ("throughput_worst_loss_job", "throughput_worst_loss_pct"),
    ];
    let mut printed = Vec::new();
    for (job, percent) in ends {
        let job = read_fact(job)?;
        printed.push((job, read_fact(percent)? / 100.0));
    }
    let mut speed = Rows::new("2, throughput in figure 5");
    let mut batch = Rows::new("2, average batch in figure 6");
    for job in jobs {
        for mode in [HoldMode::Windowed, HoldMode::Robust] {
            let labels = job.row_labels(mode);
            let known = printed.iter().find(|(number, _)| *number == job.job as f64);
            let published = known.map(|(_, gain)| *gain);
            speed.add(&labels, GAIN, published, job.gain(mode), Judgement::Shown);
            let average = job.of(mode).and_then(|result| result.summary.average_batch);
            batch.add(&labels, BATCH, None, average, Judgement::Shown);
        }
    }
    Ok([speed.rows, batch.rows].concat())
}
