//! One load of a job (a time span in which the job draws steady power) and the search for its best setting.

mod cost;
mod evaluation;
mod space;

use sweetspot_decide::Outcome;
use sweetspot_decide::search::{Evaluation, Noise, SearchOptions, Strategy};
use sweetspot_device::Settings;

use super::drift::Drift;
use super::window::TuneWindow;
use super::{RememberedChoice, TuneConfig};
use crate::limit::LoadLimit;
pub(super) use space::LoadSpace;

/// The time in seconds, the energy in joules and the number of items of a part of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Consumption {
    pub(super) time: f64,
    pub(super) energy: f64,
    pub(super) items: f64,
}

impl Consumption {
    /// Adds the time, energy and items of another part.
    pub(super) fn add(&mut self, other: &Self) {
        self.time += other.time;
        self.energy += other.energy;
        self.items += other.items;
    }

    /// Subtracts the time, energy and items of an earlier total.
    pub(super) fn minus(&self, other: &Self) -> Self {
        Self {
            time: self.time - other.time,
            energy: self.energy - other.energy,
            items: self.items - other.items,
        }
    }
}

/// What the tuner does; the time and energy of a load are summed for each activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// The tuner measures the reference.
    Reference,
    /// The tuner tries settings.
    Exploring,
    /// The job runs at the chosen setting.
    Holding,
    /// The job runs at the reference and is not steady yet.
    Waiting,
}

/// The second measurement of the reference, if there is one. It is more accurate than the first, and savings are
/// computed from it.
#[derive(Clone, Debug)]
pub(super) enum LateReference {
    /// The reference was measured only once.
    None,
    /// The reference was measured again while settings were tried.
    WhileExploring(TuneWindow),
    /// The reference was measured again on a warm chip, after the choice had been set for a while.
    WarmChip(TuneWindow),
}

impl LateReference {
    /// The second measurement of the reference, if there is one.
    fn window(&self) -> Option<&TuneWindow> {
        match self {
            Self::None => None,
            Self::WhileExploring(window) | Self::WarmChip(window) => Some(window),
        }
    }

    /// Whether the second measurement was made on a warm chip.
    pub(super) const fn is_warm(&self) -> bool {
        matches!(self, Self::WarmChip(_))
    }
}

/// The search for the best setting of one load of a job, with all its measurements.
pub(super) struct LoadSearch {
    /// The named phase of the job to which the load belongs, if any.
    pub(super) phase: Option<String>,
    strategy: Box<dyn Strategy>,
    /// The share of the job's time that one trial of a setting takes; 0 until the reference is measured.
    share_of_job: f64,
    /// The points among which the strategy chooses.
    pub(super) space: LoadSpace,
    /// Whether the device rejected the knob that was chosen first.
    pub(super) has_changed_knob: bool,
    /// What limits the load at the reference; absent until the reference is measured.
    pub(super) limit: Option<LoadLimit>,
    pub(super) remembered: Option<RememberedChoice>,
    /// The settings of each GPU that an earlier search found, if they are still to be checked.
    pub(super) remembered_each: Option<Vec<Settings>>,
    pub(super) steady_since: Option<f64>,
    pub(super) reference: Option<TuneWindow>,
    pub(super) late_reference: LateReference,
    /// Whether the user was notified of the choice for this load.
    pub(super) is_announced: bool,
    /// Whether this is the same load as the previous one, tuned again because of [`TuneConfig::retune_every`].
    pub(super) is_retuned: bool,
    /// Whether a setting of its own was looked for on each GPU.
    pub(super) is_balanced: bool,
    /// The setting for all GPUs from which the choice was derived, if each GPU has a setting of its own.
    pub(super) common: Option<usize>,
    /// Whether no tried setting meets the limits.
    pub(super) outside_limits: bool,
    /// Whether the chip was idle before the load began.
    starts_cold: bool,
    /// The time at which exploring must end, in seconds since the start of the job.
    pub(super) deadline: f64,
    /// How many neighbours of the recommendation were measured.
    neighbour_checks: usize,
    /// The measurement windows of the tried settings.
    tried: Vec<TuneWindow>,
    pub(super) found_at: Option<f64>,
    pub(super) choice: Option<usize>,
    expected_regret: Option<f64>,
    /// The measurement windows at the chosen setting.
    choice_windows: Vec<TuneWindow>,
    /// How often another setting was chosen after the first choice had been set and measured.
    pub(super) choice_changes: usize,
    /// The points that the device rejected.
    rejected: Vec<usize>,
    evaluations: usize,
    /// The time, energy and items of each [`Activity`].
    consumption: [Consumption; 4],
}

