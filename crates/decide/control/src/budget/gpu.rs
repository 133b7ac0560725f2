//! What a budgeter knows about one GPU.

mod availability;
mod lowest_clock;
mod probed;

use sweetspot_quantity::Watts;

use super::config::BudgetedDevice;
use super::curve::{LearnedCurve, ThroughputCurve};
use super::divide::Claim;
use super::event::GpuReading;
use super::progress::RateMeter;
use lowest_clock::FALL_TIME;

/// The time after a change of the cap in which rates are not measured, in seconds: the clock rises slowly.
const SETTLE_TIME: f64 = 1.5;
/// The time in which the power of a program is observed before its demand counts as known, in seconds.
const DEMAND_TIME: f64 = 1.0;
/// The time in which a GPU follows a lower cap, in seconds. Most need 0.1 s.
const FOLLOW_TIME: f64 = 0.3;
/// The longest wait for a GPU to follow a lower cap, in seconds.
const LONGEST_FOLLOW_TIME: f64 = 2.0;
/// How far above its cap a GPU may be and still count as following it.
const CAP_TOLERANCE: f64 = 1.02;
/// How fast the highest reading approaches lower ones: in about 3 s.
const PEAK_DECAY: f64 = 0.03;
/// The weight of a new reading in the mean power: about the last 0.3 s.
const READING_WEIGHT: f64 = 0.3;
/// The cap that a program gets which its cap should not limit, relative to its power.
const HEADROOM: f64 = 1.01;
/// What a GPU whose cap cannot be set counts for, relative to its power.
const UNCONTROLLED_MARGIN: f64 = 1.03;
/// A GPU whose cap limits it for a smaller share of the time than this takes all the power that it wants.
const LIMITED_SHARE: f64 = 0.03;
/// A GPU whose cap limits it for a larger share of the time than this takes less power than it wants.
const CLEARLY_LIMITED: f64 = 0.2;
/// Without a report of limits, a GPU counts as limited if its power is above this share of its cap.
const NEAR_CAP: f64 = 0.94;
/// How far below the lowest measured cap a plan may go at once.
const CAUTIOUS_STEP: f64 = 0.88;
/// A GPU without activity for this long is idle, in seconds.
const IDLE_AFTER: f64 = 2.0;

/// The state of one GPU.
#[derive(Clone, Debug)]
pub struct GpuState {
    pub device: BudgetedDevice,
    /// The cap that the device has, as last confirmed.
    pub cap: f64,
    /// The cap that was asked for and is not confirmed yet.
    pub asked: Option<f64>,
    /// What the GPU may draw now: its cap, or an earlier higher one that it has not followed down yet.
    pub ceiling: f64,
    lowered_at: Option<f64>,
    /// The mean power of the last readings.
    pub power: f64,
    /// The highest of the last readings; earlier ones count less and less, because the clock may still have risen.
    peak: f64,
    /// The share of time in which the cap limits the GPU, over the last readings.
    limited: f64,
    pub is_busy: bool,
    busy_at: f64,
    busy_since: f64,
    /// The power of the last reading.
    pub last_power: f64,
    /// Whether the power of the GPU is known at present.
    pub is_read: bool,
    pub is_lost: bool,
    pub program: Option<u64>,
    /// Whether the program was seen without a limit by its cap, or at the highest cap.
    pub was_probed: bool,
    /// How many probes the program had without the cap that they asked for.
    failed_probes: u32,
    /// The lowest cap at which the program was seen without a limit, and its power there.
    unlimited: Option<(f64, f64)>,
    /// The highest cap that was seen to limit the program.
    limited_at: f64,
    /// The power below which the GPU does not go, because it cannot lower its clock further.
    pub least_power: f64,
    /// Whether the GPU is at its lowest clock and draws more than its cap. It can stay there at a cap that would be enough at
    /// a higher clock, where its kernels do not run all the time, until it has a cap of its present power.
    pub is_stuck: bool,
    /// How often the GPU fell to its lowest clock.
    falls: u32,
    /// The lowest cap that the GPU has followed since it first fell to its lowest clock.
    followed: f64,
    /// The highest least power of all programs so far.
    reserve: f64,
    curve: ThroughputCurve,
    /// What the curve tells at present.
    learned: Option<LearnedCurve>,
    pub rate: Option<f64>,
    pub meter: RateMeter,
    changed_at: f64,
    /// Rates in a row that are far from what was measured at this cap before.
    surprises: u32,
}

