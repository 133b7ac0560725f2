//! Simulates the jobs of table 2 of batch_sizer_2021 with every control algorithm of `hold`.

use sweetspot_control::hold::{DeviceKnob, HoldConfig, HoldMode, HoldSetting, HoldSummary};
use sweetspot_quantity::{Megahertz, Seconds};
use sweetspot_sim::Variant;

use super::controller::Controller;
use super::reproduction::{BASELINE_BATCH, CLOCKS, GPU, STUDY};
use super::tables::{PrintedJob, read_fact};
use crate::ValueOrigin;
use crate::row::{Judgement, Label, ReproducedRow, Rows, ValueKind};
use crate::{PapersError, Profiles};
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

/// A gain that is within this of a printed one rounds to it.
pub(super) const PRINTED_PRECISION: f64 = 0.005;

/// The throughput of a control algorithm relative to the paper's clock search (DVFS).
const GAIN: ValueKind =
    ValueKind::difference("throughput_vs_dvfs", "throughput over DVFS [%]", 100.0, 1);
/// The mean batch size over a job.
const BATCH: ValueKind = ValueKind::difference("average_batch", "average batch", 1.0, 0);
/// The mean power over one second.
const POWER: ValueKind = ValueKind::difference("power_w", "mean of a second [W]", 1.0, 0);
/// The highest power reading of a second.
const PEAK: ValueKind = ValueKind::difference("peak_w", "highest reading [W]", 1.0, 0);
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
    /// The control algorithm that was used, and what its cap binds.
    pub controller: Controller,
    /// Throughput, power and energy of the whole job, including the search for a setting.
    pub summary: HoldSummary,
    /// The batch size and clock at the end of the job.
    pub last: HoldSetting,
}

impl JobResult {
    /// Finds the result of a control algorithm on this job; `None` if that algorithm was not run.
    pub fn of(&self, controller: Controller) -> Option<&ModeResult> {
        let mut results = self.modes.iter();
        results.find(|result| result.controller == controller)
    }

    /// The throughput of a control algorithm relative to the paper's baseline (a search over clocks), minus 1.
    pub fn gain(&self, controller: Controller) -> Option<f64> {
        let speed = |controller| Some(self.of(controller)?.summary.items_per_s);
        Some(speed(controller)? / speed(Controller::of(HoldMode::Dvfs))? - 1.0)
    }