/// The maximum number of evaluations by the strategy for one load: more would cost more than they gain.
const MAX_EVALUATIONS: usize = 14;
/// The strategy stops if the expected regret is below this share. It is low because another measurement near the best
/// setting costs little.
const ACCEPTABLE_REGRET: f64 = 0.0015;
/// The maximum number of neighbours of the recommended setting that are measured to check it.
const MAX_NEIGHBOUR_CHECKS: usize = 4;
/// The distances between the recommended setting and the neighbours that are measured to check it, as shares of the
/// knob's range.
const NEIGHBOUR_DISTANCES: [f64; 4] = [-0.05, 0.05, -0.025, 0.025];
/// If the gain is below this share, it may be an effect of the warming chip, and the reference is measured again.
const DRIFT_SENSITIVE_GAIN: f64 = 0.06;
/// The maximum number of stored measurement windows at the chosen setting, because jobs may run for days.
const MAX_CHOICE_WINDOWS: usize = 1000;

impl LoadSearch {
    pub(super) fn new(
        config: &TuneConfig,
        phase: Option<String>,
        remembered: Option<RememberedChoice>,
        starts_cold: bool,
    ) -> Self {
        Self {
            is_retuned: false,
            is_balanced: false,
            common: None,
            outside_limits: false,
            starts_cold,
            deadline: f64::INFINITY,
            phase,
            strategy: start_strategy(config, LoadSpace::Main, 0.0),
            share_of_job: 0.0,
            space: LoadSpace::Main,
            has_changed_knob: false,
            limit: None,
            remembered_each: remembered.as_ref().and_then(|choice| choice.each.clone()),
            remembered,
            steady_since: None,
            reference: None,
            late_reference: LateReference::None,
            is_announced: false,
            neighbour_checks: 0,
            tried: Vec::new(),
            found_at: None,
            choice: None,
            expected_regret: None,
            choice_windows: Vec::new(),
            choice_changes: 0,
            rejected: Vec::new(),
            evaluations: 0,
            consumption: [Consumption::default(); 4],
        }
    }

    /// Adds time, energy and items to the sum of an activity.
    pub(super) fn add_consumption(&mut self, activity: Activity, sum: &Consumption) {
        self.consumption[activity as usize].add(sum);
    }

    /// The time, energy and items of an activity so far.
    pub(super) fn consumption(&self, activity: Activity) -> &Consumption {
        &self.consumption[activity as usize]
    }

    /// The number of items in the reference's measurement window; all settings are compared for this number.
    fn reference_items(&self) -> Option<f64> {
        let reference = self.reference.as_ref()?;
        Some(reference.items_per_second? * reference.time().get())
    }

    /// Estimates the drift of the warming chip from all measurement windows.
    fn drift(&self) -> Drift {
        let windows: Vec<&TuneWindow> = self.tried.iter().collect();
        let since = self.steady_since.unwrap_or_default();
        Drift::estimate(&windows, since, self.starts_cold)
    }

