//! The state machine of the tuner: events lead from one stage to the next.

mod balancing;
mod exploring;
mod holding;
mod interruptions;
mod knob;
mod stage;

use sweetspot_quantity::{Joules, Seconds};

use super::load::{Activity, Consumption, LoadSearch};
use super::monitor::LoadMonitor;
use super::notice::{GiveUpReason, TuneNotice};
use super::outcome::{BalancedPoint, LoadOutcome, Savings, TuneOutcome};
use super::window::TuneWindow;
use super::{TuneAction, TuneConfig, TuneEvent, TuningState, needs_progress};
use balancing::Balancing;
use interruptions::CurrentPhase;
use stage::{HeldChoice, Stage, Task};

/// Finds the best setting of a job while it runs and applies it.
pub struct Tuner {
    config: TuneConfig,
    needs_progress: bool,
    monitor: LoadMonitor,
    stage: Stage,
    /// The index of the point that is set on the devices; absent if it is unknown.
    point: Option<usize>,
    /// The index of the point that the caller was asked to set; absent once the result has arrived.
    requested: Option<usize>,
    /// The present load of the job.
    load: LoadSearch,
    /// The loads of the job's other phases; each continues when its phase returns.
    other_loads: Vec<LoadSearch>,
    /// The outcomes of loads that have ended.
    past_loads: Vec<LoadOutcome>,
    phase: CurrentPhase,
    /// The time, energy and items of the job up to the time at which they were last assigned to a load.
    accounted: Option<Consumption>,
    /// The time at which the load changed, in seconds; absent once the reference of the new load is measured.
    load_changed_at: Option<f64>,
    /// The longest measurement window since this search began, settling included, in seconds.
    longest_window: f64,
    /// The time at which readings were last processed, in seconds.
    last_advance: f64,
    warned_no_progress: bool,
    /// The search for a setting of each GPU, while it goes on.
    balancing: Option<Balancing>,
    /// The points that give each GPU a setting of its own.
    balanced: Vec<BalancedPoint>,
    windows: Vec<TuneWindow>,
    notices: Vec<(Seconds, TuneNotice)>,
    has_ended: bool,
    actions: Vec<TuneAction>,
}

/// Readings are processed at most once in this time, in seconds.
const ADVANCE_INTERVAL: f64 = 0.05;
/// The time to wait after a return to the reference, in seconds: a clock falls at once but rises with a time
/// constant of up to half a second.
const RECOVERY: f64 = 2.0;
/// A load that is not steady after this time, in seconds, is tuned nevertheless.
const UNSTEADY_TIMEOUT: f64 = 60.0;
/// The maximum number of times that the tuner replaces its choice for a load after setting it.
const MAX_CHOICE_CHANGES: usize = 2;
/// The tuner gives up after this many rejected settings.
const MAX_REJECTIONS: usize = 3;

impl Tuner {
    /// Creates a tuner for a job that has not started.
    pub fn new(config: TuneConfig) -> Self {
        Self {
            needs_progress: needs_progress(&config.criteria),
            monitor: LoadMonitor::default(),
            stage: Stage::New,
            point: None,
            requested: None,
            load: LoadSearch::new(&config, None, config.remembered.clone(), true),
            other_loads: Vec::new(),
            past_loads: Vec::new(),
            phase: CurrentPhase::default(),
            accounted: None,
            load_changed_at: None,
            longest_window: 0.0,
            last_advance: f64::NEG_INFINITY,
            warned_no_progress: false,
            balancing: None,
            balanced: Vec::new(),
            windows: Vec::new(),
            notices: Vec::new(),
            has_ended: false,
            actions: Vec::new(),
            config,
        }
    }

