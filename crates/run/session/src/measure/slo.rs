//! Sets the core clock of the GPUs with every metrics page, so that a server keeps its latency bounds with little energy.

use sweetspot_control::slo::{ServingPage, SloConfig, SloController};
use sweetspot_device::{Clock, DeviceId, Moment, MonotonicClock, Settings};
use sweetspot_quantity::{Megahertz, Seconds, Watts};
use sweetspot_workload::{RunInProgress, ServingReport};

/// A controller and the GPUs whose clock it sets.
pub struct SloLoop {
    controller: SloController,
    devices: Vec<DeviceId>,
    began: Moment,
    /// Each clock that was set, with its time since the start.
    changes: Vec<(Seconds, Megahertz)>,
    /// How long setting the clock took, all changes together.
    switch_time: Seconds,
    has_failed: bool,
}

/// The maximum number of stored changes.
const MAX_CHANGES: usize = 1 << 16;

impl SloLoop {
    /// Creates the loop; nothing is set yet.
    pub fn new(config: SloConfig, devices: Vec<DeviceId>, began: Moment) -> Self {
        Self {
            controller: SloController::new(config),
            devices,
            began,
            changes: Vec::new(),
            switch_time: Seconds::ZERO,
            has_failed: false,
        }
    }

    /// Each clock that was set, with its time since the start, and how long a change took on average.
    pub fn into_changes(self) -> (Vec<(Seconds, Megahertz)>, Option<Seconds>) {
        let count = self.changes.len() as f64;
        let mean = (count > 0.0).then(|| self.switch_time / count);
        (self.changes, mean)
    }

    /// Takes a page: decides, and sets the clock. Returns messages for the user.
    pub fn take(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        report: &ServingReport,
        power: Option<Watts>,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let action = self.controller.step(&ServingPage {
            at: report.at - self.began,
            interval: report.at - report.since,
            change: report.change.clone(),
            power,
        });
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
        if self.changes.len() < MAX_CHANGES {
            self.changes
                .push((MonotonicClock.now() - self.began, clock));
        }
        None
    }
}
