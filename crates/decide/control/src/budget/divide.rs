//! Divides a budget among GPUs so that the next watt brings the same everywhere.
//!
//! A GPU's throughput is given at evenly spaced powers. Where that curve is not concave (throughput is flat up to the power
//! that a GPU draws besides its cores, and then rises steeply), the division follows its concave envelope: a GPU then
//! crosses the gap at once or not at all. At most one GPU would end within a gap; both ways out of it are compared.

/// The number of intervals between the powers at which the throughput of a GPU is given.
pub const INTERVALS: usize = 24;
/// The steps that halve a range of powers.
const HALVINGS: usize = 40;
/// Slopes below this, in shares of the full throughput for a watt, count as flat.
const FLAT: f64 = 1e-7;

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
    /// The throughput relative to the full one at evenly spaced powers from `min` to `useful`. It never falls.
    pub values: [f64; INTERVALS + 1],
}

impl Claim {
    /// Describes a GPU by its throughput at a power. Throughput that falls with more power is taken as flat.
    pub fn new(min: f64, useful: f64, max: f64, weight: f64, share: impl Fn(f64) -> f64) -> Self {
        let useful = useful.clamp(min, max.max(min));
        let step = (useful - min) / INTERVALS as f64;
        let mut highest = f64::NEG_INFINITY;
        let values = std::array::from_fn(|number| {
            highest = share(min + step * number as f64).max(highest);
            highest
        });
        Self {
            min,
            useful,
            max,
            weight,
            values,
        }
    }

    /// Describes a GPU that gets exactly this power, which brings nothing.
    pub fn fixed(power: f64, max: f64) -> Self {
        Self::new(power, power, max, 0.0, |_| 0.0)
    }

    /// The weighted throughput at a power.
    pub fn value(&self, power: f64) -> f64 {
        let place = match self.useful > self.min {
            true => (power - self.min) / (self.useful - self.min) * INTERVALS as f64,
            false => 0.0,
        };
        let place = place.clamp(0.0, INTERVALS as f64);
        let number = (place as usize).min(INTERVALS - 1);
        let (low, high) = (self.values[number], self.values[number + 1]);
        self.weight * (low + (high - low) * (place - number as f64))
    }

    /// The segments of the concave envelope, from the steepest to the flattest.
    fn segments(&self, gpu: usize, segments: &mut Vec<Segment>) {
        if self.weight <= 0.0 || self.useful <= self.min {
            return;
        }
        let step = (self.useful - self.min) / INTERVALS as f64;
        let mut hull = [0; INTERVALS + 1];
        let mut corners = 0;
        let slope = |from: usize, to: usize| {
            (self.values[to] - self.values[from]) / (to - from).max(1) as f64
        };
        for number in 0..=INTERVALS {
            while corners >= 2
                && slope(hull[corners - 2], hull[corners - 1]) <= slope(hull[corners - 1], number)
            {
                corners -= 1;
            }
            hull[corners] = number;
            corners += 1;
        }
        for pair in hull[..corners].windows(2) {
            let slope = self.weight * slope(pair[0], pair[1]) / step;
            if slope <= FLAT {
                break;
            }
            segments.push(Segment {
                slope,
                gpu,
                length: step * (pair[1] - pair[0]) as f64,
                is_gap: pair[1] - pair[0] > 1,
            });
        }
    }
}

/// A part of a concave envelope.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// What a watt brings.
    slope: f64,
    gpu: usize,
    /// The length in watts.
    length: f64,
    /// Whether the curve may be below the envelope between the ends.
    is_gap: bool,
}

/// Divides `budget` among the claims so that the sum of weighted throughputs is the highest that the budget allows; exactly
/// if all curves are concave, and otherwise short of it by at most the rise of one GPU across its gap. What is left when no
/// GPU gains any more is spread as headroom. If the budget is below the sum
/// of the minima, every GPU gets its minimum.
pub fn divide(budget: f64, claims: &[Claim]) -> Vec<f64> {
    let minima: Vec<f64> = claims.iter().map(|claim| claim.min).collect();
    let left = budget - minima.iter().sum::<f64>();
    if left <= 0.0 {
        return minima;
    }
    let mut segments = Vec::with_capacity(claims.len() * INTERVALS);
    for (gpu, claim) in claims.iter().enumerate() {
        claim.segments(gpu, &mut segments);
    }
    // The segments of one GPU are in order then, because the slopes of an envelope fall.
    segments.sort_unstable_by(|a, b| b.slope.total_cmp(&a.slope));
    let (powers, left) = fill(left, minima, &segments, claims);
    spread(left, powers, claims)
}

