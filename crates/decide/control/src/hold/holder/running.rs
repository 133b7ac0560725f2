//! Holds the limit of programs whose running requests follow it over seconds.

use super::setting_search::Axis;
use super::{Holder, SettingEffect, SettingSearch};
use crate::hold::config::fine_batches;
use crate::hold::event::CompletedBatch;
use crate::hold::running_search::RunningSearch;

/// While requests end that an earlier limit let in, their number must fall within this time, in seconds; otherwise the
/// program ignores the limit.
const LONGEST_DRAIN: f64 = 30.0;

impl Holder {
    /// Notes a new batch size, to see how the program follows it.
    pub(super) fn start_following(&mut self, from: u64, to: u64) {
        match &mut self.search {
            SettingSearch::Axis {
                axis: Axis::Batch, ..
            } => self.detector.start(from, to),
            SettingSearch::Running(search) => {
                search.start_size(self.now);
                // After a raise, means over both sizes are those of the transition, which must not exceed the cap either.
                self.effect = SettingEffect::Since(self.now);
                if to < from {
                    self.averager.ignore_before(self.now);
                }
            }
            _ => {}
        }
    }

    /// Changes to the search for programs that batch continuously, if the program has turned out to be one.
    pub(super) fn recognise_running_batch(&mut self, batch: &CompletedBatch) {
        let SettingSearch::Axis {
            search,
            axis: Axis::Batch,
        } = &self.search
        else {
            return;
        };
        if !self.detector.take(batch.items) {
            return;
        }
        // The number of running requests takes every value below the limit, so that limits between the given sizes are
        // possible too.
        let sizes = &self.config.batches;
        let (first, last) = (sizes[0], sizes[sizes.len() - 1]);
        let largest_fitting = sizes[search.fitting() - 1];
        // A large step that was begun is not taken to its end.
        let present = sizes[self.position.batch].min(batch.items.max(first));
        let mut sizes: Vec<u64> = fine_batches(last)
            .into_iter()
            .chain(sizes.clone())
            .collect();
        sizes.retain(|size| *size >= first);
        sizes.sort_unstable();
        sizes.dedup();
        self.position.batch = sizes
            .partition_point(|size| *size <= present)
            .saturating_sub(1);
        let fitting = sizes.partition_point(|size| *size <= largest_fitting);
        self.config.batches = sizes;
        self.search = SettingSearch::Running(RunningSearch::new(&self.config, fitting, self.now));
        self.effect = SettingEffect::Since(self.now);
        self.window.start_setting();
    }

    /// Handles a batch of a program that batches continuously.
    pub(super) fn on_running_batch(&mut self, batch: &CompletedBatch) {
        let limit = self.setting().batch;
        let SettingSearch::Running(search) = &mut self.search else {
            return;
        };
        if batch.items > limit && self.now - self.changed_at > LONGEST_DRAIN {
            return self.on_mismatched_batch(limit, batch.items);
        }
        let has_followed = search.on_batch(self.now, batch.items, limit);
        if has_followed {
            self.window.restart();
        }
        self.window.add_batch(batch);
        if self.exceeds_cap_early() {
            self.decide_on_excess();
        } else {
            self.decide_if_complete();
        }
    }

    /// Whether the present limit was observed for long enough; `true` for other searches.
    pub(super) fn is_observed(&self) -> bool {
        let SettingSearch::Running(search) = &self.search else {
            return true;
        };
        let power = self.window.highest_power();
        let index = self.position.batch;
        power.is_some_and(|power| search.is_observed(index, power, &self.limits(), self.now))
    }
}
