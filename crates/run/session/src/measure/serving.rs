//! What a server did in a run, from its metrics page, and when it was in its steady state.

use sweetspot_device::Moment;
use sweetspot_measure::math::Span;
use sweetspot_metrics::Histogram;
use sweetspot_quantity::Seconds;
use sweetspot_workload::{MetricsEvent, ServingReport};

/// The maximum number of stored reports; if there are more, neighbours are joined. At 5 reports a second they last for
/// nearly an hour without joining.
const MAX_REPORTS: usize = 1 << 14;
/// The largest number of stored times between tokens of our own requests: those of some days.
const MAX_PROBED: usize = 1 << 20;
/// The share of the largest number of running requests from which on the server counts as full.
const FULL_SHARE: f64 = 0.95;

/// The reports of a metrics page in one run.
#[derive(Clone, Debug, Default)]
pub struct ServingRecord {
    server: Option<String>,
    reports: Vec<ServingReport>,
    restarts: u32,
    probes: Option<ProbeSummary>,
}

/// What requests of our own showed in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeSummary {
    /// The times to the first token, one of each request.
    pub first_token: Vec<Seconds>,
    /// The times between tokens.
    pub inter_token: Vec<Seconds>,
}

impl ProbeSummary {
    /// The value that this share of the times is not above; `None` without times.
    pub fn quantile(times: &[Seconds], share: f64) -> Option<Seconds> {
        let mut sorted = times.to_vec();
        sorted.sort_by(|a, b| a.get().total_cmp(&b.get()));
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied()
    }
}

/// Which part of a run is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServingWindow {
    /// The steady state: from when the largest batch runs until the queue is empty.
    Steady,
    /// No request ever waited, so that there is no steady state: from the first request to the last one.
    Busy,
    /// Another window that the user asked for.
    Requested,
}

/// What a server did in the measurement window.
#[derive(Clone, Debug, PartialEq)]
pub struct ServingSummary {
    /// The kind of the server.
    pub server: String,
    /// Which part of the run the numbers are about.
    pub window: ServingWindow,
    /// The prompt tokens that were processed; `None` if the server does not count them.
    pub prompt_tokens: Option<f64>,
    /// The tokens that were generated; `None` if the server does not count them.
    pub generated_tokens: Option<f64>,
    /// The requests that were answered; `None` if the server does not count them.
    pub requests: Option<f64>,
    /// The mean number of running requests; `None` if the server does not say it.
    pub mean_running: Option<f64>,
    /// The largest number of waiting requests; `None` if the server does not say it.
    pub most_waiting: Option<f64>,
    /// The times to the first token.
    pub first_token: Option<Histogram>,
    /// The times between two tokens.
    pub inter_token: Option<Histogram>,
    /// The times of whole requests.
    pub end_to_end: Option<Histogram>,
    /// How often the server restarted in the run.
    pub restarts: u32,
    /// What requests of our own showed in the whole run; `None` if none was answered.
    pub probes: Option<ProbeSummary>,
}

impl ServingRecord {
    /// Adds what the reader of the page found; returns a message for the user, if there is one.
    pub fn add(&mut self, event: MetricsEvent) -> Option<String> {
        match event {
            MetricsEvent::Recognised(server) => {
                let note = format!("reading the metrics of {server}");
                self.server = Some(server);
                Some(note)
            }
            MetricsEvent::Notice(text) => Some(text),
            MetricsEvent::Probe(probe) => {
                let all = self.probes.get_or_insert_default();
                if all.inter_token.len() < MAX_PROBED {
                    all.first_token.push(probe.first_token);
                    all.inter_token.extend(&probe.inter_token);
                }
                None
            }
            MetricsEvent::Report(report) => {
                self.restarts += u32::from(report.change.has_restarted);
                self.reports.push(*report);
                if self.reports.len() > MAX_REPORTS {
                    self.join_neighbours();
                }
                None
            }
        }
    }

    /// Whether a server was found.
    pub fn is_empty(&self) -> bool {
        self.server.is_none()
    }

