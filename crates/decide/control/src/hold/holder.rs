//! The state machine that keeps power below a cap: it takes events and returns settings.

mod decisions;
mod external;
mod notices;
mod running;
mod setting_search;
mod unused;

use sweetspot_quantity::Seconds;

use super::action::{HoldActions, HoldNotice, HoldSetting};
use super::candidate::OperatingLimits;
use super::cap_on::CapOn;
use super::config::{DeviceKnob, HoldConfig, HoldConfigError};
use super::event::{CompletedBatch, HoldEvent, PowerReading};
use super::joint_search::GridPosition;
use super::power_mean::PowerAverager;
use super::power_profile::PowerProfile;
use super::running_search::FollowDetector;
use super::window::HoldWindow;
use notices::{ActiveNotices, MAX_PENDING_NOTICES};
use setting_search::SettingSearch;

pub use unused::{UnusedPower, UnusedRemedy};

/// Times that differ by less than this count as equal, in seconds.
const TIME_TOLERANCE: f64 = 1e-6;

/// The controller that keeps power below a cap with the most throughput; see the [module](super).
#[derive(Clone, Debug)]
pub struct Holder {
    config: HoldConfig,
    search: SettingSearch,
    /// The indices of the present batch size and device level.
    position: GridPosition,
    averager: PowerAverager,
    window: HoldWindow,
    effect: SettingEffect,
    /// Recognises programs whose running requests follow a batch size gradually.
    detector: FollowDetector,
    /// The time of the last change of the setting, in seconds.
    changed_at: f64,
    started_at: Option<f64>,
    now: f64,
    window_count: u64,
    change_count: u64,
    /// The number of consecutive batches whose size was not the requested one.
    mismatched_batches: u32,
    /// The number of consecutive measurement windows within the cap.
    windows_within_cap: u32,
    /// The number of consecutive measurement windows at the present setting.
    windows_at_setting: u32,
    /// Whether requests still wait that arrived at an earlier, slower setting.
    has_backlog: bool,
    /// The number of items that arrive per second; absent if it is unknown.
    arrivals_per_s: Option<f64>,
    /// The time of the last power reading, in seconds.
    last_reading: Option<f64>,
    /// Whether the program has asked for its batch size or completed a batch.
    has_asked: bool,
    active_notices: ActiveNotices,
    pending_notices: [Option<HoldNotice>; MAX_PENDING_NOTICES],
    /// Whether the device rejected a setting; from then on only the batch size is set.
    device_rejected: bool,
}

/// Whether the program and the device already use the present setting.
#[derive(Clone, Copy, Debug)]
enum SettingEffect {
    /// The program has not used the setting yet.
    Pending {
        /// The settling time after the start of the first batch at this setting, in seconds.
        settle: f64,
    },
    /// The setting is in effect; batches and readings before this time are ignored.
    Since(f64),
}

impl Holder {
    /// Creates a controller. [`Holder::setting`] then returns the first setting to apply.
    pub fn new(config: HoldConfig) -> Result<Self, HoldConfigError> {
        config.validate()?;
        let mut search = SettingSearch::new(&config);
        Ok(Self {
            averager: PowerAverager::new(config.cap_on),
            position: GridPosition {
                batch: 0,
                level: search.first_level(&config),
            },
            effect: SettingEffect::Pending {
                settle: config.settle.get(),
            },
            search,
            detector: FollowDetector::default(),
            window: HoldWindow::new(config.cap_on),
            config,
            changed_at: 0.0,
            started_at: None,
            now: 0.0,
            window_count: 0,
            change_count: 0,
            mismatched_batches: 0,
            windows_within_cap: 0,
            windows_at_setting: 0,
            has_backlog: false,
            arrivals_per_s: None,
            last_reading: None,
            has_asked: false,
            active_notices: ActiveNotices::default(),
            pending_notices: [None; MAX_PENDING_NOTICES],
            device_rejected: false,
        })
    }

    /// The setting that the program and the device should use at present.
    pub fn setting(&self) -> HoldSetting {
        let batch = match self.config.sets_device_only() {
            true => self.config.fixed_batch,
            false => self.config.batches[self.position.batch],
        };
        let level = self.position.level;
        let (mut core_clock, mut power_cap) = (None, None);
        if !self.device_rejected {
            match &self.config.knob {
                DeviceKnob::None => {}
                DeviceKnob::CoreClock(levels) => core_clock = levels.get(level).copied(),
                DeviceKnob::PowerCap(levels) => power_cap = levels.get(level).copied(),
            }
        }
        HoldSetting {
            batch,
            core_clock,
            power_cap,
        }
    }

    /// The configuration, with the cap that applies at present.
    pub fn config(&self) -> &HoldConfig {
        &self.config
    }

    /// The number of complete measurement windows so far.
    pub fn window_count(&self) -> u64 {
        self.window_count
    }

    /// The number of changes of the setting so far.
    pub fn change_count(&self) -> u64 {
        self.change_count
    }

