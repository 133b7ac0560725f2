//! The pump of real time: a command under each configuration, one after the other, on leased GPUs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sweetspot_backend_nvml::NvmlGpu;
use sweetspot_device::{Device, DeviceId, MonotonicClock, Settings};
use sweetspot_measure::Sampler;
use sweetspot_quantity::{Celsius, Seconds};
use sweetspot_study::{
    Configuration, Definition, EnergyOf, Outline, Plan, Point, RunRecord, Store, Subject, Task,
    WorkloadInfo, environment, fill,
};

use super::axes::{Offer, tried};
use super::pump::Pump;
use super::{Conduct, Estimate, Follow, Stage, Sweep, outline};
use crate::SessionError;
use crate::gpus::{Slices, all_gpus, descriptors, open_nvml, select, visible};
use crate::lease::{Lease, note_signals};
use crate::measure::{MeasureRequest, Window};

/// A command and the real GPUs it runs on.
pub struct Real {
    /// Those that may be used, in order.
    pub gpus: Vec<NvmlGpu>,
    /// The others of this machine, which are only watched.
    pub others: Vec<NvmlGpu>,
    command: Vec<String>,
    request: MeasureRequest,
    pub settle: Duration,
    pub cool_to: Option<Celsius>,
    pub warmup: u32,
    read_only: bool,
    pub samples: bool,
}

impl Real {
    /// Looks at the GPUs and the command; nothing is set yet.
    pub fn prepare(definition: &Definition) -> Result<Sweep, SessionError> {
        let command = definition.command.clone().unwrap_or_default();
        if definition.energy_of == Some(EnergyOf::Node) {
            return Err(SessionError::NoMeter);
        }
        let gpus = select(
            all_gpus(open_nvml()?)?,
            definition.device.as_deref(),
            Slices::No,
        )?;
        if let Some(lost) = gpus.iter().find(|gpu| gpu.is_lost()) {
            return Err(SessionError::Lost(lost.descriptor().name.clone()));
        }
        let devices = descriptors(&gpus);
        let is_used = |id: &DeviceId| devices.iter().any(|device| device.id == *id);
        let mut others = all_gpus(open_nvml()?)?;
        others.retain(|gpu| {
            let other = gpu.descriptor();
            other.parent.is_none() && !gpu.is_lost() && !is_used(&other.id)
        });
        let names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
        let tried = tried(
            definition,
            &Offer {
                devices: &devices,
                names: &names,
                usual: Default::default(),
            },
        )?;
        let mut programs: Vec<String> = Vec::new();
        for configuration in tried.configurations.iter().chain([&tried.reference]) {
            let program = fill(&command, configuration)?.swap_remove(0);
            if !programs.contains(&program) {
                exists(&program, definition.folder.as_deref())?;
                programs.push(program);
            }
        }
        let real = Self {
            others,
            request: request(definition)?,
            settle: duration(definition.settle()),
            cool_to: definition.cool_to,
            warmup: definition.warmup.unwrap_or(0),
            read_only: definition.read_only(),
            samples: definition.samples(),
            command: command.clone(),
            gpus,
        };
        let plan = Plan::new(
            tried.axes,
            tried.configurations,
            tried.reference,
            definition.repeat(),
            definition.seed(),
            command.join(" "),
        );
        let subject = Subject {
            energy_of: definition.energy_of.unwrap_or_default(),
            device_name: super::device_name(&names),
            devices,
            workload: WorkloadInfo {
                name: command.join(" "),
                command: Some(command),
                ..WorkloadInfo::default()
            },
        };
        let (outline, lessons) = outline(definition, subject, plan, None)?;
        Ok(Sweep {
            outline,
            lessons,
            stage: Stage::Real(Box::new(real)),
        })
    }

    /// What there is besides the command's own time.
    pub fn estimate(&self, outline: &Outline) -> Estimate {
        let settling = self.settle.as_secs_f64() * outline.plan.len() as f64;
        Estimate::Besides(Seconds::new(settling))
    }

    /// All that is not there yet.
    pub fn run(
        &self,
        outline: &Outline,
        points: &mut [Point],
        store: &mut Option<&mut Store>,
        conduct: &Conduct<'_>,
        follow: &mut dyn Follow,
    ) -> Result<(), SessionError> {
        let of = outline.subject.energy_of;
        if outline.plan.pending(points, of).is_empty() {
            return Ok(());
        }
        let folder = store.as_ref().map(|store| store.folder().to_owned());
        let pump = self.pump(outline, points, store, folder, conduct, follow)?;
        pump.through(Pump::all)
    }

