//! Finds a setting for each GPU of a job with which all GPUs finish their part of an iteration together.
//!
//! In a synchronous job the GPUs wait for the slowest one. A faster one can therefore be slowed down, and the job takes
//! as long as before for less energy. How long a GPU waits is not visible from outside: on real GPUs a kernel that waits
//! for others keeps the GPU busy. What is always visible is the speed of the job. So the [`Balancer`] lowers one GPU
//! after the other. As long as the job stays as fast, the GPU had time to spare; a job that slows down shows the speed
//! of this GPU, from which follows the setting at which it is just as fast as the others.
//!
//! It only ever lowers settings below those that it begins with, and has no clock or device of its own.

use super::ladder::GpuLadder;

/// The first trial of a GPU lowers its value to this share of what it uses.
const FIRST_STEP: f64 = 0.88;
/// The same for a GPU of the same model as one that was not lowered: it is likely to be needed as well.
const NEEDED_TWIN_STEP: f64 = 0.94;
/// The first trial of a GPU of the same model as one that was lowered: this share of that one's value.
const TWIN_STEP: f64 = 0.97;
/// A further trial of a GPU that still has time to spare lowers its value to this share.
const NEXT_STEP: f64 = 0.85;
/// A trial that follows from a prediction is made at this share of the predicted value: a job that slows down a little
/// shows the speed of the GPU, one that does not shows nothing.
const AIM: f64 = 0.98;
/// A job with at least this share of its speed before does not slow down.
const AS_FAST: f64 = 0.9925;
/// A setting is computed from a trial in which the job had at least this share of its speed before.
const NEAR: f64 = 0.972;
/// A GPU is one of the slowest if a trial shows it in which the job had at least this share of its speed before. Further
/// away, the curve of the GPU may have another slope.
const RATHER_NEAR: f64 = 0.93;
/// A GPU gets a setting at which it is faster than the others by this share, because speeds are measured with errors.
const MARGIN: f64 = 0.006;
/// A GPU that could be lowered by less than this share stays as it is.
const MIN_LOWERING: f64 = 0.03;
/// The speed of a GPU grows with about this power of its cap or clock, if its trials do not show the power.
const USUAL_EXPONENT: f64 = 0.5;
/// The powers that trials can show; others come from errors of the measurement.
const EXPONENTS: (f64, f64) = (0.25, 2.0);
/// Above the trials, the speed grows with a lower power than between them: this share of it.
const FLATTENING: f64 = 0.85;
/// Two trials show the power only if their values differ by at least this factor.
const MIN_SPREAD: f64 = 1.08;
/// The largest number of trials of one GPU.
const MAX_TRIALS: usize = 6;

/// The settings of the GPUs of a job: for each GPU, the index in its ladder.
pub(super) type Levels = Vec<usize>;

/// A trial of a GPU: the value of its knob and the job's speed as a share of the speed before.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trial {
    value: f64,
    speed: f64,
}

/// Finds a setting for each GPU of a job, one GPU after the other.
#[derive(Clone, Debug)]
pub(super) struct Balancer {
    ladders: Vec<GpuLadder>,
    /// The settings so far.
    levels: Levels,
    /// The settings at the beginning.
    first: Levels,
    /// The value up to which the knob of each GPU has an effect at the beginning.
    used: Vec<f64>,
    /// The GPU that is tried now.
    gpu: usize,
    /// The level of the present trial of that GPU.
    trial: usize,
    trials: Vec<Trial>,
}

impl Balancer {
    /// Creates the balancer of GPUs that have these settings. `used` is the mean power of each GPU, if it is known and
    /// the knob is the power cap: a cap far above it has no effect.
    pub(super) fn new(ladders: Vec<GpuLadder>, first: Levels, used: &[Option<f64>]) -> Self {
        let powers = used;
        let gpus = ladders.iter().zip(&first).enumerate();
        let used = gpus.map(|(gpu, (ladder, level))| {
            let value = ladder.values[*level];
            let power = powers.get(gpu).copied().flatten();
            power.map_or(value, |power| power.min(value))
        });
        let mut balancer = Self {
            used: used.collect(),
            levels: first.clone(),
            first,
            gpu: 0,
            trial: 0,
            trials: Vec::new(),
            ladders,
        };
        balancer.begin_gpu();
        balancer
    }

