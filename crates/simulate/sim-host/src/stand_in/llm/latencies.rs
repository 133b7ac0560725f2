//! Quantiles of any number of latencies in little memory.

use sweetspot_quantity::Seconds;

/// The shortest latency that is told apart, in seconds.
const SHORTEST: f64 = 1e-5;
/// The ratio of neighbouring bounds.
const RATIO: f64 = 1.02;
/// The number of counts; the highest bound is about 6,000 s.
const COUNTS: usize = 1024;

/// Counts of latencies, which are told apart by 2 %.
#[derive(Clone, Debug)]
pub struct Latencies {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            counts: vec![0; COUNTS],
            total: 0,
        }
    }
}

impl Latencies {
    /// Counts a latency.
    pub fn add(&mut self, latency: Seconds) {
        let at = (latency.get() / SHORTEST).max(1.0).ln() / RATIO.ln();
        self.counts[(at as usize).min(COUNTS - 1)] += 1;
        self.total += 1;
    }

    /// A quantile; `None` without latencies.
    pub fn quantile(&self, quantile: f64) -> Option<Seconds> {
        let rank = (self.total as f64 * quantile).ceil().max(1.0) as u64;
        let mut below = 0;
        let at = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        Some(Seconds::new(SHORTEST * RATIO.powf(at as f64 + 0.5)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_off_by_at_most_a_percent() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), None);
        for number in 1..=1000 {
            latencies.add(Seconds::new(f64::from(number) * 1e-3));
        }
        for (quantile, expected) in [(0.5, 0.5), (0.95, 0.95), (0.99, 0.99)] {
            let found = latencies.quantile(quantile).unwrap().get();
            assert!((found / expected - 1.0).abs() < 0.011, "{found}");
        }
        latencies.add(Seconds::new(1e9));
        assert!(latencies.quantile(1.0).unwrap() > Seconds::new(5000.0));
    }
}
