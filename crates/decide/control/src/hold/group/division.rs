//! Divides the total power cap of a job among its GPUs.

use sweetspot_quantity::{Seconds, Watts};

use crate::hold::event::PowerReading;
use crate::tune::SettingsScope;

/// Power readings this long after a change of a setting do not count: GPUs follow their caps with a delay.
const SETTLING_TIME: f64 = 1.0;
/// The time over which the power of each GPU is averaged before watts are moved.
const OBSERVATION_TIME: f64 = 1.5;
/// The time that GPUs need to follow lower caps, in seconds; only then others get higher ones.
const FOLLOWING_TIME: f64 = 0.5;
/// Watts move at most this often before the division counts as balanced.
const MAX_MOVES: u32 = 12;
/// A GPU is limited by its cap if at least this share of the readings of its throttle reasons says so.
const MIN_THROTTLED_SHARE: f64 = 0.25;
/// Caps change only if one changes by more than this share; less is within the noise of the readings.
const MIN_CHANGE: f64 = 0.01;
/// How far shares follow the observed loads: more than once, because a GPU with a lower cap is slower and then waits less.
const STEP_EXPONENT: f64 = 1.3;
/// The lowest load of a GPU: a GPU that draws nothing keeps some watts.
const MIN_LOAD: f64 = 0.05;

/// The steps that halve the range of multiples of the shares.
const HALVINGS: u32 = 60;

/// The lowest and the highest power cap that a GPU may get.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapRange {
    /// The lowest cap that the GPU supports.
    pub lowest: Watts,
    /// The highest cap that the GPU may get, such as the one that it had before.
    pub highest: Watts,
}

/// What is known about a GPU at the present caps.
#[derive(Clone, Copy, Debug, Default)]
struct Observation {
    /// In joules and seconds.
    energy: f64,
    time: f64,
    /// The end of the last reading.
    to: f64,
    /// The readings of the throttle reasons, and those that name the power cap.
    limits_read: u32,
    limited: u32,
}

/// Whether watts still move between the GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Balance {
    Open,
    /// All GPUs draw the same share of what they may, which was not reported yet.
    Reached,
    Reported,
}

/// Divides a total power cap among the GPUs of a job.
///
/// At first all GPUs get the same cap, as far as each supports it. In a synchronous job the GPUs wait for the slowest
/// one, and a GPU that waits draws less than its cap. With [`SettingsScope::Each`] such watts are moved to the GPUs that
/// draw theirs, until all GPUs draw the same share of what they may. The sum of the caps never exceeds the total, unless
/// the total is below the sum of the lowest caps.
#[derive(Clone, Debug)]
pub struct CapDivision {
    ranges: Vec<CapRange>,
    /// What each GPU draws without work, in watts.
    idle: Vec<f64>,
    scope: SettingsScope,
    /// The power above idle of each GPU, relative to that of the others; `None` while all get the same cap.
    shares: Option<Vec<f64>>,
    total: Watts,
    caps: Vec<Watts>,
    /// The caps that follow once the GPUs with lower caps have followed them, and the time of that in seconds.
    next: Option<(f64, Vec<Watts>)>,
    observed: Vec<Observation>,
    /// How often watts have moved.
    moves: u32,
    balance: Balance,
    /// Readings that begin earlier do not count.
    valid_from: f64,
}

impl CapDivision {
    /// Creates the division of a total cap. `idle` is what each GPU draws without work, if it is known.
    pub fn new(
        ranges: Vec<CapRange>,
        idle: &[Option<Watts>],
        scope: SettingsScope,
        total: Watts,
    ) -> Self {
        let known = |gpu: usize| idle.get(gpu).copied().flatten().map_or(0.0, Watts::get);
        let mut division = Self {
            idle: (0..ranges.len())
                .map(|gpu| known(gpu).min(0.9 * ranges[gpu].lowest.get()))
                .collect(),
            observed: vec![Observation::default(); ranges.len()],
            ranges,
            scope,
            shares: None,
            total,
            caps: Vec::new(),
            next: None,
            moves: 0,
            balance: Balance::Open,
            valid_from: f64::NEG_INFINITY,
        };
        division.caps = division.divide();
        division
    }

    /// The sums of the lowest and of the highest caps.
    pub fn range(ranges: &[CapRange]) -> CapRange {
        CapRange {
            lowest: ranges.iter().map(|range| range.lowest).sum(),
            highest: ranges.iter().map(|range| range.highest).sum(),
        }
    }

    /// The cap of each GPU.
    pub fn caps(&self) -> &[Watts] {
        &self.caps
    }

    /// Divides another total.
    pub fn set_total(&mut self, now: Seconds, total: Watts) {
        if total != self.total {
            self.total = total;
            self.caps = self.divide();
            self.next = None;
            self.restart(now);
        }
    }

    /// Forgets what was observed, because a setting has changed.
    pub fn restart(&mut self, now: Seconds) {
        self.observed.fill(Observation::default());
        self.valid_from = now.get() + SETTLING_TIME;
    }

    /// Takes a power reading of a GPU.
    pub fn record_power(&mut self, gpu: usize, reading: &PowerReading) {
        let (from, to) = (reading.from.get(), reading.to.get());
        let Some(observed) = self.observed.get_mut(gpu) else {
            return;
        };
        // The readings of a sensor that averages overlap.
        let new = match observed.time > 0.0 {
            true => to - from.max(observed.to),
            false => to - from,
        };
        if from >= self.valid_from && new > 0.0 {
            observed.energy += reading.power.get() * new;
            observed.time += new;
            observed.to = to;
        }
    }

