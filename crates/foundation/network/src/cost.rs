//! The cost of a network in a batch, a precision and a mode.

use crate::{Convention, Counts, Layer, Network, Operations, Precision, count};

/// What one layer costs in a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerCost<'a> {
    /// The layer.
    pub layer: &'a Layer,
    /// Its forward pass.
    pub forward: Counts,
    /// Its backward pass, where the network is trained.
    pub backward: Option<Counts>,
}

impl LayerCost<'_> {
    /// Both passes.
    pub fn both(&self) -> Counts {
        let mut counts = self.forward;
        counts += self.backward.unwrap_or_default();
        counts
    }
}

/// Layers of one kind together.
#[derive(Clone, Debug, PartialEq)]
pub struct KindCost {
    /// The kind's word.
    pub kind: &'static str,
    /// How many.
    pub layers: u64,
    /// Their weights.
    pub parameters: u64,
    /// Their cost.
    pub counts: Counts,
}

/// What a network costs in a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost<'a> {
    /// Whose rules.
    pub convention: Convention,
    /// What an element is stored as.
    pub precision: Precision,
    /// Items.
    pub batch: u64,
    /// The layers, in the network's order.
    pub layers: Vec<LayerCost<'a>>,
}

impl<'a> Cost<'a> {
    /// Every layer counted and scaled to the batch by equations 10 to 12: operations, data read (weights
    /// too) and data written grow with it.
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

    /// The same for layers whose shapes have `own_batch` items.
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

    /// All layers, both passes.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for layer in &self.layers {
            total += layer.both();
        }
        total
    }

    /// All forward passes.
    pub fn forward(&self) -> Counts {
        let mut total = Counts::default();
        for layer in &self.layers {
            total += layer.forward;
        }
        total
    }

    /// Layers of each kind together, the one with the most multiply-accumulates first, then by name.
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
            kinds[index].counts += cost.both();
        }
        kinds.sort_by_key(|kind| (std::cmp::Reverse(kind.counts.operations.all()), kind.kind));
        kinds
    }

    /// Floating-point operations: twice the multiply-accumulates, or, as table 11 of the paper has it,
    /// twice all operations.
    pub fn flops(&self, operations: &Operations) -> u128 {
        2 * match self.convention.is_of_the_paper() {
            true => operations.all(),
            false => operations.macs,
        }
    }

    /// Bytes read: equation 11 counts the weights for every item.
    pub fn read_bytes(&self, counts: &Counts) -> u128 {
        (counts.read + counts.weights) * u128::from(self.precision.bytes())
    }

    /// Bytes written.
    pub fn written_bytes(&self, counts: &Counts) -> u128 {
        (counts.written + counts.gradients) * u128::from(self.precision.bytes())
    }

    /// Bytes that must pass between chip and memory, weights and their gradients once for the whole batch.
    pub fn moved_bytes(&self, counts: &Counts) -> u128 {
        let weights = (counts.weights + counts.gradients) / u128::from(self.batch.max(1));
        (counts.read + weights + counts.written) * u128::from(self.precision.bytes())
    }
}

impl Counts {
    /// Computation to communication: operations, a multiply-accumulate counted once, for each element read.
    pub fn ctc(&self) -> Option<f64> {
        let read = self.read + self.weights;
        (read > 0).then(|| self.operations.all() as f64 / read as f64)
    }
}

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

/// By rule: products of matrices need two more of the same size, for the gradients of inputs and of weights;
/// everything else is as much again. What was read is read again with the gradient of what was written; what
/// is written are gradients of inputs and weights.
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