/// Gives power to the segments in order, as far as it reaches; returns the powers and what is left.
fn fill(
    budget: f64,
    mut powers: Vec<f64>,
    segments: &[Segment],
    claims: &[Claim],
) -> (Vec<f64>, f64) {
    let mut left = budget;
    for (number, segment) in segments.iter().enumerate() {
        if segment.length <= left {
            powers[segment.gpu] += segment.length;
            left -= segment.length;
            continue;
        }
        if segment.is_gap {
            return leave_gap(left, powers, segments, number, claims);
        }
        powers[segment.gpu] += left;
        return (powers, 0.0);
    }
    (powers, left)
}

/// Decides about the GPU that would end within a gap: it stays below the gap and the others get the rest, it gets what is
/// left, or it crosses the gap and the others give back what brings least.
fn leave_gap(
    left: f64,
    powers: Vec<f64>,
    segments: &[Segment],
    number: usize,
    claims: &[Claim],
) -> (Vec<f64>, f64) {
    let gap = segments[number];
    let mut within = powers.clone();
    within[gap.gpu] += left;
    let mut crossed = powers.clone();
    crossed[gap.gpu] += gap.length;
    let missing = give_back(
        gap.length - left,
        &mut crossed,
        &segments[..number],
        gap.gpu,
    );
    let below = fill_others(left, powers, &segments[number + 1..], gap.gpu);
    let value = |powers: &[f64]| -> f64 {
        let pairs = claims.iter().zip(powers);
        pairs.map(|(claim, power)| claim.value(*power)).sum()
    };
    let mut best = (within, 0.0);
    for (one, rest) in [
        (Some(below.0), below.1),
        (missing.is_some().then_some(crossed), missing.unwrap_or(0.0)),
    ] {
        if let Some(one) = one
            && value(&one) > value(&best.0)
        {
            best = (one, rest);
        }
    }
    best
}

/// Gives power to the segments of other GPUs in order, without those that would end within a gap.
fn fill_others(
    mut left: f64,
    mut powers: Vec<f64>,
    segments: &[Segment],
    without: usize,
) -> (Vec<f64>, f64) {
    let mut skipped = vec![without];
    for segment in segments {
        if left <= 0.0 {
            break;
        }
        if skipped.contains(&segment.gpu) {
            continue;
        }
        if segment.is_gap && segment.length > left {
            skipped.push(segment.gpu);
            continue;
        }
        let part = segment.length.min(left);
        powers[segment.gpu] += part;
        left -= part;
    }
    (powers, left)
}

/// Takes back power from the segments that were filled, beginning with the last. Returns what was taken too much, because a
/// gap is left at once; `None` if there is not enough.
fn give_back(missing: f64, powers: &mut [f64], filled: &[Segment], without: usize) -> Option<f64> {
    let mut missing = missing;
    for segment in filled.iter().rev() {
        if missing <= 0.0 {
            break;
        }
        if segment.gpu == without {
            continue;
        }
        let part = match segment.is_gap {
            true => segment.length,
            false => segment.length.min(missing),
        };
        powers[segment.gpu] -= part;
        missing -= part;
    }
    (missing <= 1e-9).then_some((-missing).max(0.0))
}

/// The same power for every GPU, as far as each can take it: what one cannot take is handed on to the others.
pub fn equal_shares(budget: f64, claims: &[Claim]) -> Vec<f64> {
    let share = |level: f64, claim: &Claim| level.clamp(claim.min, claim.max.max(claim.min));
    let sum = |level: f64| -> f64 { claims.iter().map(|claim| share(level, claim)).sum() };
    let (mut low, mut high) = (0.0, budget.max(0.0));
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        match sum(middle) > budget {
            true => high = middle,
            false => low = middle,
        }
    }
    claims.iter().map(|claim| share(low, claim)).collect()
}

