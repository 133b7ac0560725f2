//! What prompts cost, learned from the pages of a server.

use sweetspot_metrics::MetricsChange;
use sweetspot_quantity::{Ratio, Seconds};

/// The share of the old estimate that remains after each page with new prompts.
const MEMORY: f64 = 0.98;

/// The mean length of prompts, and the time that a token of them costs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PromptCosts {
    /// Weighted sums over pages: requests that got their first token, and the tokens of their prompts.
    requests: f64,
    tokens: f64,
    /// The most tokens of prompts that were processed in a second, at the highest clock.
    tokens_per_s: f64,
}

impl PromptCosts {
    /// Takes a page at a clock, relative to the highest one.
    pub fn take(&mut self, change: &MetricsChange, interval: Seconds, clock: Ratio) {
        let requests = change
            .first_token
            .as_ref()
            .map_or(0.0, |times| times.count());
        let tokens = change.prompt_tokens.unwrap_or(0.0);
        if requests <= 0.0 || tokens <= 0.0 || interval <= Seconds::ZERO {
            return;
        }
        self.requests = MEMORY * self.requests + requests;
        self.tokens = MEMORY * self.tokens + tokens;
        // Requests that do not wait are processed in the time to their first tokens.
        let times = change.first_token.as_ref().and_then(|times| times.mean());
        let one_by_one = times.map_or(0.0, |mean| tokens / (mean * requests).max(1e-6));
        let rate = (tokens / interval.get()).max(one_by_one) / clock.get().max(1e-3);
        self.tokens_per_s = (self.tokens_per_s * 0.9995).max(rate);
    }

    /// The time to process the prompts of so many requests at the highest clock; `None` if no prompt was seen.
    pub fn time_for(&self, requests: f64) -> Option<Seconds> {
        let each = (self.requests > 0.0).then(|| self.tokens / self.requests)?;
        self.time_for_tokens(requests * each)
    }

    /// The time to process so many tokens of prompts at the highest clock; `None` if no prompt was seen.
    pub fn time_for_tokens(&self, tokens: f64) -> Option<Seconds> {
        (self.tokens_per_s > 0.0).then(|| Seconds::new(tokens / self.tokens_per_s))
    }
}
