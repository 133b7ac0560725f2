//! A track: one bar or counter, followed over time.

use std::collections::VecDeque;

use sweetspot_device::Moment;
use sweetspot_quantity::Seconds;

use super::format::Format;
use super::sample::{Amount, Evidence, Role, Sample};
use crate::pattern::OutputReport;

/// The largest number of reports that a track stores until it is chosen.
const MAX_PENDING: usize = 256;
/// Two totals within this share of each other belong to the same bar: the number of batches may vary between epochs.
const TOTAL_TOLERANCE: f64 = 0.05;
/// A first count of at most this many usual advances includes all work so far; a higher one is that of a training that
/// was resumed.
const MAX_FIRST_ADVANCES: f64 = 2.0;
/// An advance of more than this many times the largest one so far is not believed right after a restart: it comes
/// from another process that has not restarted yet.
const MAX_ADVANCE_FACTOR: f64 = 3.0;

/// One bar or counter over time, from which the items done are counted.
#[derive(Clone, Debug)]
pub(super) struct Track {
    pub format: Format,
    name: String,
    pub role: Role,
    pub evidence: Evidence,
    pub unit: String,
    total: Option<f64>,
    count: Count,
    regularity: Regularity,
    /// The number of times that the count has advanced, or of rates.
    pub advances: u32,
    pub began: Moment,
    /// The time of the last advance.
    pub advanced: Moment,
    /// The items counted so far.
    items: f64,
    /// The highest count so far.
    highest: f64,
    /// The reports since the track was last chosen, or since its start.
    pending: VecDeque<(Moment, OutputReport)>,
    /// The number of the source that the track's reports have, if it has been chosen.
    pub source: Option<u32>,
}

/// The state of a count.
#[derive(Clone, Debug)]
enum Count {
    /// Every line is a rate, or stands for one unit.
    None,
    /// One count was seen.
    First(f64),
    /// Several counts were seen.
    Rising {
        last: f64,
        /// The largest advance so far.
        largest: f64,
        /// The last count before the latest restart.
        previous: Option<f64>,
    },
}

impl Track {
    /// Begins a track with its first line.
    pub fn new(at: Moment, sample: &Sample) -> Self {
        let mut track = Self {
            format: sample.format,
            name: sample.name.clone(),
            role: sample.role,
            evidence: sample.evidence,
            unit: sample.unit.clone(),
            total: None,
            count: Count::None,
            regularity: Regularity::default(),
            advances: 0,
            began: at,
            advanced: at,
            items: 0.0,
            highest: 0.0,
            pending: VecDeque::new(),
            source: None,
        };
        match sample.amount {
            Amount::Done { done, total } => {
                track.total = total;
                track.highest = done;
                track.count = Count::First(done);
                // Its items follow when the next count shows whether the training was resumed.
                track.report(at, OutputReport::Added(0.0));
            }
            _ => track.take(at, sample),
        }
        track
    }

    /// Whether a line belongs to this track.
    pub fn matches(&self, sample: &Sample) -> bool {
        let is_count = matches!(sample.amount, Amount::Done { .. });
        let is_same_kind = is_count != matches!(self.count, Count::None);
        let has_total = match (sample.amount, self.total) {
            (
                Amount::Done {
                    total: Some(total), ..
                },
                Some(own),
            ) => (total - own).abs() <= TOTAL_TOLERANCE * own.max(total),
            _ => true,
        };
        is_same_kind
            && has_total
            && self.format == sample.format
            && self.unit == sample.unit
            && self.role == sample.role
            && self.name == sample.name
    }

    /// Takes the next line of the track.
    pub fn take(&mut self, at: Moment, sample: &Sample) {
        self.evidence = self.evidence.max(sample.evidence);
        match sample.amount {
            Amount::Done { done, total } => {
                let items = self.advance(at, done);
                self.total = total.or(self.total);
                if let Some(items) = items {
                    self.add(at, items);
                }
            }
            Amount::Rate(rate) => {
                self.regularity.take(at - self.advanced, rate);
                self.report(at, OutputReport::Rate(rate));
                self.has_advanced(at);
            }
            Amount::One => {
                self.regularity.take(at - self.advanced, 1.0);
                self.add(at, 1.0);
            }
            Amount::NewEpoch => self.begin_epoch(),
        }
    }

