//! Devices, their settings and their sensors, for a terminal.

use sweetspot_device::{Amount, Domain, Knob, KnobDescriptor};
use sweetspot_session::{DeviceReport, HostPartReport, MeterReport, SensorReport};

use crate::table::Table;
use crate::text::{Line, Role, Text};

/// The text that is shown for an unknown value.
const UNKNOWN: &str = "-";

/// Formats a sensor's value with its unit.
fn format_reading(amount: &Amount) -> String {
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

/// The present value of a sensor, or why it cannot be read.
fn present_value(sensor: &SensorReport) -> String {
    match &sensor.now {
        Ok(now) => format_reading(now),
        Err(problem) => problem.clone(),
    }
}

/// Makes the text that `sweetspot devices` prints on a terminal.
pub fn devices_text(
    driver: Option<&str>,
    reports: &[DeviceReport],
    host: &[HostPartReport],
    meters: &[MeterReport],
) -> Text {
    let mut parts: Vec<Text> = driver
        .map(|driver| format!("driver {driver}").into())
        .into_iter()
        .collect();
    for report in reports {
        let descriptor = &report.descriptor;
        let title = format!(
            "GPU {} {} ({})",
            report.index, descriptor.name, report.architecture
        );
        let mut lines = Text::from(Line::with_role_of(Role::Heading, title));
        lines += format!("  {}", descriptor.id);
        if let Some(parent) = &descriptor.parent {
            lines += format!("  a slice of {parent}, whose energy and settings it shares");
        }
        lines += format!("  power cap: {}", power_cap_text(report));
        for (name, knob) in [
            ("core clocks", Knob::CoreClock),
            ("memory clocks", Knob::MemoryClock),
        ] {
            lines += format!("  {name}: {}", clocks_text(report, knob));
        }
        let mut rows =
            Table::new(&["Sensor", "Source", "Now", "Updates every"]).with_text_columns(2);
        for sensor in &report.sensors {
            let period = sensor
                .update_period
                .map(|period| format!("{:.0} ms", period.get() * 1e3));
            rows.push(vec![
                sensor.kind.to_string(),
                sensor.source.clone(),
                present_value(sensor),
                period.unwrap_or_else(|| UNKNOWN.to_owned()),
            ]);
        }
        parts.extend([lines, rows.into()]);
    }
    if !host.is_empty() {
        parts.extend(host_text(host));
    }
    parts.extend(super::meters::meters_text(meters));
    Text::from_parts(parts)
}

/// Describes the parts of the host, and what to do about those that cannot be read or set.
fn host_text(host: &[HostPartReport]) -> Vec<Text> {
    let mut lines = Text::from(Line::with_role_of(Role::Heading, "Host"));
    lines +=
        "  the energy of the host is that of its packages and the memory beside them".to_owned();
    let mut rows =
        Table::new(&["Part", "Zone", "Energy of host", "Now", "Power cap"]).with_text_columns(3);
    for part in host {
        let values = part.sensors.iter().map(|(_, now)| match now {
            Ok(now) => format_reading(now),
            Err(problem) => problem.clone(),
        });
        let cap = match &part.limits {
            Some(Ok(limits)) if part.cap_is_enabled == Some(false) => {
                format!("{} (off)", limits.requested)
            }
            Some(Ok(limits)) => limits.enforced.to_string(),
            Some(Err(problem)) => problem.clone(),
            None => UNKNOWN.to_owned(),
        };
        rows.push(vec![
            part.descriptor.name.clone(),
            part.zone.clone(),
            match part.descriptor.kind.is_host_energy() {
                true => "counts".to_owned(),
                false => "beside".to_owned(),
            },
            values.collect::<Vec<_>>().join(", "),
            cap,
        ]);
    }
    let remedies = host.iter().flat_map(|part| {
        let read = part.remedy.map(|fix| format!("To read the energy: {fix}"));
        let set = part
            .cap_remedy
            .map(|fix| format!("To set the power cap: {fix}"));
        [read, set]
    });
    let mut remedies: Vec<String> = remedies.flatten().collect();
    remedies.sort();
    remedies.dedup();
    let mut texts = vec![lines, rows.into()];
    let mut meters = host
        .iter()
        .filter_map(|part| part.meter.as_deref())
        .peekable();
    if meters.peek().is_some() {
        let mut lines = Text::from(Line::with_role_of(
            Role::Heading,
            "Probes as meters: name one with --meter",
        ));
        for meter in meters {
            lines += format!("  {meter}");
        }
        texts.push(lines);
    }
    texts.extend(remedies.into_iter().map(Text::from));
    texts
}

/// Describes the power caps of a device.
fn power_cap_text(report: &DeviceReport) -> String {
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

/// Describes the clocks of a device.
fn clocks_text(report: &DeviceReport, knob: Knob) -> String {
    match report.descriptor.knob(knob) {
        Some(KnobDescriptor::CoreClock(range) | KnobDescriptor::MemoryClock(range)) => {
            match &range.domain {
                Domain::Levels(levels) => match levels.as_slice() {
                    [] => "none".to_owned(),
                    [only] => only.to_string(),
                    [first, .., last] => format!("{first} to {last}, {} levels", levels.len()),
                },
                Domain::Range { min, max } => {
                    format!("{min} to {max}, {} by default", range.default)
                }
            }
        }
        _ => "cannot be set".to_owned(),
    }
}
