//! What a network costs, as tables and sentences.

use sweetspot_network::{Bound, Convention, Cost, Counts, Limit, Network};
use sweetspot_session::{GpuBounds, StudyEfficiency};

use crate::network_units::{Unit, Units};
use crate::studies::configuration_text;
use crate::table::Rows;
use crate::words::wrapped;

/// What the rows of the table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkRows {
    /// Every layer.
    #[default]
    Layers,
    /// Layers of a kind together.
    Kinds,
}

/// A network and all that was asked about it.
#[derive(Clone, Copy, Debug)]
pub struct NetworkView<'a> {
    /// The network.
    pub network: &'a Network,
    /// What it costs.
    pub cost: &'a Cost<'a>,
    /// At best on a GPU.
    pub gpu: Option<&'a GpuBounds>,
    /// In a study that ran it.
    pub study: Option<&'a StudyEfficiency>,
    /// What the rows of the table are.
    pub rows: NetworkRows,
}

/// For a terminal.
pub fn network_text(view: &NetworkView<'_>) -> String {
    let narrow = view.gpu.is_some() || view.rows == NetworkRows::Layers;
    let text = document(view, narrow, Rows::terminal);
    // Tables fit already; sentences are wrapped.
    let lines = text.lines().map(|line| wrapped(line, 0));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// For a document.
pub fn network_markdown(view: &NetworkView<'_>) -> String {
    document(view, false, Rows::markdown)
}

/// `narrow` leaves out of the table what a terminal has no room for.
fn document(view: &NetworkView<'_>, narrow: bool, draw: impl Fn(&Rows) -> String) -> String {
    let mut parts = vec![title(view), draw(&table(view, narrow))];
    if view.cost.convention == Convention::Table1 {
        parts.push(draw(&readings(view)));
    }
    if let Some(gpu) = view.gpu {
        parts.extend(at_best(view.cost, gpu));
    }
    if let Some(study) = view.study {
        parts.push(draw(&in_study(study)));
        parts.push(study_note(study));
    }
    if view.cost.convention.follows_paper() {
        parts.extend(view.network.notes.iter().map(|note| sentence(note)));
    }
    parts.extend(not_counted(view.network));
    parts.join("\n\n") + "\n"
}

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
        "{}, {}, batch {}, {}\n{} {}, {} parameters, input {}, counted as {}",
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
        inputs.join(", ").replace("input ", ""),
        cost.convention,
    )
}

/// The paper's megabytes are 2^20 bytes.
fn megabytes(cost: &Cost<'_>, bytes: u128) -> String {
    let unit = match cost.convention.follows_paper() {
        true => f64::from(1 << 20),
        false => 1e6,
    };
    format!("{:.3}", bytes as f64 / unit)
}

fn millions(count: u128) -> String {
    format!("{:.3}", count as f64 / 1e6)
}

fn table(view: &NetworkView<'_>, narrow: bool) -> Rows {
    let cost = view.cost;
    let units = Units::of(cost, view.gpu);
    let by_layer = view.rows == NetworkRows::Layers;
    // What a terminal has no room for: most for a row of each layer with time and energy.
    let [output, parameters, others, with_ctc] = match (narrow, by_layer, view.gpu.is_some()) {
        (false, ..) => [by_layer, true, true, true],
        (true, true, true) => [false, false, false, false],
        (true, true, false) => [true, true, false, true],
        (true, false, _) => [false, false, false, true],
    };
    let named = |name: &str, unit: Unit| format!("{name}\n[{}]", unit.name);
    let headings = [
        by_layer.then(|| "Layer".to_owned()),
        Some("Kind".to_owned()),
        (!by_layer).then(|| "Layers".to_owned()),
        output.then(|| "Output".to_owned()),
        parameters.then(|| "Parameters\n[M]".to_owned()),
        Some(named("MACs", units.macs)),
        others.then(|| named("Other", units.others)),
        Some(named("Read", units.bytes)),
        Some(named("Written", units.bytes)),
        with_ctc.then(|| "CTC".to_owned()),
        view.gpu.map(|_| named("Time", units.time)),
        view.gpu.map(|_| named("Energy", units.energy)),
        view.gpu.map(|_| "Bound by".to_owned()),
    ];
    let headings: Vec<String> = headings.into_iter().flatten().collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut rows = Rows::new(&headings).with_texts(if by_layer { 2 } else { 1 });
    let figures = |own: u64, counts: &Counts| {
        let row = [
            parameters.then(|| millions(u128::from(own))),
            Some(units.macs.text(counts.operations.macs as f64)),
            others.then(|| units.others.text(counts.operations.others() as f64)),
            Some(units.bytes.text(cost.read_bytes(counts) as f64)),
            Some(units.bytes.text(cost.written_bytes(counts) as f64)),
            with_ctc.then(|| ctc(counts)),
        ];
        row.into_iter().flatten()
    };
    let bound = |bound: &Bound| {
        [
            units.time.text(bound.time.get()),
            units.energy.text(bound.energy.get()),
            limit(bound.limit).to_owned(),
        ]
    };
    if by_layer {
        for (index, layer) in cost.layers.iter().enumerate() {
            let mut row = vec![layer.layer.name.clone(), layer.layer.kind.name().to_owned()];
            if output {
                let shape = layer.layer.outputs.first();
                row.push(shape.map(ToString::to_string).unwrap_or_default());
            }
            row.extend(figures(layer.layer.parameters, &layer.both_passes()));
            row.extend(
                view.gpu
                    .map(|gpu| bound(&gpu.layers[index]))
                    .into_iter()
                    .flatten(),
            );
            rows.push(row);
        }
    } else {
        for kind in cost.by_kind() {
            let mut row = vec![kind.kind.to_owned(), kind.layers.to_string()];
            row.extend(figures(kind.parameters, &kind.counts));
            row.extend(
                view.gpu
                    .map(|gpu| bound_of_kind(cost, gpu, kind.kind, &units))
                    .into_iter()
                    .flatten(),
            );
            rows.push(row);
        }
    }
    let mut total = vec!["total".to_owned()];
    match by_layer {
        true => total.resize(2 + usize::from(output), String::new()),
        false => total.push(view.network.layers.len().to_string()),
    }
    total.extend(figures(view.network.parameters(), &cost.total()));
    total.extend(view.gpu.map(|gpu| bound(&gpu.total)).into_iter().flatten());
    rows.push(total);
    rows
}

