//! What a holder is asked to do.

use sweetspot_quantity::{Megahertz, Ratio, Seconds, Watts};

/// How the setting is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Algorithm 1 of batch_sizer_2021, line by line as printed: readings are never cleared.
    Paper,
    /// As the prose of its section 4.2 describes it: halves the way to the smallest or the largest size,
    /// whatever was learnt before.
    Text,
    /// Algorithm 1 with its readings cleared and one decision for each window of batches.
    Windowed,
    /// What is known of every batch size, or of every level of the device at one, is kept, predicted from and
    /// corrected.
    Robust,
    /// Pseudo-binary search over core clocks at one batch size, as the paper's baseline does it.
    Dvfs,
    /// From the lowest core clock up, step by step, at one batch size (PIT).
    StepUp,
    /// Batch size and a knob of the device together.
    Joint,
}

impl Mode {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::Dvfs,
        Self::StepUp,
        Self::Paper,
        Self::Text,
        Self::Windowed,
        Self::Robust,
        Self::Joint,
    ];

    /// As flags and documents write it.
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

    /// Whether the batch size is the only knob.
    pub const fn is_batch_only(self) -> bool {
        matches!(
            self,
            Self::Paper | Self::Text | Self::Windowed | Self::Robust
        )
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What is best among settings that keep cap and latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// Most items a second.
    #[default]
    Throughput,
    /// Least energy for an item.
    EnergyPerItem,
}

/// The knob of the device that may be set, by its levels, lowest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DeviceKnob {
    /// None: the batch size alone, which needs no privilege.
    #[default]
    None,
    /// The core clock.
    CoreClock(Vec<Megahertz>),
    /// The power cap.
    PowerCap(Vec<Watts>),
}

impl DeviceKnob {
    /// How many levels it has.
    pub fn levels(&self) -> usize {
        match self {
            Self::None => 0,
            Self::CoreClock(levels) => levels.len(),
            Self::PowerCap(levels) => levels.len(),
        }
    }
}

/// The sensor whose readings come in: a reading says itself which time it covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerSensor {
    /// How long a reading may come after the last one before the sensor counts as stopped.
    pub silence: Seconds,
}

impl Default for PowerSensor {
    fn default() -> Self {
        Self {
            silence: Seconds::new(5.0),
        }
    }
}

/// What is asked of a holder; [`Terms::robust`] and [`Terms::of`] fill in what is usual.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// How the setting is found.
    pub mode: Mode,
    /// What is best.
    pub goal: Goal,
    /// The batch sizes to choose from, ascending.
    pub batches: Vec<u64>,
    /// The batch size where another knob is searched ([`Mode::Dvfs`], [`Mode::StepUp`]).
    pub fixed_batch: u64,
    /// What may be set on the device.
    pub knob: DeviceKnob,
    /// The mean power of [`Terms::judged_over`] stays at or below it.
    pub cap: Watts,
    /// What the device draws with a program loaded that only waits, where known.
    pub idle: Option<Watts>,
    /// The longest that 99 of 100 items may take from their arrival on.
    pub latency_p99: Option<Seconds>,
    /// Power below this part of the cap leaves room for more ([`Mode::Paper`] and its kin).
    pub alpha: Ratio,
    /// Batches of a window, at least.
    pub window: u32,
    /// After a change nothing is judged for so long.
    pub settle: Seconds,
    /// The same after a change of clock or cap, which the device's governor follows more slowly.
    pub settle_device: Seconds,
    /// The span over whose mean power the cap is judged.
    pub judged_over: Seconds,
    /// What failed is tried again after so long, and then ever more rarely.
    pub expiry: Seconds,
    /// What had been good for long and broke the cap once is tried again after so long: the reading may have
    /// been false.
    pub probe: Seconds,
    /// A larger size that gains less than this is not taken.
    pub saturation: Ratio,
    /// After so long a program that has not asked for its batch size is told of.
    pub patience: Seconds,
    /// How power is read.
    pub sensor: PowerSensor,
}

impl Terms {
    /// The usual ones, batch size alone.
    pub fn robust(cap: Watts, batches: Vec<u64>) -> Self {
        Self::of(Mode::Robust, cap, batches, DeviceKnob::None)
    }

    /// The usual ones for a mode: alpha, window and fixed batch are the paper's.
    pub fn of(mode: Mode, cap: Watts, batches: Vec<u64>, knob: DeviceKnob) -> Self {
        Self {
            mode,
            goal: Goal::Throughput,
            batches,
            fixed_batch: 16,
            knob,
            cap,
            idle: None,
            latency_p99: None,
            alpha: Ratio::new(0.8),
            window: 10,
            settle: Seconds::new(0.1),
            settle_device: Seconds::new(1.0),
            judged_over: Seconds::new(1.0),
            expiry: Seconds::new(300.0),
            probe: Seconds::new(10.0),
            saturation: Ratio::new(0.005),
            patience: Seconds::new(10.0),
            sensor: PowerSensor::default(),
        }
    }

