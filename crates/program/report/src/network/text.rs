//! A network's operations and bytes, for a terminal and as Markdown.

use sweetspot_decide::Objective;
use sweetspot_network::{Convention, Cost, Limit, Network};
use sweetspot_predict::PredictionError;
use sweetspot_session::{GpuBounds, GpuPrediction, StudyEfficiency};

use super::prediction::prediction_parts;
use super::table::{ctc, millions, network_table};
use crate::settings::configuration_text;
use crate::table::Table;
use crate::text::{Role, Text};

/// The choice of rows in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkRows {
    /// A row for each layer.
    #[default]
    Layers,
    /// A row for each kind of layer.
    Kinds,
}

/// A network, and what to show about it.
#[derive(Clone, Copy, Debug)]
pub struct NetworkView<'a> {
    /// The network that is shown.
    pub network: &'a Network,
    /// The network's operations and bytes.
    pub cost: &'a Cost<'a>,
    /// Lower bounds of the network's time and energy on a GPU, if the user named one.
    pub gpu: Option<&'a GpuBounds>,
    /// What the network is predicted to cost on that GPU, or why that is unknown.
    pub prediction: Option<&'a Result<GpuPrediction, PredictionError>>,
    /// The objective of the best settings.
    pub objective: Objective,
    /// The network's efficiency as measured in a study, if the user named one.
    pub study: Option<&'a StudyEfficiency>,
    /// Whether the table has a row for each layer or for each kind of layer.
    pub rows: NetworkRows,
}

/// Makes the text that `sweetspot network` prints on a terminal.
pub fn network_text(view: &NetworkView<'_>) -> Text {
    let narrow = view.gpu.is_some() || view.rows == NetworkRows::Layers;
    document(view, narrow)
}

/// Makes the Markdown document of `sweetspot network`.
pub fn network_markdown(view: &NetworkView<'_>) -> String {
    document(view, false).to_markdown()
}

/// Makes the text in either format; `narrow` omits columns that a terminal has no room for.
fn document(view: &NetworkView<'_>, narrow: bool) -> Text {
    let mut parts: Vec<Text> = vec![title(view).into(), network_table(view, narrow).into()];
    if view.cost.convention == Convention::Table1 {
        parts.push(readings(view).into());
    }
    if let Some(gpu) = view.gpu {
        parts.extend(lower_bound_sentence(view.cost, gpu).map(Text::from));
    }
    match view.prediction {
        Some(Ok(prediction)) => {
            parts.extend(prediction_parts(view.network, prediction, view.objective));
        }
        Some(Err(problem)) => parts.push(format!("No prediction: {problem}.").into()),
        None => {}
    }
    if let Some(study) = view.study {
        parts.push(efficiency_in_study(study).into());
        parts.push(study_note(study).into());
    }
    if view.cost.convention.follows_paper() {
        let notes = view.network.notes.iter();
        parts.extend(notes.map(|note| sentence(note).into()));
    }
    let warnings = [nothing_counted(view.network), not_counted(view.network)];
    let warnings = warnings.into_iter().flatten();
    parts.extend(warnings.map(|text| Text::from(text).with_role(Role::Warning)));
    Text::from_parts(parts)
}

/// The title: the network, its batch size, precision and size.
fn title(view: &NetworkView<'_>) -> String {
    let (network, cost) = (view.network, view.cost);
    let trained = cost.layers.iter().any(|layer| layer.backward.is_some());
    let inputs: Vec<_> = network
        .inputs
        .iter()
        .map(|(name, shape)| format!("{name} {shape}"))
        .take(3)
        .collect();
    format!(
        "{}, {}, batch {}, {}\n{} {}, {} parameters, {}, counted as {}",
        network.title,
        if trained { "training" } else { "inference" },
        cost.batch,
        cost.precision,
        network.layers.len(),
        if network.layers.len() == 1 {
            "layer"
        } else {
            "layers"
        },
        millions(u128::from(network.parameters())) + " M",
        match inputs.is_empty() {
            true => "no inputs".to_owned(),
            false => format!("input {}", inputs.join(", ").replace("input ", "")),
        },
        cost.convention,
    )
}

/// Formats bytes; the paper's megabytes are 2^20 bytes.
fn megabytes(cost: &Cost<'_>, bytes: u128) -> String {
    let unit = match cost.convention.follows_paper() {
        true => f64::from(1 << 20),
        false => 1e6,
    };
    format!("{:.3}", bytes as f64 / unit)
}

/// Makes the columns of table 1 of multi_gpu_2018 for the published description and for other interpretations of it.
fn readings(view: &NetworkView<'_>) -> Table {
    let mut rows = Table::new(&[
        "Reading",
        "Layers",
        "Operations\n[M]",
        "Read\n[MB]",
        "Written\n[MB]",
        "CTC",
    ]);
    let own = match view.network.variants.is_empty() {
        true => ("as it is", &view.network.layers),
        false => ("as the text describes it", &view.network.layers),
    };
    let variants = view.network.variants.iter();
    let variants = variants.map(|variant| (variant.about.as_str(), &variant.layers));
    for (about, layers) in std::iter::once(own).chain(variants) {
        let cost = Cost::of_layers(
            layers,
            view.network.batch,
            view.cost.convention,
            view.cost.precision,
            view.cost.batch,
            false,
        );
        let total = cost.total();
        rows.push(vec![
            about.to_owned(),
            layers.len().to_string(),
            format!("{:.2}", total.operations.all() as f64 / 1e6),
            megabytes(&cost, cost.read_bytes(&total)),
            megabytes(&cost, cost.written_bytes(&total)),
            ctc(&total),
        ]);
    }
    rows
}

