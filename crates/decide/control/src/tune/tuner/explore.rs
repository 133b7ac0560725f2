//! From a steady load to a choice.

use sweetspot_decide::search::Proposal;
use sweetspot_quantity::{Ratio, Seconds};

use super::super::load::Sum;
use super::super::notice::{Cut, GaveUp, Notice};
use super::super::window::{Purpose, Window};
use super::super::{Action, JobLength, Remembered, Tuning, progress_is_for};
use super::{MOST_MOVES, RECOVERY, Stage, Task, Tuner, UNSTEADY};

/// The reference window: everything is compared with it.
const REFERENCE: (f64, f64) = (5.0, 7.0);
/// So many times that is a load that is noisy indeed.
const MUCH_LONGER: f64 = 1.5;
/// The reference again.
pub(super) const RECHECK: (f64, f64) = (4.0, 6.0);
/// Windows of settings that are tried: at least, at most.
const TRY: (f64, f64) = (3.0, 4.0);
/// A choice is found that soon after the load was steady, or after it changed,
const FOUND_WITHIN: f64 = 57.0;
/// but it gets this much time once it is steady.
const LEAST: f64 = 35.0;
/// What exploring may draw beyond the best setting, of the job's energy.
const MOST_BEYOND_BEST: f64 = 0.021;
/// How long a job may take to tell of its first progress.
const FIRST_PROGRESS: f64 = 60.0;
/// More noise than this between windows tells nothing.
const TOO_NOISY: f64 = 0.05;
/// What an exploration costs, as a time: about 20 s of settings that are some 15 % slower.
const USUAL_COST: f64 = 3.0;
/// The length of a job of which nothing is known.
pub(super) const USUAL_JOB: f64 = 600.0;
/// A remembered gain that is missed by more than this is not confirmed.
const AS_REMEMBERED: f64 = 0.02;

impl Tuner {
    pub(super) fn wait(&mut self, now: f64, since: f64) {
        let nothing_heard = self.with_progress && self.watch.last_report().is_none();
        if nothing_heard {
            if now > FIRST_PROGRESS && !self.said_no_progress {
                self.said_no_progress = true;
                self.say(
                    now,
                    Notice::NoProgress {
                        waited: Seconds::new(now),
                        is_for: progress_is_for(&self.terms.question).unwrap_or_default(),
                    },
                );
            }
            return;
        }
        let from = match self.watch.steady_since(since, self.with_progress) {
            Some(from) => from,
            None if now - since > UNSTEADY => {
                self.say(now, Notice::Unsteady(Seconds::new(now - since)));
                now
            }
            None => return,
        };
        self.actions.push(Action::Tell(Tuning::Exploring));
        self.load.steady_since.get_or_insert(from);
        let begun = self.changed_at.take().unwrap_or(from);
        self.load.due = (begun + FOUND_WITHIN).max(from + LEAST);
        self.account(from);
        self.stage = Stage::Measuring {
            place: self.reference(),
            task: Task::Reference,
            from,
        };
        self.advance(now);
    }

    pub(super) fn measure(&mut self, now: f64, place: usize, task: Task, from: f64) {
        let is_reference = place == self.reference();
        let (least, longest) = match task {
            Task::Reference => REFERENCE,
            Task::Recheck => RECHECK,
            _ => TRY,
        };
        let purpose = task.purpose(is_reference);
        let Some(window) = self.cut(purpose, place, (from, least, longest)) else {
            return;
        };
        self.account(now);
        match task {
            Task::Reference => {
                self.load.reference = Some(window.clone());
                self.window_took = 0.0;
                // Noise that takes longer windows takes more time in all.
                let longer = window.time().get() / REFERENCE.1;
                if longer > MUCH_LONGER {
                    self.load.due += FOUND_WITHIN * (longer - 1.0);
                }
            }
            Task::Check if is_reference => self.load.warm = Some(window.clone()),
            Task::Recheck => {
                self.load.see_reference(&window);
                self.load.warm = Some(window);
                self.load.rechecked = true;
                return self.after_recheck(now, place);
            }
            _ => {}
        }
        self.load.tell(&self.terms, &window);
        if task == Task::Reference {
            if let Some(why) = self.why_not(now, &window) {
                return self.give_up(now, why);
            }
            if let Some(place) = self.place_to_probe(&window) {
                return self.set(now, place, Task::Probe);
            }
        }
        if task == Task::Probe
            && !self.load.differs(&self.terms, place)
            && let Some((reference, lowest)) =
                self.load.reference.as_ref().zip(self.terms.lowest_cap)
        {
            let power = reference.power;
            return self.give_up(now, GaveUp::CapDoesNotBind { power, lowest });
        }
        if let Some(remembered) = self.load.remembered
            && task == Task::Try
        {
            self.load.remembered = None;
            if self.is_as_remembered(now, remembered, &window) {
                self.load.choose(place, remembered.expected_regret);
                // A strategy that has seen so little knows nothing better.
                self.load.moves = MOST_MOVES;
                return self.set(now, place, Task::Hold);
            }
        }
        self.next(now);
    }

