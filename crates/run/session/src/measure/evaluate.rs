//! Computes a measurement from the recorded readings.

use sweetspot_control::slo::{LatencyKind, Slo};
use sweetspot_device::{Descriptor, SensorKind};
use sweetspot_measure::DeviceRecording;
use sweetspot_measure::math::{
    CheckedEnergy, EnergyEstimator, Gap, GapReason, Note, PhaseEnergy, PhaseTime, Span, Timeline,
};
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_workload::CommandExit;

use crate::calibrate::{calibration_of, range_warnings};

use super::limits::load_limit;
use super::result::{
    DeviceRun, IdleEnergy, Measurement, PhaseSummary, RunMeasurement, SloResult, TotalEnergy,
};
use super::run::MeasuredRun;
use super::serving::ServingSummary;
use super::{Machine, MeasureRequest, ProgressSource};

/// Computes the result of a measurement from the readings and the command's reports. `idle` is the time span
/// in which the idle devices were measured.
pub fn evaluate(
    request: &MeasureRequest,
    machine: Machine,
    devices: &[Descriptor],
    recorded: &[DeviceRecording],
    runs: &[MeasuredRun],
    idle: Option<Span>,
) -> Measurement {
    let estimators: Vec<EnergyEstimator<'_>> = recorded
        .iter()
        .map(|one| EnergyEstimator::new(&one.trace))
        .collect();
    let idle = idle.and_then(|span| idle_energy(request, devices, &estimators, &span));
    let runs = runs
        .iter()
        .map(|run| evaluate_run(request, devices, recorded, &estimators, run, idle.as_ref()).0)
        .collect();
    Measurement {
        command: match request.attach {
            Some(pid) => vec![format!("process {pid}")],
            None => command_text(&request.command),
        },
        machine,
        window: request.window.clone(),
        method: request.method.to_string(),
        idle,
        runs,
        stopped: None,
        observer: None,
    }
}

/// Whether the latency bounds were kept.
fn slo_results(request: &MeasureRequest, serving: Option<&ServingSummary>) -> Vec<SloResult> {
    let slos = request.slo.iter().flat_map(|config| &config.slos);
    let result = |slo: &Slo| {
        let times = serving.and_then(|serving| match slo.kind {
            LatencyKind::FirstToken => serving.first_token.as_ref(),
            LatencyKind::InterToken => serving.inter_token.as_ref(),
            LatencyKind::EndToEnd => serving.end_to_end.as_ref(),
        });
        SloResult {
            slo: *slo,
            measured: times.and_then(|times| times.quantile(slo.quantile.get())),
        }
    };
    slos.map(result).collect()
}

/// The words of a command as text.
fn command_text(command: &[std::ffi::OsString]) -> Vec<String> {
    let words = command.iter().map(|word| word.to_string_lossy());
    words.map(|word| word.into_owned()).collect()
}

/// Evaluates one run of a job, and the energy of other devices in the same measurement window.
pub fn evaluate_with_others(
    request: &MeasureRequest,
    job: &[Descriptor],
    others: &[Descriptor],
    recorded: &[DeviceRecording],
    run: &MeasuredRun,
) -> (RunMeasurement, Vec<DeviceRun>) {
    let estimators: Vec<EnergyEstimator<'_>> = recorded
        .iter()
        .map(|one| EnergyEstimator::new(&one.trace))
        .collect();
    let (of_job, of_others) = estimators.split_at(job.len().min(estimators.len()));
    let (measured, window) = evaluate_run(request, job, recorded, of_job, run, None);
    let of_others = recorded.iter().skip(job.len()).zip(of_others);
    let others = others.iter().zip(of_others);
    let others = others.map(|(device, (recorded, estimator))| {
        let energy = window_energy(request, estimator, &window);
        let limit = load_limit(recorded, &energy, &window);
        let other = DeviceRun::new(device.clone(), energy, limit);
        other.calibrated(&request.calibrations)
    });
    (measured, others.collect())
}

/// The energy of one device in the measurement window; parts without readings are explained.
pub(super) fn window_energy(
    request: &MeasureRequest,
    estimator: &EnergyEstimator<'_>,
    window: &Span,
) -> Result<CheckedEnergy, String> {
    let mut energy = estimator
        .measure(window, request.method)
        .map_err(|problem| problem.to_string());
    if let Ok(measured) = &mut energy {
        let uncovered = measured.energy.uncovered(window);
        let gaps = uncovered.map(|part| explain_gap(part, estimator));
        measured.energy.missing.extend(gaps);
    }
    energy
}

