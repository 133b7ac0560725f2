//! Several GPUs of one job as one device: the sum of their power, and the division of their total power cap.

mod division;
mod power_sum;

pub use division::{CapDivision, CapRange};
pub use power_sum::PowerSum;
