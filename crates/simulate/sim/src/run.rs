//! Simulates whole runs of jobs in virtual time.

use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::job::{GradientExchange, Job};
use crate::physics::{Bounds, Chip, Cycle, Limits, Load, State};

/// A time span of a run with constant power and clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// The length of the time span.
    pub time: Seconds,
    /// The power during the time span.
    pub power: Watts,
    /// The core clock, relative to the default clock.
    pub clock: Ratio,
    /// Whether kernels ran during the time span.
    pub busy: bool,
    /// What limited the work during the time span.
    pub bounds: Bounds,
}

/// Receives every stretch of a run as the run is simulated.
pub trait StretchSink {
    /// Records the next stretch of one of the job's GPUs.
    fn record(&mut self, rank: usize, stretch: &Stretch);
}

/// Ignores all stretches of a run.
impl StretchSink for () {
    fn record(&mut self, _: usize, _: &Stretch) {}
}

/// The time and energy of one phase over a whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseTotal {
    /// The name of the phase, such as `forward`.
    pub name: String,
    /// The time spent in the phase.
    pub time: Seconds,
    /// The energy drawn in the phase.
    pub energy: Joules,
}

/// The result of a run on one GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The time from the start of the run to its end.
    pub time: Seconds,
    /// The energy drawn by the GPU.
    pub energy: Joules,
    /// The number of items that the run processed.
    pub items: u64,
    /// The totals of all phases, which add up to the time and energy of the run.
    pub phases: Vec<PhaseTotal>,
}

impl Outcome {
    /// The mean power of the run: its energy divided by its time.
    pub fn average_power(&self) -> Watts {
        self.energy / self.time
    }
}

/// Simulates a job on one GPU to its end.
pub fn run(
    chip: &Chip,
    state: &mut State,
    limits: &Limits,
    job: &Job,
    sink: &mut (impl StretchSink + ?Sized),
) -> Outcome {
    let mut rank = Rank {
        chip,
        state,
        limits,
        job,
    };
    let mut outcome = run_together(
        std::slice::from_mut(&mut rank),
        GradientExchange::default(),
        sink,
    );
    outcome.ranks.swap_remove(0)
}

/// A GPU of a job, with its state, its limits and its part of the job.
pub struct Rank<'a> {
    /// The physical constants of the GPU.
    pub chip: &'a Chip,
    /// The state of the GPU, which the job advances.
    pub state: &'a mut State,
    /// The limits that the GPU's settings impose.
    pub limits: &'a Limits,
    /// The part of the job that runs on this GPU.
    pub job: &'a Job,
}

/// A time span of a run in which the same iteration is repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSpan {
    /// The length of the time span.
    pub time: Seconds,
    /// The energy that all GPUs of the job drew in the time span.
    pub energy: Joules,
}

/// The result of a job on several GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupOutcome {
    /// The time from the start of the job to its end.
    pub time: Seconds,
    /// The result of each GPU. In its phase `wait` it waits for slower GPUs, and in its phase `exchange` all exchange the
    /// gradients that the backward pass has not hidden.
    pub ranks: Vec<Outcome>,
    /// The time spans of the job, in order.
    pub spans: Vec<RunSpan>,
}

/// Simulates a synchronous data-parallel job on at least one GPU. An iteration begins when the slowest GPU
/// has finished the previous one and the rest of the gradients, which its backward pass did not hide, has been exchanged.
pub fn run_together(
    ranks: &mut [Rank<'_>],
    exchange: GradientExchange,
    sink: &mut (impl StretchSink + ?Sized),
) -> GroupOutcome {
    let mut group = Group {
        totals: ranks.iter().map(|rank| totals_of(rank.job)).collect(),
        steps: vec![Vec::new(); ranks.len()],
        ranks,
        exchange,
        spans: Vec::new(),
        sink,
    };
    group.run_part(Part::Startup);
    let mut left = group.ranks.iter().map(|rank| rank.job.iterations().1).max();
    let left = left.get_or_insert(0);
    while *left > 0 {
        let before = group.states();
        group.run_part(Part::Iteration);
        *left -= 1;
        if *left > 0 {
            let between = group.states();
            group.run_part(Part::Iteration);
            *left -= 1;
            let after = group.states();
            let cycles: Vec<Cycle> = (0..after.len())
                .map(|rank| Cycle::new(&before[rank], &between[rank], &after[rank]))
                .collect();
            *left -= group.repeat_iteration(&cycles, *left);
        }
    }
    group.run_part(Part::Last);
    let outcomes = group.ranks.iter().zip(group.totals);
    let ranks: Vec<Outcome> = outcomes
        .map(|(rank, totals)| outcome_of(rank.job, totals))
        .collect();
    GroupOutcome {
        time: ranks
            .iter()
            .fold(Seconds::ZERO, |time, rank| time.max(rank.time)),
        ranks,
        spans: group.spans,
    }
}

/// A time and an energy of zero for each phase of the job, for the wait and for the exchange.
fn totals_of(job: &Job) -> Vec<(Seconds, Joules)> {
    vec![(Seconds::ZERO, Joules::ZERO); job.phase_names().len() + 2]
}

/// Makes the result of one GPU from the totals of its phases.
fn outcome_of(job: &Job, totals: Vec<(Seconds, Joules)>) -> Outcome {
    let names = job.phase_names().iter().map(String::as_str);
    let phases: Vec<_> = names
        .chain([WAIT, EXCHANGE])
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

/// The name of the phase in which a GPU waits for slower ones.
const WAIT: &str = "wait";
/// The name of the phase in which all GPUs exchange gradients.
const EXCHANGE: &str = "exchange";

/// The part of a job that is simulated next.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Startup,
    Iteration,
    Last,
}

/// The index of a phase, and a step of the physics in that phase.
type TakenStep = (usize, Stretch);

/// The GPUs of a running job, and what is recorded about them.
struct Group<'a, 'b, S: ?Sized> {
    ranks: &'a mut [Rank<'b>],
    exchange: GradientExchange,
    totals: Vec<Vec<(Seconds, Joules)>>,
    /// The steps of each GPU in the last [`Group::run_part`].
    steps: Vec<Vec<TakenStep>>,
    spans: Vec<RunSpan>,
    sink: &'a mut S,
}

