//! The loop of `hold`: passes every event, in order, to the control algorithm, and applies the actions that it
//! returns.

mod caps;
mod gpus;
mod messages;
mod result;

use std::num::NonZeroU64;

use sweetspot_control::hold::{
    HoldActions, HoldConfig, HoldEvent, HoldStatistics, Holder, PowerSum,
};
use sweetspot_device::{Clock, Moment, MonotonicClock};
use sweetspot_link::{Control, Tuning};
use sweetspot_measure::Sampler;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_workload::{Lease, RunHandler, RunInProgress, WorkloadEvent};

use super::batches::BatchReader;
use super::cap::{CapFile, CapSource};
use super::energy::EnergyParts;
use super::group::GpuGroup;
use super::history::HoldHistory;
use super::power_reader::PowerReader;
use super::request::HoldRequest;
use super::socket::ControlSocket;
use crate::SessionError;
use crate::observer::{Observer, Status};
use crate::tune::RankJoin;
use gpus::ReadingsOfGpu;

/// The interval between updates of the status line.
const STATUS_INTERVAL: Seconds = Seconds::new(0.1);
/// After this many measurement windows without a change, the setting counts as settled, and the program is
/// informed.
const SETTLED_WINDOWS: u64 = 3;

/// A running `hold`: passes events to the control algorithm, which chooses the settings.
pub struct HoldLoop<'a> {
    holder: Holder,
    statistics: HoldStatistics,
    batches: BatchReader,
    /// The reader of each GPU's power, and the sum of what they read.
    power: Vec<PowerReader>,
    power_sum: PowerSum,
    readings_of: Vec<ReadingsOfGpu>,
    sampler: &'a Sampler,
    pub energy: EnergyParts,
    group: GpuGroup,
    ranks: RankJoin,
    cap_file: Option<CapFile>,
    socket: Option<ControlSocket>,
    cap_source: Option<CapSource>,
    observer: &'a mut dyn Observer,
    begin: Moment,
    /// The time of the latest event, counted from `begin`.
    now: Seconds,
    history: HoldHistory,
    /// The start of the first batch and the end of the last one; `None` before the first batch.
    pub served: Option<(Moment, Moment)>,
    next_cap_read: Seconds,
    next_status: Seconds,
    /// The number of the measurement window in which the control algorithm last changed the setting.
    changed_in: u64,
    /// The last cap of which the user was warned that it cannot be met.
    infeasible_cap: Option<Watts>,
    /// When the program first asked for a batch size; `None` if it has not asked.
    first_request: Option<Seconds>,
    warned_no_batches: bool,
    patience: Seconds,
    /// Whether the devices' earlier settings are restored; nothing is recorded from then on.
    is_restored: bool,
    has_exited: bool,
    /// The GPUs and ranks that were lost.
    lost: Vec<String>,
    /// The power cap of each of several GPUs, with the time of each change.
    caps_of_gpus: Vec<(Seconds, Vec<Watts>)>,
}

/// The inputs of [`HoldLoop::new`].
pub struct HoldLoopParts<'a> {
    pub request: &'a HoldRequest,
    pub config: &'a HoldConfig,
    pub holder: Holder,
    pub power: Vec<PowerReader>,
    pub sampler: &'a Sampler,
    pub group: GpuGroup,
    pub cap_file: Option<CapFile>,
    pub socket: Option<ControlSocket>,
    /// The moment at which `hold` started; all times count from it.
    pub begin: Moment,
}

impl<'a> HoldLoop<'a> {
    /// Creates the loop; nothing is set yet.
    pub fn new(parts: HoldLoopParts<'a>, observer: &'a mut dyn Observer) -> Self {
        let config = parts.config;
        Self {
            history: HoldHistory::new(config.cap, parts.holder.setting()),
            statistics: HoldStatistics::new(config.cap, config.cap_on),
            holder: parts.holder,
            batches: BatchReader::default(),
            power_sum: PowerSum::new(parts.power.len()),
            readings_of: vec![ReadingsOfGpu::default(); parts.power.len()],
            power: parts.power,
            sampler: parts.sampler,
            energy: EnergyParts::default(),
            group: parts.group,
            ranks: RankJoin::default(),
            cap_file: parts.cap_file,
            socket: parts.socket,
            cap_source: parts.request.cap,
            observer,
            begin: parts.begin,
            now: Seconds::ZERO,
            served: None,
            next_cap_read: Seconds::ZERO,
            next_status: Seconds::ZERO,
            changed_in: 0,
            infeasible_cap: None,
            first_request: None,
            warned_no_batches: false,
            patience: config.patience,
            is_restored: false,
            has_exited: false,
            lost: Vec::new(),
            caps_of_gpus: Vec::new(),
        }
    }

    /// Applies the control algorithm's first setting to the devices and sends the first batch size to the program.
    pub fn apply_first_setting(
        &mut self,
        control: Option<&Control>,
        lease: Option<&mut Lease<'_>>,
    ) -> Result<(), SessionError> {
        let setting = self.holder.setting();
        if let Some(control) = control {
            control.set_batch_size(NonZeroU64::new(setting.batch));
            control.set_tuning(Tuning::Exploring);
        }
        if let Some(lease) = lease {
            let set = self.group.apply(lease, Seconds::ZERO, &setting);
            set.map_err(|(_, problem)| problem)?;
            self.record_caps_of_gpus(Seconds::ZERO);
        }
        Ok(())
    }