    /// Whether the batch size stays as it is.
    pub fn sets_device_alone(&self) -> bool {
        match self.mode {
            Mode::Dvfs | Mode::StepUp => true,
            Mode::Robust => self.knob != DeviceKnob::None,
            _ => false,
        }
    }

    /// The highest level of the device's own cap that is not above the cap, less so many.
    pub(super) fn own_cap(&self, lower: usize) -> usize {
        let DeviceKnob::PowerCap(levels) = &self.knob else {
            return 0;
        };
        let fitting = levels.partition_point(|level| *level <= self.cap);
        fitting.saturating_sub(1 + lower)
    }

    pub(super) fn check(&self) -> Result<(), TermsError> {
        if self.batches.is_empty() {
            return Err(TermsError::NoBatch);
        }
        if self.batches.contains(&0) {
            return Err(TermsError::BatchOfNothing);
        }
        let mut pairs = self.batches.windows(2);
        if let Some(&[first, second]) = pairs.find(|pair| pair[0] >= pair[1]) {
            return Err(match first == second {
                true => TermsError::BatchTwice(first),
                false => TermsError::Unsorted { first, second },
            });
        }
        if !(self.cap.is_finite() && self.cap > Watts::ZERO) {
            return Err(TermsError::Cap(self.cap));
        }
        if !(self.alpha.get() > 0.0 && self.alpha.get() <= 1.0) {
            return Err(TermsError::Alpha(self.alpha));
        }
        if self.window == 0 {
            return Err(TermsError::NoWindow);
        }
        if self.fixed_batch == 0 {
            return Err(TermsError::BatchOfNothing);
        }
        for (what, time) in [
            ("settling", self.settle),
            ("settling of the device", self.settle_device),
            ("judging", self.judged_over),
            ("expiry", self.expiry),
            ("probing", self.probe),
            ("patience", self.patience),
            ("the sensor's silence", self.sensor.silence),
        ] {
            if !(time.is_finite() && time >= Seconds::ZERO) {
                return Err(TermsError::Time { what, time });
            }
        }
        let is_bound = |bound: &Seconds| bound.is_finite() && *bound > Seconds::ZERO;
        if let Some(bound) = self.latency_p99.filter(|bound| !is_bound(bound)) {
            return Err(TermsError::Latency(bound));
        }
        let rising = match &self.knob {
            DeviceKnob::None => true,
            DeviceKnob::CoreClock(levels) => levels.is_sorted_by(|a, b| a < b),
            DeviceKnob::PowerCap(levels) => levels.is_sorted_by(|a, b| a < b),
        };
        if !rising {
            return Err(TermsError::Levels);
        }
        let needs_knob = matches!(self.mode, Mode::Dvfs | Mode::StepUp | Mode::Joint);
        if needs_knob && self.knob.levels() == 0 {
            return Err(TermsError::NoKnob(self.mode));
        }
        Ok(())
    }
}

/// Why terms cannot be kept by anybody.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TermsError {
    /// Nothing to choose from.
    #[error("no batch size is given; name at least one, such as 1,2,4,8")]
    NoBatch,
    /// A batch must have items.
    #[error("a batch size of 0 is not possible; the smallest is 1")]
    BatchOfNothing,
    /// Out of order.
    #[error("batch sizes must ascend, and {second} comes after {first}")]
    Unsorted {
        /// The larger, first.
        first: u64,
        /// The smaller, after it.
        second: u64,
    },
    /// The same again.
    #[error("the batch size {0} is there twice")]
    BatchTwice(u64),
    /// No such power.
    #[error("a cap of {0} cannot be held; give a power above 0 W")]
    Cap(Watts),
    /// No such part.
    #[error("alpha is a part of the cap, above 0 and at most 100 %, not {0}")]
    Alpha(Ratio),
    /// A window of no batch.
    #[error("a window has at least one batch")]
    NoWindow,
    /// No such time.
    #[error("the time of {what} cannot be {time}")]
    Time {
        /// Which.
        what: &'static str,
        /// As given.
        time: Seconds,
    },
    /// No such bound.
    #[error("a latency bound of {0} cannot be met; give a time above 0 s")]
    Latency(Seconds),
    /// Out of order.
    #[error("the levels of the device's knob must ascend, each once")]
    Levels,
    /// Nothing to turn.
    #[error("the mode {0} sets a clock or a cap of the device, and none is given")]
    NoKnob(Mode),
}
