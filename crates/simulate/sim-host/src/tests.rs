//! A shared GPU in virtual time: the sensors of each generation, jobs and long idle times.

use sweetspot_quantity::{Bytes, Megahertz, Ratio, Seconds, Watts};
use sweetspot_sim::{Chip, Fault, Generation, GpuProfile, Load, Phase, SensorKind, find_gpu};
use sweetspot_stats::Seed;

use crate::host::initial_record;
use crate::live::{LiveGpu, Record, Throttle};

/// A millisecond, in nanoseconds.
const MS: u64 = 1_000_000;
/// The monotonic time at which the test GPUs are created, in nanoseconds.
const START: u64 = 5_000_000_000;

/// A simulated GPU without files, whose time the test advances.
struct TestGpu {
    profile: GpuProfile,
    chip: Chip,
    record: Record,
}

impl TestGpu {
    /// Creates an idle GPU with the sensors of this generation.
    fn new(generation: Generation) -> Self {
        let (_, mut profile) = find_gpu("v100").unwrap();
        profile.sensors = generation;
        let chip = Chip::new(&profile);
        let record = initial_record(&profile, &chip, START, Seed::new(1));
        Self {
            profile,
            chip,
            record,
        }
    }

    /// The GPU at its present time.
    fn live(&mut self) -> LiveGpu<'_> {
        LiveGpu {
            profile: &self.profile,
            chip: &self.chip,
            record: &mut self.record,
        }
    }

    /// Advances the time in steps of some milliseconds.
    fn pass(&mut self, milliseconds: u64, step: u64) {
        let end = self.record.now + milliseconds * MS;
        while self.record.now < end {
            let to = (self.record.now + step * MS).min(end);
            self.live().advance(to);
        }
    }
}

/// A phase whose kernels run for this time, with this switching power.
fn kernels(seconds: f64, switching: f64) -> Phase {
    Phase {
        name: 0,
        load: Load::Kernels {
            launch: Seconds::ZERO,
            core: Seconds::new(seconds),
            memory: Seconds::ZERO,
            switching: Ratio::new(switching),
            memory_activity: Ratio::new(1.0),
        },
    }
}

/// A phase in which the GPU only waits.
fn waiting(seconds: f64) -> Phase {
    Phase {
        name: 0,
        load: Load::Waiting {
            host: Seconds::new(seconds),
        },
    }
}

/// Adds a job of this process, which is running.
fn add_job(gpu: &mut TestGpu, phases: &[Phase], iterations: u64) -> crate::JobId {
    let mut live = gpu.live();
    let job = live.add_job(std::process::id(), Bytes::new(1e9)).unwrap();
    live.grant_iterations(job, phases, iterations).unwrap();
    job
}

#[test]
fn the_counter_updates_every_100_ms_and_loses_no_energy() {
    let mut gpu = TestGpu::new(Generation::Volta);
    add_job(&mut gpu, &[kernels(0.1, 0.8)], 1_000_000);
    let mut seen = Vec::new();
    for _ in 0..500 {
        gpu.pass(1, 1);
        let counter = gpu.live().counter().unwrap().get();
        if seen.last() != Some(&counter) {
            seen.push(counter);
        }
    }
    assert_eq!(seen.len(), 6, "{seen:?}");
    assert!((gpu.live().energy().get() - seen[5]).abs() < 1e-6);
    gpu.profile.sensors = Generation::Pascal;
    assert_eq!(gpu.live().counter(), None);
}

#[test]
fn the_average_rises_for_a_second_and_the_instant_value_at_once() {
    let mut gpu = TestGpu::new(Generation::Hopper);
    gpu.pass(2000, 50);
    assert!((gpu.live().power_usage().get() - 40.0).abs() < 0.1);
    add_job(&mut gpu, &[kernels(0.5, 0.8)], 1_000_000);
    gpu.pass(500, 10);
    let (average, instant) = (gpu.live().average_power(), gpu.live().instant_power());
    let power = gpu.live().state().power();
    assert!(
        (instant - power).abs() < Watts::new(2.0),
        "{instant} {power}"
    );
    let halfway = Watts::new(0.5 * (40.0 + power.get()));
    assert!(
        (average - halfway).abs() < Watts::new(25.0),
        "{average} {halfway}"
    );
    gpu.pass(700, 10);
    assert!((gpu.live().power_usage() - power).abs() < Watts::new(3.0));
    gpu.profile.sensors = Generation::Volta;
    assert!(gpu.live().power_usage() == gpu.live().instant_power());
}

