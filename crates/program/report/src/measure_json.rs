//! The JSON of a measurement, schema `sweetspot.run/1`, and its CSV.

use serde_json::{Map, Value, json};
use sweetspot_measure::math::{CheckedEnergy, Energy};
use sweetspot_quantity::{Joules, Watts};
use sweetspot_session::measure::{
    DeviceRun, Machine, Measurement, PhaseSummary, RunMeasurement, StopReason, TotalEnergy,
};

use crate::measure::over_runs;

/// One run as an object; several as such objects under `runs`, with a summary.
pub fn measurement_json(measurement: &Measurement) -> Value {
    match measurement.runs.as_slice() {
        [run] => Value::Object(run_json(measurement, run)),
        runs => {
            let each = runs.iter().map(|run| run_json(measurement, run));
            let mut object = head(measurement);
            object.insert("runs".into(), each.map(Value::Object).collect());
            object.insert("summary".into(), summary(runs));
            Value::Object(object)
        }
    }
}

/// Where something was measured.
pub fn machine_json(machine: &Machine) -> Value {
    let mut about = Map::new();
    about.insert("kernel".into(), json!(machine.kernel));
    if let Some(processor) = &machine.processor {
        about.insert("processor".into(), json!(processor));
    }
    about.insert("processors".into(), json!(machine.processors));
    if let Some(driver) = &machine.driver {
        about.insert("driver".into(), json!(driver));
    }
    about.insert("sweetspot".into(), json!(machine.version));
    about.insert("simulated".into(), json!(machine.simulated));
    Value::Object(about)
}

fn head(measurement: &Measurement) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("schema".into(), json!("sweetspot.run/1"));
    object.insert("command".into(), json!(measurement.command));
    object.insert("machine".into(), machine_json(&measurement.machine));
    object.insert("window".into(), json!(measurement.window.to_string()));
    object.insert("method".into(), json!(measurement.method));
    match &measurement.stopped {
        None => {}
        Some(StopReason::Signal(signal)) => {
            object.insert("stopped".into(), json!(format!("by signal {signal}")));
        }
        Some(StopReason::Problem(problem)) => {
            object.insert("stopped".into(), json!(problem));
        }
    }
    if let Some(idle) = &measurement.idle {
        let mut rest = total(&idle.energy);
        rest.insert("time_s".into(), json!(idle.time.get()));
        object.insert("idle".into(), Value::Object(rest));
    }
    object
}

fn run_json(measurement: &Measurement, run: &RunMeasurement) -> Map<String, Value> {
    let mut object = head(measurement);
    object.insert("exit_code".into(), json!(run.exit_code));
    if let Some(signal) = run.signal {
        object.insert("signal".into(), json!(signal));
    }
    object.insert("time_s".into(), json!(run.time.get()));
    object.insert("run_time_s".into(), json!(run.run_time.get()));
    if let Some(problem) = &run.window_problem {
        object.insert("window_problem".into(), json!(problem));
    }
    if let Some(energy) = &run.energy {
        object.extend(total(energy));
        let power = energy.value / run.time;
        object.insert("average_power_w".into(), json!(power.get()));
    }
    if let Some(above) = &run.above_idle {
        object.insert("above_idle".into(), Value::Object(total(above)));
    }
    let devices = run.devices.iter().map(|one| device(one, run));
    object.insert("devices".into(), devices.collect());
    match &run.phases {
        None => {}
        Some(Ok(phases)) => {
            let phases = phases
                .iter()
                .map(|phase| (phase.name.clone(), phase_json(phase)));
            object.insert("phases".into(), Value::Object(phases.collect()));
        }
        Some(Err(problem)) => {
            object.insert("phases_refused".into(), json!(problem));
        }
    }
    if let Some(items) = run.items {
        object.insert("items".into(), json!(items));
        object.insert("items_per_s".into(), json!(items / run.time.get()));
        if let Some(energy) = run.energy.filter(|_| items > 0.0) {
            object.insert(
                "energy_per_item_j".into(),
                json!(energy.value.get() / items),
            );
        }
    }
    if !run.values.is_empty() {
        object.insert("values".into(), json!(run.values));
    }
    object.insert("warnings".into(), json!(run.warnings));
    object
}

fn total(energy: &TotalEnergy) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("energy_j".into(), json!(energy.value.get()));
    object.insert("interval95_j".into(), interval(energy.interval95));
    object
}

