//! What a network costs for programs: JSON, schema `sweetspot.network/1`, and CSV.

use serde_json::{Map, Value, json};
use sweetspot_network::{Bound, Cost, Counts, LayerCost, Shape};
use sweetspot_session::{GpuBounds, StudyEfficiency};

use crate::network::{NetworkRows, NetworkView, limit};

/// The whole of it.
pub fn network_json(view: &NetworkView<'_>) -> Value {
    let (network, cost) = (view.network, view.cost);
    let trained = cost.layers.iter().any(|layer| layer.backward.is_some());
    let mut totals = counts(cost, &cost.total());
    totals.insert("parameters".into(), json!(network.parameters()));
    let mut document = json!({
        "schema": "sweetspot.network/1",
        "network": network.name,
        "title": network.title,
        "source": network.source,
        "convention": cost.convention.to_string(),
        "precision": cost.precision.to_string(),
        "mode": if trained { "train" } else { "infer" },
        "batch": cost.batch,
        "inputs": network.inputs.iter().map(|(name, shape)| json!({"name": name, "shape": shape.sizes()})).collect::<Vec<_>>(),
        "totals": totals,
        "kinds": cost.by_kind().iter().map(|kind| {
            let mut row = Map::new();
            row.insert("kind".into(), json!(kind.kind));
            row.insert("layers".into(), json!(kind.layers));
            row.insert("parameters".into(), json!(kind.parameters));
            row.extend(counts(cost, &kind.counts));
            Value::Object(row)
        }).collect::<Vec<_>>(),
        "layers": cost.layers.iter().enumerate().map(|(index, layer)| {
            layer_json(cost, layer, view.gpu.map(|gpu| &gpu.layers[index]))
        }).collect::<Vec<_>>(),
    });
    let mut put = |key: &str, value: Value| {
        if let Value::Object(map) = &mut document {
            map.insert(key.to_owned(), value);
        }
    };
    if !network.notes.is_empty() {
        put("notes", json!(network.notes));
    }
    if !network.variants.is_empty() {
        let variants = network.variants.iter().map(|variant| {
            let layers = &variant.layers;
            let (own, batch) = (network.batch, cost.batch);
            let cost =
                Cost::of_layers(layers, own, cost.convention, cost.precision, batch, trained);
            let parameters: u64 = layers.iter().map(|layer| layer.parameters).sum();
            let mut totals = counts(&cost, &cost.total());
            totals.insert("parameters".into(), json!(parameters));
            json!({"about": variant.about, "layers": layers.len(), "totals": totals})
        });
        put("variants", variants.collect());
    }
    if !network.unknown.is_empty() {
        let unknown = network.unknown.iter().map(|unknown| {
            json!({"operator": unknown.operator, "nodes": unknown.nodes, "first": unknown.first})
        });
        put("unknown_operators", unknown.collect());
    }
    if !network.without_shape.is_empty() {
        put("without_shape", json!(network.without_shape));
    }
    if let Some(gpu) = view.gpu {
        put("bound", gpu_json(gpu));
    }
    if let Some(study) = view.study {
        put("study", study_json(study));
    }
    document
}

/// Counts beyond 64 bits lose their last digits.
fn number(count: u128) -> Value {
    u64::try_from(count).map_or_else(|_| json!(count as f64), |count| json!(count))
}

fn counts(cost: &Cost<'_>, counts: &Counts) -> Map<String, Value> {
    let operations = &counts.operations;
    let mut map = Map::new();
    for (key, count) in [
        ("macs", operations.macs),
        ("flops", cost.flops(operations)),
        ("operations", operations.all()),
        ("additions", operations.additions),
        ("multiplications", operations.multiplications),
        ("maxima", operations.maxima),
        ("divisions", operations.divisions),
        ("exponentials", operations.exponentials),
        ("read_bytes", cost.read_bytes(counts)),
        ("written_bytes", cost.written_bytes(counts)),
    ] {
        map.insert(key.to_owned(), number(count));
    }
    if let Some(ctc) = counts.ctc() {
        map.insert("ctc".to_owned(), json!(ctc));
    }
    map
}

