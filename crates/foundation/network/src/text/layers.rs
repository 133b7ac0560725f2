//! The operations of the description language as layers.

use super::arguments::{Arguments, sizes};
use super::transformer::transformer_layer;
use crate::{Activation, Arithmetic, Convolution, Kind, PoolKind, Shape, Window};

/// A parsed operation.
pub struct ParsedLayer {
    /// The kind of layer; `None` if the operation only looks at its data in another shape.
    pub kind: Option<Kind>,
    pub output: Shape,
    /// The number of weights that are trained.
    pub parameters: u64,
    /// The number of weights and other constants that are read.
    pub weights: u64,
}

impl ParsedLayer {
    /// A layer that reads all of its trained weights once, and nothing else.
    pub fn new(kind: Kind, output: Shape, parameters: u64) -> Self {
        Self {
            kind: Some(kind),
            output,
            parameters,
            weights: parameters,
        }
    }

    /// A result that is the same data in another shape, without cost.
    pub fn view(sizes: Vec<u64>) -> Result<Self, String> {
        Ok(Self {
            kind: None,
            output: Shape::new(sizes)?,
            parameters: 0,
            weights: 0,
        })
    }
}

/// The names of the operations with one input.
pub const OPERATIONS: [&str; 32] = [
    "conv",
    "depthwise",
    "fc",
    "maxpool",
    "avgpool",
    "globalpool",
    "relu",
    "relu6",
    "leakyrelu",
    "sigmoid",
    "tanh",
    "gelu",
    "silu",
    "hardswish",
    "dropout",
    "bn",
    "lrn",
    "layernorm",
    "softmax",
    "flatten",
    "attention",
    "embedding",
    "linear",
    "tokens",
    "token",
    "pick",
    "positions",
    "segments",
    "separate",
    "scale",
    "shift",
    "power",
];

/// Parses one operation and infers its output for an input of this shape.
pub fn layer(words: &[String], input: &Shape) -> Result<ParsedLayer, String> {
    let mut arguments = Arguments::new(words);
    let word = words.first().map_or("", String::as_str);
    let parsed = parse_operation(word, &mut arguments, input)?;
    arguments.finish()?;
    Ok(parsed)
}

/// Parses the operation `word` with its arguments.
fn parse_operation(
    word: &str,
    arguments: &mut Arguments<'_>,
    input: &Shape,
) -> Result<ParsedLayer, String> {
    if let Some(parsed) = transformer_layer(word, arguments, input) {
        return parsed;
    }
    let same = |kind, parameters| Ok(ParsedLayer::new(kind, input.clone(), parameters));
    match word {
        "conv" => {
            let channels = arguments.number("the number of filters")?;
            convolution(arguments, input, channels, None)
        }
        "depthwise" => convolution(arguments, input, input.channels(), Some(input.channels())),
        "fc" => {
            let inputs = input.elements() / input.sizes().first().copied().unwrap_or(1).max(1);
            fully_connected(arguments, inputs, &input.sizes()[..1.min(input.rank())])
        }
        "linear" => {
            let (last, rest) = input.sizes().split_last().ok_or("its input has no axes")?;
            fully_connected(arguments, *last, rest)
        }
        "maxpool" => pool(arguments, input, PoolKind::Max),
        "avgpool" => pool(arguments, input, PoolKind::Average),
        "globalpool" => global_pool(input),
        "relu" | "relu6" | "leakyrelu" | "hardswish" => {
            same(Kind::Activation(Activation::Threshold), 0)
        }
        "sigmoid" | "tanh" | "gelu" | "silu" => same(Kind::Activation(Activation::Exponential), 0),
        "dropout" => same(Kind::Dropout, 0),
        "bn" => {
            let parameters = 2 * input.channels();
            let layer = ParsedLayer::new(Kind::BatchNormalisation, input.clone(), parameters);
            // Running means and variances are read too, but not trained.
            Ok(ParsedLayer {
                weights: 2 * parameters,
                ..layer
            })
        }
        "lrn" => {
            let size = arguments.number("the number of channels")?;
            same(Kind::LocalResponseNormalisation { size }, 0)
        }
        "layernorm" => {
            let last = input.sizes().last().copied().unwrap_or(1);
            same(Kind::LayerNormalisation, 2 * last)
        }
        "softmax" => same(Kind::Softmax, 0),
        "scale" => same(Kind::ElementWise(Arithmetic::Multiply), 0),
        "shift" => same(Kind::ElementWise(Arithmetic::Add), 0),
        "power" => same(Kind::ElementWise(Arithmetic::Divide), 0),
        "flatten" => {
            let batch = input.sizes().first().copied().unwrap_or(1);
            ParsedLayer::view(vec![batch, input.elements() / batch.max(1)])
        }
        _ => Err(format!(
            "unknown layer `{word}`: it is not defined in this file; layers are {}",
            OPERATIONS.join(", ")
        )),
    }
}