    /// Takes a reading of the reasons for which a GPU runs slower.
    pub fn record_throttle(&mut self, gpu: usize, now: Seconds, is_limited: bool) {
        if let Some(observed) = self.observed.get_mut(gpu)
            && now.get() >= self.valid_from
        {
            observed.limits_read += 1;
            observed.limited += u32::from(is_limited);
        }
    }

    /// Moves watts to the GPUs that need them, once each GPU was observed for long enough: first some caps are lowered, and
    /// later others are raised. Nothing moves while the total is above `limit`, because the GPUs would then draw more than
    /// that. Returns whether caps have changed.
    pub fn rebalance(&mut self, now: Seconds, limit: Watts) -> bool {
        if let Some((at, caps)) = self.next.take_if(|(at, _)| *at <= now.get()) {
            self.caps = caps;
            self.restart(Seconds::new(at));
            return true;
        }
        let is_observed = |one: &Observation| one.time >= OBSERVATION_TIME && one.limits_read > 0;
        let has_room = self.total < Self::range(&self.ranges).highest;
        if self.scope == SettingsScope::Same
            || self.next.is_some()
            || self.total > limit
            || self.caps.len() < 2
            || !has_room
            || !self.observed.iter().all(is_observed)
        {
            return false;
        }
        let is_limited = |one: &Observation| {
            f64::from(one.limited) >= MIN_THROTTLED_SHARE * f64::from(one.limits_read)
        };
        if !self.observed.iter().any(is_limited) {
            self.restart(now);
            return false;
        }
        let before = self.shares.replace(self.new_shares());
        let wanted = self.divide();
        let mut pairs = self.caps.iter().zip(&wanted);
        let has_changed =
            pairs.any(|(old, new)| (*new - *old).get().abs() > MIN_CHANGE * old.get());
        if has_changed {
            let pairs = self.caps.iter().zip(&wanted);
            self.caps = pairs.map(|(old, new)| old.min(*new)).collect();
            self.next = Some((now.get() + FOLLOWING_TIME, wanted));
            self.moves += 1;
        } else {
            self.shares = before;
        }
        let is_reached = !has_changed || self.moves >= MAX_MOVES;
        if is_reached && self.balance == Balance::Open {
            self.balance = Balance::Reached;
        }
        self.restart(now);
        has_changed
    }

    /// Whether watts have moved, at the first call after they no longer do; `None` at the others.
    pub fn take_balanced(&mut self) -> Option<bool> {
        let is_new = self.balance == Balance::Reached && self.next.is_none();
        is_new.then(|| {
            self.balance = Balance::Reported;
            self.moves > 0
        })
    }

    /// The shares with which all GPUs would draw the same part of what they may: the power of a GPU that waits is lower
    /// than its cap, so its share falls.
    fn new_shares(&self) -> Vec<f64> {
        let loads: Vec<f64> = (0..self.caps.len()).map(|gpu| self.load(gpu)).collect();
        let highest = loads.iter().copied().fold(MIN_LOAD, f64::max);
        let above_idle = |gpu: usize| (self.caps[gpu].get() - self.idle[gpu]).max(1.0);
        loads
            .iter()
            .enumerate()
            .map(|(gpu, load)| above_idle(gpu) * (load / highest).powf(STEP_EXPONENT))
            .collect()
    }

    /// The power above idle that a GPU draws, relative to what it may draw.
    fn load(&self, gpu: usize) -> f64 {
        let observed = &self.observed[gpu];
        let drawn = observed.energy / observed.time - self.idle[gpu];
        let allowed = (self.caps[gpu].get() - self.idle[gpu]).max(1.0);
        (drawn / allowed).clamp(MIN_LOAD, 1.0)
    }

    /// The caps for the present total and shares: equal multiples of the shares, within the range of each GPU.
    fn divide(&self) -> Vec<Watts> {
        let share = |gpu: usize| match &self.shares {
            Some(shares) => (self.idle[gpu], shares[gpu]),
            None => (0.0, 1.0),
        };
        let gpus = || self.ranges.iter().enumerate();
        let caps_at = |multiple: f64| {
            gpus().map(move |(gpu, range)| {
                let (base, share) = share(gpu);
                let cap = base + multiple * share;
                cap.max(range.lowest.get()).min(range.highest.get())
            })
        };
        // At this multiple every GPU has its highest cap.
        let most = gpus()
            .map(|(gpu, range)| (range.highest.get() - share(gpu).0) / share(gpu).1)
            .fold(1.0, f64::max);
        let (mut low, mut high) = (0.0, most);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            match caps_at(middle).sum::<f64>() > self.total.get() {
                true => high = middle,
                false => low = middle,
            }
        }
        let divided = caps_at(low);
        // Whole milliwatts, as devices have them, and never more than the total.
        let caps = divided.zip(&self.ranges).map(|(cap, range)| {
            let whole = Watts::new((1e3 * cap + 1e-3).floor() / 1e3);
            whole.max(range.lowest).min(range.highest)
        });
        caps.collect()
    }
}

#[cfg(test)]
mod tests;
