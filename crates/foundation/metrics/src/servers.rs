//! What the servers that people run call their metrics, newest names first.
//!
//! Sources: vLLM `vllm/v1/metrics/loggers.py` and `vllm/engine/metrics.py`; SGLang `python/sglang/srt/metrics/collector.py`
//! and `python/sglang/srt/observability/metrics_collector.py`; TGI `router/src/server.rs` and `docs/source/reference/metrics.md`;
//! llama.cpp `tools/server/server-context.cpp` and `tools/server/README.md`; Triton `docs/user_guide/metrics.md`.

use std::collections::BTreeMap;

use crate::mapping::{Mapping, Quantity, Source};

/// A server with the names of its metrics.
struct KnownServer {
    name: &'static str,
    /// What the names of its metrics begin with.
    prefix: &'static str,
    metrics: &'static [(Quantity, &'static [&'static str])],
}

/// The known servers. Triton comes last, because its backends add their own metrics to its page.
const SERVERS: &[KnownServer] = &[
    KnownServer {
        name: "vLLM",
        prefix: "vllm:",
        metrics: &[
            (Quantity::PromptTokens, &["vllm:prompt_tokens_total"]),
            (Quantity::GeneratedTokens, &["vllm:generation_tokens_total"]),
            (Quantity::Requests, &["vllm:request_success_total"]),
            (Quantity::Running, &["vllm:num_requests_running"]),
            (Quantity::Waiting, &["vllm:num_requests_waiting"]),
            (
                Quantity::CacheUsage,
                &["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
            ),
            (Quantity::FirstToken, &["vllm:time_to_first_token_seconds"]),
            (
                Quantity::InterToken,
                &[
                    "vllm:inter_token_latency_seconds",
                    "vllm:time_per_output_token_seconds",
                ],
            ),
            (Quantity::EndToEnd, &["vllm:e2e_request_latency_seconds"]),
        ],
    },
    KnownServer {
        name: "SGLang",
        prefix: "sglang:",
        metrics: &[
            (
                Quantity::PromptTokens,
                &[
                    "sglang:realtime_tokens_total{mode=prefill_compute}",
                    "sglang:prompt_tokens_total",
                ],
            ),
            (
                Quantity::GeneratedTokens,
                &[
                    "sglang:realtime_tokens_total{mode=decode}",
                    "sglang:generation_tokens_total",
                ],
            ),
            (
                Quantity::Requests,
                &[
                    "sglang:num_requests_total",
                    "sglang:e2e_request_latency_seconds_count",
                ],
            ),
            (Quantity::Running, &["sglang:num_running_reqs"]),
            (Quantity::Waiting, &["sglang:num_queue_reqs"]),
            (Quantity::CacheUsage, &["sglang:token_usage"]),
            (
                Quantity::FirstToken,
                &["sglang:time_to_first_token_seconds"],
            ),
            (
                Quantity::InterToken,
                &[
                    "sglang:inter_token_latency_seconds",
                    "sglang:time_per_output_token_seconds",
                ],
            ),
            (Quantity::EndToEnd, &["sglang:e2e_request_latency_seconds"]),
        ],
    },
    KnownServer {
        name: "TGI",
        prefix: "tgi_",
        metrics: &[
            (Quantity::PromptTokens, &["tgi_request_input_length_sum"]),
            (
                Quantity::GeneratedTokens,
                &["tgi_request_generated_tokens_sum"],
            ),
            (
                Quantity::Requests,
                &["tgi_request_success", "tgi_request_success_total"],
            ),
            (Quantity::Running, &["tgi_batch_current_size"]),
            (Quantity::Waiting, &["tgi_queue_size"]),
            // The mean time of the tokens of a request, prefill included; there is no time to the first token.
            (
                Quantity::InterToken,
                &["tgi_request_mean_time_per_token_duration"],
            ),
            (Quantity::EndToEnd, &["tgi_request_duration"]),
        ],
    },
    KnownServer {
        name: "llama.cpp",
        prefix: "llamacpp:",
        metrics: &[
            (Quantity::PromptTokens, &["llamacpp:prompt_tokens_total"]),
            (
                Quantity::GeneratedTokens,
                &["llamacpp:tokens_predicted_total"],
            ),
            (Quantity::Running, &["llamacpp:requests_processing"]),
            (Quantity::Waiting, &["llamacpp:requests_deferred"]),
            (Quantity::CacheUsage, &["llamacpp:kv_cache_usage_ratio"]),
        ],
    },
    KnownServer {
        name: "Triton",
        prefix: "nv_inference_",
        metrics: &[
            (
                Quantity::Requests,
                &["nv_inference_count", "nv_inference_request_success"],
            ),
            (Quantity::Waiting, &["nv_inference_pending_request_count"]),
            // The time to the first part of an answer, which is a token only if the model streams tokens.
            (
                Quantity::FirstToken,
                &["nv_inference_first_response_histogram_ms"],
            ),
            (Quantity::EndToEnd, &["nv_inference_request_duration_us"]),
        ],
    },
];

/// The names of the known servers, for messages.
pub(crate) const KNOWN_SERVERS: &str = "vLLM, SGLang, TGI, llama.cpp or Triton";

/// Prefixes that end in a colon, which collectors on the way to the page replace by an underscore.
const COLON_PREFIXES: [(&str, &str); 3] = [
    ("vllm_", "vllm:"),
    ("sglang_", "sglang:"),
    ("llamacpp_", "llamacpp:"),
];

/// The name of a metric as its server writes it: some versions and collectors write `vllm_` for `vllm:`.
pub(crate) fn usual_name(name: &str) -> std::borrow::Cow<'_, str> {
    for (written, usual) in COLON_PREFIXES {
        if let Some(rest) = name.strip_prefix(written) {
            return format!("{usual}{rest}").into();
        }
    }
    name.into()
}

/// Finds the known server that the names of a page's metrics belong to.
pub(crate) fn recognise<'a>(names: impl Iterator<Item = &'a str>) -> Option<Mapping> {
    let mut found = [false; SERVERS.len()];
    for name in names {
        let name = usual_name(name);
        for (is_found, server) in found.iter_mut().zip(SERVERS) {
            *is_found |= name.starts_with(server.prefix);
        }
    }
    let mut servers = found.iter().zip(SERVERS);
    servers
        .find(|(is_found, _)| **is_found)
        .map(|(_, server)| server.mapping())
}

impl KnownServer {
    fn mapping(&self) -> Mapping {
        let sources: BTreeMap<_, _> = self
            .metrics
            .iter()
            .map(|(quantity, names)| {
                let sources = names
                    .iter()
                    .filter_map(|name| Source::parse(name, scale_of(name)));
                (*quantity, sources.collect())
            })
            .collect();
        Mapping {
            server: self.name.to_owned(),
            sources,
        }
    }
}

/// The factor to base units that the end of a metric's name says.
fn scale_of(name: &str) -> f64 {
    match name {
        _ if name.ends_with("_ms") => 1e-3,
        _ if name.ends_with("_us") => 1e-6,
        _ => 1.0,
    }
}
