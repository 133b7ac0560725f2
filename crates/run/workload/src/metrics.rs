//! Reads the metrics page of a server while it runs: the third source of progress, beside link and output.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use sweetspot_device::{Clock, Moment, MonotonicClock};
use sweetspot_http::{HttpError, Url, get};
use sweetspot_metrics::{Mapping, MetricsChange, MetricsTracker, ServerMetrics};

use crate::WorkloadError;
use crate::probe::{ProbeTimes, send_probes};

/// The metrics page of a server.
#[derive(Clone, Debug)]
pub struct MetricsSource {
    /// The address of the page.
    pub url: Url,
    /// What the page's metrics mean; if `None`, the server is recognised.
    pub mapping: Option<Mapping>,
    /// The model that counts; all models of the server if `None`.
    pub model: Option<String>,
    /// Whether a small request is sent now and then, to time its tokens.
    pub sends_probes: bool,
}

/// What happened at a server between two pages.
#[derive(Clone, Debug, PartialEq)]
pub struct ServingReport {
    /// The time of the later page.
    pub at: Moment,
    /// The time of the earlier page.
    pub since: Moment,
    /// What happened in between, and how many requests run and wait now.
    pub change: MetricsChange,
}

/// Something that the reader of a metrics page found.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricsEvent {
    /// The kind of the server was recognised.
    Recognised(String),
    /// There is a new page.
    Report(Box<ServingReport>),
    /// A request of our own was answered.
    Probe(Box<ProbeTimes>),
    /// A message for the user.
    Notice(String),
}

/// The interval between two pages.
const INTERVAL: Duration = Duration::from_millis(200);
/// The longest time that a page may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The longest time that the last page may take, after the command has exited.
const LAST_TIMEOUT: Duration = Duration::from_millis(300);
/// The largest size of a page: that of a server with many models is below a mebibyte.
const MAX_BYTES: usize = 8 << 20;
/// The number of pages that may wait until the command's loop takes them.
const MAX_WAITING: usize = 256;

/// A page with the moment at which the server wrote it, or why there is none.
type Page = (Moment, Result<Option<ServerMetrics>, PageError>);

/// Why there is no page.
#[derive(Debug)]
enum PageError {
    /// The server did not answer; it may later.
    Unanswered(HttpError),
    /// What answered is no metrics page of a known server.
    Wrong(String),
}

impl MetricsSource {
    /// Creates the source of a page whose server is recognised.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            mapping: None,
            model: None,
            sends_probes: false,
        }
    }

    /// Reads the page once.
    fn read(&self, timeout: Duration) -> Page {
        let before = MonotonicClock.now();
        let page = get(&self.url, timeout, MAX_BYTES);
        let after = MonotonicClock.now();
        // The server wrote the page somewhere between the question and the answer.
        let at = before + (after - before) * 0.5;
        let read = match page {
            Err(error) if error.may_pass() => Err(PageError::Unanswered(error)),
            Err(error) => Err(PageError::Wrong(error.to_string())),
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                ServerMetrics::read(&text, self.mapping.as_ref())
                    .map_err(|error| PageError::Wrong(format!("{}: {error}", self.url)))
            }
        };
        (at, read)
    }

    /// Rejects a page that is wrong, and one of a server that should run already but does not answer.
    pub(crate) fn check(&self, is_running: bool) -> Result<(), WorkloadError> {
        match self.read(TIMEOUT).1 {
            Ok(Some(metrics)) => self.check_model(&metrics),
            Ok(None) => Ok(()),
            Err(PageError::Unanswered(_)) if !is_running => Ok(()),
            Err(PageError::Unanswered(error)) => Err(WorkloadError::Metrics(error.to_string())),
            Err(PageError::Wrong(problem)) => Err(WorkloadError::Metrics(problem)),
        }
    }

    /// Rejects a model that the server does not have.
    fn check_model(&self, metrics: &ServerMetrics) -> Result<(), WorkloadError> {
        let Some(model) = &self.model else {
            return Ok(());
        };
        match metrics.models.contains_key(model) {
            true => Ok(()),
            false => Err(WorkloadError::Metrics(format!(
                "{} has no model `{model}`: its models are {}",
                self.url,
                list_models(metrics.models.keys())
            ))),
        }
    }
}

/// Reads a metrics page in a thread of its own, so that a slow server delays nothing.
pub(crate) struct MetricsReader {
    source: MetricsSource,
    pages: Receiver<Page>,
    stop: Arc<AtomicBool>,
    tracker: MetricsTracker,
    /// The time of the last page.
    last: Option<Moment>,
    is_recognised: bool,
    /// Whether the user knows that there is no page.
    is_failing: bool,
    has_warned_of_falls: bool,
    has_warned_of_processes: bool,
    /// The results of requests of our own, once they are sent.
    probes: Option<Receiver<Result<ProbeTimes, String>>>,
    has_warned_of_probes: bool,
}

