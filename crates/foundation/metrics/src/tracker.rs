//! What happened at a server between two metrics pages.

use std::collections::BTreeMap;

use crate::histogram::Histogram;
use crate::server::{ModelMetrics, ServerMetrics};

/// What happened since the page before, all models together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsChange {
    /// The prompt tokens that were processed; `None` if the server does not count them.
    pub prompt_tokens: Option<f64>,
    /// The tokens that were generated; `None` if the server does not count them.
    pub generated_tokens: Option<f64>,
    /// The requests that were answered; `None` if the server does not count them.
    pub requests: Option<f64>,
    /// The requests that run now.
    pub running: Option<f64>,
    /// The requests that wait now.
    pub waiting: Option<f64>,
    /// The times to the first token, in seconds.
    pub first_token: Option<Histogram>,
    /// The times between two tokens, in seconds.
    pub inter_token: Option<Histogram>,
    /// The times of whole requests, in seconds.
    pub end_to_end: Option<Histogram>,
    /// Whether the server has restarted, so that its counters began anew.
    pub has_restarted: bool,
    /// Whether a counter fell although the server did not restart; it is not counted in this step.
    pub has_fallen: bool,
}

/// Turns the pages of a server into what happened between them.
#[derive(Clone, Debug, Default)]
pub struct MetricsTracker {
    last: Option<ServerMetrics>,
    /// The model that counts; all if `None`.
    model: Option<String>,
}

/// A counter that fell below this share of its last value has begun anew; one that fell by less is wrong.
const RESTART_SHARE: f64 = 0.5;

impl MetricsTracker {
    /// Creates a tracker of one model, or of all.
    pub fn new(model: Option<String>) -> Self {
        Self { last: None, model }
    }

    /// The models of the last page.
    pub fn models(&self) -> Vec<String> {
        let models = self.last.iter().flat_map(|last| last.models.keys());
        models.cloned().collect()
    }

    /// Takes the next page. The first one has no step before it, so that nothing was counted: `None`.
    pub fn take(&mut self, page: ServerMetrics) -> Option<MetricsChange> {
        let last = self.last.replace(page);
        let now = self.last.as_ref()?;
        let last = last?;
        let has_restarted = has_restarted(&last, now);
        let nothing = ModelMetrics::default();
        let mut change = MetricsChange {
            has_restarted,
            ..MetricsChange::default()
        };
        for (name, model) in &now.models {
            if self.model.as_ref().is_some_and(|wanted| wanted != name) {
                continue;
            }
            let before = last.models.get(name).filter(|_| !has_restarted);
            change.add(model, before.unwrap_or(&nothing));
        }
        Some(change)
    }
}

/// Whether a server has restarted between two pages: it says so, or its counters fell to less than half.
fn has_restarted(last: &ServerMetrics, now: &ServerMetrics) -> bool {
    if let (Some(last), Some(now)) = (last.started, now.started) {
        return (now - last).abs() > 1.0;
    }
    let total = |models: &BTreeMap<String, ModelMetrics>| {
        let count = |model: &ModelMetrics| {
            let counts = [model.generated_tokens, model.prompt_tokens, model.requests];
            counts.into_iter().flatten().sum::<f64>()
        };
        models.values().map(count).sum::<f64>()
    };
    total(&now.models) < RESTART_SHARE * total(&last.models)
}

