//! Joins the progress of a job's ranks: the slowest one decides.

use std::collections::BTreeMap;

use sweetspot_device::Moment;
use sweetspot_link::{Event, Ring};
use sweetspot_quantity::Seconds;
use sweetspot_workload::{Progress, Reporter};

/// A rank counts as lost if the command still runs this long after the rank ended: ranks of a job end together.
const END_TOLERANCE: Seconds = Seconds::new(5.0);
/// Ranks disagree on their batch if the mean numbers of items of their reports differ by more than this share.
const BATCH_TOLERANCE: f64 = 0.01;
/// Batches are compared once each rank has made this many reports: the first ones may be shorter.
const MIN_REPORTS: u64 = 5;

/// What one rank has reported.
#[derive(Clone, Debug, Default)]
struct RankProgress {
    items: f64,
    reports: u64,
    /// The writers of the rank that are open; a process may have several.
    writers: Vec<u32>,
    /// When the last writer of the rank ended; `None` while one is open.
    ended: Option<Moment>,
}

/// Joins the progress of a job's ranks.
///
/// An iteration of a synchronous job is done when its slowest rank has done it. The joined number of items is therefore
/// that of the slowest rank, times the number of ranks. Reports of writers without a rank, and of ranks that disagree on
/// their batch, are added up.
#[derive(Clone, Debug, Default)]
pub struct RankJoin {
    ranks: BTreeMap<u32, RankProgress>,
    /// The items of writers without a rank.
    others: f64,
    /// The joined total, which never falls.
    total: f64,
    has_disagreed: bool,
    has_lost: bool,
}

impl RankJoin {
    /// Adds a report, and returns the joined total of items so far.
    pub fn add(&mut self, progress: &Progress) -> f64 {
        let rank = match progress.reporter {
            Reporter::Link(ring) => ring.rank.map(|rank| (rank, ring)),
            _ => None,
        };
        match rank {
            Some((rank, ring)) => {
                let own = self.ranks.entry(rank).or_default();
                own.items += progress.items;
                own.reports += 1;
                own.open(&ring);
            }
            None => self.others += progress.items,
        }
        self.total = self.total.max(self.joined());
        self.total
    }

    /// The items of all ranks, of which the slowest one decides.
    fn joined(&self) -> f64 {
        let items = self.reporting().map(|(_, rank)| rank.items);
        let count = items.clone().count();
        let of_ranks = match self.has_disagreed {
            true => items.sum(),
            false => {
                let slowest = items.fold(f64::INFINITY, f64::min);
                if count > 0 {
                    slowest * count as f64
                } else {
                    0.0
                }
            }
        };
        self.others + of_ranks
    }

    /// Processes an event of the shared-memory link: writers begin and end.
    pub fn take(&mut self, event: &Event, now: Moment) {
        match event {
            Event::Appeared(ring) => {
                if let Some(rank) = ring.rank {
                    self.ranks.entry(rank).or_default().open(ring);
                }
            }
            Event::Ended(ring) => {
                let rank = ring.rank.and_then(|rank| self.ranks.get_mut(&rank));
                if let Some(rank) = rank {
                    rank.writers.retain(|writer| *writer != ring.number);
                    if rank.writers.is_empty() {
                        rank.ended = Some(now);
                    }
                }
            }
            _ => {}
        }
    }

    /// The ranks that report items: in some programs only the first one does.
    fn reporting(&self) -> impl Iterator<Item = (&u32, &RankProgress)> + Clone {
        self.ranks.iter().filter(|(_, rank)| rank.reports > 0)
    }

    /// A message for the user if ranks disagree on their batch; only the first time.
    pub fn disagreement(&mut self) -> Option<String> {
        if self.has_disagreed {
            return None;
        }
        let text = self.describe_disagreement()?;
        self.has_disagreed = true;
        Some(text)
    }

