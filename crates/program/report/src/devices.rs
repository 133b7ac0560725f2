//! Devices and their sensors; a doctor's findings.

use serde_json::{Map, Value, json};
use sweetspot_device::{Amount, Domain, Knob, KnobDescriptor};
use sweetspot_session::{Check, DeviceReport, SensorReport};

use crate::table::Rows;

const UNKNOWN: &str = "-";

fn amount(amount: &Amount) -> String {
    match amount {
        Amount::Energy(energy) => format!("{energy:.3}"),
        Amount::Power(power) => format!("{power:.1}"),
        Amount::Temperature(temperature) => temperature.to_string(),
        Amount::Frequency(clock) => clock.to_string(),
        Amount::Share(share) => format!("{share:.0}"),
        Amount::Throttle(throttle) => {
            let reasons = [
                (throttle.idle, "idle"),
                (throttle.power_cap, "power cap"),
                (throttle.clock_setting, "clock setting"),
                (throttle.thermal, "heat"),
                (throttle.hardware, "hardware"),
            ];
            let named: Vec<_> = reasons
                .iter()
                .filter(|(is, _)| *is)
                .map(|(_, name)| *name)
                .collect();
            if named.is_empty() {
                "none".to_owned()
            } else {
                named.join(", ")
            }
        }
    }
}

fn value(sensor: &SensorReport) -> String {
    match &sensor.now {
        Ok(now) => amount(now),
        Err(problem) => problem.clone(),
    }
}

/// For a terminal.
pub fn devices_text(driver: &str, reports: &[DeviceReport]) -> String {
    let mut parts = vec![format!("driver {driver}")];
    for report in reports {
        let descriptor = &report.descriptor;
        let mut lines = vec![format!(
            "GPU {} {} ({})",
            report.index, descriptor.name, report.architecture
        )];
        lines.push(format!("  {}", descriptor.id));
        if let Some(parent) = &descriptor.parent {
            lines.push(format!(
                "  a slice of {parent}, whose energy and settings it shares"
            ));
        }
        lines.push(format!("  power cap: {}", cap(report)));
        for (name, knob) in [
            ("core clocks", Knob::CoreClock),
            ("memory clocks", Knob::MemoryClock),
        ] {
            lines.push(format!("  {name}: {}", clocks(report, knob)));
        }
        let mut rows = Rows::new(&["Sensor", "Now", "Updates every", "Source"]);
        for sensor in &report.sensors {
            let period = sensor
                .update_period
                .map(|period| format!("{:.0} ms", period.get() * 1e3));
            rows.push(vec![
                sensor.kind.to_string(),
                value(sensor),
                period.unwrap_or_else(|| UNKNOWN.to_owned()),
                sensor.source.clone(),
            ]);
        }
        parts.push(format!("{}\n\n{}", lines.join("\n"), rows.terminal()));
    }
    parts.join("\n\n") + "\n"
}

fn cap(report: &DeviceReport) -> String {
    let range = match report.descriptor.knob(Knob::PowerCap) {
        Some(KnobDescriptor::PowerCap(range)) => match &range.domain {
            Domain::Range { min, max } => format!("{min} to {max}"),
            Domain::Levels(levels) => format!("{} levels", levels.len()),
        },
        _ => "cannot be set".to_owned(),
    };
    match &report.limits {
        Ok(limits) => format!(
            "{} requested, {} enforced, {} by default; {range}",
            limits.requested, limits.enforced, limits.default
        ),
        Err(problem) => format!("{problem}; {range}"),
    }
}

fn clocks(report: &DeviceReport, knob: Knob) -> String {
    match report.descriptor.knob(knob) {
        Some(KnobDescriptor::CoreClock(range) | KnobDescriptor::MemoryClock(range)) => {
            match &range.domain {
                Domain::Levels(levels) => match levels.as_slice() {
                    [] => "none".to_owned(),
                    [only] => only.to_string(),
                    [first, .., last] => format!("{first} to {last}, {} levels", levels.len()),
                },
                Domain::Range { min, max } => format!("{min} to {max}"),
            }
        }
        _ => "cannot be set".to_owned(),
    }
}

