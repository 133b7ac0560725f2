//! One steady load of a job, and the search for its best setting.

mod cost;
mod judge;

use sweetspot_decide::Outcome;
use sweetspot_decide::search::{Evaluation, Noise, SearchOptions, Strategy};

use super::drift::Drift;
use super::window::Window;
use super::{Remembered, Terms};

/// Time, energy and items of some of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sum {
    pub(super) time: f64,
    pub(super) energy: f64,
    pub(super) items: f64,
}

impl Sum {
    pub(super) fn add(&mut self, other: &Self) {
        self.time += other.time;
        self.energy += other.energy;
        self.items += other.items;
    }

    pub(super) fn less(&self, other: &Self) -> Self {
        Self {
            time: self.time - other.time,
            energy: self.energy - other.energy,
            items: self.items - other.items,
        }
    }
}

/// What a load spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    Reference,
    Exploring,
    Holding,
    /// Nothing: it is at the reference, and not known yet.
    Waiting,
}

/// A load and its search.
pub(super) struct Load {
    pub(super) phase: Option<String>,
    strategy: Box<dyn Strategy>,
    pub(super) remembered: Option<Remembered>,
    pub(super) steady_since: Option<f64>,
    pub(super) reference: Option<Window>,
    /// The reference again, later: savings are claimed against it.
    pub(super) warm: Option<Window>,
    pub(super) rechecked: bool,
    /// Whether the choice was told.
    pub(super) is_told: bool,
    /// Whether it is the load before, looked at again.
    pub(super) is_again: bool,
    /// Whether no setting keeps within the limits.
    pub(super) outside_limits: bool,
    /// Whether the chip was at rest before.
    is_cold: bool,
    /// When a choice is due.
    pub(super) due: f64,
    checks: usize,
    tried: Vec<Window>,
    pub(super) found_at: Option<f64>,
    pub(super) choice: Option<usize>,
    expected_regret: Option<f64>,
    /// Windows at the choice.
    held: Vec<Window>,
    pub(super) moves: usize,
    pub(super) refusals: usize,
    failed: Vec<usize>,
    evaluations: usize,
    spent: [Sum; 4],
}

/// More evaluations than this take longer than is worth it.
const MOST_EVALUATIONS: usize = 14;
/// Another window near the answer costs next to nothing, and there is time for it.
const ENOUGH: f64 = 0.0015;
/// Neighbours of an answer that are looked at.
const MOST_CHECKS: usize = 4;
/// How far they are, of the range: the farther ones first.
const NEIGHBOURS: [f64; 4] = [-0.05, 0.05, -0.025, 0.025];
/// A gain that the warming up of a chip may hide.
const SMALL_GAIN: f64 = 0.06;
/// Long jobs are held for days: the newest windows of a choice are enough to know it by.
const MOST_HELD: usize = 1000;

impl Load {
    pub(super) fn new(
        terms: &Terms,
        phase: Option<String>,
        remembered: Option<Remembered>,
        is_cold: bool,
    ) -> Self {
        Self {
            is_again: false,
            outside_limits: false,
            is_cold,
            due: f64::INFINITY,
            phase,
            strategy: start(terms),
            remembered,
            steady_since: None,
            reference: None,
            warm: None,
            rechecked: false,
            is_told: false,
            checks: 0,
            tried: Vec::new(),
            found_at: None,
            choice: None,
            expected_regret: None,
            held: Vec::new(),
            moves: 0,
            refusals: 0,
            failed: Vec::new(),
            evaluations: 0,
            spent: [Sum::default(); 4],
        }
    }

    pub(super) fn strategy(&mut self) -> &mut dyn Strategy {
        self.strategy.as_mut()
    }

    pub(super) fn spend(&mut self, on: Spent, sum: &Sum) {
        self.spent[on as usize].add(sum);
    }

    pub(super) fn spent(&self, on: Spent) -> &Sum {
        &self.spent[on as usize]
    }

    /// The items that everything is compared for: those of the reference window.
    fn items(&self) -> Option<f64> {
        let reference = self.reference.as_ref()?;
        Some(reference.items_per_second? * reference.time().get())
    }

    /// What the windows say about the warming up of the chip.
    fn drift(&self) -> Drift {
        let windows: Vec<&Window> = self.tried.iter().collect();
        Drift::of(
            &windows,
            self.steady_since.unwrap_or_default(),
            self.is_cold,
        )
    }

    /// As it would be on a warm chip.
    fn outcome(&self, terms: &Terms, window: &Window, drift: &Drift) -> Outcome {
        let mut outcome = window.outcome(self.items(), terms.gpus);
        let cold = drift.coldness(window);
        if outcome.items.is_some() {
            outcome.time = outcome.time * (drift.time.value * cold).exp();
            let factor = (drift.energy.value * cold).exp();
            outcome.energy = outcome.energy.map(|energy| energy * factor);
        }
        outcome
    }

