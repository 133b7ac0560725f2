//! Checks that the ranks of a job agree: on the batch, on the phases, and that none stopped before the others.

use std::collections::{BTreeMap, BTreeSet};

use sweetspot_device::Moment;
use sweetspot_link::{Mark, PhaseSpan, Record, Ring};
use sweetspot_quantity::Seconds;
use sweetspot_workload::{Progress, Reporter};

use super::items::ReportSizes;

/// The value by which a rank reports its batch size.
const BATCH_VALUE: &str = "batch";
/// A rank that was silent for this share of the others' reporting time has stopped.
const MAX_SILENT_SHARE: f64 = 0.2;
/// A rank that was silent for less than this has not stopped.
const MIN_SILENCE: Seconds = Seconds::new(1.0);

/// A rank that did this share of the work of the others has not stopped, but does something else at the end.
const WHOLE_SHARE: f64 = 0.9;
/// A phase that is marked less often than this share of the most frequent one need not be marked by all ranks: often only
/// one rank evaluates or saves the network.
const FREQUENT_SHARE: f64 = 0.25;

/// The reports of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
struct RankReports {
    phases: BTreeMap<String, usize>,
    batch: Option<f64>,
    /// The number of items of the progress reports.
    items: ReportSizes,
    first: Option<Moment>,
    last: Option<Moment>,
}

impl RankReports {
    fn note_time(&mut self, at: Moment) {
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
    }

    /// The amount of work that the rank reported: its items, or else its phases.
    fn work(&self) -> f64 {
        let phases = || self.phases.values().sum::<usize>() as f64;
        self.items.total().unwrap_or_else(phases)
    }

    /// The names of the phases of an iteration. Only the faster ranks of a job wait for the others.
    fn frequent_phases(&self) -> BTreeSet<String> {
        let most = self.phases.values().copied().max().unwrap_or(0) as f64;
        let is_frequent = |count: usize| count as f64 >= FREQUENT_SHARE * most;
        let phases = self.phases.iter();
        let frequent = phases.filter(|(name, count)| is_frequent(**count) && *name != "wait");
        frequent.map(|(name, _)| name.clone()).collect()
    }
}

/// The reports of each rank of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    by_rank: BTreeMap<u32, RankReports>,
}

impl Ranks {
    /// Adds a record of the link. Records of programs without ranks are ignored.
    pub fn add_record(&mut self, record: &Record) {
        let Some(rank) = record.ring.rank else { return };
        let reports = self.by_rank.entry(rank).or_default();
        reports.note_time(Moment::from_nanos(record.at.nanos()));
        if let Mark::Value { name, value } = &record.mark
            && **name == *BATCH_VALUE
        {
            reports.batch = Some(*value);
        }
    }

    /// Adds a phase that has ended.
    pub fn add_phase(&mut self, span: &PhaseSpan) {
        let Some(rank) = span.ring.rank else { return };
        let reports = self.by_rank.entry(rank).or_default();
        match reports.phases.get_mut(&*span.name) {
            Some(count) => *count += 1,
            None => {
                reports.phases.insert(span.name.to_string(), 1);
            }
        }
        reports.note_time(Moment::from_nanos(span.end.nanos()));
    }

    /// Adds a report of completed items.
    pub fn add_progress(&mut self, progress: &Progress) {
        let Reporter::Link(Ring {
            rank: Some(rank), ..
        }) = progress.reporter
        else {
            return;
        };
        let reports = self.by_rank.entry(rank).or_default();
        reports.items.add(progress.items);
        reports.note_time(progress.at);
    }

    /// Why the reports are not those of one whole job; `None` if the ranks agree.
    pub fn problem(&self) -> Option<String> {
        if self.by_rank.len() < 2 {
            return None;
        }
        self.stopped_rank().or_else(|| self.different_batches())
    }

    /// The rank that stopped reporting long before the others, if one did.
    fn stopped_rank(&self) -> Option<String> {
        let ends = self.by_rank.values().filter_map(|reports| reports.last);
        let begins = self.by_rank.values().filter_map(|reports| reports.first);
        let (begin, end) = (begins.min()?, ends.max()?);
        let silence = |reports: &RankReports| reports.last.map(|last| end - last);
        let most = self
            .by_rank
            .values()
            .map(RankReports::work)
            .fold(0.0, f64::max);
        let stopped = self.by_rank.iter().find(|(_, reports)| {
            silence(reports).is_some_and(|silent| {
                silent > MIN_SILENCE
                    && silent > (end - begin) * MAX_SILENT_SHARE
                    && reports.work() < WHOLE_SHARE * most
            })
        });
        let (rank, reports) = stopped?;
        Some(format!(
            "rank {rank} stopped reporting {:.1} s before the other ranks: it may have died, and the run is not that of a whole job",
            silence(reports)?.get()
        ))
    }

    /// Says that ranks use different batch sizes: as they report them, or else by the items of their reports.
    fn different_batches(&self) -> Option<String> {
        let reported = |reports: &RankReports| reports.batch;
        self.differing(reported, "reported a batch of").or_else(|| {
            self.differing(
                |reports| reports.items.median(),
                "usually completes this many items at a time:",
            )
        })
    }