impl GpuState {
    pub fn new(device: BudgetedDevice) -> Self {
        let cap = device.max_cap.get();
        Self {
            device,
            cap,
            asked: None,
            ceiling: cap,
            lowered_at: None,
            power: 0.0,
            peak: 0.0,
            limited: 0.0,
            is_busy: false,
            busy_at: f64::NEG_INFINITY,
            busy_since: f64::INFINITY,
            last_power: 0.0,
            is_read: false,
            is_lost: false,
            program: None,
            was_probed: false,
            failed_probes: 0,
            unlimited: None,
            limited_at: 0.0,
            least_power: 0.0,
            is_stuck: false,
            falls: 0,
            followed: 0.0,
            reserve: 0.0,
            curve: ThroughputCurve::default(),
            learned: None,
            rate: None,
            meter: RateMeter::default(),
            changed_at: f64::NEG_INFINITY,
            surprises: 0,
        }
    }

    /// Whether the budgeter can set this GPU's cap.
    pub fn is_controlled(&self) -> bool {
        self.device.is_settable && !self.is_lost
    }

    /// Takes a reading; returns whether the GPU has become busy.
    pub fn read(&mut self, now: f64, reading: &GpuReading) -> bool {
        let power = reading.power.get();
        if !power.is_finite() || power < 0.0 {
            return false;
        }
        self.is_read = true;
        self.last_power = power;
        self.power += READING_WEIGHT * (power - self.power);
        let by_power = f64::from(u8::from(power > NEAR_CAP * self.cap));
        let limited = reading.limited.map_or(by_power, |share| share.get());
        self.limited += READING_WEIGHT * (limited - self.limited);
        let has_become_busy = self.note_activity(now, reading.is_busy);
        let settled_for = now - self.changed_at.max(self.busy_since) - self.settle_time();
        if settled_for > 0.0 {
            self.peak = power.max(self.peak + PEAK_DECAY * (power - self.peak));
        }
        if settled_for > DEMAND_TIME && self.is_busy {
            self.note_demand();
        }
        self.note_followed(now);
        if let Some(since) = self.lowered_at {
            // A GPU that did not follow a cap before may go below it and come back.
            let time = match self.falls {
                0 => FOLLOW_TIME,
                _ => 2.0 * FALL_TIME,
            };
            let is_there = now - since >= time && power <= self.cap * CAP_TOLERANCE;
            if self.asked.is_none() && (is_there || now - since > LONGEST_FOLLOW_TIME) {
                self.lowered_at = None;
                self.ceiling = self.cap;
            }
        }
        has_become_busy
    }

    /// How long readings do not count after a change: the clock rises slowly, but a GPU whose cap was not changed need not
    /// settle.
    fn settle_time(&self) -> f64 {
        match self.changed_at.is_finite() {
            true => SETTLE_TIME,
            false => 0.0,
        }
    }

    /// Learns what the program takes if it may, once readings under the present cap are there.
    fn note_demand(&mut self) {
        if self.limited < LIMITED_SHARE {
            let is_lower = self.unlimited.is_none_or(|(cap, _)| self.cap <= cap);
            if is_lower || self.limited_at >= self.unlimited.map_or(0.0, |(cap, _)| cap) {
                self.unlimited = Some((self.cap, self.peak));
                self.limited_at = self.limited_at.min(0.98 * self.peak.min(self.cap));
            }
            self.was_probed = true;
        } else if self.limited > CLEARLY_LIMITED && !self.is_stuck {
            self.limited_at = self.limited_at.max(self.cap);
            if self.cap >= self.device.max_cap.get() - 1.0 {
                self.was_probed = true;
            }
        }
        let demand = self.demand();
        if self
            .learned
            .as_ref()
            .is_some_and(|curve| (curve.demand() / demand - 1.0).abs() > 0.005)
        {
            self.learned = None;
        }
    }

    /// The power that the program takes if it may.
    fn demand(&self) -> f64 {
        let max = self.device.max_cap.get();
        match self.unlimited {
            // The program takes more than it did when it was not limited.
            Some((cap, _)) if self.limited_at >= cap => (self.limited_at * 1.1).min(max),
            Some((cap, peak)) => peak.max(self.limited_at * 1.01).min(cap).min(max),
            None => max,
        }
        .max(1.0)
    }

    /// The power of the last reading, as far as the cap allows it.
    pub fn allowed_power(&self) -> f64 {
        match self.is_controlled() {
            true => self.last_power.min(self.ceiling * CAP_TOLERANCE),
            false => self.last_power,
        }
    }

