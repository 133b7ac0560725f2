//! What is known about one class of load, and which clock it should have.

use sweetspot_metrics::MetricsChange;
use sweetspot_quantity::{Ratio, Seconds};

use super::late_share::LatencyWindow;
use super::target::{LatencyKind, Slo};

/// The time over which late tokens and requests are counted.
const WINDOW: Seconds = Seconds::new(60.0);
/// The shortest time at a clock before it is lowered.
const STAY: Seconds = Seconds::new(3.0);
/// A clock at which a bound was missed is not tried again for this time; it doubles each time, and halves when that clock
/// keeps the bounds for as long.
const BLOCK: Seconds = Seconds::new(60.0);
const MAX_BLOCK: Seconds = Seconds::new(1800.0);
/// A clock is lowered to one at which this share of what a bound allows would be used.
const LATENCY_MARGIN: f64 = 0.8;
/// The most that a clock is lowered or raised at once, as a factor.
const LARGEST_FALL: f64 = 0.8;
const LARGEST_RISE: f64 = 1.25;
/// So many late observations must be expected before their absence lets the clock fall.
const EVIDENCE_TO_LOWER: f64 = 0.15;
/// A bound counts as missed if there are more late observations than allowed by so many standard deviations, and one.
const EVIDENCE_TO_RAISE: f64 = 1.0;
/// The share of what a bound on tokens allows that is used. The bound is kept for all tokens together, but requests during a
/// burst get most of the late ones: with 0.6, more than 2 % of the requests had too many late tokens, with 0.3 less than 1 %.
const USED_OF_TOKENS: f64 = 0.3;
/// The share of what a bound on requests allows that is used. It is smaller because one burst makes several requests late
/// before a page shows it, and because so few requests come in a minute that chance hides a missed bound.
const USED_OF_REQUESTS: f64 = 0.1;

/// A clock that a class of load should have from now on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// The clock stays.
    Stay,
    /// A bound is missed at the highest clock.
    MissedAtTop(Slo),
    /// The clock was changed.
    Changed,
}

/// What is known about one class of load.
#[derive(Clone, Debug)]
pub(super) struct KnownLoad {
    /// The clock that is used with this load, as an index.
    pub level: usize,
    /// A clock at which a bound was missed, and until when it is not tried again.
    missed: Option<(usize, Seconds)>,
    block: Seconds,
    /// How long the clock was used with this load.
    stay: Seconds,
    /// The latencies of each bound at this clock.
    windows: Vec<LatencyWindow>,
}

impl KnownLoad {
    /// A load that was never seen before.
    pub fn new(level: usize, bounds: usize) -> Self {
        Self {
            level,
            missed: None,
            block: BLOCK,
            stay: Seconds::ZERO,
            windows: vec![LatencyWindow::default(); bounds],
        }
    }

    /// Sets another clock, of which nothing is known yet.
    pub fn set_level(&mut self, level: usize) {
        self.level = level;
        self.stay = Seconds::ZERO;
        self.windows.fill(LatencyWindow::default());
    }

    /// Adds the latencies of a page that belongs to this clock.
    pub fn add(
        &mut self,
        slos: &[Slo],
        change: &MetricsChange,
        interval: Seconds,
        plain_step: Option<f64>,
    ) {
        let fade = (-interval.get() / WINDOW.get()).exp();
        self.stay += interval;
        for (slo, window) in slos.iter().zip(&mut self.windows) {
            if let Some(times) = slo.kind.times(change) {
                window.add(slo.kind, times, change, plain_step, fade);
            }
        }
    }

    /// Adds latencies of a request of our own at this clock.
    pub fn add_probe(&mut self, slos: &[Slo], kind: LatencyKind, times: &[Seconds]) {
        for (slo, window) in slos.iter().zip(&mut self.windows) {
            if slo.kind == kind {
                window.add_probe(times);
            }
        }
    }

    /// Raises the clock if a bound is missed, or lowers it if all have room. `shares` are the clocks relative to the highest
    /// one.
    pub fn judge(&mut self, now: Seconds, slos: &[Slo], shares: &[Ratio]) -> Verdict {
        let top = shares.len().saturating_sub(1);
        let missed = slos.iter().zip(&self.windows).find(|(slo, window)| {
            let count = window.observations();
            let allowed = allowed(slo) * count;
            let late = window.share_above(slo, slo.bound) * count;
            late > allowed + EVIDENCE_TO_RAISE * allowed.sqrt() + 1.0
        });
        if let Some((slo, _)) = missed {
            if self.level >= top {
                return Verdict::MissedAtTop(*slo);
            }
            if self.missed.is_some_and(|(level, _)| self.level <= level) {
                self.block = (self.block * 2.0).min(MAX_BLOCK);
            }
            self.missed = Some((self.level, now + self.block));
            let highest = shares[self.level].get() * LARGEST_RISE;
            let wanted = (self.level + 1..=top)
                .find(|level| {
                    shares[*level].get() >= highest || self.predicts_room(*level, slos, shares)
                })
                .unwrap_or(top);
            self.set_level(wanted);
            return Verdict::Changed;
        }
        // A clock that missed a bound once and keeps it now was missed by chance, or the load has changed.
        if self.missed.is_some_and(|(level, _)| self.level <= level) && self.stay >= self.block {
            self.missed = None;
            self.block = (self.block * 0.5).max(BLOCK);
        }
        if self.stay < STAY || self.level == 0 {
            return Verdict::Stay;
        }
        let is_known = slos.iter().zip(&self.windows).all(|(slo, window)| {
            window.observations() * (1.0 - slo.quantile.get()) >= EVIDENCE_TO_LOWER
        });
        if !is_known {
            return Verdict::Stay;
        }
        let lowest = shares[self.level].get() * LARGEST_FALL;
        let blocked = self.missed.filter(|(_, until)| now < *until);
        let from = blocked.map_or(0, |(level, _)| level + 1);
        let wanted = (from..self.level).find(|level| {
            shares[*level].get() >= lowest && self.predicts_room(*level, slos, shares)
        });
        let Some(wanted) = wanted else {
            return Verdict::Stay;
        };
        self.set_level(wanted);
        Verdict::Changed
    }

    /// Whether all bounds would have room at another clock, if all times changed as much as the clock: those of memory
    /// change less, so that this errs on the side of care for a lower clock.
    fn predicts_room(&self, level: usize, slos: &[Slo], shares: &[Ratio]) -> bool {
        let slower = shares[self.level] / shares[level];
        slos.iter().zip(&self.windows).all(|(slo, window)| {
            let bound = slo.bound / slower.get();
            window.share_above(slo, bound) <= LATENCY_MARGIN * allowed(slo)
        })
    }
}

/// The share of late observations that is used.
fn allowed(slo: &Slo) -> f64 {
    let used = match slo.kind {
        LatencyKind::InterToken => USED_OF_TOKENS,
        _ => USED_OF_REQUESTS,
    };
    (1.0 - slo.quantile.get()) * used
}
