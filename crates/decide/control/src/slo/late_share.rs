//! What share of a server's latencies is above a bound, also where the bound lies within a bucket of the server's histogram.

use std::collections::VecDeque;

use sweetspot_metrics::{Histogram, MetricsChange};
use sweetspot_quantity::Seconds;

use super::target::{LatencyKind, Slo};

/// Tokens above the bucket of the bound took on average this many times the bucket's upper end.
const MEAN_ABOVE_BUCKET: f64 = 1.2;

/// The largest number of stored latencies of requests of our own: those of a minute.
const MAX_PROBED: usize = 512;
/// The fewest latencies of requests of our own within a bucket that tell its distribution.
const MIN_PROBED: usize = 10;

/// The latencies of one kind at one clock and load; old ones fade.
#[derive(Clone, Debug, Default)]
pub(super) struct LatencyWindow {
    times: Histogram,
    /// Independent observations: requests, or steps of the server, which give a token to each running request.
    observations: f64,
    /// Tokens of steps that processed no prompt, and the sum of their times.
    plain_tokens: f64,
    plain_sum: f64,
    /// The latencies of requests of our own, of which the newest ones are stored.
    probed: VecDeque<f64>,
}

impl LatencyWindow {
    /// Adds the latencies of a page; those before count with a factor. `plain_step` is the time of a step without prompts.
    pub fn add(
        &mut self,
        kind: LatencyKind,
        times: &Histogram,
        change: &MetricsChange,
        plain_step: Option<f64>,
        fade: f64,
    ) {
        self.times.fade(fade);
        self.observations *= fade;
        self.plain_tokens *= fade;
        self.plain_sum *= fade;
        self.times.add(times);
        let tokens = times.count();
        if kind != LatencyKind::InterToken {
            self.observations += tokens;
            return;
        }
        let running = change.running.unwrap_or(1.0).max(1.0);
        let steps = tokens / running;
        self.observations += steps;
        if let Some(plain_step) = plain_step {
            let plain = tokens * share_without_prompts(change, steps);
            self.plain_tokens += plain;
            self.plain_sum += plain * plain_step;
        }
    }

    /// Adds latencies of a request of our own.
    pub fn add_probe(&mut self, times: &[Seconds]) {
        self.probed.extend(times.iter().map(|time| time.get()));
        let surplus = self.probed.len().saturating_sub(MAX_PROBED);
        self.probed.drain(..surplus);
    }

    /// The number of independent observations. Requests of our own count where the server reports nothing.
    pub fn observations(&self) -> f64 {
        match self.times.count() > 0.0 {
            true => self.observations,
            false => self.probed.len() as f64,
        }
    }

    /// The share of the latencies of our own requests above a bound, among those between two others; `None` if there are
    /// too few.
    fn probed_share(&self, bound: f64, low: f64, high: f64) -> Option<f64> {
        let within = self.probed.iter();
        let within = within.filter(|time| **time > low && **time <= high);
        let (late, all) = within.fold((0, 0), |(late, all), time| {
            (late + usize::from(*time > bound), all + 1)
        });
        (all >= MIN_PROBED).then(|| late as f64 / all as f64)
    }

    /// The share of observations above a bound.
    pub fn share_above(&self, slo: &Slo, bound: Seconds) -> f64 {
        let (bound, count) = (bound.get(), self.times.count());
        if count <= 0.0 {
            let probed = self.probed_share(bound, 0.0, f64::INFINITY);
            return probed.unwrap_or(0.0);
        }
        let (least, most) = self.times.number_above(bound);
        let between = most - least;
        if between <= 0.0 {
            return least / count;
        }
        let (low, high) = self.times.bucket_around(bound);
        if let Some(share) = self.probed_share(bound, low, high) {
            return (least + between * share) / count;
        }
        let share = self
            .mean_in_bucket(slo.kind, bound, least, between)
            .map_or_else(
                || self.times.share_of_bucket_above(bound) * between,
                |(slow, mean, low, high)| slow * share_above_in_bucket(mean, low, high, bound),
            );
        (least + share) / count
    }

    /// The number of tokens of steps with prompts in the bucket of the bound, their mean, and the bucket's ends. The mean
    /// follows from the sum of all times, which the server reports exactly. `None` if it is unknown.
    fn mean_in_bucket(
        &self,
        kind: LatencyKind,
        bound: f64,
        above: f64,
        between: f64,
    ) -> Option<(f64, f64, f64, f64)> {
        let (low, high) = self.times.bucket_around(bound);
        if kind != LatencyKind::InterToken || !high.is_finite() {
            return None;
        }
        let plain_mean = (self.plain_tokens > 0.0).then(|| self.plain_sum / self.plain_tokens);
        let below = self.times.count() - above - between;
        // Steps without prompts take nearly the same time each: they are all below the bucket, or all in it.
        let is_plain_below = plain_mean.is_none_or(|mean| mean <= low);
        let (slow_below, slow) = match is_plain_below {
            true => ((below - self.plain_tokens).max(0.0), between),
            false => (below, (between - self.plain_tokens).max(0.0)),
        };
        if slow <= 0.0 {
            return Some((
                between,
                plain_mean.unwrap_or(low).clamp(low, high),
                low,
                high,
            ));
        }
        let mean_below = 0.5 * (low + plain_mean.map_or(0.5 * low, |mean| mean.min(low)));
        let elsewhere = self.plain_sum + slow_below * mean_below + above * MEAN_ABOVE_BUCKET * high;
        let mean = (self.times.sum() - elsewhere) / slow;
        Some((slow, mean.clamp(low, high), low, high))
    }
}

