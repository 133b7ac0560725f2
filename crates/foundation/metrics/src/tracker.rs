//! What happened at a server between two metrics pages.

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
///
/// A balancer or a server with several workers may answer each time with the page of another process. Processes that say when
/// they started are distinguished by that, and each is compared with its own page before.
#[derive(Clone, Debug, Default)]
pub struct MetricsTracker {
    /// The last page of each process, that of the last page at the end.
    pages: Vec<ServerMetrics>,
    /// When the last page was read, in seconds since 1970.
    read_at: Option<f64>,
    /// The sum of the counters before the server seemed to restart.
    before_fall: Option<f64>,
    has_several_processes: bool,
    /// The model that counts; all if `None`.
    model: Option<String>,
}

/// A counter that fell below this share of its last value has begun anew; one that fell by less is wrong.
const RESTART_SHARE: f64 = 0.5;
/// The largest number of processes that are distinguished.
const MAX_PROCESSES: usize = 64;
/// How much clocks of two computers may differ, in seconds.
const CLOCK_DIFFERENCE: f64 = 2.0;

/// How a page relates to those before.
enum Relation {
    /// It continues the page at this place.
    Continues(usize),
    /// The server has restarted: its counters began at zero.
    Restarted,
    /// It is the first page of another process, of which it is unknown what happened before.
    OtherProcess,
}

impl MetricsTracker {
    /// Creates a tracker of one model, or of all.
    pub fn new(model: Option<String>) -> Self {
        Self {
            model,
            ..Self::default()
        }
    }

    /// The models of the last page.
    pub fn models(&self) -> Vec<String> {
        let models = self.pages.iter().flat_map(|last| last.models.keys());
        let mut models: Vec<String> = models.cloned().collect();
        models.sort();
        models.dedup();
        models
    }

    /// Whether several processes answer at the same address.
    pub fn has_several_processes(&self) -> bool {
        self.has_several_processes
    }

    /// Takes the next page. The first one has no step before it, so that nothing was counted: `None`.
    pub fn take(&mut self, page: ServerMetrics) -> Option<MetricsChange> {
        self.take_read_at(page, None)
    }

    /// Takes the next page, which was read at this time in seconds since 1970, if it is known.
    pub fn take_read_at(
        &mut self,
        mut page: ServerMetrics,
        read_at: Option<f64>,
    ) -> Option<MetricsChange> {
        let relation = self.relation(&page);
        self.read_at = read_at;
        let relation = match relation {
            Some(relation) => relation,
            None => {
                self.pages.push(page);
                return None;
            }
        };
        let nothing = ModelMetrics::default();
        let mut change = MetricsChange::default();
        let before = match relation {
            Relation::Continues(at) => {
                self.has_several_processes |= at + 1 < self.pages.len();
                Some(self.pages.remove(at))
            }
            Relation::Restarted => {
                change.has_restarted = true;
                self.pages.pop();
                None
            }
            Relation::OtherProcess => {
                self.has_several_processes = true;
                Some(page.clone())
            }
        };
        for (name, model) in &page.models {
            if self.model.as_ref().is_some_and(|wanted| wanted != name) {
                continue;
            }
            let before = before.as_ref().and_then(|page| page.models.get(name));
            change.add(model, before.unwrap_or(&nothing));
        }
        if let Some(before) = before {
            page.keep_highest(before);
        }
        if self.pages.len() >= MAX_PROCESSES {
            self.pages.remove(0);
        }
        self.pages.push(page);
        Some(change)
    }

    /// How a page relates to those before; `None` if it is the first one.
    fn relation(&mut self, page: &ServerMetrics) -> Option<Relation> {
        let last = self.pages.len().checked_sub(1)?;
        if let Some(started) = page.started
            && self.pages[last].started.is_some()
        {
            let is_same = |known: &ServerMetrics| {
                known
                    .started
                    .is_some_and(|known| (known - started).abs() <= 1.0)
            };
            if let Some(at) = self.pages.iter().rposition(is_same) {
                return Some(Relation::Continues(at));
            }
            // A server that restarted has started after its last page.
            let earliest = self.read_at.map(|at| at - CLOCK_DIFFERENCE);
            let earliest = earliest.or(self.pages[last].started);
            return Some(match earliest.is_none_or(|earliest| started > earliest) {
                true => Relation::Restarted,
                false => Relation::OtherProcess,
            });
        }
        let (total, total_before) = (total(page), total(&self.pages[last]));
        let came_back = self
            .before_fall
            .take()
            .is_some_and(|before| total >= before);
        if came_back {
            // What fell is as high as before: another process had answered in between.
            return Some(Relation::OtherProcess);
        }
        if total < RESTART_SHARE * total_before && !self.has_several_processes {
            self.before_fall = Some(total_before);
            return Some(Relation::Restarted);
        }
        Some(Relation::Continues(last))
    }
}

/// The sum of a page's counters.
fn total(page: &ServerMetrics) -> f64 {
    let count = |model: &ModelMetrics| {
        let counts = [model.generated_tokens, model.prompt_tokens, model.requests];
        counts.into_iter().flatten().sum::<f64>()
    };
    page.models.values().map(count).sum()
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
    fn two_processes_behind_one_address_are_counted_each_by_itself() {
        let mut tracker = MetricsTracker::default();
        let mut sum = 0.0;
        for number in 0..20 {
            let (base, started) = match number % 2 {
                0 => (1e6, 1000.0),
                _ => (8e5, 1500.0),
            };
            let tokens = base + 10.0 * f64::from(number);
            let at = 2000.0 + 0.2 * f64::from(number);
            let change = tracker.take_read_at(page(tokens, 1.0, Some(started)), Some(at));
            if let Some(change) = change {
                assert!(!change.has_restarted && !change.has_fallen);
                sum += change.generated_tokens.unwrap();
            }
        }
        // Each process generated 180 tokens between its first page and its last one.
        assert_eq!(sum, 360.0);
        assert!(tracker.has_several_processes());
        // One that starts anew afterwards is a restart.
        let change = tracker.take_read_at(page(30.0, 1.0, Some(2010.0)), Some(2011.0));
        let change = change.unwrap();
        assert_eq!(
            (change.generated_tokens, change.has_restarted),
            (Some(30.0), true)
        );
    }

    #[test]
    fn a_counter_that_falls_and_rises_again_counts_nothing() {
        let mut tracker = MetricsTracker::default();
        let mut sum = 0.0;
        for number in 0..17 {
            let tokens = if number % 2 == 0 { 1000.0 } else { 900.0 };
            if let Some(change) = tracker.take(page(tokens, 1.0, None)) {
                sum += change.generated_tokens.unwrap();
            }
        }
        assert_eq!(sum, 0.0);
        let change = tracker.take(page(1040.0, 1.0, None)).unwrap();
        assert_eq!(change.generated_tokens, Some(40.0));
    }

    #[test]
    fn a_fall_to_less_than_half_that_is_undone_was_no_restart() {
        let mut tracker = MetricsTracker::default();
        let mut restarts = 0;
        let mut sum = 0.0;
        for number in 0..20 {
            let tokens = if number % 2 == 0 { 1e6 } else { 1e5 };
            if let Some(change) = tracker.take(page(tokens, 1.0, None)) {
                restarts += u32::from(change.has_restarted);
                sum += change.generated_tokens.unwrap();
            }
        }
        // The first fall cannot be distinguished from a restart.
        assert_eq!((restarts, sum), (1, 1e5));
        assert!(tracker.has_several_processes());
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
