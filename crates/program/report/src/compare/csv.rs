//! Studies side by side as CSV: a line for each setting, study and measure.

use sweetspot_study::Axis;

use super::{Compared, Measure};

/// The column that a measure goes by, in SI units.
pub fn column(measure: &Measure) -> String {
    match measure {
        Measure::Time => "time_s".to_owned(),
        Measure::Energy => "energy_j".to_owned(),
        Measure::Power => "average_power_w".to_owned(),
        Measure::TimePerItem => "time_per_item_s".to_owned(),
        Measure::EnergyPerItem => "energy_per_item_j".to_owned(),
        Measure::PhaseTime(name) => format!("phase:{name}:time_s"),
        Measure::PhaseEnergy(name) => format!("phase:{name}:energy_j"),
    }
}

/// Everything that is compared, the first study's own values not repeated.
pub fn compare_csv(compared: &Compared<'_>) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names = compared.axes.iter().map(Axis::column);
    let rest = [
        "reference",
        "first",
        "study",
        "measure",
        "first_value",
        "value",
        "relative",
        "relative_low",
        "relative_high",
        "significant",
    ];
    writer.write_record(names.chain(rest))?;
    let text = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for common in &compared.common {
        for (index, side) in compared.sides.iter().enumerate().skip(1) {
            for measure in measures(compared) {
                let Some(contrast) = compared.contrast(common, index, &measure) else {
                    continue;
                };
                let point = common.points[index].as_ref();
                let settings = compared.axes.iter().map(|axis| {
                    let text = point.and_then(|point| axis.text(&point.configuration));
                    text.unwrap_or_default()
                });
                let values = [
                    common.is_reference.to_string(),
                    compared.sides[0].name.clone(),
                    side.name.clone(),
                    column(&measure),
                    contrast.first.to_string(),
                    contrast.here.to_string(),
                    text(contrast.relative),
                    text(contrast.interval95.map(|interval| interval.0)),
                    text(contrast.interval95.map(|interval| interval.1)),
                    contrast
                        .significant
                        .map(|is| is.to_string())
                        .unwrap_or_default(),
                ];
                writer.write_record(settings.chain(values))?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Those of tables, and those of phases.
pub fn measures(compared: &Compared<'_>) -> Vec<Measure> {
    let phases = compared.phases.iter().flat_map(|name| {
        [
            Measure::PhaseTime(name.clone()),
            Measure::PhaseEnergy(name.clone()),
        ]
    });
    compared.measures.iter().cloned().chain(phases).collect()
}
