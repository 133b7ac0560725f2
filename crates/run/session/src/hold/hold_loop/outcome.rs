//! What came of a hold.

use sweetspot_control::hold::HoldConfig;
use sweetspot_quantity::Seconds;
use sweetspot_workload::CommandExit;

use super::HoldLoop;
use crate::hold::real::words;
use crate::hold::request::HoldRequest;
use crate::hold::result::HoldResult;
use crate::hold::verdict::Verdict;
use crate::measure::Machine;

impl HoldLoop<'_> {
    /// What came of it.
    pub fn held(self, machine: Machine, request: &HoldRequest, terms: &HoldConfig) -> HoldResult {
        let summary = self.account.summary();
        let first = self.served.map(|(first, _)| first - self.begin);
        let last = self.served.map(|(_, last)| last - self.begin);
        // A change of the cap begins another settling.
        let from = self.record.caps.last().map_or(Seconds::ZERO, |(at, _)| *at);
        let from = first.map_or(from, |first| from.max(first));
        let settled = summary.settle_time.map(|time| from + time);
        HoldResult {
            command: words(&request.command),
            machine,
            device: self.device,
            knob: request.knob,
            mode: terms.mode,
            goal: terms.goal,
            batches: terms.batches.clone(),
            latency_bound: terms.latency_p99,
            run_time: Seconds::ZERO,
            energy: None,
            settled_items_per_s: settled
                .zip(last)
                .and_then(|(settled, last)| self.record.rate_between(settled, last)),
            latency_p99: self.record.p99_from(settled.unwrap_or(Seconds::ZERO)),
            over_time: self.record.over_time(),
            settings: self.record.settings,
            caps: self.record.caps,
            notes: self.record.notes,
            summary,
            kept: Verdict::Unknown(String::new()),
            ended: CommandExit::Code(0),
            restored: true,
        }
    }
}
