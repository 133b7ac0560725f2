//! What a simulated engine did, as vLLM writes it on its metrics page.

use std::fmt::Write;

use super::engine::{GeneratedToken, LlmEngine};
use sweetspot_quantity::Seconds;

/// The bounds of vLLM's histograms (`vllm/v1/metrics/loggers.py`).
const FIRST_TOKEN: [f64; 19] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0,
];
const INTER_TOKEN: [f64; 19] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
const END_TO_END: [f64; 15] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 120.0,
];

/// A histogram of latencies.
#[derive(Clone, Debug)]
struct Times {
    name: &'static str,
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

/// What a simulated engine did since it started.
#[derive(Clone, Debug)]
pub struct LlmMetrics {
    prompt_tokens: u64,
    generated_tokens: u64,
    requests: u64,
    times: [Times; 3],
}

impl Default for LlmMetrics {
    fn default() -> Self {
        let times = |name, bounds: &'static [f64]| Times {
            name,
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        };
        Self {
            prompt_tokens: 0,
            generated_tokens: 0,
            requests: 0,
            times: [
                times("time_to_first_token_seconds", &FIRST_TOKEN),
                times("inter_token_latency_seconds", &INTER_TOKEN),
                times("e2e_request_latency_seconds", &END_TO_END),
            ],
        }
    }
}

impl LlmMetrics {
    /// Counts a token that was generated at this time.
    pub fn add(&mut self, token: &GeneratedToken, now: Seconds) {
        self.generated_tokens += 1;
        let [first, next, whole] = &mut self.times;
        match token.is_first {
            true => {
                self.prompt_tokens += token.request.prompt;
                first.observe(token.latency);
            }
            false => next.observe(token.latency),
        }
        if token.is_last {
            self.requests += 1;
            whole.observe(now - token.request.arrival);
        }
    }

    /// The metrics page.
    pub fn page(&self, engine: &LlmEngine) -> String {
        let mut page = String::with_capacity(8 << 10);
        let label = "{engine=\"0\",model_name=\"simulated\"}";
        let numbers = [
            ("num_requests_running", "gauge", engine.running() as u64),
            ("num_requests_waiting", "gauge", engine.waiting() as u64),
            ("prompt_tokens_total", "counter", self.prompt_tokens),
            ("generation_tokens_total", "counter", self.generated_tokens),
            ("request_success_total", "counter", self.requests),
        ];
        for (name, kind, value) in numbers {
            let _ = writeln!(
                page,
                "# TYPE vllm:{name} {kind}\nvllm:{name}{label} {value}"
            );
        }
        let usage = engine.cache_usage().get();
        let _ = writeln!(
            page,
            "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{label} {usage}"
        );
        for times in &self.times {
            times.write(&mut page, label);
        }
        page
    }
}

impl Times {
    fn observe(&mut self, time: Seconds) {
        let at = self.bounds.partition_point(|bound| *bound < time.get());
        self.counts[at] += 1;
        self.sum += time.get();
    }

    fn write(&self, page: &mut String, label: &str) {
        let name = self.name;
        let _ = writeln!(page, "# TYPE vllm:{name} histogram");
        let mut below = 0;
        for (at, count) in self.counts.iter().enumerate() {
            below += count;
            let bound = self
                .bounds
                .get(at)
                .map_or("+Inf".to_owned(), f64::to_string);
            let _ = writeln!(
                page,
                "vllm:{name}_bucket{{engine=\"0\",le=\"{bound}\",model_name=\"simulated\"}} {below}"
            );
        }
        let _ = writeln!(
            page,
            "vllm:{name}_count{label} {below}\nvllm:{name}_sum{label} {}",
            self.sum
        );
    }
}
