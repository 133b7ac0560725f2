//! Quantities as the interface writes them: whole milliwatts and millijoules.

use sweetspot_quantity::{Joules, Watts};

use super::backend::Failure;

/// A power limit that a client has given in milliwatts.
pub(super) fn from_milliwatts(milliwatts: u32) -> Watts {
    Watts::new(f64::from(milliwatts) / 1e3)
}

/// A power in whole milliwatts. A reading that is negative, too large or not a number fails.
pub(super) fn milliwatts(power: Watts) -> Result<u32, Failure> {
    let value = (power.get() * 1e3).round();
    if (0.0..=f64::from(u32::MAX)).contains(&value) {
        Ok(value as u32)
    } else {
        Err(Failure::Failed(format!(
            "the GPU reported an impossible power: {} W",
            power.get()
        )))
    }
}

/// An energy in whole millijoules. A reading that is negative, too large or not a number fails.
pub(super) fn millijoules(energy: Joules) -> Result<u64, Failure> {
    let value = (energy.get() * 1e3).round();
    if (0.0..u64::MAX as f64).contains(&value) {
        Ok(value as u64)
    } else {
        Err(Failure::Failed(format!(
            "the GPU reported an impossible energy: {} J",
            energy.get()
        )))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn readings_are_rounded() {
        assert_eq!(milliwatts(Watts::new(75.0004)), Ok(75_000));
        assert_eq!(milliwatts(Watts::new(75.0006)), Ok(75_001));
        assert_eq!(millijoules(Joules::new(1e9)), Ok(1_000_000_000_000));
    }

    #[test]
    fn impossible_readings_fail() {
        for value in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            assert!(milliwatts(Watts::new(value)).is_err(), "{value}");
            assert!(millijoules(Joules::new(value)).is_err(), "{value}");
        }
    }

    proptest! {
        #[test]
        fn a_power_limit_survives_the_conversion(limit: u32) {
            prop_assert_eq!(milliwatts(from_milliwatts(limit)), Ok(limit));
        }
    }
}
