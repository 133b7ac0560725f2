//! A choice that is held and watched.

use sweetspot_quantity::{Ratio, Seconds};

use super::super::change::changed_at;
use super::super::load::Load;
use super::super::notice::Notice;
use super::super::window::{Purpose, Window};
use super::super::{Action, Remembered, Tuning};
use super::explore::{RECHECK, USUAL_JOB};
use super::{Holding, MOST_MOVES, RECOVERY, Stage, Task, Tuner};

/// What exploring and the reference of the warm chip may draw beyond the choice, of the job's energy.
const MOST_WITH_RECHECK: f64 = 0.027;
/// By then a chip has warmed up.
const WARM: f64 = 120.0;
/// Windows in which a choice is watched.
const HOLD: (f64, f64) = (2.5, 2.5);
/// A held load that is so far off, in so many windows one after the other, is another one.
const CHANGED: f64 = 0.05;
const WINDOWS_OFF: usize = 2;

impl Tuner {
    pub(super) fn hold(&mut self, now: f64, holding: &Holding) {
        let Some(place) = self.load.choice else {
            return;
        };
        let Some(window) = self.cut(Purpose::Hold, place, (holding.from, HOLD.0, HOLD.1)) else {
            return;
        };
        self.account(now);
        let (power, rate) = (window.power.get(), window.items_per_second);
        let mut next = Holding {
            from: window.end.get(),
            ..holding.clone()
        };
        let Some(usual) = holding.usual else {
            self.load.hold(&window);
            if !self.load.is_told {
                if self.moves_on(now, place, &window) {
                    return;
                }
                self.load.is_told = true;
                let nothing_better = place == self.reference() && !self.load.outside_limits;
                let label = self.label(place);
                self.say(
                    now,
                    Notice::Holds {
                        label,
                        nothing_better,
                    },
                );
            }
            self.actions.push(Action::Tell(Tuning::Settled));
            next.usual = Some((power, rate));
            self.stage = Stage::Holding(next);
            return;
        };
        let off = |now: f64, usual: f64| now / usual - 1.0;
        let of_power = off(power, usual.0);
        let of_rate = rate.zip(usual.1).map(|(now, usual)| off(now, usual));
        let is_off = of_power.abs() > CHANGED.max(4.0 * window.noise.energy)
            || of_rate.is_some_and(|off| off.abs() > CHANGED.max(4.0 * window.noise.time));
        match is_off {
            true => next.off.push(window.clone()),
            false => next.off.clear(),
        }
        if next.off.len() >= WINDOWS_OFF {
            let notice = Notice::LoadChanged {
                rate: of_rate.map(Ratio::new),
                power: Ratio::new(of_power),
            };
            let since = changed_at(usual, &next.off[0], &window);
            self.changed_at = Some(since);
            return self.again(now, since, notice, None);
        }
        if !is_off {
            self.load.hold(&window);
            // A chip warms up for minutes; a load changes at once.
            let follow = |usual: f64, now: f64| usual + 0.1 * (now - usual);
            let rate = usual.1.zip(rate).map(|(usual, now)| follow(usual, now));
            next.usual = Some((follow(usual.0, power), rate));
        }
        self.stage = Stage::Holding(next);
        let every = self.terms.retune_every.map(Seconds::get);
        if every.is_some_and(|every| now - holding.since >= every) {
            let gain = self.load.gain_at(&self.terms, place);
            let remembered = gain.map(|gain| Remembered {
                place,
                gain,
                expected_regret: self.load.expected_regret(),
            });
            return self.again(now, now, Notice::TimeToLookAgain, remembered);
        }
        if !self.load.rechecked && place != self.reference() && self.is_time_to_recheck(now) {
            self.set(now, self.reference(), Task::Recheck);
        }
    }

    /// Whether the chip is warm, and enough is left of the job to look at the reference again.
    fn is_time_to_recheck(&self, now: f64) -> bool {
        let found = self.load.found_at.unwrap_or(now);
        let left = self.job_time(now).map_or(WARM, |job| job.get() - now);
        now - found >= WARM && left >= WARM / 2.0 && self.has_energy_to_recheck(now)
    }

    /// Whether that keeps within what exploring may draw in all.
    fn has_energy_to_recheck(&self, now: f64) -> bool {
        let job = self.job_time(now).map_or(USUAL_JOB, Seconds::get).max(now);
        let spent = self.load.cost_beyond_best(&self.terms, job);
        let more = self.load.cost_at_reference(RECHECK.1 + 1.0 + RECOVERY, job);
        spent
            .zip(more)
            .is_none_or(|(spent, more)| spent + more <= MOST_WITH_RECHECK)
    }

    /// Whether the first window at a choice speaks for another one.
    fn moves_on(&mut self, now: f64, place: usize, window: &Window) -> bool {
        if place == self.reference() || self.load.moves >= MOST_MOVES {
            return false;
        }
        self.load.tell(&self.terms, window);
        let answer = self.load.strategy().recommend();
        let answer = answer.filter(|answer| answer.point < self.terms.labels.len());
        let wanted = answer.map_or(place, |answer| answer.point);
        let verdict = self.load.verdict(&self.terms, Some(wanted));
        let regret = answer.and_then(|answer| answer.expected_regret);
        if verdict == Some(place) {
            self.load.choose(place, regret);
            return false;
        }
        self.load.moves += 1;
        self.take(now, verdict, regret);
        true
    }

    /// Begins again, at the reference, with a load that has been there since a time.
    pub(super) fn again(
        &mut self,
        now: f64,
        since: f64,
        notice: Notice,
        remembered: Option<Remembered>,
    ) {
        let is_again = notice == Notice::TimeToLookAgain;
        self.say(now, notice);
        let phase = self.load.phase.clone();
        let mut load = Load::new(&self.terms, phase, remembered, false);
        load.is_again = is_again;
        self.watch.forget_noise();
        let before = self.change_load(now, since, load);
        self.past.push(before.tuned(&self.terms));
        self.set(now, self.reference(), Task::Reference);
    }
}
