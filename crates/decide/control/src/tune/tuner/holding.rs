//! The stage that holds and watches the choice.

use sweetspot_quantity::{Ratio, Seconds};

use super::super::load::LoadSearch;
use super::super::load_change::{LoadLevel, change_time};
use super::super::notice::TuneNotice;
use super::super::window::{TuneWindow, WindowPurpose};
use super::super::{RememberedChoice, TuneAction, TuningState};
use super::exploring::{USUAL_JOB_TIME, WARM_REFERENCE_WINDOW};
use super::{HeldChoice, MAX_MOVES, RECOVERY, Stage, Task, Tuner};

/// The largest energy of exploring and of the reference on a warm chip beyond the choice, as a share of the job's
/// energy.
const MAX_EXCESS_WITH_RECHECK: f64 = 0.027;
/// The time after which a chip has warmed up, in seconds.
const WARM_UP_TIME: f64 = 120.0;
/// The shortest and the longest window at the choice, in seconds.
const HOLD_WINDOW: (f64, f64) = (2.5, 2.5);
/// The smallest relative deviation of a changed load.
const MIN_DEVIATION: f64 = 0.05;
/// The load has changed after this many consecutive deviating windows.
const DEVIATING_WINDOWS: usize = 2;

impl Tuner {
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
        let level = LoadLevel::of(&window);
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
            self.load.record_held(&window);
            // The usual level follows slowly, because a chip warms up for minutes and a load changes at once.
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

    /// Takes the first window of a held choice as the usual level, and announces the choice.
    fn begin_holding(&mut self, now: f64, point: usize, window: &TuneWindow, next: HeldChoice) {
        self.load.record_held(window);
        if !self.load.is_announced {
            if self.moves_choice(now, point, window) {
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
        self.actions
            .push(TuneAction::ReportState(TuningState::Settled));
        self.stage = Stage::Holding(HeldChoice {
            usual: Some(LoadLevel::of(window)),
            ..next
        });
    }

    /// Searches again when it is time to, or measures the reference on a warm chip.
    fn retune_or_recheck(&mut self, now: f64, point: usize, since: f64) {
        let every = self.config.retune_every.map(Seconds::get);
        if every.is_some_and(|every| now - since >= every) {
            let gain = self.load.gain_at(&self.config, point);
            let remembered = gain.map(|gain| RememberedChoice {
                point,
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

    /// Whether the reference can be measured again within the energy that exploring may draw.
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

    /// Moves to another choice if the first window at the present one favours it; returns whether it did.
    fn moves_choice(&mut self, now: f64, point: usize, window: &TuneWindow) -> bool {
        if point == self.reference() || self.load.moves >= MAX_MOVES {
            return false;
        }
        self.load.record_trial(&self.config, window);
        let answer = self.load.strategy().recommend();
        let answer = answer.filter(|answer| answer.point < self.config.labels.len());
        let wanted = answer.map_or(point, |answer| answer.point);
        let chosen = self.load.choose_point(&self.config, Some(wanted));
        let regret = answer.and_then(|answer| answer.expected_regret);
        if chosen == Some(point) {
            self.load.set_choice(point, regret);
            return false;
        }
        self.load.moves += 1;
        self.adopt(now, chosen, regret);
        true
    }

    /// Starts the search again at the reference, with a load that has been present since a time.
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