    /// Ends the search with settings that an earlier one found. None of them is raised.
    pub(super) fn finish_with(&mut self, levels: &Levels) {
        let lower = self
            .first
            .iter()
            .zip(levels)
            .map(|(first, level)| *first.max(level));
        self.levels = lower.collect();
        self.gpu = self.ladders.len();
    }

    /// The settings to measure next; `None` if all GPUs have been tried.
    pub(super) fn next(&self) -> Option<Levels> {
        (self.gpu < self.ladders.len()).then(|| {
            let mut levels = self.levels.clone();
            levels[self.gpu] = self.trial;
            levels
        })
    }

    /// The settings that were found so far; those at the beginning for GPUs that have not been tried.
    pub(super) fn found(&self) -> &Levels {
        &self.levels
    }

    /// Whether a GPU was lowered.
    pub(super) fn has_lowered(&self) -> bool {
        self.levels != self.first
    }

    /// Records the job's speed at the settings that [`Balancer::next`] returned, as a share of the speed before.
    pub(super) fn record(&mut self, speed: f64) {
        let Some(ladder) = self.ladders.get(self.gpu) else {
            return;
        };
        let value = ladder.values[self.trial];
        self.trials.push(Trial { value, speed });
        let next = self.next_value(value, speed);
        let next = next.map(|next| ladder.at_least(next));
        let is_new = |level: &usize| *level > self.first[self.gpu] && !self.is_tried(*level);
        match next.filter(is_new) {
            Some(next) if self.trials.len() < MAX_TRIALS => self.trial = next,
            _ => self.finish_gpu(),
        }
    }

    /// The value of the next trial of the present GPU after one with this value and speed; `None` if there are enough.
    fn next_value(&self, value: f64, speed: f64) -> Option<f64> {
        if speed >= AS_FAST {
            // The GPU still has time to spare, unless a lower value was too low.
            return self.slowed().is_none().then_some(value * NEXT_STEP);
        }
        if speed >= NEAR {
            return None;
        }
        let needed = self.needed_value()?;
        match needed > self.highest_lowered() {
            true if speed >= RATHER_NEAR => None,
            true => Some((value * self.ladders[self.gpu].values[self.first[self.gpu]]).sqrt()),
            false => Some(AIM * needed),
        }
    }

    /// Corrects all lowered settings after the job turned out to have this share of its earlier speed.
    pub(super) fn raise(&mut self, speed: f64) {
        let factor = (1.0 + MARGIN)
            .max((1.0 + MARGIN) / speed)
            .powf(1.0 / USUAL_EXPONENT);
        for (gpu, level) in self.levels.iter_mut().enumerate() {
            if *level != self.first[gpu] {
                let ladder = &self.ladders[gpu];
                let raised = ladder.at_least(ladder.values[*level] * factor);
                *level = raised.min(level.saturating_sub(1)).max(self.first[gpu]);
            }
        }
    }

    /// Whether a level of the present GPU has been tried.
    fn is_tried(&self, level: usize) -> bool {
        let value = self.ladders[self.gpu].values[level];
        self.trials.iter().any(|trial| trial.value == value)
    }

    /// The trials in which the job slowed down, in the order of their values.
    fn slowed_trials(&self) -> Vec<Trial> {
        let slowed = self.trials.iter().filter(|trial| trial.speed < AS_FAST);
        let mut slowed: Vec<Trial> = slowed.copied().collect();
        slowed.sort_by(|a, b| a.value.total_cmp(&b.value));
        slowed
    }

    /// The trial with the highest value in which the job slowed down.
    fn slowed(&self) -> Option<Trial> {
        self.slowed_trials().last().copied()
    }

