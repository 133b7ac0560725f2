//! Predicts the power, the latency and the throughput of candidates that were not tried.
//!
//! The time of a batch is about linear in its size, and its power is about linear in its throughput: each item costs the
//! same energy on top of the power of a waiting device. If the device waits between batches, for instance for the host to
//! prepare the next one, its power alternates. A mean over the averaging time then depends on how many batches it
//! contains: if it is a whole number, all means are equal, and otherwise some contain more of the busy times than others.

use super::BatchSearch;

/// Beyond the measured candidates, power is assumed to grow faster than between the last two of them by this factor.
const EXTRAPOLATION_MARGIN: f64 = 1.25;
/// A trend is taken from candidates whose values differ by at least this factor, if there are such: between closer ones
/// the noise is larger than the difference.
const TREND_DISTANCE: f64 = 1.2;
/// A candidate is much smaller if another one is larger by this factor.
const MUCH_SMALLER: f64 = 4.0;
/// The smallest relative difference of throughputs from which a trend of the power is taken.
const RATE_DIFFERENCE: f64 = 0.005;
/// The highest mean power must exceed the mean of the window by this share to count as alternating.
const ALTERNATING_SHARE: f64 = 0.01;
/// The smallest share of a mean's time that may be unevenly filled for the alternation to be measured.
const UNEVEN_SHARE: f64 = 0.02;

impl BatchSearch {
    /// The measured or predicted power of a candidate in watts; `None` if too little was measured.
    pub fn predicted_power(&self, index: usize) -> Option<f64> {
        if let Some(known) = self.candidates[index].power() {
            return Some(known);
        }
        let even = self.predicted_even_power(index)?;
        Some(even + self.swing * self.uneven_share(index, 1.0))
    }

    /// The predicted power of the device in the busy part of a batch in watts, if the load alternates.
    pub fn predicted_peak(&self, index: usize) -> Option<f64> {
        Some(self.predicted_even_power(index)? + self.swing)
    }

    /// The predicted power of a candidate in watts if its mean powers were even.
    fn predicted_even_power(&self, index: usize) -> Option<f64> {
        let even_power = |at: usize| {
            let power = self.candidates[at].power()?;
            Some(power - self.swing * self.uneven_share(at, 1.0))
        };
        if let Some(known) = even_power(index) {
            return Some(known);
        }
        let by_value = |at: usize| Some(self.linear_scale[at]);
        let by_rate = |at: usize| self.averaging_time.and_then(|_| self.predicted_rate(at));
        self.extrapolate(index, by_rate, even_power)
            .or_else(|| self.extrapolate(index, by_value, even_power))
    }

    /// A prediction of a candidate's power in watts that is rather too high than too low.
    pub(super) fn safe_power(&self, index: usize) -> Option<f64> {
        let power = |at: usize| self.candidates[at].power();
        power(index).or_else(|| self.extrapolate(index, |at| Some(self.safe_scale[at]), power))
    }

    /// The measured or predicted latency of a candidate in seconds; `None` if too little was measured.
    pub fn predicted_latency(&self, index: usize) -> Option<f64> {
        let p99 = |at: usize| self.candidates[at].measurement().map(|own| own.p99);
        self.linear_in_value(index, p99)
    }

    /// The measured or predicted throughput of a candidate in items per second; `None` if too little was measured.
    pub(super) fn predicted_rate(&self, index: usize) -> Option<f64> {
        self.predicted_period(index)
            .map(|period| self.values[index] / period.max(1e-9))
    }

    /// The throughput of a candidate in items per second that much smaller candidates suggest; `None` if fewer than two of
    /// them were measured.
    pub fn rate_expected_from_smaller(&self, index: usize) -> Option<f64> {
        let is_smaller = |at: usize| MUCH_SMALLER * self.values[at] <= self.values[index];
        let period = |at: usize| is_smaller(at).then(|| self.measured_period(at)).flatten();
        let x_of = |at: usize| Some(self.values[at]);
        let period = self.line_through(index, x_of, period, 1.0)?;
        Some(self.values[index] / period.max(1e-9))
    }

