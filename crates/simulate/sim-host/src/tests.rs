//! The shared GPU in made-up time: sensors of each generation, programs, long sleeps.

use sweetspot_quantity::{Bytes, Ratio, Seconds, Watts};
use sweetspot_sim::{Chip, Fault, Generation, GpuProfile, Load, Phase, SensorKind, find_gpu};
use sweetspot_stats::Seed;

use crate::host::at_rest;
use crate::state::{Live, Record, Throttle};

const MS: u64 = 1_000_000;
const START: u64 = 5_000_000_000;

struct Bench {
    profile: GpuProfile,
    chip: Chip,
    record: Record,
}

impl Bench {
    fn new(generation: Generation) -> Self {
        let (_, mut profile) = find_gpu("v100").unwrap();
        profile.sensors = generation;
        let chip = Chip::new(&profile);
        let record = at_rest(&profile, &chip, START, Seed::new(1));
        Self {
            profile,
            chip,
            record,
        }
    }

    fn live(&mut self) -> Live<'_> {
        Live {
            profile: &self.profile,
            chip: &self.chip,
            record: &mut self.record,
        }
    }

    /// Lets time pass in steps of some milliseconds, as if somebody looked so often.
    fn pass(&mut self, milliseconds: u64, step: u64) {
        let end = self.record.now + milliseconds * MS;
        while self.record.now < end {
            let to = (self.record.now + step * MS).min(end);
            self.live().advance(to);
        }
    }
}

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

fn waits(seconds: f64) -> Phase {
    Phase {
        name: 0,
        load: Load::Waiting {
            host: Seconds::new(seconds),
        },
    }
}

/// A program of this process, which therefore lives.
fn program(bench: &mut Bench, phases: &[Phase], iterations: u64) -> crate::JobId {
    let mut live = bench.live();
    let job = live.join(std::process::id(), Bytes::new(1e9)).unwrap();
    live.grant(job, phases, iterations).unwrap();
    job
}

#[test]
fn the_counter_moves_every_100_ms_and_loses_nothing() {
    let mut bench = Bench::new(Generation::Volta);
    program(&mut bench, &[kernels(0.1, 0.8)], 1_000_000);
    let mut seen = Vec::new();
    for _ in 0..500 {
        bench.pass(1, 1);
        let counter = bench.live().counter().unwrap().get();
        if seen.last() != Some(&counter) {
            seen.push(counter);
        }
    }
    assert_eq!(seen.len(), 6, "{seen:?}");
    assert!((bench.live().energy().get() - seen[5]).abs() < 1e-6);
    bench.profile.sensors = Generation::Pascal;
    assert_eq!(bench.live().counter(), None);
}

#[test]
fn the_average_ramps_for_a_second_and_the_instant_value_does_not() {
    let mut bench = Bench::new(Generation::Hopper);
    bench.pass(2000, 50);
    assert!((bench.live().power_usage().get() - 40.0).abs() < 0.1);
    program(&mut bench, &[kernels(0.5, 0.8)], 1_000_000);
    bench.pass(500, 10);
    let (average, instant) = (bench.live().average_power(), bench.live().instant_power());
    let power = bench.live().state().power();
    assert!(
        (instant - power).abs() < Watts::new(2.0),
        "{instant} {power}"
    );
    let halfway = Watts::new(0.5 * (40.0 + power.get()));
    assert!(
        (average - halfway).abs() < Watts::new(25.0),
        "{average} {halfway}"
    );
    bench.pass(700, 10);
    assert!((bench.live().power_usage() - power).abs() < Watts::new(3.0));
    bench.profile.sensors = Generation::Volta;
    assert!(bench.live().power_usage() == bench.live().instant_power());
}

#[test]
fn a_short_window_sees_only_a_part_of_a_fast_wave() {
    // 25 ms of work, 75 ms of waiting, in step with a sensor that looks for 25 ms of every 100.
    let mut bench = Bench::new(Generation::Hopper);
    program(&mut bench, &[kernels(0.025, 0.5), waits(0.075)], 1_000_000);
    bench.pass(3000, 7);
    let before = bench.live().energy();
    let mut readings = Vec::new();
    for _ in 0..20 {
        bench.pass(100, 7);
        readings.push(bench.live().instant_power().get());
    }
    let mean = (bench.live().energy() - before).get() / 2.0;
    let seen = readings.iter().sum::<f64>() / 20.0;
    assert!(
        (seen / mean - 1.0).abs() > 0.1,
        "a part-time sensor aliases: {seen} for {mean}"
    );
}

