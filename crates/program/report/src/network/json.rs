//! The document of a network's operations and bytes, `sweetspot.network/1`.

use sweetspot_device::Knob;
use sweetspot_document::common::SchemaName;
use sweetspot_document::network as document;
use sweetspot_network::{Bound, Cost, Counts, LayerCost, Limit, Network, Shape, Variant};
use sweetspot_session::{BestSetting, GpuBounds, GpuPrediction, StudyEfficiency};
use sweetspot_sim::Mode;

use super::prediction::{intervals, slowest_layers};
use super::text::NetworkView;
use crate::study::energy_of;

/// Makes the document of a network.
pub fn network_json(view: &NetworkView<'_>) -> document::Network {
    let (network, cost) = (view.network, view.cost);
    let inputs = network.inputs.iter().map(|(name, shape)| document::Input {
        name: name.clone(),
        shape: shape.sizes().to_vec(),
    });
    let variants = network.variants.iter();
    let unknown = network
        .unknown
        .iter()
        .map(|unknown| document::UnknownOperator {
            operator: unknown.operator.clone(),
            nodes: unknown.nodes,
            first: unknown.first.clone(),
            elements: unknown.elements,
        });
    let unknown_share = (!network.is_fully_counted()).then(|| document::UnknownShare {
        data: network.unknown_share_of_data(),
        nodes: network.unknown_share_of_nodes(),
    });
    document::Network {
        schema: SchemaName::NETWORK,
        network: network.name.clone(),
        title: network.title.clone(),
        source: network.source.clone(),
        convention: cost.convention.to_string(),
        precision: cost.precision.to_string(),
        mode: match is_trained(cost) {
            true => document::Mode::Train,
            false => document::Mode::Infer,
        },
        batch: cost.batch,
        inputs: inputs.collect(),
        totals: document::Totals {
            counts: counts(cost, &cost.total()),
            parameters: network.parameters(),
        },
        kinds: kinds(cost),
        layers: layers(view),
        notes: network.notes.clone(),
        variants: variants.map(|one| variant(view, one)).collect(),
        unknown_operators: unknown.collect(),
        without_shape: network.without_shape.clone(),
        unknown_share,
        bound: view.gpu.map(gpu_bound),
        prediction: view
            .prediction
            .and_then(|prediction| prediction.as_ref().ok())
            .map(|prediction| prediction_json(network, prediction)),
        study: view.study.map(study_efficiency),
    }
}

/// Whether the cost is that of training, with backward passes.
fn is_trained(cost: &Cost<'_>) -> bool {
    cost.layers.iter().any(|layer| layer.backward.is_some())
}

/// Makes the entry of a variant.
fn variant(view: &NetworkView<'_>, variant: &Variant) -> document::Variant {
    let (layers, of) = (&variant.layers, view.cost);
    let cost = Cost::of_layers(
        layers,
        view.network.batch,
        of.convention,
        of.precision,
        of.batch,
        is_trained(of),
    );
    document::Variant {
        about: variant.about.clone(),
        layers: layers.len(),
        totals: document::Totals {
            counts: counts(&cost, &cost.total()),
            parameters: layers.iter().map(|layer| layer.parameters).sum(),
        },
    }
}

/// Makes the entry of operations and bytes.
fn counts(cost: &Cost<'_>, counts: &Counts) -> document::Counts {
    let operations = &counts.operations;
    document::Counts {
        macs: operations.macs.into(),
        flops: cost.flops(operations).into(),
        operations: operations.all().into(),
        additions: operations.additions.into(),
        multiplications: operations.multiplications.into(),
        maxima: operations.maxima.into(),
        divisions: operations.divisions.into(),
        exponentials: operations.exponentials.into(),
        read_bytes: cost.read_bytes(counts).into(),
        written_bytes: cost.written_bytes(counts).into(),
        ctc: counts.ctc(),
    }
}

/// Sums the operations and bytes of the layers of each kind.
pub(super) fn kinds(cost: &Cost<'_>) -> Vec<document::LayerKind> {
    let kinds = cost.by_kind().into_iter().map(|kind| document::LayerKind {
        kind: kind.kind.to_owned(),
        layers: kind.layers,
        parameters: kind.parameters,
        counts: counts(cost, &kind.counts),
    });
    kinds.collect()
}

/// Describes each layer, with its lower bounds if the user named a GPU.
pub(super) fn layers(view: &NetworkView<'_>) -> Vec<document::Layer> {
    let layers = view.cost.layers.iter().enumerate();
    let layers = layers.map(|(index, layer)| {
        let bound = view.gpu.map(|gpu| &gpu.layers[index]);
        layer_json(view.cost, layer, bound)
    });
    layers.collect()
}

