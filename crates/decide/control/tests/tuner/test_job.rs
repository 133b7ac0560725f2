//! A job in virtual time whose speed and power at each point are known.

use sweetspot_control::limit::{EvidenceSpan, LoadEvidence};
use sweetspot_control::tune::{
    JobLength, TuneAction, TuneConfig, TuneEvent, TuneNotice, TuneOutcome, Tuner,
};
use sweetspot_decide::Criteria;
use sweetspot_decide::search::{KnobKind, SearchSpace, StrategyName};
use sweetspot_quantity::{Joules, Ratio, Seconds};
use sweetspot_stats::Seed;

/// A space of caps from 300 W downwards in steps of 15 W.
pub fn space(points: usize) -> SearchSpace {
    let values: Vec<f64> = (0..points)
        .map(|point| 300.0 - 15.0 * point as f64)
        .collect();
    SearchSpace::of_one_knob(KnobKind::PowerCap, &values).unwrap()
}

pub fn test_config(criteria: Criteria) -> TuneConfig {
    TuneConfig {
        space: space(11),
        clocks: None,
        suggests_clocks: true,
        labels: (0..11)
            .map(|point| format!("{} W", 300 - 15 * point))
            .collect(),
        criteria,
        strategy: StrategyName::Guided,
        gpus: 1,
        each: None,
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
    let at = |point: usize| {
        let cap = 300.0 - 15.0 * point as f64;
        let power: f64 = cap.min(280.0);
        let clock = ((power - 60.0) / 220.0).powf(0.45);
        (100.0 / (0.3 + 0.7 / clock), power)
    };
    (0..11).map(at).collect()
}

/// A job and its tuner in virtual time.
pub struct TestJob {
    tuner: Tuner,
    pub points: Vec<(f64, f64)>,
    point: usize,
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
    /// What the counters of the devices tell; absent if they are not read.
    pub evidence: Option<LoadEvidence>,
    pub rejected: Vec<usize>,
    pub sets: Vec<usize>,
    pub notices: Vec<TuneNotice>,
}

const STEP: f64 = 0.1;

impl TestJob {
    pub fn new(config: TuneConfig, points: Vec<(f64, f64)>) -> Self {
        Self {
            tuner: Tuner::new(config),
            points,
            point: 0,
            now: 0.0,
            energy: 0.0,
            items: 0.0,
            noise: 0.01,
            step: 0.0,
            every: STEP,
            seed: 0,
            stalled: false,
            evidence: None,
            rejected: Vec::new(),
            sets: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// The point that minimises a function of the time and energy for each item.
    pub fn best(&self, value: impl Fn(f64, f64) -> f64) -> usize {
        let value = |point: &usize| {
            let (rate, power) = self.points[*point];
            value(1.0 / rate, power / rate)
        };
        (0..self.points.len())
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
            let (rate, power) = self.points[self.point];
            self.energy += power * STEP * vary("power");
            let (at, total) = (Seconds::new(self.now), Joules::new(self.energy));
            self.tell(TuneEvent::Energy { at, total });
            if let Some(evidence) = self.evidence {
                self.tell(TuneEvent::Limits(EvidenceSpan {
                    begin: Seconds::new(self.now - STEP),
                    end: at,
                    evidence,
                }));
            }
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
                    TuneAction::Set(point) => {
                        self.sets.push(point);
                        if self.rejected.contains(&point) {
                            let reason = "denied".to_owned();
                            events.push(TuneEvent::Rejected { point, reason });
                        } else {
                            self.point = point;
                            events.push(TuneEvent::Applied(point));
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
