//! `sweep` on real GPUs: runs a command at each configuration, one after the other, on leased GPUs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sweetspot_device::{DeviceId, MigSlices, MonotonicClock};
use sweetspot_measure::{MethodChoice, RunWindow, Sampler};
use sweetspot_quantity::{Celsius, Seconds};
use sweetspot_stats::Seed;
use sweetspot_study::{
    Configuration, Definition, EnergyOf, Outline, Plan, Point, RunRecord, Store, StoreError,
    Subject, SupportedKnobs, Task, WorkloadInfo, fill_placeholders, format_gpu_list, resolve_axes,
    run_environment,
};
use sweetspot_workload::{Lease, MetricsSource, SignalSource, WorkloadError};

use super::runner::SweepRunner;
use super::{Backend, Sweep, SweepError, SweepOptions, SweepTime};
use crate::SessionError;
use crate::calibrate::{Calibration, load_calibrations, reject_other_devices};
use crate::host::{
    Gpu, all_gpus, descriptors, descriptors_of, host_energy_parts, open_host, reopen_for_reading,
    select_working, settable_packages, visibility_variables,
};
use crate::measure::{MeasureRequest, ProgressSource};
use crate::node::NodeMeters;
use crate::observer::Observer;

/// A command and the real GPUs on which it runs.
pub struct RealSweep {
    /// The GPUs that the command may use, in order.
    pub gpus: Vec<Gpu>,
    /// The other GPUs of this computer, which are measured but not set.
    pub others: Vec<Gpu>,
    /// The processor packages whose power cap is set; empty if the study does not set it.
    pub packages: Vec<Gpu>,
    /// The parts whose energies add up to that of the host; empty if the energy of the GPUs is compared.
    pub host: Vec<Gpu>,
    /// The meters of the whole machine, which are read for as long as the sweep lasts.
    pub meters: Option<Arc<Mutex<NodeMeters>>>,
    command: Vec<String>,
    pub request: MeasureRequest,
    pub settle: Duration,
    pub cool_to: Option<Celsius>,
    pub warmup: u32,
    read_only: bool,
    pub samples: bool,
}

impl RealSweep {
    /// Checks the GPUs and the command; no setting is changed yet.
    pub fn prepare(definition: &Definition) -> Result<Sweep, SessionError> {
        let command = definition.command.clone().unwrap_or_default();
        let host = match wants_host(definition)? {
            true => host_parts(definition)?,
            false => Vec::new(),
        };
        let meters = NodeMeters::open(definition.meter.as_deref().unwrap_or_default())?;
        let packages = match definition.cpu_power_cap {
            Some(_) => settable_packages()?,
            None => Vec::new(),
        };
        let gpus = select_working(definition.device.as_deref(), MigSlices::Exclude)?;
        let devices = descriptors(&gpus);
        let is_used = |id: &DeviceId| devices.iter().any(|device| device.id == *id);
        let mut others = all_gpus(open_host()?.as_ref())?;
        others.retain(|gpu| {
            let other = gpu.descriptor();
            other.parent.is_none() && !gpu.is_lost() && !is_used(&other.id)
        });
        let names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
        let resolved = resolve_axes(
            definition,
            &SupportedKnobs {
                devices: &devices,
                packages: &descriptors(&packages),
                names: &names,
                usual_parameters: Default::default(),
            },
        )?;
        let request = measure_request(definition)?;
        let all = gpus.iter().chain(&others).chain(&host);
        let measured = descriptors_of(all);
        reject_other_devices(&request.calibrations, measured.iter())?;
        let mut notes = resolved.notes;
        let has_meter = definition
            .meter
            .as_ref()
            .is_some_and(|meters| !meters.is_empty());
        if !host.is_empty() && !has_meter && definition.energy_of == Some(EnergyOf::Node) {
            notes.push(NODE_BY_COUNTERS.to_owned());
        }
        let mut programs: Vec<String> = Vec::new();
        for configuration in resolved.configurations.iter().chain([&resolved.reference]) {
            let program = fill_placeholders(&command, configuration)?.swap_remove(0);
            if !programs.contains(&program) {
                check_program_exists(&program, definition.folder.as_deref())?;
                programs.push(program);
            }
        }
        let real = Self {
            others,
            packages,
            host,
            meters: meters.map(|meters| Arc::new(Mutex::new(meters))),
            request,
            settle: duration(definition.settle()),
            cool_to: definition.cool_to,
            warmup: definition.warmup.unwrap_or(0),
            read_only: definition.read_only(),
            samples: definition.samples(),
            command: command.clone(),
            gpus,
        };
        let plan = Plan::new(
            resolved.axes,
            resolved.configurations,
            resolved.reference,
            definition.repeat(),
            definition.seed(),
            command.join(" "),
        );
        let subject = Subject {
            energy_of: definition.energy_of.unwrap_or_default(),
            device_name: format_gpu_list(&names),
            devices,
            workload: WorkloadInfo {
                name: command.join(" "),
                command: Some(command),
                ..WorkloadInfo::default()
            },
        };
        let calibrated = fingerprint(&real.request.calibrations);
        let (outline, prior) = Outline::new(definition, subject, plan, calibrated)?;
        Ok(Sweep {
            outline,
            prior,
            notes,
            backend: Backend::Real(Box::new(real)),
        })
    }