    /// Takes a report of the program's progress; returns whether something was learned.
    pub fn report(&mut self, at: sweetspot_quantity::Seconds, items: f64) -> bool {
        let Some(measured) = self.meter.report(at, items) else {
            return false;
        };
        self.rate = Some(measured.rate);
        if self.is_stuck {
            // The rate belongs to the lowest clock, not to the cap.
            return true;
        }
        // A program that its cap does not limit would run as fast at any higher cap.
        let cap = match self.limited < LIMITED_SHARE {
            true => self.demand(),
            false => self.cap.max(self.known_least()),
        };
        let known = self.curve.rate_at(cap);
        let is_surprise = known.is_some_and(|known| (measured.rate / known - 1.0).abs() > 0.15);
        self.surprises = if is_surprise { self.surprises + 1 } else { 0 };
        if self.surprises >= 3 {
            // The program does something else now.
            self.curve.clear();
            self.was_probed = false;
            self.surprises = 0;
        }
        if !is_surprise {
            self.curve.observe(cap, measured.rate, measured.time);
        }
        self.learned = Some(self.curve.learn(self.demand(), self.known_least()));
        true
    }

    /// Another program runs, or none.
    pub fn set_program(&mut self, now: f64, program: Option<u64>) {
        if self.program != program {
            self.program = program;
            self.forget();
            self.meter.restart(now);
        }
    }

    /// Forgets what is known about the program.
    fn forget(&mut self) {
        self.curve.clear();
        self.learned = None;
        self.rate = None;
        self.unlimited = None;
        self.limited_at = 0.0;
        self.least_power = 0.0;
        self.is_stuck = false;
        self.falls = 0;
        self.was_probed = false;
        self.failed_probes = 0;
        self.surprises = 0;
    }

    /// The cap is read back from the device.
    pub fn applied(&mut self, now: f64, cap: f64) {
        self.asked = None;
        if cap < self.cap {
            self.lowered_at = Some(now);
        } else {
            self.ceiling = self.ceiling.max(cap);
        }
        if (cap - self.cap).abs() > 0.01 {
            self.changed_at = now;
            self.peak = 0.0;
            self.meter.restart(now + SETTLE_TIME);
        }
        self.cap = cap;
    }

    /// What the GPU counts for now: what it may draw, and what it draws if that is more.
    pub fn committed(&self) -> f64 {
        match self.is_controlled() {
            true => self.ceiling.max(self.asked.unwrap_or(0.0)),
            false if self.is_lost => 0.0,
            false => self.uncapped_power(),
        }
        .max(self.power.min(self.least_power))
    }

    /// What the GPU must get of the budget; a probe asks for a cap of this many watts.
    pub fn least(&self, probe: Option<f64>) -> f64 {
        if self.is_lost {
            return 0.0;
        }
        if !self.is_controlled() {
            // What an uncontrolled GPU draws is taken from the others, and a little more because it fluctuates.
            return self.uncapped_power() * UNCONTROLLED_MARGIN;
        }
        let max = self.device.max_cap.get();
        let least = match self.is_busy {
            true => self.device.lowest_cap().max(self.least_cap()).min(max),
            false => self.device.min_cap.get().min(max),
        };
        probe.map_or(least, |cap| cap.clamp(least, max))
    }

    /// What the GPU should get at least, if the budget allows that: a program's throughput may fall steeply far below the
    /// caps at which it was measured.
    pub fn cautious_least(&self, probe: Option<f64>) -> f64 {
        let least = self.least(probe);
        match self.curve.lowest_cap() {
            Some(cap) if self.is_busy && self.is_controlled() => {
                let cautious = CAUTIOUS_STEP * cap.max(self.least_cap());
                least.max(cautious.min(self.useful()))
            }
            _ => least,
        }
    }

    /// What an idle GPU should get at least, if the budget allows that: an earlier program drew so much at once, whatever
    /// the cap was.
    pub fn reserved_least(&self, probe: Option<f64>) -> f64 {
        let least = self.least(probe);
        match self.is_controlled() && !self.is_busy {
            true => least.max(self.reserve.min(self.device.max_cap.get())),
            false => least,
        }
    }

    /// The power above which the program gains nothing.
    fn useful(&self) -> f64 {
        (self.demand() * HEADROOM).min(self.device.max_cap.get())
    }

    /// What the GPU may get of the budget if it gets at least `min`.
    pub fn claim(&mut self, min: f64) -> Claim {
        let max = self.device.max_cap.get().max(min);
        if !self.is_controlled() {
            return Claim::fixed(min, min);
        }
        if !self.is_busy {
            return Claim::fixed(min, max);
        }
        let (demand, least) = (self.demand(), self.known_least());
        let curve = &self.curve;
        let learned = self
            .learned
            .get_or_insert_with(|| curve.learn(demand, least));
        Claim::new(min, demand * HEADROOM, max, self.device.priority, |power| {
            learned.share(power)
        })
    }

    /// The cap as a quantity.
    pub const fn cap_power(&self) -> Watts {
        Watts::new(self.cap)
    }
}
