//! Physical laws that hold for any GPU and any work, and known behaviour of real GPUs.

mod common;

use common::{at_cap, gpu, job};
use proptest::prelude::*;
use sweetspot_quantity::{Joules, Megahertz, Ratio, Seconds, Watts};
use sweetspot_sim::{
    Chip, GpuProfile, Job, JobRequest, Limits, Load, ScaledWork, State, Trace, Variant, Variation,
    find_workload, run,
};

const SMALL: JobRequest = JobRequest {
    batch: None,
    items: Some(6400),
};

fn kernels(core: f64, memory: f64) -> Load {
    Load::Kernels {
        launch: Seconds::ZERO,
        core: Seconds::new(core),
        memory: Seconds::new(memory),
        switching: Ratio::new(1.0),
        memory_activity: Ratio::new(1.0),
    }
}

/// A random GPU: the V100 with other physics.
fn any_gpu() -> impl Strategy<Value = GpuProfile> {
    (
        (0.0..1.0f64, 0.5..1.0f64),
        (10.0..60.0f64, 0.0..40.0f64, 0.0..60.0f64, 50.0..300.0f64),
        (1e-3..0.5f64, 1e-3..3.0f64),
        (1.0..100.0f64, 0.0..0.02f64),
    )
        .prop_map(
            |(
                (knee, floor),
                (idle, context, memory, core),
                (settling, recovery),
                (constant, leakage),
            )| {
                let (_, mut gpu) = gpu("v100");
                gpu.core.voltage_knee = gpu.core.default * (0.99 * knee);
                gpu.core.voltage_floor = Ratio::new(floor);
                gpu.power.idle = Watts::new(idle);
                gpu.power.context = Watts::new(context);
                gpu.power.memory = Watts::new(memory);
                gpu.power.core = Watts::new(core);
                gpu.cap.settling = Seconds::new(settling);
                gpu.cap.recovery = Seconds::new(recovery);
                gpu.thermal.time_constant = Seconds::new(constant);
                gpu.thermal.leakage_per_degree = Ratio::new(leakage);
                gpu
            },
        )
}

/// Whether a cap leaves the cores some power. Otherwise no governor can enforce it, and the clock depends on every
/// tenth of a degree. Such profiles are rejected.
fn leaves_room(gpu: &GpuProfile, cap: f64) -> bool {
    let others = gpu.power.idle + gpu.power.context + gpu.power.memory;
    others.get() * 1.3 + 0.1 * gpu.power.core.get() < cap
}

