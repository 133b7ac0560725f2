//! The configuration of a controller.

use super::cap_on::CapOn;
use sweetspot_quantity::{Megahertz, Ratio, Seconds, Watts};

/// The control algorithm that searches for the best setting below the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldMode {
    /// Algorithm 1 of the BatchSizer paper (batch_sizer_2021), line by line as printed: it never clears its highest
    /// reading.
    Paper,
    /// The algorithm as the text of section 4.2 of the BatchSizer paper describes it: it halves the distance to the
    /// smallest or the largest size and remembers nothing.
    Text,
    /// Algorithm 1 of the BatchSizer paper, but its readings are cleared after each decision.
    Windowed,
    /// The default: a search that remembers the measurements at every batch size (or every clock at one batch size)
    /// and predicts the others from them.
    Robust,
    /// Pseudo-binary search over core clocks at one batch size, like the baseline of the BatchSizer paper.
    Dvfs,
    /// A step-by-step climb from the lowest core clock at one batch size, like the baseline PIT of the BatchSizer
    /// paper.
    StepUp,
    /// A search over the batch size and a device knob together.
    Joint,
}

impl HoldMode {
    /// All control algorithms, in display order.
    pub const ALL: [Self; 7] = [
        Self::Dvfs,
        Self::StepUp,
        Self::Paper,
        Self::Text,
        Self::Windowed,
        Self::Robust,
        Self::Joint,
    ];

    /// The name of the control algorithm in flags and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Text => "text",
            Self::Windowed => "windowed",
            Self::Robust => "robust",
            Self::Dvfs => "dvfs",
            Self::StepUp => "step_up",
            Self::Joint => "joint",
        }
    }

    /// Whether the control algorithm is one of the BatchSizer paper, which decide by the highest power reading while a few
    /// batches run.
    pub const fn follows_paper(self) -> bool {
        matches!(
            self,
            Self::Paper | Self::Text | Self::Windowed | Self::Dvfs | Self::StepUp
        )
    }

    /// What the cap binds unless the user says otherwise: every reading for the algorithms of the BatchSizer paper, the
    /// mean over a second for the others.
    pub fn default_cap_on(self) -> CapOn {
        match self.follows_paper() {
            true => CapOn::Reading,
            false => CapOn::default(),
        }
    }

    /// Whether the control algorithm can run without a device knob, setting only the batch size.
    pub const fn is_batch_only(self) -> bool {
        matches!(
            self,
            Self::Paper | Self::Text | Self::Windowed | Self::Robust
        )
    }
}

impl std::fmt::Display for HoldMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The objective by which settings that meet the cap and the latency bound are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HoldGoal {
    /// Maximises the items per second.
    #[default]
    Throughput,
    /// Minimises the energy per item.
    EnergyPerItem,
}

/// The device knob that the controller may set, with its levels in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DeviceKnob {
    /// The controller sets only the batch size, which needs no root privilege.
    #[default]
    None,
    /// The controller sets the core clock.
    CoreClock(Vec<Megahertz>),
    /// The controller sets the power cap of the device.
    PowerCap(Vec<Watts>),
}

impl DeviceKnob {
    /// The number of levels of the device knob.
    pub fn level_count(&self) -> usize {
        match self {
            Self::None => 0,
            Self::CoreClock(levels) => levels.len(),
            Self::PowerCap(levels) => levels.len(),
        }
    }
}

/// Batch sizes up to `largest` whose neighbours differ by at most one sixteenth: every size up to 32, then steps of 2, 4,
/// 8 and so on.
pub fn fine_batches(largest: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut size = 1;
    while size <= largest {
        sizes.push(size);
        size += (size / 16).next_power_of_two().max(1);
    }
    sizes
}

/// The power caps of a device around a cap of the user's, in ascending order. A device holds its cap on average and is
/// above it now and then, so that the highest level below the user's cap leaves a little of it. A load with pauses may need a level
/// above it: the device cuts off every peak, but only the mean must stay below the user's cap.
fn levels_around(cap: Watts, lowest: Watts, highest: Watts) -> Vec<Watts> {
    const SHARES: [f64; 19] = [
        0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 1.04, 1.08, 1.15, 1.25, 1.35, 1.45, 1.52, 1.6,
        1.7, 1.8, 2.0, 10.0,
    ];
    let levels = SHARES.map(|share| (cap * share).max(lowest).min(highest));
    let mut levels = levels.to_vec();
    levels.dedup();
    levels
}

/// Properties of the power sensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerSensor {
    /// The time without readings after which the sensor counts as stopped.
    pub timeout: Seconds,
}

impl Default for PowerSensor {
    fn default() -> Self {
        Self {
            timeout: Seconds::new(5.0),
        }
    }
}

