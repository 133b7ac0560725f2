//! Makes the record of a run that has just ended.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sweetspot_control::limit::LoadLimit;
use sweetspot_device::{Descriptor, DeviceId, MeterTrace};
use sweetspot_measure::math::Span;
use sweetspot_measure::{DeviceRecording, Sampler};
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_study::{
    DeviceEnergy, DevicePhase, Energies, Energy, Failure, NO_PHASE_ENERGY, PhaseResult, RunEnding,
    RunRecord, RunResult, Status, StudyError, write_atomically, write_samples,
};
use sweetspot_workload::CommandExit;

use crate::SessionError;
use crate::calibrate::range_warnings;
use crate::measure::{
    DeviceRun, MeasureRequest, MeasuredRun, PhaseSummary, RunMeasurement, TotalEnergy,
    evaluate_with_others, series,
};
use crate::node::{NodeMeters, node_energy, uncovered};

/// A run whose last readings have not arrived yet.
pub struct UnfinishedRun {
    pub request: MeasureRequest,
    pub sampler: Arc<Sampler>,
    /// The power cap that each GPU of the job enforced; `None` for a GPU without a cap.
    pub caps: Vec<Option<Watts>>,
    pub run: MeasuredRun,
    /// The record of the run, in which the energy is still missing.
    pub record: RunRecord,
    /// All measured devices; those that the job uses come first, and the parts of the host last.
    pub devices: Vec<Descriptor>,
    /// The number of GPUs that the job used.
    pub job_gpus: usize,
    /// The number of devices that are parts of the host.
    pub host_parts: usize,
    /// The meters of the whole machine.
    pub meters: Option<Arc<Mutex<NodeMeters>>>,
    /// The path of the file for the samples; `None` if they are not stored.
    pub samples: Option<PathBuf>,
}

/// The complete record of a run.
pub struct FinishedRun {
    pub record: RunRecord,
    /// What limited the load on the first GPU of the job; `None` if that is unknown.
    pub limit: Option<LoadLimit>,
    /// That the ranks of the job mark different phases, if they do.
    pub different_phases: Option<String>,
}

impl UnfinishedRun {
    /// Waits for the last readings and completes the record.
    pub fn finish(self) -> Result<FinishedRun, SessionError> {
        let traces = self.meters.as_ref().map(|meters| {
            let mut meters = meters.lock().unwrap_or_else(PoisonError::into_inner);
            meters.wait_until_shown(self.run.span.end);
            meters.traces(Some(self.run.span.end + -KEPT_METER_READINGS))
        });
        let mut recorded = self.sampler.collect()?;
        for (recorded, cap) in recorded.iter_mut().zip(&self.caps) {
            recorded.trace.model.cap = *cap;
        }
        if let Some(file) = self.samples {
            let series = series(&recorded, self.run.span.begin);
            let bytes = write_samples(&series).map_err(std::io::Error::other);
            let written = bytes.and_then(|bytes| write_atomically(&file, &bytes));
            written.map_err(|problem| StudyError::Samples { file, problem })?;
        }
        if let RunEnding::Failed(_) = self.record.end {
            return Ok(FinishedRun {
                record: self.record,
                limit: None,
                different_phases: None,
            });
        }
        let (job, others) = self.devices.split_at(self.job_gpus);
        let (measured, others) =
            evaluate_with_others(&self.request, job, others, &recorded, &self.run);
        let mut record = self.record;
        record.warnings.extend(measured.warnings.iter().cloned());
        if let Some(problem) = &measured.phase_problem {
            record.warnings.push(format!("{NO_PHASE_ENERGY}{problem}"));
        }
        // The time and energy of ranks that do not work together are not those of the configuration.
        record.end = match &measured.disagreement {
            Some(problem) => RunEnding::Failed(Failure {
                output: self.run.outcome.output.clone(),
                ..Failure::new(Status::Failed, problem)
            }),
            None => {
                let (others, host) = others.split_at(others.len() - self.host_parts);
                record.warnings.extend(range_warnings(others));
                record.warnings.extend(range_warnings(host));
                let mut result = run_result(&measured, others, host);
                if let Some(traces) = traces {
                    let warnings = add_node(&mut result, &traces, &recorded, &measured.window);
                    record.warnings.extend(warnings);
                }
                RunEnding::Done(result)
            }
        };
        // What limits a load that did not run as it should says nothing.
        let is_done = matches!(record.end, RunEnding::Done(_));
        let limit = measured.devices.first().map(|device| device.limit);
        Ok(FinishedRun {
            record,
            limit: limit.filter(|limit| is_done && limit.is_known()),
            different_phases: self.run.reports.different_phases(),
        })
    }
}

