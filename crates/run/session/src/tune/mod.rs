//! `tune`: the best setting of a training while it runs, in virtual and in real time.

mod choices;
mod meter;
mod phases;
mod real;
mod simulated;
mod space;

pub use choices::{ChoiceError, ChoiceStore};
pub use simulated::SimulatedJob;

use std::ffi::OsString;
use std::fmt::{Display, Formatter};
use std::str::FromStr;

use sweetspot_control::tune::{
    GiveUpReason, RememberedChoice, TuneConfig, TuneOutcome, find_unsupported_flag,
};
use sweetspot_decide::Question;
use sweetspot_decide::search::StrategyName;
use sweetspot_device::{Descriptor, Settings};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};
use sweetspot_workload::{Ended, GuardProgram};

use crate::SessionError;
use crate::measure::ProgressPattern;
use crate::observer::Observer;
use choices::{Choice, Fingerprint};
use space::Places;

/// What is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TuneKnob {
    /// The power cap.
    #[default]
    PowerCap,
    /// The lock of the core clock.
    CoreClock,
    /// One and the other.
    Both,
}

/// Text that names no knob to tune.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be tuned: write power-cap, core-clock or both")]
pub struct TuneKnobError(String);

impl FromStr for TuneKnob {
    type Err = TuneKnobError;

    fn from_str(text: &str) -> Result<Self, TuneKnobError> {
        match text {
            "power-cap" => Ok(Self::PowerCap),
            "core-clock" => Ok(Self::CoreClock),
            "both" => Ok(Self::Both),
            _ => Err(TuneKnobError(text.to_owned())),
        }
    }
}

impl Display for TuneKnob {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::PowerCap => "power-cap",
            Self::CoreClock => "core-clock",
            Self::Both => "both",
        })
    }
}

/// How a job is tuned.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    /// What is set.
    pub knob: TuneKnob,
    /// What is wanted.
    pub question: Question,
    /// How it is searched for.
    pub strategy: StrategyName,
    /// What exploring may cost, of the job's time or energy.
    pub budget: Ratio,
    /// How long a choice is held before it is looked for again.
    pub retune_every: Option<Seconds>,
    /// Of random draws.
    pub seed: u64,
}

/// A command to tune.
#[derive(Clone, Debug)]
pub struct TunedCommand {
    /// Which GPUs, where the user says.
    pub device: Option<String>,
    /// The command.
    pub command: Vec<OsString>,
    /// How progress shows in its output.
    pub progress: Option<ProgressPattern>,
    /// Whether standard output is taken by a document.
    pub keep_stdout: bool,
    /// No write is allowed.
    pub read_only: bool,
    /// Whether what an earlier run chose is not looked at.
    pub fresh: bool,
}

/// A job that was tuned.
#[derive(Clone, Debug)]
pub struct TunedJob {
    /// The command, or the simulated workload.
    pub workload: String,
    /// The GPUs.
    pub devices: Vec<Descriptor>,
    /// What is set.
    pub knob: TuneKnob,
    /// What was wanted.
    pub question: Question,
    /// How it was searched for.
    pub strategy: StrategyName,
    /// What each place sets.
    pub settings: Vec<Settings>,
    /// What each place is called.
    pub labels: Vec<String>,
    /// The place that everything was compared with.
    pub reference: usize,
    /// What tuning came to.
    pub tuned: TuneOutcome,
    /// From the job's start to its end.
    pub time: Seconds,
    /// Drawn by all GPUs.
    pub energy: Option<Joules>,
    /// Done, where known.
    pub items: Option<f64>,
    /// When each workload of a simulated job began.
    pub begins: Vec<Seconds>,
    /// Power of all GPUs together over time.
    pub power: Vec<(Seconds, Watts)>,
    /// How the command ended, where there is one.
    pub ended: Option<Ended>,
    /// Whether every device is as before.
    pub restored: bool,
}

impl TunedJob {
    /// What is held at the end, where something was chosen.
    pub fn choice(&self) -> Option<usize> {
        let last = self.tuned.last_choice().or(self.tuned.loads.last());
        last?.choice
    }

    /// Whether no setting kept within the limits.
    pub fn is_outside_limits(&self) -> bool {
        self.tuned.loads.iter().any(|load| load.outside_limits)
    }

    /// Whether a setting was found and held to the end of the job, the reference where nothing is better.
    pub fn is_settled(&self) -> bool {
        self.tuned.gave_up.is_none() && !self.tuned.ended_early && !self.is_outside_limits()
    }
}

