//! The stages from waiting for a steady load to the choice of a setting.

use sweetspot_quantity::{Ratio, Seconds};

use super::super::load::{LateReference, LoadSpace};
use super::super::notice::{EarlyStop, GiveUpReason, TuneNotice};
use super::super::window::{TuneWindow, WindowPurpose};
use super::super::{JobLength, RememberedChoice, TuneAction, TuningState, progress_requirement};
use super::{MAX_CHOICE_CHANGES, RECOVERY, Stage, Task, Tuner, UNSTEADY_TIMEOUT};

/// The shortest and the longest measurement window of the reference, in seconds.
const REFERENCE_WINDOW: (f64, f64) = (5.0, 7.0);
/// If the reference's measurement window is longer than usual by more than this factor because of noise, the time for
/// exploring is extended.
const LONG_WINDOW_FACTOR: f64 = 1.5;
/// The shortest and the longest measurement window of the reference on a warm chip, in seconds.
pub(super) const WARM_REFERENCE_WINDOW: (f64, f64) = (4.0, 6.0);
/// The shortest and the longest measurement window of a tried setting, in seconds.
const TRIAL_WINDOW: (f64, f64) = (3.0, 4.0);
/// The time for exploring after the load became steady or changed, in seconds.
const EXPLORING_TIME: f64 = 57.0;
/// The shortest time for exploring after the load became steady, in seconds.
const MIN_EXPLORING_TIME: f64 = 35.0;
/// Exploring stops if it used more energy than the same items at the best setting need, by more than this share of the
/// job's energy.
const MAX_EXCESS_OVER_BEST: f64 = 0.021;
/// The user is notified if no progress is reported within this time, in seconds.
const FIRST_PROGRESS_TIMEOUT: f64 = 10.0;
/// The tuner gives up if the relative noise of a measurement window is above this.
const MAX_NOISE: f64 = 0.05;
/// The usual cost of exploring, in seconds of lost time: about 20 s at settings that are some 15 % slower.
const TYPICAL_EXPLORING_COST_S: f64 = 3.0;
/// The assumed duration of a job of unknown length, in seconds.
pub(super) const USUAL_JOB_TIME: f64 = 600.0;
/// The choice of an earlier run is confirmed if its measured gain falls short of the remembered one by at most this.
const REMEMBERED_TOLERANCE: f64 = 0.02;

impl Tuner {
    /// Starts to measure the reference once the load is steady, or after a timeout. Readings before `since` are
    /// ignored.
    pub(super) fn wait_for_steady_load(&mut self, now: f64, since: f64) {
        let is_silent = self.needs_progress && self.monitor.last_report().is_none();
        if is_silent {
            if now > FIRST_PROGRESS_TIMEOUT && !self.warned_no_progress {
                self.warned_no_progress = true;
                self.notify(
                    now,
                    TuneNotice::NoProgress {
                        waited: Seconds::new(now),
                        needed_for: progress_requirement(&self.config.criteria).unwrap_or_default(),
                    },
                );
            }
            return;
        }
        let from = match self.monitor.steady_since(since, self.needs_progress) {
            Some(from) => from,
            None if now - since > UNSTEADY_TIMEOUT => {
                self.notify(now, TuneNotice::Unsteady(Seconds::new(now - since)));
                now
            }
            None => return,
        };
        self.actions
            .push(TuneAction::ReportState(TuningState::Exploring));
        self.load.steady_since.get_or_insert(from);
        let start = self.load_changed_at.take().unwrap_or(from);
        self.load.deadline = (start + EXPLORING_TIME).max(from + MIN_EXPLORING_TIME);
        self.account_until(from);
        self.stage = Stage::Measuring {
            point: self.reference(),
            task: Task::Reference,
            from,
        };
        self.advance(now);
    }

