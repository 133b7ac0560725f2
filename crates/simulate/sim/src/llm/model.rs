//! What a step of a language model costs on an H200.
//!
//! Fitted to `data/measured_h200/llm_decode_prefill.csv`: a decoder of 8 billion parameters in bf16. The command
//! `cargo run --release -p sweetspot-benchmarks --bin serving fit` fits it again and prints the errors of rows that were left
//! out. All rows were measured at the default clock or where the power cap held it, so how times depend on the clock is an
//! assumption: reading weights and the cache depends on the memory alone, all other work on the core clock.

use sweetspot_quantity::{Ratio, Seconds};

use crate::physics::Load;

/// What a step of a language model costs, at the default clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LlmModel {
    /// The time of a decode step that reading the weights takes.
    pub weights_s: f64,
    /// The rest of a decode step's time with one request and no context.
    pub decode_s: f64,
    /// The additional time of each running request.
    pub per_request_s: f64,
    /// The additional time to read each token in the cache.
    pub per_cached_token_s: f64,
    /// The additional time for each token of the mean context, which even one request needs.
    pub per_context_token_s: f64,
    /// The switching of a decode step, and its increase with requests and cached tokens per second.
    pub decode_switching: [f64; 3],
    /// The time of a prefill without tokens, and for each token.
    pub prefill_s: [f64; 2],
    /// The switching of a prefill that only computes.
    pub prefill_switching: f64,
}

impl LlmModel {
    /// The decoder of 8 billion parameters that was measured.
    pub const EIGHT_BILLION: Self = Self {
        weights_s: 3.7e-3,
        decode_s: 1.6758e-3,
        per_request_s: 1.4087e-5,
        per_cached_token_s: 2.6443e-8,
        per_context_token_s: 2.0990e-7,
        decode_switching: [0.43779, 2.88946e-5, 6.93143e-9],
        prefill_s: [6.3119e-3, 1.85211e-5],
        prefill_switching: 2.42,
    };

    /// The load of a decode step for so many requests with so many tokens in their caches together.
    pub fn decode(&self, requests: u64, cached_tokens: u64) -> Load {
        let (requests, cached) = (requests.max(1) as f64, cached_tokens as f64);
        let memory = self.weights_s + self.per_cached_token_s * cached;
        let core = self.decode_s
            + self.per_request_s * requests
            + self.per_context_token_s * cached / requests;
        let time = core + memory;
        let [base, by_request, by_token] = self.decode_switching;
        Load::Kernels {
            launch: Seconds::ZERO,
            core: Seconds::new(core),
            memory: Seconds::new(memory),
            switching: Ratio::new(base + (by_request * requests + by_token * cached) / time),
            memory_activity: Ratio::new(memory / time),
        }
    }

    /// The load of processing so many tokens of prompts.
    pub fn prefill(&self, tokens: u64) -> Load {
        let [fixed, each] = self.prefill_s;
        let compute = each * tokens as f64;
        let memory = self.weights_s.min(fixed);
        let time = fixed + compute;
        Load::Kernels {
            launch: Seconds::ZERO,
            core: Seconds::new(time - memory),
            memory: Seconds::new(memory),
            switching: Ratio::new(self.prefill_switching * compute / time),
            memory_activity: Ratio::new(memory / time),
        }
    }
}
