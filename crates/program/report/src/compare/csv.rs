//! The comparison of studies as CSV: a line for each setting, study and quantity.

use sweetspot_study::Axis;

use super::{ComparedQuantity, StudyComparison};

/// Returns the column name of a quantity, with its SI unit.
pub fn column(quantity: &ComparedQuantity) -> String {
    match quantity {
        ComparedQuantity::Time => "time_s".to_owned(),
        ComparedQuantity::Energy => "energy_j".to_owned(),
        ComparedQuantity::Power => "average_power_w".to_owned(),
        ComparedQuantity::TimePerItem => "time_per_item_s".to_owned(),
        ComparedQuantity::EnergyPerItem => "energy_per_item_j".to_owned(),
        ComparedQuantity::PhaseTime(name) => format!("phase:{name}:time_s"),
        ComparedQuantity::PhaseEnergy(name) => format!("phase:{name}:energy_j"),
    }
}

/// Writes every difference of the other studies from the first study.
pub fn compare_csv(compared: &StudyComparison<'_>) -> Result<String, csv::Error> {
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
    for common in &compared.common_settings {
        for (index, side) in compared.studies.iter().enumerate().skip(1) {
            for quantity in all_quantities(compared) {
                let Some(difference) = compared.difference(common, index, &quantity) else {
                    continue;
                };
                let point = common.points[index].as_ref();
                let settings = compared.axes.iter().map(|axis| {
                    let text = point.and_then(|point| axis.text(&point.configuration));
                    text.unwrap_or_default()
                });
                let values = [
                    common.is_reference.to_string(),
                    compared.studies[0].name.clone(),
                    side.name.clone(),
                    column(&quantity),
                    difference.first.to_string(),
                    difference.here.to_string(),
                    text(difference.relative),
                    text(difference.interval95.map(|interval| interval.0)),
                    text(difference.interval95.map(|interval| interval.1)),
                    difference
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

/// Returns all quantities that are compared, including those of phases.
pub fn all_quantities(compared: &StudyComparison<'_>) -> Vec<ComparedQuantity> {
    let phases = compared.phases.iter().flat_map(|name| {
        [
            ComparedQuantity::PhaseTime(name.clone()),
            ComparedQuantity::PhaseEnergy(name.clone()),
        ]
    });
    compared.quantities.iter().cloned().chain(phases).collect()
}
