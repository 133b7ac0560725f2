//! Helpers: jobs on built-in GPUs.

use sweetspot_quantity::Watts;
use sweetspot_sim::{
    Chip, GpuProfile, Job, JobRequest, Outcome, ScaledWork, Variant, Variation, WorkloadProfile,
    find_gpu, find_workload, run,
};

pub fn gpu(name: &str) -> (String, GpuProfile) {
    find_gpu(name).expect("a built-in GPU")
}

pub fn job(
    gpu: &(String, GpuProfile),
    network: &str,
    request: JobRequest,
    variation: Variation,
) -> Job {
    let workload = find_workload(network, gpu.1.study.as_deref(), &Variant::default())
        .expect("a built-in workload");
    let work = ScaledWork::on(&workload.profile, &gpu.0, &gpu.1, |name| {
        find_gpu(name).ok()
    });
    let work = work.expect("work that can be scaled");
    Job::new(&workload.profile, &work, &gpu.1, request, variation).expect("it fits")
}

#[allow(dead_code)]
pub fn job_on(workload: &WorkloadProfile, gpu: &(String, GpuProfile), request: JobRequest) -> Job {
    let work = ScaledWork::on(workload, &gpu.0, &gpu.1, |name| find_gpu(name).ok()).expect("work");
    Job::new(workload, &work, &gpu.1, request, Variation::NONE).expect("it fits")
}

#[allow(dead_code)]
pub fn at_cap(gpu: &GpuProfile, job: &Job, cap: f64) -> Outcome {
    let chip = Chip::new(gpu);
    let limits = chip.limits(Watts::new(cap), None, None);
    run(&chip, &mut chip.rest_state(), &limits, job, &mut ())
}
