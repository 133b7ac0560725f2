//! Requests that arrive at a simulated language model.

use sweetspot_quantity::Seconds;
use sweetspot_stats::Seed;

use super::engine::LlmRequest;

/// How the rate of requests changes over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TraceShape {
    /// The mean rate stays the same.
    Steady,
    /// Now and then a burst of some seconds, in which the rate is several times as high.
    Bursts {
        /// The mean time between two bursts.
        every: Seconds,
        /// The length of a burst.
        length: Seconds,
        /// How many times as high the rate is in a burst.
        factor: f64,
    },
    /// The rate of a day, from a quarter in the night to the full rate, within this time; with bursts as above.
    Day {
        /// The length of the day.
        length: Seconds,
    },
}

/// A description of the requests that arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LlmTrace {
    /// The mean rate without bursts, in requests per second.
    pub rate: f64,
    /// How the rate changes over time.
    pub shape: TraceShape,
    /// The median number of tokens of a prompt.
    pub prompt: f64,
    /// The median number of tokens of an answer.
    pub output: f64,
    /// How much lengths differ: the standard deviation of their logarithm.
    pub spread: f64,
    /// How long requests arrive.
    pub time: Seconds,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// The longest prompt and the longest answer, in tokens.
const MAX_TOKENS: f64 = 8192.0;

impl LlmTrace {
    /// The requests in order of arrival.
    pub fn requests(&self) -> Vec<LlmRequest> {
        let seed = Seed::new(self.seed).label("llm trace");
        let highest = self.rate * self.highest_factor();
        let mut requests = Vec::new();
        let (mut now, mut draw) = (0.0, 0_u64);
        let mut uniform = |label: &str| {
            draw += 1;
            seed.label(label).number(draw).uniform()
        };
        // Arrivals at the highest rate are thinned out to the rate of each moment.
        if highest <= 0.0 {
            return requests;
        }
        loop {
            now -= (1.0 - uniform("gap")).max(1e-12).ln() / highest;
            if now >= self.time.get() {
                break;
            }
            if uniform("thin") * highest > self.rate_at(now) {
                continue;
            }
            let id = requests.len() as u64;
            let length = |median: f64, label: &str| {
                let normal = seed.label(label).number(id).normal();
                (median * (self.spread * normal).exp()).clamp(1.0, MAX_TOKENS) as u64
            };
            requests.push(LlmRequest {
                id,
                arrival: Seconds::new(now),
                prompt: length(self.prompt, "prompt"),
                output: length(self.output, "output"),
            });
        }
        requests
    }

    /// The highest rate relative to the mean one.
    fn highest_factor(&self) -> f64 {
        match self.shape {
            TraceShape::Steady => 1.0,
            TraceShape::Bursts { factor, .. } => factor.max(1.0),
            TraceShape::Day { .. } => DAY_BURST,
        }
    }

    /// The rate at a moment, in requests per second.
    fn rate_at(&self, now: f64) -> f64 {
        let in_burst = |every: f64, length: f64| {
            let number = (now / every).floor();
            let start = Seed::new(self.seed)
                .label("burst")
                .number(number as u64)
                .uniform();
            let begin = number * every + start * (every - length).max(0.0);
            now >= begin && now < begin + length
        };
        match self.shape {
            TraceShape::Steady => self.rate,
            TraceShape::Bursts {
                every,
                length,
                factor,
            } => {
                self.rate
                    * if in_burst(every.get(), length.get()) {
                        factor
                    } else {
                        1.0
                    }
            }
            TraceShape::Day { length } => {
                let day = 0.625 - 0.375 * (now / length.get() * std::f64::consts::TAU).cos();
                let burst = in_burst(length.get() / 24.0, length.get() / 240.0);
                self.rate * day * if burst { DAY_BURST } else { 1.0 }
            }
        }
    }
}

/// How many times as high the rate is in a burst of a day.
const DAY_BURST: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_its_rate_and_its_bursts() {
        let mut trace = LlmTrace {
            rate: 5.0,
            shape: TraceShape::Steady,
            prompt: 400.0,
            output: 200.0,
            spread: 0.5,
            time: Seconds::new(1000.0),
            seed: 3,
        };
        let steady = trace.requests();
        assert!(
            (steady.len() as f64 / 5000.0 - 1.0).abs() < 0.05,
            "{}",
            steady.len()
        );
        assert!(
            steady
                .windows(2)
                .all(|pair| pair[0].arrival <= pair[1].arrival)
        );
        assert_eq!(steady, trace.requests());
        trace.shape = TraceShape::Bursts {
            every: Seconds::new(100.0),
            length: Seconds::new(10.0),
            factor: 6.0,
        };
        let bursts = trace.requests();
        assert!(
            (bursts.len() as f64 / 7500.0 - 1.0).abs() < 0.07,
            "{}",
            bursts.len()
        );
    }
}
