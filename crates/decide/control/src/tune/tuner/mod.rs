//! The state machine: what happens, and what stage it leads to.

mod explore;
mod hold;

use sweetspot_quantity::Seconds;

use super::claim::{Claim, Tuned, TunedLoad};
use super::load::{Load, Spent, Sum};
use super::notice::{GaveUp, Notice};
use super::watch::Watch;
use super::window::{Purpose, Window};
use super::{Action, Event, Terms, Tuning, needs_progress};

/// Finds and holds the best setting of a job while it runs.
pub struct Tuner {
    terms: Terms,
    with_progress: bool,
    watch: Watch,
    stage: Stage,
    /// What is in force.
    place: Option<usize>,
    /// What was asked for and is not answered yet.
    asked: Option<usize>,
    load: Load,
    /// Loads of other phases, and those that are no more.
    others: Vec<Load>,
    past: Vec<TunedLoad>,
    phase: (Option<String>, f64),
    /// Up to where the present load's sums are made.
    accounted: Option<Sum>,
    /// When the load changed that is looked at now.
    changed_at: Option<f64>,
    /// The longest window of this exploration, with its settling.
    window_took: f64,
    looked: f64,
    said_no_progress: bool,
    windows: Vec<Window>,
    notices: Vec<(Seconds, Notice)>,
    gave_up: Option<(Seconds, GaveUp)>,
    ended: bool,
    actions: Vec<Action>,
}

#[derive(Clone, Debug)]
enum Stage {
    /// Nothing was asked for yet.
    New,
    /// A place was asked for.
    Setting(usize, Task),
    /// For a steady load, at the reference.
    Waiting { since: f64 },
    /// A window is open.
    Measuring { place: usize, task: Task, from: f64 },
    /// The choice is held.
    Holding(Holding),
    /// The same, but progress has stopped coming.
    Stalled(Box<Stage>),
    /// Nothing more is done.
    Resting,
}

/// What a setting is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// The reference, for the first time.
    Reference,
    /// The lowest cap, where the mean draw is below it: peaks may reach it all the same.
    Probe,
    /// A setting that the strategy or an earlier run wants tried.
    Try,
    /// A neighbour of the answer, or the reference again, before the answer is taken.
    Check,
    /// The reference again, now that the chip is warm: savings are claimed against it.
    Recheck,
    /// The choice.
    Hold,
}

impl Task {
    const fn purpose(self, is_reference: bool) -> Purpose {
        match self {
            Self::Reference | Self::Recheck => Purpose::Reference,
            Self::Check if is_reference => Purpose::Reference,
            Self::Probe | Self::Try | Self::Check => Purpose::Explore,
            Self::Hold => Purpose::Hold,
        }
    }
}

#[derive(Clone, Debug)]
struct Holding {
    since: f64,
    from: f64,
    usual: Option<(f64, Option<f64>)>,
    /// The windows that were off, one after the other, until now.
    off: Vec<Window>,
}

/// Readings are looked at no more often.
const LOOK: f64 = 0.05;
/// A clock falls at once and rises slowly, by a time constant of up to half a second: what everything is
/// compared with waits for it.
const RECOVERY: f64 = 2.0;
/// A load that is not steady by then is taken as it is.
const UNSTEADY: f64 = 60.0;
/// Progress that is not heard of for so long has stalled; so many times the usual gap, where that is more.
const STALLED: f64 = 10.0;
const GAPS: f64 = 10.0;
/// A phase that lasts so long is a load of its own; so many reports of progress, where that is more.
const PHASE: f64 = 5.0;
/// A choice moves so often once it is held.
const MOST_MOVES: usize = 2;
/// Refusals until nothing more is tried.
const MOST_REFUSALS: usize = 3;

impl Tuner {
    /// Ready for a job's first event.
    pub fn new(terms: Terms) -> Self {
        Self {
            with_progress: needs_progress(&terms.question),
            watch: Watch::default(),
            stage: Stage::New,
            place: None,
            asked: None,
            load: Load::new(&terms, None, terms.remembered, true),
            others: Vec::new(),
            past: Vec::new(),
            phase: (None, 0.0),
            accounted: None,
            changed_at: None,
            window_took: 0.0,
            looked: f64::NEG_INFINITY,
            said_no_progress: false,
            windows: Vec::new(),
            notices: Vec::new(),
            gave_up: None,
            ended: false,
            actions: Vec::new(),
            terms,
        }
    }

