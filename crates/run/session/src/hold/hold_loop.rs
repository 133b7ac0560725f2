//! Gives a controller everything that happens, in order, and does what it asks for.

mod messages;
mod outcome;

use std::num::NonZeroU64;

use sweetspot_control::hold::{
    HoldActions, HoldConfig, HoldEvent, HoldSetting, HoldStatistics, Holder,
};
use sweetspot_device::{Clock, Descriptor, Knob, Moment, MonotonicClock};
use sweetspot_link::{Control, Tuning};
use sweetspot_measure::Sampler;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_workload::{Lease, RunHandler, RunInProgress, WorkloadEvent};

use super::batches::BatchReader;
use super::cap::{Below, CapFile};
use super::energy::EnergyParts;
use super::feed::{Feed, Read};
use super::real::settings_of;
use super::record::Record;
use super::request::HoldRequest;
use super::socket::ControlSocket;
use crate::observer::{Observer, Status};
use crate::{DevicesError, SessionError};

/// The file of the cap is looked at so often.
const FILE_EVERY: Seconds = Seconds::new(0.1);
/// A line on a terminal is renewed so often.
const LIVE_EVERY: Seconds = Seconds::new(0.1);
/// While batches go on, power is never the same for so long: a sensor without timestamps that says so sticks.
const STUCK_AFTER: Seconds = Seconds::new(1.0);

/// Windows without a change after which the program is told that the setting stays.
const QUIET: u64 = 3;

/// A hold that is under way.
pub struct HoldLoop<'a> {
    holder: Holder,
    account: HoldStatistics,
    batches: BatchReader,
    feed: Feed,
    sampler: &'a Sampler,
    pub energy: EnergyParts,
    device: Descriptor,
    file: Option<CapFile>,
    socket: Option<ControlSocket>,
    below: Option<Below>,
    observer: &'a mut dyn Observer,
    begin: Moment,
    /// The latest time that was told.
    now: Seconds,
    record: Record,
    /// The end of the first batch and of the last.
    pub served: Option<(Moment, Moment)>,
    last_new: Seconds,
    /// The last power that differed from the one before, since when, and whether that was said.
    same: (Watts, Seconds, bool),
    file_at: Seconds,
    live_at: Seconds,
    /// The controller's count of windows at its last change.
    changed_in: u64,
    /// A cap that cannot be held, as was said.
    infeasible_cap: Option<Watts>,
    /// When the program asked first, and whether it was told that it reports nothing.
    asked: Option<Seconds>,
    warned_no_batches: bool,
    patience: Seconds,
    /// The device is as it was before: what comes now is not of the hold.
    is_given_back: bool,
}

/// What a hold is made of.
pub struct Parts<'a> {
    pub request: &'a HoldRequest,
    pub terms: &'a HoldConfig,
    pub holder: Holder,
    pub feed: Feed,
    pub sampler: &'a Sampler,
    pub device: Descriptor,
    pub file: Option<CapFile>,
    pub socket: Option<ControlSocket>,
    /// From which times count.
    pub begin: Moment,
}

impl<'a> HoldLoop<'a> {
    pub fn new(parts: Parts<'a>, observer: &'a mut dyn Observer) -> Self {
        let terms = parts.terms;
        Self {
            record: Record::new(terms.cap, parts.holder.setting()),
            account: HoldStatistics::new(terms.cap, terms.averaging_time),
            holder: parts.holder,
            batches: BatchReader::default(),
            feed: parts.feed,
            sampler: parts.sampler,
            energy: EnergyParts::default(),
            device: parts.device,
            file: parts.file,
            socket: parts.socket,
            below: parts.request.below,
            observer,
            begin: parts.begin,
            now: Seconds::ZERO,
            served: None,
            last_new: Seconds::ZERO,
            same: (Watts::ZERO, Seconds::ZERO, false),
            file_at: Seconds::ZERO,
            live_at: Seconds::ZERO,
            changed_in: 0,
            infeasible_cap: None,
            asked: None,
            warned_no_batches: false,
            patience: terms.patience,
            is_given_back: false,
        }
    }