    /// The time from the first page to the last one; `None` if fewer than two were read.
    pub fn read_time(&self) -> Option<Span> {
        let (first, last) = (self.reports.first()?, self.reports.last()?);
        Some(Span::new(first.since, last.at))
    }

    /// Joins each pair of neighbouring reports.
    fn join_neighbours(&mut self) {
        let mut joined: Vec<ServingReport> = Vec::with_capacity(MAX_REPORTS);
        for (index, next) in std::mem::take(&mut self.reports).into_iter().enumerate() {
            match joined.last_mut().filter(|_| index % 2 == 1) {
                Some(last) => {
                    last.at = next.at;
                    let (sum, new) = (&mut last.change, next.change);
                    add_number(&mut sum.prompt_tokens, new.prompt_tokens);
                    add_number(&mut sum.generated_tokens, new.generated_tokens);
                    add_number(&mut sum.requests, new.requests);
                    add_times(&mut sum.first_token, new.first_token.as_ref());
                    add_times(&mut sum.inter_token, new.inter_token.as_ref());
                    add_times(&mut sum.end_to_end, new.end_to_end.as_ref());
                    (sum.running, sum.waiting) = (new.running, new.waiting);
                }
                None => joined.push(next),
            }
        }
        self.reports = joined;
    }

    /// Finds the steady state: from when the largest batch runs until the queue is empty. Without a queue it is the time
    /// in which requests ran. The error says why there is neither.
    pub fn steady_state(&self) -> Result<(Span, ServingWindow), String> {
        let running = |report: &&ServingReport| report.change.running.unwrap_or(0.0) > 0.0;
        let works = |report: &&ServingReport| {
            running(report) || report.change.items().is_some_and(|items| items > 0.0)
        };
        let mut busy = self.reports.iter().filter(works);
        let first = busy.next().ok_or_else(|| match self.is_empty() {
            true => "the metrics page was never read".to_owned(),
            false => "the server answered no request".to_owned(),
        })?;
        let last = busy.next_back().unwrap_or(first);
        let whole = (Span::new(first.since, last.at), ServingWindow::Busy);
        let most = self
            .reports
            .iter()
            .filter_map(|report| report.change.running);
        let most = most.fold(0.0, f64::max);
        let is_full = |report: &&ServingReport| {
            report
                .change
                .running
                .is_some_and(|running| running >= FULL_SHARE * most)
        };
        let waits =
            |report: &&ServingReport| report.change.waiting.is_some_and(|waiting| waiting > 0.0);
        let begin = self.reports.iter().find(is_full).map(|report| report.at);
        let end = self.reports.iter().rfind(waits).map(|report| report.at);
        Ok(match (begin, end) {
            // A queue for a moment, as at the start, is no steady state.
            (Some(begin), Some(end)) if (end - begin).get() >= 1.0 && most > 0.0 => {
                (Span::new(begin, end), ServingWindow::Steady)
            }
            _ => whole,
        })
    }

    /// What the server did in a window; `None` if no page was read.
    pub fn summary(&self, window: &Span, kind: ServingWindow) -> Option<ServingSummary> {
        let mut summary = ServingSummary {
            server: self.server.clone()?,
            window: kind,
            prompt_tokens: None,
            generated_tokens: None,
            requests: None,
            mean_running: None,
            most_waiting: None,
            first_token: None,
            inter_token: None,
            end_to_end: None,
            restarts: self.restarts,
            probes: self.probes.clone(),
        };
        let (mut running, mut time) = (0.0, Seconds::ZERO);
        for report in &self.reports {
            let (share, part) = share_within(report.since, report.at, window);
            if share <= 0.0 {
                continue;
            }
            let change = &report.change;
            let scaled = |number: Option<f64>| number.map(|number| number * share);
            add_number(&mut summary.prompt_tokens, scaled(change.prompt_tokens));
            add_number(
                &mut summary.generated_tokens,
                scaled(change.generated_tokens),
            );
            add_number(&mut summary.requests, scaled(change.requests));
            if let Some(now) = change.running {
                running += now * part.get();
                time += part;
            }
            if let Some(waiting) = change.waiting {
                let most = summary.most_waiting.get_or_insert(0.0);
                *most = most.max(waiting);
            }
            add_times(&mut summary.first_token, change.first_token.as_ref());
            add_times(&mut summary.inter_token, change.inter_token.as_ref());
            add_times(&mut summary.end_to_end, change.end_to_end.as_ref());
        }
        summary.mean_running = (time > Seconds::ZERO).then(|| running / time.get());
        Some(summary)
    }
}