/// Meter readings of this time before the end of a run stay stored for the next run.
const KEPT_METER_READINGS: Seconds = Seconds::new(10.0);

/// Adds the energy of the whole machine, from its meters, to a result. Returns warnings about it.
fn add_node(
    result: &mut RunResult,
    traces: &[MeterTrace],
    recorded: &[DeviceRecording],
    window: &Span,
) -> Vec<String> {
    let gpus = result.energies.all_gpus.and_then(|energy| {
        let interval95 = energy.interval95?;
        Some(TotalEnergy {
            value: energy.value,
            interval95,
        })
    });
    // Without a meter's reading the energy is unknown: that of GPUs and host is not in its place.
    result.energies.node = None;
    let node = match node_energy(traces, recorded, gpus.as_ref(), window) {
        Ok(node) => node,
        Err(problem) => {
            return vec![format!(
                "the energy of the whole machine is unknown: {problem}"
            )];
        }
    };
    let energy = |value, interval95| Energy {
        value,
        interval95: Some(interval95),
    };
    if let Ok(total) = &node.energy {
        result.energies.node = Some(energy(total.value, total.interval95));
    }
    result
        .devices
        .extend(node.meters.iter().map(|meter| DeviceEnergy {
            device: DeviceId::new(format!("meter:{}", meter.name)),
            in_job: false,
            energy: match uncovered(meter, window) {
                Some(_) => None,
                None => Some(energy(meter.value, meter.interval95)),
            },
            method: node.method(),
        }));
    node.warnings(window)
}

/// Converts the measurement of a run to a study's result. `others` are GPUs that the job did not use, `host` the parts of
/// the host, whose energy is added to that of all GPUs.
fn run_result(measured: &RunMeasurement, others: &[DeviceRun], host: &[DeviceRun]) -> RunResult {
    let energy = |total: TotalEnergy| Energy {
        value: total.value,
        interval95: Some(total.interval95),
    };
    let device_energy = |device: &DeviceRun, in_job: bool| {
        let known = device.energy.as_ref().ok().map(|measured| &measured.energy);
        DeviceEnergy {
            device: device.device.id.clone(),
            in_job,
            energy: known.map(|known| Energy {
                value: known.value,
                interval95: Some(known.interval95),
            }),
            method: known.map_or_else(
                || "none".to_owned(),
                |known| method_text(&known.method.to_string(), device),
            ),
        }
    };
    let job = measured
        .devices
        .iter()
        .map(|device| device_energy(device, true));
    let others = others.iter().map(|device| device_energy(device, false));
    let gpus: Vec<DeviceEnergy> = job.chain(others).collect();
    let host: Vec<DeviceEnergy> = host.iter().map(|part| device_energy(part, false)).collect();
    let total = |devices: &[DeviceEnergy]| {
        let parts = devices.iter().map(|device| {
            let energy = device.energy?;
            Some((energy.value, energy.interval95?))
        });
        let parts: Option<Vec<_>> = parts.collect();
        parts.filter(|_| measured.energy.is_some())
    };
    let all = total(&gpus);
    let has_host = !host.is_empty();
    let devices = [gpus, host].concat();
    let node = total(&devices).filter(|_| has_host);
    RunResult {
        time: measured.time,
        energies: Energies {
            job_gpus: measured.energy.map(energy),
            all_gpus: all.map(|parts| energy(TotalEnergy::sum(&parts))),
            node: node.map(|parts| energy(TotalEnergy::sum(&parts))),
        },
        devices,
        items: measured.items,
        phases: phase_results(measured),
        values: measured.values.clone(),
    }
}