    /// Makes the setting to begin with.
    pub fn set_first(
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
            lease.set(&self.device.id, &settings_of(&setting))?;
        }
        Ok(())
    }

    /// A signal has the guard put the device back at once: what the program does until it ends is not judged.
    fn device_was_put_back(&mut self, run: &mut RunInProgress<'_, '_>) {
        if run.lease().is_some() && !self.is_given_back {
            self.is_given_back = true;
            self.say("the device is put back as it was; nothing is counted from now on".to_owned());
        }
    }

    fn take_event(&mut self, run: &mut RunInProgress<'_, '_>, at: Moment, event: HoldEvent) {
        if self.is_given_back {
            return;
        }
        let time = at - self.begin;
        if matches!(
            event,
            HoldEvent::BatchSizeRequested | HoldEvent::BatchCompleted(_)
        ) {
            self.asked.get_or_insert(time);
        }
        if let HoldEvent::BatchCompleted(done) = &event {
            if self.served.is_none() {
                self.account.start(time - done.duration);
                self.sampler.mark();
            }
            let begun = at + -done.duration;
            let first = self.served.map_or(begun, |(first, _)| first);
            self.served = Some((first, at));
            self.account.record_batch(time, done);
            let latency = done.latency.unwrap_or(done.duration);
            self.record.items(time, done.items, done.duration, latency);
        }
        self.step(run, time, event);
    }

    fn take_reading(&mut self, run: &mut RunInProgress<'_, '_>, now: Seconds, read: Read) {
        match read {
            _ if self.is_given_back => {}
            Read::Power { reading, is_new } => {
                if is_new {
                    self.last_new = now;
                }
                let works = self
                    .served
                    .is_some_and(|(_, last)| now - (last - self.begin) < STUCK_AFTER);
                if works && now - self.last_new > STUCK_AFTER {
                    return;
                }
                self.check_use(now, reading.power, works);
                self.record.power(&reading);
                if self.served.is_some() {
                    self.account.record_power(&reading);
                }
                self.step(run, now, HoldEvent::PowerRead(reading));
            }
            Read::Limit { limits, throttled } => {
                let enforced = limits.enforced;
                if self.below == Some(Below::Device) && enforced != self.record.cap() {
                    self.change_cap(run, now, enforced, "the device");
                }
                // A limit that is set here says nothing of the device's owner.
                if self.holder.setting().power_cap.is_none() {
                    let limit = HoldEvent::DeviceLimit {
                        enforced,
                        throttled,
                    };
                    self.step(run, now, limit);
                }
            }
            // The program goes on or ends by itself; it is not for the tool to end it.
            Read::Lost => self.say(DevicesError::Lost(self.device.name.clone()).to_string()),
        }
    }

    /// Whether somebody set another cap.
    fn look_for_caps(&mut self, run: &mut RunInProgress<'_, '_>, now: Seconds) {
        if now >= self.file_at {
            self.file_at = now + FILE_EVERY;
            match self.file.as_mut().and_then(CapFile::look) {
                Some(Ok(cap)) => self.change_cap(run, now, cap, "the cap file"),
                Some(Err(problem)) => {
                    let cap = self.record.cap();
                    self.say(format!("{problem}; the cap stays at {}", watts(cap)));
                }
                None => {}
            }
        }
        while let Some(wish) = self.socket.as_ref().and_then(ControlSocket::wish) {
            if self.below == Some(Below::Device) {
                let text = "it follows the device's own limit (--below device)";
                wish.answer(Err(text.to_owned()));
                continue;
            }
            let (before, cap) = (self.record.cap(), wish.cap);
            self.change_cap(run, now, cap, "hold set");
            wish.answer(Ok(format!(
                "the cap was {} and is {} now",
                watts(before),
                watts(cap)
            )));
        }
    }

    fn change_cap(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        now: Seconds,
        cap: Watts,
        from: &str,
    ) {
        if cap == self.record.cap() {
            return;
        }
        self.say(format!("the cap is {} now (by {from})", watts(cap)));
        self.record.capped(now, cap);
        if self.served.is_some() {
            self.account.record_cap(now, cap);
        }
        self.step(run, now, HoldEvent::CapChanged(cap));
    }

    fn step(&mut self, run: &mut RunInProgress<'_, '_>, at: Seconds, event: HoldEvent) {
        // What came over the link may be a little older than what was read meanwhile.
        self.now = self.now.max(at);
        let actions = self.holder.step(self.now, event);
        self.act(run, actions);
    }

    fn act(&mut self, run: &mut RunInProgress<'_, '_>, actions: HoldActions) {
        if let Some(notice) = actions.notice {
            self.notice(&notice);
        }
        if !actions.has_changes() {
            return;
        }
        if let (Some(size), Some(control)) = (actions.batch, run.control()) {
            control.set_batch_size(NonZeroU64::new(size));
        }
        let setting = self.holder.setting();
        self.record.changed(self.now, setting);
        self.changed_in = self.holder.window_count();
        if let Some(control) = run.control() {
            control.set_tuning(Tuning::Exploring);
        }
        if self.served.is_some() {
            self.account.record_change(self.now);
        }
        self.apply(run, &actions, &setting);
    }

    fn apply(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        actions: &HoldActions,
        setting: &HoldSetting,
    ) {
        let knob = match (actions.core_clock, actions.power_cap) {
            (None, None) => return,
            (Some(_), _) => Knob::CoreClock,
            (None, Some(_)) => Knob::PowerCap,
        };
        let is_over = run.interrupted().is_some();
        let Some(lease) = run.lease() else {
            return;
        };
        if let Err(problem) = lease.set(&self.device.id, &settings_of(setting))
            && !is_over
        {
            self.say(problem.to_string());
            let actions = self.holder.step(self.now, HoldEvent::SettingRejected(knob));
            self.act(run, actions);
        }
    }

    /// The command is over: says what is still to be said.
    pub fn finish(&mut self) {
        self.observer.clear();
        if self.batches.lost > 0 {
            self.say(format!(
                "{} marks were lost because the link was full: items are too few",
                self.batches.lost
            ));
        }
    }

    /// Tells the user something that is not kept with the result.
    pub fn note(&mut self, text: &str) {
        self.observer.note(text);
    }
}

