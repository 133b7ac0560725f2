//! One steady load of a job, and the search for its best setting.

use sweetspot_decide::search::{Noise, Space, Strategy, Terms as SearchTerms, Told};
use sweetspot_decide::{Basis, Objective, Outcome};
use sweetspot_quantity::{Joules, Ratio, Seconds};

use super::claim::{Claim, Cost, TunedLoad};
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
    spent: [Sum; 3],
}

/// More evaluations than this take longer than is worth it.
const MOST_EVALUATIONS: usize = 14;
/// Another window near the answer costs next to nothing, and there is time for it.
const ENOUGH: f64 = 0.0015;
/// Neighbours of an answer that are looked at.
const MOST_CHECKS: usize = 4;
/// How far they are, of the range: the farther ones first.
const NEIGHBOURS: [f64; 4] = [-0.05, 0.05, -0.025, 0.025];
/// Windows so near to each other, of the range, are much the same.
const NEAR: f64 = 0.08;
/// A gain that nobody would notice.
const NOTHING: f64 = 0.003;
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
            spent: [Sum::default(); 3],
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
            .tell(window.place, Told::Measured { outcome, noise });
    }

    /// Tells everything once more: windows of one setting show how the chip warms up, and that changes them all.
    fn think_again(&mut self, terms: &Terms) {
        let drift = self.drift();
        self.strategy = start(terms);
        for window in self.tried.clone() {
            self.tell_strategy(terms, &window, &drift);
        }
        for place in self.failed.clone() {
            self.strategy.tell(place, Told::Failed);
        }
    }

    pub(super) fn fail(&mut self, place: usize) {
        self.refusals += 1;
        self.failed.push(place);
        self.strategy.tell(place, Told::Failed);
    }

    pub(super) fn hold(&mut self, window: &Window) {
        if self.held.len() >= MOST_HELD {
            self.held.remove(0);
        }
        self.held.push(window.clone());
    }

    pub(super) fn choose(&mut self, place: usize, expected_regret: Option<f64>) {
        if self.choice != Some(place) {
            self.held.clear();
        }
        self.choice = Some(place);
        self.expected_regret = expected_regret;
    }

    /// The reference by all of its windows.
    fn reference_outcome(&self, terms: &Terms, drift: &Drift) -> Option<Outcome> {
        let reference = terms.space.reference();
        let windows = self.tried.iter().filter(|window| window.place == reference);
        let outcomes: Vec<Outcome> = windows
            .map(|window| self.outcome(terms, window, drift))
            .collect();
        Outcome::mean(&outcomes)
    }

    /// By how much a window's objective is better than the reference's, as a fraction.
    pub(super) fn gain(&self, terms: &Terms, window: &Window) -> Option<f64> {
        let drift = self.drift();
        let reference = self.reference_outcome(terms, &drift)?;
        let own = self.outcome(terms, window, &drift);
        let basis = Basis {
            reference: Some(&reference),
            tariff: &terms.question.tariff,
        };
        let objective = terms.question.objective;
        let value = |outcome: &Outcome| objective.value(outcome, basis).ok();
        let (own, reference) = (value(&own)?, value(&reference)?);
        Some(match objective {
            Objective::GainMinusLoss => own - reference,
            _ if objective.is_maximised() => own / reference - 1.0,
            _ => 1.0 - own / reference,
        })
    }

    /// A gain that is less is none: noise of the reference window alone may show it.
    pub(super) fn nothing(&self) -> f64 {
        let noise = self.reference.as_ref().map(|window| window.noise);
        let noise = noise.map_or(0.0, |noise| 0.3 * (noise.time + noise.energy));
        NOTHING.max(noise)
    }

    /// The mean gain of the windows at a place.
    pub(super) fn gain_at(&self, terms: &Terms, place: usize) -> Option<f64> {
        let windows = self.tried.iter().chain(&self.held);
        let gains: Vec<f64> = windows
            .filter(|window| window.place == place)
            .filter_map(|window| self.gain(terms, window))
            .collect();
        (!gains.is_empty()).then(|| gains.iter().sum::<f64>() / gains.len() as f64)
    }

    /// The mean gain of the windows at a place and beside it: a single window knows little.
    pub(super) fn gain_near(&self, terms: &Terms, place: usize) -> Option<f64> {
        let windows = self.tried.iter().chain(&self.held);
        let near = |window: &&Window| {
            window.place == place
                || window.place != terms.space.reference()
                    && is_near(&terms.space, window.place, place)
        };
        let gains: Vec<f64> = windows
            .filter(near)
            .filter_map(|window| self.gain(terms, window))
            .collect();
        (!gains.is_empty()).then(|| gains.iter().sum::<f64>() / gains.len() as f64)
    }

    /// Whether the means at a place keep within the limits, as far as that is known.
    pub(super) fn keeps_limits(&self, terms: &Terms, place: usize) -> bool {
        let drift = self.drift();
        let Some(reference) = self.reference_outcome(terms, &drift) else {
            return true;
        };
        let windows = self.tried.iter().chain(&self.held);
        let outcomes: Vec<Outcome> = windows
            .filter(|window| window.place == place)
            .map(|window| self.outcome(terms, window, &drift))
            .collect();
        let Some(mean) = Outcome::mean(&outcomes) else {
            return true;
        };
        let basis = Basis {
            reference: Some(&reference),
            tariff: &terms.question.tariff,
        };
        let limits = terms.question.limits.iter();
        limits
            .into_iter()
            .all(|limit| limit.check(&mean, basis).is_ok())
    }

    /// Time and energy of an item in the windows at the choice, and how sure that is.
    fn at_choice(&self) -> Option<(f64, f64, Noise)> {
        let place = self.choice?;
        let tried = self.tried.iter().filter(|window| window.place == place);
        let windows: Vec<&Window> = match self.held.is_empty() {
            true => tried.collect(),
            false => self.held.iter().collect(),
        };
        let count = windows.len() as f64;
        let mean = |of: &dyn Fn(&Window) -> Option<f64>| {
            let values: Option<Vec<f64>> = windows.iter().map(|window| of(window)).collect();
            let values = values.filter(|values| !values.is_empty())?;
            Some(values.iter().sum::<f64>() / count)
        };
        let noise = Noise {
            time: mean(&|window| Some(window.noise.time))? / count.sqrt(),
            energy: mean(&|window| Some(window.noise.energy))? / count.sqrt(),
        };
        let time = mean(&|window| Some(window.time_per_item()?.get()))?;
        let energy = mean(&|window| Some(window.energy_per_item()?.get()))?;
        Some((time, energy, noise))
    }

    /// A neighbour of the answer where nothing was measured, worth a look before the answer is taken.
    pub(super) fn next_check(&mut self, terms: &Terms) -> Option<usize> {
        if self.checks >= MOST_CHECKS || terms.space.places().len() < 2 {
            return None;
        }
        let answer = self.strategy.answer()?.place;
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
        let answer = self.strategy.answer().map(|answer| answer.place);
        let gain = answer.and_then(|answer| self.gain_near(terms, answer));
        gain.is_none_or(|gain| gain < SMALL_GAIN)
    }

    /// Energy beyond the same items at the best setting so far, as a share of what the job takes there.
    pub(super) fn cost_beyond_best(&self, terms: &Terms, job: f64) -> Option<f64> {
        let gain = |window: &&Window| self.gain(terms, window).unwrap_or(f64::NEG_INFINITY);
        let best = self
            .tried
            .iter()
            .max_by(|a, b| gain(a).total_cmp(&gain(b)))?;
        let energy = best.energy_per_item()?.get();
        let items = self.reference.as_ref()?.items_per_second? * job;
        let mut sum = *self.spent(Spent::Exploring);
        sum.add(self.spent(Spent::Reference));
        Some((sum.energy - sum.items * energy) / (items * energy))
    }

    /// What some seconds at the reference draw beyond the choice, as a share of what the job takes there.
    pub(super) fn cost_at_reference(&self, seconds: f64, job: f64) -> Option<f64> {
        let reference = self.reference.as_ref()?.energy_per_item()?.get();
        let (_, own, _) = self.at_choice()?;
        Some(seconds / job * (reference / own - 1.0))
    }

    /// A place beside another, on a side and at a distance where nothing was measured.
    fn neighbour(&self, terms: &Terms, of: usize) -> Option<usize> {
        let places = terms.space.places();
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

    /// What it came to.
    pub(super) fn tuned(&self, terms: &Terms) -> TunedLoad {
        let reference = self.warm.as_ref().or(self.reference.as_ref());
        let reference = reference.and_then(|window| {
            let (time, energy) = (window.time_per_item()?, window.energy_per_item()?);
            Some((time, energy, window.noise))
        });
        let is_reference = self.choice == Some(terms.space.reference());
        let claim = reference.zip(self.at_choice()).map(
            |((time, energy, of_reference), (own_time, own_energy, own))| {
                let (time, energy) = (own_time / time.get(), own_energy / energy.get());
                match is_reference {
                    true => Claim::NOTHING,
                    false => Claim::of(time, energy, &[of_reference, own, drift(self.rechecked)]),
                }
            },
        );
        let mut total = Sum::default();
        self.spent.iter().for_each(|sum| total.add(sum));
        let beyond = |sum: &Sum, time: f64, energy: f64| Cost {
            time: Seconds::new(sum.time - sum.items * time),
            energy: Joules::new(sum.energy - sum.items * energy),
        };
        let exploring = self.spent(Spent::Exploring);
        let mut both = *exploring;
        both.add(self.spent(Spent::Reference));
        let mut load = TunedLoad {
            phase: self.phase.clone(),
            steady_since: self.steady_since.map(Seconds::new),
            found_at: self.found_at.map(Seconds::new),
            choice: self.choice,
            expected_regret: self.expected_regret,
            gain: self.choice.and_then(|place| self.gain_at(terms, place)),
            evaluations: self.evaluations,
            claim,
            whole: None,
            energy_saved: None,
            cost: reference.map(|(time, energy, _)| beyond(exploring, time.get(), energy.get())),
            cost_against_choice: self
                .at_choice()
                .map(|(time, energy, _)| beyond(&both, time, energy)),
            total,
            reference,
        };
        if let Some((_, _, noise)) = &mut load.reference {
            let drift = drift(self.rechecked);
            noise.time = noise.time.hypot(drift.time);
            noise.energy = noise.energy.hypot(drift.energy);
        }
        if let Some((whole, saved)) = Claim::of_all(std::slice::from_ref(&load)) {
            load.whole = Some(whole);
            load.energy_saved = Some(saved);
        }
        load
    }

    /// The share of a job that exploring has cost so far.
    pub(super) fn cost_share(&self, since: &Sum, job: Seconds) -> Option<Ratio> {
        let reference = self.reference.as_ref()?;
        let (time, energy) = (
            reference.time_per_item()?.get(),
            reference.energy_per_item()?.get(),
        );
        let mut sum = *self.spent(Spent::Exploring);
        sum.add(since);
        let of_time = (sum.time - sum.items * time) / job.get();
        let of_energy = (sum.energy - sum.items * energy) / (reference.power * job).get();
        Some(Ratio::new(of_time.max(of_energy)))
    }
}

fn is_near(space: &Space, a: usize, b: usize) -> bool {
    let places = space.places();
    (0..places[a].len()).all(|knob| {
        let values = || places.iter().map(|place| place[knob]);
        let lowest = values().fold(f64::INFINITY, f64::min);
        let highest = values().fold(f64::NEG_INFINITY, f64::max);
        (places[a][knob] - places[b][knob]).abs() <= NEAR * (highest - lowest)
    })
}

fn start(terms: &Terms) -> Box<dyn Strategy> {
    let search = SearchTerms {
        most: MOST_EVALUATIONS,
        enough: ENOUGH,
        seed: terms.seed,
        ..SearchTerms::default()
    };
    let space = terms.space.clone();
    terms.strategy.start(space, &terms.question, search)
}

/// What a short reference window does not know, as a standard deviation: a chip takes minutes to warm up, and
/// leaks more when it is warm.
const fn drift(rechecked: bool) -> Noise {
    match rechecked {
        true => Noise {
            time: 0.003,
            energy: 0.0075,
        },
        false => Noise {
            time: 0.006,
            energy: 0.012,
        },
    }
}