#[test]
fn the_buffer_has_119_jittered_samples_that_follow_with_a_lag() {
    let mut bench = Bench::new(Generation::Hopper);
    bench.pass(3000, 20);
    program(&mut bench, &[kernels(0.5, 0.8)], 1_000_000);
    bench.pass(1000, 20);
    let samples = bench.live().samples();
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
    assert!((samples[118].watts - bench.live().state().power().get()).abs() < 1.0);
}

#[test]
fn how_often_one_looks_changes_neither_work_nor_energy() {
    let after = |step: u64| {
        let mut bench = Bench::new(Generation::Volta);
        bench.live().set_power_cap(Watts::new(170.0)).unwrap();
        let job = program(&mut bench, &[waits(0.02), kernels(0.05, 0.9)], 1_000_000);
        bench.pass(8000, step);
        let progress = bench.live().show(job).unwrap();
        (progress.done, bench.live().energy().get())
    };
    let (often, seldom) = (after(1), after(4000));
    assert!(often.0.abs_diff(seldom.0) <= 1, "{often:?} {seldom:?}");
    assert!(
        (often.1 / seldom.1 - 1.0).abs() < 2e-3,
        "{often:?} {seldom:?}"
    );
}

#[test]
fn two_programs_share_the_cores_and_waiting_overlaps() {
    let mut bench = Bench::new(Generation::Volta);
    let alone = program(&mut bench, &[kernels(0.01, 0.5)], 1_000_000);
    bench.pass(2000, 10);
    let one = bench.live().show(alone).unwrap().done;
    let other = program(&mut bench, &[kernels(0.01, 0.5)], 1_000_000);
    bench.pass(2000, 10);
    let both = (
        bench.live().show(alone).unwrap().done - one,
        bench.live().show(other).unwrap().done,
    );
    assert!(
        both.0.abs_diff(one / 2) <= 3 && both.1.abs_diff(one / 2) <= 3,
        "{one} {both:?}"
    );
    assert_eq!(bench.live().programs().len(), 2);
    assert_eq!(bench.live().throttle(), Throttle::None);
}

#[test]
fn what_was_granted_is_done_and_no_more() {
    let mut bench = Bench::new(Generation::Volta);
    let job = program(&mut bench, &[kernels(0.01, 0.5)], 7);
    bench.pass(1000, 30);
    let progress = bench.live().show(job).unwrap();
    assert_eq!(progress.done, 7);
    let took = (progress.finished_at.unwrap() - START) as f64 * 1e-9;
    assert!((took - 0.07).abs() < 1e-3, "{took}");
    assert_eq!(bench.live().throttle(), Throttle::Idle);
    bench.live().leave(job);
    assert!(bench.live().show(job).is_err());
}

#[test]
fn a_program_whose_process_is_gone_stops_soon() {
    let mut bench = Bench::new(Generation::Volta);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let gone = child.id();
    child.wait().unwrap();
    let job = bench.live().join(gone, Bytes::new(1e9)).unwrap();
    bench
        .live()
        .grant(job, &[kernels(0.01, 0.5)], 1_000_000)
        .unwrap();
    bench.pass(1000, 1000);
    assert_eq!(bench.live().programs(), []);
    let idle = bench.chip.rest_state().power().get();
    assert!(bench.live().energy().get() < idle * 1.0 + 200.0 * 0.25);
}

#[test]
fn a_night_without_anybody_is_one_stride() {
    let mut bench = Bench::new(Generation::Volta);
    let hours = 10 * 3600 * 1000;
    let begun = std::time::Instant::now();
    bench.live().advance(START + hours * MS);
    assert!(begun.elapsed() < std::time::Duration::from_secs(2));
    let expected = 40.0 * 36_000.0;
    let energy = bench.live().energy().get();
    assert!((energy / expected - 1.0).abs() < 1e-6, "{energy}");
    assert!((bench.live().counter().unwrap().get() - energy).abs() < 40.0 * 0.11);
    assert!((bench.live().average_power().get() - 40.0).abs() < 1e-3);
}

#[test]
fn a_stuck_sensor_repeats_itself_and_the_others_go_on() {
    let mut bench = Bench::new(Generation::Hopper);
    let stuck = Fault::stuck_sensor(SensorKind::EnergyCounter, Seconds::new(1.0));
    bench.profile.faults = vec![stuck];
    bench.pass(1500, 10);
    let counter = bench.live().counter();
    program(&mut bench, &[kernels(0.5, 0.8)], 1_000_000);
    bench.pass(2000, 10);
    assert_eq!(bench.live().counter(), counter);
    assert!(bench.live().average_power() > Watts::new(150.0));
    assert_eq!(bench.live().samples().len(), 119);
}
