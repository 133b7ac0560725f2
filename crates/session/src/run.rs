//! `run`: a command at a setting, and everything as before afterwards.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::process::getpgrp;
use sweetspot_backend_nvml::NvmlGpu;
use sweetspot_device::{Descriptor, Device, Domain, Knob, KnobDescriptor, Settings};
use sweetspot_guard::{Ended, Guard, Message, Start, Streams};
use sweetspot_quantity::Quantity;
use sweetspot_study::{Configuration, environment, fill};

use crate::SessionError;
use crate::gpus::{Slices, all_gpus, descriptors, open_nvml, select, visible};
use crate::lease::{GRACE, GuardProgram, Lease, note_signals, once_released};
use crate::measure::{
    Attention, MeasureRequest, Measurement, OwnChildren, Recording, Watch, measure_on,
};

/// A command and the configuration it is to run at.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// Which GPUs, where the user says.
    pub device: Option<String>,
    /// What is set; a number of GPUs of 0 means all there are.
    pub configuration: Configuration,
    /// Whether a study chose it: the command is then told the configuration, as in the study.
    pub is_chosen: bool,
    /// No write is allowed.
    pub read_only: bool,
    /// The command, with placeholders for the configuration's parameters.
    pub command: Vec<OsString>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// The command, or the signal that ended the run before it.
    pub ended: Ended,
    /// Whether every device is as before.
    pub restored: bool,
}

/// A run that was measured.
pub struct RanMeasured {
    /// How it ended.
    pub ran: Ran,
    /// What it came to, where it got so far.
    pub measured: Option<(Measurement, Recording)>,
}

/// Runs it. `guard` makes the program that serves as guard; `tell` takes what the user should know.
pub fn run(
    request: &RunRequest,
    guard: GuardProgram<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Ran, SessionError> {
    let gpus = gpus_of(request)?;
    let start = |lease: &mut Lease<'_>| {
        lease.guard().run(Start {
            command: request.words(&gpus)?,
            environment: request.environment(&gpus),
            process_group: getpgrp().as_raw_nonzero().get(),
            streams: Streams::default(),
            folder: None,
        })?;
        wait(lease.guard())
    };
    let (ended, restored) = at_settings(request, &gpus, guard, tell, start)?;
    let ended = match ended {
        Ok(ended) => ended,
        Err(signal) => Ended::Signal(signal),
    };
    Ok(Ran { ended, restored })
}

/// Runs it and measures it.
pub fn run_measured(
    request: &RunRequest,
    measure: &MeasureRequest,
    guard: GuardProgram<'_>,
    watch: &mut dyn Watch,
) -> Result<RanMeasured, SessionError> {
    let nothing_to_set = request.configuration.settings(0) == Settings::default();
    let gpus = match nothing_to_set {
        true => used(request)?,
        false => gpus_of(request)?,
    };
    let words = request.words(&gpus)?.into_iter();
    let measure = MeasureRequest {
        command: words.map(OsString::from_vec).collect(),
        environment: request.environment(&gpus),
        ..measure.clone()
    };
    if nothing_to_set {
        let attention = Attention::Noted(note_signals()?);
        let measured = measure_on(gpus, &measure, &mut OwnChildren, attention, watch)?;
        let ended = end_of(&measured.0);
        return Ok(RanMeasured {
            ran: Ran {
                ended,
                restored: true,
            },
            measured: Some(measured),
        });
    }
    let mut notes = Vec::new();
    let start = |lease: &mut Lease<'_>| {
        let again = gpus
            .iter()
            .map(|gpu| gpu.reopen().map_err(SessionError::from));
        let again = again.collect::<Result<Vec<_>, _>>()?;
        let attention = Attention::Noted(lease.flag());
        measure_on(again, &measure, lease.guard(), attention, watch)
    };
    let mut tell = |note: &str| notes.push(note.to_owned());
    let done = at_settings(request, &gpus, guard, &mut tell, start);
    for note in &notes {
        watch.tell(note);
    }
    let (done, restored) = done?;
    let (ended, measured) = match done {
        Ok(measured) => (end_of(&measured.0), Some(measured)),
        Err(signal) => (Ended::Signal(signal), None),
    };
    Ok(RanMeasured {
        ran: Ran { ended, restored },
        measured,
    })
}

/// How the last run of a measurement ended.
fn end_of(measurement: &Measurement) -> Ended {
    let last = measurement.runs.last();
    match last.map(|run| (run.signal, run.exit_code)) {
        Some((Some(signal), _)) => Ended::Signal(signal),
        Some((None, code)) => Ended::Code(code),
        None => Ended::Code(0),
    }
}

impl RunRequest {
    /// The configuration with the number of GPUs that there are.
    fn resolved(&self, gpus: &[NvmlGpu]) -> Configuration {
        Configuration {
            gpus: gpus.len() as u64,
            ..self.configuration.clone()
        }
    }

    fn words(&self, gpus: &[NvmlGpu]) -> Result<Vec<Vec<u8>>, SessionError> {
        let configuration = self.resolved(gpus);
        let filled = self.command.iter().map(|word| match word.to_str() {
            Some(text) if self.is_chosen => {
                let word = fill(&[text.to_owned()], &configuration)?.concat();
                Ok(word.into_bytes())
            }
            _ => Ok(word.as_bytes().to_vec()),
        });
        filled.collect()
    }