    /// Takes an event and returns the actions to perform.
    pub fn step(&mut self, now: Seconds, event: TuneEvent) -> Vec<TuneAction> {
        let now = now.get();
        if self.has_ended || !now.is_finite() {
            return Vec::new();
        }
        if let TuneEvent::Limits(span) = event {
            // Nothing depends on it before the next reading of energy or progress.
            self.monitor.record_limits(span);
            return Vec::new();
        }
        if let TuneEvent::EnergyOfEach { at, totals } = event {
            self.monitor.record_energy_of_gpus(at.get(), &totals);
            return Vec::new();
        }
        let is_reading = matches!(event, TuneEvent::Energy { .. } | TuneEvent::Progress { .. });
        match event {
            TuneEvent::Energy { at, total } => self.monitor.record_energy(at.get(), total.get()),
            TuneEvent::Progress { at, total } => self.on_progress(now, at.get(), total),
            TuneEvent::Phase(name) => self.phase.update(name, now),
            TuneEvent::Applied(point) => self.on_applied(now, point),
            TuneEvent::Rejected { point, reason } => self.on_rejected(now, point, &reason),
            TuneEvent::ChangedExternally(what) => {
                self.give_up(now, GiveUpReason::ChangedExternally(what));
            }
            TuneEvent::Lost(what) => self.give_up(now, GiveUpReason::Lost(what)),
            TuneEvent::Ended => {
                self.account_until(now);
                self.has_ended = true;
            }
            TuneEvent::Limits(_) | TuneEvent::EnergyOfEach { .. } | TuneEvent::Tick => {}
        }
        // Thousands of readings may arrive in a second, so they are processed in groups.
        if !self.has_ended && (!is_reading || now - self.last_advance >= ADVANCE_INTERVAL) {
            self.last_advance = now;
            self.advance(now);
        }
        std::mem::take(&mut self.actions)
    }

    /// The energy saved so far by all loads together, compared with the same items at their references; absent while
    /// no reference is known.
    pub fn energy_saved(&self) -> Option<Joules> {
        let mut loads = self.past_loads.clone();
        let present = self.other_loads.iter().chain([&self.load]);
        loads.extend(present.map(|load| load.summarise(&self.config)));
        Savings::of_loads(&loads).map(|total| total.energy_saved)
    }

    /// The measurement windows so far.
    pub fn windows(&self) -> &[TuneWindow] {
        &self.windows
    }

    /// Ends tuning and returns its outcome.
    pub fn finish(mut self) -> TuneOutcome {
        let mut loads = std::mem::take(&mut self.past_loads);
        let others = self.other_loads.iter();
        loads.extend(others.map(|load| load.summarise(&self.config)));
        loads.push(self.load.summarise(&self.config));
        let total = Savings::of_loads(&loads);
        let (gave_up_at, gave_up) = match self.stage {
            Stage::GaveUp { at, reason } => (Some(at), Some(reason)),
            _ => (None, None),
        };
        let mut outcome = TuneOutcome {
            total_savings: total.map(|total| total.shares),
            energy_saved: total.map(|total| total.energy_saved),
            time_lost: total.map(|total| total.time_lost),
            loads,
            windows: self.windows,
            balanced: self.balanced,
            notices: self.notices,
            gave_up,
            gave_up_at,
            ended_early: false,
        };
        outcome.ended_early = outcome.gave_up.is_none() && outcome.last_choice().is_none();
        outcome
    }

    /// The index of the reference point.
    fn reference(&self) -> usize {
        self.config.space.reference()
    }

    /// The name of a point for display, such as `180 W`.
    fn label(&self, point: usize) -> String {
        self.config.labels.get(point).cloned().unwrap_or_default()
    }

    /// Records a notice and asks the caller to show it.
    fn notify(&mut self, now: f64, notice: TuneNotice) {
        self.notices.push((Seconds::new(now), notice.clone()));
        self.actions.push(TuneAction::Notify(notice));
    }

    /// Adds the time and energy since the last call to the activity of the present stage.
    fn account_until(&mut self, now: f64) {
        let reached = self.monitor.consumption_at(now);
        let activity = self.stage.activity();
        if let (Some(activity), Some(before), Some(reached)) = (activity, self.accounted, reached) {
            self.load.add_consumption(activity, &reached.minus(&before));
        }
        self.accounted = reached;
    }

    /// Switches to another load that began at `since`, and returns the previous load. Time and energy from `since` on
    /// are assigned to the new load.
    fn switch_load(&mut self, now: f64, since: f64, new: LoadSearch) -> LoadSearch {
        self.account_until(since.min(now));
        let mut before = std::mem::replace(&mut self.load, new);
        if self.balancing.take().is_some() {
            // The search begins again when the load returns.
            before.is_balanced = false;
        }
        let reached = self.monitor.consumption_at(now);
        if let (Some(from), Some(reached)) = (self.accounted, reached) {
            self.load
                .add_consumption(Activity::Holding, &reached.minus(&from));
        }
        self.accounted = reached;
        before
    }

    /// Switches to another stage.
    fn enter(&mut self, now: f64, stage: Stage) {
        self.account_until(now);
        self.stage = stage;
    }

