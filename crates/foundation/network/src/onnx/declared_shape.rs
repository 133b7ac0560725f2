//! Shapes that a file declares for inputs and values.

use super::execution_order::shorten;
use super::proto::ValueInfo;
use crate::Shape;

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

/// The shape that the file declares. If the first axis has no size, it is the batch and gets the size 1.
pub fn declared_shape(info: &ValueInfo) -> Result<Shape, String> {
    let tensor = info.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
    let sizes = tensor.and_then(|tensor| tensor.shape.as_ref());
    let sizes = sizes.ok_or("has no shape in the file")?;
    let mut known = Vec::with_capacity(sizes.axes.len().min(16));
    for (index, axis) in sizes.axes.iter().enumerate().take(17) {
        let size = axis.size.and_then(|size| u64::try_from(size).ok());
        match size.filter(|size| *size > 0) {
            Some(size) => known.push(size),
            None if index == 0 => known.push(1),
            None => {
                let symbol = shorten(axis.symbol.as_deref().unwrap_or("?"));
                return Err(format!(
                    "has no size for its axis {index} (`{symbol}`) in the file"
                ));
            }
        }
    }
    Shape::new(known)
}
