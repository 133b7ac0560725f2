//! A job in virtual time whose speed and power at each place are known.

use sweetspot_control::tune::{
    JobLength, TuneAction, TuneConfig, TuneEvent, TuneNotice, TuneOutcome, Tuner,
};
use sweetspot_decide::Question;
use sweetspot_decide::search::{Knob, Space, StrategyName};
use sweetspot_quantity::{Joules, Ratio, Seconds};
use sweetspot_stats::Seed;

/// A space of caps from 300 W downwards in steps of 15 W.
pub fn space(places: usize) -> Space {
    let values: Vec<f64> = (0..places)
        .map(|place| 300.0 - 15.0 * place as f64)
        .collect();
    Space::along(Knob::PowerCap, &values).unwrap()
}

pub fn test_config(question: Question) -> TuneConfig {
    TuneConfig {
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

/// Items in a second and watts at each cap, for a chip with a voltage knee.
pub fn curve() -> Vec<(f64, f64)> {
    let at = |place: usize| {
        let cap = 300.0 - 15.0 * place as f64;
        let power: f64 = cap.min(280.0);
        let clock = ((power - 60.0) / 220.0).powf(0.45);
        (100.0 / (0.3 + 0.7 / clock), power)
    };
    (0..11).map(at).collect()
}

/// A job and its tuner in virtual time.
pub struct TestJob {
    tuner: Tuner,
    pub places: Vec<(f64, f64)>,
    place: usize,
    pub now: f64,
    pub energy: f64,
    pub items: f64,
    pub noise: f64,
    /// The step of reported items; 0 for exact reports.
    pub step: f64,
    /// The time between reports of progress.
    pub every: f64,
    pub seed: u64,
    pub stalled: bool,
    pub rejected: Vec<usize>,
    pub sets: Vec<usize>,
    pub notices: Vec<TuneNotice>,
}

const STEP: f64 = 0.1;

impl TestJob {
    pub fn new(config: TuneConfig, places: Vec<(f64, f64)>) -> Self {
        Self {
            tuner: Tuner::new(config),
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
            rejected: Vec::new(),
            sets: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// The place that minimises a function of the time and energy for each item.
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
            self.tell(TuneEvent::Energy { at, total });
            if !self.stalled {
                self.items += rate * STEP * vary("rate");
                let total = match self.step > 0.0 {
                    true => (self.items / self.step).floor() * self.step,
                    false => self.items,
                };
                let ticks = (self.every / STEP).round() as u64;
                if ((self.now / STEP).round() as u64).is_multiple_of(ticks) {
                    self.tell(TuneEvent::Progress { at, total });
                }
            }
            self.tell(TuneEvent::Tick);
        }
    }

    pub fn tell(&mut self, event: TuneEvent) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for action in self.tuner.step(Seconds::new(self.now), event) {
                match action {
                    TuneAction::Set(place) => {
                        self.sets.push(place);
                        if self.rejected.contains(&place) {
                            let reason = "denied".to_owned();
                            events.push(TuneEvent::Rejected { place, reason });
                        } else {
                            self.place = place;
                            events.push(TuneEvent::Applied(place));
                        }
                    }
                    TuneAction::Notify(notice) => self.notices.push(notice),
                    TuneAction::ReportState(_) => {}
                }
            }
        }
    }

    pub fn finish(mut self) -> TuneOutcome {
        self.tell(TuneEvent::Ended);
        self.tuner.finish()
    }
}