/// The configuration of a controller; [`HoldConfig::robust`] and [`HoldConfig::new`] fill in the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldConfig {
    /// The control algorithm that searches for the best setting.
    pub mode: HoldMode,
    /// The objective among settings that meet the cap and the latency bound.
    pub goal: HoldGoal,
    /// The batch sizes to choose from, in ascending order.
    pub batches: Vec<u64>,
    /// The batch size if the controller sets only the device knob.
    pub fixed_batch: u64,
    /// The device knob that the controller may set.
    pub knob: DeviceKnob,
    /// The lowest and the highest power cap of the device, if the levels of the knob follow [`HoldConfig::cap`].
    pub device_caps: Option<(Watts, Watts)>,
    /// Whether [`HoldConfig::device_caps`] are those of several GPUs between which watts move at first, to those that the
    /// others wait for. Until that has ended, their sum never exceeds [`HoldConfig::cap`].
    pub is_balancing: bool,
    /// The power cap, which binds what [`HoldConfig::cap_on`] says.
    pub cap: Watts,
    /// The power of the device while the program is loaded and waits for work; absent if it is unknown.
    pub idle_power: Option<Watts>,
    /// The bound on the 99th percentile of the latency, counted from the arrival of an item; absent if there is
    /// none.
    pub latency_p99: Option<Seconds>,
    /// The paper's parameter alpha: its algorithms raise the setting while power is below this share of the cap.
    pub alpha: Ratio,
    /// The minimum number of batches in a measurement window.
    pub window: u32,
    /// The settling time after a change of the batch size; power readings in this time are ignored.
    pub settle: Seconds,
    /// The settling time after a change of core clock or power cap; power readings in this time are ignored, because
    /// the device follows slowly.
    pub settle_device: Seconds,
    /// What the cap binds. The algorithms of the BatchSizer paper decide by readings in any case; for them this says only
    /// what is counted as an excess.
    pub cap_on: CapOn,
    /// The time after which a setting that exceeded a limit is tried again; doubled with each further failure.
    pub expiry: Seconds,
    /// The time after which a setting is tried again if it was good many times and exceeded the cap once. It is short,
    /// because the reading may have been wrong.
    pub probe: Seconds,
    /// A larger setting is preferred only if it improves the objective by at least this share.
    pub saturation: Ratio,
    /// The user is notified if the program has not asked for a batch size within this time.
    pub patience: Seconds,
    /// The power sensor of the device.
    pub sensor: PowerSensor,
}

impl HoldConfig {
    /// The default configuration for [`HoldMode::Robust`] with the batch size as the only knob.
    pub fn robust(cap: Watts, batches: Vec<u64>) -> Self {
        Self::new(HoldMode::Robust, cap, batches, DeviceKnob::None)
    }

    /// The default configuration for a control algorithm; alpha, window and fixed batch size are those of the
    /// BatchSizer paper.
    pub fn new(mode: HoldMode, cap: Watts, batches: Vec<u64>, knob: DeviceKnob) -> Self {
        Self {
            mode,
            goal: HoldGoal::Throughput,
            batches,
            fixed_batch: 16,
            knob,
            device_caps: None,
            is_balancing: false,
            cap,
            idle_power: None,
            latency_p99: None,
            alpha: Ratio::new(0.8),
            window: 10,
            settle: Seconds::new(0.1),
            settle_device: Seconds::new(1.0),
            cap_on: mode.default_cap_on(),
            expiry: Seconds::new(300.0),
            probe: Seconds::new(10.0),
            saturation: Ratio::new(0.003),
            patience: Seconds::new(10.0),
            sensor: PowerSensor::default(),
        }
    }

    /// The configuration in which the device itself keeps the cap and the controller chooses the batch size below it. The
    /// device's own power cap, from `lowest` to `highest`, is set to `cap`, and to a little more or less if the mean power
    /// allows or requires it.
    pub fn with_device_cap(
        cap: Watts,
        batches: Vec<u64>,
        (lowest, highest): (Watts, Watts),
    ) -> Self {
        let knob = DeviceKnob::PowerCap(levels_around(cap, lowest, highest));
        Self {
            device_caps: Some((lowest, highest)),
            ..Self::new(HoldMode::Joint, cap, batches, knob)
        }
    }

    /// Changes the cap, and with it the levels of a device knob that follow it.
    pub(super) fn set_cap(&mut self, cap: Watts) {
        self.cap = cap;
        if let Some((lowest, highest)) = self.device_caps {
            self.knob = DeviceKnob::PowerCap(levels_around(cap, lowest, highest));
        }
    }

    /// Whether the controller sets only the device and leaves the batch size fixed.
    pub fn sets_device_only(&self) -> bool {
        match self.mode {
            HoldMode::Dvfs | HoldMode::StepUp => true,
            HoldMode::Robust => self.knob != DeviceKnob::None,
            _ => false,
        }
    }

