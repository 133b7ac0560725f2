//! What a network is predicted to cost on a GPU.

use sweetspot_network::Network;
use sweetspot_predict::Pass;
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_session::GpuPrediction;

use crate::table::Table;
use crate::text::{Role, Text};

/// The number of layers that are named as the slowest.
const NAMED_LAYERS: usize = 5;
/// By how much intervals widen if a part of the network could not be counted.
const UNCOUNTED_WIDENING: f64 = 2.0;

/// The intervals that hold 95 % of predictions.
pub struct Intervals {
    pub items_per_s: [f64; 2],
    pub power: [f64; 2],
    pub energy_per_item: [f64; 2],
}

/// The intervals of a prediction; they are wider if a part of the network could not be counted.
pub fn intervals(network: &Network, on_gpu: &GpuPrediction) -> Intervals {
    let prediction = &on_gpu.prediction;
    let widening = match network.is_fully_counted() {
        true => 1.0,
        false => UNCOUNTED_WIDENING,
    };
    let interval = |value: f64, error: Ratio| {
        let factor = 1.0 + widening * error.get();
        [value / factor, value * factor]
    };
    let [time, power, energy] = prediction.errors;
    Intervals {
        items_per_s: interval(prediction.items_per_s(), time),
        power: interval(prediction.power.get(), power),
        energy_per_item: interval(prediction.energy_per_item().get(), energy),
    }
}

/// The layers that take the longest: name, time for a batch and share of the time of all layers.
pub fn slowest_layers<'a>(
    network: &'a Network,
    on_gpu: &'a GpuPrediction,
) -> impl Iterator<Item = (&'a str, Seconds, Ratio)> {
    let layers = &on_gpu.prediction.layers;
    let all: Seconds = layers.iter().map(|layer| layer.time).sum();
    let slowest = layers.iter().take(NAMED_LAYERS);
    slowest.filter_map(move |slow| {
        let layer = network.layers.get(slow.layer)?;
        Some((layer.name.as_str(), slow.time, slow.time / all))
    })
}

/// The tables and sentences about a prediction.
pub fn prediction_parts(network: &Network, on_gpu: &GpuPrediction) -> Vec<Text> {
    let prediction = &on_gpu.prediction;
    let intervals = intervals(network, on_gpu);
    let mode = match prediction.pass {
        Pass::Inference => "inference",
        Pass::Training => "training",
    };
    let mut rows = Table::new(&[
        &format!("Predicted on {}, {mode}", on_gpu.product),
        "",
        "95 % interval",
    ]);
    let range = |[low, high]: [f64; 2], places: usize| format!("{low:.places$} - {high:.places$}");
    let mut add = |what: &str, value: String, interval: String| {
        rows.push(vec![what.to_owned(), value, interval]);
    };
    add(
        "items a second",
        format!("{:.0}", prediction.items_per_s()),
        range(intervals.items_per_s, 0),
    );
    add(
        "power [W]",
        format!("{:.0}", prediction.power.get()),
        range(intervals.power, 0),
    );
    add(
        "energy of an item [J]",
        format!("{:.4}", prediction.energy_per_item().get()),
        range(intervals.energy_per_item, 4),
    );
    add(
        "memory [GB]",
        format!("{:.2}", prediction.memory.get() / 1e9),
        String::new(),
    );
    let mut parts = vec![Text::from(rows)];
    let slowest = slowest_layers(network, on_gpu);
    let slowest = slowest.map(|(name, _, share)| format!("{name} {:.0} %", 100.0 * share.get()));
    parts.push(
        format!(
            "The slowest layers: {}.",
            slowest.collect::<Vec<_>>().join(", ")
        )
        .into(),
    );
    if let Some(largest) = on_gpu.largest_batch {
        let text = format!(
            "A batch of {} does not fit into the memory of {:.0} GB; {}.",
            prediction.batch,
            on_gpu.capacity.get() / 1e9,
            match largest {
                0 => "not even one item does".to_owned(),
                largest => format!("a batch of {largest} does"),
            }
        );
        parts.push(Text::from(text).with_role(Role::Warning));
    }
    parts
}