    /// Takes an event and returns what to change. If `now` is before the time of the last event, that time is used.
    pub fn step(&mut self, now: Seconds, event: HoldEvent) -> HoldActions {
        let now = if now.is_finite() { now.get() } else { self.now };
        self.now = self.now.max(now);
        if self.started_at.is_none() {
            self.started_at = Some(self.now);
            self.changed_at = self.now;
            self.check_idle_power();
        }
        let before = self.setting();
        match event {
            HoldEvent::BatchSizeRequested => self.has_asked = true,
            HoldEvent::BatchCompleted(batch) => self.on_batch(&batch),
            HoldEvent::PowerRead(reading) => self.on_power(&reading),
            HoldEvent::CapChanged(cap) => self.on_cap(cap),
            HoldEvent::DeviceLimit {
                enforced,
                throttled,
            } => self.on_device_limit(enforced, throttled),
            HoldEvent::Queue {
                length,
                arrivals_per_s,
            } => self.on_queue(length, arrivals_per_s),
            HoldEvent::OutOfMemory { size } => self.on_out_of_memory(size),
            HoldEvent::SettingRejected(knob) => self.on_rejection(knob),
            HoldEvent::Balanced { has_changed } => self.on_balanced(has_changed),
            HoldEvent::Tick => {}
        }
        self.check_timeouts();
        self.take_actions(&before)
    }

    /// Returns the changes from the setting `before` to the present one, and the next notice.
    fn take_actions(&mut self, before: &HoldSetting) -> HoldActions {
        let setting = self.setting();
        let actions = HoldActions {
            batch: (setting.batch != before.batch).then_some(setting.batch),
            core_clock: setting
                .core_clock
                .filter(|_| setting.core_clock != before.core_clock),
            power_cap: setting
                .power_cap
                .filter(|_| setting.power_cap != before.power_cap),
            notice: self.next_notice(),
        };
        if actions.has_changes() {
            self.change_count += 1;
            self.start_setting(
                actions.batch.is_some(),
                actions.core_clock.is_some() || actions.power_cap.is_some(),
            );
            if actions.batch.is_some() {
                self.start_following(before.batch, setting.batch);
            }
        }
        actions
    }

    /// Starts to measure at a new setting.
    fn start_setting(&mut self, batch_changed: bool, device_changed: bool) {
        self.changed_at = self.now;
        self.window.start_setting();
        if let SettingSearch::Paper { profile, .. } = &mut self.search {
            *profile = PowerProfile::default();
        }
        self.mismatched_batches = 0;
        let settle = match device_changed {
            true => self.config.settle_device.get(),
            false => self.config.settle.get(),
        };
        self.effect = SettingEffect::Pending { settle };
        if !batch_changed && device_changed {
            // The device follows at once, and the program continues as before.
            self.take_effect_at(self.now + settle);
        }
    }

    /// Ignores batches and power readings before this time.
    fn take_effect_at(&mut self, time: f64) {
        self.effect = SettingEffect::Since(time);
        self.averager.ignore_before(time);
    }

    /// Handles a completed batch.
    fn on_batch(&mut self, batch: &CompletedBatch) {
        self.has_asked = true;
        self.recognise_running_batch(batch);
        if matches!(self.search, SettingSearch::Running(_)) {
            return self.on_running_batch(batch);
        }
        let requested = self.setting().batch;
        if batch.size != requested {
            return self.on_mismatched_batch(requested, batch.size);
        }
        self.mismatched_batches = 0;
        self.active_notices.batch_size_ignored = false;
        let started_at = self.now - batch.duration.get();
        if let SettingEffect::Pending { settle } = self.effect {
            self.take_effect_at(started_at.max(self.changed_at) + settle);
        }
        // Batches before this time were warm-up or ran at another device setting.
        if let SettingEffect::Since(time) = self.effect
            && started_at < time - TIME_TOLERANCE
        {
            return;
        }
        self.window.add_batch(batch);
        if let SettingSearch::Paper { profile, .. } = &mut self.search {
            profile.add_batch(self.now, self.config.window);
        }
        if self.exceeds_cap_early() {
            self.decide_on_excess();
        } else {
            self.decide_if_complete();
        }
    }

    /// Handles a batch whose size was not the requested one.
    fn on_mismatched_batch(&mut self, requested: u64, used: u64) {
        self.mismatched_batches = self.mismatched_batches.saturating_add(1);
        let is_long = self.now - self.changed_at >= self.config.cap_on.observation_time().get();
        let is_ignored = self.mismatched_batches > self.config.window && is_long;
        if is_ignored && !self.active_notices.batch_size_ignored {
            self.active_notices.batch_size_ignored = true;
            self.notify(HoldNotice::BatchSizeIgnored { requested, used });
        }
    }

    /// Handles a power reading.
    fn on_power(&mut self, reading: &PowerReading) {
        self.last_reading = Some(self.now);
        if self.active_notices.sensor_stopped {
            self.active_notices.sensor_stopped = false;
            self.notify(HoldNotice::SensorResumed);
        }
        if let SettingSearch::Paper { profile, .. } = &mut self.search {
            let from = reading.from.get();
            if matches!(self.effect, SettingEffect::Since(time) if from >= time - TIME_TOLERANCE) {
                profile.add_reading(reading);
                self.decide_if_complete();
            }
            return;
        }
        let mean = self.averager.push(reading);
        if matches!(self.effect, SettingEffect::Pending { .. }) || self.window.batches == 0 {
            return;
        }
        let Some(mean) = mean else {
            // A breaker does not wait until a setting has been observed for long enough.
            if self.config.cap_on == CapOn::Reading && self.exceeds_cap_early() {
                self.decide_on_excess();
            }
            return;
        };
        let exceeds_cap = self.window.add_power(&mean, self.config.cap.get());
        if exceeds_cap {
            self.decide_on_excess();
        } else {
            self.decide_if_complete();
        }
    }

    /// The power cap and the latency bound that apply at present.
    fn limits(&self) -> OperatingLimits {
        OperatingLimits {
            cap: self.config.cap.get(),
            latency: self.config.latency_p99.map_or(f64::INFINITY, Seconds::get),
        }
    }
}