    /// Stops recording after a signal: the guard restores the device at once, so the program's last batches no longer
    /// run under `hold`.
    fn stop_recording(&mut self, run: &mut RunInProgress<'_, '_>) {
        if run.lease().is_some() && !self.is_restored {
            self.is_restored = true;
            let whose = match self.group.devices().len() {
                1 => "the device's",
                _ => "the devices'",
            };
            self.notify(format!(
                "{whose} earlier settings are restored; nothing is measured from here on"
            ));
        }
    }

    /// Passes an event of the program to the control algorithm, and records it in history and statistics.
    fn take_event(&mut self, run: &mut RunInProgress<'_, '_>, at: Moment, event: HoldEvent) {
        if self.is_restored {
            return;
        }
        let time = at - self.begin;
        if matches!(
            event,
            HoldEvent::BatchSizeRequested | HoldEvent::BatchCompleted(_)
        ) {
            self.first_request.get_or_insert(time);
        }
        if let HoldEvent::BatchCompleted(done) = &event {
            if self.served.is_none() {
                self.statistics.start(time - done.duration);
                self.sampler.mark();
            }
            let start = at + -done.duration;
            let first = self.served.map_or(start, |(first, _)| first);
            self.served = Some((first, at));
            self.statistics.record_batch(time, done);
            let latency = done.latency.unwrap_or(done.duration);
            self.history
                .record_batch(time, done.items, done.duration, latency);
        }
        self.step(run, time, event);
    }

    /// Passes an event to the control algorithm and carries out the actions that it returns.
    fn step(&mut self, run: &mut RunInProgress<'_, '_>, at: Seconds, event: HoldEvent) {
        // Events of the shared-memory link may be a little older than device readings; the holder's time must not go
        // backwards.
        self.now = self.now.max(at);
        let actions = self.holder.step(self.now, event);
        self.take_actions(run, actions);
    }

    /// Carries out the control algorithm's actions: shows its notice and applies its new setting.
    fn take_actions(&mut self, run: &mut RunInProgress<'_, '_>, actions: HoldActions) {
        if let Some(notice) = actions.notice {
            self.report_notice(&notice);
        }
        if !actions.has_changes() {
            return;
        }
        if let (Some(size), Some(control)) = (actions.batch, run.control()) {
            control.set_batch_size(NonZeroU64::new(size));
        }
        let setting = self.holder.setting();
        self.history.record_setting(self.now, setting);
        self.changed_in = self.holder.window_count();
        if let Some(control) = run.control() {
            control.set_tuning(Tuning::Exploring);
        }
        if self.served.is_some() {
            self.statistics.record_change(self.now);
        }
        self.group.restart(self.now);
        self.set_devices(run, &actions, &setting);
    }

    /// Ends the status line after the command has exited, and warns about lost reports.
    pub fn finish(&mut self) {
        self.observer.clear();
        if self.batches.lost > 0 {
            self.notify(format!(
                "{} reports were lost because the shared-memory link to the program was full: the number of items is too low",
                self.batches.lost
            ));
        }
    }

    /// Shows the user a message that is not stored with the result.
    pub fn note(&mut self, text: &str) {
        self.observer.note(text);
    }
}

impl RunHandler for HoldLoop<'_> {
    type Error = SessionError;

    /// Processes the program's reports and the device's readings since the last call.
    fn poll(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        events: Vec<WorkloadEvent>,
    ) -> Result<(), SessionError> {
        if run.interrupted().is_some() {
            self.stop_recording(run);
        }
        self.take_link_events(run, &events);
        for (at, event) in self.batches.take(events) {
            self.take_event(run, at, event);
        }
        for problem in std::mem::take(&mut self.batches.problems) {
            self.notify(problem);
        }
        let now = MonotonicClock.now() - self.begin;
        self.take_readings(run, now);
        self.read_new_caps(run, now);
        if !self.is_restored {
            self.step(run, now, HoldEvent::Tick);
        }
        self.warn_if_no_batches(now);
        self.statistics.set_window_count(self.holder.window_count());
        let is_settled = self.holder.window_count() >= self.changed_in + SETTLED_WINDOWS;
        if let Some(control) = run.control().filter(|_| is_settled) {
            control.set_tuning(Tuning::Settled);
        }
        if now >= self.next_status {
            self.next_status = now + STATUS_INTERVAL;
            let status = self.history.status(now);
            self.observer.status(&Status::Hold(&status));
        }
        match self.served {
            Some((first, _)) => {
                self.energy
                    .collect_due_part(self.sampler, first, MonotonicClock.now())
            }
            None => Ok(()),
        }
    }

    fn exited(&mut self) {
        self.has_exited = true;
        self.sampler.mark();
    }
}

/// Formats a power in watts, never in kilowatts, as users give caps.
fn watts(power: Watts) -> String {
    format!("{:.1} W", power.get())
}