    /// The index of the highest level of the device's power cap that does not exceed [`HoldConfig::cap`], minus
    /// `steps_below`.
    pub(super) fn device_cap_level(&self, steps_below: usize) -> usize {
        let DeviceKnob::PowerCap(levels) = &self.knob else {
            return 0;
        };
        let fitting = levels.partition_point(|level| *level <= self.cap);
        fitting.saturating_sub(1 + steps_below)
    }

    /// Checks that all values of the configuration are valid.
    pub(super) fn validate(&self) -> Result<(), HoldConfigError> {
        if self.batches.is_empty() {
            return Err(HoldConfigError::NoBatchSize);
        }
        if self.batches.contains(&0) {
            return Err(HoldConfigError::BatchSizeZero);
        }
        let mut pairs = self.batches.windows(2);
        if let Some(&[first, second]) = pairs.find(|pair| pair[0] >= pair[1]) {
            return Err(match first == second {
                true => HoldConfigError::DuplicateBatchSize(first),
                false => HoldConfigError::Unsorted { first, second },
            });
        }
        if !(self.cap.is_finite() && self.cap > Watts::ZERO) {
            return Err(HoldConfigError::Cap(self.cap));
        }
        if !(self.alpha.get() > 0.0 && self.alpha.get() <= 1.0) {
            return Err(HoldConfigError::Alpha(self.alpha));
        }
        if self.window == 0 {
            return Err(HoldConfigError::NoWindow);
        }
        if self.fixed_batch == 0 {
            return Err(HoldConfigError::BatchSizeZero);
        }
        for (what, time) in [
            ("settling time", self.settle),
            ("settling time of the device", self.settle_device),
            ("averaging time", self.cap_on.observation_time()),
            ("expiry time", self.expiry),
            ("probe time", self.probe),
            ("patience", self.patience),
            ("sensor timeout", self.sensor.timeout),
        ] {
            if !(time.is_finite() && time >= Seconds::ZERO) {
                return Err(HoldConfigError::Time { what, time });
            }
        }
        let is_bound = |bound: &Seconds| bound.is_finite() && *bound > Seconds::ZERO;
        if let Some(bound) = self.latency_p99.filter(|bound| !is_bound(bound)) {
            return Err(HoldConfigError::Latency(bound));
        }
        let is_ascending = match &self.knob {
            DeviceKnob::None => true,
            DeviceKnob::CoreClock(levels) => levels.is_sorted_by(|a, b| a < b),
            DeviceKnob::PowerCap(levels) => levels.is_sorted_by(|a, b| a < b),
        };
        if !is_ascending {
            return Err(HoldConfigError::Levels);
        }
        let needs_knob = matches!(
            self.mode,
            HoldMode::Dvfs | HoldMode::StepUp | HoldMode::Joint
        );
        if needs_knob && self.knob.level_count() == 0 {
            return Err(HoldConfigError::NoKnob(self.mode));
        }
        Ok(())
    }
}

/// Why the configuration of the controller is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HoldConfigError {
    /// The list of batch sizes is empty.
    #[error("no batch size is given: give at least one, such as 1,2,4,8")]
    NoBatchSize,
    /// A batch size is 0.
    #[error("invalid batch size 0: the smallest is 1")]
    BatchSizeZero,
    /// The batch sizes are not in ascending order.
    #[error("batch sizes must be in ascending order, and {second} follows {first}")]
    Unsorted {
        /// The larger batch size, which is listed first.
        first: u64,
        /// The smaller batch size, which is listed next.
        second: u64,
    },
    /// A batch size is given twice.
    #[error("batch size {0} is given twice")]
    DuplicateBatchSize(u64),
    /// The cap is not a positive power.
    #[error("invalid power cap {0}: give a power above 0 W")]
    Cap(Watts),
    /// Alpha is not above 0 and at most 1.
    #[error("invalid alpha {0}: give a share of the cap above 0 and at most 100 %")]
    Alpha(Ratio),
    /// The minimum number of batches in a measurement window is 0.
    #[error("invalid measurement window of 0 batches: give at least 1")]
    NoWindow,
    /// A duration is negative or not finite.
    #[error("invalid {what} of {time}: give a time of 0 s or more")]
    Time {
        /// The name of the invalid duration.
        what: &'static str,
        /// The invalid duration.
        time: Seconds,
    },
    /// The latency bound is not a positive time.
    #[error("invalid latency bound {0}: give a time above 0 s")]
    Latency(Seconds),
    /// The levels of the device knob are not in ascending order.
    #[error("the levels of the device knob must be in ascending order without duplicates")]
    Levels,
    /// The control algorithm needs a device knob, and none is given.
    #[error(
        "control algorithm {0} sets the core clock or the power cap of the device: give one of these knobs"
    )]
    NoKnob(HoldMode),
}
