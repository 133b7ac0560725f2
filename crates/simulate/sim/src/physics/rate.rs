//! Distances that shrink exponentially.

use sweetspot_quantity::Seconds;

/// How fast a distance shrinks exponentially.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub constant: f64,
    per_second: f64,
}

/// What is left of such a distance: at the end of a span, and on average in it.
pub struct Glide {
    pub end: f64,
    pub mean: f64,
}

impl Rate {
    pub fn of(constant: Seconds) -> Self {
        Self {
            constant: constant.get(),
            per_second: 1.0 / constant.get(),
        }
    }

    /// Up to one time constant by Pade's approximant of order (2, 2), which is 2e-4 off at most.
    pub fn over(self, time: f64) -> Glide {
        let x = time * self.per_second;
        if x <= 1.0 {
            let mean = 1.0 / (1.0 + x * (0.5 + x / 12.0));
            Glide {
                end: 1.0 - x * mean,
                mean,
            }
        } else {
            let end = libm::exp(-x);
            Glide {
                end,
                mean: (1.0 - end) / x,
            }
        }
    }
}
