//! Measures how long the report of a large study takes: `cargo run --release -p sweetspot-benchmarks --bin report [FILE]`.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use sweetspot_decide::{Criteria, Objective};
use sweetspot_device::{Descriptor, DeviceId, DeviceKind};
use sweetspot_quantity::{Joules, Megahertz, Seconds, Watts};
use sweetspot_report::{ReportExtras, TextLayout, Timeline, report_text, study_html};
use sweetspot_study::{
    Axis, BATCH_PARAMETER, Column, Configuration, Definition, DeviceEnergy, Energies, Energy,
    EnergyOf, Outline, PhaseResult, Plan, Quantity, RunEnding, RunRecord, RunResult, Series, Store,
    Subject, Task, WorkloadInfo,
};

const REPEAT: u32 = 5;
const TARGET_S: f64 = 2.0;
const TARGET_BYTES: usize = 3 << 20;

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let begun = Instant::now();
    let store = write_study(folder.path())?;
    let writing = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let study = store.study(None)?;
    let reading = begun.elapsed().as_secs_f64();
    let criteria = Criteria::from(Objective::Edp);
    let begun = Instant::now();
    let text = report_text(&study, &criteria, None).render(&TextLayout::PLAIN);
    let terminal = begun.elapsed().as_secs_f64();
    let outline = store.outline()?;
    let timelines = [timeline("reference"), timeline("choice")];
    let begun = Instant::now();
    let extras = ReportExtras {
        outline: Some(&outline),
        timelines: &timelines,
        grouped: None,
        reproduction: None,
    };
    let page = study_html(&study, &criteria, &extras);
    let drawing = begun.elapsed().as_secs_f64();
    if let Some(file) = std::env::args_os().nth(1) {
        std::fs::write(file, &page)?;
    }
    let runs: usize = study.points.iter().map(|point| point.runs.len()).sum();
    println!("{} configurations, {runs} runs", study.points.len());
    println!("writing the study   {writing:.3} s");
    println!(
        "reading it          {reading:.3} s, {:.2} of writing",
        reading / writing
    );
    println!(
        "terminal            {terminal:.3} s, {:.2} of writing, {} bytes",
        terminal / writing,
        text.len()
    );
    println!(
        "page                {drawing:.3} s, {:.2} of writing",
        drawing / writing
    );
    let whole = reading + drawing;
    println!(
        "reading and page    {whole:.3} s, {:.2} of its target of {TARGET_S} s",
        whole / TARGET_S
    );
    println!(
        "size of the page    {} bytes, {:.2} of its target of {TARGET_BYTES}",
        page.len(),
        page.len() as f64 / TARGET_BYTES as f64
    );
    Ok(())
}

/// The combinations of ten caps, ten clocks and ten batch sizes.
fn configurations() -> Vec<Configuration> {
    let mut all = Vec::new();
    for cap in 0..10 {
        for clock in 0..10 {
            for batch in 0..10 {
                let mut one = Configuration {
                    power_caps: vec![Watts::new(150.0 + 15.0 * f64::from(cap))],
                    core_clock: Some(Megahertz::new(600.0 + 90.0 * f64::from(clock))),
                    ..Configuration::on(1)
                };
                let batch = 16 << batch;
                one.parameters
                    .insert(BATCH_PARAMETER.to_owned(), batch.to_string());
                all.push(one);
            }
        }
    }
    all
}

fn write_study(folder: &std::path::Path) -> Result<Store> {
    let configurations = configurations();
    let reference = configurations[configurations.len() - 1].clone();
    let axes = vec![
        Axis::PowerCap,
        Axis::CoreClock,
        Axis::Parameter(BATCH_PARAMETER.to_owned()),
    ];
    let plan = Plan::new(
        axes,
        configurations,
        reference,
        REPEAT,
        1,
        "benchmark".to_owned(),
    );
    let device = Descriptor {
        id: DeviceId::new("GPU-1"),
        name: "GPU".to_owned(),
        kind: DeviceKind::Gpu,
        backend: "sim".to_owned(),
        parent: None,
        memory: None,
        sensors: Vec::new(),
        knobs: Vec::new(),
    };
    let outline = Outline {
        definition: Definition::default(),
        subject: Subject {
            energy_of: EnergyOf::JobGpus,
            devices: vec![device],
            device_name: "gpu".to_owned(),
            workload: WorkloadInfo {
                name: "benchmark".to_owned(),
                ..WorkloadInfo::default()
            },
        },
        plan: plan.clone(),
        fingerprint: None,
        program: "benchmark".to_owned(),
        machine: "benchmark".to_owned(),
        merged: false,
        created_unix_s: None,
    };
    let mut store = Store::create(folder, &outline)?;
    let mut runs = Vec::new();
    for (configuration, settings) in plan.configurations.iter().enumerate() {
        for repeat in 0..REPEAT {
            let task = Task {
                configuration,
                repeat,
            };
            let end = RunEnding::Done(run_result(settings, task));
            runs.push((plan.id(task), RunRecord::new(task, end)));
        }
    }
    store.record(&runs)?;
    Ok(store)
}

fn run_result(settings: &Configuration, task: Task) -> RunResult {
    let cap = settings.power_cap().map_or(300.0, Watts::get);
    let clock = settings.core_clock.map_or(1500.0, Megahertz::get);
    let batch = settings.batch().unwrap_or(1) as f64;
    let noise = 1.0 + 0.004 * f64::from((task.repeat * 7 + task.configuration as u32 * 3) % 11);
    let time = (40.0 + 2000.0 / cap + 30_000.0 / clock + 200.0 / batch) * noise;
    let energy = Joules::new(time * (0.5 * cap + 0.08 * clock));
    RunResult {
        time: Seconds::new(time),
        energies: Energies {
            job_gpus: Some(Energy::exact(energy)),
            all_gpus: Some(Energy::exact(energy)),
            node: None,
        },
        devices: vec![DeviceEnergy {
            device: DeviceId::new("GPU-1"),
            in_job: true,
            energy: Some(Energy::exact(energy)),
            method: "counter".to_owned(),
        }],
        items: Some(50_000.0),
        phases: ["forward", "backward"]
            .map(|name| PhaseResult {
                name: name.to_owned(),
                time: Seconds::new(time / 2.0),
                energy: Some(energy / 2.0),
                by_device: Vec::new(),
            })
            .to_vec(),
        values: BTreeMap::from([("accuracy".to_owned(), 0.7 + 0.0001 * time)]),
    }
}

/// Five minutes of power readings, one every 20 ms.
fn timeline(label: &str) -> Timeline {
    let readings = 15_000_i64;
    let power = (0..readings)
        .map(|index| 200.0 + (index % 97) as f32)
        .collect();
    Timeline {
        label: label.to_owned(),
        series: vec![Series {
            device: "GPU-1".to_owned(),
            source: "simulator".to_owned(),
            nanos: (0..readings).map(|index| index * 20_000_000).collect(),
            columns: vec![(Quantity::Power, Column::All(power))],
            throttle: None,
        }],
    }
}
