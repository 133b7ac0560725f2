//! The table of a network's layers, or of its kinds of layers.

use sweetspot_network::{Bound, Cost, Counts, Limit};
use sweetspot_session::GpuBounds;

use super::text::{NetworkRows, NetworkView};
use super::units::{Unit, Units};
use crate::table::Table;

/// The optional columns that the table has.
struct Columns {
    output: bool,
    parameters: bool,
    others: bool,
    ctc: bool,
}

impl Columns {
    /// Chooses the columns. A terminal has the least room if each layer has a row with time and energy.
    fn new(narrow: bool, by_layer: bool, with_gpu: bool) -> Self {
        let [output, parameters, others, ctc] = match (narrow, by_layer, with_gpu) {
            (false, ..) => [by_layer, true, true, true],
            (true, true, true) => [false, false, false, false],
            (true, true, false) => [true, true, false, true],
            (true, false, _) => [false, false, false, true],
        };
        Self {
            output,
            parameters,
            others,
            ctc,
        }
    }
}

/// The columns, units and network that all rows of a table share.
struct Layout<'a> {
    view: &'a NetworkView<'a>,
    columns: Columns,
    units: Units,
}

/// Makes the table; `narrow` omits columns that a terminal has no room for.
pub(super) fn network_table(view: &NetworkView<'_>, narrow: bool) -> Table {
    let by_layer = view.rows == NetworkRows::Layers;
    let layout = Layout {
        view,
        columns: Columns::new(narrow, by_layer, view.gpu.is_some()),
        units: Units::for_network(view.cost, view.gpu),
    };
    let headings = layout.headings(by_layer);
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = Table::new(&headings).with_text_columns(if by_layer { 2 } else { 1 });
    let rows = match by_layer {
        true => layout.layer_rows(),
        false => layout.kind_rows(),
    };
    rows.into_iter().for_each(|row| table.push(row));
    table.push(layout.total_row(by_layer));
    table
}

impl Layout<'_> {
    /// The headings of the table.
    fn headings(&self, by_layer: bool) -> Vec<String> {
        let (columns, units, gpu) = (&self.columns, &self.units, self.view.gpu);
        let named = |name: &str, unit: Unit| format!("{name}\n[{}]", unit.name);
        let headings = [
            by_layer.then(|| "Layer".to_owned()),
            Some("Kind".to_owned()),
            (!by_layer).then(|| "Layers".to_owned()),
            columns.output.then(|| "Output".to_owned()),
            columns.parameters.then(|| "Parameters\n[M]".to_owned()),
            Some(named("MACs", units.macs)),
            columns.others.then(|| named("Other", units.others)),
            Some(named("Read", units.bytes)),
            Some(named("Written", units.bytes)),
            columns.ctc.then(|| "CTC".to_owned()),
            gpu.map(|_| named("Time", units.time)),
            gpu.map(|_| named("Energy", units.energy)),
            gpu.map(|_| "Bound by".to_owned()),
        ];
        headings.into_iter().flatten().collect()
    }

    /// A row for each layer.
    fn layer_rows(&self) -> Vec<Vec<String>> {
        let layers = self.view.cost.layers.iter().enumerate();
        let rows = layers.map(|(index, layer)| {
            let mut row = vec![layer.layer.name.clone(), layer.layer.kind.name().to_owned()];
            if self.columns.output {
                let shape = layer.layer.outputs.first();
                row.push(shape.map(ToString::to_string).unwrap_or_default());
            }
            row.extend(self.counts(layer.layer.parameters, &layer.both_passes()));
            let bound = self.view.gpu.map(|gpu| self.bound(&gpu.layers[index]));
            row.extend(bound.into_iter().flatten());
            row
        });
        rows.collect()
    }

    /// A row for each kind of layer.
    fn kind_rows(&self) -> Vec<Vec<String>> {
        let cost = self.view.cost;
        let rows = cost.by_kind().into_iter().map(|kind| {
            let mut row = vec![kind.kind.to_owned(), kind.layers.to_string()];
            row.extend(self.counts(kind.parameters, &kind.counts));
            let gpu = self.view.gpu;
            let bound = gpu.map(|gpu| bound_of_kind(cost, gpu, kind.kind, &self.units));
            row.extend(bound.into_iter().flatten());
            row
        });
        rows.collect()
    }

    /// The row with the sums of all layers.
    fn total_row(&self, by_layer: bool) -> Vec<String> {
        let network = self.view.network;
        let mut total = vec!["total".to_owned()];
        match by_layer {
            true => total.resize(2 + usize::from(self.columns.output), String::new()),
            false => total.push(network.layers.len().to_string()),
        }
        total.extend(self.counts(network.parameters(), &self.view.cost.total()));
        let bound = self.view.gpu.map(|gpu| self.bound(&gpu.total));
        total.extend(bound.into_iter().flatten());
        total
    }

    /// The cells with parameters, operations and bytes.
    fn counts(&self, parameters: u64, counts: &Counts) -> impl Iterator<Item = String> {
        let (columns, units, cost) = (&self.columns, &self.units, self.view.cost);
        let row = [
            columns.parameters.then(|| millions(u128::from(parameters))),
            Some(units.macs.text(counts.operations.macs as f64)),
            columns
                .others
                .then(|| units.others.text(counts.operations.others() as f64)),
            Some(units.bytes.text(cost.read_bytes(counts) as f64)),
            Some(units.bytes.text(cost.written_bytes(counts) as f64)),
            columns.ctc.then(|| ctc(counts)),
        ];
        row.into_iter().flatten()
    }

    /// The cells with the shortest time, the least energy and the resource that limits the layer.
    fn bound(&self, bound: &Bound) -> [String; 3] {
        let by = match bound.limit {
            Limit::Compute => "compute",
            Limit::Memory => "memory",
        };
        [
            self.units.time.text(bound.time.get()),
            self.units.energy.text(bound.energy.get()),
            by.to_owned(),
        ]
    }
}

/// Formats a count in millions.
pub(super) fn millions(count: u128) -> String {
    format!("{:.3}", count as f64 / 1e6)
}

/// Formats the computation-to-communication ratio.
pub(super) fn ctc(counts: &Counts) -> String {
    let ctc = counts.ctc().map(|ctc| format!("{ctc:.1}"));
    ctc.unwrap_or_else(|| "-".to_owned())
}

/// The same cells for all layers of a kind together.
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