    /// Evaluates the measurement window at a point once it is long enough, and goes on to the next stage.
    pub(super) fn measure(&mut self, now: f64, point: usize, task: Task, from: f64) {
        let is_reference = point == self.reference();
        let (least, longest) = match task {
            Task::Reference => REFERENCE_WINDOW,
            Task::Recheck => WARM_REFERENCE_WINDOW,
            Task::Balance => self.balance_window(),
            _ => TRIAL_WINDOW,
        };
        let purpose = task.purpose(is_reference);
        let Some(window) = self.take_window(purpose, point, (from, least, longest)) else {
            return;
        };
        self.account_until(now);
        match task {
            Task::Balance => return self.balance(now, point, window),
            Task::Reference => {
                self.load.reference = Some(window.clone());
                self.longest_window = 0.0;
                // A noisy load needs longer measurement windows and therefore more time for exploring.
                let factor = window.time().get() / REFERENCE_WINDOW.1;
                if factor > LONG_WINDOW_FACTOR {
                    self.load.deadline += EXPLORING_TIME * (factor - 1.0);
                }
            }
            Task::Check if is_reference => {
                self.load.late_reference = LateReference::WhileExploring(window.clone());
            }
            Task::Recheck => {
                self.load.record_warm_reference(window);
                return self.after_recheck(now, point);
            }
            _ => {}
        }
        self.load.record_trial(&self.config, &window);
        if task == Task::Reference {
            let share = self.share_of_trial(now);
            self.load.set_share_of_job(&self.config, share);
            self.load.limit = Some(self.load_limit(&window));
            if let Some(reason) = self.reason_to_give_up(now, &window) {
                return self.give_up(now, reason);
            }
            if let Some(reason) = self.choose_knob(now, &window) {
                return self.give_up(now, reason);
            }
            if let Some(point) = self.point_to_probe(&window) {
                return self.set(now, point, Task::Probe);
            }
        }
        if task == Task::Probe
            && !self.load.differs_from_reference(&self.config, point)
            && let Some((reference, lowest)) =
                self.load.reference.as_ref().zip(self.config.lowest_cap)
        {
            let reason = GiveUpReason::CapDoesNotBind {
                power: reference.power,
                lowest,
                suggests_clocks: self.config.suggests_clocks,
            };
            return self.give_up(now, reason);
        }
        if task == Task::Try
            && let Some(remembered) = self.load.remembered.take()
        {
            if self.confirms_remembered(now, &remembered, &window) {
                let regret = remembered.expected_regret.map(Ratio::get);
                self.load.set_choice(point, regret);
                // The strategy has too few measurements to recommend another setting later.
                self.load.choice_changes = MAX_CHOICE_CHANGES;
                return self.set(now, point, Task::Hold);
            }
        }
        self.try_next(now);
    }

    /// Computes the measurement window that begins at `from`; `None` until there are enough readings.
    pub(super) fn take_window(
        &mut self,
        purpose: WindowPurpose,
        point: usize,
        ends: (f64, f64, f64),
    ) -> Option<TuneWindow> {
        let (window, power, rate) =
            self.monitor
                .window(purpose, point, ends, self.needs_progress)?;
        if purpose != WindowPurpose::Hold {
            // While the choice is set, the load may change within a window; that is not noise.
            self.monitor.learn_noise(&power, rate.as_ref());
        }
        self.monitor
            .forget_before(window.end.get() - UNSTEADY_TIMEOUT);
        if purpose == WindowPurpose::Explore {
            let took = window.time().get() + self.config.settle.get();
            self.longest_window = self.longest_window.max(took);
        }
        self.windows.push(window.clone());
        Some(window)
    }

    /// Why exploring is not worthwhile for this reference; `None` if it is.
    fn reason_to_give_up(&self, now: f64, reference: &TuneWindow) -> Option<GiveUpReason> {
        let noise = reference.noise.time.max(reference.noise.energy);
        if noise > MAX_NOISE {
            return Some(GiveUpReason::TooNoisy(Ratio::new(noise)));
        }
        let job = self.job_time(now)?;
        let left = job.get() - now;
        let is_short = TYPICAL_EXPLORING_COST_S > self.config.budget.get() * job.get()
            || left < MIN_EXPLORING_TIME / 2.0;
        is_short.then_some(GiveUpReason::TooShort { time: job })
    }

    /// The point with the lowest power cap, if the mean power is below that cap; a measurement there shows whether
    /// peaks of the power reach the cap.
    pub(super) fn point_to_probe(&self, reference: &TuneWindow) -> Option<usize> {
        let is_below = reference.power <= self.config.lowest_cap?;
        let space = self.load.space;
        let lowest = space.lowest_point(&self.config);
        lowest.filter(|_| is_below && space == LoadSpace::Main)
    }

    /// The duration of the whole job at the reference; `None` if the length of the job is unknown.
    pub(super) fn job_time(&self, now: f64) -> Option<Seconds> {
        match self.config.job {
            JobLength::Unknown => None,
            JobLength::Time(time) => Some(time.max(Seconds::new(now))),
            JobLength::Items(items) => {
                let rate = self.load.reference.as_ref()?.items_per_second?;
                let done = self.monitor.consumption_at(now)?.items;
                Some(Seconds::new(now + (items - done).max(0.0) / rate))
            }
        }
    }

    /// The share of the job's remaining time that one trial of a setting takes, the change and its settling included.
    fn share_of_trial(&self, now: f64) -> f64 {
        let job = self.job_time(now).map_or(USUAL_JOB_TIME, Seconds::get);
        let trial = self.config.settle.get() + TRIAL_WINDOW.1;
        trial / (job - now).max(trial)
    }

