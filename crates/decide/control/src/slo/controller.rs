//! Chooses the clock of a server.

use std::collections::{BTreeMap, VecDeque};

use sweetspot_metrics::{Histogram, MetricsChange};
use sweetspot_quantity::{Megahertz, Ratio, Seconds, Watts};

use super::prefill::PromptCosts;
use super::target::{LatencyKind, Slo};

/// What the controller keeps, and what it may set.
#[derive(Clone, Debug)]
pub struct SloConfig {
    /// The bounds on latencies.
    pub slos: Vec<Slo>,
    /// The clocks that may be set, ascending.
    pub clocks: Vec<Megahertz>,
    /// The highest mean power, if there is a bound.
    pub below: Option<Watts>,
    /// How long a change of the clock takes to have an effect.
    pub switch_time: Seconds,
}

/// What happened between two metrics pages.
#[derive(Clone, Debug)]
pub struct ServingPage {
    /// The time of the later page.
    pub at: Seconds,
    /// The time between the pages.
    pub interval: Seconds,
    /// What the server did.
    pub change: MetricsChange,
    /// The mean power between the pages; `None` if it is unknown.
    pub power: Option<Watts>,
}

/// Something that the user should know, once.
#[derive(Clone, Debug, PartialEq)]
pub enum SloNotice {
    /// A bound is not kept even at the highest clock.
    CannotKeep(Slo),
    /// The page has no such latency.
    NotMeasured(Slo),
}

impl std::fmt::Display for SloNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CannotKeep(slo) => write!(
                f,
                "{slo} is not kept even at full speed: full speed is held; relax the bound or send less"
            ),
            Self::NotMeasured(slo) => write!(
                f,
                "the server does not report {}: {slo} cannot be kept by it; full speed is held (--probe-request measures it)",
                slo.kind.name()
            ),
        }
    }
}

/// What to do after a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SloAction {
    /// The clock to set; `None` if it stays.
    pub clock: Option<Megahertz>,
    /// What to tell the user.
    pub notice: Option<SloNotice>,
}

/// The share of what a bound allows that is used: the rest is for what pages show too late.
const USED_SHARE: f64 = 0.5;
/// The time over which the share of late tokens or requests is counted.
const WINDOW: Seconds = Seconds::new(30.0);
/// The shortest time at a clock before it is lowered.
const STAY: Seconds = Seconds::new(4.0);
/// A clock is lowered to this share of what the measured latency would allow, and by at most this factor.
const CAUTION: f64 = 0.9;
const LARGEST_CUT: f64 = 0.7;
/// After a bound was missed at a clock, lower ones are not tried for this time; it doubles each time.
const BLOCK: Seconds = Seconds::new(45.0);
const MAX_BLOCK: Seconds = Seconds::new(900.0);
/// How long a clock that was raised for waiting requests stays.
const BOOST: Seconds = Seconds::new(1.0);
/// The share of the bound on the first token that the prompts of waiting requests may take.
const QUEUE_SHARE: f64 = 0.3;
/// The number of observations below which a share says little.
const FEW: f64 = 20.0;

/// What is known about one class of load.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The clock that is used with this load.
    level: usize,
    /// When lower clocks may be tried again.
    blocked_until: Seconds,
    block: Seconds,
}

/// Chooses the clock of a server.
#[derive(Clone, Debug)]
pub struct SloController {
    config: SloConfig,
    level: usize,
    since: Seconds,
    /// The tokens generated per second, smoothed.
    demand: Option<f64>,
    known: BTreeMap<i32, Known>,
    class: i32,
    /// The recent pages: their time, and late and all observations of each bound.
    recent: VecDeque<(Seconds, Vec<(f64, f64)>)>,
    prompts: PromptCosts,
    boost_until: Seconds,
    boost: usize,
    /// The smoothed power, if it is bounded.
    power: Option<Watts>,
    power_level: usize,
    full_speed_misses: u32,
    has_noticed: Vec<LatencyKind>,
}

impl SloController {
    /// Creates a controller that begins at the highest clock.
    pub fn new(config: SloConfig) -> Self {
        let top = config.clocks.len().saturating_sub(1);
        Self {
            config,
            level: top,
            since: Seconds::ZERO,
            demand: None,
            known: BTreeMap::new(),
            class: 0,
            recent: VecDeque::new(),
            prompts: PromptCosts::default(),
            boost_until: Seconds::ZERO,
            boost: 0,
            power: None,
            power_level: top,
            full_speed_misses: 0,
            has_noticed: Vec::new(),
        }
    }

