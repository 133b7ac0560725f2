//! A simulated GPU on which programs start and end while its power cap changes.

use sweetspot_predict::find_workload;
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{
    Chip, GpuProfile, Job, JobRequest, Limits, Load, State, Variant, Variation, find_gpu,
};
use sweetspot_stats::Seed;

use crate::SimulationError;

/// The relative standard deviation of the work from iteration to iteration, because inputs differ.
const ITERATION_VARIATION: f64 = 0.01;

/// Kernels that wait for another GPU draw a little more than an idle GPU does.
const WAITING: Load = Load::Exchange {
    time: Seconds::new(1.0),
    switching: Ratio::new(0.05),
    memory_activity: Ratio::new(0.05),
};

/// A program that repeats an iteration on a GPU until it is ended.
#[derive(Clone, Debug)]
pub struct SimulatedProgram {
    loads: Vec<Load>,
    items: f64,
    seed: Seed,
    /// Whether the program reports its progress.
    pub reports: bool,
}

impl SimulatedProgram {
    /// Creates a program that trains or serves a network on a GPU. `None` if the network does not run there.
    pub fn new(
        gpu: &(String, GpuProfile),
        network: &str,
        variant: &Variant,
        seed: Seed,
    ) -> Result<Self, SimulationError> {
        let study = gpu.1.study.as_deref();
        let workload = find_workload(network, study, variant, std::slice::from_ref(gpu))?;
        let work = workload.work_on(&gpu.0, &gpu.1)?;
        let request = JobRequest {
            batch: None,
            items: Some(workload.profile.batch),
        };
        let variation = Variation::draw(gpu.1.noise, seed);
        let job = Job::new(&workload.profile, &work, &gpu.1, request, variation);
        let job = job.map_err(|problem| workload.cannot_run(problem))?;
        let phases = job.iterations().0.iter();
        Ok(Self {
            loads: phases.map(|phase| phase.load).collect(),
            items: job.batch as f64,
            seed,
            reports: true,
        })
    }

    /// The loads of an iteration.
    pub fn loads(&self) -> &[Load] {
        &self.loads
    }

    /// The number of items of an iteration.
    pub fn items(&self) -> f64 {
        self.items
    }
}

/// The progress of a program: which load of which iteration runs, and how much of it is left.
#[derive(Clone, Debug)]
struct RunningProgram {
    program: SimulatedProgram,
    id: u64,
    iteration: u64,
    load: usize,
    left: f64,
    /// The items that are done.
    done: f64,
}

/// What happened on a GPU in a part of the simulated time.
#[derive(Clone, Debug, Default)]
pub struct GpuSpan {
    /// The mean power, in watts.
    pub power: f64,
    /// The share of the time in which the power cap limited the clock.
    pub limited: f64,
    /// The share of the time in which kernels ran.
    pub busy: f64,
    /// The reports of the program: their times, and the items that were done by then.
    pub reports: Vec<(Seconds, f64)>,
}

/// A simulated GPU with a power cap and at most one program.
#[derive(Clone, Debug)]
pub struct BudgetedGpu {
    profile: GpuProfile,
    chip: Chip,
    state: State,
    limits: Limits,
    cap: Watts,
    running: Option<RunningProgram>,
    started: u64,
    /// The iterations after which the program waits for the other GPUs of its job; without a limit alone.
    allowed: Option<u64>,
    /// The items of programs that have ended.
    earlier_items: f64,
    now: f64,
}

impl BudgetedGpu {
    /// Creates an idle GPU with its default power cap.
    pub fn new(name: &str) -> Result<Self, SimulationError> {
        Ok(Self::from_profile(find_gpu(name)?.1))
    }

    /// Creates an idle GPU of a profile with its default power cap.
    pub fn from_profile(profile: GpuProfile) -> Self {
        let chip = Chip::new(&profile);
        let cap = profile.cap.default;
        Self {
            state: chip.rest_state(),
            limits: chip.limits(profile.enforced_cap(cap), None, None),
            chip,
            profile,
            cap,
            running: None,
            started: 0,
            allowed: None,
            earlier_items: 0.0,
            now: 0.0,
        }
    }

    /// The profile of the GPU.
    pub fn profile(&self) -> &GpuProfile {
        &self.profile
    }

    /// The power cap that is set.
    pub fn cap(&self) -> Watts {
        self.cap
    }

