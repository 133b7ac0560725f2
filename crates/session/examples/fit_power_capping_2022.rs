//! Fits the workloads of power_capping_2022 and the power of its two GPUs to tables 2 and 3 of the
//! paper, through the simulator's own physics, and prints the parameters that stand in the profiles.
//!
//! Free for each GPU: `power.context` and `power.memory`. Free for each network on each GPU: `host`,
//! `core`, `memory` and `switching`. Everything else in the profiles comes from data sheets or is an
//! assumption that docs/simulator.md names.

use std::error::Error;

use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_session::published::{CapRow, power_capping_2022};
use sweetspot_sim::{
    Chip, GpuProfile, Job, Order, Variation, Work, WorkloadProfile, find_gpu, find_workload, run,
};
use sweetspot_stats::{Bounds, fit};

const NETWORKS: [&str; 6] = [
    "alexnet",
    "vgg19",
    "inception_v3",
    "inception_v4",
    "resnet50",
    "resnet152",
];
const SHARED: usize = 2;
const EACH: usize = 4;
/// Squares let the odd rows stand out; this power of the error leans towards the largest one.
const LEAN: f64 = 3.0;

fn main() -> Result<(), Box<dyn Error>> {
    let rows = power_capping_2022()?;
    for (name, most_waiting) in [("tesla_v100_sxm2_16gb", 60.0), ("quadro_rtx_6000", 60.0)] {
        let (_, gpu) = find_gpu(name)?;
        let mut rows: Vec<CapRow> = rows.iter().filter(|row| row.gpu == name).cloned().collect();
        rows.dedup_by_key(|row| (row.network, row.power_cap.get() as u64));
        let workloads = NETWORKS
            .iter()
            .map(|network| Ok(find_workload(network, gpu.study.as_deref())?.profile))
            .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
        fit_gpu(name, &gpu, &workloads, &rows, most_waiting)?;
    }
    Ok(())
}

fn fit_gpu(
    name: &str,
    gpu: &GpuProfile,
    workloads: &[WorkloadProfile],
    rows: &[CapRow],
    most_waiting: f64,
) -> Result<(), Box<dyn Error>> {
    let (mut start, mut bounds) = (Vec::new(), Vec::new());
    let mut free = |value: f64, low: f64, high: f64| {
        start.push(value);
        bounds.push(Bounds { low, high });
    };
    free(
        gpu.power.context.get(),
        0.0,
        most_waiting - gpu.power.idle.get(),
    );
    free(gpu.power.memory.get(), 0.0, 48.0);
    for workload in workloads {
        let on = workload
            .on
            .iter()
            .find(|on| on.gpu == name)
            .ok_or("no such GPU")?;
        free(on.host.get() * 1e3, 0.0, 10.0);
        free(on.core.get() * 1e3, 0.0, 20.0);
        free(on.memory.get() * 1e3, 0.0, 20.0);
        free(on.switching.get() * 1e2, 50.0, 110.0);
    }
    let deviations = |parameters: &[f64]| -> Vec<f64> {
        let (gpu, workloads) = with(name, gpu, workloads, parameters);
        rows.iter()
            .flat_map(|row| deviation(name, &gpu, &workloads, row))
            .collect()
    };
    let leaning = |parameters: &[f64]| -> Vec<f64> {
        let lean = |d: f64| (100.0 * d.abs()).powf(LEAN).copysign(d);
        deviations(parameters).into_iter().map(lean).collect()
    };
    let square = fit(deviations, &start, &bounds, 60);
    let found = fit(leaning, &square.parameters, &bounds, 60);
    println!(
        "# {name}: {} free parameters, {} values",
        bounds.len(),
        2 * rows.len()
    );
    println!("context = \"{:.2} W\"", found.parameters[0]);
    println!("memory = \"{:.2} W\"", found.parameters[1]);
    for (index, network) in NETWORKS.iter().enumerate() {
        let p = &found.parameters[SHARED + EACH * index..][..EACH];
        println!("# {network}");
        println!(
            "host = \"{:.5} ms\"\ncore = \"{:.5} ms\"\nmemory = \"{:.5} ms\"\nswitching = \"{:.3} %\"",
            p[0], p[1], p[2], p[3]
        );
    }
    let left = deviations(&found.parameters);
    let worst = |from: usize| {
        left.iter()
            .skip(from)
            .step_by(2)
            .fold(0f64, |worst, d| worst.max(d.abs()))
    };
    println!(
        "# largest deviation: time {:.2} %, energy {:.2} %\n",
        100.0 * worst(0),
        100.0 * worst(1)
    );
    Ok(())
}

fn with(
    name: &str,
    gpu: &GpuProfile,
    workloads: &[WorkloadProfile],
    parameters: &[f64],
) -> (GpuProfile, Vec<WorkloadProfile>) {
    let mut gpu = gpu.clone();
    gpu.power.context = Watts::new(parameters[0]);
    gpu.power.memory = Watts::new(parameters[1]);
    let mut workloads = workloads.to_vec();
    for (workload, p) in workloads.iter_mut().zip(parameters[SHARED..].chunks(EACH)) {
        for on in workload.on.iter_mut().filter(|on| on.gpu == name) {
            on.host = Seconds::new(p[0] * 1e-3);
            on.core = Seconds::new(p[1] * 1e-3);
            on.memory = Seconds::new(p[2] * 1e-3);
            on.switching = Ratio::new(p[3] * 1e-2);
        }
    }
    (gpu, workloads)
}

fn deviation(
    name: &str,
    gpu: &GpuProfile,
    workloads: &[WorkloadProfile],
    row: &CapRow,
) -> Vec<f64> {
    let workload = workloads
        .iter()
        .find(|workload| workload.network == row.network);
    let job = workload.and_then(|workload| {
        let work = Work::on(workload, name, gpu, |_| None).ok()?;
        Job::new(workload, &work, gpu, Order::default(), Variation::NONE).ok()
    });
    let Some(job) = job else {
        return vec![f64::NAN; 2];
    };
    let chip = Chip::new(gpu);
    let outcome = run(
        &chip,
        &mut chip.rest(),
        &chip.limits(row.power_cap, None, None),
        &job,
        &mut (),
    );
    vec![
        (outcome.time / row.time).get() - 1.0,
        (outcome.energy / row.energy).get() - 1.0,
    ]
}
