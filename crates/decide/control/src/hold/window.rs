//! What happened since the setting was changed, or since the last window of the same setting.

use super::event::BatchDone;
use super::ladder::Bounds;
use super::meter::Judged;

/// Latencies kept of a window: enough for the 99th of a hundred.
const KEPT: usize = 128;

/// Below this, batches are not full and larger ones would not be either.
const FULL: f64 = 0.9;

/// Means this little above the cap are borne, if they are few.
pub const SLIGHTLY: f64 = 1.005;
/// So few: this part of those judged since the setting is in force.
const FEW: f64 = 0.003;

/// A window as it fills.
#[derive(Clone, Debug)]
pub struct Window {
    /// Batches of the right size.
    pub batches: u32,
    items: u64,
    room: u64,
    busy: f64,
    longest: f64,
    latencies: [f64; KEPT],
    /// The two highest judged means.
    highest: [f64; 2],
    judged: u32,
    sum: f64,
    /// The ends of the first and the last.
    ends: Option<(f64, f64)>,
    /// Judged means clearly above the cap: how many, and the end of the first.
    over: u32,
    first_over: Option<f64>,
    stay: Stay,
}

/// Judged means since the setting is in force, through all its windows.
#[derive(Clone, Copy, Debug, Default)]
struct Stay {
    judged: u32,
    /// Slightly above the cap.
    slight: u32,
}

/// What a whole window showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// The highest judged mean, one false reading aside.
    pub power: f64,
    /// The mean of the judged means.
    pub mean: f64,
    /// Items for each second of work.
    pub rate: f64,
    /// 99 of 100 batches took no longer, queueing included.
    pub p99: f64,
    /// The longest batch by itself.
    pub duration: f64,
    /// Items against what the batches had room for.
    pub fill: f64,
}

impl Observed {
    pub fn is_full(&self) -> bool {
        self.fill >= FULL
    }

    pub fn keeps(&self, bounds: &Bounds) -> bool {
        self.power <= bounds.cap && self.p99 <= bounds.latency
    }
}

impl Window {
    pub fn new() -> Self {
        Self {
            batches: 0,
            items: 0,
            room: 0,
            busy: 0.0,
            longest: 0.0,
            latencies: [0.0; KEPT],
            highest: [f64::NEG_INFINITY; 2],
            judged: 0,
            sum: 0.0,
            ends: None,
            over: 0,
            first_over: None,
            stay: Stay::default(),
        }
    }

    /// The next window of the same setting.
    pub fn clear(&mut self) {
        // The latencies are overwritten as batches come.
        let Self {
            latencies, stay, ..
        } = *self;
        *self = Self {
            latencies,
            stay,
            ..Self::new()
        };
    }

    /// The first window of another setting.
    pub fn begin(&mut self) {
        self.stay = Stay::default();
        self.clear();
    }

    pub fn add(&mut self, batch: &BatchDone) {
        let duration = batch.duration.get();
        let latency = batch.latency.map_or(duration, |latency| latency.get());
        if !(duration.is_finite() && duration >= 0.0 && latency.is_finite()) {
            return;
        }
        self.latencies[self.batches as usize % KEPT] = latency;
        self.batches = self.batches.saturating_add(1);
        self.items = self.items.saturating_add(batch.items);
        self.room = self.room.saturating_add(batch.size);
        self.busy += duration;
        self.longest = self.longest.max(duration);
    }

    /// Counts a judged mean; whether the cap is broken for sure: clearly, twice without the highest sample or in
    /// two spans that share no time; or slightly, and more than a few times.
    pub fn judge(&mut self, judged: &Judged, cap: f64, span: f64) -> bool {
        let Judged { power, trimmed, to } = *judged;
        if power > self.highest[0] {
            self.highest = [power, self.highest[0]];
        } else if power > self.highest[1] {
            self.highest[1] = power;
        }
        let (first, _) = self.ends.unwrap_or((to, to));
        self.ends = Some((first, to));
        self.judged = self.judged.saturating_add(1);
        self.stay.judged = self.stay.judged.saturating_add(1);
        self.sum += power;
        if power <= cap {
            return false;
        }
        if power <= cap * SLIGHTLY {
            self.stay.slight = self.stay.slight.saturating_add(1);
            return f64::from(self.stay.slight) >= 2.0 + FEW * f64::from(self.stay.judged);
        }
        let first = *self.first_over.get_or_insert(to);
        if trimmed > cap {
            self.over += 1;
        }
        self.over >= 2 || to - first >= span
    }

    /// Forgets that a cap was broken: it is another one now.
    pub fn absolve(&mut self) {
        self.over = 0;
        self.first_over = None;
        self.stay = Stay::default();
    }

    /// Where batches are long, a mean depends on how many of them it holds: the means of two are seen.
    pub fn is_seen_through(&self) -> bool {
        let seen = self.ends.map(|(first, last)| last - first);
        seen.is_some_and(|seen| self.longest < 0.05 || seen >= 2.0 * self.longest)
    }

    pub fn is_judged(&self) -> bool {
        self.judged > 0
    }

    /// With few readings the highest counts; with many, one may be false. What is slightly above the cap and
    /// was borne is at the cap.
    pub fn observed(&self, cap: f64) -> Option<Observed> {
        if self.judged == 0 || self.batches == 0 {
            return None;
        }
        let power = match self.judged {
            1 | 2 => self.highest[0],
            _ => self.highest[1],
        };
        Some(Observed {
            power: if power <= cap * SLIGHTLY {
                power.min(cap)
            } else {
                power
            },
            mean: self.sum / f64::from(self.judged),
            rate: self.items as f64 / self.busy.max(1e-9),
            p99: self.p99(),
            duration: self.longest,
            fill: self.items as f64 / (self.room.max(1)) as f64,
        })
    }

    /// The highest judged mean, false or not.
    pub fn highest(&self) -> Option<f64> {
        self.is_judged().then_some(self.highest[0])
    }

    /// The longest batch.
    pub fn longest(&self) -> f64 {
        self.longest
    }

    /// 99 of 100 latencies are no longer.
    pub fn p99(&self) -> f64 {
        let count = (self.batches as usize).min(KEPT);
        let mut sorted = self.latencies;
        let sorted = &mut sorted[..count];
        sorted.sort_unstable_by(f64::total_cmp);
        let place = (count * 99).div_ceil(100).max(1) - 1;
        sorted.get(place).copied().unwrap_or(0.0)
    }
}
