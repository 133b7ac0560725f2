//! Histograms with cumulative buckets, and what can be said of their quantiles.

/// The range of a quantile that a histogram leaves, and the likeliest value in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileRange {
    /// The value if the observations of a bucket are spread evenly in it.
    pub value: f64,
    /// The lowest value that buckets and the number of observations leave.
    pub low: f64,
    /// The highest one; infinite if it is above the last bucket.
    pub high: f64,
}

/// The number of observations below each bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The upper bounds of the buckets, ascending, without infinity.
    bounds: Vec<f64>,
    /// The number of observations up to each bound.
    below: Vec<f64>,
    /// The number of all observations.
    count: f64,
    /// The sum of all observations.
    sum: f64,
}

/// The number of standard errors that a 95 % interval extends to each side.
const STANDARD_ERRORS: f64 = 1.96;

impl Histogram {
    /// Creates a histogram from the number of observations up to each bound. Bounds are sorted; numbers that fall or are
    /// impossible are raised to the one before. Without a total, that of the highest bucket applies.
    pub fn new(mut buckets: Vec<(f64, f64)>, sum: Option<f64>, count: Option<f64>) -> Self {
        buckets.retain(|(bound, _)| !bound.is_nan());
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        buckets.dedup_by(|a, b| a.0 == b.0);
        let mut highest = 0.0_f64;
        for (_, number) in &mut buckets {
            highest = highest.max(if number.is_finite() { *number } else { 0.0 });
            *number = highest;
        }
        let usable = |value: &f64| value.is_finite() && *value >= 0.0;
        let (bounds, below) = buckets
            .into_iter()
            .filter(|(bound, _)| bound.is_finite())
            .unzip();
        Self {
            bounds,
            below,
            count: count.filter(usable).unwrap_or(0.0).max(highest),
            sum: sum.filter(usable).unwrap_or(0.0),
        }
    }