/// The share of steps that processed no prompt, if prompts arrive independently of each other.
fn share_without_prompts(change: &MetricsChange, steps: f64) -> f64 {
    let prompts = change.first_token.as_ref().map_or(0.0, Histogram::count);
    match (change.prompt_tokens, steps > 0.0) {
        (Some(0.0), _) => 1.0,
        (_, true) => (-prompts / steps).exp(),
        _ => 0.0,
    }
}

/// The share of a bucket's observations above a value, given their mean: that of the distribution of which nothing else is
/// known (of the largest entropy), an exponential one cut off at the ends of the bucket.
fn share_above_in_bucket(mean: f64, low: f64, high: f64, bound: f64) -> f64 {
    /// The steepest distribution that is distinguished, as a rate over the width of the bucket.
    const STEEPEST: f64 = 60.0;
    let width = high - low;
    if width <= 0.0 {
        return 1.0;
    }
    let (wanted, at) = ((mean - low) / width, (bound - low) / width);
    // The mean falls as the rate grows.
    let mean_at = |rate: f64| match rate.abs() < 1e-6 {
        true => 0.5 - rate / 12.0,
        false => 1.0 / rate - 1.0 / rate.exp_m1(),
    };
    let (mut least, mut most) = (-STEEPEST, STEEPEST);
    for _ in 0..30 {
        let middle = 0.5 * (least + most);
        match mean_at(middle) > wanted {
            true => least = middle,
            false => most = middle,
        }
    }
    let rate = 0.5 * (least + most);
    let share = match rate.abs() < 1e-6 {
        true => 1.0 - at,
        false => ((-rate * at).exp() - (-rate).exp()) / (-(-rate).exp_m1()),
    };
    share.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The histogram of these times with vLLM's buckets.
    fn histogram(times: &[f64]) -> Histogram {
        let bounds = [0.01, 0.025, 0.05, 0.075, 0.1];
        let below = |bound: f64| times.iter().filter(|time| **time <= bound).count() as f64;
        Histogram::new(
            bounds.map(|bound| (bound, below(bound))).to_vec(),
            Some(times.iter().sum()),
            Some(times.len() as f64),
        )
    }

    /// Steps of ten requests: 12 ms without prompts, and so many with prompts that take `from` to `to` milliseconds.
    fn share_of_late(with_prompts: usize, from: f64, to: f64) -> (f64, f64) {
        let mut window = LatencyWindow::default();
        let slo: Slo = "itl-p95=40ms".parse().unwrap();
        let slow: Vec<f64> = (0..with_prompts)
            .map(|n| 1e-3 * (from + (to - from) * (n as f64 + 0.5) / with_prompts as f64))
            .collect();
        let steps = 500.0;
        let mut times = vec![0.012; 10 * (500 - with_prompts)];
        times.extend(slow.iter().flat_map(|time| [*time; 10]));
        let all = histogram(&times);
        let prompts = -(1.0 - with_prompts as f64 / steps).ln() * steps;
        let change = MetricsChange {
            prompt_tokens: Some(1000.0),
            running: Some(10.0),
            first_token: Some(Histogram::new(vec![(1.0, prompts)], None, Some(prompts))),
            ..MetricsChange::default()
        };
        window.add(slo.kind, &all, &change, Some(0.012), 1.0);
        assert!((window.observations() - steps).abs() < 1e-6);
        let truth = times.iter().filter(|time| **time > 0.04).count() as f64 / times.len() as f64;
        (window.share_above(&slo, slo.bound), truth)
    }

    #[test]
    fn late_tokens_are_found_although_the_bound_is_within_a_bucket() {
        for (with_prompts, from, to) in [
            (60, 15.0, 38.0),
            (60, 18.0, 45.0),
            (100, 20.0, 49.0),
            (25, 30.0, 36.0),
            (60, 15.0, 24.0),
        ] {
            let (found, truth) = share_of_late(with_prompts, from, to);
            assert!(
                (found - truth).abs() < 0.025,
                "{with_prompts} from {from} to {to}: {found} in place of {truth}"
            );
        }
    }

    #[test]
    fn requests_of_our_own_tell_what_buckets_leave_open() {
        let slo: Slo = "itl-p95=40ms".parse().unwrap();
        let mut window = LatencyWindow::default();
        let times = histogram(&[0.039; 100]);
        let change = MetricsChange::default();
        window.add(slo.kind, &times, &change, None, 1.0);
        let guessed = window.share_above(&slo, slo.bound);
        assert!(guessed > 0.3, "{guessed}");
        window.add_probe(&[Seconds::new(0.039); 20]);
        assert_eq!(window.share_above(&slo, slo.bound), 0.0);
        // Those outside of the bucket say nothing of it.
        window.add_probe(&[Seconds::new(0.3); 20]);
        assert_eq!(window.share_above(&slo, slo.bound), 0.0);
        // Where the server reports nothing they are all there is.
        let mut alone = LatencyWindow::default();
        alone.add_probe(&[Seconds::new(0.039); 30]);
        alone.add_probe(&[Seconds::new(0.041); 10]);
        assert_eq!(alone.observations(), 40.0);
        assert_eq!(alone.share_above(&slo, slo.bound), 0.25);
    }

    #[test]
    fn the_mean_decides_within_a_bucket() {
        let even = share_above_in_bucket(37.5, 25.0, 50.0, 40.0);
        assert!((even - 0.4).abs() < 1e-3, "{even}");
        assert!(share_above_in_bucket(28.0, 25.0, 50.0, 40.0) < 0.01);
        assert!(share_above_in_bucket(48.0, 25.0, 50.0, 40.0) > 0.98);
        assert_eq!(share_above_in_bucket(30.0, 25.0, 25.0, 25.0), 1.0);
    }
}