    /// The clock that is set now.
    pub fn clock(&self) -> Megahertz {
        self.config.clocks[self.level]
    }

    fn top(&self) -> usize {
        self.config.clocks.len() - 1
    }

    /// The lowest level with at least this clock, relative to the highest one.
    fn level_for(&self, share: f64) -> usize {
        let wanted = self.config.clocks[self.top()] * share;
        let at = self.config.clocks.partition_point(|clock| *clock < wanted);
        at.min(self.top())
    }

    /// The clock of a level, relative to the highest one.
    fn share(&self, level: usize) -> Ratio {
        self.config.clocks[level] / self.config.clocks[self.top()]
    }

    /// Takes a page and decides.
    pub fn step(&mut self, page: &ServingPage) -> SloAction {
        let mut action = SloAction::default();
        self.prompts
            .take(&page.change, page.interval, self.share(self.level));
        self.record(page, &mut action);
        self.classify(page);
        self.judge(page.at, &mut action);
        let queue = self.level_for_queue(page);
        self.limit_power(page);
        let of_load = self
            .known
            .get(&self.class)
            .map_or(self.top(), |known| known.level);
        let wanted = of_load.max(queue).min(self.power_level);
        let wanted = match self.has_noticed.is_empty() {
            true => wanted,
            false => self.power_level,
        };
        if wanted != self.level {
            self.level = wanted;
            self.since = page.at;
            action.clock = Some(self.clock());
        }
        action
    }

    /// Counts late observations. Those in the first moments after a change belong to the clock before.
    fn record(&mut self, page: &ServingPage, action: &mut SloAction) {
        let mut counts = Vec::with_capacity(self.config.slos.len());
        for slo in &self.config.slos {
            match slo.kind.times(&page.change) {
                Some(times) => counts.push(late(times, slo)),
                None => {
                    counts.push((0.0, 0.0));
                    if !self.has_noticed.contains(&slo.kind) {
                        self.has_noticed.push(slo.kind);
                        action.notice = Some(SloNotice::NotMeasured(*slo));
                    }
                }
            }
        }
        if page.at - self.since >= self.config.switch_time {
            self.recent.push_back((page.at, counts));
        }
        while self
            .recent
            .front()
            .is_some_and(|(at, _)| page.at - *at > WINDOW)
        {
            self.recent.pop_front();
        }
    }

    /// Finds the class of the load: half an octave of tokens per second. A load that was never seen starts with the clock
    /// of the next higher one that was.
    fn classify(&mut self, page: &ServingPage) {
        let Some(tokens) = page.change.items() else {
            return;
        };
        let rate = tokens / page.interval.get().max(1e-3);
        let weight = (page.interval.get() / 5.0).min(1.0);
        let before = self.demand.unwrap_or(rate);
        let demand = before + weight * (rate - before);
        self.demand = Some(demand);
        let position = 2.0 * demand.max(1.0).log2();
        // A load between two classes stays in its class.
        if (position - f64::from(self.class) - 0.5).abs() > 0.7 {
            self.class = position.floor() as i32;
            self.recent.clear();
        }
        let above = self.known.range(self.class..).next();
        let level = above.map_or(self.top(), |(_, known)| known.level);
        let below = self.known.range(..self.class).next_back();
        let level = match below {
            Some((class, known)) if above.is_none() && self.class - class <= 2 => {
                // A little more load needs a little more speed.
                self.level_for(self.share(known.level).get() * 1.25)
            }
            _ => level,
        };
        self.known.entry(self.class).or_insert(Known {
            level,
            blocked_until: Seconds::ZERO,
            block: BLOCK,
        });
    }