#[test]
fn a_short_window_aliases_a_fast_wave() {
    // 25 ms of work and 75 ms of waiting, in phase with a sensor that measures 25 ms of every 100 ms.
    let mut gpu = TestGpu::new(Generation::Hopper);
    add_job(&mut gpu, &[kernels(0.025, 0.5), waiting(0.075)], 1_000_000);
    gpu.pass(3000, 7);
    let before = gpu.live().energy();
    let mut readings = Vec::new();
    for _ in 0..20 {
        gpu.pass(100, 7);
        readings.push(gpu.live().instant_power().get());
    }
    let mean = (gpu.live().energy() - before).get() / 2.0;
    let seen = readings.iter().sum::<f64>() / 20.0;
    assert!(
        (seen / mean - 1.0).abs() > 0.1,
        "a part-time sensor aliases: {seen} for {mean}"
    );
}

#[test]
fn the_buffer_has_119_jittered_samples_that_lag_behind_the_power() {
    let mut gpu = TestGpu::new(Generation::Hopper);
    gpu.pass(3000, 20);
    add_job(&mut gpu, &[kernels(0.5, 0.8)], 1_000_000);
    gpu.pass(1000, 20);
    let samples = gpu.live().samples();
    assert_eq!(samples.len(), 119);
    let gaps: Vec<u64> = samples
        .windows(2)
        .map(|pair| (pair[1].at - pair[0].at) / MS)
        .collect();
    assert!(gaps.iter().all(|gap| (11..=35).contains(gap)), "{gaps:?}");
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    assert!((mean - 20.0).abs() < 2.0, "{mean}");
    let rise: Vec<f64> = samples
        .iter()
        .map(|sample| sample.watts)
        .filter(|watts| *watts > 45.0 && *watts < 200.0)
        .collect();
    assert!(!rise.is_empty(), "the rise is not a step");
    assert!((samples[118].watts - gpu.live().state().power().get()).abs() < 1.0);
}

#[test]
fn the_number_of_updates_changes_neither_work_nor_energy() {
    let after = |step: u64| {
        let mut gpu = TestGpu::new(Generation::Volta);
        gpu.live().set_power_cap(Watts::new(170.0)).unwrap();
        let job = add_job(&mut gpu, &[waiting(0.02), kernels(0.05, 0.9)], 1_000_000);
        gpu.pass(8000, step);
        let progress = gpu.live().poll_job(job).unwrap();
        (progress.done, gpu.live().energy().get())
    };
    let (often, seldom) = (after(1), after(4000));
    assert!(often.0.abs_diff(seldom.0) <= 1, "{often:?} {seldom:?}");
    assert!(
        (often.1 / seldom.1 - 1.0).abs() < 2e-3,
        "{often:?} {seldom:?}"
    );
}

#[test]
fn two_jobs_share_the_cores() {
    let mut gpu = TestGpu::new(Generation::Volta);
    let alone = add_job(&mut gpu, &[kernels(0.01, 0.5)], 1_000_000);
    gpu.pass(2000, 10);
    let one = gpu.live().poll_job(alone).unwrap().done;
    let other = add_job(&mut gpu, &[kernels(0.01, 0.5)], 1_000_000);
    gpu.pass(2000, 10);
    let both = (
        gpu.live().poll_job(alone).unwrap().done - one,
        gpu.live().poll_job(other).unwrap().done,
    );
    assert!(
        both.0.abs_diff(one / 2) <= 3 && both.1.abs_diff(one / 2) <= 3,
        "{one} {both:?}"
    );
    assert_eq!(gpu.live().jobs().len(), 2);
    assert_eq!(gpu.live().throttle(), Throttle::None);
}

#[test]
fn exactly_the_granted_iterations_are_done() {
    let mut gpu = TestGpu::new(Generation::Volta);
    let job = add_job(&mut gpu, &[kernels(0.01, 0.5)], 7);
    gpu.pass(1000, 30);
    let progress = gpu.live().poll_job(job).unwrap();
    assert_eq!(progress.done, 7);
    let took = (progress.finished_at.unwrap() - START) as f64 * 1e-9;
    assert!((took - 0.07).abs() < 1e-3, "{took}");
    assert_eq!(gpu.live().throttle(), Throttle::Idle);
    gpu.live().remove_job(job);
    assert!(gpu.live().poll_job(job).is_err());
}