impl MetricsReader {
    /// Starts to read the page.
    pub fn start(source: &MetricsSource) -> Result<Self, WorkloadError> {
        let (sender, pages) = sync_channel(MAX_WAITING);
        let stop = Arc::new(AtomicBool::new(false));
        let (own, stopped) = (source.clone(), stop.clone());
        std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || read_pages(&own, &sender, &stopped))
            .map_err(WorkloadError::system(
                "cannot start a thread to read metrics",
            ))?;
        Ok(Self {
            tracker: MetricsTracker::new(source.model.clone()),
            source: source.clone(),
            pages,
            stop,
            last: None,
            is_recognised: false,
            is_failing: false,
            has_warned_of_falls: false,
            has_warned_of_processes: false,
            probes: None,
            has_warned_of_probes: false,
        })
    }

    /// What the pages since the last call say.
    pub fn poll(&mut self) -> Vec<MetricsEvent> {
        let mut events = Vec::new();
        while let Ok(page) = self.pages.try_recv() {
            self.take(page, &mut events);
        }
        self.take_probes(&mut events);
        events
    }

    /// Passes on the latencies of requests of our own; the first failure is told.
    fn take_probes(&mut self, events: &mut Vec<MetricsEvent>) {
        let Some(probes) = &self.probes else { return };
        for result in probes.try_iter() {
            match result {
                Ok(times) => events.push(MetricsEvent::Probe(Box::new(times))),
                Err(problem) if !std::mem::replace(&mut self.has_warned_of_probes, true) => {
                    events.push(MetricsEvent::Notice(format!(
                        "a request of --probe-request failed: {problem}; the server's own latencies are used"
                    )));
                }
                Err(_) => {}
            }
        }
    }

    /// Starts to send requests to the model that the page names.
    fn start_probes(&mut self, metrics: &ServerMetrics, events: &mut Vec<MetricsEvent>) {
        let first = metrics.models.keys().next().cloned();
        let model = self.source.model.clone().or(first).unwrap_or_default();
        let (sender, results) = sync_channel(MAX_WAITING);
        let (url, stop) = (self.source.url.clone(), self.stop.clone());
        let started = std::thread::Builder::new()
            .name("probes".to_owned())
            .spawn(move || send_probes(&url, &model, &sender, &stop));
        match started {
            Ok(_) => self.probes = Some(results),
            Err(problem) => events.push(MetricsEvent::Notice(format!(
                "--probe-request: cannot start a thread: {problem}"
            ))),
        }
    }

    /// Reads a last page after the command has exited, if the server still answers.
    pub fn finish(&mut self) -> Vec<MetricsEvent> {
        self.stop.store(true, Ordering::Relaxed);
        let mut events = self.poll();
        if let (at, Ok(page)) = self.source.read(LAST_TIMEOUT) {
            self.take((at, Ok(page)), &mut events);
        }
        events
    }

    /// Takes a page, or that there is none.
    fn take(&mut self, (at, page): Page, events: &mut Vec<MetricsEvent>) {
        let metrics = match page {
            Ok(Some(metrics)) => metrics,
            Ok(None) => return,
            Err(error) => return self.take_failure(error, events),
        };
        if std::mem::take(&mut self.is_failing) {
            let url = &self.source.url;
            events.push(MetricsEvent::Notice(format!("{url} answers again")));
        }
        if !self.is_recognised {
            self.is_recognised = true;
            events.push(MetricsEvent::Recognised(metrics.server.clone()));
            if self.source.sends_probes {
                self.start_probes(&metrics, events);
            }
            if self.source.model.is_none() && metrics.models.len() > 1 {
                events.push(MetricsEvent::Notice(format!(
                    "the server has {} models ({}): their tokens and requests are added up; choose one with --model NAME",
                    metrics.models.len(),
                    list_models(metrics.models.keys())
                )));
            }
        }
        if self.last.is_some_and(|last| at <= last) {
            return;
        }
        let read_at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let read_at = read_at.ok().map(|time| time.as_secs_f64());
        let change = self.tracker.take_read_at(metrics, read_at);
        if self.tracker.has_several_processes()
            && !std::mem::replace(&mut self.has_warned_of_processes, true)
        {
            events.push(MetricsEvent::Notice(
                "several processes answer at this address in turn, as behind a load balancer: each is counted between its own pages, and what it did before the first one is not counted; give the address of one process"
                    .to_owned(),
            ));
        }
        let since = self.last.replace(at);
        let Some((change, since)) = change.zip(since) else {
            return;
        };
        if change.has_restarted {
            events.push(MetricsEvent::Notice(
                "the server has restarted: its counters begin anew, and what it did in between is not counted"
                    .to_owned(),
            ));
        }
        if change.has_fallen && !std::mem::replace(&mut self.has_warned_of_falls, true) {
            events.push(MetricsEvent::Notice(
                "a counter of the server fell although it did not restart: it is not counted while it falls"
                    .to_owned(),
            ));
        }
        events.push(MetricsEvent::Report(Box::new(ServingReport {
            at,
            since,
            change,
        })));
    }

    /// Informs the user once that there is no page. A server that was never there may still be starting.
    fn take_failure(&mut self, error: PageError, events: &mut Vec<MetricsEvent>) {
        let text = match error {
            PageError::Unanswered(_) if !self.is_recognised => return,
            PageError::Unanswered(error) => {
                format!("{error}: what the server does is unknown until it answers")
            }
            PageError::Wrong(problem) => problem,
        };
        if !std::mem::replace(&mut self.is_failing, true) {
            events.push(MetricsEvent::Notice(text));
        }
    }
}

impl Drop for MetricsReader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Reads the page in equal intervals, until it is told to stop.
fn read_pages(source: &MetricsSource, pages: &SyncSender<Page>, stop: &AtomicBool) {
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        // If the loop that takes pages is stopped, further pages are left out.
        let _ = pages.try_send(source.read(TIMEOUT));
        next = (next + INTERVAL).max(Instant::now());
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// The names of models, of which only the first ones are shown.
fn list_models<'a>(models: impl ExactSizeIterator<Item = &'a String>) -> String {
    /// The number of names that are shown.
    const MAX_SHOWN: usize = 4;
    let more = models.len().saturating_sub(MAX_SHOWN);
    let plain = |name: &String| name.replace(char::is_control, "?");
    let mut names: Vec<String> = models.take(MAX_SHOWN).map(plain).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}
