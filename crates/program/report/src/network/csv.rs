//! A network's layers, or its kinds of layers, as CSV.

use sweetspot_document::network::{Count, Counts, Limit};

use super::json::{kinds, layers};
use super::text::{NetworkRows, NetworkView};

/// The headings of the columns with operations and bytes.
const COUNTS: [&str; 11] = [
    "macs",
    "flops",
    "operations",
    "additions",
    "multiplications",
    "maxima",
    "divisions",
    "exponentials",
    "read_bytes",
    "written_bytes",
    "ctc",
];

/// Writes a line for each layer, or for each kind of layer.
pub fn network_csv(view: &NetworkView<'_>) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    match view.rows {
        NetworkRows::Layers => write_layers(view, &mut writer)?,
        NetworkRows::Kinds => {
            writer.write_record(["kind", "layers", "parameters"].iter().chain(&COUNTS))?;
            for kind in kinds(view.cost) {
                let mut record = vec![kind.kind];
                record.extend([kind.layers.to_string(), kind.parameters.to_string()]);
                record.extend(counts(&kind.counts));
                writer.write_record(&record)?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a line for each layer.
fn write_layers(
    view: &NetworkView<'_>,
    writer: &mut csv::Writer<Vec<u8>>,
) -> Result<(), csv::Error> {
    let mut header = vec!["name", "kind", "parameters"];
    header.extend(COUNTS);
    header.push("output");
    if view.gpu.is_some() {
        header.extend(["bound_time_s", "bound_energy_j", "bound_by"]);
    }
    writer.write_record(&header)?;
    for (layer, cost) in layers(view).into_iter().zip(&view.cost.layers) {
        let mut record = vec![layer.name, layer.kind, layer.parameters.to_string()];
        record.extend(counts(&layer.counts));
        let output = cost.layer.outputs.first();
        record.push(output.map(ToString::to_string).unwrap_or_default());
        if let Some(bound) = layer.bound {
            let by = match bound.by {
                Limit::Compute => "compute",
                Limit::Memory => "memory",
            };
            record.extend([number(bound.time_s), number(bound.energy_j), by.to_owned()]);
        }
        writer.write_record(&record)?;
    }
    Ok(())
}

/// The fields with operations and bytes.
fn counts(counts: &Counts) -> [String; 11] {
    let count = |count: Count| match count {
        Count::Exact(count) => count.to_string(),
        Count::Rounded(count) => number(count),
    };
    [
        count(counts.macs),
        count(counts.flops),
        count(counts.operations),
        count(counts.additions),
        count(counts.multiplications),
        count(counts.maxima),
        count(counts.divisions),
        count(counts.exponentials),
        count(counts.read_bytes),
        count(counts.written_bytes),
        counts.ctc.map(number).unwrap_or_default(),
    ]
}

/// Formats a number as in the JSON document.
fn number(value: f64) -> String {
    serde_json::Value::from(value).to_string()
}