#[test]
fn a_job_whose_process_has_ended_stops_soon() {
    let mut gpu = TestGpu::new(Generation::Volta);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let ended = child.id();
    child.wait().unwrap();
    let job = gpu.live().add_job(ended, Bytes::new(1e9)).unwrap();
    gpu.live()
        .grant_iterations(job, &[kernels(0.01, 0.5)], 1_000_000)
        .unwrap();
    gpu.pass(1000, 1000);
    assert_eq!(gpu.live().jobs(), []);
    let idle = gpu.chip.rest_state().power().get();
    assert!(gpu.live().energy().get() < idle * 1.0 + 200.0 * 0.25);
}

#[test]
fn a_long_idle_time_is_skipped() {
    let mut gpu = TestGpu::new(Generation::Volta);
    let hours = 10 * 3600 * 1000;
    let start = std::time::Instant::now();
    gpu.live().advance(START + hours * MS);
    assert!(start.elapsed() < std::time::Duration::from_secs(2));
    let expected = 40.0 * 36_000.0;
    let energy = gpu.live().energy().get();
    assert!((energy / expected - 1.0).abs() < 1e-6, "{energy}");
    assert!((gpu.live().counter().unwrap().get() - energy).abs() < 40.0 * 0.11);
    assert!((gpu.live().average_power().get() - 40.0).abs() < 1e-3);
}

#[test]
fn a_stuck_sensor_keeps_its_value_and_the_others_do_not() {
    let mut gpu = TestGpu::new(Generation::Hopper);
    let stuck = Fault::stuck_sensor(SensorKind::EnergyCounter, Seconds::new(1.0));
    gpu.profile.faults = vec![stuck];
    gpu.pass(1500, 10);
    let counter = gpu.live().counter();
    add_job(&mut gpu, &[kernels(0.5, 0.8)], 1_000_000);
    gpu.pass(2000, 10);
    assert_eq!(gpu.live().counter(), counter);
    assert!(gpu.live().average_power() > Watts::new(150.0));
    assert_eq!(gpu.live().samples().len(), 119);
}

#[test]
fn the_times_of_each_limit_are_those_of_the_load() {
    let mut gpu = TestGpu::new(Generation::Hopper);
    gpu.pass(500, 50);
    assert_eq!(gpu.live().limit_times(), crate::LimitTimes::default());
    // A third of the time waits for the host, and half of the rest for the memory.
    let mixed = Phase {
        name: 0,
        load: Load::Kernels {
            launch: Seconds::ZERO,
            core: Seconds::new(0.01),
            memory: Seconds::new(0.01),
            switching: Ratio::new(0.2),
            memory_activity: Ratio::new(0.2),
        },
    };
    let job = add_job(&mut gpu, &[mixed, waiting(0.01)], 1_000_000);
    gpu.pass(3000, 50);
    let below_cap = gpu.live().limit_times();
    assert_eq!(below_cap.capped, 0.0);
    assert!((below_cap.core - 1.0).abs() < 0.02, "{below_cap:?}");
    assert!((below_cap.memory - 1.0).abs() < 0.02, "{below_cap:?}");
    // A heavy load under the lowest cap is throttled all the time, except while it waits.
    let mut live = gpu.live();
    live.set_power_cap(Watts::new(150.0)).unwrap();
    live.grant_iterations(job, &[kernels(0.1, 1.0)], 1_000_000)
        .unwrap();
    gpu.pass(2000, 50);
    let capped = gpu.live().limit_times();
    assert!((capped.capped - 2.0).abs() < 0.02, "{capped:?}");
    assert!(
        (capped.core - below_cap.core - 2.0).abs() < 0.02,
        "{capped:?}"
    );
}

#[test]
fn a_lower_memory_clock_draws_less_power() {
    let power_at = |offset: f64| {
        let mut gpu = TestGpu::new(Generation::Turing);
        let offset = Megahertz::new(offset);
        gpu.live().set_memory_clock_offset(offset).unwrap();
        let expected = gpu.profile.memory.default + offset;
        assert_eq!(gpu.live().memory_clock(), expected);
        add_job(&mut gpu, &[kernels(0.01, 0.5)], 1000);
        gpu.pass(3000, 10);
        gpu.live().average_power().get()
    };
    let memory = find_gpu("v100").unwrap().1.power.memory.get();
    let default = find_gpu("v100").unwrap().1.memory.default.get();
    let saved = power_at(0.0) - power_at(-0.1 * default);
    // A tenth of the memory's power, and a little leakage because the chip is cooler.
    assert!((saved / (0.1 * memory) - 1.0).abs() < 0.05, "{saved} W");
}
