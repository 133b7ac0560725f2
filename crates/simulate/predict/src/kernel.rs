//! The kernels that a GPU starts for a network: what each computes, and what it reads and writes.

mod fusion;

use sweetspot_network::{Activation, Convolution, Kind, Layer, Network, Shape};

use fusion::{adds_a_bias, fused_attention, layers_of_gelu, multiplies_by};

/// A kernel: one layer, or several that are executed together. Its rows and elements are those of one item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    /// The index of the layer that the kernel executes; of several, that of the first.
    pub layer: usize,
    /// What it computes.
    pub work: Work,
    /// The number of elements that it reads and writes, without weights.
    pub elements: f64,
    /// The number of weights that it reads.
    pub weights: f64,
}

/// What a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// A product of a matrix, with rows for each item, and weights; a convolution is one too.
    Product(Product),
    /// A convolution in groups of channels, each a small product.
    Grouped {
        /// The product of one group.
        product: Product,
        /// The number of groups.
        groups: f64,
    },
    /// A convolution of each channel alone, with this many multiplications for each output.
    Depthwise {
        /// The number of outputs.
        outputs: f64,
        /// The number of multiplications for each output.
        taps: f64,
    },
    /// Attention in one kernel, with this many operations.
    Attention {
        /// The number of floating-point operations.
        operations: f64,
    },
    /// Many small products of two matrices that both depend on the input.
    Batched {
        /// One product.
        product: Product,
        /// The number of products for each item.
        count: f64,
    },
    /// A function of single elements, or a copy.
    Elements,
    /// A batch normalisation, which is as fast as a function of single elements.
    BatchNormalisation,
    /// A maximum or mean over a sliding window.
    Pooling,
    /// A normalisation over an item, or a softmax.
    Normalisation,
}

/// The dimensions of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    /// The number of rows: positions of an image or a sequence.
    pub rows: f64,
    /// The number of columns: output channels.
    pub columns: f64,
    /// The number of elements that are summed up for each result.
    pub inner: f64,
    /// The number of input channels of a convolution, without its window; `None` for other products.
    pub channels: Option<f64>,
    /// The size of the convolution's window, 9 for 3 x 3; 1 for other products.
    pub window: f64,
}

impl Product {
    /// The number of floating-point operations; a multiplication and an addition are two.
    pub fn operations(&self) -> f64 {
        2.0 * self.rows * self.columns * self.inner
    }
}

/// Input channels are processed in groups of this many; a last group that is not full takes as long.
const CHANNEL_ALIGNMENT: f64 = 8.0;
/// A pooling that leaves less than one of this many elements is a mean over the whole image, which is as fast as a copy.
const SMALLEST_REDUCTION: u64 = 16;
/// A copy of a tensor with fewer axes than this only changes how the data is looked at.
const COPIED_AXES: usize = 5;

/// The kernels of a network, in the order of execution. Layers that are executed together in PyTorch are one kernel; a
/// batch normalisation that an ONNX file has folded into the convolution before it is a kernel of its own.
pub fn kernels(network: &Network) -> Vec<Kernel> {
    let items = network.batch.max(1) as f64;
    let mut kernels = Vec::new();
    let mut index = 0;
    while let Some(layer) = network.layers.get(index) {
        let whole = Kernel {
            layer: index,
            work: Work::Elements,
            elements: (layer.input_elements() + layer.output_elements()) as f64 / items,
            weights: layer.weights as f64,
        };
        index += add_kernels(&mut kernels, &network.layers, whole, items);
    }
    kernels
}

/// Adds the kernels of a layer, and of those after it that are executed together with it, and returns the number of these
/// layers. `whole` is a kernel that reads and writes what the layer does.
fn add_kernels(kernels: &mut Vec<Kernel>, layers: &[Layer], whole: Kernel, items: f64) -> usize {
    let layer = &layers[whole.layer];
    let rest = &layers[whole.layer + 1..];
    let one = |work: Work| Kernel { work, ..whole };
    match &layer.kind {
        Kind::Convolution(convolution) => {
            kernels.push(one(convolution_work(layer, convolution, items)));
            if layer.has_folded_normalisation {
                kernels.push(Kernel {
                    elements: 2.0 * layer.output_elements() as f64 / items,
                    weights: 0.0,
                    ..one(Work::BatchNormalisation)
                });
            }
            1
        }
        Kind::FullyConnected {
            inputs, outputs, ..
        } => {
            kernels.push(one(Work::Product(Product {
                rows: layer.output_elements() as f64 / items / (*outputs).max(1) as f64,
                columns: *outputs as f64,
                inner: *inputs as f64,
                channels: None,
                window: 1.0,
            })));
            1 + usize::from(rest.first().is_some_and(|next| adds_a_bias(next, *outputs)))
        }
        Kind::MatrixProduct { inner } => match fused_attention(layers, whole.layer) {
            Some(attention) => {
                // The scaling of queries and keys is a part of it.
                kernels.truncate(kernels.len().saturating_sub(2));
                kernels.push(Kernel {
                    elements: attention.elements / items,
                    ..one(Work::Attention {
                        operations: attention.operations / items,
                    })
                });
                attention.layers
            }
            None => {
                kernels.push(one(batched_product(layer, *inner, items)));
                1
            }
        },
        Kind::Activation(Activation::Exponential) => {
            kernels.push(whole);
            // x times sigmoid(x) is one function.
            1 + usize::from(rest.first().is_some_and(|next| multiplies_by(next, layer)))
        }
        Kind::ElementWise(_) => {
            kernels.push(whole);
            1 + layers_of_gelu(layer, rest)
        }
        _ => {
            kernels.extend(kernel_of_one(layer, whole, items));
            1
        }
    }
}

