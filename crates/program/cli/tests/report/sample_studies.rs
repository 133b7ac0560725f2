//! Studies of every kind, good and bad, written to folders.

use std::collections::BTreeMap;
use std::path::Path;

use sweetspot_device::{Descriptor, DeviceId, DeviceKind};
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_study::{
    Axis, Configuration, Definition, DeviceEnergy, Energies, Energy, EnergyOf, Failure, Outline,
    PhaseResult, Plan, RunEnding, RunRecord, RunResult, Status, Store, Subject, Task, WorkloadInfo,
};

/// Text that would do harm wherever it is not escaped.
pub const HOSTILE: &str =
    r#"<script>window.owned=1</script>"><img src=x onerror="window.owned=2">'&</title></style>"#;

/// Returns how a run ends, or `None` for a run that was not executed.
pub type RunFunction = Box<dyn Fn(&Configuration, Task) -> Option<RunEnding>>;

/// Writes a study with given runs.
pub struct StudyBuilder {
    pub axes: Vec<Axis>,
    pub configurations: Vec<Configuration>,
    pub reference: usize,
    pub repeat: u32,
    pub name: String,
    pub command: Option<Vec<String>>,
    pub run: RunFunction,
}

/// A study of caps from 100 W in steps of 20 W, with plausible time and energy.
pub fn caps(count: usize) -> StudyBuilder {
    let configurations: Vec<Configuration> = (0..count)
        .map(|index| Configuration {
            power_caps: vec![Watts::new(100.0 + 20.0 * index as f64)],
            ..Configuration::on(1)
        })
        .collect();
    StudyBuilder {
        axes: vec![Axis::PowerCap],
        reference: count - 1,
        configurations,
        repeat: 3,
        name: "train".to_owned(),
        command: None,
        run: Box::new(|configuration, task| Some(RunEnding::Done(result(configuration, task)))),
    }
}

/// The result of a successful run.
pub fn result(configuration: &Configuration, task: Task) -> RunResult {
    let cap = configuration.power_cap().map_or(200.0, |cap| cap.get());
    let noise = 1.0 + 0.001 * f64::from((task.repeat * 7 + task.configuration as u32 * 3) % 5);
    let time = (60.0 + 4000.0 / cap) * noise;
    let energy = time * 0.9 * cap;
    RunResult {
        time: Seconds::new(time),
        energies: Energies {
            job_gpus: Some(Energy::exact(Joules::new(energy))),
            ..Energies::default()
        },
        devices: vec![DeviceEnergy {
            device: DeviceId::new("GPU-1"),
            in_job: true,
            energy: Some(Energy::exact(Joules::new(energy))),
            method: "counter".to_owned(),
        }],
        items: Some(1000.0),
        phases: Vec::new(),
        values: BTreeMap::new(),
    }
}

impl StudyBuilder {
    /// Writes the study into a folder.
    pub fn write_to(&self, folder: &Path) {
        let device = Descriptor {
            id: DeviceId::new("GPU-1"),
            name: self.name.clone(),
            kind: DeviceKind::Gpu,
            backend: "nvml".to_owned(),
            parent: None,
            memory: None,
            sensors: Vec::new(),
            knobs: Vec::new(),
        };
        let mut plan = Plan::new(
            self.axes.clone(),
            self.configurations.clone(),
            self.configurations[self.reference].clone(),
            self.repeat,
            1,
            "test".to_owned(),
        );
        plan.reference = self.reference;
        let outline = Outline {
            definition: Definition::default(),
            subject: Subject {
                energy_of: EnergyOf::JobGpus,
                devices: vec![device],
                device_name: self.name.clone(),
                workload: WorkloadInfo {
                    name: self.name.clone(),
                    command: self.command.clone(),
                    ..WorkloadInfo::default()
                },
            },
            plan: plan.clone(),
            fingerprint: None,
            program: "test".to_owned(),
            machine: self.name.clone(),
            merged: false,
            created_unix_s: None,
        };
        let mut store = Store::create(folder, &outline).unwrap();
        let mut runs = Vec::new();
        for (configuration, settings) in self.configurations.iter().enumerate() {
            for repeat in 0..self.repeat {
                let task = Task {
                    configuration,
                    repeat,
                };
                if let Some(end) = (self.run)(settings, task) {
                    runs.push((plan.id(task), RunRecord::new(task, end)));
                }
            }
        }
        store.record(&runs).unwrap();
    }
}

