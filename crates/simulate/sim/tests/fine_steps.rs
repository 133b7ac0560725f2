//! Runs compared with the same physics in very small steps.

mod common;

use common::{gpu, job};
use proptest::prelude::*;
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{Chip, GpuProfile, Job, JobRequest, Limits, Variation, parse_workload, run};

/// The time and energy of a job in steps of at most `slice`.
fn in_slices(chip: &Chip, limits: &Limits, job: &Job, slice: f64) -> (f64, f64) {
    let mut state = chip.rest_state();
    let mut time = 0.0;
    let (iteration, count) = job.iterations();
    let phases = (0..count).flat_map(|_| iteration).chain(job.last());
    for phase in phases {
        let mut left = Ratio::new(1.0);
        while left > Ratio::ZERO {
            let step = chip.step(&mut state, limits, &phase.load, left, Seconds::new(slice));
            left -= step.done;
            time += step.time.get();
        }
    }
    (time, state.energy().get())
}

fn compare(gpu: &GpuProfile, job: &Job, cap: f64, slice: f64) -> (f64, f64) {
    let chip = Chip::new(gpu);
    let limits = chip.limits(Watts::new(cap), None, None);
    let outcome = run(&chip, &mut chip.rest_state(), &limits, job, &mut ());
    let (time, energy) = in_slices(&chip, &limits, job, slice);
    (
        outcome.time.get() / time - 1.0,
        outcome.energy.get() / energy - 1.0,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_run_agrees_with_small_steps(
        board in prop::sample::select(vec!["v100", "quadro_rtx_6000"]),
        network in prop::sample::select(vec!["alexnet", "resnet50"]),
        share in 0.0..1.0f64,
        batch in prop::sample::select(vec![1u64, 4, 32, 128]),
        settling in 0.005..0.5f64,
        recovery in 0.02..2.0f64,
    ) {
        let (name, mut profile) = gpu(board);
        profile.cap.settling = Seconds::new(settling);
        profile.cap.recovery = Seconds::new(recovery);
        let cap = profile.cap.min + (profile.cap.max - profile.cap.min) * share;
        let request = JobRequest { batch: Some(batch), items: Some(batch * 200) };
        let job = job(&(name, profile.clone()), network, request, Variation::NONE);
        let (time, energy) = compare(&profile, &job, cap.get(), 2e-4);
        prop_assert!(time.abs() < 2e-3, "{} in time", time);
        prop_assert!(energy.abs() < 2e-3, "{} in energy", energy);
    }
}

#[test]
fn the_cap_is_enforced_for_iterations_of_microseconds() {
    let (name, profile) = gpu("v100");
    let text = r#"
        network = "tiny"
        mode = "infer"
        batch = 1
        half_speed_batch = 0.0
        [memory]
        fixed = "1 GB"
        per_item = "1 kB"
        [[phase]]
        name = "forward"
        core = "100 %"
        memory = "100 %"
        [[on]]
        gpu = "tesla_v100_sxm2_16gb"
        items = 4000000
        host = "0 s"
        core = "5 us"
        memory = "0 s"
        switching = "100 %"
        memory_activity = "100 %"
    "#;
    let workload = parse_workload("tiny.toml", text).unwrap();
    let chip = Chip::new(&profile);
    let limits = chip.limits(Watts::new(200.0), None, None);
    let power = |batch| {
        let request = JobRequest {
            batch: Some(batch),
            items: None,
        };
        let job = common::job_on(&workload, &(name.clone(), profile.clone()), request);
        let outcome = run(&chip, &mut chip.rest_state(), &limits, &job, &mut ());
        (outcome.average_power().get(), outcome.time.get())
    };
    let (small, large) = (power(1), power(10_000));
    assert!(small.0 < 200.5 && large.0 < 200.5, "{small:?} {large:?}");
    assert!(
        (small.1 / large.1 - 1.0).abs() < 1e-3,
        "{small:?} {large:?}"
    );
}
