//! A job of which everything is known: how fast and at which power it runs at each place.

use sweetspot_control::tune::{Action, Event, JobLength, Notice, Terms, Tuned, Tuner};
use sweetspot_decide::Criteria;
use sweetspot_decide::search::{KnobKind, SearchSpace, StrategyName};
use sweetspot_quantity::{Joules, Ratio, Seconds};
use sweetspot_stats::Seed;

/// Caps from 300 W down by 15 W.
pub fn space(places: usize) -> SearchSpace {
    let values: Vec<f64> = (0..places)
        .map(|place| 300.0 - 15.0 * place as f64)
        .collect();
    SearchSpace::of_one_knob(KnobKind::PowerCap, &values).unwrap()
}

pub fn terms(question: Criteria) -> Terms {
    Terms {
        space: space(11),
        labels: (0..11)
            .map(|place| format!("{} W", 300 - 15 * place))
            .collect(),
        question,
        strategy: StrategyName::Guided,
        gpus: 1,
        settle: Seconds::new(1.0),
        budget: Ratio::new(0.05),
        job: JobLength::Unknown,
        retune_every: None,
        remembered: None,
        lowest_cap: None,
        seed: 1,
    }
}

/// Items a second and watts at each cap, of a chip with a voltage knee.
pub fn curve() -> Vec<(f64, f64)> {
    let at = |place: usize| {
        let cap = 300.0 - 15.0 * place as f64;
        let power: f64 = cap.min(280.0);
        let clock = ((power - 60.0) / 220.0).powf(0.45);
        (100.0 / (0.3 + 0.7 / clock), power)
    };
    (0..11).map(at).collect()
}

/// A job and its tuner, in virtual time.
pub struct Scene {
    tuner: Tuner,
    pub places: Vec<(f64, f64)>,
    place: usize,
    pub now: f64,
    pub energy: f64,
    pub items: f64,
    pub noise: f64,
    /// Items are told in whole steps of so many.
    pub step: f64,
    /// And so often.
    pub every: f64,
    pub seed: u64,
    pub stalled: bool,
    pub refused: Vec<usize>,
    pub sets: Vec<usize>,
    pub notices: Vec<Notice>,
}

const STEP: f64 = 0.1;

impl Scene {
    pub fn new(terms: Terms, places: Vec<(f64, f64)>) -> Self {
        Self {
            tuner: Tuner::new(terms),
            places,
            place: 0,
            now: 0.0,
            energy: 0.0,
            items: 0.0,
            noise: 0.01,
            step: 0.0,
            every: STEP,
            seed: 0,
            stalled: false,
            refused: Vec::new(),
            sets: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// The place with the least of something of time and energy for an item.
    pub fn best(&self, value: impl Fn(f64, f64) -> f64) -> usize {
        let value = |place: &usize| {
            let (rate, power) = self.places[*place];
            value(1.0 / rate, power / rate)
        };
        (0..self.places.len())
            .min_by(|a, b| value(a).total_cmp(&value(b)))
            .unwrap()
    }

    pub fn run(&mut self, seconds: f64) {
        let end = self.now + seconds;
        while self.now < end {
            self.now += STEP;
            let seed = Seed::new(self.seed).number((self.now * 10.0).round() as u64);
            let noise = self.noise / STEP.sqrt();
            let vary = |label: &str| (1.0 + noise * seed.label(label).normal()).max(0.05);
            let (rate, power) = self.places[self.place];
            self.energy += power * STEP * vary("power");
            let (at, total) = (Seconds::new(self.now), Joules::new(self.energy));
            self.tell(Event::Energy { at, total });
            if !self.stalled {
                self.items += rate * STEP * vary("rate");
                let total = match self.step > 0.0 {
                    true => (self.items / self.step).floor() * self.step,
                    false => self.items,
                };
                let ticks = (self.every / STEP).round() as u64;
                if ((self.now / STEP).round() as u64).is_multiple_of(ticks) {
                    self.tell(Event::Progress { at, total });
                }
            }
            self.tell(Event::Tick);
        }
    }

    pub fn tell(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for action in self.tuner.step(Seconds::new(self.now), event) {
                match action {
                    Action::Set(place) => {
                        self.sets.push(place);
                        if self.refused.contains(&place) {
                            let why = "denied".to_owned();
                            events.push(Event::Refused { place, why });
                        } else {
                            self.place = place;
                            events.push(Event::Applied(place));
                        }
                    }
                    Action::Say(notice) => self.notices.push(notice),
                    Action::Tell(_) => {}
                }
            }
        }
    }

    pub fn finish(mut self) -> Tuned {
        self.tell(Event::Ended);
        self.tuner.finish()
    }
}