    /// The outcome of a measurement window, corrected to a warm chip.
    fn warm_outcome(&self, config: &TuneConfig, window: &TuneWindow, drift: &Drift) -> Outcome {
        let mut outcome = window.outcome(self.reference_items(), config.gpus);
        let coldness = drift.coldness(window);
        if outcome.items.is_some() {
            outcome.time = outcome.time * (drift.time.value * coldness).exp();
            let factor = (drift.energy.value * coldness).exp();
            outcome.energy = outcome.energy.map(|energy| energy * factor);
        }
        outcome
    }

    /// Records the measurement of a tried setting and passes it to the strategy.
    pub(super) fn record_trial(&mut self, config: &TuneConfig, window: &TuneWindow) {
        self.evaluations += 1;
        self.tried.push(window.clone());
        let at_point = self.tried.iter().filter(|own| own.point == window.point);
        match at_point.count() {
            1 => self.tell_strategy(config, window, &self.drift()),
            _ => self.restart_strategy(config),
        }
    }

    /// Passes a measurement window, corrected for drift, to the strategy.
    fn tell_strategy(&mut self, config: &TuneConfig, window: &TuneWindow, drift: &Drift) {
        // A choice of an earlier run may be a setting of another knob.
        let Some(index) = self.space.index(config, window.point) else {
            return;
        };
        let outcome = Box::new(self.warm_outcome(config, window, drift));
        let coldness = drift.coldness(window);
        let noise = Some(Noise {
            time: window.noise.time.hypot(drift.time.sigma * coldness),
            energy: window.noise.energy.hypot(drift.energy.sigma * coldness),
        });
        self.strategy
            .tell(index, Evaluation::Measured { outcome, noise });
    }

    /// Passes all measurements to a new instance of the strategy: each repeated setting changes the estimated drift
    /// and therefore all corrected outcomes.
    fn restart_strategy(&mut self, config: &TuneConfig) {
        let drift = self.drift();
        self.strategy = start_strategy(config, self.space, self.share_of_job);
        for window in self.tried.clone() {
            self.tell_strategy(config, &window, &drift);
        }
        for point in self.rejected.clone() {
            self.tell_rejection(config, point);
        }
    }

    /// Tells the strategy which share of the job's time one trial of a setting takes.
    pub(super) fn set_share_of_job(&mut self, config: &TuneConfig, share: f64) {
        self.share_of_job = share;
        self.restart_strategy(config);
    }

    /// Tells the strategy that a point cannot be set.
    fn tell_rejection(&mut self, config: &TuneConfig, point: usize) {
        if let Some(index) = self.space.index(config, point) {
            self.strategy.tell(index, Evaluation::Failed);
        }
    }

    /// Records that the device rejected a point, and tells the strategy.
    pub(super) fn record_rejection(&mut self, config: &TuneConfig, point: usize) {
        self.rejected.push(point);
        self.tell_rejection(config, point);
    }

    /// The number of points of the present space that the device rejected.
    pub(super) fn rejection_count(&self, config: &TuneConfig) -> usize {
        let rejected = self.rejected.iter();
        let is_in_space = |point: &&usize| self.space.index(config, **point).is_some();
        rejected.filter(is_in_space).count()
    }

    /// Whether a setting other than the reference was measured in the present space.
    pub(super) fn has_tried_space(&self, config: &TuneConfig) -> bool {
        let points = self.tried.iter().map(|window| window.point);
        let mut others = points.filter(|point| *point != config.space.reference());
        others.any(|point| self.space.index(config, point).is_some())
    }

    /// Records a measurement window at the chosen setting.
    pub(super) fn record_choice_window(&mut self, window: &TuneWindow) {
        if self.choice_windows.len() >= MAX_CHOICE_WINDOWS {
            self.choice_windows.remove(0);
        }
        self.choice_windows.push(window.clone());
    }

    /// By how much the choice is expected to be worse than the true best setting, as a share; `None` if unknown.
    pub(super) const fn expected_regret(&self) -> Option<f64> {
        self.expected_regret
    }