    /// What is to be done now that something has happened.
    pub fn step(&mut self, now: Seconds, event: Event) -> Vec<Action> {
        let now = now.get();
        if self.ended || !now.is_finite() {
            return Vec::new();
        }
        let is_reading = matches!(event, Event::Energy { .. } | Event::Progress { .. });
        match event {
            Event::Energy { at, total } => self.watch.drew(at.get(), total.get()),
            Event::Progress { at, total } => self.progress(now, at.get(), total),
            Event::Phase(name) => {
                if name != self.phase.0 {
                    self.phase = (name, now);
                }
            }
            Event::Applied(place) => self.applied(now, place),
            Event::Refused { place, why } => self.refused(now, place, &why),
            Event::Changed(what) => self.give_up(now, GaveUp::Changed(what)),
            Event::Ended => {
                self.account(now);
                self.ended = true;
            }
            Event::Tick => {}
        }
        // Readings may come by the thousand; what they say together is looked at now and then.
        if !self.ended && (!is_reading || now - self.looked >= LOOK) {
            self.looked = now;
            self.advance(now);
        }
        std::mem::take(&mut self.actions)
    }

    /// What it came to.
    pub fn finish(mut self) -> Tuned {
        let mut loads = std::mem::take(&mut self.past);
        loads.extend(self.others.iter().map(|load| load.tuned(&self.terms)));
        loads.push(self.load.tuned(&self.terms));
        let whole = Claim::of_all(&loads);
        let gave_up_at = self.gave_up.as_ref().map(|(at, _)| *at);
        let mut tuned = Tuned {
            whole: whole.map(|(claim, _)| claim),
            energy_saved: whole.map(|(_, saved)| saved),
            loads,
            windows: self.windows,
            notices: self.notices,
            gave_up: self.gave_up.map(|(_, why)| why),
            gave_up_at,
            ended_early: false,
        };
        tuned.ended_early = tuned.gave_up.is_none() && tuned.last_choice().is_none();
        tuned
    }

    fn reference(&self) -> usize {
        self.terms.space.reference()
    }

    fn label(&self, place: usize) -> String {
        self.terms.labels.get(place).cloned().unwrap_or_default()
    }

    fn say(&mut self, now: f64, notice: Notice) {
        self.notices.push((Seconds::new(now), notice.clone()));
        self.actions.push(Action::Say(notice));
    }

    /// Adds what was spent since the last time to what the present stage spends on.
    fn account(&mut self, now: f64) {
        let on = match &self.stage {
            Stage::New => None,
            Stage::Waiting { .. } | Stage::Setting(_, Task::Reference) => Some(Spent::Waiting),
            Stage::Measuring {
                task: Task::Reference,
                ..
            } => Some(Spent::Reference),
            Stage::Setting(..) | Stage::Measuring { .. } => Some(Spent::Exploring),
            Stage::Holding(_) => Some(Spent::Holding),
            // What somebody else's setting comes to is not ours to claim.
            Stage::Resting if matches!(self.gave_up, Some((_, GaveUp::Changed(_)))) => None,
            Stage::Resting => Some(Spent::Reference),
            Stage::Stalled(_) => None,
        };
        let reached = self.watch.sum_at(now);
        if let (Some(on), Some(before), Some(reached)) = (on, self.accounted, reached) {
            self.load.spend(on, &reached.less(&before));
        }
        self.accounted = reached;
    }

    /// Goes over to another load, which has been there since a time that has passed: what was spent since is
    /// its own, and would have cost what its own reference says.
    fn change_load(&mut self, now: f64, since: f64, other: Load) -> Load {
        self.account(since.min(now));
        let before = std::mem::replace(&mut self.load, other);
        let reached = self.watch.sum_at(now);
        if let (Some(from), Some(reached)) = (self.accounted, reached) {
            self.load.spend(Spent::Holding, &reached.less(&from));
        }
        self.accounted = reached;
        before
    }

    fn enter(&mut self, now: f64, stage: Stage) {
        self.account(now);
        self.stage = stage;
    }

    /// Asks for a place, or goes on at once where it is in force already.
    fn set(&mut self, now: f64, place: usize, task: Task) {
        self.enter(now, Stage::Setting(place, task));
        if self.place == Some(place) && self.asked.is_none() {
            self.set_already(now, place, now);
        } else {
            self.ask_for(place);
        }
    }

    fn ask_for(&mut self, place: usize) {
        self.asked = Some(place);
        self.actions.push(Action::Set(place));
    }

    fn applied(&mut self, now: f64, place: usize) {
        self.asked = self.asked.filter(|asked| *asked != place);
        let before = self.place.replace(place);
        let rises = place == self.reference() && before.is_some_and(|before| before != place);
        let recovery = if rises { RECOVERY } else { 0.0 };
        if matches!(self.stage, Stage::Setting(asked, _) if asked == place) {
            self.set_already(now, place, now + self.terms.settle.get() + recovery);
        }
    }

    fn set_already(&mut self, now: f64, place: usize, from: f64) {
        let Stage::Setting(_, task) = self.stage else {
            return;
        };
        let next = match task {
            Task::Reference => Stage::Waiting { since: from },
            Task::Probe | Task::Try | Task::Check | Task::Recheck => {
                Stage::Measuring { place, task, from }
            }
            Task::Hold => {
                self.load.found_at.get_or_insert(now);
                Stage::Holding(Holding {
                    since: now,
                    from,
                    usual: None,
                    off: Vec::new(),
                })
            }
        };
        self.enter(now, next);
    }

