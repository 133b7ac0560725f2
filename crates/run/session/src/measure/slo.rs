//! Sets the core clock of the GPUs with every metrics page, so that a server keeps its latency bounds with little energy.

use sweetspot_control::slo::{
    PowerBoundResult, PowerRecord, ProbeObservation, ServingPage, SloAction, SloConfig,
    SloController,
};
use sweetspot_device::{Clock, DeviceId, Moment, MonotonicClock, Settings};
use sweetspot_quantity::{Joules, Megahertz, Seconds, Watts};
use sweetspot_workload::{ProbeTimes, RunInProgress, ServingReport};

/// A controller and the GPUs whose clock it sets.
pub struct SloLoop {
    controller: SloController,
    devices: Vec<DeviceId>,
    began: Moment,
    /// Each clock that was set, with its time since the start.
    changes: Vec<(Seconds, Megahertz)>,
    /// The number of changes, and how long setting the clock took, all together.
    change_count: u64,
    switch_time: Seconds,
    has_failed: bool,
    /// When the power was last read.
    power_read: Option<Seconds>,
    /// The energy and the time of the power readings since the last page.
    since_page: (Joules, Seconds),
    power: Option<PowerRecord>,
}

/// How the core clock was set to keep latency bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockControl {
    /// Each clock that was set, with its time since the start.
    pub changes: Vec<(Seconds, Megahertz)>,
    /// How long setting a clock took on average; `None` if none was set.
    pub switch_time: Option<Seconds>,
    /// Whether the GPU refused a clock, after which none was set any more.
    pub has_failed: bool,
    /// What became of the bound on power; `None` without one.
    pub power: Option<PowerBoundResult>,
}

/// The maximum number of stored changes.
const MAX_CHANGES: usize = 1 << 16;
/// How long a GPU takes to reach a clock after the call that sets it, at most.
const TIME_TO_FOLLOW: Seconds = Seconds::new(0.1);

impl SloLoop {
    /// Creates the loop; nothing is set yet.
    pub fn new(config: SloConfig, devices: Vec<DeviceId>, began: Moment) -> Self {
        Self {
            power: config.below.map(PowerRecord::new),
            controller: SloController::new(config),
            devices,
            began,
            changes: Vec::new(),
            change_count: 0,
            switch_time: Seconds::ZERO,
            has_failed: false,
            power_read: None,
            since_page: (Joules::ZERO, Seconds::ZERO),
        }
    }

    /// How the clock was set.
    pub fn into_result(self) -> ClockControl {
        ClockControl {
            switch_time: self.mean_switch_time(),
            changes: self.changes,
            has_failed: self.has_failed,
            power: self.power.map(|record| record.result()),
        }
    }

    fn mean_switch_time(&self) -> Option<Seconds> {
        (self.change_count > 0).then(|| self.switch_time / self.change_count as f64)
    }

    /// Takes the newest power reading, which counts for the time since the one before; called often. Raises the clock if no
    /// page has come for some time.
    pub fn poll(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        now: Moment,
        power: Option<Watts>,
    ) -> Option<String> {
        let now = now - self.began;
        let before = self.power_read.replace(now);
        if let (Some(power), Some(before)) = (power, before) {
            let time = now - before;
            self.since_page.0 += power * time;
            self.since_page.1 += time;
            if let Some(record) = &mut self.power {
                record.add(before, now, power);
            }
        }
        let action = self.controller.without_page(now);
        self.carry_out(run, &action).pop()
    }

    /// Takes a page: decides, and sets the clock. Returns messages for the user.
    pub fn take(&mut self, run: &mut RunInProgress<'_, '_>, report: &ServingReport) -> Vec<String> {
        let (energy, time) = std::mem::replace(&mut self.since_page, (Joules::ZERO, Seconds::ZERO));
        let action = self.controller.step(&ServingPage {
            at: report.at - self.began,
            interval: report.at - report.since,
            change: report.change.clone(),
            power: (time > Seconds::ZERO).then(|| energy / time),
        });
        self.carry_out(run, &action)
    }

    /// Takes the latencies of a request of our own.
    pub fn take_probe(&mut self, probe: &ProbeTimes) {
        self.controller.add_probe(&ProbeObservation {
            sent: probe.sent - self.began,
            first_token: probe.first_token,
            inter_token: probe.inter_token.clone(),
        });
    }

    /// Sets the clock that the controller chose; returns messages for the user.
    fn carry_out(&mut self, run: &mut RunInProgress<'_, '_>, action: &SloAction) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(action.notice.map(|notice| notice.to_string()));
        if let Some(clock) = action.clock
            && run.interrupted().is_none()
            && !self.has_failed
        {
            notes.extend(self.set(run, clock));
        }
        notes
    }

    /// Sets the clock of all GPUs; a message if that fails.
    fn set(&mut self, run: &mut RunInProgress<'_, '_>, clock: Megahertz) -> Option<String> {
        let begun = std::time::Instant::now();
        let settings = Settings {
            core_clock: Some(clock),
            ..Settings::default()
        };
        let lease = run.lease()?;
        for device in &self.devices {
            if let Err(problem) = lease.set(device, &settings) {
                self.has_failed = true;
                // What was set before is taken back, so that the server runs at full speed.
                for device in &self.devices {
                    let _ = lease.restore(device);
                }
                return Some(format!(
                    "the core clock cannot be set: {problem}; the earlier settings are restored"
                ));
            }
        }
        let elapsed = Seconds::new(begun.elapsed().as_secs_f64());
        self.switch_time += elapsed;
        self.change_count += 1;
        if let Some(mean) = self.mean_switch_time() {
            self.controller.set_switch_time(TIME_TO_FOLLOW + mean);
        }
        if self.changes.len() < MAX_CHANGES {
            self.changes
                .push((MonotonicClock.now() - self.began, clock));
        }
        None
    }
}
