//! Shapes that a file declares for inputs and values.

use super::execution_order::shorten;
use super::proto::ValueInfo;
use crate::{MissingSizes, Shape};

/// Whether the file declares the size of every axis of this input.
pub fn is_fully_sized(info: &ValueInfo) -> bool {
    let tensor = info.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
    let sizes = tensor.and_then(|tensor| tensor.shape.as_ref());
    sizes.is_some_and(|sizes| {
        sizes
            .axes
            .iter()
            .all(|axis| axis.size.is_some_and(|size| size > 0))
    })
}

/// The input with the names of the sizes that the file leaves open; `None` if it leaves none open. The first axis may be
/// left open: it is the batch.
pub fn missing_sizes(info: &ValueInfo) -> Option<MissingSizes> {
    let input = shorten(&info.name);
    let tensor = info.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
    let Some(sizes) = tensor.and_then(|tensor| tensor.shape.as_ref()) else {
        return Some(MissingSizes {
            input,
            shape: None,
            sizes: Vec::new(),
        });
    };
    let (mut axes, mut open) = (Vec::new(), Vec::new());
    for (index, axis) in sizes.axes.iter().enumerate().take(MAX_AXES) {
        let symbol = axis.symbol.as_deref().filter(|symbol| !symbol.is_empty());
        axes.push(match (axis.size.filter(|size| *size > 0), symbol) {
            (Some(size), _) => size.to_string(),
            (None, _) if index == 0 => "1".to_owned(),
            (None, symbol) => {
                let name = shorten(symbol.unwrap_or("?"));
                if !open.contains(&name) {
                    open.push(name.clone());
                }
                name
            }
        });
    }
    (!open.is_empty()).then(|| MissingSizes {
        input,
        shape: Some(axes.join("x")),
        sizes: open,
    })
}

/// The number of axes after which a shape is too long in any case.
const MAX_AXES: usize = 17;

/// The shape that the file declares. If the first axis has no size, it is the batch and gets the size 1.
pub fn declared_shape(info: &ValueInfo) -> Result<Shape, String> {
    let tensor = info.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
    let sizes = tensor.and_then(|tensor| tensor.shape.as_ref());
    let sizes = sizes.ok_or("has no shape in the file")?;
    let mut known = Vec::with_capacity(sizes.axes.len().min(MAX_AXES));
    for (index, axis) in sizes.axes.iter().enumerate().take(MAX_AXES) {
        let size = axis.size.and_then(|size| u64::try_from(size).ok());
        match size.filter(|size| *size > 0) {
            Some(size) => known.push(size),
            None if index == 0 => known.push(1),
            None => return Err(format!("has no size for its axis {index} in the file")),
        }
    }
    Shape::new(known)
}
