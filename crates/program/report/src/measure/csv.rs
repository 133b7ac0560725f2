//! Measured runs as CSV.

use sweetspot_quantity::{Joules, Watts};
use sweetspot_session::measure::Measurement;

use crate::calibrate::method_text;

/// Writes a line for each device of each run, and one for all devices.
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
                    line(
                        id,
                        known,
                        Some(energy.power()),
                        &method_text(device, &energy.method.to_string()),
                    )
                }
                Err(_) => line(id, None, None, ""),
            })?;
        }
        let all = run.energy.map(|energy| (energy.value, energy.interval95));
        writer.write_record(line("all", all, run.power(), ""))?;
        let host = run
            .host
            .as_ref()
            .map(|host| ("host", host.energy, "counter".to_owned()));
        let node = run.node.as_ref().map(|node| match node {
            Ok(node) if node.energy.is_ok() => ("node", node.energy.clone().ok(), node.method()),
            _ => ("node", None, String::new()),
        });
        for (label, energy, method) in host.into_iter().chain(node) {
            let known = energy.map(|energy| (energy.value, energy.interval95));
            let power = energy.map(|energy| energy.value / run.time);
            writer.write_record(line(label, known, power, &method))?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