/// The kernel of a layer that is executed alone; `None` if it starts none.
fn kernel_of_one(layer: &Layer, whole: Kernel, items: f64) -> Option<Kernel> {
    let (inputs, outputs) = (layer.input_elements(), layer.output_elements());
    let work = match &layer.kind {
        Kind::Attention { .. } => {
            let counts = sweetspot_network::count(layer, sweetspot_network::Convention::Usual);
            Work::Attention {
                operations: 2.0 * counts.operations.macs as f64 / items,
            }
        }
        Kind::Pool { .. } | Kind::Reduction(_) if outputs * SMALLEST_REDUCTION > inputs => {
            Work::Pooling
        }
        Kind::LayerNormalisation | Kind::Softmax | Kind::LocalResponseNormalisation { .. } => {
            Work::Normalisation
        }
        Kind::BatchNormalisation => Work::BatchNormalisation,
        Kind::Move if !is_copied(layer) => return None,
        // Dropout does nothing in inference.
        Kind::Dropout => return None,
        _ => Work::Elements,
    };
    let elements = match &layer.kind {
        Kind::Concat => 2.0 * outputs as f64 / items,
        // Of the table, one row is read for each result.
        Kind::Embedding => (inputs + 2 * outputs) as f64 / items,
        _ => whole.elements,
    };
    let weights = match &layer.kind {
        Kind::Embedding => 0.0,
        _ => whole.weights,
    };
    Some(Kernel {
        work,
        elements,
        weights,
        ..whole
    })
}

/// What a convolution computes.
fn convolution_work(layer: &Layer, convolution: &Convolution, items: f64) -> Work {
    let channels_in = layer.inputs.first().map_or(1, Shape::channels).max(1);
    let groups = convolution.groups.max(1);
    let window = convolution.window.volume() as f64;
    let outputs = layer.output_elements() as f64 / items;
    if groups > 1 && groups == channels_in {
        return Work::Depthwise {
            outputs,
            taps: window,
        };
    }
    let channels = channels_in as f64 / groups as f64;
    let columns = convolution.channels as f64 / groups as f64;
    let product = Product {
        rows: outputs / convolution.channels.max(1) as f64,
        columns,
        inner: window * (channels / CHANNEL_ALIGNMENT).ceil() * CHANNEL_ALIGNMENT,
        channels: Some(channels),
        window,
    };
    match groups {
        1 => Work::Product(product),
        groups => Work::Grouped {
            product,
            groups: groups as f64,
        },
    }
}

/// A product of two matrices for each of the leading axes.
fn batched_product(layer: &Layer, inner: u64, items: f64) -> Work {
    let sizes = layer.outputs.first().map_or(&[][..], Shape::sizes);
    let (rows, columns) = match sizes {
        [.., rows, columns] => (*rows as f64, *columns as f64),
        _ => (1.0, layer.output_elements() as f64),
    };
    Work::Batched {
        product: Product {
            rows,
            columns,
            inner: inner as f64,
            channels: None,
            window: 1.0,
        },
        count: layer.output_elements() as f64 / (rows * columns).max(1.0) / items,
    }
}

/// Whether a data movement copies: tensors with many axes are put into another order.
fn is_copied(layer: &Layer) -> bool {
    layer.input_elements() == layer.output_elements()
        && layer
            .outputs
            .first()
            .is_some_and(|shape| shape.rank() >= COPIED_AXES)
}

#[cfg(test)]
mod tests {
    use sweetspot_network::parse;

    use super::*;

    fn works(text: &str) -> Vec<Work> {
        let network = parse("test", text).unwrap();
        let kernels = kernels(&network);
        kernels.into_iter().map(|kernel| kernel.work).collect()
    }

    #[test]
    fn convolutions_are_products_of_matrices() {
        let works = works("input 3x224x224\nconv 64 7x7 stride=2 pad=3\nbn\nrelu\n");
        assert_eq!(
            works,
            [
                Work::Product(Product {
                    rows: 112.0 * 112.0,
                    columns: 64.0,
                    // Three input channels take as long as eight.
                    inner: 49.0 * 8.0,
                    channels: Some(3.0),
                    window: 49.0
                }),
                Work::BatchNormalisation,
                Work::Elements
            ]
        );
    }

    #[test]
    fn a_mean_over_the_image_is_no_sliding_window() {
        let works = works("input 64x56x56\nmaxpool 3x3 stride=2 pad=1\nglobalpool\nfc 10\n");
        assert_eq!(works[0], Work::Pooling);
        assert_eq!(works[1], Work::Elements);
        assert!(matches!(works[2], Work::Product(product) if product.rows == 1.0));
    }
}
