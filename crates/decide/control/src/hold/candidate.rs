//! A candidate setting: what was measured at it, and whether it may be used.

use super::config::HoldGoal;
use super::measurement::{Consistency, LoadRatio, Measurement, ratio};
use super::window::WindowMeasurement;

/// The maximum number of times that the wait before a retry doubles.
const MAX_DOUBLINGS: u8 = 3;
/// After this many measurement windows within the limits, changes of a candidate's means are no longer chance.
const LONG_USE: u32 = 4;
/// A power above the cap by at most this factor is a slight violation: the device may have become warmer.
const SLIGHT_VIOLATION: f64 = 1.03;

/// A setting that a search can choose: what was measured there, and whether it may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Candidate {
    state: State,
    /// Whether the last measurement window exceeded the latency bound; one such window may be chance.
    pub was_slow: bool,
}

/// What was measured at a candidate so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    /// The candidate was never used.
    #[default]
    Untried,
    /// The candidate exceeded the cap before its first measurement window was complete; only its power is known.
    PowerOnly {
        power: f64,
        availability: Availability,
    },
    /// At least one complete measurement window is known.
    Measured {
        measurement: Measurement,
        availability: Availability,
    },
}

/// Whether a candidate that was tried may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Availability {
    /// The candidate has not exceeded a limit under the present load.
    #[default]
    Open,
    /// The candidate exceeded a limit and is not used before its retry time, unless there is no better candidate.
    Barred(FailureHistory),
    /// The candidate exceeded a limit earlier and met the limits in a retry.
    Released(FailureHistory),
}

/// How often a candidate exceeded a limit under the present load, and when it may be tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FailureHistory {
    count: u8,
    /// The time before which the candidate is not tried again, in seconds.
    retry_at: f64,
}

/// The limits that a setting must meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperatingLimits {
    /// The power cap, in watts.
    pub cap: f64,
    /// The bound on the 99th percentile of the latency, in seconds; infinite if there is none.
    pub latency: f64,
}

impl OperatingLimits {
    /// The limits with the cap divided by `factor`; used to check powers that were measured before the load grew by
    /// this factor.
    pub fn with_power_growth(&self, factor: f64) -> Self {
        Self {
            cap: self.cap / factor,
            ..*self
        }
    }
}

/// The waits before a candidate that exceeded a limit is tried again, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryDelays {
    /// The wait after the first clear failure of a candidate that was good many times, in seconds.
    pub probe: f64,
    /// The wait after any other failure, in seconds; doubled with each further failure.
    pub expiry: f64,
}

/// How far a candidate exceeded its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The power exceeded the cap only slightly, as that of a device that becomes warmer, so a wrong reading is unlikely.
    Slight,
    /// The power exceeded the cap by more, or the latency exceeded its bound.
    Clear,
}

impl Violation {
    /// Classifies a power above the cap as a slight or a clear violation.
    pub fn of_power(power: f64, limits: &OperatingLimits) -> Self {
        match power > limits.cap && power <= limits.cap * SLIGHT_VIOLATION {
            true => Self::Slight,
            false => Self::Clear,
        }
    }
}

impl Candidate {
    /// Whether anything was measured at the candidate.
    pub fn is_tried(&self) -> bool {
        !matches!(self.state, State::Untried)
    }

    /// The measured values; `None` without a complete measurement window.
    pub fn measurement(&self) -> Option<&Measurement> {
        match &self.state {
            State::Measured { measurement, .. } => Some(measurement),
            State::Untried | State::PowerOnly { .. } => None,
        }
    }

    fn measurement_mut(&mut self) -> Option<&mut Measurement> {
        match &mut self.state {
            State::Measured { measurement, .. } => Some(measurement),
            State::Untried | State::PowerOnly { .. } => None,
        }
    }

    /// Whether the candidate may be used; an untried candidate may.
    fn availability(&self) -> Availability {
        match self.state {
            State::Untried => Availability::Open,
            State::PowerOnly { availability, .. } | State::Measured { availability, .. } => {
                availability
            }
        }
    }

    /// Sets the availability of a candidate that was tried.
    fn set_availability(&mut self, new: Availability) {
        match &mut self.state {
            State::Untried => {}
            State::PowerOnly { availability, .. } | State::Measured { availability, .. } => {
                *availability = new;
            }
        }
    }

