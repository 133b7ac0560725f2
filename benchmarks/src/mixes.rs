//! Unlike and unequal GPUs that work on one job.

use anyhow::Result;
use sweetspot_quantity::{Celsius, Ratio, Seconds};
use sweetspot_sim::{GpuProfile, Variant, Workload, find_gpu, find_workload};
use sweetspot_stats::Seed;

/// How much hotter the air of an unequally cooled GPU is.
const HOTTER: Celsius = Celsius::new(35.0);

/// GPUs of one job and its workload.
#[derive(Clone, Debug)]
pub struct GpuMix {
    /// The name and the profile of each GPU.
    pub gpus: Vec<(String, GpuProfile)>,
    /// The workload, with its work on each of the GPUs.
    pub workload: Workload,
}

impl GpuMix {
    /// The names of the GPUs.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.gpus.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    }
}

/// The two kinds of boards of multi_gpu_2018, two of each.
pub fn pascal_and_maxwell(network: &str) -> Result<GpuMix> {
    let (pascal, maxwell) = (find_gpu("titan_x_pascal")?, find_gpu("titan_x_maxwell")?);
    Ok(GpuMix {
        gpus: vec![pascal.clone(), pascal, maxwell.clone(), maxwell],
        workload: find_workload(network, Some("multi_gpu_2018"), &Variant::default())?,
    })
}

/// A GPU that takes longer for the same work at the same clocks and power: `speed` is a share of its usual speed.
fn slower(
    (name, profile): (String, GpuProfile),
    speed: f64,
    workload: &mut Workload,
) -> (String, GpuProfile) {
    let slow = format!("{name} at {speed:.3}");
    let on = &mut workload.profile.on;
    if let Some(mut own) = on.iter().find(|own| own.gpu == name).cloned() {
        own.gpu.clone_from(&slow);
        own.core = own.core * (1.0 / speed);
        own.memory = own.memory * (1.0 / speed);
        on.push(own);
    }
    (slow, profile)
}

/// Two GPUs of one model, of which the second is 10 % slower.
pub fn unequal_pair(gpu: &str, network: &str, variant: &Variant) -> Result<GpuMix> {
    let gpu = find_gpu(gpu)?;
    let study = gpu.1.study.clone();
    let mut workload = find_workload(network, study.as_deref(), variant)?;
    let gpus = vec![gpu.clone(), slower(gpu, 0.9, &mut workload)];
    Ok(GpuMix { gpus, workload })
}

/// Two GPUs of one model, of which one is in the hot air of others: more of its power leaks.
pub fn unequally_cooled_pair(gpu: &str, network: &str) -> Result<GpuMix> {
    let gpu = find_gpu(gpu)?;
    let workload = find_workload(network, gpu.1.study.as_deref(), &Variant::default())?;
    let mut hot = gpu.clone();
    let thermal = &mut hot.1.thermal;
    thermal.ambient += HOTTER;
    thermal.at_default_cap += HOTTER;
    let gpus = vec![gpu, hot];
    Ok(GpuMix { gpus, workload })
}

/// Two to eight GPUs of one to three models, whose speeds differ by up to 15 %, with a random workload.
pub fn random_mix(number: u64) -> Result<GpuMix> {
    let seed = Seed::new(11).label("random mix").number(number);
    let draw = |label: &str, low: f64, high: f64| low + (high - low) * seed.label(label).uniform();
    let models = [
        "tesla_v100_sxm2_16gb",
        "quadro_rtx_6000",
        "titan_x_pascal",
        "titan_x_maxwell",
        "gtx_2080ti",
        "tesla_p40",
        "tesla_p100",
    ];
    let kinds = draw("kinds", 1.0, 4.0) as usize;
    let count = (draw("count", 2.0, 9.0) as usize).max(kinds);
    let kind = |index: usize| {
        let drawn = draw(&format!("kind {}", index % kinds), 0.0, models.len() as f64);
        models[drawn as usize]
    };
    let mut workload = random_workload(seed, kind(0), &models)?;
    let mut gpus = Vec::new();
    for index in 0..count {
        let speed = draw(&format!("speed {index}"), 0.85, 1.0);
        gpus.push(slower(find_gpu(kind(index))?, speed, &mut workload));
    }
    Ok(GpuMix { gpus, workload })
}

/// A workload with random shares of host, core and memory time on its first GPU.
fn random_workload(seed: Seed, gpu: &str, models: &[&str]) -> Result<Workload> {
    let draw = |label: &str, low: f64, high: f64| low + (high - low) * seed.label(label).uniform();
    let mut workload = find_workload("resnet50", Some("power_capping_2022"), &Variant::default())?;
    let item = draw("item", 0.5e-3, 8e-3);
    let host = draw("host", 0.02, 0.25);
    let core = draw("core", 0.3, 0.9);
    workload.profile.memory.per_item = workload.profile.memory.per_item * 0.1;
    let mut on = workload.profile.on[0].clone();
    on.host = Seconds::new(item * host);
    on.switching = Ratio::new(draw("switching", 0.7, 1.3));
    let first = find_gpu(gpu)?.1;
    let arithmetic = |gpu: &GpuProfile| gpu.core.units as f64 * gpu.core.default.get();
    workload.profile.on = Vec::new();
    for model in models {
        let (name, profile) = find_gpu(model)?;
        let own = &mut on.clone();
        own.gpu = name;
        let core_time = item * (1.0 - host) * core * arithmetic(&first) / arithmetic(&profile);
        let bandwidth = first.memory.bandwidth / profile.memory.bandwidth;
        own.core = Seconds::new(core_time);
        own.memory = Seconds::new(item * (1.0 - host) * (1.0 - core)) * bandwidth;
        workload.profile.on.push(own.clone());
    }
    Ok(workload)
}