fn interval((low, high): (Joules, Joules)) -> Value {
    json!([low.get(), high.get()])
}

fn device(device: &DeviceRun, run: &RunMeasurement) -> Value {
    let mut object = Map::new();
    object.insert("uuid".into(), json!(device.device.id.as_str()));
    object.insert("name".into(), json!(device.device.name));
    match &device.energy {
        Ok(measured) => {
            object.extend(measured_json(measured));
            if let Some(part) = device.partial_time(run.time) {
                object.insert("covered_s".into(), json!(part.get()));
            }
        }
        Err(problem) => {
            object.insert("problem".into(), json!(problem));
        }
    }
    Value::Object(object)
}

fn measured_json(measured: &CheckedEnergy) -> Map<String, Value> {
    let mut object = energy(&measured.energy);
    let checks = measured.checks.iter().map(|check| {
        let mut other = energy(&check.energy);
        other.insert("difference".into(), json!(check.difference.get()));
        other.insert("agrees".into(), json!(check.agrees));
        Value::Object(other)
    });
    object.insert("checks".into(), checks.collect());
    let missing = measured.energy.missing.iter().map(|gap| {
        json!({
            "sensor": gap.sensor.to_string(),
            "time_s": gap.span.length().get(),
            "reason": gap.reason.to_string(),
        })
    });
    let missing: Vec<Value> = missing.collect();
    if !missing.is_empty() {
        object.insert("missing".into(), json!(missing));
    }
    let notes: Vec<String> = measured
        .energy
        .notes
        .iter()
        .map(ToString::to_string)
        .collect();
    if !notes.is_empty() {
        object.insert("notes".into(), json!(notes));
    }
    object
}

fn energy(energy: &Energy) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("energy_j".into(), json!(energy.value.get()));
    object.insert("interval95_j".into(), interval(energy.interval95));
    object.insert("average_power_w".into(), json!(energy.power().get()));
    object.insert("method".into(), json!(energy.method.to_string()));
    object
}

fn phase_json(phase: &PhaseSummary) -> Value {
    let mut object = total(&phase.energy);
    object.insert("time_s".into(), json!(phase.time.get()));
    object.insert("power_w".into(), json!(phase.power.get()));
    object.insert("count".into(), json!(phase.count));
    Value::Object(object)
}

fn summary(runs: &[RunMeasurement]) -> Value {
    let energy = |run: &RunMeasurement| run.energy.map(|energy| energy.value.get());
    let values = [
        ("time_s", over_runs(runs, |run| Some(run.time.get()))),
        ("energy_j", over_runs(runs, energy)),
        (
            "items_per_s",
            over_runs(runs, |run| run.items.map(|items| items / run.time.get())),
        ),
    ];
    let known = values.into_iter().filter_map(|(name, summary)| {
        Some((
            name.to_owned(),
            Value::Object(crate::json::summary(&summary?)),
        ))
    });
    Value::Object(known.collect())
}

/// A line for each device of each run, and what all come to.
pub fn measurement_csv(measurement: &Measurement) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "run",
        "device",
        "time_s",
        "energy_j",
        "energy_low_j",
        "energy_high_j",
        "average_power_w",
        "method",
        "items",
        "exit_code",
    ])?;
    for (number, run) in measurement.runs.iter().enumerate() {
        let line = |device: &str,
                    energy: Option<(Joules, (Joules, Joules))>,
                    power: Option<Watts>,
                    method: &str| {
            let text =
                |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
            [
                (number + 1).to_string(),
                device.to_owned(),
                run.time.get().to_string(),
                text(energy.map(|e| e.0.get())),
                text(energy.map(|e| e.1.0.get())),
                text(energy.map(|e| e.1.1.get())),
                text(power.map(|power| power.get())),
                method.to_owned(),
                text(run.items),
                run.exit_code.to_string(),
            ]
        };
        for device in &run.devices {
            let id = device.device.id.as_str();
            writer.write_record(match &device.energy {
                Ok(measured) => {
                    let energy = &measured.energy;
                    let known = Some((energy.value, energy.interval95));
                    line(id, known, Some(energy.power()), &energy.method.to_string())
                }
                Err(_) => line(id, None, None, ""),
            })?;
        }
        let all = run.energy.map(|energy| (energy.value, energy.interval95));
        writer.write_record(line("all", all, run.power(), ""))?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