    /// The number of the program that runs; `None` if the GPU is idle.
    pub fn program(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.id)
    }

    /// Whether a program runs that reports its progress.
    pub fn has_reports(&self) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.program.reports)
    }

    /// The iterations that the present program has completed.
    pub fn iterations(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.iteration)
    }

    /// The most iterations that the program completes in a time at the present cap, and at least one.
    pub fn iterations_within(&self, time: Seconds) -> u64 {
        let running = self.running.as_ref();
        let iteration = running.map(|running| {
            let loads = &running.program.loads;
            self.chip.steady(&self.limits, loads).time
        });
        iteration.map_or(1, |iteration| 1 + (time / iteration).get() as u64)
    }

    /// Lets the program run until it has completed this many iterations; then it waits for the other GPUs of its job.
    pub fn allow(&mut self, iterations: Option<u64>) {
        self.allowed = iterations;
    }

    /// All items that programs have done on this GPU.
    pub fn items(&self) -> f64 {
        self.earlier_items + self.running.as_ref().map_or(0.0, RunningProgram::items)
    }

    /// Sets the power cap, within what the GPU supports.
    pub fn set_cap(&mut self, cap: Watts) {
        self.cap = cap.max(self.profile.cap.min).min(self.profile.cap.max);
        let enforced = self.profile.enforced_cap(self.cap);
        self.limits = self.chip.limits(enforced, None, None);
    }

    /// Starts a program, or ends the present one.
    pub fn run(&mut self, program: Option<SimulatedProgram>) {
        self.earlier_items = self.items();
        self.started += 1;
        self.running = program.map(|program| RunningProgram {
            program,
            id: self.started,
            iteration: 0,
            load: 0,
            left: 1.0,
            done: 0.0,
        });
    }

    /// The items per second and the power of a program in the long run, under a power cap.
    pub fn steady(&self, program: &SimulatedProgram, cap: Watts) -> (f64, Watts) {
        let limits = self.chip.limits(self.profile.enforced_cap(cap), None, None);
        let steady = self.chip.steady(&limits, &program.loads);
        (program.items / steady.time.get(), steady.power)
    }

    /// Advances the GPU by a time.
    pub fn advance(&mut self, time: Seconds) -> GpuSpan {
        let end = self.now + time.get();
        let (mut energy, mut limited, mut busy) = (0.0, 0.0, 0.0);
        let mut span = GpuSpan::default();
        while end - self.now > 1e-9 {
            let at_most = Seconds::new(end - self.now);
            let allowed = self.allowed.unwrap_or(u64::MAX);
            let running = self.running.as_ref();
            let is_waiting = running.is_some_and(|running| running.iteration >= allowed);
            let load = match is_waiting {
                true => WAITING,
                false => running.map_or(Load::None, RunningProgram::load),
            };
            let left = match is_waiting {
                true => 1.0,
                false => running.map_or(1.0, |running| running.left),
            };
            let step = self.chip.step(
                &mut self.state,
                &self.limits,
                &load,
                Ratio::new(left),
                at_most,
            );
            let length = step.time.get();
            self.now += length;
            energy += step.power.get() * length;
            if self.chip.bounds(&self.state, &self.limits, &load).is_capped {
                limited += length;
            }
            if matches!(load, Load::Kernels { .. } | Load::Exchange { .. }) {
                busy += length;
            }
            let done = step.done.get();
            let now = Seconds::new(self.now);
            if let Some(running) = &mut self.running
                && !is_waiting
                && running.advance(done)
                && running.program.reports
            {
                span.reports.push((now, running.done));
            }
        }
        let length = time.get();
        GpuSpan {
            power: energy / length,
            limited: limited / length,
            busy: busy / length,
            ..span
        }
    }
}

impl RunningProgram {
    /// The load that runs now; its work varies a little from iteration to iteration.
    fn load(&self) -> Load {
        let seed = self.program.seed.label("iteration").number(self.iteration);
        let factor = 1.0 + ITERATION_VARIATION * seed.normal().clamp(-3.0, 3.0);
        super::scale_load(&self.program.loads[self.load], factor, 1.0)
    }

    /// All items that are done, with the part of the present iteration that is.
    fn items(&self) -> f64 {
        let loads = self.program.loads.len() as f64;
        let share = (self.load as f64 + 1.0 - self.left) / loads;
        self.done + self.program.items * share
    }

    /// Takes note of a done share of the present load, and returns whether an iteration is complete.
    fn advance(&mut self, done: f64) -> bool {
        self.left -= done;
        if self.left > 1e-12 {
            return false;
        }
        self.left = 1.0;
        self.load += 1;
        if self.load < self.program.loads.len() {
            return false;
        }
        self.load = 0;
        self.iteration += 1;
        self.done += self.program.items;
        true
    }
}