    /// The time that the sweep needs in addition to the command's own run time.
    pub fn estimate(&self, outline: &Outline) -> SweepTime {
        let settling = self.settle.as_secs_f64() * outline.plan.len() as f64;
        SweepTime::Overhead(Seconds::new(settling))
    }

    /// Makes all runs that are not stored yet.
    pub fn run(
        &self,
        outline: &Outline,
        points: &mut [Point],
        store: &mut Option<&mut Store>,
        options: &SweepOptions<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let energy_of = outline.subject.energy_of;
        if outline.plan.pending(points, energy_of).is_empty() {
            return Ok(());
        }
        let folder = store.as_ref().map(|store| store.folder().to_owned());
        let runner = self.runner(outline, points, store, folder, options, observer)?;
        runner.run_and_restore(SweepRunner::run_all)
    }

    /// Makes some runs one after the other under one lease, and passes on the record of each as soon as it is known.
    pub fn run_tasks(
        &self,
        outline: &Outline,
        tasks: &[Task],
        folder: &Path,
        options: &SweepOptions<'_>,
        observer: &mut dyn Observer,
        on_record: &mut dyn FnMut(RunRecord) -> Result<(), StoreError>,
    ) -> Result<(), SessionError> {
        let folder = Some(folder.to_owned());
        let mut points = outline.empty_points(outline.subject.energy_of);
        let mut store = None;
        let runner = self.runner(outline, &mut points, &mut store, folder, options, observer)?;
        runner.run_and_restore(|runner| {
            for task in tasks {
                on_record(runner.run_task(*task)?.finish()?.record)?;
            }
            Ok(())
        })
    }

    /// Leases the GPUs, unless the sweep is read-only, and creates the runner that makes the runs.
    fn runner<'a, 'b>(
        &'a self,
        outline: &'a Outline,
        points: &'a mut [Point],
        store: &'a mut Option<&'b mut Store>,
        folder: Option<PathBuf>,
        options: &'a SweepOptions<'a>,
        observer: &'a mut dyn Observer,
    ) -> Result<SweepRunner<'a, 'b>, SessionError> {
        let signals = SignalSource::listen()?;
        let lease = match self.read_only {
            true => None,
            false => {
                let mut note = |text: &str| observer.note(text);
                // A study that sets no device needs nobody's permission.
                let devices = match options.guard.asks_root && !outline.plan.sets_devices() {
                    true => Vec::new(),
                    false => descriptors_of(self.gpus.iter().chain(&self.packages)),
                };
                match Lease::take(&devices, options.guard, &signals, &mut note) {
                    Err(WorkloadError::Interrupted(signal)) => {
                        return Err(SweepError::Interrupted {
                            signal,
                            done: points.iter().map(|point| point.runs.len()).sum(),
                            planned: outline.plan.len(),
                            restored: true,
                        }
                        .into());
                    }
                    lease => Some(lease?),
                }
            }
        };
        let devices = reopen_for_reading(self.measured_gpus().chain(&self.host))?;
        let clock = Arc::new(MonotonicClock);
        Ok(SweepRunner {
            sampler: Arc::new(Sampler::start(devices, self.request.method, clock)?),
            real: self,
            outline,
            points,
            store,
            folder,
            observer,
            options,
            lease,
            signals,
            first_run_time: None,
            finishing: None,
            recognised: None,
            warned_of_phases: false,
        })
    }

    /// The identifiers of the GPUs that the command may use.
    pub fn ids(&self) -> impl Iterator<Item = &DeviceId> {
        self.gpus.iter().map(|gpu| &gpu.descriptor().id)
    }

    /// The GPUs that a configuration uses.
    pub fn job_gpus(&self, configuration: &Configuration) -> &[Gpu] {
        &self.gpus[..configuration.gpus as usize]
    }

