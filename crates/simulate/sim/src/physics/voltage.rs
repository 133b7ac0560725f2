//! Voltage and switching power over the core clock.

/// The voltage as a function of the core clock, both relative to their values at the default clock. The
/// voltage is constant up to the clock `knee` and rises linearly above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Voltage {
    knee: f64,
    floor: f64,
    slope: f64,
    per_switching: f64,
}

impl Voltage {
    /// Creates the function; `floor` is the voltage up to the clock `knee`.
    pub fn new(knee: f64, floor: f64) -> Self {
        let slope = if knee < 1.0 {
            (1.0 - floor) / (1.0 - knee)
        } else {
            0.0
        };
        Self {
            knee,
            floor,
            slope,
            per_switching: 1.0 / (floor * floor),
        }
    }

    /// The voltage at a clock.
    fn voltage_at(self, clock: f64) -> f64 {
        self.floor + self.slope * (clock - self.knee).max(0.0)
    }

    /// The switching power at a clock f, relative to that at the default clock: f V(f)^2.
    pub fn switching_power(self, clock: f64) -> f64 {
        let voltage = self.voltage_at(clock);
        clock * voltage * voltage
    }

    /// The clock that has this switching power. Below the knee, power is linear in the clock; above, it is
    /// convex and rising, so Newton's method converges from any `guess`.
    pub fn clock_for(self, switching: f64, guess: f64) -> f64 {
        let linear = switching * self.per_switching;
        if linear <= self.knee || self.slope == 0.0 {
            return linear;
        }
        let mut clock = guess.clamp(self.knee, linear);
        for _ in 0..30 {
            let voltage = self.voltage_at(clock);
            let excess = clock * voltage * voltage - switching;
            let rise = voltage * (voltage + 2.0 * clock * self.slope);
            let next = clock - excess / rise;
            // Newton's method converges quadratically: the next step would be about the square of this one.
            if (next - clock).abs() < 1e-6 * clock {
                return next;
            }
            clock = next;
        }
        clock
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_clock_for_a_power_has_that_power(knee in 0.0..1.0f64, floor in 0.3..1.0f64, clock in 0.01..2.0f64, guess in 0.0..3.0f64) {
            let voltage = Voltage::new(knee, floor);
            let found = voltage.clock_for(voltage.switching_power(clock), guess);
            prop_assert!((found - clock).abs() < 1e-9, "{} for {}", found, clock);
        }

        #[test]
        fn power_rises_with_the_clock(knee in 0.0..1.0f64, floor in 0.3..1.0f64, clock in 0.01..2.0f64, by in 0.001..0.5f64) {
            let voltage = Voltage::new(knee, floor);
            prop_assert!(voltage.switching_power(clock + by) > voltage.switching_power(clock));
            prop_assert!((voltage.switching_power(1.0) - 1.0).abs() < 1e-12);
        }
    }
}