impl RunHandler for HoldLoop<'_> {
    type Error = SessionError;

    fn poll(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        events: Vec<WorkloadEvent>,
    ) -> Result<(), SessionError> {
        if run.interrupted().is_some() {
            self.device_was_put_back(run);
        }
        for (at, event) in self.batches.take(events) {
            self.take_event(run, at, event);
        }
        for fault in std::mem::take(&mut self.batches.faults) {
            self.say(fault);
        }
        let now = MonotonicClock.now() - self.begin;
        for read in self.feed.reads().collect::<Vec<_>>() {
            self.take_reading(run, now, read);
        }
        self.look_for_caps(run, now);
        if !self.is_given_back {
            self.step(run, now, HoldEvent::Tick);
        }
        self.check_reports(now);
        self.account.set_window_count(self.holder.window_count());
        let is_settled = self.holder.window_count() >= self.changed_in + QUIET;
        if let Some(control) = run.control().filter(|_| is_settled) {
            control.set_tuning(Tuning::Settled);
        }
        if now >= self.live_at {
            self.live_at = now + LIVE_EVERY;
            let live = self.record.live(now);
            self.observer.status(&Status::Hold(&live));
        }
        match self.served {
            Some((first, _)) => self
                .energy
                .follow(self.sampler, first, MonotonicClock.now()),
            None => Ok(()),
        }
    }

    fn exited(&mut self) {
        self.sampler.mark();
    }
}

/// Never in kilowatts: a cap of 1000 W is told as it was given.
fn watts(power: Watts) -> String {
    format!("{:.1} W", power.get())
}