    /// Names two ranks that differ in a number.
    fn differing(
        &self,
        value: impl Fn(&RankReports) -> Option<f64>,
        words: &str,
    ) -> Option<String> {
        let mut known = self
            .by_rank
            .iter()
            .filter_map(|(rank, reports)| Some((rank, value(reports)?)));
        let (first, expected) = known.next()?;
        let (rank, found) = known.find(|(_, found)| *found != expected)?;
        Some(format!(
            "the ranks disagree on the batch: rank {rank} {words} {found}, but rank {first} {expected}; give all ranks the same share"
        ))
    }

    /// Says that ranks mark different phases; `None` if they mark the same. It is no reason to reject a run, because one
    /// rank alone may evaluate the network after each step.
    pub fn different_phases(&self) -> Option<String> {
        let names = RankReports::frequent_phases;
        let mut all = self.by_rank.iter();
        let (first, expected) = all.next().map(|(rank, reports)| (rank, names(reports)))?;
        let other = all.find(|(_, reports)| names(reports) != expected);
        let (rank, reports) = other?;
        let list = |names: BTreeSet<String>| match names.is_empty() {
            true => "no phases".to_owned(),
            false => names.into_iter().collect::<Vec<_>>().join(", "),
        };
        Some(format!(
            "the ranks disagree on the phases: rank {rank} marked {}, but rank {first} {}; mark the same phases in all ranks",
            list(names(reports)),
            list(expected)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(phases: &[&str], items: &[f64], last_s: u64) -> RankReports {
        let mut sizes = ReportSizes::default();
        items.iter().for_each(|size| sizes.add(*size));
        RankReports {
            phases: phases.iter().map(|name| ((*name).to_owned(), 10)).collect(),
            batch: None,
            items: sizes,
            first: Some(Moment::from_nanos(0)),
            last: Some(Moment::from_nanos(last_s * 1_000_000_000)),
        }
    }

    fn problem(all: &[RankReports]) -> Option<String> {
        let by_rank = (0..).zip(all.iter().cloned()).collect();
        Ranks { by_rank }.problem()
    }

    fn different_phases(all: &[RankReports]) -> Option<String> {
        let by_rank = (0..).zip(all.iter().cloned()).collect();
        Ranks { by_rank }.different_phases()
    }

    const BOTH: [&str; 2] = ["backward", "forward"];

    #[test]
    fn ranks_that_agree_have_no_problem() {
        let one = reports(&BOTH, &[64.0; 5], 100);
        let waits = reports(
            &["backward", "forward", "wait"],
            &[64.0, 64.0, 64.0, 32.0],
            99,
        );
        assert_eq!(problem(&[one.clone(), waits]), None);
        assert_eq!(problem(&[one]), None);
        assert_eq!(problem(&[]), None);
    }

    #[test]
    fn a_rank_that_dies_is_named() {
        let alive = reports(&BOTH, &[64.0; 5], 100);
        let dead = reports(&BOTH, &[64.0; 3], 60);
        let text = problem(&[alive.clone(), alive.clone(), dead]).unwrap();
        assert!(
            text.starts_with("rank 2 stopped reporting 40.0 s before"),
            "{text}"
        );
        // Rank 0 may evaluate the network alone at the end.
        let done = reports(&BOTH, &[64.0; 5], 60);
        assert_eq!(problem(&[alive, done]), None);
        // A short run's ranks may end half a second apart.
        let (long, short) = (reports(&BOTH, &[], 1), reports(&BOTH, &[], 0));
        assert_eq!(problem(&[long, short]), None);
    }

    #[test]
    fn ranks_that_disagree_on_the_batch_are_named() {
        let mut first = reports(&BOTH, &[64.0; 5], 100);
        let other = reports(&BOTH, &[32.0; 5], 100);
        let text = problem(&[first.clone(), other.clone()]).unwrap();
        assert!(
            text.contains("rank 1 usually completes this many items at a time: 32, but rank 0 64"),
            "{text}"
        );
        first.batch = Some(64.0);
        let mut second = first.clone();
        second.batch = Some(128.0);
        let text = problem(&[first, second]).unwrap();
        assert!(
            text.contains("rank 1 reported a batch of 128, but rank 0 64"),
            "{text}"
        );
    }

    #[test]
    fn ranks_that_disagree_on_phases_are_named() {
        let first = reports(&BOTH, &[64.0; 5], 100);
        let second = reports(&["forward"], &[64.0; 5], 100);
        let text = different_phases(&[first.clone(), second]).unwrap();
        assert!(
            text.contains("rank 1 marked forward, but rank 0 backward, forward"),
            "{text}"
        );
        let mut evaluates = first.clone();
        evaluates.phases.insert("evaluate".to_owned(), 1);
        assert_eq!(different_phases(&[evaluates, first.clone()]), None);
        let none = reports(&[], &[64.0; 5], 100);
        assert!(
            different_phases(&[first, none])
                .unwrap()
                .contains("rank 1 marked no phases")
        );
    }
}
