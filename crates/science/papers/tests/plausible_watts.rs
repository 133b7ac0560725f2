//! The watts of every GPU profile and of every workload on it, against the boards' data sheets.

use sweetspot_device::Settings;
use sweetspot_fit::{FitRequest, MeasuredRow, predict};
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_sim::{GpuProfile, Workload, find_gpu, gpus, workloads};

/// The power of each board in its maker's data sheet or specification, in watts; that of the Quadro is of its graphics
/// part, which its driver limits (295 W with the board), and that of the 2080 Ti is of the Founders Edition.
const BOARD_POWER: [(&str, f64); 12] = [
    ("gtx_2080ti", 260.0),
    ("nvidia_a100_sxm_80gb", 400.0),
    ("nvidia_h100_sxm", 700.0),
    ("nvidia_h200", 700.0),
    ("nvidia_l40s", 350.0),
    ("quadro_rtx_6000", 260.0),
    ("tesla_p100", 250.0),
    ("tesla_p40", 250.0),
    ("tesla_v100_pcie_16gb", 250.0),
    ("tesla_v100_sxm2_16gb", 300.0),
    ("titan_x_maxwell", 250.0),
    ("titan_x_pascal", 250.0),
];

/// An idle board draws this share of its power. Boards with HBM have the higher ones.
const IDLE_SHARE: std::ops::RangeInclusive<f64> = 0.03..=0.15;
/// A board whose cores and memory are all busy at the default clocks draws this share of its power, if no cap limits it.
const PEAK_SHARE: std::ops::RangeInclusive<f64> = 0.8..=1.2;

/// The values that are not in these ranges, with why in `docs/explanation/simulator.md`.
const EXCEPTIONS: [&str; 2] = [
    "gtx_2080ti: peak 171 W of 260 W",
    "vgg19@h200 Train on nvidia_h200: 700.1 W",
];

/// The mean power of a workload at the default settings, without noise; `None` if its batch does not fit.
fn mean_power(workload: &Workload, gpu_name: &str, gpu: &GpuProfile) -> Option<Watts> {
    let request = FitRequest {
        gpu_name: gpu_name.to_owned(),
        gpu: gpu.clone(),
        network: workload.profile.network.clone(),
        mode: workload.profile.mode,
        rows: Vec::new(),
    };
    let row = MeasuredRow {
        batch: workload.profile.batch,
        settings: Settings::default(),
        iterations: 100,
        iteration: Seconds::new(1.0),
        power: Watts::new(1.0),
    };
    predict(&request, &workload.profile, &row)
        .ok()
        .map(|run| run.power)
}

#[test]
fn every_board_and_workload_draws_what_its_data_sheet_allows() {
    let mut found = Vec::new();
    let mut simulated = 0;
    let all = gpus().unwrap();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let known: Vec<&str> = BOARD_POWER.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known, "each profile has its board's power here");
    for (name, board) in BOARD_POWER {
        let (_, gpu) = find_gpu(name).unwrap();
        let power = &gpu.power;
        let peak = power.idle + power.context + power.memory + power.core;
        let shares = [("cap", gpu.cap.default, 1.0..=1.0)];
        let shares = shares
            .into_iter()
            .chain([("idle", power.idle, IDLE_SHARE), ("peak", peak, PEAK_SHARE)]);
        for (what, watts, range) in shares {
            if !range.contains(&(watts.get() / board)) {
                found.push(format!("{name}: {what} {:.0} W of {board} W", watts.get()));
            }
        }
    }
    for workload in workloads().unwrap() {
        for on in &workload.profile.on {
            let (_, gpu) = find_gpu(&on.gpu).unwrap();
            let Some(power) = mean_power(&workload, &on.gpu, &gpu) else {
                continue;
            };
            simulated += 1;
            if power <= gpu.power.idle || power > gpu.cap.default {
                let (name, mode) = (&workload.name, workload.profile.mode);
                found.push(format!("{name} {mode:?} on {}: {power:.1}", on.gpu));
            }
        }
    }
    assert!(simulated > 60, "{simulated} workloads were simulated");
    assert_eq!(found, EXCEPTIONS);
}
