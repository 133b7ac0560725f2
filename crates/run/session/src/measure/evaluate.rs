//! From what was recorded to what is told.

use sweetspot_device::{Descriptor, Moment, SensorKind};
use sweetspot_measure::DeviceRecording;
use sweetspot_measure::math::{
    Attribution, CheckedEnergy, EnergyEstimator, Gap, GapReason, Note, Span,
};
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_workload::CommandExit;

use super::reports::Reports;
use super::result::{DeviceRun, Idle, Measurement, PhaseTable, RunMeasurement, TotalEnergy};
use super::run::MeasuredRun;
use super::{Machine, MeasureRequest};

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
    let idle = idle.and_then(|span| at_rest(request, &estimators, &span));
    let runs = runs
        .iter()
        .map(|run| one(request, devices, &estimators, run, idle.as_ref()).0)
        .collect();
    Measurement {
        command: request
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        machine,
        window: request.window.clone(),
        method: request.method.to_string(),
        idle,
        runs,
        stopped: None,
    }
}

/// One run of a job, and what devices beside it drew in the same window.
pub fn evaluate_beside(
    request: &MeasureRequest,
    job: &[Descriptor],
    beside: &[Descriptor],
    recorded: &[DeviceRecording],
    run: &MeasuredRun,
) -> (RunMeasurement, Vec<DeviceRun>) {
    let estimators: Vec<EnergyEstimator<'_>> = recorded
        .iter()
        .map(|one| EnergyEstimator::new(&one.trace))
        .collect();
    let (of_job, of_others) = estimators.split_at(job.len().min(estimators.len()));
    let (measured, window) = one(request, job, of_job, run, None);
    let others = beside.iter().zip(of_others);
    let others = others.map(|(device, estimator)| DeviceRun {
        device: device.clone(),
        energy: energy_of(request, estimator, &window),
        phases: None,
    });
    (measured, others.collect())
}

fn energy_of(
    request: &MeasureRequest,
    estimator: &EnergyEstimator<'_>,
    window: &Span,
) -> Result<CheckedEnergy, String> {
    let mut energy = estimator
        .measure(window, request.method)
        .map_err(|problem| problem.to_string());
    if let Ok(measured) = &mut energy {
        let uncovered = measured.energy.uncovered(window);
        let gaps = uncovered.map(|part| without_readings(part, estimator));
        measured.energy.missing.extend(gaps);
    }
    energy
}