    /// Raises the clock of this load if a bound is missed, or lowers it if all have room.
    fn judge(&mut self, now: Seconds, action: &mut SloAction) {
        let worst = self.worst_share();
        let Some(known) = self.known.get(&self.class).copied() else {
            return;
        };
        let top = self.top();
        if let Some((used, slo)) = worst.filter(|(used, _)| *used > 1.0) {
            if self.level >= top && used > 2.0 {
                self.full_speed_misses += 1;
                if self.full_speed_misses > 25 && !self.has_noticed.contains(&slo.kind) {
                    self.has_noticed.push(slo.kind);
                    action.notice = Some(SloNotice::CannotKeep(slo));
                }
            }
            if self.level <= known.level && known.level < top {
                let step = self.share(known.level).get() * if used > 3.0 { 1.3 } else { 1.1 };
                let level = self.level_for(step).max(known.level + 1).min(top);
                self.known.insert(
                    self.class,
                    Known {
                        level,
                        blocked_until: now + known.block,
                        block: (known.block * 2.0).min(MAX_BLOCK),
                    },
                );
                self.recent.clear();
            }
            return;
        }
        let Some((_, _)) = worst else { return };
        let has_stayed = now - self.since >= STAY && self.level == known.level;
        if !has_stayed || known.level == 0 || now < known.blocked_until {
            return;
        }
        let share = self.room().max(LARGEST_CUT);
        let level = self.level_for(self.share(known.level).get() * share);
        let level = level.min(known.level - 1);
        self.known.insert(self.class, Known { level, ..known });
        // A load that is lower needs no higher clock.
        for (_, lower) in self.known.range_mut(..self.class) {
            lower.level = lower.level.min(level.max(known.level));
        }
        self.recent.clear();
    }

    /// The largest share of what a bound allows that is used, with that bound; `None` with few observations.
    fn worst_share(&self) -> Option<(f64, Slo)> {
        let sums = self.config.slos.iter().enumerate().map(|(index, slo)| {
            let (late, all) = self.sum(index);
            let allowed = (1.0 - slo.quantile.get()) * USED_SHARE;
            (late, all, late / (all.max(1.0) * allowed), *slo)
        });
        let known = sums.filter(|(late, all, _, slo)| {
            *all >= FEW.min(1.0 / (1.0 - slo.quantile.get())) || *late >= 2.0
        });
        known
            .map(|(_, _, used, slo)| (used, slo))
            .max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Late and all observations of a bound in the window.
    fn sum(&self, index: usize) -> (f64, f64) {
        let counts = self
            .recent
            .iter()
            .filter_map(|(_, counts)| counts.get(index));
        counts.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// By which factor the clock may fall if latencies grow at most as its inverse.
    fn room(&self) -> f64 {
        let used = self.worst_share().map_or(1.0, |(used, _)| used);
        match used {
            _ if used < 0.1 => LARGEST_CUT,
            _ if used < 0.5 => 0.85,
            _ => CAUTION.max(0.95),
        }
    }

    /// The level that serves the waiting requests in time: raised at once, and kept for a moment.
    fn level_for_queue(&mut self, page: &ServingPage) -> usize {
        let waiting = page.change.waiting.unwrap_or(0.0);
        let bound = self
            .config
            .slos
            .iter()
            .find(|slo| slo.kind == LatencyKind::FirstToken);
        if waiting > 0.0 {
            let needed = bound.and_then(|slo| {
                let time = self.prompts.time_for(waiting + 1.0)?;
                Some((time / (slo.bound * QUEUE_SHARE)).get())
            });
            let level = needed.map_or(self.top(), |share| self.level_for(share));
            if level >= self.boost || page.at >= self.boost_until {
                self.boost = level;
            }
            self.boost_until = page.at + BOOST;
        }
        match page.at < self.boost_until {
            true => self.boost,
            false => 0,
        }
    }

    /// Keeps the mean power below its bound.
    fn limit_power(&mut self, page: &ServingPage) {
        let (Some(below), Some(power)) = (self.config.below, page.power) else {
            return;
        };
        let before = self.power.unwrap_or(power);
        let weight = page.interval.get().min(1.0);
        let mean = before + (power - before) * weight;
        self.power = Some(mean);
        if mean > below && self.power_level > 0 {
            self.power_level = self.level.min(self.power_level).saturating_sub(1);
        } else if mean < below * 0.95 && self.power_level < self.top() {
            self.power_level += 1;
        }
    }
}

/// Late and all observations: those of the bucket that contains the bound are spread evenly in it.
fn late(times: &Histogram, slo: &Slo) -> (f64, f64) {
    let (least, most) = times.number_above(slo.bound.get());
    let inside = times.share_of_bucket_above(slo.bound.get());
    (least + (most - least) * inside, times.count())
}
