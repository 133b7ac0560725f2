//! The state machine.

use sweetspot_decide::search::Ask;
use sweetspot_quantity::{Ratio, Seconds, Watts};

use super::claim::{Claim, Tuned, TunedLoad};
use super::load::{Load, Spent, Sum};
use super::notice::{Cut, GaveUp, Notice};
use super::watch::Watch;
use super::window::{Purpose, Window};
use super::{Action, Event, JobLength, Remembered, Terms, Tuning, needs_progress};

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
    explored_since: f64,
    looked: f64,
    said_no_progress: bool,
    windows: Vec<Window>,
    notices: Vec<(Seconds, Notice)>,
    gave_up: Option<GaveUp>,
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
            Self::Try | Self::Check => Purpose::Explore,
            Self::Hold => Purpose::Hold,
        }
    }
}

#[derive(Clone, Debug)]
struct Holding {
    since: f64,
    from: f64,
    usual: Option<(f64, Option<f64>)>,
    off: usize,
}

/// The reference window: everything is compared with it.
const REFERENCE: (f64, f64) = (5.0, 7.0);
/// The reference again.
const RECHECK: (f64, f64) = (4.0, 6.0);
/// By then a chip has warmed up.
const WARM: f64 = 120.0;
/// Windows of settings that are tried: at least, at most.
const TRY: (f64, f64) = (3.0, 4.0);
/// Windows in which a choice is watched.
const HOLD: (f64, f64) = (3.0, 3.0);
/// Readings are looked at no more often.
const LOOK: f64 = 0.05;
/// Exploring takes no longer.
const LONGEST: f64 = 38.0;
/// A load that is not steady by then is taken as it is.
const UNSTEADY: f64 = 60.0;
/// Progress that is not heard of for so long has stalled; so many times the usual gap, where that is more.
const STALLED: f64 = 10.0;
const GAPS: f64 = 10.0;
/// How long a job may take to tell of its first progress.
const FIRST_PROGRESS: f64 = 60.0;
/// A held load that is so far off, in so many windows one after the other, is another one.
const CHANGED: f64 = 0.05;
const WINDOWS_OFF: usize = 2;
/// A phase that lasts so long is a load of its own; so many reports of progress, where that is more.
const PHASE: f64 = 5.0;
/// A choice moves so often once it is held.
const MOST_MOVES: usize = 2;
/// Refusals until nothing more is tried.
const MOST_REFUSALS: usize = 3;
/// More noise than this between windows tells nothing.
const TOO_NOISY: f64 = 0.05;
/// What an exploration costs, as a time: about 20 s of settings that are some 15 % slower.
const USUAL_COST: f64 = 3.0;
/// The length of a job of which nothing is known.
const USUAL_JOB: f64 = 600.0;
/// A remembered gain that is missed by more than this is not confirmed.
const AS_REMEMBERED: f64 = 0.02;

impl Tuner {
    /// Ready for a job's first event.
    pub fn new(terms: Terms) -> Self {
        Self {
            with_progress: needs_progress(&terms.question),
            watch: Watch::default(),
            stage: Stage::New,
            place: None,
            asked: None,
            load: Load::new(&terms, None, terms.remembered),
            others: Vec::new(),
            past: Vec::new(),
            phase: (None, 0.0),
            accounted: None,
            explored_since: 0.0,
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
        let ended_early = self.gave_up.is_none() && self.load.choice.is_none();
        let mut loads = std::mem::take(&mut self.past);
        loads.extend(self.others.iter().map(|load| load.tuned(&self.terms)));
        loads.push(self.load.tuned(&self.terms));
        let whole = Claim::of_all(&loads);
        Tuned {
            whole: whole.map(|(claim, _)| claim),
            energy_saved: whole.map(|(_, saved)| saved),
            loads,
            windows: self.windows,
            notices: self.notices,
            gave_up: self.gave_up,
            ended_early,
        }
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
            Stage::Waiting { .. } | Stage::New => None,
            Stage::Setting(_, Task::Reference) => Some(Spent::Reference),
            Stage::Measuring {
                task: Task::Reference,
                ..
            } => Some(Spent::Reference),
            Stage::Setting(..) | Stage::Measuring { .. } => Some(Spent::Exploring),
            Stage::Holding(_) => Some(Spent::Holding),
            Stage::Resting => Some(Spent::Reference),
            Stage::Stalled(_) => None,
        };
        let reached = self.watch.sum_at(now);
        if let (Some(on), Some(before), Some(reached)) = (on, self.accounted, reached) {
            self.load.spend(on, &reached.less(&before));
        }
        self.accounted = reached;
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
        self.place = Some(place);
        if matches!(self.stage, Stage::Setting(asked, _) if asked == place) {
            self.set_already(now, place, now + self.terms.settle.get());
        }
    }