/// Spreads what is left over among the GPUs with a program, in proportion to what each could still get; then among all.
fn spread(left: f64, mut powers: Vec<f64>, claims: &[Claim]) -> Vec<f64> {
    let mut left = left;
    for is_served in [
        (|claim: &Claim| claim.weight > 0.0) as fn(&Claim) -> bool,
        |claim| claim.weight <= 0.0,
    ] {
        let space = |power: f64, claim: &Claim| match is_served(claim) {
            true => (claim.max - power).max(0.0),
            false => 0.0,
        };
        let pairs = powers.iter().zip(claims);
        let total: f64 = pairs.map(|(power, claim)| space(*power, claim)).sum();
        if total <= 0.0 || left <= 0.0 {
            continue;
        }
        let share = (left / total).min(1.0);
        for (power, claim) in powers.iter_mut().zip(claims) {
            *power += share * space(*power, claim);
        }
        left -= share * total;
    }
    powers
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::budget::curve::CurveShape;

    fn claim(min: f64, max: f64, base: f64, exponent: f64) -> Claim {
        let shape = CurveShape {
            demand: max,
            base: base * max,
            exponent,
        };
        Claim::new(min, max, max, 1.0, |power| shape.share(power))
    }

    #[test]
    fn equal_gpus_get_equal_shares() {
        let claims = [claim(100.0, 300.0, 0.2, 0.5); 4];
        let powers = divide(800.0, &claims);
        for power in &powers {
            assert!((power - 200.0).abs() < 7.0, "{power}");
        }
        assert!((powers.iter().sum::<f64>() - 800.0).abs() < 1e-6);
    }

    #[test]
    fn a_budget_below_the_minima_gives_the_minima() {
        let claims = [claim(100.0, 300.0, 0.2, 0.5); 4];
        assert_eq!(divide(300.0, &claims), vec![100.0; 4]);
    }

    #[test]
    fn what_one_gpu_cannot_take_is_handed_on() {
        let claims = [
            claim(100.0, 150.0, 0.2, 0.5),
            claim(100.0, 300.0, 0.2, 0.5),
            claim(220.0, 300.0, 0.2, 0.5),
        ];
        let powers = equal_shares(600.0, &claims);
        for (power, expected) in powers.iter().zip([150.0, 225.0, 225.0]) {
            assert!((power - expected).abs() < 1e-3, "{powers:?}");
        }
    }

    fn value(claims: &[Claim], powers: &[f64]) -> f64 {
        let pairs = claims.iter().zip(powers);
        pairs.map(|(claim, power)| claim.value(*power)).sum()
    }

    /// The highest sum of weighted throughputs with powers in whole steps, by dynamic programming.
    fn best_by_steps(budget: f64, claims: &[Claim], step: f64) -> f64 {
        let steps = ((budget - claims.iter().map(|claim| claim.min).sum::<f64>()) / step) as usize;
        let mut best = vec![0.0_f64; steps + 1];
        for claim in claims {
            let most = ((claim.max - claim.min) / step).ceil() as usize;
            let next = (0..=steps).map(|left| {
                let parts = (0..=most.min(left)).map(|part| {
                    let power = (claim.min + part as f64 * step).min(claim.max);
                    best[left - part] + claim.value(power)
                });
                parts.fold(f64::NEG_INFINITY, f64::max)
            });
            best = next.collect();
        }
        best[steps]
    }

    proptest! {
        /// Where curves are flat before they rise, the best division brings at most the rise of one gap more.
        #[test]
        fn at_most_one_gap_is_lost(
            parts in prop::collection::vec((0.05..0.95f64, 0.1..0.95f64, 0.3..3.0f64, 80.0..200.0f64), 2..9),
            share in 0.02..0.99f64,
        ) {
            let claims: Vec<Claim> = parts.iter().map(|(base, exponent, weight, min)| Claim {
                weight: *weight,
                ..claim(*min, 300.0, *base, *exponent)
            }).collect();
            let least: f64 = claims.iter().map(|claim| claim.min).sum();
            let budget = least + share * (300.0 * claims.len() as f64 - least);
            let powers = divide(budget, &claims);
            prop_assert!(powers.iter().sum::<f64>() <= budget + 1e-6);
            for (claim, power) in claims.iter().zip(&powers) {
                prop_assert!(*power >= claim.min - 1e-9 && *power <= claim.max + 1e-9);
            }
            let gaps = claims.iter().enumerate().flat_map(|(gpu, claim)| {
                let mut segments = Vec::new();
                claim.segments(gpu, &mut segments);
                segments.into_iter().filter(|segment| segment.is_gap)
            });
            let largest = gaps.map(|gap| gap.slope * gap.length).fold(0.0, f64::max);
            let (own, best) = (value(&claims, &powers), best_by_steps(budget, &claims, 1.0));
            prop_assert!(own >= best - largest - 1e-9, "{own} instead of {best}: {powers:?}");
            // Equal shares are never better by more than that either.
            let equal = value(&claims, &equal_shares(budget, &claims));
            prop_assert!(own >= equal - largest - 1e-9);
        }

        /// Without a flat part, the division is the best one.
        #[test]
        fn concave_curves_are_divided_exactly(
            parts in prop::collection::vec((0.05..0.33f64, 0.1..0.95f64, 0.3..3.0f64), 2..9),
            share in 0.02..0.99f64,
        ) {
            let claims: Vec<Claim> = parts.iter().map(|(base, exponent, weight)| Claim {
                weight: *weight,
                ..claim(100.0, 300.0, *base, *exponent)
            }).collect();
            let budget = claims.len() as f64 * (100.0 + 200.0 * share);
            let powers = divide(budget, &claims);
            let own = value(&claims, &powers);
            prop_assert!(own >= best_by_steps(budget, &claims, 1.0) - 1e-9);
        }
    }
}
