//! The stage in which the chosen setting is set and the load is watched for changes.

use sweetspot_quantity::{Ratio, Seconds};

use super::super::load::LoadSearch;
use super::super::load_change::{LoadLevel, change_time};
use super::super::notice::TuneNotice;
use super::super::window::{TuneWindow, WindowPurpose};
use super::super::{RememberedChoice, TuneAction, TuningState};
use super::exploring::{USUAL_JOB_TIME, WARM_REFERENCE_WINDOW};
use super::{HeldChoice, MAX_CHOICE_CHANGES, RECOVERY, Stage, Task, Tuner};

/// The reference is measured again only if exploring and this measurement together use at most this share of the job's
/// energy more than the chosen setting.
const MAX_EXCESS_WITH_RECHECK: f64 = 0.027;
/// The time after which a chip counts as warm, in seconds.
const WARM_UP_TIME: f64 = 120.0;
/// The shortest and the longest measurement window at the chosen setting, in seconds.
const HOLD_WINDOW: (f64, f64) = (2.5, 2.5);
/// A measurement window deviates if its power or throughput differs from the usual level by at least this share.
const MIN_DEVIATION: f64 = 0.05;
/// The load counts as changed after this many consecutive deviating measurement windows.
const DEVIATING_WINDOWS: usize = 2;

impl Tuner {
    /// Measures the load at the chosen setting, and restarts the search if the load changed.
    pub(super) fn watch_choice(&mut self, now: f64, held: &HeldChoice) {
        let Some(point) = self.load.choice else {
            return;
        };
        let Some(window) = self.take_window(
            WindowPurpose::Hold,
            point,
            (held.from, HOLD_WINDOW.0, HOLD_WINDOW.1),
        ) else {
            return;
        };
        self.account_until(now);
        let level = LoadLevel::from_window(&window);
        let mut next = HeldChoice {
            from: window.end.get(),
            ..held.clone()
        };
        let Some(usual) = held.usual else {
            return self.begin_holding(now, point, &window, next);
        };
        let change = |now: f64, usual: f64| now / usual - 1.0;
        let power_change = change(level.power, usual.power);
        let rate_change = level
            .rate
            .zip(usual.rate)
            .map(|(now, usual)| change(now, usual));
        let deviates = power_change.abs() > MIN_DEVIATION.max(4.0 * window.noise.energy)
            || rate_change
                .is_some_and(|change| change.abs() > MIN_DEVIATION.max(4.0 * window.noise.time));
        match deviates {
            true => next.deviating.push(window.clone()),
            false => next.deviating.clear(),
        }
        if next.deviating.len() >= DEVIATING_WINDOWS {
            let notice = TuneNotice::LoadChanged {
                rate: rate_change.map(Ratio::new),
                power: Ratio::new(power_change),
            };
            let since = change_time(usual, &next.deviating[0], &window);
            self.load_changed_at = Some(since);
            return self.restart_search(now, since, notice, None);
        }
        if !deviates {
            self.load.record_choice_window(&window);
            // The usual level is a slow running mean: a chip warms up over minutes, whereas a load changes at once.
            let follow = |usual: f64, now: f64| usual + 0.1 * (now - usual);
            let rates = usual.rate.zip(level.rate);
            next.usual = Some(LoadLevel {
                power: follow(usual.power, level.power),
                rate: rates.map(|(usual, now)| follow(usual, now)),
            });
        }
        self.stage = Stage::Holding(next);
        self.retune_or_recheck(now, point, held.since);
    }

    /// Stores the first measurement window at a new choice as the usual level, and notifies the user of the choice.
    fn begin_holding(&mut self, now: f64, point: usize, window: &TuneWindow, next: HeldChoice) {
        self.load.record_choice_window(window);
        if !self.load.is_announced {
            if self.change_choice(now, point, window) {
                return;
            }
            self.load.is_announced = true;
            let nothing_better = point == self.reference() && !self.load.outside_limits;
            let label = self.label(point);
            self.notify(
                now,
                TuneNotice::Holding {
                    label,
                    nothing_better,
                },
            );
        }
        if self.start_balancing(now, point) {
            return;
        }
        self.actions
            .push(TuneAction::ReportState(TuningState::Settled));
        self.stage = Stage::Holding(HeldChoice {
            usual: Some(LoadLevel::from_window(window)),
            ..next
        });
    }

