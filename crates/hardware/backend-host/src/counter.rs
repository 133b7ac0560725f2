//! The kernel's energy counter, which wraps around, as one that goes on.

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds, Watts};

/// An upper bound on the power of a zone that states none.
const ASSUMED_MAX_POWER: Watts = Watts::new(1000.0);

/// The reason why a reading of the counter cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CounterProblem {
    /// The counter may have wrapped around more than once since the last reading.
    LongGap,
    /// The value is above the largest one that the counter can have.
    AboveRange,
    /// The counter went back, and where it wraps around is unknown.
    WentBack,
}

/// An energy counter in microjoules that wraps around at `range`.
#[derive(Clone, Debug)]
pub(crate) struct EnergyCounter {
    /// The largest value of the counter; `None` if it does not wrap around.
    range: Option<u64>,
    /// The longest time between two readings in which the counter cannot wrap around unnoticed; `None` if it does not
    /// wrap around.
    longest_gap: Option<Seconds>,
    last: Option<(Moment, u64)>,
    total: u64,
}

impl EnergyCounter {
    /// Creates a counter of which nothing is read yet. `max_power` is the power that the zone is made for.
    pub fn new(range: Option<u64>, max_power: Option<Watts>) -> Self {
        let range = range.filter(|range| *range > 0);
        // For short times a package draws more than it is made for, hence half the time.
        let power = max_power.map_or(ASSUMED_MAX_POWER, |power| power + power);
        Self {
            range,
            longest_gap: range.map(|range| joules(range) / power),
            last: None,
            total: 0,
        }
    }

    /// The same counter, of which nothing is read yet.
    pub fn restarted(&self) -> Self {
        Self {
            last: None,
            total: 0,
            ..self.clone()
        }
    }

    /// Takes a reading and returns the energy counted since an arbitrary origin. After a problem the count begins anew,
    /// lower than before, so that nobody takes the difference for energy.
    pub fn advance(&mut self, at: Moment, raw: u64) -> Result<Joules, CounterProblem> {
        if self.range.is_some_and(|range| raw > range) {
            return Err(CounterProblem::AboveRange);
        }
        let Some((before, last)) = self.last.replace((at, raw)) else {
            self.total = raw;
            return Ok(joules(raw));
        };
        let restart = |counter: &mut Self, problem| {
            counter.last = None;
            Err(problem)
        };
        if self
            .longest_gap
            .is_some_and(|longest| at - before > longest)
        {
            return restart(self, CounterProblem::LongGap);
        }
        let grown = match (raw.checked_sub(last), self.range) {
            (Some(grown), _) => grown,
            (None, Some(range)) => raw + (range - last),
            (None, None) => return restart(self, CounterProblem::WentBack),
        };
        self.total = self.total.saturating_add(grown);
        Ok(joules(self.total))
    }
}

/// Converts microjoules.
fn joules(micro: u64) -> Joules {
    Joules::new(micro as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The range of a common processor: 2^32 - 1 steps of 61 uJ.
    const RANGE: u64 = 262_143_328_850;

    fn second(second: u64) -> Moment {
        Moment::from_nanos(second * 1_000_000_000)
    }

    #[test]
    fn a_counter_goes_on_where_it_wraps_around() {
        let mut counter = EnergyCounter::new(Some(RANGE), Some(Watts::new(200.0)));
        let begin = counter.advance(second(0), RANGE - 5).unwrap();
        let end = counter.advance(second(1), 150_000_000).unwrap();
        assert!(((end - begin).get() - 150.000_005).abs() < 1e-6);
        // The modulus is not that of the register, 2^32.
        assert_eq!(counter.total, RANGE + 150_000_000);
    }

    #[test]
    fn a_gap_in_which_a_wrap_may_be_missed_is_a_problem() {
        let mut counter = EnergyCounter::new(Some(RANGE), Some(Watts::new(200.0)));
        counter.advance(second(0), 1000).unwrap();
        // 262143 J / (2 x 200 W) = 655.4 s.
        assert!(counter.advance(second(655), 2000).is_ok());
        let late = counter.advance(second(655 + 656), 3000);
        assert_eq!(late, Err(CounterProblem::LongGap));
        assert_eq!(counter.advance(second(1400), 4000), Ok(Joules::new(0.004)));
    }

    #[test]
    fn impossible_values_are_problems() {
        let mut counter = EnergyCounter::new(Some(RANGE), None);
        assert_eq!(
            counter.advance(second(0), RANGE + 1),
            Err(CounterProblem::AboveRange)
        );
        let mut counter = EnergyCounter::new(None, None);
        counter.advance(second(0), 100).unwrap();
        assert_eq!(
            counter.advance(second(1), 99),
            Err(CounterProblem::WentBack)
        );
        assert_eq!(counter.advance(second(2), 101), Ok(joules(101)));
    }

    proptest! {
        #[test]
        fn the_sum_of_all_steps_is_counted(
            start in 0..=RANGE,
            steps in prop::collection::vec(0..RANGE, 1..50),
        ) {
            let mut counter = EnergyCounter::new(Some(RANGE), Some(Watts::new(200.0)));
            counter.advance(second(0), start).unwrap();
            let (mut raw, mut sum) = (start, start);
            for (index, step) in steps.into_iter().enumerate() {
                sum += step;
                raw += step;
                // The counter shows its largest value and zero as the same energy.
                if raw > RANGE { raw -= RANGE; }
                counter.advance(second(index as u64 + 1), raw).unwrap();
                prop_assert_eq!(counter.total, sum);
            }
        }
    }
}