impl<S: StretchSink + ?Sized> Group<'_, '_, S> {
    /// A copy of the present states of all GPUs.
    fn states(&self) -> Vec<State> {
        self.ranks.iter().map(|rank| *rank.state).collect()
    }

    /// Simulates a part of the job on every GPU, until all have finished it.
    fn run_part(&mut self, part: Part) {
        for (rank, steps) in self.ranks.iter_mut().zip(&mut self.steps) {
            steps.clear();
            let phases = match part {
                Part::Startup => rank.job.startup(),
                Part::Iteration => rank.job.iterations().0,
                Part::Last => rank.job.last(),
            };
            for phase in phases {
                run_load(rank, phase.name, &phase.load, steps);
            }
        }
        let ends: Vec<Seconds> = self.steps.iter().map(|steps| length(steps)).collect();
        let slowest = ends
            .iter()
            .fold(Seconds::ZERO, |slowest, end| slowest.max(*end));
        let exchange = match part {
            Part::Startup => Seconds::ZERO,
            _ => self.exchange.exposed_after(self.backward_time()),
        };
        if slowest > Seconds::ZERO && self.ranks.len() > 1 {
            for ((rank, steps), end) in self.ranks.iter_mut().zip(&mut self.steps).zip(ends) {
                let name = rank.job.phase_names().len();
                for (name, time) in [(name, slowest - end), (name + 1, exchange)] {
                    if time > Seconds::ZERO {
                        let load = rank.job.exchange(time, self.exchange.activity);
                        run_load(rank, name, &load, steps);
                    }
                }
            }
        }
        self.record();
        self.count(1);
    }

    /// The time of the shortest backward pass in the last part. A ring moves no further than its slowest GPU, which may
    /// have begun its backward pass last.
    fn backward_time(&self) -> Seconds {
        let passes = self.ranks.iter().zip(&self.steps).map(|(rank, steps)| {
            let backward = steps
                .iter()
                .filter(|(phase, _)| rank.job.is_backward(*phase));
            backward.map(|(_, step)| step.time).sum::<Seconds>()
        });
        passes.reduce(|a, b| a.min(b)).unwrap_or(Seconds::ZERO)
    }

    /// Repeats the last iteration, at most `at_most` times, for as long as its result would hardly change. Returns the
    /// number of repetitions.
    fn repeat_iteration(&mut self, cycles: &[Cycle], at_most: u64) -> u64 {
        let length = length(&self.steps[0]);
        let each = self.ranks.iter().zip(cycles);
        let times = each
            .map(|(rank, cycle)| rank.chip.repeats(cycle, length))
            .fold(at_most, u64::min);
        if times > 0 {
            for _ in 0..times {
                self.record();
            }
            for ((rank, steps), cycle) in self.ranks.iter_mut().zip(&self.steps).zip(cycles) {
                let energy = energy(steps);
                rank.chip.repeat(rank.state, cycle, times, length, energy);
            }
            self.count(times);
        }
        times
    }

    /// Sends the steps of the last part to the sink.
    fn record(&mut self) {
        for (rank, steps) in self.steps.iter().enumerate() {
            for (_, step) in steps {
                self.sink.record(rank, step);
            }
        }
    }

    /// Adds the steps of the last part to the totals of their phases, `times` times.
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
            self.spans.push(RunSpan { time, energy });
        }
    }
}

/// Simulates a load on one GPU to its end.
fn run_load(rank: &mut Rank<'_>, name: usize, load: &Load, steps: &mut Vec<TakenStep>) {
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
            bounds: rank.chip.bounds(rank.state, rank.limits, load),
        };
        steps.push((name, taken));
    }
}

/// The total time of the steps.
fn length(steps: &[TakenStep]) -> Seconds {
    steps.iter().map(|(_, step)| step.time).sum()
}

/// The total energy of the steps.
fn energy(steps: &[TakenStep]) -> Joules {
    steps.iter().map(|(_, step)| step.time * step.power).sum()
}