/// Adds a number that may be unknown.
fn add_number(sum: &mut Option<f64>, new: Option<f64>) {
    if let Some(new) = new {
        *sum.get_or_insert(0.0) += new;
    }
}

/// Adds times that may be unknown.
fn add_times(sum: &mut Option<Histogram>, new: Option<&Histogram>) {
    if let Some(new) = new {
        sum.get_or_insert_default().add(new);
    }
}

/// The share of a time that lies within a window, and its length.
fn share_within(begin: Moment, end: Moment, window: &Span) -> (f64, Seconds) {
    let span = Span::new(begin, end.max(begin));
    match span.overlap(window) {
        Some(part) if span.length() > Seconds::ZERO => {
            ((part.length() / span.length()).get(), part.length())
        }
        _ => (0.0, Seconds::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_metrics::MetricsChange;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    /// A record with one report each second: requests that run, requests that wait, generated tokens.
    fn record(reports: &[(f64, f64, f64)]) -> ServingRecord {
        let mut record = ServingRecord::default();
        record.add(MetricsEvent::Recognised("vLLM".to_owned()));
        for (second, (running, waiting, tokens)) in (0..).zip(reports) {
            record.add(MetricsEvent::Report(Box::new(ServingReport {
                since: at(second * 1000),
                at: at((second + 1) * 1000),
                change: MetricsChange {
                    running: Some(*running),
                    waiting: Some(*waiting),
                    generated_tokens: Some(*tokens),
                    ..MetricsChange::default()
                },
            })));
        }
        record
    }

    #[test]
    fn the_steady_state_is_from_the_full_batch_to_the_empty_queue() {
        let record = record(&[
            (0.0, 0.0, 0.0),
            (20.0, 50.0, 10.0),
            (64.0, 40.0, 100.0),
            (64.0, 20.0, 110.0),
            (62.0, 5.0, 120.0),
            (40.0, 0.0, 90.0),
            (3.0, 0.0, 5.0),
        ]);
        let (span, kind) = record.steady_state().unwrap();
        assert_eq!(
            (span, kind),
            (Span::new(at(3000), at(5000)), ServingWindow::Steady)
        );
        let summary = record.summary(&span, kind).unwrap();
        assert_eq!(summary.generated_tokens, Some(230.0));
        assert_eq!(summary.mean_running, Some(63.0));
        // Half of a report counts by half.
        let half = record
            .summary(&Span::new(at(2500), at(4000)), kind)
            .unwrap();
        assert_eq!(half.generated_tokens, Some(160.0));
    }

    #[test]
    fn without_a_queue_the_time_with_requests_counts() {
        let light = record(&[
            (0.0, 0.0, 0.0),
            (2.0, 0.0, 10.0),
            (1.0, 0.0, 8.0),
            (0.0, 0.0, 0.0),
        ]);
        let (span, kind) = light.steady_state().unwrap();
        assert_eq!(
            (span, kind),
            (Span::new(at(1000), at(3000)), ServingWindow::Busy)
        );
        assert!(record(&[(0.0, 0.0, 0.0)]).steady_state().is_err());
        assert!(ServingRecord::default().steady_state().is_err());
    }

    #[test]
    fn a_day_is_stored_in_bounded_memory() {
        let many = record(&vec![(4.0, 1.0, 10.0); 40_000]);
        assert!(many.reports.len() <= MAX_REPORTS + 1);
        let all = many.summary(&Span::new(at(0), at(40_000_000)), ServingWindow::Busy);
        assert_eq!(all.unwrap().generated_tokens, Some(400_000.0));
    }
}
