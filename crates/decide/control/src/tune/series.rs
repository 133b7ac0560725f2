//! A total that grows over time: joules drawn, items done.

use std::collections::VecDeque;

/// Totals by time in seconds, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    points: VecDeque<(f64, f64)>,
}

/// How fast a total grew in a span.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Growth {
    /// The first of its totals.
    pub(super) from: f64,
    /// The last.
    pub(super) to: f64,
    /// In a second, on average.
    pub(super) rate: f64,
    /// In a second, in each of several parts of about the same length.
    pub(super) parts: Vec<f64>,
    /// How long such a part is, on average.
    pub(super) part: f64,
    /// Standard deviation of the rate that comes of counting in whole steps, where that is how it was told.
    pub(super) by_steps: Option<f64>,
}

/// Parts of a span are at least this long: shorter ones tell more of the sensor than of the load.
const PART: f64 = 1.0;
/// Times that differ by no more, as a share, are a clock's.
const BY_CLOCK: f64 = 0.1;
/// So many totals tell whether it is one.
const LATEST: usize = 60;
/// Smaller steps, as a share of what is told at a time, are lost in other noise.
const COARSE: f64 = 0.05;
/// Totals that follow each other so closely are one.
const TOGETHER: f64 = 0.005;

impl Series {
    /// Adds a total, unless it is not newer than the last one or not a finite number. A smaller total is kept:
    /// callers that count up across restarts make sure that totals do not fall.
    pub(super) fn push(&mut self, at: f64, total: f64) {
        let is_news = self.points.back().is_none_or(|last| at > last.0);
        if !(is_news && at.is_finite() && total.is_finite()) {
            return;
        }
        let before = self.points.len().checked_sub(2);
        if before.is_some_and(|before| at - self.points[before].0 < TOGETHER) {
            self.points.pop_back();
        }
        self.points.push_back((at, total));
    }

    /// The same total as it was when another one was told, so that both are of whole items.
    pub(super) fn when(&self, other: &Self, from: f64, to: f64) -> Self {
        let first = other.points.partition_point(|point| point.0 < from);
        let end = other.points.partition_point(|point| point.0 <= to);
        let times = other.points.range(first.min(end)..end).map(|point| point.0);
        Self {
            points: times.filter_map(|at| Some((at, self.at(at)?))).collect(),
        }
    }

    pub(super) fn last(&self) -> Option<(f64, f64)> {
        self.points.back().copied()
    }

    pub(super) fn forget_before(&mut self, at: f64) {
        while self.points.len() > 2 && self.points[1].0 < at {
            self.points.pop_front();
        }
    }

    /// The total at a time, on the line through its neighbours.
    pub(super) fn at(&self, time: f64) -> Option<f64> {
        let after = self.points.partition_point(|point| point.0 < time);
        let last = self.points.len().checked_sub(1)?;
        if last == 0 {
            return Some(self.points[0].1);
        }
        let right = after.clamp(1, last);
        let left = match after > last {
            // Beyond the end the last second shows the way.
            true => self.points.partition_point(|point| point.0 < time - 1.0),
            false => right - 1,
        };
        let (a, b) = (self.points[left.min(right - 1)], self.points[right]);
        Some(a.1 + (b.1 - a.1) * (time - a.0) / (b.0 - a.0))
    }

    /// The mean time between totals from a time on.
    pub(super) fn spacing(&self, from: f64) -> Option<f64> {
        let first = self.points.partition_point(|point| point.0 < from);
        let count = self.points.len().checked_sub(first + 1)?;
        let (a, b) = (self.points.get(first)?, self.points.back()?);
        (count > 0).then(|| (b.0 - a.0) / count as f64)
    }

    /// How it grew from a time on, up to another; nothing where fewer than three totals tell it.
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
            if point.0 - begin.0 >= PART {
                parts.push((point.1 - begin.1) / (point.0 - begin.0));
                begin = *point;
            }
        }
        let covered = begin.0 - a.0;
        Some(Growth {
            from: a.0,
            to: b.0,
            // Errors of a count do not add up as those of a rate do; they are spread evenly, and so are the
            // times: both by the root of 12.
            by_steps: step(self.points.range(end.saturating_sub(LATEST)..end))
                .map(|step| step / ((b.0 - a.0) * (points.len() as f64).sqrt())),
            rate: slope(&points),
            part: covered / parts.len().max(1) as f64,
            parts,
        })
    }
}