    /// The measured time from batch to batch in seconds.
    fn measured_period(&self, index: usize) -> Option<f64> {
        let rate = self.candidates[index].measurement()?.rate;
        (rate > 0.0).then(|| self.values[index] / rate)
    }

    /// The measured or predicted time from batch to batch in seconds.
    fn predicted_period(&self, index: usize) -> Option<f64> {
        self.linear_in_value(index, |at| self.measured_period(at))
    }

    /// Computes again by how much the power alternates between batches, from the measured candidates.
    pub fn update_swing(&mut self) {
        let seen = (0..self.candidates.len()).filter_map(|at| {
            let own = self.candidates[at].measurement()?;
            let difference = own.power - own.mean_power;
            let share = self.uneven_share(at, 1.0);
            let is_clear = difference > ALTERNATING_SHARE * own.mean_power && share > UNEVEN_SHARE;
            is_clear.then_some((difference, share))
        });
        let (product, square) = seen.fold((0.0, 0.0), |(product, square), (difference, share)| {
            (product + difference * share, square + share * share)
        });
        self.swing = if square > 0.0 { product / square } else { 0.0 };
    }

    /// The share of the averaging time by which a mean may contain more, or less, of the busy times than the average mean:
    /// the time that is left after as many whole batches as fit, or that is missing to one more. Batches take `slower` times
    /// as long as predicted.
    pub(super) fn uneven_share(&self, index: usize, slower: f64) -> f64 {
        let (Some(averaging_time), Some(period)) =
            (self.averaging_time, self.predicted_period(index))
        else {
            return 0.0;
        };
        let period = slower * period;
        let rest = averaging_time % period.max(1e-6);
        rest.min(period - rest).max(0.0) / averaging_time
    }

    /// The known value of a candidate, or one that is linear in the size or clock.
    fn linear_in_value(&self, index: usize, known: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let x_of = |at: usize| Some(self.values[at]);
        known(index).or_else(|| self.line_through(index, x_of, &known, 1.0))
    }

    /// A power that is linear in `x_of`, with a margin beyond the measured candidates.
    fn extrapolate(
        &self,
        index: usize,
        x_of: impl Fn(usize) -> Option<f64>,
        power: impl Fn(usize) -> Option<f64>,
    ) -> Option<f64> {
        self.line_through(index, x_of, power, EXTRAPOLATION_MARGIN)
    }

    /// Interpolates between the nearest candidates whose value is known, or extrapolates from two smaller ones with their
    /// slope multiplied by `margin` if it is positive. `None` if there are too few, or if they are too close together.
    fn line_through(
        &self,
        index: usize,
        x_of: impl Fn(usize) -> Option<f64>,
        value: impl Fn(usize) -> Option<f64>,
        margin: f64,
    ) -> Option<f64> {
        let point = |at: usize| {
            let y = value(at)?;
            Some((x_of(at)?, y))
        };
        let mut below = (0..index).rev().filter(|at| value(*at).is_some());
        let nearest = below.next()?;
        let x = x_of(index)?;
        let right = (index + 1..self.candidates.len()).find_map(point);
        if let (Some(left), Some(right)) = (point(nearest), right) {
            return Some(left.1 + slope(left, right)? * (x - left.0));
        }
        let is_far = |at: &usize| self.values[nearest] >= TREND_DISTANCE * self.values[*at];
        let farthest = below.clone().last();
        let second = below.find(is_far).or(farthest)?;
        let (left, right) = (point(second)?, point(nearest)?);
        let slope = slope(left, right)?;
        let slope = if slope > 0.0 { slope * margin } else { slope };
        Some(right.1 + slope * (x - right.0))
    }
}

/// The slope of the line through two points; `None` if they have about the same `x`.
fn slope(left: (f64, f64), right: (f64, f64)) -> Option<f64> {
    let distance = right.0 - left.0;
    let is_far = distance.abs() > RATE_DIFFERENCE * left.0.abs();
    is_far.then(|| (right.1 - left.1) / distance)
}