    /// The labels that identify a row about this job under a control algorithm.
    fn row_labels(&self, controller: Controller) -> Vec<(&'static str, Label)> {
        vec![
            ("job", self.job.into()),
            ("network", self.network.into()),
            ("dataset", self.dataset.as_str().into()),
            ("power_cap_w", self.cap_w.into()),
            ("mode", controller.name().into()),
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
        for controller in Controller::all() {
            let is_shown = JOBS_OVER_TIME.contains(&job.job)
                && matches!(controller.mode, HoldMode::Dvfs | HoldMode::Windowed);
            let conditions = Conditions {
                sensor: controller.sensor(),
                keep_samples: is_shown,
                keep_readings: is_shown,
                ..Conditions::steady(JOB_TIME, seed)
            };
            let held = server.hold(hold_config(controller, job), &conditions)?;
            if is_shown {
                over_time.extend(rows_over_time(&result, controller, &held));
            }
            result.modes.push(ModeResult {
                controller,
                summary: held.summary,
                last: held.last,
            });
        }
        results.push(result);
    }
    over_time.sort_by(|a, b| a.table.cmp(&b.table));
    Ok((results, over_time))
}

/// The two ends of figure 5: the number of the job, and its gain over DVFS.
pub(super) fn printed_ends() -> Result<[(u64, f64); 2], PapersError> {
    let end = |job: &str, percent: &str| -> Result<(u64, f64), PapersError> {
        Ok((read_fact(job)? as u64, read_fact(percent)? / 100.0))
    };
    Ok([
        end("throughput_best_gain_job", "throughput_best_gain_pct")?,
        end("throughput_worst_loss_job", "throughput_worst_loss_pct")?,
    ])
}

/// The throughput of the paper's algorithm as intended relative to its baseline, minus 1, with the first seed.
pub(super) fn gain_over_dvfs(profiles: &Profiles, job: &PrintedJob) -> Result<f64, PapersError> {
    let variant = Variant {
        dataset: Some(job.dataset.clone()),
        ..Variant::default()
    };
    let (gpu, workload) =
        profiles.gpu_and_workload(GPU, &format!("{}@{STUDY}", job.network), &variant)?;
    let server = SimulatedServer::from_profiles(vec![(GPU.to_owned(), gpu)], workload)?;
    let speed = |mode: HoldMode| -> Result<f64, PapersError> {
        let controller = Controller::of(mode);
        let conditions = Conditions {
            sensor: controller.sensor(),
            ..Conditions::steady(JOB_TIME, 1)
        };
        let held = server.hold(hold_config(controller, job), &conditions)?;
        Ok(held.summary.items_per_s)
    };
    Ok(speed(HoldMode::Windowed)? / speed(HoldMode::Dvfs)? - 1.0)
}

/// The configuration of `hold` for a job: the paper's batch sizes or clocks, and the job's power cap.
fn hold_config(controller: Controller, job: &PrintedJob) -> HoldConfig {
    let mode = controller.mode;
    let clocks = CLOCKS.split(',').filter_map(|clock| clock.parse().ok());
    let knob = match mode.is_batch_only() {
        true => DeviceKnob::None,
        false => DeviceKnob::CoreClock(clocks.map(Megahertz::new).collect()),
    };
    HoldConfig {
        fixed_batch: BASELINE_BATCH,
        cap_on: controller.cap_on,
        ..HoldConfig::new(mode, job.power_cap, BATCH_SIZES.to_vec(), knob)
    }
}

/// The rows of figures 7 and 8 for one job: its power and batch size over time.
fn rows_over_time(
    job: &JobResult,
    controller: Controller,
    held: &HoldOutcome,
) -> Vec<ReproducedRow> {
    let (mut power, mut batch) = (Rows::new("figure 7"), Rows::new("figure 8"));
    for moment in SHOWN_SECONDS {
        let is_within = |at: Seconds| (moment - 1.0..moment).contains(&(at.get() - 1e-6));
        let second = held.samples.iter().filter(|sample| is_within(sample.at));
        let second: Vec<_> = second.collect();
        let readings = held.readings.iter().filter(|read| is_within(read.to));
        let peak = readings.map(|read| read.power.get()).reduce(f64::max);
        let mut labels = job.row_labels(controller);
        labels.push(("time_s", moment.into()));
        let sum: f64 = second.iter().map(|sample| sample.power.get()).sum();
        let mean = sum / second.len() as f64;
        power.add(&labels, POWER, None, Some(mean), Judgement::Shown);
        power.add(&labels, PEAK, None, peak, Judgement::Shown);
        if controller.mode == HoldMode::Windowed {
            let then = second.last().map(|sample| sample.batch as f64);
            batch.add(&labels, BATCH_THEN, None, then, Judgement::Shown);
        }
    }
    [power.rows, batch.rows].concat()
}

/// The rows of figures 5 and 6 for two control algorithms: the paper's as its text intends it, and the default one with
/// the same cap. The two printed numbers are judged for the paper's algorithm.
pub(super) fn figures_5_and_6(jobs: &[JobResult]) -> Result<Vec<ReproducedRow>, PapersError> {
    let printed = printed_ends()?;
    // The host's times for an item were chosen by hand with these two numbers in view.
    let speed = Rows::new("2, throughput in figure 5");
    let mut speed = speed.with_origin(ValueOrigin::Fitted);
    let mut batch = Rows::new("2, average batch in figure 6");
    for job in jobs {
        for controller in [
            Controller::of(HoldMode::Windowed),
            Controller::ROBUST_ON_READINGS,
        ] {
            let labels = job.row_labels(controller);
            let known = printed.iter().find(|(number, _)| *number == job.job);
            let is_judged = controller.mode == HoldMode::Windowed;
            let published = known.filter(|_| is_judged).map(|(_, gain)| *gain);
            let judgement = match published.is_some() {
                true => Judgement::Each(PRINTED_PRECISION),
                false => Judgement::Shown,
            };
            speed.add(&labels, GAIN, published, job.gain(controller), judgement);
            let result = job.of(controller);
            let average = result.and_then(|result| result.summary.average_batch);
            batch.add(&labels, BATCH, None, average, Judgement::Shown);
        }
    }
    Ok([speed.rows, batch.rows].concat())
}