/// Advances for some time in steps of at most `slice` and returns the number of loads done.
fn advance(
    chip: &Chip,
    state: &mut State,
    limits: &Limits,
    load: &Load,
    time: f64,
    slice: f64,
) -> f64 {
    let (mut left, mut done) = (time, 0.0);
    let mut part = Ratio::new(1.0);
    let mut steps = 0;
    while left > 1e-12 {
        let at_most = Seconds::new(left.min(slice));
        let step = chip.step(state, limits, load, part, at_most);
        left -= step.time.get();
        done += step.done.get();
        part = match part - step.done {
            rest if rest > Ratio::ZERO => rest,
            _ => Ratio::new(1.0),
        };
        steps += 1;
        assert!(steps < 2_000_000, "the steps do not end");
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_lower_cap_is_never_faster_and_never_draws_more(gpu in any_gpu(), low in 150.0..300.0f64, by in 1.0..100.0f64, core in 0.01..3.0f64, memory in 0.0..3.0f64) {
        let chip = Chip::new(&gpu);
        let load = kernels(core * 1e-1, memory * 1e-1);
        let after = |cap: f64| {
            let mut state = chip.rest_state();
            let limits = chip.limits(Watts::new(cap), None, None);
            let done = advance(&chip, &mut state, &limits, &load, 20.0, f64::INFINITY);
            (done, state.energy().get())
        };
        let (slow, little) = after(low);
        let (fast, much) = after(low + by);
        prop_assert!(slow <= fast * (1.0 + 1e-6), "{} > {}", slow, fast);
        prop_assert!(little <= much * (1.0 + 1e-6), "{} > {}", little, much);
    }

    #[test]
    fn the_cap_is_enforced_once_the_governor_has_settled(gpu in any_gpu(), cap in 170.0..300.0f64) {
        let chip = Chip::new(&gpu);
        let limits = chip.limits(Watts::new(cap), None, None);
        let mut state = chip.rest_state();
        let load = kernels(10.0, 10.0);
        advance(&chip, &mut state, &limits, &load, 5.0 + 12.0 * gpu.cap.settling.get(), f64::INFINITY);
        let step = chip.step(&mut state, &limits, &load, Ratio::new(1.0), Seconds::new(0.01));
        prop_assume!(leaves_room(&gpu, cap));
        prop_assert!(step.power.get() <= cap * 1.005, "{} over {}", step.power, cap);
    }

    #[test]
    fn the_length_of_steps_does_not_change_the_result(gpu in any_gpu(), cap in 150.0..300.0f64, slice in 1e-3..0.5f64) {
        prop_assume!(leaves_room(&gpu, cap));
        let chip = Chip::new(&gpu);
        let limits = chip.limits(Watts::new(cap), None, None);
        let load = kernels(0.2, 0.1);
        let (mut seldom, mut often) = (chip.rest_state(), chip.rest_state());
        let all = advance(&chip, &mut seldom, &limits, &load, 10.0, f64::INFINITY);
        let sliced = advance(&chip, &mut often, &limits, &load, 10.0, slice);
        prop_assert!((all / sliced - 1.0).abs() < 3e-3, "{} and {}", all, sliced);
        prop_assert!((seldom.energy() / often.energy() - Ratio::new(1.0)).abs() < Ratio::new(3e-3), "{} and {}", seldom.energy(), often.energy());
    }

    #[test]
    fn parts_sum_to_the_whole(gpu in any_gpu(), cap in 150.0..300.0f64, items in 1u64..3000, batch in 1u64..100) {
        let named = ("tesla_v100_sxm2_16gb".to_owned(), gpu);
        let request = JobRequest { batch: Some(batch), items: Some(items) };
        let job = job(&named, "resnet50", request, Variation::NONE);
        let chip = Chip::new(&named.1);
        let limits = chip.limits(Watts::new(cap), None, None);
        let mut state = chip.rest_state();
        let period = 0.02;
        let mut trace = Trace::every(Seconds::new(period));
        let outcome = run(&chip, &mut state, &limits, &job, &mut trace);
        let near = |a: Joules, b: Joules, by: f64| (a - b).get().abs() <= by;
        prop_assert!(near(outcome.energy, state.energy(), 1e-9 * outcome.energy.get()));
        // The trace leaves out the last, incomplete sample.
        let traced: f64 = trace.watts().iter().map(|watts| f64::from(*watts) * period).sum();
        prop_assert!(near(Joules::new(traced), outcome.energy, 1e-6 * outcome.energy.get() + 500.0 * period));
        let samples = trace.watts().len() as f64;
        prop_assert!((outcome.time.get() / period - samples).abs() <= 1.0);
    }
}

#[test]
fn twice_the_items_take_twice_as_long() {
    let v100 = gpu("v100");
    let of = |items| {
        let request = JobRequest {
            batch: None,
            items: Some(items),
        };
        at_cap(
            &v100.1,
            &job(&v100, "vgg19", request, Variation::NONE),
            200.0,
        )
    };
    let (one, two) = (of(128_000), of(256_000));
    assert!(((two.time / one.time).get() - 2.0).abs() < 0.002);
    assert!(((two.energy / one.energy).get() - 2.0).abs() < 0.01);
}

#[test]
fn power_exceeds_a_cap_until_the_governor_has_settled() {
    let (_, v100) = gpu("v100");
    let chip = Chip::new(&v100);
    let limits = chip.limits(Watts::new(180.0), None, None);
    let mut state = chip.rest_state();
    let first = chip.step(
        &mut state,
        &limits,
        &kernels(1.0, 1.0),
        Ratio::new(1.0),
        Seconds::new(0.001),
    );
    assert!(first.power > Watts::new(250.0), "{}", first.power);
    advance(
        &chip,
        &mut state,
        &limits,
        &kernels(1.0, 1.0),
        0.5,
        f64::INFINITY,
    );
    assert!(
        (state.power().get() - 180.0).abs() < 0.5,
        "{}",
        state.power()
    );
}

#[test]
fn a_warm_chip_draws_more() {
    let (_, v100) = gpu("v100");
    let chip = Chip::new(&v100);
    let limits = chip.limits(Watts::new(300.0), Some(Megahertz::new(1200.0)), None);
    let mut state = chip.rest_state();
    let cold = chip.step(
        &mut state,
        &limits,
        &kernels(5.0, 5.0),
        Ratio::new(1.0),
        Seconds::new(0.1),
    );
    advance(
        &chip,
        &mut state,
        &limits,
        &kernels(5.0, 5.0),
        300.0,
        f64::INFINITY,
    );
    assert!(state.temperature().get() > 50.0, "{}", state.temperature());
    let more = state.power() - cold.power;
    assert!(more > Watts::new(1.0) && more < Watts::new(10.0), "{more}");
}

#[test]
fn locked_clocks_set_the_speed_below_and_above_the_default() {
    let (_, quadro) = gpu("quadro_rtx_6000");
    let chip = Chip::new(&quadro);
    let speed = |clock: f64| {
        let limits = chip.limits(Watts::new(1000.0), Some(Megahertz::new(clock)), None);
        let mut state = chip.rest_state();
        advance(
            &chip,
            &mut state,
            &limits,
            &kernels(0.1, 0.0),
            3.0,
            f64::INFINITY,
        );
        let energy_before = state.energy();
        let done = advance(
            &chip,
            &mut state,
            &limits,
            &kernels(0.1, 0.0),
            10.0,
            f64::INFINITY,
        );
        (done, (state.energy() - energy_before).get() / 10.0)
    };
    let (default, half, above) = (speed(1770.0), speed(885.0), speed(2100.0));
    assert!(
        (half.0 / default.0 - 0.5).abs() < 0.005,
        "{half:?} {default:?}"
    );
    assert!(
        (above.0 / default.0 - 2100.0 / 1770.0).abs() < 0.005,
        "{above:?} {default:?}"
    );
    assert!(half.1 < default.1 && default.1 < above.1);
}

#[test]
fn memory_bound_work_scales_with_the_memory_clock() {
    let (_, quadro) = gpu("quadro_rtx_6000");
    let chip = Chip::new(&quadro);
    let speed = |clock: f64| {
        let limits = chip.limits(Watts::new(1000.0), None, Some(Megahertz::new(clock)));
        advance(
            &chip,
            &mut chip.rest_state(),
            &limits,
            &kernels(0.0, 0.1),
            10.0,
            f64::INFINITY,
        )
    };
    assert!((speed(5001.0) / speed(7001.0) - 5001.0 / 7001.0).abs() < 1e-6);
}

#[test]
fn larger_batches_are_more_efficient_until_they_do_not_fit() {
    let v100 = gpu("v100");
    let rate = |batch| {
        let request = JobRequest {
            batch: Some(batch),
            items: Some(batch * 50),
        };
        let outcome = at_cap(
            &v100.1,
            &job(&v100, "resnet50", request, Variation::NONE),
            300.0,
        );
        outcome.items as f64 / outcome.time.get()
    };
    assert!(rate(1) < 0.7 * rate(32) && rate(32) < rate(128));
    // power_capping_2022, section 4: batch 128 did not fit for these two.
    for network in ["inception_v4", "resnet152"] {
        for board in ["v100", "quadro_rtx_6000"] {
            let (name, profile) = gpu(board);
            let workload =
                find_workload(network, profile.study.as_deref(), &Variant::default()).unwrap();
            let work = ScaledWork::on(&workload.profile, &name, &profile, |_| None).unwrap();
            let fits = |batch| {
                let request = JobRequest {
                    batch: Some(batch),
                    items: None,
                };
                Job::new(&workload.profile, &work, &profile, request, Variation::NONE)
            };
            assert!(fits(64).is_ok(), "{network} on {board}");
            let message = fits(128).unwrap_err().to_string();
            assert!(message.contains("the largest that fits is"), "{message}");
        }
    }
}

#[test]
fn work_known_for_one_gpu_is_scaled_to_another() {
    let (name, mut faster) = gpu("v100");
    let here = job(&(name, faster.clone()), "resnet50", SMALL, Variation::NONE);
    faster.core.units *= 2;
    faster.memory.bandwidth = faster.memory.bandwidth * 2.0;
    let there = job(
        &("my.toml".to_owned(), faster.clone()),
        "resnet50",
        SMALL,
        Variation::NONE,
    );
    let (here, there) = (
        at_cap(&faster, &here, 300.0),
        at_cap(&faster, &there, 300.0),
    );
    let device_time = |outcome: &sweetspot_sim::Outcome| outcome.time - outcome.phases[0].time;
    assert!(((device_time(&here) / device_time(&there)).get() - 2.0).abs() < 0.02);
    let host = here.phases[0].time / there.phases[0].time;
    assert!((host.get() - 1.0).abs() < 1e-9, "the host does not change");
}

#[test]
fn a_run_varies_by_the_noise_of_its_profile() {
    let v100 = gpu("v100");
    let spread = |noise: f64| {
        let times: Vec<f64> = (0..200)
            .map(|run| {
                let seed = sweetspot_stats::Seed::new(3).number(run);
                let variation = Variation::draw(Ratio::new(noise), seed);
                at_cap(&v100.1, &job(&v100, "alexnet", SMALL, variation), 300.0)
                    .time
                    .get()
            })
            .collect();
        let summary = sweetspot_stats::Summary::of(&times).unwrap();
        summary.deviation.unwrap() / summary.mean
    };
    assert!((spread(0.003) - 0.003).abs() < 0.0006, "{}", spread(0.003));
    assert!(spread(0.0) < 1e-12);
}
