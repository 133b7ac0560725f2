//! Exponential decay.

use sweetspot_quantity::Seconds;

/// The rate of an exponential decay, with its time constant in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecayRate {
    pub constant: f64,
    per_second: f64,
}

/// The remaining share of an exponentially decaying value: at the end of a time span, and on average over it.
pub struct Decay {
    pub end: f64,
    pub mean: f64,
}

impl DecayRate {
    /// Creates the rate from its time constant.
    pub fn new(constant: Seconds) -> Self {
        Self {
            constant: constant.get(),
            per_second: 1.0 / constant.get(),
        }
    }

    /// The decay over a time in seconds. Up to one time constant it is computed by a Padé approximant of
    /// order (2, 2), whose error is at most 2e-4.
    pub fn over(self, time: f64) -> Decay {
        let x = time * self.per_second;
        if x <= 1.0 {
            let mean = 1.0 / (1.0 + x * (0.5 + x / 12.0));
            Decay {
                end: 1.0 - x * mean,
                mean,
            }
        } else {
            let end = libm::exp(-x);
            Decay {
                end,
                mean: (1.0 - end) / x,
            }
        }
    }
}