    /// The exponent by which the speed of the present GPU grows with its value above its trials.
    fn exponent(&self) -> f64 {
        let slowed = self.slowed_trials();
        let shown = slowed.last().and_then(|high| {
            let mut lower = slowed.iter().rev();
            let low = lower.find(|low| high.value >= MIN_SPREAD * low.value)?;
            let exponent = (high.speed / low.speed).ln() / (high.value / low.value).ln();
            Some(FLATTENING * exponent.clamp(EXPONENTS.0, EXPONENTS.1))
        });
        shown.unwrap_or(USUAL_EXPONENT)
    }

    /// The value at which the present GPU is faster than the others by [`MARGIN`], from its trials; `None` without any.
    fn needed_value(&self) -> Option<f64> {
        let exponent = self.exponent();
        let needed = |trial: Trial| {
            let speed = trial.speed.min(1.0);
            trial.value * ((1.0 + MARGIN) / speed).powf(1.0 / exponent)
        };
        let as_fast = self.trials.iter().filter(|trial| trial.speed >= AS_FAST);
        let as_fast = as_fast.map(|trial| trial.value).reduce(f64::min);
        // A value at which the job was as fast needs a margin as well.
        let as_fast = as_fast.map(|value| value * (1.0 + MARGIN).powf(1.0 / USUAL_EXPONENT));
        match (self.slowed().map(needed), as_fast) {
            (Some(slowed), Some(as_fast)) => Some(slowed.min(as_fast)),
            (slowed, as_fast) => slowed.or(as_fast),
        }
    }

    /// The highest value to which the present GPU is lowered: a GPU that needs more is one of the slowest.
    fn highest_lowered(&self) -> f64 {
        (1.0 - MIN_LOWERING) * self.ladders[self.gpu].values[self.first[self.gpu]]
    }

    /// Chooses the setting of the present GPU, and goes on to the next one.
    fn finish_gpu(&mut self) {
        let first = self.first[self.gpu];
        let highest = self.highest_lowered();
        let needed = self.needed_value().filter(|needed| *needed <= highest);
        let ladder = &self.ladders[self.gpu];
        self.levels[self.gpu] = needed.map_or(first, |needed| ladder.at_least(needed).max(first));
        self.gpu += 1;
        self.begin_gpu();
    }