/// The sentence about the shortest time and least energy on a GPU; `None` if they are not finite.
fn lower_bound_sentence(cost: &Cost<'_>, gpu: &GpuBounds) -> Option<String> {
    (gpu.total.time.get() > 0.0).then_some(())?;
    let in_memory = || {
        gpu.layers
            .iter()
            .filter(|bound| bound.limit == Limit::Memory)
    };
    let time: f64 = in_memory().map(|bound| bound.time.get()).sum();
    let items = cost.batch as f64;
    Some(format!(
        "The limit on {} ({:.1} in {}, {}), layer by layer: {:.0} items/s and {:.4} J an item. {} of {} layers are memory-bound, with {:.0} % of the time.",
        gpu.product,
        gpu.ceilings.matrix,
        cost.precision,
        gpu.ceilings.bandwidth,
        items / gpu.total.time.get(),
        gpu.total.energy.get() / items,
        in_memory().count(),
        gpu.layers.len(),
        100.0 * time / gpu.total.time.get(),
    ))
}

/// Makes the table of the efficiency that a study measured.
fn efficiency_in_study(study: &StudyEfficiency) -> Table {
    let mut rows = Table::new(&[
        "Configuration",
        "Energy of an item\n[J]",
        "GFLOPS/W",
        "Speed\n[TFLOP/s]",
        "Share of peak\n[%]",
        "Of SGEMM's GFLOPS/W\n[%]",
    ]);
    let percent = |ratio: Option<sweetspot_quantity::Ratio>| match ratio {
        Some(ratio) => format!("{:.1}", 100.0 * ratio.get()),
        None => "-".to_owned(),
    };
    for row in &study.rows {
        let efficiency = &row.efficiency;
        rows.push(vec![
            configuration_text(&study.axes, &row.configuration),
            format!("{:.4}", row.energy_per_item.get()),
            format!("{:.1}", efficiency.gflops_per_watt),
            format!("{:.2}", efficiency.speed.get() / 1e12),
            percent(efficiency.share_of_peak),
            percent(efficiency.share_of_sgemm),
        ]);
    }
    rows
}

/// The note on the study below its table.
fn study_note(study: &StudyEfficiency) -> String {
    let peaks = match &study.gpu {
        Some(gpu) => format!("peaks of {gpu}"),
        None => "without peak rates, because there is no profile of its GPUs".to_owned(),
    };
    format!(
        "{}, energy of {}, {:.3} GFLOP an item, {peaks}.",
        study.study,
        study.energy_of,
        study.flops_per_item / 1e9,
    )
}

/// Lists the built-in networks.
pub fn networks_text(networks: &[Network]) -> Text {
    let mut rows = Table::new(&["Network", "Input", "Layers", "Parameters\n[M]", "MACs\n[M]"]);
    for network in networks {
        let input = network.inputs.first();
        let cost = Cost::of(
            network,
            Convention::Usual,
            sweetspot_network::Precision::Fp32,
            network.batch,
            false,
        );
        rows.push(vec![
            network.name.clone(),
            input
                .map(|(_, shape)| shape.to_string())
                .unwrap_or_default(),
            network.layers.len().to_string(),
            millions(u128::from(network.parameters())),
            millions(cost.total().operations.macs),
        ]);
    }
    rows.into()
}

/// Lists the operators whose cost is unknown; `None` if there are none.
fn not_counted(network: &Network) -> Option<String> {
    if network.is_fully_counted() {
        return None;
    }
    let mut parts: Vec<String> = network
        .unknown
        .iter()
        .take(20)
        .map(|unknown| match unknown.nodes {
            1 => unknown.first.clone(),
            nodes => format!("{} and {} more", unknown.first, nodes - 1),
        })
        .collect();
    if network.unknown.len() > 20 {
        parts.push(format!("{} more operators", network.unknown.len() - 20));
    }
    if let Some(first) = network.without_shape.first() {
        let more = network.without_shape.len();
        parts.push(format!(
            "{more} that depend on them or on unknown shapes, from {first}"
        ));
    }
    Some(format!(
        "Not counted, because the cost is unknown: {}. They are {:.0} % of the nodes and move at least {:.0} % of the data.",
        parts.join("; "),
        100.0 * network.unknown_share_of_nodes(),
        100.0 * network.unknown_share_of_data(),
    ))
}

/// Says that nothing could be counted; `None` if there are layers.
fn nothing_counted(network: &Network) -> Option<String> {
    let text =
        "The network has no layer whose cost is known: there are no counts, bounds or predictions.";
    network.layers.is_empty().then(|| text.to_owned())
}

/// Capitalises a text and ends it with a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