/// Tunes a command on real GPUs. `guard` makes the program that serves as guard; `store` keeps choices across
/// runs, where there is one.
pub fn tune(
    request: &TuneRequest,
    command: &TunedCommand,
    store: Option<&ChoiceStore>,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<TunedJob, SessionError> {
    check(&request.question)?;
    real::tune(request, command, store, guard, observer)
}

/// Tunes a job on simulated GPUs in virtual time.
pub fn tune_simulated(
    request: &TuneRequest,
    job: &SimulatedJob,
    store: Option<&ChoiceStore>,
    observer: &mut dyn Observer,
) -> Result<TunedJob, SessionError> {
    check(&request.question)?;
    simulated::tune(request, job, store, observer)
}

/// Whether windows of a running job can answer a question.
fn check(question: &Question) -> Result<(), SessionError> {
    match find_unsupported_flag(question) {
        Some((flag, problem)) => Err(SessionError::Question { flag, problem }),
        None => Ok(()),
    }
}

/// From a change of the setting to readings of the new one alone: clocks settle in 0.2 s, sensors are 0.1 s
/// late, and one that averages over a second needs more.
fn settle(devices: &[Descriptor]) -> Seconds {
    use sweetspot_device::SensorKind::{BufferedPower, EnergyCounter};
    let is_quick = |device: &Descriptor| {
        device.sensor(EnergyCounter).is_some() || device.sensor(BufferedPower).is_some()
    };
    Seconds::new(match devices.iter().all(is_quick) {
        true => 1.0,
        false => 1.6,
    })
}

/// The terms of a job on these GPUs, with what an earlier run chose.
fn terms(
    request: &TuneRequest,
    devices: &[Descriptor],
    places: &Places,
    remembered: Option<&Choice>,
) -> TuneConfig {
    let count = devices.len();
    TuneConfig {
        space: places.space.clone(),
        labels: places.labels.clone(),
        question: request.question.clone(),
        strategy: request.strategy,
        gpus: count as u64,
        settle: settle(devices),
        budget: request.budget,
        job: Default::default(),
        retune_every: request.retune_every,
        remembered: remembered.and_then(|choice| {
            Some(RememberedChoice {
                place: places.find(&choice.settings)?,
                gain: Ratio::new(choice.gain),
                expected_regret: choice.expected_regret.map(Ratio::new),
            })
        }),
        lowest_cap: places.lowest_cap.map(|cap| cap * count as f64),
        seed: request.seed,
    }
}

/// What makes a job the same as an earlier one.
fn fingerprint(
    request: &TuneRequest,
    devices: &[Descriptor],
    workload: &str,
    simulated: bool,
) -> Fingerprint {
    Fingerprint {
        gpu: devices[0].name.clone(),
        gpus: devices.len(),
        simulated,
        workload: workload.to_owned(),
        knob: request.knob.to_string(),
        objective: request.question.objective.to_string(),
        limits: request
            .question
            .limits
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

/// What an earlier run chose; what is wrong with the store is told, and the job goes on without it.
fn recall(
    store: Option<&ChoiceStore>,
    print: &Fingerprint,
    observer: &mut dyn Observer,
) -> Option<Choice> {
    match store?.recall(print) {
        Ok(choice) => choice,
        Err(problem) => {
            observer.note(&problem.to_string());
            None
        }
    }
}

/// Keeps what a job's last load chose, if it was sure of it; somebody else's cap later does not change that.
fn remember(
    store: Option<&ChoiceStore>,
    print: &Fingerprint,
    job: &TunedJob,
    observer: &mut dyn Observer,
) {
    let Some(store) = store else { return };
    if !matches!(
        job.tuned.gave_up,
        None | Some(GiveUpReason::ChangedExternally(_))
    ) {
        return;
    }
    let last = job.tuned.last_choice().filter(|load| !load.outside_limits);
    let chosen = last.and_then(|load| Some((load.choice?, load.gain?, load.expected_regret)));
    let Some((place, gain, expected_regret)) = chosen else {
        return;
    };
    let choice = Choice {
        settings: job.settings[place],
        gain: gain.get(),
        expected_regret: expected_regret.map(Ratio::get),
        time_s: job.time.get(),
    };
    if let Err(problem) = store.remember(print, &choice) {
        observer.note(&problem.to_string());
    }
}
