//! Makes the result of a hold when its loop has ended.

use sweetspot_control::hold::HoldConfig;
use sweetspot_quantity::Seconds;
use sweetspot_workload::CommandExit;

use super::HoldLoop;
use crate::hold::group::GpuGroup;
use crate::hold::real::command_text;
use crate::hold::request::HoldRequest;
use crate::hold::result::{HeldGpu, HoldResult};
use crate::hold::verdict::Verdict;
use crate::measure::Machine;

impl HoldLoop<'_> {
    /// Makes the result of the run of `hold`; the caller adds energy, run time, exit and verdict.
    pub fn into_result(
        self,
        machine: Machine,
        request: &HoldRequest,
        config: &HoldConfig,
    ) -> HoldResult {
        let summary = self.statistics.summary();
        let first = self.served.map(|(first, _)| first - self.begin);
        let last = self.served.map(|(_, last)| last - self.begin);
        // After a change of the cap the hold has to settle anew.
        let last_cap = self.history.caps.last();
        let from = last_cap.map_or(Seconds::ZERO, |(at, _)| *at);
        let from = first.map_or(from, |first| from.max(first));
        let settled = summary.settle_time.map(|time| from + time);
        HoldResult {
            command: command_text(&request.command),
            machine,
            gpus: held_gpus(&self.group),
            scope: request.scope,
            caps_of_gpus: self.caps_of_gpus,
            lost: self.lost,
            knob: request.knob,
            cap_on: config.cap_on,
            unused: summary
                .settle_time
                .and(summary.settled_power)
                .and_then(|power| self.holder.unused_power(power)),
            mode: config.mode,
            goal: config.goal,
            batches: config.batches.clone(),
            latency_bound: config.latency_p99,
            run_time: Seconds::ZERO,
            energy: None,
            settled_items_per_s: settled
                .zip(last)
                .and_then(|(settled, last)| self.history.rate_between(settled, last)),
            latency_p99: self.history.p99_since(settled.unwrap_or(Seconds::ZERO)),
            over_time: self.history.slices(),
            settings: self.history.settings,
            caps: self.history.caps,
            notices: self.history.notices,
            summary,
            verdict: Verdict::Unknown(String::new()),
            ended: CommandExit::Code(0),
            restored: true,
        }
    }
}

/// The GPUs with their last settings; the caller adds their energy.
fn held_gpus(group: &GpuGroup) -> Vec<HeldGpu> {
    let devices = group.devices().iter().enumerate();
    devices
        .map(|(index, device)| HeldGpu {
            device: device.clone(),
            energy: None,
            settings: group.present().map(|present| present[index]),
        })
        .collect()
}
