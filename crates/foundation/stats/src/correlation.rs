//! How alike the values of a smooth function are at two points.

/// The Matérn 5/2 correlation of the values at two points at this distance, in correlation lengths.
pub fn matern(distance: f64) -> f64 {
    let x = libm::sqrt(5.0) * distance;
    (1.0 + x + x * x / 3.0) * libm::exp(-x)
}