    /// Chooses the first trial of the next GPU that can be lowered. A GPU of the same model as an earlier one that was
    /// lowered is tried just below that setting, which then is likely to fit.
    fn begin_gpu(&mut self) {
        self.trials.clear();
        while let Some(ladder) = self.ladders.get(self.gpu) {
            let is_twin = |other: &usize| self.ladders[*other].model == ladder.model;
            let twin = (0..self.gpu).rev().find(is_twin);
            let first = ladder.values[self.first[self.gpu]];
            let value = match twin {
                Some(twin) if self.levels[twin] != self.first[twin] => {
                    TWIN_STEP * self.ladders[twin].values[self.levels[twin]]
                }
                Some(_) => NEEDED_TWIN_STEP * first.min(self.used[self.gpu] / FIRST_STEP),
                None => FIRST_STEP * self.used[self.gpu],
            };
            self.trial = ladder.at_least(value);
            if self.trial > self.first[self.gpu] {
                return;
            }
            self.gpu += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_device::Settings;
    use sweetspot_stats::Seed;

    use super::*;

    /// A ladder of caps from 250 to 100 W.
    fn ladder(model: &str) -> GpuLadder {
        GpuLadder {
            model: model.to_owned(),
            values: (0..=150).map(|step| f64::from(250 - step)).collect(),
            settings: vec![Settings::default(); 151],
        }
    }

    /// A simulated job: the speed of each GPU at 250 W, and the power of its cap with which its speed grows.
    struct TestGpus(Vec<(&'static str, f64, f64)>);

    impl TestGpus {
        /// The job's speed at these caps.
        fn speed(&self, caps: &[f64]) -> f64 {
            let gpus = self.0.iter().zip(caps);
            let speeds =
                gpus.map(|((_, speed, exponent), cap)| speed * (cap / 250.0).powf(*exponent));
            speeds.fold(f64::INFINITY, f64::min)
        }

        /// The caps that a balancer finds, the job's speed at them, and the number of trials.
        fn balance(&self, noise: f64, seed: u64) -> (Vec<f64>, f64, usize) {
            let ladders: Vec<GpuLadder> = self.0.iter().map(|gpu| ladder(gpu.0)).collect();
            let first = vec![0; ladders.len()];
            let before = self.speed(&vec![250.0; ladders.len()]);
            let mut balancer = Balancer::new(ladders.clone(), first, &[]);
            let values = |levels: &Levels| -> Vec<f64> {
                let each = levels.iter().zip(&ladders);
                each.map(|(level, ladder)| ladder.values[*level]).collect()
            };
            let mut trials = 0;
            while let Some(levels) = balancer.next() {
                let error = noise * Seed::new(seed).number(trials).normal();
                balancer.record(self.speed(&values(&levels)) / before * (1.0 + error));
                trials += 1;
                assert!(trials < 100);
            }
            let caps = values(balancer.found());
            (caps.clone(), self.speed(&caps) / before, trials as usize)
        }
    }

    #[test]
    fn fast_gpus_are_lowered_until_all_arrive_together() {
        for exponent in [0.35, 0.5, 0.8] {
            let gpus = TestGpus(vec![
                ("fast", 1.6, exponent),
                ("slow", 1.0, exponent),
                ("fast", 1.6, exponent),
                ("slow", 1.0, exponent),
            ]);
            let (caps, speed, trials) = gpus.balance(0.0, 1);
            assert!(speed > 0.995, "{exponent}: {caps:?} {speed}");
            assert_eq!((caps[1], caps[3]), (250.0, 250.0), "{exponent}: {caps:?}");
            let needed = (250.0 * 1.6_f64.powf(-1.0 / exponent)).max(100.0);
            for cap in [caps[0], caps[2]] {
                assert!(
                    (cap / needed - 1.0) < 0.06,
                    "{exponent}: {caps:?}, {needed} needed"
                );
            }
            assert!(trials <= 10, "{exponent}: {trials}");
        }
    }

    #[test]
    fn equal_gpus_stay_as_they_are() {
        let gpus = TestGpus(vec![("one", 1.0, 0.5); 8]);
        let (caps, speed, trials) = gpus.balance(0.0, 1);
        assert_eq!((caps, speed), (vec![250.0; 8], 1.0));
        assert!(trials <= 10, "{trials}");
    }

    #[test]
    fn one_of_two_equal_gpus_may_be_slower() {
        for (a, b) in [(1.0, 0.9), (0.9, 1.0)] {
            let (caps, speed, _) = TestGpus(vec![("one", a, 0.5), ("one", b, 0.5)]).balance(0.0, 1);
            assert!(speed > 0.995, "{caps:?} {speed}");
            let fast = if a > b { caps[0] } else { caps[1] };
            assert!((203.0..=215.0).contains(&fast), "{caps:?}");
        }
    }

    #[test]
    fn errors_of_the_measurement_cost_little_time() {
        let gpus = TestGpus(vec![
            ("a", 1.3, 0.5),
            ("b", 1.0, 0.4),
            ("c", 1.1, 0.7),
            ("a", 1.25, 0.5),
        ]);
        let speeds: Vec<f64> = (0..200).map(|seed| gpus.balance(0.004, seed).1).collect();
        let slow = speeds.iter().filter(|speed| **speed < 0.985).count();
        assert!(slow <= 10, "{slow} of 200");
        let mean = speeds.iter().sum::<f64>() / 200.0;
        assert!(mean > 0.994, "{mean}");
    }

    #[test]
    fn a_ladder_without_lower_levels_needs_no_trial() {
        let one = GpuLadder {
            model: "one".to_owned(),
            values: vec![250.0],
            settings: vec![Settings::default()],
        };
        let balancer = Balancer::new(vec![one.clone(), one], vec![0, 0], &[]);
        assert_eq!(balancer.next(), None);
        assert!(!balancer.has_lowered());
    }
}
