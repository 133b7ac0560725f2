//! The result of tuning a job.

use sweetspot_decide::Criteria;
use sweetspot_decide::search::StrategyName;
use sweetspot_device::{Descriptor, Settings};
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::{EarlierChoice, GiveUpReason, SettingsScope, TuneKnob, TuneOutcome, TuneSpace};

/// The result of tuning a job, with the settings and devices that were used.
#[derive(Clone, Debug)]
pub struct TunedJob {
    /// The command of the job, or the name of the simulated workload.
    pub workload: String,
    /// The GPUs on which the job ran.
    pub devices: Vec<Descriptor>,
    /// The knob that was tuned.
    pub knob: TuneKnob,
    /// The objective and the limits of the choice.
    pub criteria: Criteria,
    /// The strategy that chose which settings to try.
    pub strategy: StrategyName,
    /// Whether the GPUs could get settings of their own.
    pub scope: SettingsScope,
    /// The settings of each point for all GPUs. For a point that gives GPUs settings of their own: those of the point
    /// from which it was derived.
    pub settings: Vec<Settings>,
    /// The settings of each point on each GPU.
    pub settings_of_gpus: Vec<Vec<Settings>>,
    /// The name of each point for display, such as `180 W` or `215/180 W`.
    pub labels: Vec<String>,
    /// The index of the point that all others were compared with.
    pub reference: usize,
    /// The choices, measurements and notices of the tuner.
    pub tuned: TuneOutcome,
    /// The time from the start to the end of the job.
    pub time: Seconds,
    /// The energy of all GPUs over the job, if it is known.
    pub energy: Option<Joules>,
    /// The energy of each GPU over the job, as far as it is known.
    pub energy_of_gpus: Vec<Option<Joules>>,
    /// The number of items that the job processed, if it is known.
    pub items: Option<f64>,
    /// The time at which each workload of a simulated job began, from the start of the job.
    pub begins: Vec<Seconds>,
    /// The total power of all GPUs over time, as pairs of time since the start of the job and power.
    pub power: Vec<(Seconds, Watts)>,
    /// Whether the settings that every device had before the job were restored.
    pub restored: bool,
}

/// The settings and names of all points of a tuned job.
#[derive(Clone, Debug)]
pub struct PointTable {
    /// The settings of each point for all GPUs.
    pub settings: Vec<Settings>,
    /// The settings of each point on each GPU.
    pub settings_of_gpus: Vec<Vec<Settings>>,
    /// The name of each point.
    pub labels: Vec<String>,
}

impl PointTable {
    /// The points of a search space, followed by those at which each GPU had a setting of its own.
    pub fn new(space: &TuneSpace, tuned: &TuneOutcome) -> Self {
        let mut table = Self {
            settings: space.settings.clone(),
            settings_of_gpus: space.of_gpus.clone(),
            labels: space.labels.clone(),
        };
        for point in &tuned.balanced {
            table.settings.push(space.settings[point.base]);
            table.settings_of_gpus.push(point.settings.clone());
            table.labels.push(point.label.clone());
        }
        table
    }
}

impl TunedJob {
    /// The settings of each GPU at a point, if they differ between the GPUs.
    pub fn differing_settings(&self, point: usize) -> Option<&[Settings]> {
        let settings = self.settings_of_gpus.get(point)?;
        let differs = settings.iter().any(|own| *own != settings[0]);
        differs.then_some(settings)
    }

    /// The index of the point that was chosen and set at the end of the job; `None` if no choice was made.
    pub fn choice(&self) -> Option<usize> {
        let last = self.tuned.last_choice().or(self.tuned.loads.last());
        last?.choice
    }

    /// The choice for the job's last load, for a later run of the same job; `None` if there is none, or if the tuner gave
    /// up for another reason than that another program changed a setting.
    pub fn lasting_choice(&self) -> Option<EarlierChoice> {
        let is_lasting = matches!(
            self.tuned.gave_up,
            None | Some(GiveUpReason::ChangedExternally(_))
        );
        let last = self.tuned.last_choice().filter(|_| is_lasting)?;
        let point = last.choice.filter(|_| !last.outside_limits)?;
        let balanced = &self.tuned.balanced;
        let index = point.checked_sub(self.settings.len() - balanced.len());
        Some(EarlierChoice {
            settings: self.settings[point],
            each: index.map(|index| balanced[index].settings.clone()),
            gain: last.common_gain.or(last.gain)?,
            expected_regret: last.expected_regret,
        })
    }

    /// Whether no tried setting met the limits at the end of the job.
    pub fn is_outside_limits(&self) -> bool {
        self.tuned.loads.iter().any(|load| load.outside_limits)
    }

    /// Whether the tuner made a choice (possibly the reference) that stayed set until the end of the job.
    pub fn is_settled(&self) -> bool {
        self.tuned.gave_up.is_none() && !self.tuned.ended_early && !self.is_outside_limits()
    }
}
