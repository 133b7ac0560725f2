//! Divides a budget among GPUs so that the next watt brings the same everywhere.

use super::curve::CurveShape;

/// The steps that halve the range of the price of a watt.
const PRICE_STEPS: usize = 48;

/// What a GPU may get from a budget, and what it makes of it. All powers are in watts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// The least that the GPU gets.
    pub min: f64,
    /// The power above which nothing is gained.
    pub useful: f64,
    /// The most that the GPU can get.
    pub max: f64,
    /// How much the GPU's throughput counts; 0 for an idle GPU.
    pub weight: f64,
    /// How throughput depends on power.
    pub shape: CurveShape,
}

impl Claim {
    /// The power at which the next watt brings `price`.
    fn power_at(&self, price: f64) -> f64 {
        let useful = self.useful.clamp(self.min, self.max);
        match self.weight > 0.0 {
            true => self
                .shape
                .power_at_slope(price / self.weight)
                .clamp(self.min, useful),
            false => self.min,
        }
    }
}

/// Divides `budget` among the claims: the sum of weighted throughputs is the highest that the budget allows, if no minimum
/// is below the power from which its GPU makes progress (there the curve is not concave). What is left
/// when nobody gains any more is spread as headroom. If the budget is below the sum of the minima, everyone gets the
/// minimum.
pub fn divide(budget: f64, claims: &[Claim]) -> Vec<f64> {
    let at_price = |price: f64| claims.iter().map(move |claim| claim.power_at(price));
    let most: Vec<f64> = at_price(0.0).collect();
    let sum: f64 = most.iter().sum();
    if sum <= budget {
        return spread(budget - sum, most, claims);
    }
    // The price of a watt, as a logarithm: shares of throughput per watt.
    let (mut low, mut high) = (-30.0_f64, 10.0_f64);
    for _ in 0..PRICE_STEPS {
        let middle = (low + high) / 2.0;
        match at_price(middle.exp()).sum::<f64>() > budget {
            true => low = middle,
            false => high = middle,
        }
    }
    at_price(high.exp()).collect()
}

/// Spreads what is left over among the GPUs with a program, in proportion to what each could still get; then among all.
fn spread(left: f64, mut powers: Vec<f64>, claims: &[Claim]) -> Vec<f64> {
    let mut left = left;
    for is_served in [
        (|claim: &Claim| claim.weight > 0.0) as fn(&Claim) -> bool,
        |claim| claim.weight <= 0.0,
    ] {
        let room = |power: f64, claim: &Claim| match is_served(claim) {
            true => (claim.max - power).max(0.0),
            false => 0.0,
        };
        let pairs = powers.iter().zip(claims);
        let total: f64 = pairs.map(|(power, claim)| room(*power, claim)).sum();
        if total <= 0.0 {
            continue;
        }
        let share = (left / total).min(1.0);
        for (power, claim) in powers.iter_mut().zip(claims) {
            *power += share * room(*power, claim);
        }
        left -= share * total;
    }
    powers
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(min: f64, max: f64, base: f64, exponent: f64) -> Claim {
        let shape = CurveShape {
            demand: max,
            base: base * max,
            exponent,
        };
        Claim {
            min,
            useful: max,
            max,
            weight: 1.0,
            shape,
        }
    }

    #[test]
    fn equal_gpus_get_equal_shares() {
        let claims = [claim(100.0, 300.0, 0.2, 0.5); 4];
        for power in divide(800.0, &claims) {
            assert!((power - 200.0).abs() < 1e-6, "{power}");
        }
    }

    #[test]
    fn a_budget_below_the_minima_gives_the_minima() {
        let claims = [claim(100.0, 300.0, 0.2, 0.5); 4];
        assert_eq!(divide(300.0, &claims), vec![100.0; 4]);
    }

    proptest! {
        /// No transfer of a few watts between two GPUs brings more.
        #[test]
        fn no_transfer_brings_more(
            parts in prop::collection::vec((0.05..0.33f64, 0.1..0.95f64, 0.3..3.0f64), 2..9),
            share in 0.45..0.99f64,
        ) {
            let claims: Vec<Claim> = parts.iter().map(|(base, exponent, weight)| Claim {
                weight: *weight,
                ..claim(100.0, 300.0, *base, *exponent)
            }).collect();
            let budget = 300.0 * share * claims.len() as f64;
            let powers = divide(budget, &claims);
            let sum: f64 = powers.iter().sum();
            prop_assert!(sum <= budget + 1e-6 && sum > budget - 0.1);
            let value = |powers: &[f64]| -> f64 {
                claims.iter().zip(powers).map(|(claim, power)| claim.weight * claim.shape.share(*power)).sum()
            };
            for from in 0..claims.len() {
                for to in 0..claims.len() {
                    let mut moved = powers.clone();
                    moved[from] -= 3.0;
                    moved[to] += 3.0;
                    let allowed = |(claim, power): (&Claim, &f64)| (claim.min..=claim.max).contains(power);
                    if claims.iter().zip(&moved).all(allowed) {
                        prop_assert!(value(&moved) <= value(&powers) + 1e-6);
                    }
                }
            }
        }
    }
}