    /// A window, if there is enough to tell its values.
    pub(super) fn cut(
        &mut self,
        purpose: Purpose,
        place: usize,
        ends: (f64, f64, f64),
    ) -> Option<Window> {
        let (window, power, rate) = self
            .watch
            .window(purpose, place, ends, self.with_progress)?;
        if purpose != Purpose::Hold {
            // A held load may change within a window, which is no noise.
            self.watch.learn(&power, rate.as_ref());
        }
        self.watch.forget_before(window.end.get() - UNSTEADY);
        if purpose == Purpose::Explore {
            let took = window.time().get() + self.terms.settle.get();
            self.window_took = self.window_took.max(took);
        }
        self.windows.push(window.clone());
        Some(window)
    }

    /// Why exploring is not worth its while, now that the reference is known.
    fn why_not(&self, now: f64, reference: &Window) -> Option<GaveUp> {
        let noise = reference.noise.time.max(reference.noise.energy);
        if noise > TOO_NOISY {
            return Some(GaveUp::TooNoisy(Ratio::new(noise)));
        }
        let job = self.job_time(now)?;
        let cost = USUAL_COST;
        let left = job.get() - now;
        let is_short = cost > self.terms.budget.get() * job.get() || left < LEAST / 2.0;
        is_short.then_some(GaveUp::TooShort { time: job })
    }

    /// The place of the lowest cap, where the job draws less on average: only a look tells whether it binds.
    fn place_to_probe(&self, reference: &Window) -> Option<usize> {
        let is_below = reference.power <= self.terms.lowest_cap?;
        self.lowest_place().filter(|_| is_below)
    }

    /// The place with the lowest of every knob, where that is not the reference.
    fn lowest_place(&self) -> Option<usize> {
        let places = self.terms.space.points();
        let sum = |place: usize| places[place].iter().sum::<f64>();
        let lowest = (0..places.len()).min_by(|a, b| sum(*a).total_cmp(&sum(*b)));
        lowest.filter(|place| *place != self.reference())
    }

    /// How long the job takes at the reference, where that can be told.
    pub(super) fn job_time(&self, now: f64) -> Option<Seconds> {
        match self.terms.job {
            JobLength::Unknown => None,
            JobLength::Time(time) => Some(time.max(Seconds::new(now))),
            JobLength::Items(items) => {
                let rate = self.load.reference.as_ref()?.items_per_second?;
                let done = self.watch.sum_at(now)?.items;
                Some(Seconds::new(now + (items - done).max(0.0) / rate))
            }
        }
    }

    fn is_as_remembered(&mut self, now: f64, before: Remembered, window: &Window) -> bool {
        let label = self.label(before.place);
        let gain = self.load.gain(&self.terms, window);
        let noise = 2.0 * (window.noise.time + window.noise.energy);
        let is = gain.is_some_and(|gain| {
            gain > self.load.least_gain(&self.terms, before.place)
                && gain >= before.gain - AS_REMEMBERED.max(noise)
        }) && self.load.keeps_limits(&self.terms, before.place);
        self.say(
            now,
            match is {
                true => Notice::AsRemembered(label),
                false => Notice::NotAsRemembered(label),
            },
        );
        is
    }

