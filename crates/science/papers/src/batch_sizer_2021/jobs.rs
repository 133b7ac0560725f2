//! The jobs of table 2 of batch_sizer_2021 under every controller, in virtual time.

use sweetspot_control::hold::{DeviceKnob, HoldConfig, HoldMode, HoldSetting, HoldSummary};
use sweetspot_quantity::{Megahertz, Seconds};
use sweetspot_sim::Variant;

use super::reproduction::{BASELINE, CLOCKS, GPU, STUDY};
use super::tables::{PrintedJob, batch_sizer_2021_facts};
use crate::PapersError;
use crate::row::{Judgement, Kind, Label, ReproducedRow, Rows};
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{Conditions, HoldOutcome};

/// The batch sizes that the paper's system chooses from.
const SIZES: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Of a job: long against the search for its setting.
const TIME: Seconds = Seconds::new(600.0);
/// The jobs whose power and batch are shown over time: loose and tight caps of small and large networks.
const OVER_TIME: [u64; 5] = [5, 9, 13, 14, 19];
const MOMENTS: [f64; 8] = [2.0, 4.0, 6.0, 8.0, 12.0, 20.0, 40.0, 80.0];

const GAIN: Kind = Kind::difference("throughput_vs_dvfs", "throughput over DVFS [%]", 100.0, 1);
const BATCH: Kind = Kind::difference("average_batch", "average batch", 1.0, 0);
const POWER: Kind = Kind::difference("power_w", "mean of a second [W]", 1.0, 0);
const BATCH_THEN: Kind = Kind::difference("batch", "batch", 1.0, 0);

/// A job of table 2 under every controller.
#[derive(Clone, Debug, PartialEq)]
pub struct JobResult {
    /// Its number.
    pub job: u64,
    /// The network's name here.
    pub network: &'static str,
    /// Its data set.
    pub dataset: String,
    /// The power cap in watts.
    pub cap_w: f64,
    /// What each mode came to.
    pub modes: Vec<ModeResult>,
}

/// What a mode came to on a job.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeResult {
    /// Which.
    pub mode: HoldMode,
    /// What came of it, the search included.
    pub summary: HoldSummary,
    /// What was set at the end.
    pub last: HoldSetting,
}

impl JobResult {
    /// Of a mode.
    pub fn of(&self, mode: HoldMode) -> Option<&ModeResult> {
        self.modes.iter().find(|result| result.mode == mode)
    }

    /// By how much a mode is ahead of the clock search.
    pub fn gain(&self, mode: HoldMode) -> Option<f64> {
        let speed = |mode| Some(self.of(mode)?.summary.items_per_s);
        Some(speed(mode)? / speed(HoldMode::Dvfs)? - 1.0)
    }

    fn labels(&self, mode: HoldMode) -> Vec<(&'static str, Label)> {
        vec![
            ("job", self.job.into()),
            ("network", self.network.into()),
            ("dataset", self.dataset.as_str().into()),
            ("power_cap_w", self.cap_w.into()),
            ("mode", mode.name().into()),
        ]
    }
}

/// The jobs, and the rows of figures 7 and 8.
pub(super) fn jobs(
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
        let rig = SimulatedServer::new(GPU, &format!("{}@{STUDY}", job.network), &variant)?;
        let mut result = JobResult {
            job: job.job,
            network: job.network,
            dataset: job.dataset.clone(),
            cap_w: job.power_cap.get(),
            modes: Vec::new(),
        };
        for mode in HoldMode::ALL {
            let conditions = Conditions {
                keep_samples: OVER_TIME.contains(&job.job),
                ..Conditions::steady(TIME, seed)
            };
            let held = rig.hold(terms(mode, job), &conditions)?;
            if conditions.keep_samples && matches!(mode, HoldMode::Dvfs | HoldMode::Robust) {
                over_time.extend(moments(&result, mode, &held));
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

fn terms(mode: HoldMode, job: &PrintedJob) -> HoldConfig {
    let clocks = CLOCKS.split(',').filter_map(|clock| clock.parse().ok());
    let knob = match mode.is_batch_only() {
        true => DeviceKnob::None,
        false => DeviceKnob::CoreClock(clocks.map(Megahertz::new).collect()),
    };
    HoldConfig {
        fixed_batch: BASELINE,
        ..HoldConfig::new(mode, job.power_cap, SIZES.to_vec(), knob)
    }
}

/// Figures 7 and 8: what is drawn and which batch size is used, over time.
fn moments(job: &JobResult, mode: HoldMode, held: &HoldOutcome) -> Vec<ReproducedRow> {
    let (mut power, mut batch) = (Rows::new("figure 7"), Rows::new("figure 8"));
    for moment in MOMENTS {
        let second: Vec<_> = held
            .samples
            .iter()
            .filter(|sighting| (moment - 1.0..moment).contains(&(sighting.at.get() - 1e-6)))
            .collect();
        let mut labels = job.labels(mode);
        labels.push(("time_s", moment.into()));
        let sum: f64 = second.iter().map(|sighting| sighting.power.get()).sum();
        let mean = sum / second.len() as f64;
        power.add(&labels, POWER, None, Some(mean), Judgement::Shown);
        if mode == HoldMode::Robust {
            let then = second.last().map(|sighting| sighting.batch as f64);
            batch.add(&labels, BATCH_THEN, None, then, Judgement::Shown);
        }
    }
    [power.rows, batch.rows].concat()
}

/// Figures 5 and 6: the paper's algorithm as it was meant, and the default here.
pub(super) fn figures(jobs: &[JobResult]) -> Result<Vec<ReproducedRow>, PapersError> {
    let ends = [
        ("throughput_best_gain_job", "throughput_best_gain_pct"),
        ("throughput_worst_loss_job", "throughput_worst_loss_pct"),
    ];
    let mut printed = Vec::new();
    for (job, percent) in ends {
        let job = batch_sizer_2021_facts(job)?;
        printed.push((job, batch_sizer_2021_facts(percent)? / 100.0));
    }
    let mut speed = Rows::new("2, throughput in figure 5");
    let mut batch = Rows::new("2, average batch in figure 6");
    for job in jobs {
        for mode in [HoldMode::Windowed, HoldMode::Robust] {
            let labels = job.labels(mode);
            let known = printed.iter().find(|(number, _)| *number == job.job as f64);
            let published = known.map(|(_, gain)| *gain);
            speed.add(&labels, GAIN, published, job.gain(mode), Judgement::Shown);
            let average = job.of(mode).and_then(|result| result.summary.average_batch);
            batch.add(&labels, BATCH, None, average, Judgement::Shown);
        }
    }
    Ok([speed.rows, batch.rows].concat())
}