    /// One run on its own.
    pub fn task(
        &self,
        outline: &Outline,
        points: &mut [Point],
        task: Task,
        folder: &Path,
        conduct: &Conduct<'_>,
        follow: &mut dyn Follow,
    ) -> Result<RunRecord, SessionError> {
        let folder = Some(folder.to_owned());
        let mut store = None;
        let pump = self.pump(outline, points, &mut store, folder, conduct, follow)?;
        pump.through(|pump| pump.make(task)?.finish())
    }

    fn pump<'a, 'b>(
        &'a self,
        outline: &'a Outline,
        points: &'a mut [Point],
        store: &'a mut Option<&'b mut Store>,
        folder: Option<PathBuf>,
        conduct: &'a Conduct<'a>,
        follow: &'a mut dyn Follow,
    ) -> Result<Pump<'a, 'b>, SessionError> {
        let lease = match self.read_only {
            true => None,
            false => {
                let mut tell = |note: &str| follow.tell(note);
                match Lease::take(&descriptors(&self.gpus), conduct.guard, &mut tell) {
                    Err(SessionError::Interrupted(signal)) => {
                        return Err(SessionError::Stopped {
                            signal,
                            done: points.iter().map(|point| point.runs.len()).sum(),
                            planned: outline.plan.len(),
                            restored: true,
                        });
                    }
                    lease => Some(lease?),
                }
            }
        };
        let interrupted = match &lease {
            Some(lease) => lease.flag(),
            None => note_signals()?,
        };
        let mut devices: Vec<Box<dyn Device + Send>> = Vec::new();
        for gpu in self.measured() {
            devices.push(Box::new(gpu.reopen()?));
        }
        let clock = Arc::new(MonotonicClock);
        Ok(Pump {
            sampler: Arc::new(Sampler::start(devices, self.request.method, clock)?),
            real: self,
            outline,
            points,
            store,
            folder,
            follow,
            conduct,
            lease,
            interrupted,
            set: vec![Settings::default(); self.gpus.len()],
            finishing: None,
        })
    }

    /// The GPUs that may be used.
    pub fn ids(&self) -> impl Iterator<Item = &DeviceId> {
        self.gpus.iter().map(|gpu| &gpu.descriptor().id)
    }

    /// Those that a configuration uses.
    pub fn job(&self, configuration: &Configuration) -> &[NvmlGpu] {
        &self.gpus[..configuration.gpus as usize]
    }

    /// All that are watched, those that may be used first.
    pub fn measured(&self) -> impl Iterator<Item = &NvmlGpu> {
        self.gpus.iter().chain(&self.others)
    }

    /// The command for a configuration, on the first of the GPUs.
    pub fn request(
        &self,
        configuration: &Configuration,
        conduct: &Conduct<'_>,
    ) -> Result<MeasureRequest, SessionError> {
        let words = fill(&self.command, configuration)?;
        let mut variables = environment(configuration);
        variables.extend(visible(self.job(configuration)));
        Ok(MeasureRequest {
            command: words.into_iter().map(OsString::from).collect(),
            environment: variables,
            quiet: !conduct.show_output,
            ..self.request.clone()
        })
    }
}

/// Whether there is such a program, before anything is made or set.
fn exists(program: &str, folder: Option<&str>) -> Result<(), SessionError> {
    let is_there = match program.contains('/') {
        true => Path::new(folder.unwrap_or(".")).join(program).exists(),
        false => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
        }
    };
    match is_there {
        true => Ok(()),
        false => Err(SessionError::NotStarted {
            program: program.to_owned(),
            problem: std::io::ErrorKind::NotFound.into(),
        }),
    }
}

fn parsed<T: std::str::FromStr>(text: &Option<String>) -> Result<Option<T>, SessionError>
where
    T::Err: std::fmt::Display,
{
    let parsed = text.as_ref().map(|text| text.parse());
    parsed
        .transpose()
        .map_err(|error: T::Err| SessionError::Definition(error.to_string()))
}

fn request(definition: &Definition) -> Result<MeasureRequest, SessionError> {
    Ok(MeasureRequest {
        window: parsed(&definition.window)?.unwrap_or(Window::Run),
        progress: parsed(&definition.progress)?,
        method: parsed(&definition.method)?.unwrap_or_default(),
        keep_stdout: true,
        quiet: true,
        keep_output: true,
        folder: definition.folder.clone(),
        timeout: definition.timeout.map(duration),
        ..MeasureRequest::of(Vec::new())
    })
}

fn duration(time: Seconds) -> Duration {
    Duration::try_from_secs_f64(time.get().max(0.0)).unwrap_or(Duration::MAX)
}
