//! A total that grows over time, such as energy or items.

use std::collections::VecDeque;

/// A total that grows over time: pairs of a time in seconds and the total at that time, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct CumulativeSeries {
    points: VecDeque<(f64, f64)>,
}

/// How a total, such as energy or items, grew within a time span.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Growth {
    /// The time of the first total in the span, in seconds.
    pub(super) from: f64,
    /// The time of the last total in the span, in seconds.
    pub(super) to: f64,
    /// The mean growth of the total per second.
    pub(super) rate: f64,
    /// The growth per second in each of several parts of the time span, which have about the same length.
    pub(super) parts: Vec<f64>,
    /// The mean length of the parts in `parts`, in seconds.
    pub(super) part_length: f64,
    /// The standard deviation of `rate` because the total grows in whole steps; absent if it grows continuously.
    pub(super) step_error: Option<f64>,
}

/// The shortest part into which a time span is divided, in seconds: in shorter ones the sensor's errors dominate.
const MIN_PART: f64 = 1.0;
/// Reports are periodic if the times between them differ by less than this share.
const PERIODIC_TOLERANCE: f64 = 0.1;
/// The number of the latest totals that are checked for periodic reports.
const LATEST_TOTALS: usize = 60;
/// Whole steps of a total are ignored if they are below this share of the growth between two reports, because other
/// noise is larger.
const MIN_STEP_SHARE: f64 = 0.05;
/// Totals that arrive within this time, in seconds, are merged into one.
const MERGE_TIME: f64 = 0.005;

impl CumulativeSeries {
    /// Adds a total, unless it is older than the last one or not finite. Callers make sure that totals never fall.
    pub(super) fn push(&mut self, at: f64, total: f64) {
        let is_newer = self.points.back().is_none_or(|last| at > last.0);
        if !(is_newer && at.is_finite() && total.is_finite()) {
            return;
        }
        let before = self.points.len().checked_sub(2);
        if before.is_some_and(|before| at - self.points[before].0 < MERGE_TIME) {
            self.points.pop_back();
        }
        self.points.push_back((at, total));
    }

    /// Interpolates this series between `from` and `to` at the times of another series.
    pub(super) fn sampled_like(&self, other: &Self, from: f64, to: f64) -> Self {
        let first = other.points.partition_point(|point| point.0 < from);
        let end = other.points.partition_point(|point| point.0 <= to);
        let times = other.points.range(first.min(end)..end).map(|point| point.0);
        Self {
            points: times
                .filter_map(|at| Some((at, self.total_at(at)?)))
                .collect(),
        }
    }

    /// The latest time in seconds and the total at that time; `None` without totals.
    pub(super) fn last(&self) -> Option<(f64, f64)> {
        self.points.back().copied()
    }

    /// Drops totals from before this time.
    pub(super) fn forget_before(&mut self, at: f64) {
        while self.points.len() > 2 && self.points[1].0 < at {
            self.points.pop_front();
        }
    }

    /// The total at a time, interpolated linearly between the recorded totals.
    pub(super) fn total_at(&self, time: f64) -> Option<f64> {
        let after = self.points.partition_point(|point| point.0 < time);
        let last = self.points.len().checked_sub(1)?;
        if last == 0 {
            return Some(self.points[0].1);
        }
        let right = after.clamp(1, last);
        let left = match after > last {
            // After the last total, the growth of the last second is extrapolated.
            true => self.points.partition_point(|point| point.0 < time - 1.0),
            false => right - 1,
        };
        let (a, b) = (self.points[left.min(right - 1)], self.points[right]);
        Some(a.1 + (b.1 - a.1) * (time - a.0) / (b.0 - a.0))
    }

    /// The mean time between the totals since `from`.
    pub(super) fn spacing(&self, from: f64) -> Option<f64> {
        let first = self.points.partition_point(|point| point.0 < from);
        let count = self.points.len().checked_sub(first + 1)?;
        let (a, b) = (self.points.get(first)?, self.points.back()?);
        (count > 0).then(|| (b.0 - a.0) / count as f64)
    }

    /// How the total grew between two times; `None` if there are fewer than three totals between them.
    pub(super) fn growth(&self, from: f64, to: f64) -> Option<Growth> {
        let first = self.points.partition_point(|point| point.0 < from);
        let end = self.points.partition_point(|point| point.0 <= to);
        let points: Vec<(f64, f64)> = self.points.range(first.min(end)..end).copied().collect();
        if points.len() < 3 {
            return None;
        }
        let (a, b) = (points[0], points[points.len() - 1]);
        let mut parts = Vec::new();
        let mut begin = a;
        for point in &points[1..] {
            if point.0 - begin.0 >= MIN_PART {
                parts.push((point.1 - begin.1) / (point.0 - begin.0));
                begin = *point;
            }
        }
        let covered = begin.0 - a.0;
        Some(Growth {
            from: a.0,
            to: b.0,
            // Errors of counts do not accumulate like those of rates. They are uniformly distributed, hence the
            // factor sqrt(12).
            step_error: step_size(self.points.range(end.saturating_sub(LATEST_TOTALS)..end))
                .map(|step| step / ((b.0 - a.0) * (points.len() as f64).sqrt())),
            rate: slope(&points),
            part_length: covered / parts.len().max(1) as f64,
            parts,
        })
    }
}