/// The steps in which a total counts, where it is told by the clock: it is then off by up to one step each time.
fn step<'a>(points: impl Iterator<Item = &'a (f64, f64)> + Clone) -> Option<f64> {
    let pairs = || {
        let next = points.clone().skip(1);
        let pairs = points.clone().zip(next);
        pairs.map(|(a, b)| (b.0 - a.0, b.1 - a.1))
    };
    let (count, time, more) = pairs().fold((0.0, 0.0, 0.0), |(count, time, more), pair| {
        (count + 1.0, time + pair.0, more + pair.1)
    });
    let (time, more) = (time / count, more / count);
    let by_clock = pairs().all(|pair| (pair.0 / time - 1.0).abs() < BY_CLOCK);
    let is_even = pairs().all(|pair| (pair.1 - more).abs() < 1e-6 * more);
    if !by_clock || is_even {
        return None;
    }
    let least = 1e-3 * more;
    let step = pairs().fold(0.0, |step, pair| common(step, pair.1, least));
    (step > COARSE * more).then_some(step)
}

/// What divides both, but for less than so much.
fn common(a: f64, b: f64, least: f64) -> f64 {
    let (mut a, mut b) = (a.max(b), a.min(b));
    while b > least {
        let rest = a % b;
        // A remainder that is all but the whole is none.
        (a, b) = (b, if b - rest < least { 0.0 } else { rest });
    }
    a
}

/// By least squares: several processes that report one after the other make steps, which a line through the
/// first and the last total would not see.
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

    fn steady() -> Series {
        let mut series = Series::default();
        for tick in 0..40 {
            series.push(f64::from(tick) * 0.25, f64::from(tick) * 50.0);
        }
        series
    }

    #[test]
    fn growth_is_a_rate_and_its_parts() {
        let growth = steady().growth(2.0, 6.0).unwrap();
        assert_eq!((growth.from, growth.to), (2.0, 6.0));
        assert!((growth.rate - 200.0).abs() < 1e-9);
        assert_eq!((growth.parts.len(), growth.part), (4, 1.0));
        assert!(steady().growth(9.5, 20.0).is_none());
        assert!(steady().growth(6.0, 2.0).is_none());
    }

    #[test]
    fn whole_steps_told_by_the_clock_are_known_as_such() {
        let told = |every: f64, step: f64| {
            let mut series = Series::default();
            for tick in 0..12 {
                let at = f64::from(tick) * every;
                series.push(at, (at * 100.0 / step).floor() * step);
            }
            series.growth(0.0, 100.0).unwrap()
        };
        let stepped = told(1.0, 64.0);
        let sure = stepped.by_steps.unwrap() / stepped.rate;
        assert!((0.01..0.03).contains(&sure), "{sure}");
        assert!((stepped.rate - 100.0).abs() < 3.0, "{}", stepped.rate);
        assert_eq!(told(1.0, 1.0).by_steps, None);
        assert_eq!(steady().growth(2.0, 6.0).unwrap().by_steps, None);
    }

    #[test]
    fn totals_between_and_beyond_are_on_a_line() {
        let series = steady();
        assert!((series.at(1.1).unwrap() - 220.0).abs() < 1e-9);
        assert!((series.at(10.75).unwrap() - 2150.0).abs() < 1e-9);
        assert_eq!(Series::default().at(1.0), None);
    }

    #[test]
    fn what_is_old_or_no_number_is_no_news() {
        let mut series = steady();
        series.push(3.0, 1.0);
        series.push(f64::NAN, 1.0);
        series.push(11.0, f64::INFINITY);
        assert_eq!(series.last(), Some((9.75, 1950.0)));
        series.forget_before(9.0);
        assert_eq!(series.spacing(0.0), Some(0.25));
    }
}
