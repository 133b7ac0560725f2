//! Joins the batches of a job's ranks: a batch is done when the slowest rank has done its part.

use std::collections::{BTreeMap, VecDeque};

use sweetspot_control::hold::CompletedBatch;
use sweetspot_device::Moment;
use sweetspot_link::Ring;
use sweetspot_quantity::Seconds;

/// Ranks do not work in step if one has completed no batch for this long while another one has.
const MAX_LAG: Seconds = Seconds::new(5.0);
/// The number of batches of a rank that wait for another rank at most.
const MAX_WAITING: usize = 100_000;

/// Joins the batches that several ranks of a job report.
///
/// A server that is divided among GPUs usually reports from one rank; its batches count as they are. If several ranks
/// report, the n-th batches of all of them are one batch, which has the items of all and takes as long as the slowest.
#[derive(Debug, Default)]
pub struct RankBatches {
    /// The batches of each reporting rank that wait for the other ranks.
    waiting: BTreeMap<u32, VecDeque<(Moment, CompletedBatch)>>,
    is_independent: bool,
}

impl RankBatches {
    /// Takes a batch of a writer, and returns the batches that are complete with it.
    pub fn push(
        &mut self,
        ring: &Ring,
        at: Moment,
        batch: CompletedBatch,
    ) -> Vec<(Moment, CompletedBatch)> {
        let Some(rank) = ring.rank.filter(|_| !self.is_independent) else {
            return vec![(at, batch)];
        };
        let own = self.waiting.entry(rank).or_default();
        if own.len() < MAX_WAITING {
            own.push_back((at, batch));
        }
        self.take_complete()
    }

    /// Forgets a rank whose writer has ended; the other ranks no longer wait for it.
    pub fn end(&mut self, ring: &Ring) -> Vec<(Moment, CompletedBatch)> {
        if let Some(rank) = ring.rank {
            self.waiting.remove(&rank);
        }
        self.take_complete()
    }

    /// The batches that all ranks have completed.
    fn take_complete(&mut self) -> Vec<(Moment, CompletedBatch)> {
        let mut complete = Vec::new();
        while !self.waiting.is_empty() && self.waiting.values().all(|own| !own.is_empty()) {
            let parts = self.waiting.values_mut().filter_map(VecDeque::pop_front);
            complete.extend(parts.reduce(join));
        }
        complete
    }

    /// A message if ranks do not work in step, as replicas of a server do not; only the first time. From then on the
    /// batches of each rank count on their own.
    pub fn check_step(&mut self) -> Option<(String, Vec<(Moment, CompletedBatch)>)> {
        let oldest = |own: &VecDeque<(Moment, CompletedBatch)>| own.front().map(|(at, _)| *at);
        let newest = |own: &VecDeque<(Moment, CompletedBatch)>| own.back().map(|(at, _)| *at);
        let (ahead, _) = self.waiting.iter().find(|(_, own)| {
            let times = oldest(own).zip(newest(own));
            times.is_some_and(|(oldest, newest)| newest - oldest >= MAX_LAG)
        })?;
        let (behind, _) = self.waiting.iter().find(|(_, own)| own.is_empty())?;
        let text = format!(
            "rank {behind} has completed no batch for {MAX_LAG:.0} while rank {ahead} has: from here on each rank's batches are counted on their own"
        );
        self.is_independent = true;
        let waiting = std::mem::take(&mut self.waiting).into_values().flatten();
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_by_key(|(at, _)| *at);
        Some((text, waiting))
    }
}

/// The batch of two ranks together.
fn join(
    (at, one): (Moment, CompletedBatch),
    (other_at, other): (Moment, CompletedBatch),
) -> (Moment, CompletedBatch) {
    let latency = one.latency.into_iter().chain(other.latency);
    let joined = CompletedBatch {
        size: one.size.max(other.size),
        items: one.items.saturating_add(other.items),
        duration: one.duration.max(other.duration),
        latency: latency.reduce(Seconds::max),
    };
    (at.max(other_at), joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(rank: Option<u32>) -> Ring {
        Ring {
            number: rank.unwrap_or(9),
            pid: 1,
            tid: 1,
            rank,
        }
    }

    fn at(seconds: f64) -> Moment {
        Moment::from_nanos((seconds * 1e9) as u64)
    }

    fn batch(items: u64, duration: f64) -> CompletedBatch {
        CompletedBatch {
            size: 16,
            items,
            duration: Seconds::new(duration),
            latency: None,
        }
    }

    #[test]
    fn a_batch_counts_when_the_slowest_rank_has_done_it() {
        let mut join = RankBatches::default();
        let alone = join.push(&ring(Some(0)), at(1.0), batch(16, 0.01));
        assert_eq!(alone, [(at(1.0), batch(16, 0.01))]);
        // From here on another rank reports too.
        let first = join.push(&ring(Some(1)), at(1.1), batch(16, 0.02));
        assert_eq!(first, []);
        let joined = join.push(&ring(Some(0)), at(1.2), batch(10, 0.03));
        assert_eq!(joined, [(at(1.2), batch(26, 0.03))]);
        // Writers without a rank count on their own.
        let other = join.push(&ring(None), at(1.3), batch(4, 0.01));
        assert_eq!(other.len(), 1);
        // A rank that ends is no longer waited for.
        join.push(&ring(Some(0)), at(1.4), batch(16, 0.01));
        assert_eq!(join.end(&ring(Some(1))).len(), 1);
    }

    #[test]
    fn ranks_out_of_step_are_reported_once_and_counted_on_their_own() {
        let mut join = RankBatches::default();
        join.push(&ring(Some(1)), at(0.0), batch(16, 0.1));
        join.push(&ring(Some(0)), at(0.0), batch(16, 0.1));
        join.push(&ring(Some(1)), at(0.0), batch(16, 0.1));
        for step in 0..=50 {
            assert!(join.check_step().is_none(), "{step}");
            join.push(&ring(Some(0)), at(0.1 * f64::from(step)), batch(16, 0.1));
        }
        let (text, waiting) = join.check_step().unwrap();
        assert!(text.contains("rank 1 has completed no batch"), "{text}");
        assert!(waiting.len() > 40, "{}", waiting.len());
        assert_eq!(join.check_step(), None);
        let alone = join.push(&ring(Some(0)), at(9.0), batch(16, 0.1));
        assert_eq!(alone.len(), 1);
    }
}