/// A study whose texts all contain markup and scripts.
pub fn hostile() -> StudyBuilder {
    let name = format!("{HOSTILE}axis");
    let values = ["1", "2", HOSTILE, "</script>", "javascript:alert(1)"];
    let configurations = values
        .iter()
        .map(|value| {
            let mut configuration = Configuration::on(1);
            configuration
                .parameters
                .insert(name.clone(), (*value).to_owned());
            configuration
        })
        .collect();
    StudyBuilder {
        axes: vec![Axis::Parameter(name)],
        configurations,
        name: HOSTILE.to_owned(),
        command: Some(vec!["sh".to_owned(), HOSTILE.to_owned()]),
        run: Box::new(|configuration, task| {
            if task.configuration == 3 {
                return Some(RunEnding::Failed(Failure::new(Status::Failed, HOSTILE)));
            }
            let mut run = result(configuration, task);
            run.time = run.time * (1.0 + 0.1 * task.configuration as f64);
            run.values.insert(HOSTILE.to_owned(), 1.0);
            run.phases = vec![PhaseResult {
                name: HOSTILE.to_owned(),
                time: Seconds::new(1.0),
                energy: Some(Joules::new(2.0)),
                by_device: Vec::new(),
            }];
            Some(RunEnding::Done(run))
        }),
        ..caps(5)
    }
}

/// A study whose names all have 80 letters without a space.
fn long_names() -> StudyBuilder {
    let long = |start: &str| format!("{start}{}", "W".repeat(80 - start.len()));
    let axes = [long("axis"), long("other")];
    let configurations = (0..6).map(|index| {
        let mut configuration = Configuration::on(1);
        let values = [format!("first{index}"), format!("second{}", index % 2)];
        for (axis, value) in axes.iter().zip(values) {
            configuration.parameters.insert(axis.clone(), long(&value));
        }
        configuration
    });
    StudyBuilder {
        configurations: configurations.collect(),
        axes: axes.iter().cloned().map(Axis::Parameter).collect(),
        name: long("network"),
        command: Some(vec![long("command"), long("argument")]),
        run: Box::new(move |configuration, task| {
            if task.configuration == 3 {
                let failure = Failure::new(Status::Failed, long("failure"));
                return Some(RunEnding::Failed(failure));
            }
            let mut run = result(configuration, task);
            run.time = run.time * (1.0 + 0.1 * task.configuration as f64);
            run.values.insert(long("value"), 1.0);
            run.phases = ["forward", "backward"]
                .map(|name| PhaseResult {
                    name: long(name),
                    time: Seconds::new(1.0),
                    energy: Some(Joules::new(2.0)),
                    by_device: Vec::new(),
                })
                .into();
            Some(RunEnding::Done(run))
        }),
        ..caps(6)
    }
}