    /// The items since the last count; `None` if nothing has advanced.
    fn advance(&mut self, at: Moment, done: f64) -> Option<f64> {
        self.highest = self.highest.max(done);
        let (last, largest, previous) = match &mut self.count {
            Count::None => return None,
            Count::First(first) if done > *first => {
                let (first, advance) = (*first, done - *first);
                self.count = Count::Rising {
                    last: done,
                    largest: advance,
                    previous: None,
                };
                self.regularity.take(at - self.advanced, advance);
                if first <= MAX_FIRST_ADVANCES * advance
                    && let Some((_, OutputReport::Added(items))) = self.pending.front_mut()
                {
                    *items += first;
                    self.items += first;
                }
                return Some(advance);
            }
            Count::First(first) => {
                *first = done;
                return None;
            }
            Count::Rising {
                last,
                largest,
                previous,
            } => (last, largest, previous),
        };
        let is_complete = self.total.is_some_and(|total| *last >= total);
        if done < *last && (done <= *last / 2.0 || is_complete) {
            // The count has restarted. The rest of the last epoch was done, if only its last line is missing.
            let rest = self.total.map_or(0.0, |total| total - *last);
            let rest = if (0.0..=*largest).contains(&rest) {
                rest
            } else {
                0.0
            };
            let begun = if done <= MAX_ADVANCE_FACTOR * *largest {
                done
            } else {
                0.0
            };
            *previous = Some(*last);
            *last = done;
            return Some(rest + begun).filter(|items| *items > 0.0);
        }
        let advance = done - *last;
        // A lower count is that of another process, which is a little behind.
        if advance <= 0.0 {
            return None;
        }
        let is_late = previous.is_some_and(|end| *last < end / 2.0 && done >= end / 2.0);
        if is_late && advance > MAX_ADVANCE_FACTOR * *largest {
            return None;
        }
        *last = done;
        *largest = largest.max(advance);
        self.regularity.take(at - self.advanced, advance);
        Some(advance)
    }

    /// Begins an epoch, so that the next count starts at zero.
    pub fn begin_epoch(&mut self) {
        if let Count::Rising { last, .. } = &mut self.count {
            *last = 0.0;
        } else if let Count::First(first) = self.count {
            // `verbose=2` of Keras prints one line for each epoch, with the count of all its steps.
            self.count = Count::Rising {
                last: 0.0,
                largest: first,
                previous: None,
            };
            if let Some((_, OutputReport::Added(items))) = self.pending.front_mut() {
                *items += first;
                self.items += first;
            }
        }
    }

    /// Counts items.
    fn add(&mut self, at: Moment, items: f64) {
        self.items += items;
        self.report(at, OutputReport::Added(items));
        self.has_advanced(at);
    }

    /// Records that the count has advanced.
    fn has_advanced(&mut self, at: Moment) {
        self.advances += 1;
        self.advanced = self.advanced.max(at);
    }

    /// Stores a report; if there are too many, the oldest two become one.
    fn report(&mut self, at: Moment, report: OutputReport) {
        self.pending.push_back((at, report));
        if self.pending.len() > MAX_PENDING
            && let Some((_, OutputReport::Added(oldest))) = self.pending.pop_front()
            && let Some((_, OutputReport::Added(next))) = self.pending.front_mut()
        {
            *next += oldest;
        }
    }

    /// Removes and returns the reports since the last call.
    pub fn take_reports(&mut self) -> impl Iterator<Item = (Moment, OutputReport)> + use<> {
        std::mem::take(&mut self.pending).into_iter()
    }

    /// The time from the first line to the last advance.
    pub fn span(&self) -> Seconds {
        self.advanced - self.began
    }

    /// The mean time between two advances.
    pub fn interval(&self) -> Seconds {
        self.span() / f64::from(self.advances.max(1))
    }

    /// The items per second so far; 0 for rates and lines that stand for one unit, which are used only if nothing is
    /// counted.
    pub fn speed(&self) -> f64 {
        match self.count {
            Count::None => 0.0,
            _ => self.items / self.span().get().max(1e-3),
        }
    }

    /// Whether the lines so far agree with each other well enough for their evidence.
    pub fn is_consistent(&self) -> bool {
        match (self.evidence, &self.count) {
            (Evidence::Strong, _) => self.advances >= 2,
            (_, Count::None) => self.advances >= 4 && self.regularity.amounts_differ_by() <= 5.0,
            (Evidence::Medium, _) => self.advances >= 3,
            (Evidence::Weak, _) => {
                let regularity = &self.regularity;
                let is_regular = regularity.amounts_differ_by() <= 1.0
                    && regularity.intervals_differ_by() <= 4.0;
                self.advances >= 6 && self.highest >= 10.0 && is_regular
            }
        }
    }
}

/// The number of latest advances that are compared.
const COMPARED: usize = 5;

/// The latest advances: the time and the amount of each.
#[derive(Clone, Debug, Default)]
struct Regularity(VecDeque<(f64, f64)>);

impl Regularity {
    fn take(&mut self, interval: Seconds, amount: f64) {
        self.0.push_back((interval.get(), amount));
        if self.0.len() > COMPARED {
            self.0.pop_front();
        }
    }

    /// The ratio of the largest amount to the smallest.
    fn amounts_differ_by(&self) -> f64 {
        ratio(self.0.iter().map(|(_, amount)| *amount))
    }

    /// The ratio of the longest time to the shortest; times below a tenth of a second count as equal, because output
    /// arrives in bursts.
    fn intervals_differ_by(&self) -> f64 {
        ratio(self.0.iter().map(|(interval, _)| interval.max(0.1)))
    }
}

/// The ratio of the largest value to the smallest; infinite if one is not positive.
fn ratio(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(0.0, f64::max);
    let smallest = values.fold(f64::INFINITY, f64::min);
    match smallest > 0.0 && smallest.is_finite() {
        true => largest / smallest,
        false => f64::INFINITY,
    }
}
