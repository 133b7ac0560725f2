//! Convolutions, pools and normalisations.

use super::{Call, NodeResult, format_numbers};
use crate::onnx::value::Value;
use crate::{Convolution, Kind, PoolKind, Shape, Window};

/// Infers the result of a convolution, pool or normalisation.
pub fn infer(call: &Call<'_>) -> Result<NodeResult, String> {
    let known = matches!(
        call.node.operator.as_str(),
        "Conv"
            | "ConvTranspose"
            | "MaxPool"
            | "AveragePool"
            | "LpPool"
            | "GlobalAveragePool"
            | "GlobalMaxPool"
            | "BatchNormalization"
            | "LRN"
            | "LayerNormalization"
            | "SimplifiedLayerNormalization"
            | "RMSNormalization"
            | "InstanceNormalization"
            | "GroupNormalization"
            | "LpNormalization"
            | "MeanVarianceNormalization"
    );
    if !known {
        return Ok(NodeResult::Unknown);
    }
    let Some(input) = call.shape(0) else {
        return Ok(NodeResult::UnknownShape);
    };
    let normalised = |kind, weights, statistics| {
        Ok(NodeResult::Known {
            kind: Some(kind),
            outputs: vec![Value::with_shape(input.clone())],
            weights,
            statistics,
        })
    };
    match call.node.operator.as_str() {
        "Conv" => convolution(call, input),
        "ConvTranspose" => transposed(call, input),
        "MaxPool" => pool(call, input, PoolKind::Max),
        "AveragePool" | "LpPool" => pool(call, input, PoolKind::Average),
        "GlobalAveragePool" => global(input, PoolKind::Average),
        "GlobalMaxPool" => global(input, PoolKind::Max),
        "BatchNormalization" => normalised(Kind::BatchNormalisation, &[1, 2, 3, 4], &[3, 4]),
        "LRN" => {
            let size = u64::try_from(call.int("size", 1)).unwrap_or(1);
            let kind = Kind::LocalResponseNormalisation {
                size: size.min(1 << 20),
            };
            normalised(kind, &[], &[])
        }
        _ => normalised(Kind::LayerNormalisation, &[1, 2], &[]),
    }
}

/// Converts an attribute to one size for each axis; all are 1 if the node does not have it.
fn sizes(list: Option<&[i64]>, axes: usize) -> Result<Vec<u64>, String> {
    let Some(list) = list else {
        return Ok(vec![1; axes]);
    };
    let sizes = list.iter().map(|size| u64::try_from(*size).ok());
    let sizes: Option<Vec<u64>> = sizes.collect();
    let sizes = sizes.filter(|sizes| sizes.len() == axes);
    sizes.ok_or_else(|| format!("{} are not sizes for {axes} axes", format_numbers(list)))
}

/// The sliding window that the node's attributes describe, for an input of these spatial sizes.
fn window(call: &Call<'_>, kernel: Vec<u64>, space: &[u64]) -> Result<Window, String> {
    let axes = kernel.len();
    if axes != space.len() {
        return Err(format!(
            "a kernel of {axes} axes cannot slide over an input of {}",
            space.len()
        ));
    }
    let mut window = Window::plain(kernel);
    window.stride = sizes(call.ints("strides"), axes)?;
    window.dilation = sizes(call.ints("dilations"), axes)?;
    window.ceil = call.int("ceil_mode", 0) != 0;
    match call.text("auto_pad") {
        b"SAME_UPPER" => window.pad_same(space, false),
        b"SAME_LOWER" => window.pad_same(space, true),
        _ => {
            if let Some(pads) = call.ints("pads") {
                let pads = sizes(Some(pads), 2 * axes)?;
                window.padding = (0..axes)
                    .map(|axis| (pads[axis], pads[axes + axis]))
                    .collect();
            }
        }
    }
    Ok(window)
}

/// Splits the shape of a convolution's weights into the number of filters, the channels per group, and the
/// kernel's sizes.
fn filters(weights: &Shape) -> Result<(u64, u64, &[u64]), String> {
    match weights.sizes() {
        [first, second, kernel @ ..] if !kernel.is_empty() => Ok((*first, *second, kernel)),
        _ => Err(format!("{weights} is not a shape of filters")),
    }
}

/// The number of groups of a convolution.
fn groups(call: &Call<'_>) -> Result<u64, String> {
    let groups = u64::try_from(call.int("group", 1)).ok();
    groups
        .filter(|groups| *groups > 0)
        .ok_or_else(|| "its group must be at least 1".to_owned())
}

