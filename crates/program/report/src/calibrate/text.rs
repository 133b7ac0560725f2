//! The result of `sweetspot calibrate`, for a terminal.

use sweetspot_session::calibrate::{CalibrateResult, Calibration, MeterScope};
use sweetspot_session::measure::{DeviceRun, RunMeasurement};

use crate::table::Table;
use crate::text::Text;

/// Makes the text that `sweetspot calibrate` prints on a terminal.
pub fn calibrate_text(result: &CalibrateResult) -> Text {
    let (one, line) = (&result.calibration, &result.calibration.line);
    let title = format!(
        "{} against the meter {}: {} values in {:.0} s",
        one.device_name,
        one.meter,
        result.fit.values,
        result.time.get()
    );
    let mut table = Table::new(&["", "Value", "95 % interval"]);
    let mut row = |name: &str, value: String, interval: String| {
        table.push(vec![name.to_owned(), value, interval]);
    };
    let (low, high) = line.gain_interval95();
    row(
        "gain [W/W]",
        format!("{:.4}", line.gain.get()),
        format!("{:.4} - {:.4}", low.get(), high.get()),
    );
    let (low, high) = line.offset_interval95();
    row(
        "offset [W]",
        format!("{:.1}", line.offset.get()),
        format!("{:.1} - {:.1}", low.get(), high.get()),
    );
    row(
        "residual [W]",
        format!("{:.1}", result.fit.residual.get()),
        String::new(),
    );
    row(
        "range [W]",
        format!("{:.0} - {:.0}", line.range.0.get(), line.range.1.get()),
        String::new(),
    );
    let meaning = match one.scope {
        MeterScope::Machine => format!(
            "The meter measures the whole machine, so this is the gain at the wall: it contains the losses of the power supply, the fans, and all else whose power rises with that of {}. An error of the sensor itself cannot be told apart from them. The offset is mostly the rest of the machine: it is kept, and not applied.",
            one.device_name
        ),
        MeterScope::Device => format!(
            "The meter measures {} alone, so gain and offset are those of its sensor, as far as the meter is right (within {:.2} % of its reading, which is part of the intervals).",
            one.device_name,
            100.0 * line.accuracy.get()
        ),
    };
    let mut parts = vec![Text::from(title), table.into(), meaning.into()];
    if let Some(file) = &result.file {
        parts.push(format!("Stored as `{}` in {}", one.name, file.display()).into());
    }
    Text::from_parts(parts)
}

/// Says which calibration was applied to a measured energy.
fn applied_sentence(one: &Calibration) -> String {
    let (low, high) = one.line.gain_interval95();
    let offset = match one.applied_offset() {
        Some(offset) => format!(", offset {:.1} W", offset.get()),
        None => ", at the wall".to_owned(),
    };
    format!(
        "The energy of {} is corrected by the calibration {} (gain {:.4}, {:.4} - {:.4}{offset}; against the meter {}, {})",
        one.device_name,
        one.name,
        one.line.gain.get(),
        low.get(),
        high.get(),
        one.meter,
        one.date
    )
}

/// Says which calibrations were applied; `None` if none was.
pub(crate) fn calibration_sentences(run: &RunMeasurement) -> Option<String> {
    let host = run.host.iter().flat_map(|host| &host.parts);
    let devices = run.devices.iter().chain(host);
    let mut lines: Vec<String> = Vec::new();
    for applied in devices.filter_map(|device| device.calibration.as_ref()) {
        let line = applied_sentence(applied);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The method of an energy, and whether it was calibrated.
pub(crate) fn method_text(device: &DeviceRun, method: &str) -> String {
    match &device.calibration {
        Some(_) => format!("{method}, calibrated"),
        None => method.to_owned(),
    }
}