    fn set_already(&mut self, now: f64, place: usize, from: f64) {
        let Stage::Setting(_, task) = self.stage else {
            return;
        };
        let next = match task {
            Task::Reference => Stage::Waiting { since: from },
            Task::Try | Task::Check | Task::Recheck => Stage::Measuring { place, task, from },
            Task::Hold => {
                self.load.found_at.get_or_insert(now);
                Stage::Holding(Holding {
                    since: now,
                    from,
                    usual: None,
                    off: 0,
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
        self.gave_up = Some(why);
        self.enter(now, Stage::Resting);
        if is_ours {
            self.load.choose(self.reference(), None);
            if self.place != Some(self.reference()) || self.asked.is_some() {
                self.ask_for(self.reference());
            }
        }
        self.actions.push(Action::Tell(Tuning::Off));
    }

    fn progress(&mut self, now: f64, at: f64, total: f64) {
        if let Some(from) = self.watch.did(at, total) {
            self.say(now, Notice::WentBack { from, to: total });
            self.accounted = None;
            self.restart_window(now);
        }
        if let Stage::Stalled(before) = &self.stage {
            let before = (**before).clone();
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
        self.say(now, Notice::OtherPhase(phase.clone()));
        self.account(now);
        let known = self.others.iter().position(|load| load.phase == phase);
        let other = match known {
            Some(place) => self.others.remove(place),
            None => Load::new(&self.terms, phase, None),
        };
        let before = std::mem::replace(&mut self.load, other);
        self.others.push(before);
        match (self.load.choice, self.load.reference.is_some()) {
            (Some(choice), _) => self.set(now, choice, Task::Hold),
            (None, true) => self.next(now),
            (None, false) => self.set(now, self.reference(), Task::Reference),
        }
        true
    }

    fn wait(&mut self, now: f64, since: f64) {
        let nothing_heard = self.with_progress && self.watch.last_report().is_none();
        if nothing_heard {
            if now > FIRST_PROGRESS && !self.said_no_progress {
                self.said_no_progress = true;
                self.say(now, Notice::NoProgress(Seconds::new(now)));
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
        self.accounted = self.watch.sum_at(from);
        self.stage = Stage::Measuring {
            place: self.reference(),
            task: Task::Reference,
            from,
        };
        self.advance(now);
    }

    fn measure(&mut self, now: f64, place: usize, task: Task, from: f64) {
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
                self.explored_since = now;
            }
            Task::Check if is_reference => {
                self.load.replace_reference(&self.terms, &window);
                return self.next(now);
            }
            Task::Recheck => {
                self.load.warm = Some(window);
                self.load.rechecked = true;
                let choice = self.load.choice.unwrap_or(place);
                return self.set(now, choice, Task::Hold);
            }
            _ => {}
        }
        self.load.tell(&self.terms, &window);
        if task == Task::Reference
            && let Some(why) = self.why_not(now, &window)
        {
            return self.give_up(now, why);
        }
        if let Some(remembered) = self.load.remembered
            && task == Task::Try
        {
            self.load.remembered = None;
            if self.is_as_remembered(now, remembered, &window) {
                self.load.choose(place, None);
                // A strategy that has seen so little knows nothing better.
                self.load.moves = MOST_MOVES;
                return self.set(now, place, Task::Hold);
            }
        }
        self.next(now);
    }

    /// A window, if there is enough to tell its values.
    fn cut(&mut self, purpose: Purpose, place: usize, ends: (f64, f64, f64)) -> Option<Window> {
        let (window, power, rate) = self
            .watch
            .window(purpose, place, ends, self.with_progress)?;
        if purpose != Purpose::Hold {
            // A held load may change within a window, which is no noise.
            self.watch.learn(&power, rate.as_ref());
        }
        self.watch.forget_before(window.end.get() - UNSTEADY);
        self.windows.push(window.clone());
        Some(window)
    }

    /// Why exploring is not worth its while, now that the reference is known.
    fn why_not(&self, now: f64, reference: &Window) -> Option<GaveUp> {
        let lowest = self.terms.lowest_cap;
        if let Some(lowest) = lowest
            && reference.power <= lowest
        {
            return Some(GaveUp::CapDoesNotBind {
                power: reference.power,
                lowest,
            });
        }
        let noise = reference.noise.time.max(reference.noise.energy);
        if noise > TOO_NOISY {
            return Some(GaveUp::TooNoisy(Ratio::new(noise)));
        }
        let job = self.job_time(now)?;
        let cost = USUAL_COST;
        let left = job.get() - now;
        let is_short = cost > self.terms.budget.get() * job.get() || left < LONGEST / 2.0;
        is_short.then_some(GaveUp::TooShort { time: job })
    }

    /// How long the job takes at the reference, where that can be told.
    fn job_time(&self, now: f64) -> Option<Seconds> {
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
            gain > self.load.nothing() && gain >= before.gain - AS_REMEMBERED.max(noise)
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

    /// Whether exploring has taken or cost enough.
    fn is_enough(&self, now: f64) -> Option<Cut> {
        if now - self.explored_since > LONGEST {
            return Some(Cut::Time);
        }
        let job = self.job_time(now).map_or(USUAL_JOB, Seconds::get).max(now);
        let share = self.load.cost_share(&Sum::default(), Seconds::new(job))?;
        (share > self.terms.budget).then_some(Cut::Budget)
    }

    /// The next place to try, or the end of it.
    fn next(&mut self, now: f64) {
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
        match self.load.strategy().ask() {
            Ask::Evaluate(place) if place < self.terms.space.places().len() => {
                self.set(now, place, Task::Try);
            }
            _ => match self.load.to_check(&self.terms) {
                Some(place) => self.set(now, place, Task::Check),
                None => self.conclude(now),
            },
        }
    }

    /// Takes the strategy's answer, if it is better than the reference.
    fn conclude(&mut self, now: f64) {
        let reference = self.reference();
        let (place, regret) = match self.load.strategy().answer() {
            Some(answer) => (answer.place, answer.expected_regret),
            None => {
                if !self.terms.question.limits.is_empty() {
                    self.say(now, Notice::OutsideLimits);
                }
                (reference, None)
            }
        };
        let gain = self.load.gain_at(&self.terms, place);
        let is_worth_it =
            gain.is_none_or(|gain| gain > self.load.nothing()) && place < self.terms.labels.len();
        let place = match is_worth_it {
            true => place,
            false => reference,
        };
        self.load.choose(place, regret);
        self.set(now, place, Task::Hold);
    }

    fn hold(&mut self, now: f64, holding: &Holding) {
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
                let nothing_better = place == self.reference();
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
        next.off = if is_off { holding.off + 1 } else { 0 };
        if next.off >= WINDOWS_OFF {
            let notice = Notice::LoadChanged {
                rate: of_rate.map(Ratio::new),
                power: Ratio::new(of_power),
            };
            return self.again(now, notice, None);
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
            let remembered = gain.map(|gain| Remembered { place, gain });
            return self.again(now, Notice::TimeToLookAgain, remembered);
        }
        if !self.load.rechecked && place != self.reference() && self.is_time_to_recheck(now) {
            self.set(now, self.reference(), Task::Recheck);
        }
    }

    /// Whether the chip is warm, and enough is left of the job to look at the reference again.
    fn is_time_to_recheck(&self, now: f64) -> bool {
        let found = self.load.found_at.unwrap_or(now);
        let left = self.job_time(now).map_or(WARM, |job| job.get() - now);
        now - found >= WARM && left >= WARM / 2.0
    }

    /// Whether the first window at a choice speaks for another one.
    fn moves_on(&mut self, now: f64, place: usize, window: &Window) -> bool {
        if place == self.reference() || self.load.moves >= MOST_MOVES {
            return false;
        }
        self.load.tell(&self.terms, window);
        let gain = self.load.gain_at(&self.terms, place);
        let keeps = self.load.keeps_limits(&self.terms, place);
        let answer = self.load.strategy().answer();
        let better = match answer {
            _ if gain.is_some_and(|gain| gain <= self.load.nothing()) => self.reference(),
            Some(answer) if answer.place < self.terms.labels.len() => answer.place,
            None if !keeps => self.reference(),
            _ => place,
        };
        if let Some(answer) = answer.filter(|answer| answer.place == place) {
            self.load.choose(place, answer.expected_regret);
        }
        if better == place {
            return false;
        }
        self.load.moves += 1;
        self.load
            .choose(better, answer.and_then(|answer| answer.expected_regret));
        self.set(now, better, Task::Hold);
        true
    }

    /// Begins again, at the reference.
    fn again(&mut self, now: f64, notice: Notice, remembered: Option<Remembered>) {
        self.say(now, notice);
        self.account(now);
        let phase = self.load.phase.clone();
        let load = Load::new(&self.terms, phase, remembered);
        self.watch.forget_noise();
        let before = std::mem::replace(&mut self.load, load);
        self.past.push(before.tuned(&self.terms));
        self.set(now, self.reference(), Task::Reference);
    }

    /// Drawn at the reference, where that is known.
    pub fn reference_power(&self) -> Option<Watts> {
        self.load.reference.as_ref().map(|window| window.power)
    }
}
