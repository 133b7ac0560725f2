//! A published study beside its reproduction as CSV.

use sweetspot_papers::Reproduction;

use super::text::row_label;

/// Writes a line for each row; the labels of a row are in one column.
pub fn reproduction_csv(study: &Reproduction) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "table",
        "row",
        "value",
        "published",
        "reproduced",
        "deviation",
        "tolerance",
        "within",
        "origin",
        "note",
    ])?;
    let text = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for row in &study.rows {
        let within = row.is_within_tolerance().map(|within| within.to_string());
        writer.write_record([
            row.table.clone(),
            row_label(row, &[]),
            row.kind.key.to_owned(),
            text(row.published),
            text(row.reproduced),
            text(row.deviation()),
            text(row.tolerance()),
            within.unwrap_or_default(),
            row.origin
                .map(|origin| origin.to_string())
                .unwrap_or_default(),
            row.note.clone().unwrap_or_default(),
        ])?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