    pub(super) fn tell(&mut self, terms: &Terms, window: &Window) {
        self.evaluations += 1;
        self.tried.push(window.clone());
        let is_again = self.tried.iter().filter(|own| own.place == window.place);
        match is_again.count() {
            1 => self.tell_strategy(terms, window, &self.drift()),
            _ => self.think_again(terms),
        }
    }

    fn tell_strategy(&mut self, terms: &Terms, window: &Window, drift: &Drift) {
        let outcome = Box::new(self.outcome(terms, window, drift));
        let cold = drift.coldness(window);
        let noise = Some(Noise {
            time: window.noise.time.hypot(drift.time.sigma * cold),
            energy: window.noise.energy.hypot(drift.energy.sigma * cold),
        });
        self.strategy
            .tell(window.place, Evaluation::Measured { outcome, noise });
    }

    /// Tells everything once more: windows of one setting show how the chip warms up, and that changes them all.
    fn think_again(&mut self, terms: &Terms) {
        let drift = self.drift();
        self.strategy = start(terms);
        for window in self.tried.clone() {
            self.tell_strategy(terms, &window, &drift);
        }
        for place in self.failed.clone() {
            self.strategy.tell(place, Evaluation::Failed);
        }
    }

    pub(super) fn fail(&mut self, place: usize) {
        self.refusals += 1;
        self.failed.push(place);
        self.strategy.tell(place, Evaluation::Failed);
    }

    pub(super) fn hold(&mut self, window: &Window) {
        if self.held.len() >= MOST_HELD {
            self.held.remove(0);
        }
        self.held.push(window.clone());
    }

    pub(super) const fn expected_regret(&self) -> Option<f64> {
        self.expected_regret
    }

    pub(super) fn choose(&mut self, place: usize, expected_regret: Option<f64>) {
        if self.choice != Some(place) {
            self.held.clear();
        }
        self.choice = Some(place);
        self.expected_regret = expected_regret;
    }

    pub(super) fn is_tried(&self, place: usize) -> bool {
        let tried = self.tried.iter().map(|window| window.place);
        tried
            .chain(self.failed.iter().copied())
            .any(|own| own == place)
    }

    /// Another look at the reference, which the search need not hear of.
    pub(super) fn see_reference(&mut self, window: &Window) {
        self.tried.push(window.clone());
    }

    /// A neighbour of the answer where nothing was measured, worth a look before the answer is taken.
    pub(super) fn next_check(&mut self, terms: &Terms) -> Option<usize> {
        if self.checks >= MOST_CHECKS || terms.space.points().len() < 2 {
            return None;
        }
        let answer = self.strategy.recommend()?.point;
        self.checks += 1;
        self.neighbour(terms, answer)
    }

    /// Whether the reference, which was measured on a cold chip, is worth another look: a large gain is one
    /// whatever it comes to.
    pub(super) fn doubts_reference(&mut self, terms: &Terms) -> bool {
        let reference = terms.space.reference();
        let windows = self.tried.iter();
        let looks = windows.filter(|window| window.place == reference).count();
        if looks != 1 || self.tried.len() < 2 {
            return false;
        }
        let answer = self.strategy.recommend().map(|answer| answer.point);
        let gain = answer.and_then(|answer| self.gain_near(terms, answer));
        gain.is_none_or(|gain| gain < SMALL_GAIN)
    }

    /// A place beside another, on a side and at a distance where nothing was measured.
    fn neighbour(&self, terms: &Terms, of: usize) -> Option<usize> {
        let places = terms.space.points();
        let [at] = places.get(of)?.as_slice() else {
            return None;
        };
        let values = || places.iter().map(|place| place[0]);
        let lowest = values().fold(f64::INFINITY, f64::min);
        let highest = values().fold(f64::NEG_INFINITY, f64::max);
        NEIGHBOURS.into_iter().find_map(|share| {
            let step = share * (highest - lowest);
            let near = |index: &usize| (places[*index][0] - at - step).abs();
            let place = (0..places.len()).min_by(|a, b| near(a).total_cmp(&near(b)))?;
            let value = places[place][0];
            let known = self.tried.iter().any(|window| {
                let known = places[window.place][0];
                (known - value).abs() < step.abs() / 2.0 && (known - at) * (value - at) > 0.0
            });
            (place != of && !known).then_some(place)
        })
    }
}

fn start(terms: &Terms) -> Box<dyn Strategy> {
    let search = SearchOptions {
        max_evaluations: MOST_EVALUATIONS,
        acceptable_regret: ENOUGH,
        seed: terms.seed,
        ..SearchOptions::default()
    };
    let space = terms.space.clone();
    terms.strategy.start(space, &terms.question, search)
}