    /// Starts the search again if `retune_every` of the configuration has passed; measures the reference on a warm chip
    /// if that is due.
    fn retune_or_recheck(&mut self, now: f64, point: usize, since: f64) {
        let every = self.config.retune_every.map(Seconds::get);
        if every.is_some_and(|every| now - since >= every) {
            let common = self.load.common.unwrap_or(point);
            let gain = self.load.gain_at(&self.config, common);
            let remembered = gain.map(|gain| RememberedChoice {
                point: common,
                each: self.settings_of_each(point).map(<[_]>::to_vec),
                gain: Ratio::new(gain),
                expected_regret: self.load.expected_regret().map(Ratio::new),
            });
            return self.restart_search(now, now, TuneNotice::RetuneDue, remembered);
        }
        if !self.load.late_reference.is_warm()
            && point != self.reference()
            && self.is_recheck_due(now)
        {
            self.set(now, self.reference(), Task::Recheck);
        }
    }

    /// Whether the chip is warm and enough of the job is left to measure the reference again.
    fn is_recheck_due(&self, now: f64) -> bool {
        let found = self.load.found_at.unwrap_or(now);
        let left = self
            .job_time(now)
            .map_or(WARM_UP_TIME, |job| job.get() - now);
        now - found >= WARM_UP_TIME && left >= WARM_UP_TIME / 2.0 && self.has_energy_to_recheck(now)
    }

    /// Whether another measurement of the reference stays within [`MAX_EXCESS_WITH_RECHECK`].
    fn has_energy_to_recheck(&self, now: f64) -> bool {
        let job = self
            .job_time(now)
            .map_or(USUAL_JOB_TIME, Seconds::get)
            .max(now);
        let spent = self.load.excess_over_best(&self.config, job);
        let more = self
            .load
            .excess_at_reference(WARM_REFERENCE_WINDOW.1 + 1.0 + RECOVERY, job);
        spent
            .zip(more)
            .is_none_or(|(spent, more)| spent + more <= MAX_EXCESS_WITH_RECHECK)
    }

    /// Chooses another setting if the first measurement window at the present choice shows that it is better;
    /// returns whether it did.
    fn change_choice(&mut self, now: f64, point: usize, window: &TuneWindow) -> bool {
        if point == self.reference() || self.load.choice_changes >= MAX_CHOICE_CHANGES {
            return false;
        }
        self.load.record_trial(&self.config, window);
        let answer = self.load.recommend(&self.config);
        let wanted = answer.map_or(point, |answer| answer.point);
        let chosen = self.load.choose_point(&self.config, Some(wanted));
        let regret = answer.and_then(|answer| answer.expected_regret);
        if chosen == Some(point) {
            self.load.set_choice(point, regret);
            return false;
        }
        self.load.choice_changes += 1;
        self.adopt(now, chosen, regret);
        true
    }

    /// Starts the search again at the reference, for a load that began at `since`.
    pub(super) fn restart_search(
        &mut self,
        now: f64,
        since: f64,
        notice: TuneNotice,
        remembered: Option<RememberedChoice>,
    ) {
        let is_retuned = notice == TuneNotice::RetuneDue;
        self.notify(now, notice);
        let phase = self.load.phase.clone();
        let mut load = LoadSearch::new(&self.config, phase, remembered, false);
        load.is_retuned = is_retuned;
        self.monitor.forget_noise();
        let before = self.switch_load(now, since, load);
        self.past_loads.push(before.summarise(&self.config));
        self.set(now, self.reference(), Task::Reference);
    }
}
