//! The operations and data of a network for a batch size and a precision, in training or inference.

use crate::{Convention, Counts, Layer, Network, Operations, Precision, count};

/// The operations and data of one layer for a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerCost<'a> {
    /// The layer that is counted.
    pub layer: &'a Layer,
    /// The operations and data of the forward pass.
    pub forward: Counts,
    /// The operations and data of the backward pass; `None` in inference.
    pub backward: Option<Counts>,
}

impl LayerCost<'_> {
    /// The sum of the forward and the backward pass.
    pub fn both_passes(&self) -> Counts {
        let mut counts = self.forward;
        counts += self.backward.unwrap_or_default();
        counts
    }
}

/// The operations and data of all layers of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct KindCost {
    /// The name of the kind, such as `convolution`.
    pub kind: &'static str,
    /// The number of layers of this kind.
    pub layers: u64,
    /// The number of weights of these layers.
    pub parameters: u64,
    /// The operations and data of these layers, both passes together.
    pub counts: Counts,
}

/// The operations and data of a network for a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost<'a> {
    /// The rules by which operations and data are counted.
    pub convention: Convention,
    /// The number format of tensor elements.
    pub precision: Precision,
    /// The number of items in a batch.
    pub batch: u64,
    /// The cost of each layer, in execution order.
    pub layers: Vec<LayerCost<'a>>,
}

impl<'a> Cost<'a> {
    /// Counts every layer of a network for a batch. Operations, data read (weights included) and data written
    /// are proportional to the batch size (equations 10 to 12).
    pub fn of(
        network: &'a Network,
        convention: Convention,
        precision: Precision,
        batch: u64,
        train: bool,
    ) -> Self {
        Self::of_layers(
            &network.layers,
            network.batch,
            convention,
            precision,
            batch,
            train,
        )
    }

    /// Counts layers whose shapes are for `own_batch` items, and scales the counts to `batch` items.
    pub fn of_layers(
        layers: &'a [Layer],
        own_batch: u64,
        convention: Convention,
        precision: Precision,
        batch: u64,
        train: bool,
    ) -> Self {
        let layers = layers.iter().map(|layer| {
            let forward = scaled(count(layer, convention), batch, own_batch);
            let backward = train.then(|| backward(layer, forward));
            LayerCost {
                layer,
                forward,
                backward,
            }
        });
        Self {
            convention,
            precision,
            batch,
            layers: layers.collect(),
        }
    }

    /// The sum over all layers and both passes.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for layer in &self.layers {
            total += layer.both_passes();
        }
        total
    }

    /// The sum of the forward passes of all layers.
    pub fn forward(&self) -> Counts {
        let mut total = Counts::default();
        for layer in &self.layers {
            total += layer.forward;
        }
        total
    }

    /// The cost by kind of layer, sorted by operations, then by name.
    pub fn by_kind(&self) -> Vec<KindCost> {
        let mut kinds: Vec<KindCost> = Vec::new();
        for cost in &self.layers {
            let kind = cost.layer.kind.name();
            let index = kinds.iter().position(|known| known.kind == kind);
            let index = index.unwrap_or_else(|| {
                kinds.push(KindCost {
                    kind,
                    layers: 0,
                    parameters: 0,
                    counts: Counts::default(),
                });
                kinds.len() - 1
            });
            kinds[index].layers += 1;
            kinds[index].parameters += cost.layer.parameters;
            kinds[index].counts += cost.both_passes();
        }
        kinds.sort_by_key(|kind| (std::cmp::Reverse(kind.counts.operations.all()), kind.kind));
        kinds
    }

    /// The number of floating-point operations: twice the multiply-accumulates, or, under the paper's rules,
    /// twice all operations, as in its table 11.
    pub fn flops(&self, operations: &Operations) -> u128 {
        2 * match self.convention.follows_paper() {
            true => operations.all(),
            false => operations.macs,
        }
    }

    /// The number of bytes that `counts` reads. As in equation 11, the weights count once for every item of the batch.
    pub fn read_bytes(&self, counts: &Counts) -> u128 {
        (counts.read + counts.weights) * u128::from(self.precision.bytes())
    }

    /// The number of bytes that `counts` writes.
    pub fn written_bytes(&self, counts: &Counts) -> u128 {
        (counts.written + counts.gradients) * u128::from(self.precision.bytes())
    }

    /// The bytes that must be transferred between chip and memory; weights and their gradients count once per
    /// batch.
    pub fn moved_bytes(&self, counts: &Counts) -> u128 {
        let weights = (counts.weights + counts.gradients) / u128::from(self.batch.max(1));
        (counts.read + weights + counts.written) * u128::from(self.precision.bytes())
    }
}

impl Counts {
    /// The computation-to-communication ratio: operations per element read. A multiply-accumulate is one
    /// operation.
    pub fn ctc(&self) -> Option<f64> {
        let read = self.read + self.weights;
        (read > 0).then(|| self.operations.all() as f64 / read as f64)
    }
}

/// Converts counts for `own_batch` items to counts for `batch` items.
fn scaled(counts: Counts, batch: u64, own_batch: u64) -> Counts {
    let (batch, own) = (u128::from(batch), u128::from(own_batch.max(1)));
    let scale = |value: u128| value * batch / own;
    let operations = counts.operations;
    Counts {
        operations: Operations {
            macs: scale(operations.macs),
            additions: scale(operations.additions),
            multiplications: scale(operations.multiplications),
            maxima: scale(operations.maxima),
            divisions: scale(operations.divisions),
            exponentials: scale(operations.exponentials),
        },
        read: scale(counts.read),
        weights: counts.weights * batch,
        written: scale(counts.written),
        gradients: counts.gradients * batch,
    }
}

/// Estimates the backward pass: a matrix product needs two more of the same size, for the gradients of inputs
/// and of weights; everything else costs the same again. The inputs are read again together with the gradient
/// of the outputs; the gradients of inputs and weights are written.
fn backward(layer: &Layer, forward: Counts) -> Counts {
    let twice = layer.kind.multiplies_matrices();
    Counts {
        operations: forward.operations.times(if twice { 2 } else { 1 }),
        read: forward.read + forward.written,
        weights: forward.weights,
        written: forward.read,
        gradients: forward.weights,
    }
}