    fn environment(&self, gpus: &[NvmlGpu]) -> Vec<(String, String)> {
        if !self.is_chosen {
            return Vec::new();
        }
        let mut variables = environment(&self.resolved(gpus));
        variables.extend(visible(gpus));
        variables
    }
}

/// The GPUs that the run uses, each of which offers what is to be set.
fn gpus_of(request: &RunRequest) -> Result<Vec<NvmlGpu>, SessionError> {
    if request.configuration.settings(0) == Settings::default() {
        return Err(SessionError::NothingToSet);
    }
    if request.read_only {
        return Err(SessionError::ReadOnly);
    }
    let gpus = used(request)?;
    for (index, gpu) in gpus.iter().enumerate() {
        check(gpu.descriptor(), &request.configuration.settings(index))?;
    }
    Ok(gpus)
}

/// The GPUs that the run uses.
fn used(request: &RunRequest) -> Result<Vec<NvmlGpu>, SessionError> {
    let mut gpus = select(
        all_gpus(open_nvml()?)?,
        request.device.as_deref(),
        Slices::No,
    )?;
    let count = request.configuration.gpus as usize;
    if count > gpus.len() {
        return Err(SessionError::Count {
            axis: count.to_string(),
            problem: format!("there are {}", gpus.len()),
        });
    }
    if count > 0 {
        gpus.truncate(count);
    }
    if let Some(lost) = gpus.iter().find(|gpu| gpu.is_lost()) {
        return Err(SessionError::Lost(lost.descriptor().name.clone()));
    }
    Ok(gpus)
}

/// Does something with the GPUs set, and puts them back; where a signal came, which.
fn at_settings<T>(
    request: &RunRequest,
    gpus: &[NvmlGpu],
    guard: GuardProgram<'_>,
    tell: &mut dyn FnMut(&str),
    work: impl FnOnce(&mut Lease<'_>) -> Result<T, SessionError>,
) -> Result<(Result<T, i32>, bool), SessionError> {
    let devices = descriptors(gpus);
    let mut lease = match Lease::take(&devices, guard, tell) {
        Err(SessionError::Interrupted(signal)) => return Ok((Err(signal), true)),
        lease => lease?,
    };
    let done =
        set(&mut lease, &devices, &request.configuration, tell).and_then(|()| work(&mut lease));
    let signal = lease.interrupted();
    let restored = lease.release(tell);
    match (signal, done) {
        (None, Ok(done)) => Ok((Ok(done), restored?)),
        (Some(signal), _) => Ok((Err(signal), restored?)),
        (None, Err(error)) => Err(once_released(error, &restored)),
    }
}

fn set(
    lease: &mut Lease<'_>,
    devices: &[Descriptor],
    configuration: &Configuration,
    tell: &mut dyn FnMut(&str),
) -> Result<(), SessionError> {
    for (index, device) in devices.iter().enumerate() {
        let applied = lease.apply(&device.id, &configuration.settings(index))?;
        if let Some(cap) = applied.power_cap
            && cap.shortfall.is_some()
        {
            tell(&format!(
                "{}: asked for {}, the device enforces {} (another limit of the board is lower)",
                device.name, cap.requested, cap.enforced
            ));
        }
    }
    Ok(())
}

fn wait(guard: &mut Guard) -> Result<Ended, SessionError> {
    match guard.wait()? {
        Message::Ended(end) => Ok(end.ended),
        // The devices are back; the workload may tidy up for a while.
        Message::Released(problems) => {
            guard.keep(problems);
            match guard.wait_for(GRACE)? {
                Some(Message::Ended(end)) => Ok(end.ended),
                _ => Ok(Ended::Code(0)),
            }
        }
    }
}

/// Whether the device offers the setting, before anything is touched.
fn check(device: &Descriptor, settings: &Settings) -> Result<(), SessionError> {
    let bad = |problem: String| SessionError::Setting {
        device: device.name.clone(),
        problem,
    };
    let missing = |knob: Knob| bad(format!("it has no {knob} that can be set"));
    if let Some(cap) = settings.power_cap {
        match device.knob(Knob::PowerCap) {
            Some(KnobDescriptor::PowerCap(range)) => {
                offered(Knob::PowerCap, cap, &range.domain).map_err(bad)?
            }
            _ => return Err(missing(Knob::PowerCap)),
        }
    }
    if let Some(clock) = settings.core_clock {
        match device.knob(Knob::CoreClock) {
            Some(KnobDescriptor::CoreClock(range)) => {
                offered(Knob::CoreClock, clock, &range.domain).map_err(bad)?
            }
            _ => return Err(missing(Knob::CoreClock)),
        }
    }
    if let Some(clock) = settings.memory_clock {
        match device.knob(Knob::MemoryClock) {
            Some(KnobDescriptor::MemoryClock(range)) => {
                offered(Knob::MemoryClock, clock, &range.domain).map_err(bad)?
            }
            _ => return Err(missing(Knob::MemoryClock)),
        }
    }
    Ok(())
}

fn offered<Q: Quantity + std::fmt::Display>(
    knob: Knob,
    value: Q,
    domain: &Domain<Q>,
) -> Result<(), String> {
    if domain.contains(value) {
        Ok(())
    } else {
        Err(format!(
            "{knob} {value} is not offered: {}",
            domain.offered_near(value)
        ))
    }
}