/// Infers the result of `Conv`.
fn convolution(call: &Call<'_>, input: &Shape) -> Result<NodeResult, String> {
    let Some(weights) = call.shape(1) else {
        return Ok(NodeResult::UnknownShape);
    };
    let (channels, per_group, kernel) = filters(weights)?;
    let groups = groups(call)?;
    if per_group.checked_mul(groups) != Some(input.channels()) || !channels.is_multiple_of(groups) {
        return Err(format!(
            "filters for {groups} groups of {per_group} channels do not fit an input of {input}"
        ));
    }
    let window = window(call, kernel.to_vec(), input.space())?;
    let mut output = vec![input.sizes()[0], channels];
    output.extend(window.output(input.space())?);
    convolution_layer(call, window, channels, groups, output, false)
}

fn convolution_layer(
    call: &Call<'_>,
    window: Window,
    channels: u64,
    groups: u64,
    output: Vec<u64>,
    transposed: bool,
) -> Result<NodeResult, String> {
    Ok(NodeResult::Known {
        kind: Some(Kind::Convolution(Convolution {
            window,
            channels,
            groups,
            bias: call.input(2).is_some(),
            transposed,
        })),
        outputs: vec![Value::with_shape(Shape::new(output)?)],
        weights: &[1, 2],
        statistics: &[],
    })
}

/// Infers the result of `ConvTranspose`.
fn transposed(call: &Call<'_>, input: &Shape) -> Result<NodeResult, String> {
    let Some(weights) = call.shape(1) else {
        return Ok(NodeResult::UnknownShape);
    };
    let (channels_in, per_group, kernel) = filters(weights)?;
    let groups = groups(call)?;
    if channels_in != input.channels() || channels_in % groups != 0 {
        return Err(format!(
            "{channels_in} filters do not fit an input of {input}"
        ));
    }
    let window = window(call, kernel.to_vec(), input.space())?;
    let channels = per_group.checked_mul(groups).ok_or("too many channels")?;
    let axes = window.kernel.len();
    let added = match call.ints("output_padding") {
        Some(added) => sizes(Some(added), axes)?,
        None => vec![0; axes],
    };
    let mut output = vec![input.sizes()[0], channels];
    let same = call.text("auto_pad").starts_with(b"SAME");
    match call.ints("output_shape") {
        Some(given) => output.extend(sizes(Some(given), axes)?),
        None if same => {
            let spread = input.space().iter().zip(&window.stride);
            output.extend(spread.map(|(size, stride)| size.saturating_mul(*stride)));
        }
        None => {
            for (index, size) in input.space().iter().enumerate() {
                let (before, after) = window.padding[index];
                let spread = i128::from(window.stride[index]) * (i128::from(*size) - 1)
                    + i128::from(window.dilation[index]) * (i128::from(window.kernel[index]) - 1)
                    + 1
                    + i128::from(added[index])
                    - i128::from(before)
                    - i128::from(after);
                let spread = u64::try_from(spread);
                output.push(
                    spread
                        .map_err(|_| "its output has a size below 0 or too large to represent")?,
                );
            }
        }
    }
    convolution_layer(call, window, channels, groups, output, true)
}

/// Infers the result of a pool with a sliding window.
fn pool(call: &Call<'_>, input: &Shape, kind: PoolKind) -> Result<NodeResult, String> {
    let kernel = call.ints("kernel_shape").ok_or("it has no kernel_shape")?;
    let kernel = sizes(Some(kernel), kernel.len())?;
    let window = window(call, kernel, input.space())?;
    let mut output = input.sizes()[..2.min(input.rank())].to_vec();
    output.extend(window.output(input.space())?);
    let shape = Shape::new(output)?;
    // The second output of a max pool holds positions, which are not counted.
    Ok(NodeResult::layer(Kind::Pool { kind, window }, shape))
}

/// Infers the result of a pool over all spatial dimensions.
fn global(input: &Shape, kind: PoolKind) -> Result<NodeResult, String> {
    let window = Window::plain(input.space().to_vec());
    window.output(input.space())?;
    let mut sizes = input.sizes().to_vec();
    sizes.iter_mut().skip(2).for_each(|size| *size = 1);
    Ok(NodeResult::layer(
        Kind::Pool { kind, window },
        Shape::new(sizes)?,
    ))
}