/// The method by which the energy of a device was measured, and its calibration.
fn method_text(method: &str, device: &DeviceRun) -> String {
    match &device.calibration {
        Some(one) => format!("{method}, calibrated by {} of {}", one.name, one.date),
        None => method.to_owned(),
    }
}

/// Converts the phases of a measurement to those of a study's result.
fn phase_results(measured: &RunMeasurement) -> Vec<PhaseResult> {
    let phases = measured.phases.iter();
    let result = |phase: &PhaseSummary| PhaseResult {
        name: phase.name.clone(),
        time: phase.time,
        energy: phase.energy.map(|energy| energy.value),
        by_device: phase_by_device(&measured.devices, &phase.name),
    };
    phases.map(result).collect()
}

/// A phase on each GPU of the job; empty if it is unknown which phases one of them had.
fn phase_by_device(devices: &[DeviceRun], name: &str) -> Vec<DevicePhase> {
    if devices.iter().any(|device| device.phase_times.is_empty()) {
        return Vec::new();
    }
    let of_device = |device: &DeviceRun| {
        let mut marked = device.phase_times.iter();
        let marked = marked.find(|phase| phase.name == name);
        let is_known = matches!(device.phases, Some(Ok(_)));
        let energy = device.phase_energy(name);
        let time = energy.map(|phase| phase.time);
        DevicePhase {
            time: time
                .or(marked.map(|phase| phase.time))
                .unwrap_or(Seconds::ZERO),
            energy: is_known.then(|| energy.map_or(Joules::ZERO, |phase| phase.energy)),
        }
    };
    devices.iter().map(of_device).collect()
}

/// Texts, in lower case, by which a program's output shows that it ran out of device memory.
const OUT_OF_MEMORY_TEXTS: [&str; 5] = [
    "out of memory",
    "outofmemoryerror",
    "cuda_error_out_of_memory",
    "cudaerrormemoryallocation",
    "cudnn_status_alloc_failed",
];

/// Shortens a line of output for a message; the whole line is stored with the run.
fn shorten(line: &str) -> String {
    /// The number of characters to which a line is shortened.
    const MAX_CHARACTERS: usize = 160;
    let line = line.replace(char::is_control, "\u{fffd}");
    match line.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// Why a run failed, from its exit and its output; `None` if it succeeded.
pub fn find_failure(run: &MeasuredRun, request: &MeasureRequest) -> Option<Failure> {
    let (status, reason) = match run.outcome.ended {
        _ if run.outcome.timed_out => {
            let limit = request.timeout.unwrap_or_default().as_secs_f64();
            (
                Status::Timeout,
                format!("the command was ended after the time limit of {limit} s"),
            )
        }
        CommandExit::Code(0) => return None,
        ended => {
            let output = run.outcome.output.to_lowercase();
            let is_out_of_memory = OUT_OF_MEMORY_TEXTS.iter().any(|text| output.contains(text));
            let status = match is_out_of_memory {
                true => Status::OutOfMemory,
                false => Status::Failed,
            };
            let last = run
                .outcome
                .output
                .lines()
                .rfind(|line| !line.trim().is_empty());
            let last = last.map_or(String::new(), |line| format!(": {}", shorten(line.trim())));
            let how = match ended {
                CommandExit::Code(code) => format!("the command exited with code {code}"),
                CommandExit::Signal(signal) => format!("the command was ended by signal {signal}"),
            };
            (status, how + &last)
        }
    };
    Some(Failure {
        status,
        reason,
        output: run.outcome.output.clone(),
    })
}
