//! Jobs for tests.

use sweetspot_quantity::Watts;
use sweetspot_sim::{
    Chip, GpuProfile, Job, Order, Outcome, Variation, find_gpu, find_workload, run,
};

pub fn gpu(name: &str) -> (String, GpuProfile) {
    find_gpu(name).expect("a built-in GPU")
}

pub fn job(gpu: &(String, GpuProfile), network: &str, order: Order, variation: Variation) -> Job {
    let workload = find_workload(network, gpu.1.study.as_deref()).expect("a built-in workload");
    let base = |name: &str| find_gpu(name).ok().map(|(_, profile)| profile);
    Job::new(&workload.profile, &gpu.0, &gpu.1, order, variation, base).expect("it fits")
}

pub fn at_cap(gpu: &GpuProfile, job: &Job, cap: f64) -> Outcome {
    let chip = Chip::new(gpu);
    let limits = chip.limits(Watts::new(cap), None, None);
    run(&chip, &mut chip.rest(), &limits, job, &mut ())
}