fn ctc(counts: &Counts) -> String {
    let ctc = counts.ctc().map(|ctc| format!("{ctc:.1}"));
    ctc.unwrap_or_else(|| "-".to_owned())
}

/// The word for what holds a layer back.
pub fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Compute => "compute",
        Limit::Memory => "memory",
    }
}

fn bound_of_kind(cost: &Cost<'_>, gpu: &GpuBounds, kind: &str, units: &Units) -> [String; 3] {
    let own: Vec<&Bound> = cost
        .layers
        .iter()
        .zip(&gpu.layers)
        .filter(|(layer, _)| layer.layer.kind.name() == kind)
        .map(|(_, bound)| bound)
        .collect();
    let in_memory = own
        .iter()
        .filter(|bound| bound.limit == Limit::Memory)
        .count();
    let by = match in_memory {
        0 => "compute".to_owned(),
        all if all == own.len() => "memory".to_owned(),
        some => format!("memory in {some} of {}", own.len()),
    };
    let time: f64 = own.iter().map(|bound| bound.time.get()).sum();
    let energy: f64 = own.iter().map(|bound| bound.energy.get()).sum();
    [units.time.text(time), units.energy.text(energy), by]
}

/// Table 1's columns for the text as it stands and for other readings of it.
fn readings(view: &NetworkView<'_>) -> Rows {
    let mut rows = Rows::new(&[
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

fn at_best(cost: &Cost<'_>, gpu: &GpuBounds) -> Option<String> {
    (gpu.total.time.get() > 0.0).then_some(())?;
    let in_memory = || {
        gpu.layers
            .iter()
            .filter(|bound| bound.limit == Limit::Memory)
    };
    let time: f64 = in_memory().map(|bound| bound.time.get()).sum();
    let items = cost.batch as f64;
    Some(format!(
        "At best, layer by layer, on {} ({:.1} in {}, {}): {:.0} items/s and {:.4} J an item. {} of {} layers are memory-bound, with {:.0} % of the time.",
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

fn in_study(study: &StudyEfficiency) -> Rows {
    let mut rows = Rows::new(&[
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

fn study_note(study: &StudyEfficiency) -> String {
    let peaks = match &study.gpu {
        Some(gpu) => format!("peaks of {gpu}"),
        None => "no peaks: no profile is known for its GPUs".to_owned(),
    };
    format!(
        "{}, energy of {}, {:.3} GFLOP an item, {peaks}.",
        study.study,
        study.energy_of,
        study.flops_per_item / 1e9,
    )
}

/// The built-in networks.
pub fn networks_text(networks: &[Network]) -> String {
    let mut rows = Rows::new(&["Network", "Input", "Layers", "Parameters\n[M]", "MACs\n[M]"]);
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
    rows.terminal() + "\n"
}

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
        "Not counted, as their cost is not known: {}.",
        parts.join("; ")
    ))
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
