//! Shapes of tensors.

use std::fmt::{Display, Formatter, Result as Written};
use std::str::FromStr;

/// The shape of a tensor, written as 1x3x224x224: batch, channels, then spatial sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape(Vec<u64>);

impl Shape {
    /// The maximum number of elements of a tensor.
    const MAX_ELEMENTS: u64 = 1 << 40;
    /// The maximum number of axes of a tensor.
    const MAX_AXES: usize = 16;

    /// Creates a shape; the error says why it is too large.
    pub fn new(sizes: Vec<u64>) -> Result<Self, String> {
        if sizes.len() > Self::MAX_AXES {
            return Err(format!(
                "a tensor with {} axes is not supported: at most 16",
                sizes.len()
            ));
        }
        let elements = sizes
            .iter()
            .try_fold(1u64, |product, size| product.checked_mul((*size).max(1)))
            .filter(|elements| *elements <= Self::MAX_ELEMENTS);
        let shape = Self(sizes);
        match elements {
            Some(_) => Ok(shape),
            None => Err(format!(
                "a tensor of shape {shape} has more than {} elements",
                Self::MAX_ELEMENTS
            )),
        }
    }

    /// The size of each axis.
    pub fn sizes(&self) -> &[u64] {
        &self.0
    }

    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.0.iter().product()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The size of the second axis, the channels; 1 if there is none.
    pub fn channels(&self) -> u64 {
        self.0.get(1).copied().unwrap_or(1)
    }

    /// The spatial sizes: those after batch and channels.
    pub fn space(&self) -> &[u64] {
        self.0.get(2..).unwrap_or_default()
    }
}

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        let sizes: Vec<_> = self.0.iter().map(u64::to_string).collect();
        match sizes.is_empty() {
            true => f.write_str("scalar"),
            false => f.write_str(&sizes.join("x")),
        }
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid shape `{text}`: write it as 1x3x224x224");
        let sizes = text.split('x').map(|size| size.trim().parse::<u64>().ok());
        let sizes: Vec<u64> = sizes.collect::<Option<_>>().ok_or_else(wrong)?;
        if sizes.contains(&0) {
            return Err(format!(
                "invalid shape `{text}`: each size must be at least 1"
            ));
        }
        Self::new(sizes)
    }
}