    /// Says which two ranks disagree on their batch; `None` if none do or it is too early to tell.
    fn describe_disagreement(&self) -> Option<String> {
        if self.reporting().any(|(_, rank)| rank.reports < MIN_REPORTS) {
            return None;
        }
        let batch = |rank: &RankProgress| rank.items / rank.reports as f64;
        let (first, first_rank) = self.reporting().next()?;
        let (other, other_rank) = self
            .reporting()
            .find(|(_, rank)| (batch(rank) / batch(first_rank) - 1.0).abs() > BATCH_TOLERANCE)?;
        Some(format!(
            "rank {first} reports {:.0} items in a batch and rank {other} {:.0}: ranks of one job should have the same batch; their items are added up",
            batch(first_rank),
            batch(other_rank)
        ))
    }

    /// Says which rank has ended although the command runs on; only the first time.
    pub fn lost_rank(&mut self, now: Moment) -> Option<String> {
        if self.has_lost || self.ranks.len() < 2 {
            return None;
        }
        let ended = |rank: &RankProgress| rank.ended.filter(|at| now - *at >= END_TOLERANCE);
        let (number, _) = self.ranks.iter().find(|(_, rank)| ended(rank).is_some())?;
        let text = format!(
            "rank {number} of {} has ended, and the command runs on without it",
            self.ranks.len()
        );
        self.has_lost = true;
        Some(text)
    }
}

impl RankProgress {
    /// Records that a writer of the rank is open.
    fn open(&mut self, ring: &Ring) {
        if !self.writers.contains(&ring.number) {
            self.writers.push(ring.number);
        }
        self.ended = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Moment {
        Moment::from_nanos((seconds * 1e9) as u64)
    }

    fn ring(rank: Option<u32>) -> Ring {
        Ring {
            number: rank.unwrap_or(9),
            pid: 1,
            tid: 1,
            rank,
        }
    }

    fn report(rank: Option<u32>, items: f64) -> Progress {
        Progress {
            at: at(1.0),
            since: None,
            items,
            reporter: Reporter::Link(ring(rank)),
        }
    }

    #[test]
    fn the_slowest_rank_decides() {
        let mut join = RankJoin::default();
        assert_eq!(join.add(&report(Some(0), 64.0)), 64.0);
        assert_eq!(join.add(&report(Some(1), 64.0)), 128.0);
        assert_eq!(join.add(&report(Some(0), 64.0)), 128.0);
        assert_eq!(join.add(&report(Some(0), 64.0)), 128.0);
        assert_eq!(join.add(&report(Some(1), 64.0)), 256.0);
        assert_eq!(join.disagreement(), None);
        // A program without ranks is counted as before.
        let mut join = RankJoin::default();
        join.add(&report(None, 64.0));
        assert_eq!(join.add(&report(None, 32.0)), 96.0);
    }

    #[test]
    fn ranks_that_disagree_on_their_batch_are_reported_once() {
        let mut join = RankJoin::default();
        for _ in 0..MIN_REPORTS {
            assert_eq!(join.disagreement(), None);
            join.add(&report(Some(0), 64.0));
            join.add(&report(Some(1), 32.0));
        }
        let text = join.disagreement().unwrap();
        assert!(text.contains("rank 0 reports 64 items"), "{text}");
        assert!(text.contains("rank 1 32"), "{text}");
        assert_eq!(join.disagreement(), None);
        assert_eq!(join.add(&report(Some(1), 32.0)), 6.0 * 32.0 + 5.0 * 64.0);
    }

    #[test]
    fn a_rank_that_ends_while_the_command_runs_on_is_lost() {
        let mut join = RankJoin::default();
        for rank in [0, 1] {
            join.add(&report(Some(rank), 64.0));
        }
        join.take(&Event::Ended(ring(Some(1))), at(10.0));
        assert_eq!(join.lost_rank(at(12.0)), None);
        let text = join.lost_rank(at(15.0)).unwrap();
        assert!(text.contains("rank 1 of 2 has ended"), "{text}");
        assert_eq!(join.lost_rank(at(16.0)), None);
        // One rank that ends is the end of the job.
        let mut join = RankJoin::default();
        join.add(&report(Some(0), 64.0));
        join.take(&Event::Ended(ring(Some(0))), at(10.0));
        assert_eq!(join.lost_rank(at(20.0)), None);
    }
}
