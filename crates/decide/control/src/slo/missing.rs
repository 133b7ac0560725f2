//! Which latencies a server does not report.

use sweetspot_metrics::MetricsChange;
use sweetspot_quantity::Seconds;

use super::messages::SloNotice;
use super::target::{LatencyKind, Slo};

/// How long a server works without reporting a latency before the user is informed. Some servers add a latency to their
/// page with its first observation only.
const PATIENCE: Seconds = Seconds::new(30.0);

/// Whether a server reports the latency of one bound.
#[derive(Clone, Copy, Debug)]
struct Reported {
    is_missing: bool,
    /// How long the server worked without reporting it.
    missing_for: Seconds,
    is_said: bool,
    /// Whether requests of our own show it.
    is_probed: bool,
}

/// Which latencies a server does not report.
#[derive(Clone, Debug)]
pub(super) struct MissingLatencies {
    by_bound: Vec<Reported>,
    /// Whether a request was answered, so that the time of a whole request was observed.
    has_answered: bool,
}

impl MissingLatencies {
    /// Creates it for so many bounds, none of which was seen yet.
    pub fn new(bounds: usize) -> Self {
        let unseen = Reported {
            is_missing: true,
            missing_for: Seconds::ZERO,
            is_said: false,
            is_probed: false,
        };
        Self {
            by_bound: vec![unseen; bounds],
            has_answered: false,
        }
    }

    /// Takes a page; returns what the user should know.
    pub fn take(
        &mut self,
        slos: &[Slo],
        change: &MetricsChange,
        interval: Seconds,
    ) -> Option<SloNotice> {
        let mut notice = None;
        let works = change.running.unwrap_or(0.0) > 0.0 || change.items().unwrap_or(0.0) > 0.0;
        self.has_answered |= change.requests.is_none_or(|requests| requests > 0.0);
        for (slo, reported) in slos.iter().zip(&mut self.by_bound) {
            if slo.kind.times(change).is_some() || reported.is_probed {
                reported.is_missing = false;
                reported.missing_for = Seconds::ZERO;
                if std::mem::take(&mut reported.is_said) {
                    notice = Some(SloNotice::NowMeasured(*slo));
                }
                continue;
            }
            // A server that restarts begins without it again.
            reported.is_missing |= works;
            let could_be_known = slo.kind != LatencyKind::EndToEnd || self.has_answered;
            if works && could_be_known {
                reported.missing_for += interval;
            }
            if reported.missing_for > PATIENCE && !reported.is_said {
                reported.is_said = true;
                notice = Some(SloNotice::NotMeasured(*slo));
            }
        }
        notice
    }

    /// Remembers that requests of our own show a latency, so that the server need not report it.
    pub fn add_probe(&mut self, slos: &[Slo], kind: LatencyKind) {
        for (slo, reported) in slos.iter().zip(&mut self.by_bound) {
            reported.is_probed |= slo.kind == kind;
        }
    }

    /// Whether the latency of some bound is unknown.
    pub fn are_any(&self) -> bool {
        self.by_bound.iter().any(|reported| reported.is_missing)
    }
}