    /// The number of observations.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// The mean of all observations; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// Whether quantiles can be read: there are buckets.
    pub fn has_buckets(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// The observations since an earlier page of the same server; `None` if this one has fewer or other buckets.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        if self.bounds != earlier.bounds || self.count < earlier.count {
            return None;
        }
        let pairs = self.below.iter().zip(&earlier.below);
        let below: Vec<f64> = pairs.map(|(now, before)| now - before).collect();
        if below.iter().any(|number| *number < 0.0) {
            return None;
        }
        let buckets = self.bounds.iter().copied().zip(below).collect();
        let (sum, count) = (self.sum - earlier.sum, self.count - earlier.count);
        Some(Self::new(buckets, Some(sum), Some(count)))
    }

    /// Adds the observations of another histogram; those with other buckets count with their sum and number only.
    pub fn add(&mut self, other: &Self) {
        if self.count == 0.0 && self.bounds.is_empty() {
            *self = other.clone();
            return;
        }
        if self.bounds == other.bounds {
            for (own, more) in self.below.iter_mut().zip(&other.below) {
                *own += more;
            }
        } else {
            self.bounds.clear();
            self.below.clear();
        }
        self.count += other.count;
        self.sum += other.sum;
    }

    /// The sum of all observations.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Counts all observations with this factor, so that old ones matter less than new ones.
    pub fn fade(&mut self, factor: f64) {
        for below in &mut self.below {
            *below *= factor;
        }
        self.count *= factor;
        self.sum *= factor;
    }

    /// The bounds of the bucket around a value; the upper one is infinite above the last bucket.
    pub fn bucket_around(&self, value: f64) -> (f64, f64) {
        let at = self.bounds.partition_point(|upper| *upper < value);
        let low = at.checked_sub(1).map_or(0.0, |at| self.bounds[at]);
        let high = self.bounds.get(at).copied();
        (low, high.unwrap_or(f64::INFINITY))
    }

    /// The bounds of the bucket that contains the observation of this rank, and the value if they are spread evenly.
    fn at_rank(&self, rank: f64) -> QuantileRange {
        let found = self.below.iter().position(|below| *below >= rank);
        let lower = |at: usize| match at {
            0 => (0.0, 0.0),
            _ => (self.bounds[at - 1], self.below[at - 1]),
        };
        let Some(at) = found else {
            let low = self.bounds.last().copied().unwrap_or(0.0);
            return QuantileRange {
                value: low,
                low,
                high: f64::INFINITY,
            };
        };
        let (low, before) = lower(at);
        let (high, within) = (self.bounds[at], self.below[at] - before);
        let share = if within > 0.0 {
            (rank - before) / within
        } else {
            1.0
        };
        QuantileRange {
            value: low + share.clamp(0.0, 1.0) * (high - low),
            low,
            high,
        }
    }

    /// The quantile, with the range that the buckets and the number of observations leave at 95 % confidence; `None`
    /// without observations or buckets.
    pub fn quantile(&self, share: f64) -> Option<QuantileRange> {
        if self.count <= 0.0 || self.bounds.is_empty() {
            return None;
        }
        let rank = share * self.count;
        let error = STANDARD_ERRORS * (self.count * share * (1.0 - share)).max(0.0).sqrt();
        Some(QuantileRange {
            value: self.at_rank(rank).value,
            low: self.at_rank((rank - error).max(0.0)).low,
            high: self.at_rank((rank + error).min(self.count)).high,
        })
    }

    /// The share of the bucket around a bound that lies above it, if its observations are spread evenly.
    pub fn share_of_bucket_above(&self, bound: f64) -> f64 {
        let (low, high) = self.bucket_around(bound);
        match high.is_finite() && high > low {
            true => ((high - bound) / (high - low)).clamp(0.0, 1.0),
            false => 1.0,
        }
    }

    /// The lowest and the highest possible number of observations above a bound.
    pub fn number_above(&self, bound: f64) -> (f64, f64) {
        let at = self.bounds.partition_point(|upper| *upper < bound);
        let exact = self.bounds.get(at).is_some_and(|upper| *upper == bound);
        let up_to = |at: Option<usize>| at.map_or(0.0, |at| self.below[at]);
        let most_below = match at < self.bounds.len() {
            true => self.below[at],
            false => self.count,
        };
        let least_below = match exact {
            true => most_below,
            false => up_to(at.checked_sub(1)),
        };
        (self.count - most_below, self.count - least_below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A histogram of these observations with these bounds.
    fn histogram(bounds: &[f64], values: &[f64]) -> Histogram {
        let below = |bound: f64| values.iter().filter(|value| **value <= bound).count() as f64;
        let mut buckets: Vec<_> = bounds.iter().map(|bound| (*bound, below(*bound))).collect();
        buckets.push((f64::INFINITY, values.len() as f64));
        Histogram::new(
            buckets,
            Some(values.iter().sum()),
            Some(values.len() as f64),
        )
    }

    #[test]
    fn a_quantile_is_interpolated_within_its_bucket() {
        let values: Vec<f64> = (1..=1000)
            .map(|n| 0.025 + 0.025 * f64::from(n) / 1000.0)
            .collect();
        let all = histogram(&[0.01, 0.025, 0.05, 0.075], &values);
        let p95 = all.quantile(0.95).unwrap();
        assert!((p95.value - 0.04875).abs() < 1e-3, "{p95:?}");
        assert_eq!((p95.low, p95.high), (0.025, 0.05));
        // Whether a 40 ms bound is kept cannot be read from these buckets.
        assert_eq!(all.number_above(0.04), (0.0, 1000.0));
        assert_eq!(all.number_above(0.05), (0.0, 0.0));
        assert_eq!(all.number_above(9.0), (0.0, 0.0));
        let none = Histogram::new(vec![(1.0, 0.0)], None, None);
        assert_eq!((none.quantile(0.5), none.mean()), (None, None));
    }

    #[test]
    fn above_the_last_bucket_the_range_has_no_end() {
        let all = histogram(&[0.1], &[0.05, 2.0, 3.0, 4.0]);
        let p99 = all.quantile(0.99).unwrap();
        assert_eq!((p99.value, p99.high), (0.1, f64::INFINITY));
    }

    proptest! {
        /// The range contains the quantile of the observations, and a difference contains the new ones only.
        #[test]
        fn the_range_contains_the_quantile(
            values in prop::collection::vec(0.0..2.0f64, 1..200),
            share in 0.01..0.999f64,
            split in 0usize..200,
        ) {
            let bounds = [0.05, 0.1, 0.3, 0.7, 1.0, 1.5];
            let all = histogram(&bounds, &values);
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let rank = ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
            let range = all.quantile(share).unwrap();
            prop_assert!(range.low <= sorted[rank - 1] && sorted[rank - 1] <= range.high);
            prop_assert!(range.low <= range.value && range.value <= range.high);
            let (least, most) = all.number_above(0.4);
            let above = values.iter().filter(|value| **value > 0.4).count() as f64;
            prop_assert!(least <= above && above <= most);
            let split = split.min(values.len());
            let (first, rest) = values.split_at(split);
            let difference = all.since(&histogram(&bounds, first)).unwrap();
            let expected = histogram(&bounds, rest);
            prop_assert_eq!(&difference.below, &expected.below);
            prop_assert!((difference.sum - expected.sum).abs() < 1e-9);
        }
    }
}
