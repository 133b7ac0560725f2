//! The document of measured runs, `sweetspot.run/1`.

use sweetspot_control::limit::{CapEffect, LoadLimit};
use sweetspot_document::common::{Machine, SchemaName};
use sweetspot_document::measure as document;
use sweetspot_measure::math::{CheckedEnergy, Energy};
use sweetspot_quantity::{Joules, Ratio};
use sweetspot_session::measure::{
    DeviceRun, Measurement, ObserverCost, PhaseSummary, PowerDifference, RunMeasurement,
    StopReason, TotalEnergy,
};

use sweetspot_document::node::HostEnergy;

use super::node::node_json;
use super::serving::serving_json;
use super::text::over_runs;
use crate::calibrate::calibration_json;
use crate::study::summary;

/// Makes the document of a measurement: one run as an object; several as such objects under `runs`, with a summary.
pub fn measurement_json(measurement: &Measurement) -> document::Measurement {
    match measurement.runs.as_slice() {
        [run] => document::Measurement::Run(Box::new(run_json(measurement, run))),
        runs => document::Measurement::Runs(Box::new(document::Runs {
            common: common(measurement),
            runs: runs.iter().map(|run| run_json(measurement, run)).collect(),
            summary: runs_summary(runs),
        })),
    }
}

/// Makes the part of a document that describes the machine.
pub(crate) fn machine_json(machine: &sweetspot_session::measure::Machine) -> Machine {
    Machine {
        kernel: machine.kernel.clone(),
        processor: machine.processor.clone(),
        processors: machine.processors,
        driver: machine.driver.clone(),
        sweetspot: machine.version.to_owned(),
        simulated: machine.simulated,
    }
}

/// Makes the part that all runs of a measurement share.
fn common(measurement: &Measurement) -> document::MeasurementInfo {
    document::MeasurementInfo {
        schema: SchemaName::RUN,
        command: measurement.command.clone(),
        machine: machine_json(&measurement.machine),
        window: measurement.window.to_string(),
        method: measurement.method.clone(),
        stopped: measurement.stopped.as_ref().map(|stopped| match stopped {
            StopReason::Signal(signal) => format!("by signal {signal}"),
            StopReason::Problem(problem) => problem.clone(),
        }),
        idle: measurement.idle.as_ref().map(|idle| document::Idle {
            energy: total(&idle.energy),
            time_s: idle.time.get(),
        }),
        observer: measurement.observer.as_ref().map(observer_json),
    }
}

/// Makes the entry of what measuring itself cost.
fn observer_json(cost: &ObserverCost) -> document::ObserverCost {
    let power = |difference: &Result<PowerDifference, String>| {
        let known = difference.as_ref().ok();
        document::ObserverPower {
            power_w: known.map(|known| known.value.get()),
            resolution_w: known.map(|known| known.resolution.get()),
            unknown: difference.as_ref().err().cloned(),
        }
    };
    document::ObserverCost {
        cpu_time_s: cost.cpu_time.get(),
        time_s: cost.time.get(),
        gpu_power: power(&cost.gpu_power),
        host_power: power(&cost.host_power),
    }
}

/// Makes the entry of one run.
fn run_json(measurement: &Measurement, run: &RunMeasurement) -> document::Run {
    let phases = run.phases.iter();
    let phases = phases.map(|phase| (phase.name.clone(), phase_json(phase)));
    let energy_per_item = run
        .items
        .zip(run.counted_energy())
        .filter(|(items, _)| *items > 0.0);
    document::Run {
        common: common(measurement),
        exit_code: run.exit_code,
        signal: run.signal,
        time_s: run.time.get(),
        run_time_s: run.run_time.get(),
        window_problem: run.window_problem.clone(),
        energy: run.energy.as_ref().map(total),
        average_power_w: run.power().map(|power| power.get()),
        above_idle: run.above_idle.as_ref().map(total),
        energy_of: crate::study::energy_of(run.energy_of),
        devices: run.devices.iter().map(|one| device(one, run)).collect(),
        host: run.host.as_ref().map(|host| HostEnergy {
            energy: host.energy.as_ref().map(total),
            parts: host.parts.iter().map(|one| device(one, run)).collect(),
        }),
        node: run.node.as_ref().map(|node| node_json(node, run.time)),
        phases: (!run.phases.is_empty()).then(|| phases.collect()),
        phases_refused: run.phase_problem.clone(),
        items: run.items,
        items_per_s: run.items.map(|items| items / run.time.get()),
        energy_per_item_j: energy_per_item.map(|(items, energy)| energy.value.get() / items),
        serving: serving_json(run),
        values: run.values.clone(),
        warnings: run.warnings.clone(),
    }
}

