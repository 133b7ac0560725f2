//! Keeps what was counted already, so that a counter that falls and rises again counts nothing.

use crate::histogram::Histogram;
use crate::server::{ModelMetrics, ServerMetrics};

impl ServerMetrics {
    /// Raises each counter to its value on the page before, so that one that falls and rises again counts nothing.
    pub(crate) fn keep_highest(&mut self, before: Self) {
        for (name, before) in before.models {
            match self.models.get_mut(&name) {
                Some(now) => now.keep_highest(before),
                None => {
                    self.models.insert(name, before);
                }
            }
        }
    }
}

impl ModelMetrics {
    /// Raises each counter to its value on the page before.
    fn keep_highest(&mut self, before: Self) {
        let highest = |now: &mut Option<f64>, before: Option<f64>| {
            if before.is_some_and(|before| now.is_none_or(|now| now < before)) {
                *now = before;
            }
        };
        highest(&mut self.prompt_tokens, before.prompt_tokens);
        highest(&mut self.generated_tokens, before.generated_tokens);
        highest(&mut self.requests, before.requests);
        let fuller = |now: &mut Option<Histogram>, before: Option<Histogram>| {
            let Some(before) = before else { return };
            if now.as_ref().is_none_or(|now| now.count() < before.count()) {
                *now = Some(before);
            }
        };
        fuller(&mut self.first_token, before.first_token);
        fuller(&mut self.inter_token, before.inter_token);
        fuller(&mut self.end_to_end, before.end_to_end);
    }
}
