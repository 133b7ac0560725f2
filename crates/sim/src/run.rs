//! A whole run in virtual time.

use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::job::{Job, Phase};
use crate::physics::{Chip, Cycle, Limits, State};

/// Sees every stretch of constant power of a run.
pub trait Sink {
    /// The next stretch.
    fn stretch(&mut self, time: Seconds, power: Watts);
}

/// Nobody looks.
impl Sink for () {
    fn stretch(&mut self, _: Seconds, _: Watts) {}
}

/// Mean power in equal spans of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    period: f64,
    watts: Vec<f32>,
    filled: f64,
    energy: f64,
}

impl Trace {
    /// With samples so far apart.
    pub fn every(period: Seconds) -> Self {
        Self {
            period: period.get(),
            watts: Vec::new(),
            filled: 0.0,
            energy: 0.0,
        }
    }

    /// The samples, oldest first; a span that the run did not fill is left out.
    pub fn watts(&self) -> &[f32] {
        &self.watts
    }
}

impl Sink for Trace {
    fn stretch(&mut self, time: Seconds, power: Watts) {
        let (mut time, power) = (time.get(), power.get());
        let room = self.period - self.filled;
        if time < room {
            self.filled += time;
            self.energy += power * time;
            return;
        }
        let mean = (self.energy + power * room) / self.period;
        self.watts.push(mean as f32);
        time -= room;
        let whole = (time / self.period) as usize;
        self.watts.extend(std::iter::repeat_n(power as f32, whole));
        self.filled = time - whole as f64 * self.period;
        self.energy = power * self.filled;
    }
}

/// Time and energy of one phase over a whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseTotal {
    /// Its name.
    pub name: String,
    /// Spent in it.
    pub time: Seconds,
    /// Drawn in it.
    pub energy: Joules,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From start to end.
    pub time: Seconds,
    /// Drawn by the GPU.
    pub energy: Joules,
    /// Items done.
    pub items: u64,
    /// By phase; their times and energies sum to those of the run.
    pub phases: Vec<PhaseTotal>,
}

impl Outcome {
    /// Energy over time.
    pub fn average_power(&self) -> Watts {
        self.energy / self.time
    }
}

/// Runs a job to its end.
pub fn run(
    chip: &Chip,
    state: &mut State,
    limits: &Limits,
    job: &Job,
    sink: &mut impl Sink,
) -> Outcome {
    let mut runner = Runner {
        chip,
        limits,
        totals: vec![(Seconds::ZERO, Joules::ZERO); job.phase_names().len()],
        steps: Vec::new(),
        sink,
    };
    runner.once(state, job.startup());
    let (iteration, count) = job.iterations();
    let mut left = count;
    while left > 0 {
        let before = *state;
        runner.once(state, iteration);
        left -= 1;
        if left > 0 {
            let between = *state;
            runner.once(state, iteration);
            left -= 1;
            let cycle = Cycle::new(&before, &between, state);
            left -= runner.again(state, &cycle, left);
        }
    }
    runner.once(state, job.last());
    let totals = runner.totals.into_iter();
    let phases: Vec<_> = job
        .phase_names()
        .iter()
        .zip(totals)
        .map(|(name, (time, energy))| PhaseTotal {
            name: name.clone(),
            time,
            energy,
        })
        .collect();
    Outcome {
        time: phases.iter().map(|phase| phase.time).sum(),
        energy: phases.iter().map(|phase| phase.energy).sum(),
        items: job.items,
        phases,
    }
}

struct Runner<'a, S> {
    chip: &'a Chip,
    limits: &'a Limits,
    totals: Vec<(Seconds, Joules)>,
    /// Phase, time and power of each step of the last [`Runner::once`].
    steps: Vec<(usize, Seconds, Watts)>,
    sink: &'a mut S,
}

impl<S: Sink> Runner<'_, S> {
    /// Goes through some phases, step by step.
    fn once(&mut self, state: &mut State, phases: &[Phase]) {
        self.steps.clear();
        for phase in phases {
            let mut left = Ratio::new(1.0);
            while left > Ratio::ZERO {
                let no_limit = Seconds::new(f64::INFINITY);
                let step = self
                    .chip
                    .step(state, self.limits, &phase.load, left, no_limit);
                left -= step.done;
                self.steps.push((phase.name, step.time, step.power));
                self.sink.stretch(step.time, step.power);
            }
        }
        self.count(1);
    }

    /// Repeats the last steps as often as they would come out the same; says how often.
    fn again(&mut self, state: &mut State, cycle: &Cycle, at_most: u64) -> u64 {
        let length: Seconds = self.steps.iter().map(|step| step.1).sum();
        let energy: Joules = self.steps.iter().map(|step| step.1 * step.2).sum();
        let times = self.chip.repeats(cycle, length).min(at_most);
        if times > 0 {
            for _ in 0..times {
                for (_, time, power) in &self.steps {
                    self.sink.stretch(*time, *power);
                }
            }
            self.chip.repeat(state, cycle, times, length, energy);
            self.count(times);
        }
        times
    }

    fn count(&mut self, times: u64) {
        for (phase, time, power) in &self.steps {
            let (total_time, total_energy) = &mut self.totals[*phase];
            *total_time += *time * times as f64;
            *total_energy += *time * *power * times as f64;
        }
    }
}
