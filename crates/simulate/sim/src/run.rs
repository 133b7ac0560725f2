//! A whole run in virtual time.

use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::job::{Exchange, Job};
use crate::physics::{Chip, Cycle, Limits, Load, State};

/// A time in which nothing changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// How long.
    pub time: Seconds,
    /// Drawn.
    pub power: Watts,
    /// Of the cores, against the default clock.
    pub clock: Ratio,
    /// Whether kernels ran.
    pub busy: bool,
}

/// Sees every stretch of a run.
pub trait Sink {
    /// The next stretch of a GPU of the job.
    fn stretch(&mut self, rank: usize, stretch: &Stretch);
}

/// Nobody looks.
impl Sink for () {
    fn stretch(&mut self, _: usize, _: &Stretch) {}
}

/// Means in equal spans of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    period: f64,
    /// Of power, clock and kernels running, each by sample.
    means: [Vec<f32>; 3],
    filled: f64,
    sums: [f64; 3],
}

impl Trace {
    /// With samples so far apart.
    pub fn every(period: Seconds) -> Self {
        Self {
            period: period.get(),
            means: [const { Vec::new() }; 3],
            filled: 0.0,
            sums: [0.0; 3],
        }
    }

    /// The power, oldest first; a span that the run did not fill is left out.
    pub fn watts(&self) -> &[f32] {
        &self.means[0]
    }

    /// The samples of power in watts, of the clock against the default one, and of the share of time in
    /// which kernels ran.
    pub fn into_parts(self) -> [Vec<f32>; 3] {
        self.means
    }

    fn add(&mut self, stretch: &Stretch) {
        let mut time = stretch.time.get();
        let busy = if stretch.busy { 1.0 } else { 0.0 };
        let values = [stretch.power.get(), stretch.clock.get(), busy];
        let room = self.period - self.filled;
        if time < room {
            self.filled += time;
            for (sum, value) in self.sums.iter_mut().zip(values) {
                *sum += value * time;
            }
            return;
        }
        time -= room;
        let whole = (time / self.period) as usize;
        self.filled = time - whole as f64 * self.period;
        let kinds = self.means.iter_mut().zip(&mut self.sums).zip(values);
        for ((means, sum), value) in kinds {
            means.push(((*sum + value * room) / self.period) as f32);
            means.extend(std::iter::repeat_n(value as f32, whole));
            *sum = value * self.filled;
        }
    }
}

/// Of the first GPU.
impl Sink for Trace {
    fn stretch(&mut self, rank: usize, stretch: &Stretch) {
        if rank == 0 {
            self.add(stretch);
        }
    }
}

/// One for each GPU.
impl Sink for [Trace] {
    fn stretch(&mut self, rank: usize, stretch: &Stretch) {
        if let Some(trace) = self.get_mut(rank) {
            trace.add(stretch);
        }
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
    sink: &mut (impl Sink + ?Sized),
) -> Outcome {
    let mut rank = Rank {
        chip,
        state,
        limits,
        job,
    };
    let mut together = run_together(std::slice::from_mut(&mut rank), Exchange::default(), sink);
    together.ranks.swap_remove(0)
}

/// One GPU of a job.
pub struct Rank<'a> {
    /// The GPU.
    pub chip: &'a Chip,
    /// As it is; it moves on with the job.
    pub state: &'a mut State,
    /// What is set on it.
    pub limits: &'a Limits,
    /// Its part of the job.
    pub job: &'a Job,
}

/// A time in which the same came again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// How long.
    pub time: Seconds,
    /// Drawn by all GPUs of the job.
    pub energy: Joules,
}

/// What a run on several GPUs came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Together {
    /// From start to end.
    pub time: Seconds,
    /// For each GPU; what it waits for the others is in its phase `exchange`.
    pub ranks: Vec<Outcome>,
    /// The run, span by span.
    pub spans: Vec<Span>,
}