/// Averages every channel over its spatial dimensions.
fn global_pool(input: &Shape) -> Result<ParsedLayer, String> {
    let window = Window::plain(input.space().to_vec());
    let mut sizes = input.sizes().to_vec();
    sizes.iter_mut().skip(2).for_each(|size| *size = 1);
    let kind = PoolKind::Average;
    Ok(ParsedLayer::new(
        Kind::Pool { kind, window },
        Shape::new(sizes)?,
        0,
    ))
}

/// Parses the kernel, stride, padding and dilation of a sliding window.
fn window(arguments: &mut Arguments<'_>, input: &Shape) -> Result<Window, String> {
    let space = input.space();
    let axes = space.len();
    let mut window = Window::plain(sizes(arguments.next("a kernel, as in 3x3")?, axes)?);
    if let Some(stride) = arguments.option("stride") {
        window.stride = sizes(stride, axes)?;
    }
    if let Some(dilation) = arguments.option("dilation") {
        window.dilation = sizes(dilation, axes)?;
    }
    window.ceil = arguments.flag("ceil");
    match arguments.option("pad") {
        Some("same") => window.pad_same(space, false),
        Some(padding) => {
            let padding = sizes(padding, axes)?;
            window.padding = padding.into_iter().map(|size| (size, size)).collect();
        }
        None => {}
    }
    Ok(window)
}

/// Parses a convolution with this number of output channels.
fn convolution(
    arguments: &mut Arguments<'_>,
    input: &Shape,
    channels: u64,
    groups: Option<u64>,
) -> Result<ParsedLayer, String> {
    let window = window(arguments, input)?;
    let groups = match groups {
        Some(groups) => groups,
        None => arguments.number_option("groups", 1)?,
    };
    let bias = arguments.flag("bias");
    if groups == 0 || !input.channels().is_multiple_of(groups) || !channels.is_multiple_of(groups) {
        return Err(format!(
            "{} input and {channels} output channels cannot be divided into {groups} groups",
            input.channels()
        ));
    }
    let mut weights = vec![channels, input.channels() / groups];
    weights.extend(&window.kernel);
    let weights = Shape::new(weights)?.elements();
    let batch = input.sizes().first().copied().unwrap_or(1);
    let mut output = vec![batch, channels];
    output.extend(window.output(input.space())?);
    let kind = Kind::Convolution(Convolution {
        window,
        channels,
        groups,
        bias,
        transposed: false,
    });
    let parameters = weights + if bias { channels } else { 0 };
    Ok(ParsedLayer::new(kind, Shape::new(output)?, parameters))
}

/// Parses a fully connected layer; `outer` has the sizes of the axes before the last one. A tied one shares its weights
/// with an earlier layer, to which they belong.
fn fully_connected(
    arguments: &mut Arguments<'_>,
    inputs: u64,
    outer: &[u64],
) -> Result<ParsedLayer, String> {
    let outputs = arguments.number("the number of outputs")?;
    let bias = arguments.flag("bias");
    let is_tied = arguments.flag("tied");
    let weights = Shape::new(vec![inputs, outputs])?.elements();
    let mut sizes = outer.to_vec();
    sizes.push(outputs);
    let kind = Kind::FullyConnected {
        inputs,
        outputs,
        bias,
    };
    let own_bias = if bias { outputs } else { 0 };
    let layer = ParsedLayer::new(kind, Shape::new(sizes)?, weights + own_bias);
    Ok(match is_tied {
        true => ParsedLayer {
            parameters: own_bias,
            ..layer
        },
        false => layer,
    })
}

/// Parses a pooling layer.
fn pool(
    arguments: &mut Arguments<'_>,
    input: &Shape,
    kind: PoolKind,
) -> Result<ParsedLayer, String> {
    let window = window(arguments, input)?;
    let mut sizes = input.sizes()[..2.min(input.rank())].to_vec();
    sizes.extend(window.output(input.space())?);
    Ok(ParsedLayer::new(
        Kind::Pool { kind, window },
        Shape::new(sizes)?,
        0,
    ))
}

/// Combines several tensors into one: `concat`, `add` or `multiply`.
pub fn join(word: &str, inputs: &[Shape]) -> Result<(Kind, Shape), String> {
    let first = inputs.first().ok_or("there are no inputs to join")?;
    match word {
        "concat" => {
            let mut sizes = first.sizes().to_vec();
            let alike = |shape: &Shape| {
                shape.rank() == first.rank()
                    && shape.space() == first.space()
                    && shape.sizes().first() == first.sizes().first()
            };
            if let Some(other) = inputs.iter().find(|shape| !alike(shape)) {
                return Err(format!("cannot concatenate {first} and {other}"));
            }
            if let Some(channels) = sizes.get_mut(1) {
                *channels = inputs.iter().map(Shape::channels).sum();
            }
            Ok((Kind::Concat, Shape::new(sizes)?))
        }
        _ => {
            if let Some(other) = inputs.iter().find(|shape| *shape != first) {
                return Err(format!(
                    "{first} and {other} differ, and cannot be combined"
                ));
            }
            let arithmetic = match word {
                "add" => Arithmetic::Add,
                _ => Arithmetic::Multiply,
            };
            Ok((Kind::ElementWise(arithmetic), first.clone()))
        }
    }
}
