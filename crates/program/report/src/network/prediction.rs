//! What a network is predicted to cost on a GPU.

use sweetspot_decide::Objective;
use sweetspot_device::Knob;
use sweetspot_network::Network;
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_session::{BestSetting, GpuPrediction};

use crate::table::Table;
use crate::text::{Role, Text};

/// The number of layers that are named as the slowest.
const NAMED_LAYERS: usize = 5;

/// The intervals that hold 95 % of predictions.
pub struct Intervals {
    pub items_per_s: [f64; 2],
    pub power: [f64; 2],
    pub energy_per_item: [f64; 2],
    pub memory: [f64; 2],
}

/// The intervals of a prediction. The power stays below the GPU's cap.
pub fn intervals(on_gpu: &GpuPrediction) -> Intervals {
    let prediction = &on_gpu.prediction;
    let interval = |value: f64, error: Ratio| {
        let factor = 1.0 + error.get();
        [value / factor, value * factor]
    };
    let [time, power, energy] = prediction.errors;
    Intervals {
        items_per_s: interval(prediction.items_per_s(), time),
        power: interval(prediction.at_default.power.get(), power)
            .map(|power| power.min(on_gpu.cap.get())),
        energy_per_item: interval(prediction.energy_per_item().get(), energy),
        memory: interval(prediction.memory.get(), prediction.memory_error),
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
pub fn prediction_parts(
    network: &Network,
    on_gpu: &GpuPrediction,
    objective: Objective,
) -> Vec<Text> {
    let prediction = &on_gpu.prediction;
    let intervals = intervals(on_gpu);
    let mut rows = Table::new(&[
        &format!("Predicted on {}, {}", on_gpu.product, prediction.mode),
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
        format!("{:.0}", prediction.at_default.power.get()),
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
        range(intervals.memory.map(|bytes| bytes / 1e9), 2),
    );
    for best in &on_gpu.best {
        let (name, unit) = name_and_unit(best.knob);
        add(
            &format!("best {name} for {objective} [{unit}]"),
            format!("{:.0}", best.value),
            range(best.interval, 0),
        );
    }
    let mut parts = vec![Text::from(rows)];
    if on_gpu.is_transferred {
        let text = "Predicted, not measured: the constants are those of an NVIDIA H200, adapted to this GPU's data sheet. The intervals are assumed to be twice as wide.";
        parts.push(Text::from(text.to_owned()).with_role(Role::Warning));
    }
    parts.extend(effects(&on_gpu.best));
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

/// The name of a setting and its unit.
fn name_and_unit(knob: Knob) -> (String, &'static str) {
    let unit = match knob {
        Knob::PowerCap => "W",
        _ => "MHz",
    };
    (knob.to_string(), unit)
}

/// What the best settings change, in a sentence; `None` if none of them changes anything.
fn effects(best: &[BestSetting]) -> Option<Text> {
    let changes: Vec<String> = best
        .iter()
        .filter(|best| !best.is_default)
        .map(|best| {
            let (_, unit) = name_and_unit(best.knob);
            format!(
                "{:.0} {unit} changes the energy of an item by {:+.1} % and its time by {:+.1} %",
                best.value,
                100.0 * best.energy_change.get(),
                100.0 * best.time_change.get()
            )
        })
        .collect();
    (!changes.is_empty()).then(|| {
        format!(
            "{}. Lower caps and clocks were not measured: this follows from the voltage curve that the profile assumes.",
            changes.join("; ")
        )
        .into()
    })
}