    /// Asks the caller to set a point, or starts its task at once if the point is already set.
    fn set(&mut self, now: f64, point: usize, task: Task) {
        self.enter(now, Stage::Setting { point, task });
        if self.point == Some(point) && self.requested.is_none() {
            self.start_task(now, point, now);
        } else {
            self.request(point);
        }
    }

    /// Asks the caller to set a point.
    fn request(&mut self, point: usize) {
        self.requested = Some(point);
        self.actions.push(TuneAction::Set(point));
    }

    /// Handles the caller's report that a point is now set.
    fn on_applied(&mut self, now: f64, point: usize) {
        self.requested = self.requested.filter(|requested| *requested != point);
        let before = self.point.replace(point);
        let returns = point == self.reference() && before.is_some_and(|before| before != point);
        let recovery = if returns { RECOVERY } else { 0.0 };
        if matches!(self.stage, Stage::Setting { point: wanted, .. } if wanted == point) {
            self.start_task(now, point, now + self.config.settle.get() + recovery);
        }
    }

    /// Starts the task for which a point was set; readings before `from` are ignored.
    fn start_task(&mut self, now: f64, point: usize, from: f64) {
        let Stage::Setting { task, .. } = self.stage else {
            return;
        };
        let next = match task {
            Task::Reference => Stage::Waiting { since: from },
            Task::Probe | Task::Try | Task::Check | Task::Recheck | Task::Balance => {
                Stage::Measuring { point, task, from }
            }
            Task::Hold => {
                self.load.found_at.get_or_insert(now);
                Stage::Holding(HeldChoice {
                    since: now,
                    from,
                    usual: None,
                    deviating: Vec::new(),
                })
            }
        };
        self.enter(now, next);
    }

    /// Handles the caller's report that the device rejected a point.
    fn on_rejected(&mut self, now: f64, point: usize, reason: &str) {
        self.requested = self.requested.filter(|requested| *requested != point);
        let Stage::Setting {
            point: wanted,
            task,
        } = self.stage
        else {
            return;
        };
        if wanted != point {
            return;
        }
        self.load.record_rejection(&self.config, point);
        let remembered = self.load.remembered.take();
        self.load.remembered = remembered.filter(|before| before.point != point);
        let is_reference = matches!(task, Task::Reference | Task::Recheck);
        if !is_reference && self.try_other_knob(now, reason) {
            return;
        }
        let notice = TuneNotice::SettingRejected {
            label: self.label(point),
            reason: reason.to_owned(),
        };
        self.notify(now, notice);
        if is_reference || self.load.rejection_count(&self.config) >= MAX_REJECTIONS {
            self.give_up(now, GiveUpReason::SettingsRejected(reason.to_owned()));
        } else {
            match task {
                Task::Hold => self.conclude(now),
                Task::Balance => {
                    self.balancing = None;
                    self.set(
                        now,
                        self.load.choice.unwrap_or(self.reference()),
                        Task::Hold,
                    );
                }
                _ => self.try_next(now),
            }
        }
    }

    /// Stops tuning and returns to the reference, unless another program changed a setting, which is then left as it
    /// is.
    fn give_up(&mut self, now: f64, reason: GiveUpReason) {
        if matches!(self.stage, Stage::GaveUp { .. }) {
            return;
        }
        self.notify(now, TuneNotice::GaveUp(reason.clone()));
        let is_external = matches!(reason, GiveUpReason::ChangedExternally(_));
        let at = Seconds::new(now);
        self.enter(now, Stage::GaveUp { at, reason });
        if !is_external {
            self.load.set_choice(self.reference(), None);
            if self.point != Some(self.reference()) || self.requested.is_some() {
                self.request(self.reference());
            }
        }
        self.actions.push(TuneAction::ReportState(TuningState::Off));
    }

    /// Processes the latest readings according to the stage.
    fn advance(&mut self, now: f64) {
        if self.detect_stall(now) || self.detect_phase_change(now) {
            return;
        }
        match self.stage.clone() {
            Stage::New => self.set(now, self.reference(), Task::Reference),
            Stage::Waiting { since } => self.wait_for_steady_load(now, since),
            Stage::Measuring { point, task, from } => self.measure(now, point, task, from),
            Stage::Holding(choice) => self.watch_choice(now, &choice),
            Stage::Setting { .. } | Stage::Stalled(_) | Stage::GaveUp { .. } => {}
        }
    }
}