/// Schema `sweetspot.devices/1`.
pub fn devices_json(driver: &str, reports: &[DeviceReport]) -> Value {
    let devices: Vec<Value> = reports.iter().map(device).collect();
    json!({"schema": "sweetspot.devices/1", "driver": driver, "devices": devices})
}

fn device(report: &DeviceReport) -> Value {
    let descriptor = &report.descriptor;
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("index", json!(report.index));
    put("uuid", json!(descriptor.id.as_str()));
    put("name", json!(descriptor.name));
    put("architecture", json!(report.architecture));
    if let Some(parent) = &descriptor.parent {
        put("parent", json!(parent.as_str()));
    }
    if let Some(memory) = descriptor.memory {
        put("memory_bytes", json!(memory.get() as u64));
    }
    let mut cap = Map::new();
    if let Ok(limits) = &report.limits {
        cap.insert("requested".into(), json!(limits.requested.get()));
        cap.insert("enforced".into(), json!(limits.enforced.get()));
        cap.insert("default".into(), json!(limits.default.get()));
    }
    if let Some(KnobDescriptor::PowerCap(range)) = descriptor.knob(Knob::PowerCap)
        && let Domain::Range { min, max } = &range.domain
    {
        cap.insert("min".into(), json!(min.get()));
        cap.insert("max".into(), json!(max.get()));
    }
    put("power_cap_w", Value::Object(cap));
    for (name, knob) in [
        ("core_clocks_mhz", Knob::CoreClock),
        ("memory_clocks_mhz", Knob::MemoryClock),
    ] {
        if let Some(KnobDescriptor::CoreClock(range) | KnobDescriptor::MemoryClock(range)) =
            descriptor.knob(knob)
            && let Domain::Levels(levels) = &range.domain
        {
            put(
                name,
                json!(levels.iter().map(|level| level.get()).collect::<Vec<_>>()),
            );
        }
    }
    let sensors: Vec<Value> = report.sensors.iter().map(sensor_json).collect();
    put("sensors", json!(sensors));
    Value::Object(object)
}

fn sensor_json(sensor: &SensorReport) -> Value {
    let mut object = Map::new();
    object.insert("kind".into(), json!(sensor.kind));
    object.insert("source".into(), json!(sensor.source));
    if let Some(period) = sensor.update_period {
        object.insert("update_period_s".into(), json!(period.get()));
    }
    match &sensor.now {
        Ok(Amount::Energy(energy)) => object.insert("energy_j".into(), json!(energy.get())),
        Ok(Amount::Power(power)) => object.insert("power_w".into(), json!(power.get())),
        Ok(Amount::Temperature(degrees)) => {
            object.insert("temperature_c".into(), json!(degrees.get()))
        }
        Ok(Amount::Frequency(clock)) => object.insert("clock_mhz".into(), json!(clock.get())),
        Ok(Amount::Share(share)) => object.insert("share".into(), json!(share.get())),
        Ok(Amount::Throttle(throttle)) => object.insert("throttle".into(), json!(throttle)),
        Err(problem) => object.insert("problem".into(), json!(problem)),
    };
    Value::Object(object)
}

/// For a terminal.
pub fn doctor_text(checks: &[Check]) -> String {
    let width = checks
        .iter()
        .map(|check| check.name.len())
        .max()
        .unwrap_or(0);
    let line = |check: &Check| {
        format!(
            "{}  {:width$}  {}\n",
            check.result, check.name, check.finding
        )
    };
    checks.iter().map(line).collect()
}

/// Schema `sweetspot.doctor/1`.
pub fn doctor_json(checks: &[Check]) -> Value {
    let checks: Vec<Value> = checks
        .iter()
        .map(|check| {
            json!({"name": check.name, "verdict": check.result.to_string(), "finding": check.finding})
        })
        .collect();
    json!({"schema": "sweetspot.doctor/1", "checks": checks})
}