impl MetricsChange {
    /// Adds what happened to one model.
    fn add(&mut self, now: &ModelMetrics, before: &ModelMetrics) {
        let mut has_fallen = false;
        let mut grow = |sum: &mut Option<f64>, now: Option<f64>, before: Option<f64>| {
            let Some(now) = now else { return };
            let more = now - before.unwrap_or(0.0);
            has_fallen |= more < 0.0;
            *sum.get_or_insert(0.0) += more.max(0.0);
        };
        grow(
            &mut self.prompt_tokens,
            now.prompt_tokens,
            before.prompt_tokens,
        );
        grow(
            &mut self.generated_tokens,
            now.generated_tokens,
            before.generated_tokens,
        );
        grow(&mut self.requests, now.requests, before.requests);
        let add = |sum: &mut Option<f64>, now: Option<f64>| {
            if let Some(now) = now {
                *sum.get_or_insert(0.0) += now;
            }
        };
        add(&mut self.running, now.running);
        add(&mut self.waiting, now.waiting);
        let mut merge =
            |sum: &mut Option<Histogram>, now: &Option<Histogram>, before: &Option<Histogram>| {
                let Some(now) = now else { return };
                let new = match before {
                    Some(before) => now.since(before),
                    None => Some(now.clone()),
                };
                has_fallen |= new.is_none();
                sum.get_or_insert_default().add(&new.unwrap_or_default());
            };
        merge(&mut self.first_token, &now.first_token, &before.first_token);
        merge(&mut self.inter_token, &now.inter_token, &before.inter_token);
        merge(&mut self.end_to_end, &now.end_to_end, &before.end_to_end);
        self.has_fallen |= has_fallen;
    }

    /// What counts as progress: generated tokens, or requests of a server that generates none.
    pub fn items(&self) -> Option<f64> {
        self.generated_tokens.or(self.requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(tokens: f64, requests: f64, started: Option<f64>) -> ServerMetrics {
        let start = started.map_or(String::new(), |at| {
            format!("process_start_time_seconds {at}\n")
        });
        let text = format!(
            "vllm:generation_tokens_total{{model_name=\"a\"}} {tokens}\nvllm:request_success_total{{model_name=\"a\"}} {requests}\n{start}"
        );
        ServerMetrics::read(&text, None).unwrap().unwrap()
    }

    #[test]
    fn a_restart_counts_from_zero_and_a_fall_counts_nothing() {
        let mut tracker = MetricsTracker::default();
        assert_eq!(tracker.take(page(1000.0, 10.0, None)), None);
        let change = tracker.take(page(1500.0, 12.0, None)).unwrap();
        assert_eq!(
            (change.generated_tokens, change.requests),
            (Some(500.0), Some(2.0))
        );
        let change = tracker.take(page(1490.0, 13.0, None)).unwrap();
        assert_eq!(
            (change.generated_tokens, change.requests),
            (Some(0.0), Some(1.0))
        );
        assert!(change.has_fallen && !change.has_restarted);
        let change = tracker.take(page(40.0, 1.0, None)).unwrap();
        assert_eq!(
            (change.generated_tokens, change.requests),
            (Some(40.0), Some(1.0))
        );
        assert!(change.has_restarted && !change.has_fallen);
    }

    #[test]
    fn a_server_that_says_when_it_started_is_believed() {
        let mut tracker = MetricsTracker::default();
        tracker.take(page(1000.0, 10.0, Some(50.0)));
        let change = tracker.take(page(2000.0, 20.0, Some(99.0))).unwrap();
        assert!(change.has_restarted);
        assert_eq!(change.generated_tokens, Some(2000.0));
    }

    #[test]
    fn models_are_added_or_one_is_chosen() {
        let pages = |a: f64, b: f64| {
            let text = format!(
                "vllm:generation_tokens_total{{model_name=\"a\"}} {a}\nvllm:generation_tokens_total{{model_name=\"b\"}} {b}\n"
            );
            ServerMetrics::read(&text, None).unwrap().unwrap()
        };
        let change = |model: Option<&str>| {
            let mut tracker = MetricsTracker::new(model.map(str::to_owned));
            tracker.take(pages(100.0, 50.0));
            let change = tracker.take(pages(110.0, 52.0)).unwrap();
            (change.generated_tokens, tracker.models().len())
        };
        assert_eq!(change(None), (Some(12.0), 2));
        assert_eq!(change(Some("b")), (Some(2.0), 2));
    }

    proptest! {
        /// No sequence of counters, however it jumps, counts less than nothing.
        #[test]
        fn nothing_is_ever_subtracted(counts in prop::collection::vec(0.0..1e6f64, 0..40)) {
            let mut tracker = MetricsTracker::default();
            for count in counts {
                if let Some(change) = tracker.take(page(count, count / 100.0, None)) {
                    prop_assert!(change.generated_tokens.unwrap() >= 0.0);
                }
            }
        }
    }
}