    /// Whether a measurement window confirms the choice of an earlier run. Notifies the user of the result.
    fn confirms_remembered(
        &mut self,
        now: f64,
        remembered: &RememberedChoice,
        window: &TuneWindow,
    ) -> bool {
        let label = self.label(remembered.point);
        let gain = self.load.gain(&self.config, window);
        let noise = 2.0 * (window.noise.time + window.noise.energy);
        let is_confirmed = gain.is_some_and(|gain| {
            gain > self.load.min_gain(&self.config, remembered.point)
                && gain >= remembered.gain.get() - REMEMBERED_TOLERANCE.max(noise)
        }) && self.load.meets_limits(&self.config, remembered.point);
        self.notify(
            now,
            match is_confirmed {
                true => TuneNotice::RememberedConfirmed(label),
                false => TuneNotice::RememberedNotConfirmed(label),
            },
        );
        is_confirmed
    }

    /// Whether the cost of exploring is too high, and which limit it exceeds; `None` if exploring may continue.
    fn cost_stop(&self, now: f64) -> Option<EarlyStop> {
        let job = self
            .job_time(now)
            .map_or(USUAL_JOB_TIME, Seconds::get)
            .max(now);
        let excess = self.load.excess_over_best(&self.config, job).unwrap_or(0.0);
        if excess > MAX_EXCESS_OVER_BEST {
            return Some(EarlyStop::Energy);
        }
        let share = self.load.cost_share(Seconds::new(job))?;
        (share > self.config.budget).then_some(EarlyStop::Budget)
    }

    /// Whether there is time for this many further measurement windows before the deadline.
    fn has_time_for(&self, now: f64, windows: f64) -> bool {
        let usual = self.config.settle.get() + TRIAL_WINDOW.1;
        now + windows * self.longest_window.max(usual) <= self.load.deadline
    }

    /// Sets the next point to measure, or ends exploring.
    pub(super) fn try_next(&mut self, now: f64) {
        self.account_until(now);
        let is_known = |point: usize| point != self.reference() && point < self.config.labels.len();
        match self.load.remembered.as_ref().map(|choice| choice.point) {
            Some(point) if is_known(point) => return self.set(now, point, Task::Try),
            _ => self.load.remembered = None,
        }
        if let Some(stop) = self.cost_stop(now) {
            self.notify(now, TuneNotice::StoppedEarly(stop));
            return self.conclude(now);
        }
        let asked = self.load.next_proposal(&self.config);
        let neighbour = match asked {
            None => self.load.next_neighbour(&self.config),
            _ => None,
        };
        let checks_reference = self.load.needs_reference_check(&self.config);
        let wanted = asked.or(neighbour);
        // If the reference must be measured again, the last measurement window is reserved for it.
        let (recovery, windows) = match checks_reference {
            true => (RECOVERY, 2.0),
            false => (0.0, 1.0),
        };
        if let Some(point) = wanted
            && self.has_time_for(now + recovery, windows)
        {
            let task = if asked.is_some() {
                Task::Try
            } else {
                Task::Check
            };
            return self.set(now, point, task);
        }
        if checks_reference && self.has_time_for(now + RECOVERY, 1.0) {
            return self.set(now, self.reference(), Task::Check);
        }
        if wanted.is_some() {
            self.notify(now, TuneNotice::StoppedEarly(EarlyStop::Time));
        }
        self.conclude(now);
    }

    /// Chooses the strategy's recommendation if it meets the limits and is better than the reference, and otherwise
    /// the reference.
    pub(super) fn conclude(&mut self, now: f64) {
        let answer = self.load.recommend(&self.config);
        let chosen = self
            .load
            .choose_point(&self.config, answer.map(|answer| answer.point));
        if chosen.is_none()
            && let Some(lowest) = self.load.space.lowest_point(&self.config)
            && !self.load.is_tried(lowest)
        {
            return self.set(now, lowest, Task::Check);
        }
        self.adopt(
            now,
            chosen,
            answer.and_then(|answer| answer.expected_regret),
        );
    }

    /// Sets the chosen point, or the reference if no point meets the limits.
    pub(super) fn adopt(&mut self, now: f64, chosen: Option<usize>, regret: Option<f64>) {
        if chosen.is_none() && !self.load.outside_limits {
            self.notify(now, TuneNotice::OutsideLimits);
        }
        self.load.outside_limits = chosen.is_none();
        let point = chosen.unwrap_or(self.reference());
        self.load
            .set_choice(point, regret.filter(|_| chosen.is_some()));
        self.set(now, point, Task::Hold);
    }

    /// After the reference was measured on a warm chip: returns to the chosen setting, or stays at the reference if the
    /// choice is no better.
    fn after_recheck(&mut self, now: f64, reference: usize) {
        let choice = self.load.choice.unwrap_or(reference);
        let gain = self.load.gain_at(&self.config, choice);
        let least = self.load.min_gain(&self.config, choice);
        let is_better = gain.is_none_or(|gain| gain > least)
            && (choice == reference || self.load.differs_from_reference(&self.config, choice));
        if is_better || !self.load.meets_limits(&self.config, reference) {
            return self.set(now, choice, Task::Hold);
        }
        self.load.is_announced = false;
        self.load.choice_changes = MAX_CHOICE_CHANGES;
        self.adopt(now, Some(reference), self.load.expected_regret());
    }
}