fn at_rest(
    request: &MeasureRequest,
    estimators: &[EnergyEstimator<'_>],
    span: &Span,
) -> Option<Idle> {
    let parts: Option<Vec<_>> = estimators
        .iter()
        .map(|estimator| estimator.energy(span, request.method).ok())
        .map(|energy| energy.map(|energy| (energy.value, energy.interval95)))
        .collect();
    Some(Idle {
        time: span.length(),
        energy: TotalEnergy::of(&parts?),
    })
}

fn one(
    request: &MeasureRequest,
    devices: &[Descriptor],
    estimators: &[EnergyEstimator<'_>],
    run: &MeasuredRun,
    idle: Option<&Idle>,
) -> (RunMeasurement, Span) {
    let reports = Reports::of(run);
    let mut warnings = reports.warnings.clone();
    let moments: Vec<&[Moment]> = reports.moments.values().map(Vec::as_slice).collect();
    let found = request
        .window
        .find_in(&run.span, &moments, &reports.all_phases());
    let (window, window_problem) = match found {
        Ok(window) => (window, None),
        Err(problem) => {
            warnings.push(format!(
                "window {}: {problem}; the whole run is shown",
                request.window
            ));
            (run.span, Some(problem))
        }
    };
    let runs_of: Vec<DeviceRun> = devices
        .iter()
        .zip(estimators)
        .enumerate()
        .map(|(index, (device, estimator))| {
            let spans = reports.phases_of(index, devices.len(), &request.window);
            DeviceRun {
                device: device.clone(),
                energy: energy_of(request, estimator, &window),
                phases: (!spans.is_empty()).then(|| estimator.phases(&spans, &window)),
            }
        })
        .collect();
    for device in &runs_of {
        warn_of(device, &window, &mut warnings);
    }
    let energy = total(&runs_of, &window);
    if request.progress.is_some() && !reports.is_output_matched {
        warnings.push("the pattern of --progress found nothing in the command's output".to_owned());
    }
    if run.outcome.left_processes {
        warnings.push(
            "the command ended and left processes behind: what they draw from now on is not counted"
                .to_owned(),
        );
    }
    let above_idle = energy
        .zip(idle)
        .map(|(energy, idle)| above(energy, idle, window.length()));
    let measured = RunMeasurement {
        time: window.length(),
        run_time: run.span.length(),
        window_problem,
        energy,
        above_idle,
        phases: match reports.unplaced(devices.len()) {
            Some(problem) => Some(Err(problem)),
            None => phases(&runs_of),
        },
        devices: runs_of,
        items: reports.items(&window),
        values: reports.values,
        exit_code: run.outcome.exit_code(),
        signal: match run.outcome.ended {
            CommandExit::Signal(signal) => Some(signal),
            CommandExit::Code(_) => None,
        },
        warnings,
    };
    (measured, window)
}

/// Why nothing is known of a part: what failed in it, if that was noticed.
fn without_readings(part: Span, estimator: &EnergyEstimator<'_>) -> Gap {
    let gaps = || estimator.trace().gaps.iter();
    // That a device is lost may be noticed some time after it.
    let lost = gaps().find(|gap| gap.reason == GapReason::Lost && part.begin < gap.span.end);
    let why = lost.or_else(|| gaps().find(|gap| gap.span.overlap(&part).is_some()));
    Gap {
        sensor: why.map_or(SensorKind::AveragePower, |gap| gap.sensor),
        span: part,
        reason: why.map_or(GapReason::NotRead, |gap| gap.reason),
    }
}

/// A device whose energy is not known, or not for all of the window, has no part in a sum that would then be
/// too small.
fn total(devices: &[DeviceRun], window: &Span) -> Option<TotalEnergy> {
    let whole = |measured: &&CheckedEnergy| measured.energy.uncovered(window).next().is_none();
    let parts: Option<Vec<_>> = devices
        .iter()
        .map(|device| device.energy.as_ref().ok().filter(whole))
        .map(|energy| energy.map(|m| (m.energy.value, m.energy.interval95)))
        .collect();
    Some(TotalEnergy::of(&parts?))
}

fn above(energy: TotalEnergy, idle: &Idle, time: Seconds) -> TotalEnergy {
    let scale = time / idle.time;
    let rest = |joules: Joules| Joules::ZERO - joules * scale;
    let at_rest = &idle.energy;
    TotalEnergy::of(&[
        (energy.value, energy.interval95),
        (
            rest(at_rest.value),
            (rest(at_rest.interval95.1), rest(at_rest.interval95.0)),
        ),
    ])
}

fn warn_of(device: &DeviceRun, window: &Span, warnings: &mut Vec<String>) {
    let name = &device.device.name;
    match &device.energy {
        Err(problem) => warnings.push(format!("{name}: no energy: {problem}")),
        Ok(measured) => {
            warnings.extend(of_readings(name, measured, window));
        }
    }
}

fn of_readings(name: &str, measured: &CheckedEnergy, window: &Span) -> Vec<String> {
    let energy = &measured.energy;
    let differ = measured.warnings().map(|check| {
        format!(
            "{name}: {} says {:.1} where {} says {:.1}, more than both may be off",
            check.energy.method, check.energy.value, energy.method, energy.value
        )
    });
    let parts = energy.uncovered(window).map(|_| {
        format!(
            "{name}: the energy is that of {:.2} of the window's {:.2}",
            energy.covered.length(),
            window.length()
        )
    });
    let missing = energy.missing.iter().map(|gap| {
        format!(
            "{name}: {}: nothing for {:.2}: {}",
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

/// Of all devices together; one that cannot tell its phases apart speaks for all.
fn phases(devices: &[DeviceRun]) -> Option<Result<Vec<PhaseTable>, String>> {
    let mut of_all: Vec<&Attribution> = Vec::new();
    for device in devices {
        match device.phases.as_ref()? {
            Ok(attribution) => of_all.push(attribution),
            Err(problem) => return Some(Err(problem.to_string())),
        }
    }
    // A rank may have phases that the others do not.
    let mut names: Vec<&str> = Vec::new();
    for phase in of_all.iter().flat_map(|attribution| &attribution.phases) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    names.push(&of_all.first()?.other.name);
    let tables = names.into_iter().map(|name| {
        let same = || {
            of_all.iter().filter_map(|attribution| {
                let mut all = attribution.phases.iter().chain([&attribution.other]);
                all.find(|other| other.name == name)
            })
        };
        let parts: Vec<_> = same().map(|one| (one.energy, one.interval95)).collect();
        PhaseTable {
            name: name.to_owned(),
            time: same().fold(Seconds::ZERO, |time, one| time.max(one.time)),
            count: same().map(|one| one.count).max().unwrap_or(0),
            power: same().map(|one| one.power).sum(),
            energy: TotalEnergy::of(&parts),
        }
    });
    Some(Ok(tables
        .filter(|phase| phase.time > Seconds::ZERO)
        .collect()))
}
