//! The JSON document of `sweetspot calibrate`, `sweetspot.calibrate/1`.

use sweetspot_document::calibrate as document;
use sweetspot_document::common::SchemaName;
use sweetspot_session::calibrate::{CalibrateResult, Calibration};

/// Makes the JSON document of a calibration.
pub fn calibrate_json(result: &CalibrateResult) -> document::Calibrate {
    let (one, line) = (&result.calibration, &result.calibration.line);
    let (low, high) = line.offset_interval95();
    let alignment = result.fit.alignment;
    document::Calibrate {
        schema: SchemaName::CALIBRATE,
        calibration: calibration_json(one),
        devices: one.devices.iter().map(ToString::to_string).collect(),
        device: one.device_name.clone(),
        offset_w: line.offset.get(),
        offset_interval95_w: [low.get(), high.get()],
        residual_w: result.fit.residual.get(),
        bend_w: result.fit.bend.get(),
        values: result.fit.values,
        time_s: result.time.get(),
        delay_s: alignment.map(|alignment| alignment.delay.get()),
        file: result.file.as_ref().map(|file| file.display().to_string()),
        warnings: result.warnings.clone(),
    }
}

/// Makes the entry of a calibration that is applied.
pub(crate) fn calibration_json(one: &Calibration) -> document::Calibration {
    let (low, high) = one.line.gain_interval95();
    document::Calibration {
        name: one.name.clone(),
        date: one.date.clone(),
        meter: one.meter.clone(),
        meter_measures: one.scope.name().to_owned(),
        gain: one.line.gain.get(),
        gain_interval95: [low.get(), high.get()],
        added_w: one.applied_offset().map(|offset| offset.get()),
        range_w: [one.line.range.0.get(), one.line.range.1.get()],
    }
}