/// The step by which a periodically reported total grows; `None` if there is no such step. Each report is then off by
/// up to one step.
fn step_size<'a>(points: impl Iterator<Item = &'a (f64, f64)> + Clone) -> Option<f64> {
    let pairs = || {
        let next = points.clone().skip(1);
        let pairs = points.clone().zip(next);
        pairs.map(|(a, b)| (b.0 - a.0, b.1 - a.1))
    };
    let (count, time, more) = pairs().fold((0.0, 0.0, 0.0), |(count, time, more), pair| {
        (count + 1.0, time + pair.0, more + pair.1)
    });
    let (time, more) = (time / count, more / count);
    let is_periodic = pairs().all(|pair| (pair.0 / time - 1.0).abs() < PERIODIC_TOLERANCE);
    let is_even = pairs().all(|pair| (pair.1 - more).abs() < 1e-6 * more);
    if !is_periodic || is_even {
        return None;
    }
    let least = 1e-3 * more;
    let step = pairs().fold(0.0, |step, pair| common_divisor(step, pair.1, least));
    (step > MIN_STEP_SHARE * more).then_some(step)
}

/// The greatest common divisor of two numbers, up to a tolerance.
fn common_divisor(a: f64, b: f64, tolerance: f64) -> f64 {
    let (mut a, mut b) = (a.max(b), a.min(b));
    while b > tolerance {
        let rest = a % b;
        // A remainder that almost equals the divisor counts as 0.
        (a, b) = (b, if b - rest < tolerance { 0.0 } else { rest });
    }
    a
}

/// The slope of the least-squares line through times and totals. If several processes report in turn, the totals grow
/// in uneven steps, and a line through the first and the last total would be inaccurate.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (at, total) = (mean(|point| point.0), mean(|point| point.1));
    let (mut above, mut below) = (0.0, 0.0);
    for point in points {
        above += (point.0 - at) * (point.1 - total);
        below += (point.0 - at) * (point.0 - at);
    }
    above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady() -> CumulativeSeries {
        let mut series = CumulativeSeries::default();
        for tick in 0..40 {
            series.push(f64::from(tick) * 0.25, f64::from(tick) * 50.0);
        }
        series
    }

    #[test]
    fn growth_has_a_rate_and_parts() {
        let growth = steady().growth(2.0, 6.0).unwrap();
        assert_eq!((growth.from, growth.to), (2.0, 6.0));
        assert!((growth.rate - 200.0).abs() < 1e-9);
        assert_eq!((growth.parts.len(), growth.part_length), (4, 1.0));
        assert!(steady().growth(9.5, 20.0).is_none());
        assert!(steady().growth(6.0, 2.0).is_none());
    }

    #[test]
    fn periodic_reports_in_whole_steps_have_a_step_error() {
        let reported = |every: f64, step: f64| {
            let mut series = CumulativeSeries::default();
            for tick in 0..12 {
                let at = f64::from(tick) * every;
                series.push(at, (at * 100.0 / step).floor() * step);
            }
            series.growth(0.0, 100.0).unwrap()
        };
        let stepped = reported(1.0, 64.0);
        let error = stepped.step_error.unwrap() / stepped.rate;
        assert!((0.01..0.03).contains(&error), "{error}");
        assert!((stepped.rate - 100.0).abs() < 3.0, "{}", stepped.rate);
        assert_eq!(reported(1.0, 1.0).step_error, None);
        assert_eq!(steady().growth(2.0, 6.0).unwrap().step_error, None);
    }

    #[test]
    fn totals_are_interpolated_and_extrapolated() {
        let series = steady();
        assert!((series.total_at(1.1).unwrap() - 220.0).abs() < 1e-9);
        assert!((series.total_at(10.75).unwrap() - 2150.0).abs() < 1e-9);
        assert_eq!(CumulativeSeries::default().total_at(1.0), None);
    }

    #[test]
    fn old_and_invalid_totals_are_ignored() {
        let mut series = steady();
        series.push(3.0, 1.0);
        series.push(f64::NAN, 1.0);
        series.push(11.0, f64::INFINITY);
        assert_eq!(series.last(), Some((9.75, 1950.0)));
        series.forget_before(9.0);
        assert_eq!(series.spacing(0.0), Some(0.25));
    }
}