/// Runs the parts of a synchronous data-parallel job: an iteration begins when the slowest GPU has ended the
/// one before and gradients have been exchanged. At least one rank.
pub fn run_together(
    ranks: &mut [Rank<'_>],
    exchange: Exchange,
    sink: &mut (impl Sink + ?Sized),
) -> Together {
    let mut group = Group {
        totals: ranks.iter().map(|rank| totals_of(rank.job)).collect(),
        steps: vec![Vec::new(); ranks.len()],
        ranks,
        exchange,
        spans: Vec::new(),
        sink,
    };
    group.once(Part::Startup);
    let mut left = group.ranks.iter().map(|rank| rank.job.iterations().1).max();
    let left = left.get_or_insert(0);
    while *left > 0 {
        let before = group.states();
        group.once(Part::Iteration);
        *left -= 1;
        if *left > 0 {
            let between = group.states();
            group.once(Part::Iteration);
            *left -= 1;
            let after = group.states();
            let cycles: Vec<Cycle> = (0..after.len())
                .map(|rank| Cycle::new(&before[rank], &between[rank], &after[rank]))
                .collect();
            *left -= group.again(&cycles, *left);
        }
    }
    group.once(Part::Last);
    let outcomes = group.ranks.iter().zip(group.totals);
    let ranks: Vec<Outcome> = outcomes
        .map(|(rank, totals)| outcome_of(rank.job, totals))
        .collect();
    Together {
        time: ranks
            .iter()
            .fold(Seconds::ZERO, |time, rank| time.max(rank.time)),
        ranks,
        spans: group.spans,
    }
}

fn totals_of(job: &Job) -> Vec<(Seconds, Joules)> {
    vec![(Seconds::ZERO, Joules::ZERO); job.phase_names().len() + 1]
}

fn outcome_of(job: &Job, totals: Vec<(Seconds, Joules)>) -> Outcome {
    let names = job.phase_names().iter().map(String::as_str);
    let phases: Vec<_> = names
        .chain([EXCHANGE])
        .zip(totals)
        .filter(|(name, (time, _))| *name != EXCHANGE || *time > Seconds::ZERO)
        .map(|(name, (time, energy))| PhaseTotal {
            name: name.to_owned(),
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

/// The phase in which GPUs wait for each other.
const EXCHANGE: &str = "exchange";

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Startup,
    Iteration,
    Last,
}

/// A step and its phase.
type TakenStep = (usize, Stretch);

struct Group<'a, 'b, S: ?Sized> {
    ranks: &'a mut [Rank<'b>],
    exchange: Exchange,
    totals: Vec<Vec<(Seconds, Joules)>>,
    /// The steps of the last [`Group::once`], rank by rank.
    steps: Vec<Vec<TakenStep>>,
    spans: Vec<Span>,
    sink: &'a mut S,
}

impl<S: Sink + ?Sized> Group<'_, '_, S> {
    fn states(&self) -> Vec<State> {
        self.ranks.iter().map(|rank| *rank.state).collect()
    }

    /// Goes through a part of the job on every GPU, step by step, until all have ended it.
    fn once(&mut self, part: Part) {
        for (rank, steps) in self.ranks.iter_mut().zip(&mut self.steps) {
            steps.clear();
            let phases = match part {
                Part::Startup => rank.job.startup(),
                Part::Iteration => rank.job.iterations().0,
                Part::Last => rank.job.last(),
            };
            for phase in phases {
                take(rank, phase.name, &phase.load, steps);
            }
        }
        let ends: Vec<Seconds> = self.steps.iter().map(|steps| length(steps)).collect();
        let slowest = ends
            .iter()
            .fold(Seconds::ZERO, |slowest, end| slowest.max(*end));
        let exchange = match part {
            Part::Startup => Seconds::ZERO,
            _ => self.exchange.time,
        };
        if slowest > Seconds::ZERO && self.ranks.len() > 1 {
            for ((rank, steps), end) in self.ranks.iter_mut().zip(&mut self.steps).zip(ends) {
                let time = slowest + exchange - end;
                if time > Seconds::ZERO {
                    let name = rank.job.phase_names().len();
                    let load = rank.job.exchange(time, self.exchange.activity);
                    take(rank, name, &load, steps);
                }
            }
        }
        self.show();
        self.count(1);
    }

    /// Repeats the last steps as often as they would come out the same; says how often.
    fn again(&mut self, cycles: &[Cycle], at_most: u64) -> u64 {
        let length = length(&self.steps[0]);
        let each = self.ranks.iter().zip(cycles);
        let times = each
            .map(|(rank, cycle)| rank.chip.repeats(cycle, length))
            .fold(at_most, u64::min);
        if times > 0 {
            for _ in 0..times {
                self.show();
            }
            for ((rank, steps), cycle) in self.ranks.iter_mut().zip(&self.steps).zip(cycles) {
                let energy = energy(steps);
                rank.chip.repeat(rank.state, cycle, times, length, energy);
            }
            self.count(times);
        }
        times
    }

    /// Lets the sink see the last steps.
    fn show(&mut self) {
        for (rank, steps) in self.steps.iter().enumerate() {
            for (_, step) in steps {
                self.sink.stretch(rank, step);
            }
        }
    }

    fn count(&mut self, times: u64) {
        let times = times as f64;
        for (steps, totals) in self.steps.iter().zip(&mut self.totals) {
            for (phase, step) in steps {
                let (total_time, total_energy) = &mut totals[*phase];
                *total_time += step.time * times;
                *total_energy += step.time * step.power * times;
            }
        }
        let time = length(&self.steps[0]) * times;
        if time > Seconds::ZERO {
            let energy = self.steps.iter().map(|steps| energy(steps)).sum::<Joules>() * times;
            self.spans.push(Span { time, energy });
        }
    }
}

/// Does a load on a GPU.
fn take(rank: &mut Rank<'_>, name: usize, load: &Load, steps: &mut Vec<TakenStep>) {
    let mut left = Ratio::new(1.0);
    let busy = matches!(load, Load::Kernels { .. });
    while left > Ratio::ZERO {
        let no_limit = Seconds::new(f64::INFINITY);
        let step = rank
            .chip
            .step(rank.state, rank.limits, load, left, no_limit);
        left -= step.done;
        let taken = Stretch {
            time: step.time,
            power: step.power,
            clock: rank.state.clock(),
            busy,
        };
        steps.push((name, taken));
    }
}

fn length(steps: &[TakenStep]) -> Seconds {
    steps.iter().map(|(_, step)| step.time).sum()
}

fn energy(steps: &[TakenStep]) -> Joules {
    steps.iter().map(|(_, step)| step.time * step.power).sum()
}