/// Makes the entry of one layer.
fn layer_json(cost: &Cost<'_>, layer: &LayerCost<'_>, bound: Option<&Bound>) -> document::Layer {
    let shapes = |shapes: &[Shape]| -> Vec<Vec<u64>> {
        shapes.iter().map(|shape| shape.sizes().to_vec()).collect()
    };
    document::Layer {
        name: layer.layer.name.clone(),
        kind: layer.layer.kind.name().to_owned(),
        inputs: shapes(&layer.layer.inputs),
        outputs: shapes(&layer.layer.outputs),
        parameters: layer.layer.parameters,
        counts: counts(cost, &layer.both_passes()),
        backward: layer
            .backward
            .as_ref()
            .map(|backward| counts(cost, backward)),
        bound: bound.map(bound_json),
    }
}

/// Makes the entry of a lower bound.
fn bound_json(bound: &Bound) -> document::Bound {
    document::Bound {
        time_s: bound.time.get(),
        energy_j: bound.energy.get(),
        by: match bound.limit {
            Limit::Compute => document::Limit::Compute,
            Limit::Memory => document::Limit::Memory,
        },
    }
}

/// Makes the entry of the lower bounds on a GPU.
fn gpu_bound(gpu: &GpuBounds) -> document::GpuBound {
    let in_memory = gpu
        .layers
        .iter()
        .filter(|bound| bound.limit == Limit::Memory);
    document::GpuBound {
        gpu: gpu.name.clone(),
        product: gpu.product.clone(),
        peak_flops_per_s: gpu.ceilings.matrix.get(),
        bandwidth_bytes_per_s: gpu.ceilings.bandwidth.get(),
        total: bound_json(&gpu.total),
        memory_bound_layers: in_memory.count(),
    }
}

/// Makes the entry of a prediction.
fn prediction_json(network: &Network, on_gpu: &GpuPrediction) -> document::Prediction {
    let prediction = &on_gpu.prediction;
    let intervals = intervals(on_gpu);
    let slowest = slowest_layers(network, on_gpu);
    document::Prediction {
        gpu: on_gpu.gpu.clone(),
        batch: prediction.batch,
        mode: match prediction.mode {
            Mode::Train => document::Mode::Train,
            Mode::Infer => document::Mode::Infer,
        },
        is_measured: !on_gpu.is_transferred,
        items_per_s: prediction.items_per_s(),
        power_w: prediction.at_default.power.get(),
        energy_per_item_j: prediction.energy_per_item().get(),
        memory_bytes: prediction.memory.get(),
        largest_batch: on_gpu.largest_batch,
        interval95: document::PredictionIntervals {
            items_per_s: intervals.items_per_s,
            power_w: intervals.power,
            energy_per_item_j: intervals.energy_per_item,
            memory_bytes: intervals.memory,
        },
        best: on_gpu.best.iter().map(best_setting).collect(),
        slowest_layers: slowest
            .map(|(name, time, share)| document::SlowLayer {
                name: name.to_owned(),
                time_s: time.get(),
                share: share.get(),
            })
            .collect(),
    }
}

/// Makes the entry of the best value of a setting.
fn best_setting(best: &BestSetting) -> document::BestSetting {
    document::BestSetting {
        setting: match best.knob {
            Knob::PowerCap => document::PredictedSetting::PowerCapW,
            _ => document::PredictedSetting::CoreClockMhz,
        },
        value: best.value,
        interval95: best.interval,
        energy_change: best.energy_change.get(),
        time_change: best.time_change.get(),
    }
}

/// Makes the entry of the efficiency that a study measured.
fn study_efficiency(study: &StudyEfficiency) -> document::StudyEfficiency {
    let points = study.rows.iter().map(|row| {
        let settings = study.axes.iter().filter_map(|axis| {
            let number = axis.number(&row.configuration)?;
            Some((axis.name().replace('-', "_"), number))
        });
        document::PointEfficiency {
            settings: settings.collect(),
            gpus: row.configuration.gpus,
            energy_per_item_j: row.energy_per_item.get(),
            time_per_item_s: row.time_per_item.get(),
            gflops_per_watt: row.efficiency.gflops_per_watt,
            flops_per_s: row.efficiency.speed.get(),
            share_of_peak: row.efficiency.share_of_peak.map(|share| share.get()),
            share_of_sgemm: row.efficiency.share_of_sgemm.map(|share| share.get()),
        }
    });
    document::StudyEfficiency {
        study: study.study.clone(),
        energy_of: energy_of(study.energy_of),
        flops_per_item: study.flops_per_item,
        gpu: study.gpu.clone(),
        points: points.collect(),
    }
}