/// Makes the entry of the energy of all devices.
fn total(energy: &TotalEnergy) -> document::TotalEnergy {
    document::TotalEnergy {
        energy_j: energy.value.get(),
        interval95_j: interval(energy.interval95),
    }
}

fn interval((low, high): (Joules, Joules)) -> [f64; 2] {
    [low.get(), high.get()]
}

/// Makes the entry of one device's energy.
fn device(device: &DeviceRun, run: &RunMeasurement) -> document::DeviceEnergy {
    let measured = device.energy.as_ref();
    let covered = device.partial_time(run.time).map(|part| part.get());
    document::DeviceEnergy {
        uuid: device.device.id.to_string(),
        name: device.device.name.clone(),
        measured: measured
            .ok()
            .map(|measured| measured_json(measured, covered)),
        problem: measured.err().map(ToString::to_string),
        calibration: device.calibration.as_ref().map(calibration_json),
        limits: device.limit.is_known().then(|| limits_json(&device.limit)),
    }
}

/// Makes the entry of what limited the load on a device.
pub(crate) fn limits_json(limit: &LoadLimit) -> document::LoadLimits {
    let evidence = &limit.evidence;
    let share = |share: Option<Ratio>| share.map(Ratio::get);
    document::LoadLimits {
        limited_by: limit.limit.name(),
        knob: limit.knob.name(),
        power_cap_binds: match limit.cap {
            CapEffect::Binds => Some(true),
            CapEffect::DoesNotBind => Some(false),
            CapEffect::Unknown => None,
        },
        power_cap_w: evidence.power_cap.map(|cap| cap.get()),
        throttled_by_power_cap: share(evidence.throttled_by_cap),
        throttled_by_temperature: share(evidence.throttled_by_heat),
        throttled_by_power_brake: share(evidence.throttled_by_brake),
        core_use: share(evidence.units.cores),
        tensor_use: share(evidence.units.tensor),
        memory_bandwidth_use: share(evidence.units.memory),
        text: limit.to_string(),
    }
}

/// Makes the entry of a measured energy; `covered_s` is the time that the readings cover.
fn measured_json(measured: &CheckedEnergy, covered_s: Option<f64>) -> document::MeasuredEnergy {
    let checks = measured.checks.iter().map(|check| document::EnergyCheck {
        energy: energy(&check.energy),
        difference: check.difference.get(),
        agrees: check.agrees,
    });
    let missing = measured.energy.missing.iter();
    let missing = missing.map(|gap| document::SensorGap {
        sensor: gap.sensor.to_string(),
        time_s: gap.span.length().get(),
        reason: gap.reason.to_string(),
    });
    let notes = measured.energy.notes.iter();
    document::MeasuredEnergy {
        energy: energy(&measured.energy),
        checks: checks.collect(),
        missing: missing.collect(),
        notes: notes.map(ToString::to_string).collect(),
        covered_s,
    }
}

/// Makes the entry of an energy and the method by which it was measured.
fn energy(energy: &Energy) -> document::EnergyByMethod {
    document::EnergyByMethod {
        energy: document::TotalEnergy {
            energy_j: energy.value.get(),
            interval95_j: interval(energy.interval95),
        },
        average_power_w: energy.power().get(),
        method: energy.method.to_string(),
    }
}

/// Makes the entry of one phase.
fn phase_json(phase: &PhaseSummary) -> document::Phase {
    document::Phase {
        energy: phase.energy.as_ref().map(total),
        time_s: phase.time.get(),
        power_w: phase.power.map(|power| power.get()),
        count: phase.count,
    }
}

/// Makes the summary of several runs.
fn runs_summary(runs: &[RunMeasurement]) -> document::RunsSummary {
    let energy = |run: &RunMeasurement| run.counted_energy().map(|energy| energy.value.get());
    let rate = |run: &RunMeasurement| run.items.map(|items| items / run.time.get());
    let time = over_runs(runs, |run| Some(run.time.get()));
    document::RunsSummary {
        time_s: time.as_ref().map(summary),
        energy_j: over_runs(runs, energy).as_ref().map(summary),
        items_per_s: over_runs(runs, rate).as_ref().map(summary),
    }
}