/// The energy of the idle devices in a time span; `None` if it is unknown for one of them in a part of the span.
fn idle_energy(
    request: &MeasureRequest,
    devices: &[Descriptor],
    estimators: &[EnergyEstimator<'_>],
    span: &Span,
) -> Option<IdleEnergy> {
    let parts: Option<Vec<_>> = estimators
        .iter()
        .zip(devices)
        .map(|(estimator, device)| {
            let mut energy = estimator.energy(span, request.method).ok()?;
            let is_whole = energy.missing.is_empty() && energy.uncovered(span).next().is_none();
            if !is_whole {
                return None;
            }
            if let Some(calibration) = calibration_of(&request.calibrations, &device.id) {
                calibration.correct_energy(&mut energy);
            }
            Some((energy.value, energy.interval95))
        })
        .collect();
    Some(IdleEnergy {
        time: span.length(),
        energy: TotalEnergy::sum(&parts?),
    })
}

/// Evaluates one run; returns its measurement and its measurement window.
fn evaluate_run(
    request: &MeasureRequest,
    devices: &[Descriptor],
    recorded: &[DeviceRecording],
    estimators: &[EnergyEstimator<'_>],
    run: &MeasuredRun,
    idle: Option<&IdleEnergy>,
) -> (RunMeasurement, Span) {
    let reports = &run.reports;
    let disagreement = reports.disagreement();
    let mut warnings = reports.warnings();
    warnings.extend(disagreement.clone());
    let found = reports.find_window(&run.span);
    let (window, window_problem) = match found {
        Ok(window) => (window, None),
        Err(problem) => {
            warnings.push(format!(
                "measurement window {}: {problem}; the whole run is measured instead",
                request.window
            ));
            (run.span, Some(problem))
        }
    };
    let device_runs: Vec<DeviceRun> = devices
        .iter()
        .zip(recorded.iter().zip(estimators))
        .enumerate()
        .map(|(index, (device, (recorded, estimator)))| {
            let phases = reports.phases_of(index, devices.len());
            let times = phases.map(|phases| Timeline::new(phases, &window).phase_times());
            let energy = window_energy(request, estimator, &window);
            let limit = load_limit(recorded, &energy, &window);
            let run = DeviceRun {
                phases: phases.map(|phases| estimator.phases(phases, &window)),
                phase_times: times.unwrap_or_default(),
                ..DeviceRun::new(device.clone(), energy, limit)
            };
            run.calibrated(&request.calibrations)
        })
        .collect();
    for device in &device_runs {
        warnings.extend(device_warnings(device, &window));
    }
    warnings.extend(range_warnings(&device_runs));
    let energy = total_energy(&device_runs, &window);
    if request.metrics.is_some() && !run.reports.has_metrics() {
        warnings.push(
            "the metrics page never answered: tokens and requests are unknown; check its address and that the server \
             exports metrics"
                .to_owned(),
        );
    }
    if !run.is_output_matched {
        warnings.extend(missing_progress_warning(&request.progress));
    }
    if run.outcome.left_processes {
        warnings.push(
            "the command exited but left processes running: their energy after the exit is not measured"
                .to_owned(),
        );
    }
    let above_idle = energy
        .zip(idle)
        .map(|(energy, idle)| subtract_idle(energy, idle, window.length()));
    let rank_problem = reports.rank_problem(devices.len());
    let phase_problem = rank_problem.or_else(|| phase_problem(&device_runs));
    let times: Vec<Vec<PhaseTime>> = match device_runs.iter().all(|one| one.phases.is_none()) {
        true => reports.phase_times_of_ranks(&window),
        false => device_runs.iter().map(times_of_device).collect(),
    };
    let phases = summarise_phases(&times, &device_runs, phase_problem.is_none());
    let measured = RunMeasurement {
        time: window.length(),
        run_time: run.span.length(),
        window_problem,
        energy,
        above_idle,
        host: None,
        node: None,
        energy_of: request.energy_of,
        window,
        phases,
        phase_problem,
        disagreement,
        devices: device_runs,
        items: reports.items(&window),
        slos: slo_results(request, reports.serving(&window).as_ref()),
        serving: reports.serving(&window),
        clocks: run.clocks.clone(),
        values: reports.values().clone(),
        exit_code: run.outcome.exit_code(),
        signal: match run.outcome.ended {
            CommandExit::Signal(signal) => Some(signal),
            CommandExit::Code(_) => None,
        },
        warnings,
    };
    (measured, window)
}

/// A part of the measurement window without readings, and why there are none, if that is known.
fn explain_gap(part: Span, estimator: &EnergyEstimator<'_>) -> Gap {
    let gaps = || estimator.trace().gaps.iter();
    // The loss of a device may be noticed some time later.
    let lost = gaps().find(|gap| gap.reason == GapReason::Lost && part.begin < gap.span.end);
    let cause = lost.or_else(|| gaps().find(|gap| gap.span.overlap(&part).is_some()));
    Gap {
        sensor: cause.map_or(SensorKind::AveragePower, |gap| gap.sensor),
        span: part,
        reason: cause.map_or(GapReason::NotRead, |gap| gap.reason),
    }
}

/// The sum of all devices' energies; `None` if one of them does not cover the whole measurement window.
pub(super) fn total_energy(devices: &[DeviceRun], window: &Span) -> Option<TotalEnergy> {
    let whole = |measured: &&CheckedEnergy| measured.energy.uncovered(window).next().is_none();
    let parts: Option<Vec<_>> = devices
        .iter()
        .map(|device| device.energy.as_ref().ok().filter(whole))
        .map(|energy| energy.map(|m| (m.energy.value, m.energy.interval95)))
        .collect();
    Some(TotalEnergy::sum(&parts?))
}

/// Subtracts the energy that the idle devices would have used in the same time.
fn subtract_idle(energy: TotalEnergy, idle: &IdleEnergy, time: Seconds) -> TotalEnergy {
    let scale = time / idle.time;
    let negative = |joules: Joules| Joules::ZERO - joules * scale;
    let (low, high) = idle.energy.interval95;
    TotalEnergy::sum(&[
        (energy.value, energy.interval95),
        (negative(idle.energy.value), (negative(high), negative(low))),
    ])
}

/// Warnings about the measurement of one device.
pub(super) fn device_warnings(device: &DeviceRun, window: &Span) -> Vec<String> {
    let name = &device.device.name;
    match &device.energy {
        Err(problem) => vec![format!("{name}: energy is unknown: {problem}")],
        Ok(measured) => energy_warnings(name, measured, window),
    }
}

/// Warnings about an energy: methods that disagree, and times without readings.
fn energy_warnings(name: &str, measured: &CheckedEnergy, window: &Span) -> Vec<String> {
    let energy = &measured.energy;
    let differ = measured.warnings().map(|check| {
        format!(
            "{name}: {} measured {:.1} but {} measured {:.1}, which differ by more than both uncertainties",
            check.energy.method, check.energy.value, energy.method, energy.value
        )
    });
    let parts = energy.uncovered(window).map(|_| {
        format!(
            "{name}: the energy covers only {:.2} of the {:.2} that were to be measured",
            energy.covered.length(),
            window.length()
        )
    });
    let missing = energy.missing.iter().map(|gap| {
        format!(
            "{name}: {}: no readings for {:.2}: {}",
            gap.sensor,
            gap.span.length(),
            gap.reason
        )
    });
    let notes = energy.notes.iter().filter(|note| note.is_warning());
    let notes = notes.filter(|note| !matches!(note, Note::Trimmed { .. }));
    let notes = notes.map(|note| format!("{name}: {note}"));
    let all = differ.chain(parts.take(1)).chain(missing).chain(notes);
    all.collect()
}

/// Why the energy of phases is unknown; `None` if it is known for all devices, or no phase is marked.
fn phase_problem(devices: &[DeviceRun]) -> Option<String> {
    let attributions = devices.iter().filter_map(|device| device.phases.as_ref());
    let mut problems = attributions.filter_map(|attribution| attribution.as_ref().err());
    problems.next().map(ToString::to_string)
}

/// The times of phases on one device: those that its energies belong to, or else those that the marks tell.
fn times_of_device(device: &DeviceRun) -> Vec<PhaseTime> {
    let Some(Ok(attribution)) = &device.phases else {
        return device.phase_times.clone();
    };
    let all = attribution.phases.iter().chain([&attribution.other]);
    let time = |phase: &PhaseEnergy| PhaseTime {
        name: phase.name.clone(),
        time: phase.time,
        count: phase.count,
    };
    all.map(time).collect()
}

/// The phases of all devices together, from their times on each device or rank. `has_energy` says that the energies of
/// phases on all devices are known.
fn summarise_phases(
    times: &[Vec<PhaseTime>],
    devices: &[DeviceRun],
    has_energy: bool,
) -> Vec<PhaseSummary> {
    // A rank may have phases that the others do not; the time outside all phases comes last.
    let mut names: Vec<&str> = Vec::new();
    let named = times.iter().filter_map(|all| all.split_last());
    let (others, named): (Vec<_>, Vec<_>) = named.unzip();
    for phase in named.into_iter().flatten().chain(others) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    let summaries = names.into_iter().map(|name| {
        let same = || times.iter().flatten().filter(|phase| phase.name == name);
        let energies: Vec<&PhaseEnergy> = devices
            .iter()
            .filter_map(|device| device.phase_energy(name))
            .collect();
        let parts: Vec<_> = energies
            .iter()
            .map(|one| (one.energy, one.interval95))
            .collect();
        PhaseSummary {
            name: name.to_owned(),
            time: same().fold(Seconds::ZERO, |time, one| time.max(one.time)),
            count: same().map(|one| one.count).max().unwrap_or(0),
            power: has_energy.then(|| energies.iter().map(|one| one.power).sum()),
            energy: has_energy.then(|| TotalEnergy::sum(&parts)),
        }
    });
    summaries
        .filter(|phase| phase.time > Seconds::ZERO)
        .collect()
}

/// The warning that no progress was found in the output although the request says where it is.
fn missing_progress_warning(progress: &ProgressSource) -> Option<String> {
    match progress {
        ProgressSource::Off | ProgressSource::Automatic => None,
        ProgressSource::Pattern(_) => {
            Some("the progress pattern matched nothing in the command's output".to_owned())
        }
        ProgressSource::Format(format) => Some(format!(
            "no progress in the format `{}` was found in the command's output",
            format.name()
        )),
    }
}