    /// All measured GPUs; those that the command may use come first.
    pub fn measured_gpus(&self) -> impl Iterator<Item = &Gpu> {
        self.gpus.iter().chain(&self.others)
    }

    /// The request to measure the command at a configuration.
    pub fn request_for(
        &self,
        configuration: &Configuration,
        options: &SweepOptions<'_>,
    ) -> Result<MeasureRequest, SessionError> {
        let words = fill_placeholders(&self.command, configuration)?;
        let mut variables = run_environment(configuration);
        variables.extend(visibility_variables(self.job_gpus(configuration)));
        Ok(MeasureRequest {
            command: words.into_iter().map(OsString::from).collect(),
            environment: variables,
            quiet: !options.show_output,
            ..self.request.clone()
        })
    }
}

/// What the user is told about the energy of a node that no meter measures.
const NODE_BY_COUNTERS: &str = "the energy of the node is that of its GPUs, processor packages and memory, by their own counters: power supplies, fans and disks are not included";
/// Whether the parts of the host are measured. The energy of the whole machine needs a meter; a study of the processors'
/// power cap is content with the energy of GPUs and host.
fn wants_host(definition: &Definition) -> Result<bool, SessionError> {
    let has_meter = definition
        .meter
        .as_ref()
        .is_some_and(|meters| !meters.is_empty());
    let wants_node = definition.energy_of == Some(EnergyOf::Node) && !has_meter;
    match definition.host == Some(true) || (wants_node && definition.cpu_power_cap.is_some()) {
        false if wants_node => Err(SweepError::NoMeter.into()),
        wants_host => Ok(wants_host),
    }
}

/// The parts of the host whose energy is added to that of the GPUs. They have counters alone.
fn host_parts(definition: &Definition) -> Result<Vec<Gpu>, SessionError> {
    match definition.method.unwrap_or_default() {
        MethodChoice::Auto | MethodChoice::Counter => host_energy_parts(),
        _ => Err(SweepError::HostMethod.into()),
    }
}

/// Rejects a program that does not exist, before anything is created or set.
fn check_program_exists(program: &str, folder: Option<&str>) -> Result<(), SessionError> {
    let is_found = match program.contains('/') {
        true => Path::new(folder.unwrap_or(".")).join(program).exists(),
        false => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
        }
    };
    match is_found {
        true => Ok(()),
        false => Err(SessionError::Workload(WorkloadError::NotStarted {
            program: program.to_owned(),
            is_missing: true,
            reason: std::io::Error::from(std::io::ErrorKind::NotFound).to_string(),
        })),
    }
}

/// The request to measure the command, without the parameters of a configuration.
fn measure_request(definition: &Definition) -> Result<MeasureRequest, SessionError> {
    // A step need not be the same work with other parameters or numbers of GPUs, so steps are not recognised then.
    let is_same_work = definition.axis.is_empty() && definition.gpus.is_none();
    let progress = match &definition.progress {
        Some(text) => text.parse::<ProgressSource>(),
        None if is_same_work => Ok(ProgressSource::Automatic),
        None => Ok(ProgressSource::Off),
    };
    let metrics = definition.metrics.as_ref().map(|url| url.parse());
    let metrics = metrics.transpose().map_err(SweepError::Metrics)?;
    let window = match metrics {
        Some(_) => RunWindow::Steady,
        None => RunWindow::Run,
    };
    Ok(MeasureRequest {
        window: definition.window.clone().unwrap_or(window),
        metrics: metrics.map(MetricsSource::new),
        progress: progress.map_err(|error| SweepError::Progress(error.to_string()))?,
        method: definition.method.unwrap_or_default(),
        calibrations: load_calibrations(definition.calibration.as_deref().unwrap_or_default())?,
        keep_stdout: true,
        quiet: true,
        keep_output: true,
        folder: definition.folder.as_ref().map(PathBuf::from),
        timeout: definition.timeout.map(duration),
        ..MeasureRequest::new(Vec::new())
    })
}

/// A hash of the calibrations that are applied: a study is not continued with others. `None` without calibrations.
fn fingerprint(calibrations: &[Calibration]) -> Option<u64> {
    let mut all = calibrations.iter();
    let first = Seed::new(0).label(&format!("{:?}", all.next()?));
    let seed = all.fold(first, |seed, one| seed.label(&format!("{one:?}")));
    Some(seed.get())
}

/// Converts a time to the standard library's type.
fn duration(time: Seconds) -> Duration {
    Duration::try_from_secs_f64(time.get().max(0.0)).unwrap_or(Duration::MAX)
}