    /// Whether at least one complete measurement window is known.
    pub fn is_measured(&self) -> bool {
        self.measurement().is_some()
    }

    /// Whether the candidate exceeded a limit and is excluded until its retry time.
    pub fn is_barred(&self) -> bool {
        matches!(self.availability(), Availability::Barred(_))
    }

    /// The highest mean power over the averaging time, in watts; `None` if the candidate was not tried.
    pub fn power(&self) -> Option<f64> {
        match self.state {
            State::Untried => None,
            State::PowerOnly { power, .. } => Some(power),
            State::Measured { measurement, .. } => Some(measurement.power),
        }
    }

    /// The 99th percentile of the latency in seconds; `None` if the candidate was not tried. It is 0 if only the
    /// power is known: such a candidate is compared by its power alone.
    pub fn p99(&self) -> Option<f64> {
        match self.state {
            State::Untried => None,
            State::PowerOnly { .. } => Some(0.0),
            State::Measured { measurement, .. } => Some(measurement.p99),
        }
    }

    /// The number of consecutive measurement windows within the limits.
    pub fn good_windows(&self) -> u32 {
        self.measurement().map_or(0, |own| own.good_windows)
    }

    /// Whether no known value of the candidate exceeds the limits.
    pub fn meets(&self, limits: &OperatingLimits) -> bool {
        self.power().is_none_or(|power| power <= limits.cap)
            && self.p99().is_none_or(|p99| p99 <= limits.latency)
    }

    /// The value of the objective, which is higher for better candidates.
    pub fn score(&self, goal: HoldGoal) -> f64 {
        let (rate, mean_power) = self
            .measurement()
            .map_or((0.0, 0.0), |own| (own.rate, own.mean_power));
        match goal {
            HoldGoal::Throughput => rate,
            HoldGoal::EnergyPerItem => rate / mean_power.max(1e-9),
        }
    }

    /// Whether the candidate was measured, meets the limits and is not barred.
    pub fn is_good(&self, limits: &OperatingLimits) -> bool {
        self.is_measured() && !self.is_barred() && self.meets(limits)
    }

    /// Whether the candidate may be tried: it has no complete measurement window yet, or its retry is due.
    pub fn may_be_tried(&self, now: f64) -> bool {
        match self.is_barred() {
            true => self.is_retry_due(now),
            false => !self.is_measured(),
        }
    }

    /// Whether the candidate exceeded a limit and its wait for a retry is over.
    pub fn is_retry_due(&self, now: f64) -> bool {
        matches!(self.availability(), Availability::Barred(history) if now >= history.retry_at)
    }

    /// Delays the retry of a barred candidate until this time or later.
    pub fn postpone_retry(&mut self, until: f64) {
        if let Availability::Barred(history) = self.availability() {
            self.set_availability(Availability::Barred(FailureHistory {
                retry_at: history.retry_at.max(until),
                ..history
            }));
        }
    }

    /// Bars the candidate if it exceeds changed limits, and releases it if it meets them.
    pub fn apply_limits(&mut self, limits: &OperatingLimits, now: f64, expiry: f64) {
        if self.meets(limits) {
            self.set_availability(Availability::Open);
        } else if !self.is_barred() {
            self.set_availability(Availability::Barred(FailureHistory {
                count: 1,
                retry_at: now + expiry,
            }));
        }
    }

    /// The ratios of a measurement window's power and throughput to the stored values; `None` if they agree within the
    /// usual scatter.
    pub fn deviation(&self, window: &WindowMeasurement) -> Option<LoadRatio> {
        self.measurement()?.deviation(window)
    }

    /// Adds a measurement window that agrees with the earlier ones to the running means, or stores the first window.
    /// Returns by how much the means of a candidate in long use have changed.
    pub fn add_window(&mut self, window: &WindowMeasurement) -> Option<LoadRatio> {
        let is_barred = self.is_barred();
        let Some(own) = self.measurement_mut() else {
            self.replace_measurement(window);
            return None;
        };
        let before = (own.mean_power, own.rate);
        own.update_scatter(window);
        own.blend(window, 0.5);
        // The highest power of one window may be below that of earlier windows.
        own.power = match is_barred {
            true => window.power,
            false => window.power.max(0.9 * own.power + 0.1 * window.power),
        };
        (own.good_windows >= LONG_USE).then(|| LoadRatio {
            power: ratio(own.mean_power, before.0),
            rate: ratio(own.rate, before.1),
        })
    }