    fn refused(&mut self, now: f64, place: usize, why: &str) {
        self.asked = self.asked.filter(|asked| *asked != place);
        let Stage::Setting(asked, task) = self.stage else {
            return;
        };
        if asked != place {
            return;
        }
        let label = self.label(place);
        self.say(
            now,
            Notice::Refused {
                label,
                why: why.to_owned(),
            },
        );
        self.load.fail(place);
        self.load.remembered = self.load.remembered.filter(|before| before.place != place);
        let is_lost = matches!(task, Task::Reference | Task::Recheck);
        if is_lost || self.load.refusals >= MOST_REFUSALS {
            self.give_up(now, GaveUp::Refused(why.to_owned()));
        } else {
            match task {
                Task::Hold => self.conclude(now),
                _ => self.next(now),
            }
        }
    }

    /// Leaves the job at the reference, or where somebody else set it.
    fn give_up(&mut self, now: f64, why: GaveUp) {
        if matches!(self.stage, Stage::Resting) {
            return;
        }
        self.say(now, Notice::GaveUp(why.clone()));
        let is_ours = !matches!(why, GaveUp::Changed(_));
        self.enter(now, Stage::Resting);
        self.gave_up = Some((Seconds::new(now), why));
        if is_ours {
            self.load.choose(self.reference(), None);
            if self.place != Some(self.reference()) || self.asked.is_some() {
                self.ask_for(self.reference());
            }
        }
        self.actions.push(Action::Tell(Tuning::Off));
    }

    fn progress(&mut self, now: f64, at: f64, total: f64) {
        let before = self.watch.last_report();
        let stalled = before.unwrap_or(now);
        self.watch.did(at, total);
        let goes_on = self.watch.last_report() != before;
        if goes_on && let Stage::Stalled(before) = &self.stage {
            let before = (**before).clone();
            self.load.due += now - stalled;
            self.say(now, Notice::GoesOn);
            self.enter(now, before);
            self.restart_window(now + self.terms.settle.get());
        }
    }

    /// What was measured of the open window does not count.
    fn restart_window(&mut self, at: f64) {
        match &mut self.stage {
            Stage::Waiting { since } => *since = since.max(at),
            Stage::Measuring { from, .. } => *from = from.max(at),
            Stage::Holding(holding) => holding.from = holding.from.max(at),
            _ => {}
        }
    }

    fn advance(&mut self, now: f64) {
        if self.stalls(now) || self.changes_phase(now) {
            return;
        }
        match self.stage.clone() {
            Stage::New => self.set(now, self.reference(), Task::Reference),
            Stage::Waiting { since } => self.wait(now, since),
            Stage::Measuring { place, task, from } => self.measure(now, place, task, from),
            Stage::Holding(holding) => self.hold(now, &holding),
            Stage::Setting(..) | Stage::Stalled(_) | Stage::Resting => {}
        }
    }

    /// Whether progress has stopped coming, now or before.
    fn stalls(&mut self, now: f64) -> bool {
        let is_open = matches!(self.stage, Stage::Measuring { .. } | Stage::Holding(_));
        let last = self.watch.last_report();
        let (true, true, Some(last)) = (self.with_progress, is_open, last) else {
            return false;
        };
        if now - last < STALLED.max(GAPS * self.watch.spacing()) {
            return false;
        }
        self.say(now, Notice::Stalled(Seconds::new(now - last)));
        // Up to the last report it was work.
        self.account(last);
        let before = std::mem::replace(&mut self.stage, Stage::Resting);
        self.stage = Stage::Stalled(Box::new(before));
        true
    }

    /// Whether the job is in a phase that is a load of its own, and another one than before.
    fn changes_phase(&mut self, now: f64) -> bool {
        let (phase, since) = &self.phase;
        if *phase == self.load.phase || matches!(self.stage, Stage::Resting) {
            return false;
        }
        let gaps = GAPS * self.watch.spacing();
        if now - since < PHASE.max(gaps) {
            return false;
        }
        let phase = phase.clone();
        if self.load.reference.is_none() {
            // Nothing was measured of it: it has been this one.
            self.load.phase = phase;
            return false;
        }
        let since = *since;
        self.say(now, Notice::OtherPhase(phase.clone()));
        let known = self.others.iter().position(|load| load.phase == phase);
        let other = match known {
            Some(place) => self.others.remove(place),
            None => Load::new(&self.terms, phase, None, false),
        };
        let before = self.change_load(now, since, other);
        self.others.push(before);
        match (self.load.choice, self.load.reference.is_some()) {
            (Some(choice), _) => self.set(now, choice, Task::Hold),
            (None, true) => self.next(now),
            (None, false) => self.set(now, self.reference(), Task::Reference),
        }
        true
    }
}