    /// Stores a point as the choice for this load.
    pub(super) fn set_choice(&mut self, point: usize, expected_regret: Option<f64>) {
        if self.choice != Some(point) {
            self.choice_windows.clear();
        }
        self.choice = Some(point);
        self.expected_regret = expected_regret;
    }

    /// Whether a point was measured or rejected.
    pub(super) fn is_tried(&self, point: usize) -> bool {
        let tried = self.tried.iter().map(|window| window.point);
        tried
            .chain(self.rejected.iter().copied())
            .any(|own| own == point)
    }

    /// Records a measurement that is not passed to the strategy.
    pub(super) fn record_window(&mut self, window: TuneWindow) {
        self.tried.push(window);
    }

    /// Records a measurement of the reference on a warm chip, which is not passed to the strategy.
    pub(super) fn record_warm_reference(&mut self, window: TuneWindow) {
        self.tried.push(window.clone());
        self.late_reference = LateReference::WarmChip(window);
    }

    /// The next neighbour of the recommended setting to measure as a check; `None` if enough were measured.
    pub(super) fn next_neighbour(&mut self, config: &TuneConfig) -> Option<usize> {
        let count = self.space.settings(config).points().len();
        if self.neighbour_checks >= MAX_NEIGHBOUR_CHECKS || count < 2 {
            return None;
        }
        let answer = self.recommend(config)?.point;
        self.neighbour_checks += 1;
        self.unmeasured_neighbour(config, answer)
    }

    /// Whether the reference must be measured again because it was measured on a cold chip. A large gain needs no such
    /// check.
    pub(super) fn needs_reference_check(&mut self, config: &TuneConfig) -> bool {
        let reference = config.space.reference();
        let windows = self.tried.iter();
        let of_reference = windows.filter(|window| window.point == reference).count();
        if of_reference != 1 || self.tried.len() < 2 {
            return false;
        }
        let answer = self.recommend(config).map(|answer| answer.point);
        let gain = answer.and_then(|answer| self.gain_near(config, answer));
        gain.is_none_or(|gain| gain < DRIFT_SENSITIVE_GAIN)
    }

    /// A point at one of [`NEIGHBOUR_DISTANCES`] from the point `of`, if nothing was measured near it yet.
    fn unmeasured_neighbour(&self, config: &TuneConfig, of: usize) -> Option<usize> {
        let points = self.space.settings(config).points();
        let of = self.space.index(config, of)?;
        let [at] = points.get(of)?.as_slice() else {
            return None;
        };
        let values = || points.iter().map(|point| point[0]);
        let lowest = values().fold(f64::INFINITY, f64::min);
        let highest = values().fold(f64::NEG_INFINITY, f64::max);
        NEIGHBOUR_DISTANCES.into_iter().find_map(|share| {
            let step = share * (highest - lowest);
            let distance = |index: &usize| (points[*index][0] - at - step).abs();
            let index = (0..points.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
            let value = points[index][0];
            let tried = self.tried.iter().map(|window| window.point);
            let tried = tried.filter_map(|point| self.space.index(config, point));
            let is_known = tried.map(|tried| points[tried][0]).any(|known| {
                (known - value).abs() < step.abs() / 2.0 && (known - at) * (value - at) > 0.0
            });
            (index != of && !is_known).then(|| self.space.point(config, index))
        })
    }
}

/// Starts the strategy of the configuration, with the tuner's own limits on its evaluations.
fn start_strategy(config: &TuneConfig, space: LoadSpace, share_of_job: f64) -> Box<dyn Strategy> {
    let search = SearchOptions {
        max_evaluations: MAX_EVALUATIONS,
        acceptable_regret: ACCEPTABLE_REGRET,
        seed: config.seed,
        share_of_job,
        ..SearchOptions::default()
    };
    let space = space.settings(config).clone();
    config.strategy.start(space, &config.criteria, search)
}