    /// Whether exploring costs enough.
    fn is_enough(&self, now: f64) -> Option<Cut> {
        let job = self.job_time(now).map_or(USUAL_JOB, Seconds::get).max(now);
        let beyond = self.load.cost_beyond_best(&self.terms, job).unwrap_or(0.0);
        if beyond > MOST_BEYOND_BEST {
            return Some(Cut::Energy);
        }
        let share = self.load.cost_share(&Sum::default(), Seconds::new(job))?;
        (share > self.terms.budget).then_some(Cut::Budget)
    }

    /// Whether there is time for so many windows more.
    fn has_time_for(&self, now: f64, windows: f64) -> bool {
        let usual = self.terms.settle.get() + TRY.1;
        now + windows * self.window_took.max(usual) <= self.load.due
    }

    /// The next place to try, or the end of it.
    pub(super) fn next(&mut self, now: f64) {
        self.account(now);
        if let Some(remembered) = self.load.remembered {
            if remembered.place != self.reference() && remembered.place < self.terms.labels.len() {
                return self.set(now, remembered.place, Task::Try);
            }
            self.load.remembered = None;
        }
        if let Some(cut) = self.is_enough(now) {
            self.say(now, Notice::Cut(cut));
            return self.conclude(now);
        }
        let asked = match self.load.strategy().ask() {
            Proposal::Evaluate(place) if place < self.terms.space.points().len() => Some(place),
            _ => None,
        };
        let check = match asked {
            None => self.load.next_check(&self.terms),
            _ => None,
        };
        let doubts = self.load.doubts_reference(&self.terms);
        let wanted = asked.or(check);
        // The last window is the reference's, where that matters.
        let for_reference = if doubts { RECOVERY } else { 0.0 };
        if let Some(place) = wanted
            && self.has_time_for(now + for_reference, if doubts { 2.0 } else { 1.0 })
        {
            let task = if asked.is_some() {
                Task::Try
            } else {
                Task::Check
            };
            return self.set(now, place, task);
        }
        if doubts && self.has_time_for(now + RECOVERY, 1.0) {
            return self.set(now, self.reference(), Task::Check);
        }
        if wanted.is_some() {
            self.say(now, Notice::Cut(Cut::Time));
        }
        self.conclude(now);
    }

    /// Takes the strategy's answer, if it keeps within the limits and is better than the reference.
    pub(super) fn conclude(&mut self, now: f64) {
        let answer = self.load.strategy().recommend();
        let answer = answer.filter(|answer| answer.point < self.terms.labels.len());
        let verdict = self
            .load
            .verdict(&self.terms, answer.map(|answer| answer.point));
        if verdict.is_none()
            && let Some(lowest) = self.lowest_place()
            && !self.load.is_tried(lowest)
        {
            return self.set(now, lowest, Task::Check);
        }
        self.take(
            now,
            verdict,
            answer.and_then(|answer| answer.expected_regret),
        );
    }

    /// Holds what was decided on: the reference where nothing keeps within the limits.
    pub(super) fn take(&mut self, now: f64, verdict: Option<usize>, regret: Option<f64>) {
        if verdict.is_none() && !self.load.outside_limits {
            self.say(now, Notice::OutsideLimits);
        }
        self.load.outside_limits = verdict.is_none();
        let place = verdict.unwrap_or(self.reference());
        self.load
            .choose(place, regret.filter(|_| verdict.is_some()));
        self.set(now, place, Task::Hold);
    }

    /// Goes on with the choice, unless it is no better than the reference on a warm chip.
    fn after_recheck(&mut self, now: f64, reference: usize) {
        let choice = self.load.choice.unwrap_or(reference);
        let gain = self.load.gain_at(&self.terms, choice);
        let least = self.load.least_gain(&self.terms, choice);
        let is_better = gain.is_none_or(|gain| gain > least)
            && (choice == reference || self.load.differs(&self.terms, choice));
        if is_better || !self.load.keeps_limits(&self.terms, reference) {
            return self.set(now, choice, Task::Hold);
        }
        self.load.is_told = false;
        self.load.moves = MOST_MOVES;
        self.take(now, Some(reference), self.load.expected_regret());
    }
}
