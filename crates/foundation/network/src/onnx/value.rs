//! What is known about the tensors that nodes produce and consume.

use std::rc::Rc;

use super::proto;
use super::scan::varint;
use crate::Shape;

/// What is known about a tensor: its shape, and the values of its elements if they are few and constant.
#[derive(Clone, Debug, Default)]
pub struct Value {
    pub shape: Option<Shape>,
    /// The elements of a constant that may describe sizes or axes; those of weights are never stored.
    pub numbers: Option<Rc<[f64]>>,
    /// Whether the elements are whole numbers or booleans.
    pub whole: bool,
    /// Whether the tensor is the same whatever the network's input is.
    pub constant: bool,
    /// The weights or graph inputs from which a constant is computed, as indices; `None` if there are none or
    /// too many.
    pub origins: Option<Rc<[usize]>>,
}

/// The maximum number of elements of a constant that are stored to compute shapes.
pub const MAX_NUMBERS: usize = 1 << 14;

impl Value {
    /// A tensor of which only the shape is known.
    pub fn with_shape(shape: Shape) -> Self {
        Self {
            shape: Some(shape),
            ..Self::default()
        }
    }

    /// A constant list of whole numbers, such as the result of `Shape`.
    pub fn list(numbers: Vec<f64>) -> Result<Self, String> {
        Ok(Self {
            shape: Some(Shape::new(vec![numbers.len() as u64])?),
            numbers: Some(numbers.into()),
            whole: true,
            constant: true,
            origins: None,
        })
    }

    /// The elements, rounded towards zero; `None` if they are not known.
    pub fn whole_numbers(&self) -> Option<Vec<i64>> {
        let numbers = self.numbers.as_ref()?;
        // A cast saturates at the limits, which is what a slice "to the end" means.
        Some(numbers.iter().map(|number| *number as i64).collect())
    }
}

/// The element types of onnx.proto.
const FLOAT: i32 = 1;
const INT32: i32 = 6;
const INT64: i32 = 7;
const BOOL: i32 = 9;
const FLOAT16: i32 = 10;
const DOUBLE: i32 = 11;
const BFLOAT16: i32 = 16;
const FIRST_FLOAT8: i32 = 17;

/// Whether elements of this type are whole numbers or booleans.
pub fn is_whole(element: i32) -> bool {
    !matches!(element, 0 | FLOAT | FLOAT16 | DOUBLE | BFLOAT16) && element < FIRST_FLOAT8
}

/// A constant tensor from the file; if it is a weight, `origin` is the index for [`Value::origins`].
pub fn value_from_tensor(tensor: &proto::Tensor, origin: Option<usize>) -> Result<Value, String> {
    let sizes = tensor.dims.iter().map(|size| u64::try_from(*size).ok());
    let sizes: Option<Vec<u64>> = sizes.collect();
    let shape = Shape::new(sizes.ok_or("a tensor has a size below 0")?)?;
    let few = shape.elements() as usize <= MAX_NUMBERS;
    let numbers = few
        .then(|| numbers(tensor, shape.elements() as usize))
        .flatten();
    Ok(Value {
        shape: Some(shape),
        numbers: numbers.map(Rc::from),
        whole: is_whole(tensor.data_type),
        constant: true,
        origins: origin.map(|origin| Rc::from([origin])),
    })
}

/// The elements of a small tensor; `None` if they are not in the file or have a type that sizes never have.
fn numbers(tensor: &proto::Tensor, count: usize) -> Option<Vec<f64>> {
    let raw = &tensor.raw_data;
    let numbers: Vec<f64> = match tensor.data_type {
        INT64 if !raw.is_empty() => raw
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| i64::from_le_bytes(*bytes) as f64)
            .collect(),
        INT32 if !raw.is_empty() => raw
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f64::from(i32::from_le_bytes(*bytes)))
            .collect(),
        FLOAT if !raw.is_empty() => raw
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
            .collect(),
        BOOL if !raw.is_empty() => raw.iter().map(|byte| f64::from(*byte)).collect(),
        INT64 => packed(&tensor.int64_data, count)?,
        INT32 | BOOL => packed(&tensor.int32_data, count)?,
        FLOAT => tensor
            .float_data
            .iter()
            .flat_map(|bytes| bytes.as_chunks::<4>().0)
            .take(count + 1)
            .map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
            .collect(),
        _ => return None,
    };
    (numbers.len() == count).then_some(numbers)
}

/// Reads up to `count` packed whole numbers (protobuf varints); `None` if the bytes are damaged.
fn packed(blobs: &[prost::bytes::Bytes], count: usize) -> Option<Vec<f64>> {
    let mut numbers = Vec::new();
    for blob in blobs {
        let mut rest: &[u8] = blob;
        while !rest.is_empty() && numbers.len() <= count {
            numbers.push(varint(&mut rest).ok()? as i64 as f64);
        }
    }
    Some(numbers)
}
