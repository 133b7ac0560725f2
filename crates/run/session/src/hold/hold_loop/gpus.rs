//! The GPUs of a hold while it runs: their readings, their settings, and what happens if one is lost.

use sweetspot_control::hold::{HoldActions, HoldEvent, HoldSetting};
use sweetspot_device::{Clock, Knob, MonotonicClock};
use sweetspot_guard::GuardError;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_workload::{RunInProgress, WorkloadEvent};

use super::HoldLoop;
use crate::hold::cap::CapSource;
use crate::hold::power_reader::{DeviceReading, PowerReader};

/// A sensor without timestamps counts as stuck if it repeats its value for longer than this while batches run.
const STUCK_AFTER: Seconds = Seconds::new(1.0);

/// What is known about one GPU from its readings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadingsOfGpu {
    /// When the power sensor last gave a new value, counted from the start.
    last_update: Seconds,
    pub(super) constant_power: ConstantPower,
    /// The power limit that the GPU enforces, and whether it runs slower because of it.
    limit: Option<(Watts, bool)>,
}

/// Detects power that does not change while batches run: the batches then probably run on another device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConstantPower {
    pub(super) power: Watts,
    pub(super) since: Seconds,
    pub(super) is_reported: bool,
}

impl HoldLoop<'_> {
    /// Processes the new readings of all GPUs, and moves watts between them if some have too many.
    pub(super) fn take_readings(&mut self, run: &mut RunInProgress<'_, '_>, now: Seconds) {
        let readings = |reader: &PowerReader| reader.take_readings().collect::<Vec<_>>();
        let readings: Vec<_> = self.power.iter().map(readings).collect();
        for (gpu, readings) in readings.into_iter().enumerate() {
            for reading in readings {
                self.take_reading(run, now, gpu, reading);
            }
        }
        if self.is_restored || run.interrupted().is_some() {
            return;
        }
        if self.group.rebalance(now, self.history.cap()) {
            let setting = self.holder.setting();
            self.write_setting(run, &setting, Knob::PowerCap);
        }
        if let Some(has_changed) = self.group.take_balanced() {
            if self.served.is_some() {
                self.statistics.continue_settling(now);
            }
            self.step(run, now, HoldEvent::Balanced { has_changed });
        }
    }

    /// Processes a reading of a GPU: a power value, a new power limit or the loss of the GPU.
    fn take_reading(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        now: Seconds,
        gpu: usize,
        read: DeviceReading,
    ) {
        match read {
            _ if self.is_restored => {}
            DeviceReading::Power { reading, is_new } => {
                if is_new {
                    self.readings_of[gpu].last_update = now;
                }
                let is_busy = self
                    .served
                    .is_some_and(|(_, last)| now - (last - self.begin) < STUCK_AFTER);
                // Without a reading of each GPU there is no sum.
                if is_busy && now - self.readings_of[gpu].last_update > STUCK_AFTER {
                    return;
                }
                self.warn_if_power_is_constant(now, gpu, reading.power, is_busy);
                self.group.record_power(gpu, &reading);
                for sum in self.power_sum.push(gpu, reading) {
                    self.history.record_power(&sum);
                    if self.served.is_some() {
                        self.statistics.record_power(&sum);
                    }
                    self.step(run, now, HoldEvent::PowerRead(sum));
                }
            }
            DeviceReading::Limit { limits, throttled } => {
                self.readings_of[gpu].limit = Some((limits.enforced, throttled));
                self.group.record_throttle(gpu, now, throttled);
                self.take_limits(run, now);
            }
            // The program continues or fails by itself: the tool does not end it.
            DeviceReading::Lost if self.group.devices().len() == 1 => {
                self.notify(self.group.lost_message(gpu));
            }
            DeviceReading::Lost => self.lose_gpu(run, gpu),
        }
    }

    /// Names the GPUs of several whose power is not read; `None` if there is one GPU.
    pub(super) fn silent_gpus(&self) -> Option<String> {
        let is_silent =
            |gpu: &usize| self.now - self.readings_of[*gpu].last_update > STUCK_AFTER * 2.0;
        let silent = (0..self.readings_of.len()).filter(is_silent);
        let names: Vec<String> = silent.map(|gpu| self.group.name(gpu)).collect();
        let is_several = self.readings_of.len() > 1 && !names.is_empty();
        is_several.then(|| format!("no readings of {}", names.join(" and ")))
    }

    /// Processes the power limits of the GPUs, once those of all are known: their sum counts.
    fn take_limits(&mut self, run: &mut RunInProgress<'_, '_>, now: Seconds) {
        let limits = self.readings_of.iter().map(|one| one.limit);
        let Some(limits) = limits.collect::<Option<Vec<_>>>() else {
            return;
        };
        let enforced: Watts = limits.iter().map(|(enforced, _)| *enforced).sum();
        if self.cap_source == Some(CapSource::Device) && enforced != self.history.cap() {
            let whose = match limits.len() {
                1 => "the device",
                _ => "the devices",
            };
            self.change_cap(run, now, enforced, whose);
        }
        // A limit that this hold has set is not a limit that the machine's owner has chosen.
        if self.holder.setting().power_cap.is_none() {
            let limit = HoldEvent::DeviceLimit {
                enforced,
                throttled: limits.iter().any(|(_, throttled)| *throttled),
            };
            self.step(run, now, limit);
        }
    }

    /// Writes a new clock or power cap to the GPUs.
    pub(super) fn set_devices(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        actions: &HoldActions,
        setting: &HoldSetting,
    ) {
        match (actions.core_clock, actions.power_cap) {
            (None, None) => {}
            (Some(_), _) => self.write_setting(run, setting, Knob::CoreClock),
            (None, Some(_)) => self.write_setting(run, setting, Knob::PowerCap),
        }
    }

    /// Writes a setting to the GPUs, and tells the control algorithm if one rejects it.
    fn write_setting(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        setting: &HoldSetting,
        knob: Knob,
    ) {
        let is_interrupted = run.interrupted().is_some();
        let Some(lease) = run.lease().filter(|_| !self.is_restored) else {
            return;
        };
        match self.group.apply(lease, self.now, setting) {
            Ok(()) => self.record_caps_of_gpus(self.now),
            Err(_) if is_interrupted => {}
            // The power readings may show it only later.
            Err((gpu, GuardError::Refused(reason)))
                if reason.is_device_lost() && self.group.devices().len() > 1 =>
            {
                self.lose_gpu(run, gpu);
            }
            Err((_, problem)) => {
                self.notify(problem.to_string());
                let actions = self.holder.step(self.now, HoldEvent::SettingRejected(knob));
                self.take_actions(run, actions);
            }
        }
    }

    /// Records the power caps of several GPUs.
    pub(super) fn record_caps_of_gpus(&mut self, at: Seconds) {
        if let Some(caps) = self.group.caps() {
            self.caps_of_gpus.push((at, caps.to_vec()));
        }
    }

    /// Watches the ranks of the job: one that ends while the command runs on is lost.
    pub(super) fn take_link_events(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        events: &[WorkloadEvent],
    ) {
        let now = MonotonicClock.now();
        for event in events {
            if let WorkloadEvent::Link(event) = event {
                self.ranks.take(event, now);
            }
        }
        if !self.has_exited
            && let Some(lost) = self.ranks.lost_rank(now)
        {
            self.end_hold(run, lost, None);
        }
    }

    /// Reports a GPU that no longer responds.
    fn lose_gpu(&mut self, run: &mut RunInProgress<'_, '_>, gpu: usize) {
        self.end_hold(run, self.group.lost_message(gpu), Some(gpu));
    }

    /// Ends the hold early because a part of the job is lost: the other GPUs get their earlier settings at once.
    fn end_hold(&mut self, run: &mut RunInProgress<'_, '_>, reason: String, gpu: Option<usize>) {
        if self.is_restored {
            return;
        }
        self.is_restored = true;
        let mut problems = Vec::new();
        let mut consequence = "nothing is measured from here on";
        if let Some(lease) = run.lease() {
            problems = self.group.restore(lease, gpu);
            consequence = match gpu {
                Some(_) => {
                    "the other GPUs get their earlier settings, and nothing is measured from here on"
                }
                None => "the GPUs get their earlier settings, and nothing is measured from here on",
            };
        }
        self.notify(format!("{reason}; {consequence}"));
        for problem in problems {
            self.notify(problem);
        }
        self.lost.push(reason);
    }
}