    /// Replaces the stored values by those of a measurement window.
    pub fn replace_measurement(&mut self, window: &WindowMeasurement) {
        let availability = self.availability();
        if let Some(own) = self.measurement_mut() {
            own.blend(window, 1.0);
            own.power = window.power;
            return;
        }
        self.state = State::Measured {
            measurement: Measurement::first(window),
            availability,
        };
    }

    /// Records that the first measurement window had batches that were not full.
    pub fn mark_partial_batches(&mut self) {
        if let Some(own) = self.measurement_mut() {
            own.consistency = Consistency::PartialBatches;
        }
    }

    /// Records a measurement window that differs from the earlier ones; its power and latency replace the stored
    /// ones at once.
    pub fn mark_deviation(&mut self, window: &WindowMeasurement, ratio: LoadRatio) {
        if let Some(own) = self.measurement_mut() {
            own.consistency = Consistency::Deviating(ratio);
            (own.power, own.p99) = (window.power, window.p99);
        }
    }

    /// Scales the stored values to a slowly changing load; a barred candidate stays barred.
    pub fn scale(&mut self, ratio: LoadRatio) {
        match &mut self.state {
            State::Untried => {}
            State::Measured { measurement, .. } => measurement.scale(ratio),
            State::PowerOnly { power, .. } => *power *= ratio.power,
        }
    }

    /// Scales the stored values to a changed load, and releases the candidate if it then meets the limits.
    pub fn scale_to_load(&mut self, ratio: LoadRatio, limits: &OperatingLimits) {
        match &mut self.state {
            State::Untried => return,
            State::Measured { measurement, .. } if measurement.is_newer => {
                measurement.is_newer = false;
                return;
            }
            State::Measured { .. } | State::PowerOnly { .. } => self.scale(ratio),
        }
        if self.meets(limits) {
            self.set_availability(Availability::Open);
        }
    }

    /// Stores a power above the cap. Returns by which factor the power grew if the candidate was good before (the load
    /// grew, or the reading is wrong), and otherwise 1.
    pub fn record_excess(&mut self, power: f64, limits: &OperatingLimits) -> f64 {
        let stored = power.max(limits.cap * (1.0 + 1e-9));
        let was_good = self.is_measured() && self.meets(limits);
        let availability = self.availability();
        let Some(own) = self.measurement_mut() else {
            self.state = State::PowerOnly {
                power: stored,
                availability,
            };
            return 1.0;
        };
        let ratio = match was_good {
            true => ratio(power, own.power).max(1.0),
            false => 1.0,
        };
        own.is_newer = was_good;
        own.power = stored;
        ratio
    }

    /// Records that a measurement window met the limits.
    pub fn record_success(&mut self, now: f64) {
        self.was_slow = false;
        if let Some(own) = self.measurement_mut() {
            own.good_windows = own.good_windows.saturating_add(1);
        }
        // A barred candidate may be in use because there is no better one; a good window does not end its wait.
        if let Availability::Barred(history) = self.availability()
            && now >= history.retry_at
        {
            self.set_availability(Availability::Released(history));
        }
    }

    /// Bars the candidate after it exceeded a limit. If it was good many times and failed clearly, it is tried again
    /// soon, since the reading may be wrong; otherwise after a wait that doubles with each failure.
    pub fn record_failure(&mut self, violation: Violation, now: f64, delays: &RetryDelays) {
        let good_windows = self.good_windows();
        let earlier_failures = match self.availability() {
            Availability::Open => 0,
            Availability::Barred(history) | Availability::Released(history) => {
                let is_old = good_windows > 1 && now - history.retry_at > delays.expiry;
                if is_old { 0 } else { history.count }
            }
        };
        let wait = match (earlier_failures, good_windows, violation) {
            (0, 2.., Violation::Clear) => delays.probe,
            (count, ..) => delays.expiry * f64::from(1_u32 << count.min(MAX_DOUBLINGS)),
        };
        self.set_availability(Availability::Barred(FailureHistory {
            count: earlier_failures.saturating_add(1),
            retry_at: now + wait,
        }));
        if let Some(own) = self.measurement_mut() {
            own.good_windows = 0;
        }
    }
}