type NamedStudy = (&'static str, StudyBuilder);

/// Unusual and bad studies, with their names.
pub fn unusual_studies() -> Vec<NamedStudy> {
    let with_runs = |change: fn(&Configuration, Task) -> Option<RunEnding>| StudyBuilder {
        run: Box::new(change),
        ..caps(6)
    };
    vec![
        ("one", caps(1)),
        ("two", caps(2)),
        (
            "no-reference",
            with_runs(|c, t| (t.configuration != 5).then(|| RunEnding::Done(result(c, t)))),
        ),
        (
            "reference-failed",
            with_runs(|c, t| match t.configuration {
                5 => Some(RunEnding::Failed(Failure::new(
                    Status::Timeout,
                    "it took more than 5 s",
                ))),
                _ => Some(RunEnding::Done(result(c, t))),
            }),
        ),
        (
            "some-failed",
            with_runs(|c, t| match t.configuration % 2 {
                0 => Some(RunEnding::Failed(Failure::new(
                    Status::OutOfMemory,
                    "no memory",
                ))),
                _ => Some(RunEnding::Done(result(c, t))),
            }),
        ),
        (
            "all-failed",
            with_runs(|_, _| {
                Some(RunEnding::Failed(Failure::new(
                    Status::Failed,
                    "it ended with 1",
                )))
            }),
        ),
        (
            "no-energy",
            with_runs(|c, t| {
                let run = result(c, t);
                Some(RunEnding::Done(RunResult {
                    energies: Energies::default(),
                    devices: Vec::new(),
                    ..run
                }))
            }),
        ),
        (
            "some-energy",
            with_runs(|c, t| {
                let mut run = result(c, t);
                if t.configuration == 2 {
                    run.energies = Energies::default();
                }
                Some(RunEnding::Done(run))
            }),
        ),
        (
            "zero-time",
            with_runs(|c, t| {
                let mut run = result(c, t);
                if t.configuration == 1 {
                    run.time = Seconds::ZERO;
                }
                Some(RunEnding::Done(run))
            }),
        ),
        (
            "all-zero",
            with_runs(|c, t| {
                let mut run = result(c, t);
                run.time = Seconds::ZERO;
                run.energies.job_gpus = Some(Energy::exact(Joules::ZERO));
                Some(RunEnding::Done(run))
            }),
        ),
        (
            "no-items",
            with_runs(|c, t| {
                let mut run = result(c, t);
                run.items = None;
                Some(RunEnding::Done(run))
            }),
        ),
        ("never-run", with_runs(|_, _| None)),
        (
            "single",
            StudyBuilder {
                repeat: 1,
                ..caps(6)
            },
        ),
        ("hostile", hostile()),
        ("many-axes", many_axes()),
        ("long-names", long_names()),
    ]
}

/// A study of a thousand configurations and five thousand runs.
pub fn large() -> StudyBuilder {
    let mut configurations = Vec::new();
    for cap in 0..40_u32 {
        for batch in 1..=25_u64 {
            let configuration = Configuration {
                power_caps: vec![Watts::new(100.0 + 5.0 * f64::from(cap))],
                ..Configuration::on(1)
            };
            configurations.push(configuration.with_batch(8 * batch));
        }
    }
    StudyBuilder {
        axes: vec![Axis::PowerCap, Axis::Parameter("batch".to_owned())],
        reference: configurations.len() - 1,
        configurations,
        repeat: 5,
        ..caps(2)
    }
}

/// A study with more axes than fit the width of a terminal.
fn many_axes() -> StudyBuilder {
    let names: Vec<String> = (0..7)
        .map(|index| format!("a_parameter_with_a_long_name_{index}"))
        .collect();
    let mut configurations = Vec::new();
    for index in 0..16_usize {
        let mut configuration = Configuration {
            power_caps: vec![Watts::new(100.0 + 10.0 * index as f64)],
            ..Configuration::on(1)
        };
        for (place, name) in names.iter().enumerate() {
            let value = format!("value_{}_of_many", (index >> (place % 4)) & 1);
            configuration.parameters.insert(name.clone(), value);
        }
        configurations.push(configuration);
    }
    let mut axes = vec![Axis::PowerCap];
    axes.extend(names.into_iter().map(Axis::Parameter));
    StudyBuilder {
        axes,
        configurations,
        reference: 15,
        name: "a workload whose name is as long as those of commands with all their flags are "
            .repeat(3),
        ..caps(2)
    }
}