fn layer_json(cost: &Cost<'_>, layer: &LayerCost<'_>, bound: Option<&Bound>) -> Value {
    let shapes = |shapes: &[Shape]| -> Vec<Vec<u64>> {
        shapes.iter().map(|shape| shape.sizes().to_vec()).collect()
    };
    let mut map = Map::new();
    map.insert("name".into(), json!(layer.layer.name));
    map.insert("kind".into(), json!(layer.layer.kind.name()));
    map.insert("inputs".into(), json!(shapes(&layer.layer.inputs)));
    map.insert("outputs".into(), json!(shapes(&layer.layer.outputs)));
    map.insert("parameters".into(), json!(layer.layer.parameters));
    map.extend(counts(cost, &layer.both_passes()));
    if let Some(backward) = &layer.backward {
        map.insert("backward".into(), Value::Object(counts(cost, backward)));
    }
    if let Some(bound) = bound {
        map.insert("bound".into(), bound_json(bound));
    }
    Value::Object(map)
}

fn bound_json(bound: &Bound) -> Value {
    json!({
        "time_s": bound.time.get(),
        "energy_j": bound.energy.get(),
        "by": limit(bound.limit),
    })
}

fn gpu_json(gpu: &GpuBounds) -> Value {
    let ceilings = &gpu.ceilings;
    json!({
        "gpu": gpu.name,
        "product": gpu.product,
        "peak_flops_per_s": ceilings.matrix.get(),
        "bandwidth_bytes_per_s": ceilings.bandwidth.get(),
        "time_s": gpu.total.time.get(),
        "energy_j": gpu.total.energy.get(),
        "by": limit(gpu.total.limit),
        "memory_bound_layers": gpu.layers.iter().filter(|bound| limit(bound.limit) == "memory").count(),
    })
}

fn study_json(study: &StudyEfficiency) -> Value {
    let rows = study.rows.iter().map(|row| {
        let mut settings = Map::new();
        for axis in &study.axes {
            if let Some(number) = axis.number(&row.configuration) {
                settings.insert(axis.name().replace('-', "_"), json!(number));
            }
        }
        let mut map = Map::new();
        map.insert("settings".into(), Value::Object(settings));
        map.insert("gpus".into(), json!(row.configuration.gpus));
        map.insert("energy_per_item_j".into(), json!(row.energy_per_item.get()));
        map.insert("time_per_item_s".into(), json!(row.time_per_item.get()));
        map.insert(
            "gflops_per_watt".into(),
            json!(row.efficiency.gflops_per_watt),
        );
        map.insert("flops_per_s".into(), json!(row.efficiency.speed.get()));
        if let Some(share) = row.efficiency.share_of_peak {
            map.insert("share_of_peak".into(), json!(share.get()));
        }
        if let Some(share) = row.efficiency.share_of_sgemm {
            map.insert("share_of_sgemm".into(), json!(share.get()));
        }
        Value::Object(map)
    });
    let mut map = Map::new();
    map.insert("study".into(), json!(study.study));
    map.insert("energy_of".into(), json!(study.energy_of.to_string()));
    map.insert("flops_per_item".into(), json!(study.flops_per_item));
    if let Some(gpu) = &study.gpu {
        map.insert("gpu".into(), json!(gpu));
    }
    map.insert("points".into(), rows.collect());
    Value::Object(map)
}

/// A line for each layer, or for each kind.
pub fn network_csv(view: &NetworkView<'_>) -> Result<String, csv::Error> {
    let document = network_json(view);
    let key = match view.rows {
        NetworkRows::Layers => "layers",
        NetworkRows::Kinds => "kinds",
    };
    let rows = document[key].as_array().cloned().unwrap_or_default();
    let plain = |value: &Value| !value.is_object() && !value.is_array();
    let columns: Vec<String> = match rows.first().and_then(Value::as_object) {
        Some(first) => first
            .iter()
            .filter(|(key, value)| plain(value) && *key != "ctc")
            .map(|(key, _)| key.clone())
            .collect(),
        None => Vec::new(),
    };
    let bounds = ["time_s", "energy_j", "by"];
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header: Vec<&str> = columns.iter().map(String::as_str).collect();
    header.push("ctc");
    if view.rows == NetworkRows::Layers {
        header.push("output");
        if view.gpu.is_some() {
            header.extend(["bound_time_s", "bound_energy_j", "bound_by"]);
        }
    }
    writer.write_record(&header)?;
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    for (index, row) in rows.iter().enumerate() {
        let mut record: Vec<String> = columns.iter().map(|column| text(&row[column])).collect();
        record.push(text(&row["ctc"]));
        if view.rows == NetworkRows::Layers {
            let shape = view.cost.layers[index].layer.outputs.first();
            record.push(shape.map(ToString::to_string).unwrap_or_default());
            if view.gpu.is_some() {
                record.extend(bounds.map(|key| text(&row["bound"][key])));
            }
        }
        writer.write_record(&record)?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
