//! What a server of language models did while it was measured; part of `sweetspot.run/1`.

use schemars::JsonSchema;
use serde::Serialize;

/// What a server of language models did in the measurement window.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Serving {
    /// The kind of server, such as `vLLM`.
    pub server: String,
    /// The measurement window: `steady` (from when the largest batch ran until the queue was empty), `busy` (from the
    /// first request to the last one, if none had to wait) or `requested` (as --window says).
    pub window: &'static str,
    /// The number of prompt tokens that were processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<f64>,
    /// The number of generated tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generated_tokens: Option<f64>,
    /// The number of answered requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<f64>,
    /// The energy of all devices for each prompt token, in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_prompt_token_j: Option<f64>,
    /// The energy of all devices for each generated token, in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_generated_token_j: Option<f64>,
    /// The energy of all devices for each request, in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_per_request_j: Option<f64>,
    /// The mean number of requests that ran at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_running: Option<f64>,
    /// The largest number of requests that waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_waiting: Option<f64>,
    /// The times from requests to their first tokens, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_first_token_s: Option<Latency>,
    /// The times between two tokens of a request, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inter_token_latency_s: Option<Latency>,
    /// The times of whole requests, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_latency_s: Option<Latency>,
    /// How often the server restarted in the run.
    pub restarts: u32,
    /// The latencies of the requests of --probe-request, of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes: Option<ServingProbes>,
    /// The latency bounds that were to be kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slos: Vec<LatencyBound>,
    /// The core clocks that were set to keep them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Vec<ClockChange>>,
    /// How long setting a clock took on average, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_time_s: Option<f64>,
    /// Whether the GPU refused a core clock, after which its earlier settings were restored; absent if it did not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clocks_refused: bool,
    /// The bound on power, and what became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<ServingPower>,
}

/// The latencies of small requests that were sent to time their tokens.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ServingProbes {
    /// The number of requests that were answered.
    pub requests: usize,
    /// The longest time to a first token, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_first_token_s: Option<f64>,
    /// The median time between two tokens, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inter_token_p50_s: Option<f64>,
    /// The 95th percentile of the times between two tokens, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inter_token_p95_s: Option<f64>,
}

/// The bound on the power of all GPUs that a server used, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ServingPower {
    /// The bound in watts.
    pub below_w: f64,
    /// The mean power in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_w: Option<f64>,
    /// The share of the time after settling in which the mean power of a second was above the bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation_share: Option<f64>,
    /// Whether it was above the bound for less than 1 % of that time; absent if the run was too short to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
}

/// A latency bound, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyBound {
    /// The bound as on the command line.
    pub slo: String,
    /// The bound in seconds.
    pub bound_s: f64,
    /// Whether it was kept; absent if the buckets of the server leave that open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
    /// The quantile that it bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_s: Option<LatencyQuantile>,
}

/// A core clock that was set.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClockChange {
    /// The time since the start, in seconds.
    pub at_s: f64,
    /// The core clock in megahertz.
    pub core_clock_mhz: f64,
}

/// A distribution of times, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Latency {
    /// The number of observations.
    pub count: f64,
    /// The mean.
    pub mean: f64,
    /// The median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<LatencyQuantile>,
    /// The 95th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<LatencyQuantile>,
    /// The 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<LatencyQuantile>,
}

/// A quantile, and the range that the buckets of a histogram and the number of observations leave.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyQuantile {
    /// The quantile if the observations of a bucket are spread evenly in it.
    pub value: f64,
    /// The lowest possible value.
    pub low: f64,
    /// The highest possible value; absent if the quantile is above the last bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}
