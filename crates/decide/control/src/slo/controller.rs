//! Chooses the clock of a server.

use std::collections::BTreeMap;

use sweetspot_metrics::Histogram;
use sweetspot_quantity::{Megahertz, Ratio, Seconds, Watts};

use super::messages::{ServingPage, SloAction, SloConfig, SloNotice};
use super::prefill::PromptCosts;
use super::target::{LatencyKind, Slo};

/// The share of what a bound allows that is used: the rest is for what pages show too late.
const USED_SHARE: f64 = 0.6;
/// The time over which late tokens and requests are counted.
const WINDOW: Seconds = Seconds::new(60.0);
/// The shortest time at a clock before it is lowered.
const STAY: Seconds = Seconds::new(3.0);
/// After a bound was missed at a clock, lower ones are not tried for this time; it doubles each time.
const BLOCK: Seconds = Seconds::new(60.0);
const MAX_BLOCK: Seconds = Seconds::new(1800.0);
/// How long a clock that was raised for waiting requests stays.
const BOOST: Seconds = Seconds::new(1.0);
/// The share of the bound on the first token that the prompts of waiting requests may take.
const QUEUE_SHARE: f64 = 0.4;
/// The number of pages with misses at full speed after which the user is warned.
const FULL_SPEED_MISSES: u32 = 50;

/// What is known about one class of load.
#[derive(Clone, Debug)]
struct Known {
    /// The clock that is used with this load.
    level: usize,
    /// When lower clocks may be tried again.
    blocked_until: Seconds,
    block: Seconds,
    /// How long the clock was used with this load.
    stay: Seconds,
    /// Late and all observations of each bound at this clock; old ones fade.
    counts: Vec<(f64, f64)>,
}

impl Known {
    /// The same load at another clock, of which nothing is known yet.
    fn at_level(&self, level: usize) -> Self {
        Self {
            level,
            stay: Seconds::ZERO,
            counts: vec![(0.0, 0.0); self.counts.len()],
            ..self.clone()
        }
    }
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
    prompts: PromptCosts,
    /// The mean time between tokens while no prompt is processed, smoothed.
    plain_step: Option<f64>,
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
            prompts: PromptCosts::default(),
            plain_step: None,
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
        self.config
            .clocks
            .get(self.level)
            .copied()
            .unwrap_or_default()
    }

    fn top(&self) -> usize {
        self.config.clocks.len().saturating_sub(1)
    }

    /// The lowest level with at least this clock, relative to the highest one.
    fn level_for(&self, share: f64) -> usize {
        let highest = self.config.clocks.last().copied().unwrap_or_default();
        let wanted = highest * share;
        let at = self.config.clocks.partition_point(|clock| *clock < wanted);
        at.min(self.top())
    }

    /// The clock of a level, relative to the highest one.
    fn share(&self, level: usize) -> Ratio {
        let highest = self.config.clocks.last().copied().unwrap_or_default();
        self.config
            .clocks
            .get(level)
            .map_or(Ratio::new(1.0), |clock| *clock / highest)
    }

    /// Takes a page and decides.
    pub fn step(&mut self, page: &ServingPage) -> SloAction {
        let mut action = SloAction::default();
        self.prompts
            .take(&page.change, page.interval, self.share(self.level));
        self.classify(page);
        self.record(page, &mut action);
        self.judge(page.at, &mut action);
        let queue = self.level_for_queue(page);
        self.limit_power(page);
        let of_load = self.known.get(&self.class);
        let of_load = of_load.map_or(self.top(), |known| known.level);
        let wanted = match self.has_noticed.is_empty() {
            true => of_load.max(queue),
            false => self.top(),
        };
        let wanted = wanted.min(self.power_level);
        if wanted != self.level {
            self.level = wanted;
            self.since = page.at;
            action.clock = Some(self.clock());
        }
        action
    }

    /// Finds the class of the load: an octave of tokens per second. A load that was never seen starts with the clock of the
    /// next higher one that was, or a little above that of the next lower one.
    fn classify(&mut self, page: &ServingPage) {
        let Some(tokens) = page.change.items() else {
            return;
        };
        let rate = tokens / page.interval.get().max(1e-3);
        let weight = (page.interval.get() / 8.0).min(1.0);
        let before = self.demand.unwrap_or(rate);
        let demand = before + weight * (rate - before);
        self.demand = Some(demand);
        let position = demand.max(1.0).log2();
        // A load between two classes stays in its class.
        if (position - f64::from(self.class) - 0.5).abs() > 0.7 {
            self.class = position.floor() as i32;
        }
        if self.known.contains_key(&self.class) {
            return;
        }
        let above = self.known.range(self.class..).next();
        let below = self.known.range(..self.class).next_back();
        let level = match (above, below) {
            (Some((_, known)), _) => known.level,
            (None, Some((_, known))) => self.level_for(self.share(known.level).get() * 1.3),
            (None, None) => self.top(),
        };
        let new = Known {
            level,
            blocked_until: Seconds::ZERO,
            block: BLOCK,
            stay: Seconds::ZERO,
            counts: vec![(0.0, 0.0); self.config.slos.len()],
        };
        self.known.insert(self.class, new);
    }

    /// Counts late observations at the clock of this load. Those of the first moments after a change belong to the clock
    /// before, and those at a higher clock say nothing of this one.
    fn record(&mut self, page: &ServingPage, action: &mut SloAction) {
        let change = &page.change;
        if let Some(times) = change
            .inter_token
            .as_ref()
            .filter(|_| change.prompt_tokens == Some(0.0))
            && let Some(mean) = times.mean()
        {
            let before = self.plain_step.unwrap_or(mean);
            self.plain_step = Some(before + 0.2 * (mean - before));
        }
        let fade = (-page.interval.get() / WINDOW.get()).exp();
        let (level, plain) = (self.level, self.plain_step);
        let has_settled = page.at - self.since > self.config.switch_time + page.interval;
        let Some(known) = self.known.get_mut(&self.class) else {
            return;
        };
        let counts_now = level == known.level && has_settled;
        if counts_now {
            known.stay += page.interval;
        }
        for (slo, sum) in self.config.slos.iter().zip(&mut known.counts) {
            match slo.kind.times(change) {
                Some(times) if counts_now => {
                    let (late, all) = late(times, slo, plain);
                    *sum = (sum.0 * fade + late, sum.1 * fade + all);
                }
                Some(_) => {}
                None if change.running.unwrap_or(0.0) > 0.0
                    && !self.has_noticed.contains(&slo.kind) =>
                {
                    self.has_noticed.push(slo.kind);
                    action.notice = Some(SloNotice::NotMeasured(*slo));
                }
                None => {}
            }
        }
    }

    /// Raises the clock of this load if a bound is missed, or lowers it if all have room.
    fn judge(&mut self, now: Seconds, action: &mut SloAction) {
        let top = self.top();
        let Some(known) = self.known.get(&self.class) else {
            return;
        };
        let Some((used, slo)) = self.worst_share(known) else {
            return;
        };
        if used > 1.0 {
            if known.level >= top {
                self.full_speed_misses += u32::from(used > 1.0 / USED_SHARE);
                if self.full_speed_misses > FULL_SPEED_MISSES
                    && !self.has_noticed.contains(&slo.kind)
                {
                    self.has_noticed.push(slo.kind);
                    action.notice = Some(SloNotice::CannotKeep(slo));
                }
                return;
            }
            let factor = if used > 3.0 { 1.25 } else { 1.08 };
            let level = self.level_for(self.share(known.level).get() * factor);
            let mut raised = known.at_level(level.max(known.level + 1).min(top));
            raised.blocked_until = now + raised.block;
            raised.block = (raised.block * 2.0).min(MAX_BLOCK);
            self.known.insert(self.class, raised);
            return;
        }
        if known.stay < STAY || known.level == 0 || now < known.blocked_until {
            return;
        }
        let factor = match used {
            _ if used < 0.05 => 0.8,
            _ if used < 0.3 => 0.9,
            _ if used < 0.6 => 0.95,
            _ => return,
        };
        let level = self.level_for(self.share(known.level).get() * factor);
        let lowered = known.at_level(level.min(known.level - 1));
        let level = lowered.level;
        self.known.insert(self.class, lowered);
        // A lower load needs no higher clock.
        for (_, lower) in self.known.range_mut(..self.class) {
            if lower.level > level {
                *lower = lower.at_level(level);
            }
        }
    }

    /// The largest share of what a bound allows that is used, with that bound; `None` with too few observations.
    fn worst_share(&self, known: &Known) -> Option<(f64, Slo)> {
        let bounds = self.config.slos.iter().zip(&known.counts);
        let used = bounds.filter_map(|(slo, (late, all))| {
            let allowed = (1.0 - slo.quantile.get()) * USED_SHARE;
            // One late observation among few is no evidence; several are.
            let is_known = *all * (1.0 - slo.quantile.get()) >= 0.15 || *late >= 2.0;
            is_known.then(|| (late / (all.max(1.0) * allowed), *slo))
        });
        used.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The level that serves the waiting requests in time: raised at once, and kept for a moment.
    fn level_for_queue(&mut self, page: &ServingPage) -> usize {
        let waiting = page.change.waiting.unwrap_or(0.0);
        let mut bounds = self.config.slos.iter();
        let bound = bounds.find(|slo| slo.kind == LatencyKind::FirstToken);
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

/// Late and all observations. If the bound lies within a bucket, the mean time of the slow tokens decides: it follows from
/// the sum of all times and from the time of a step without prompts. Otherwise the bucket is taken as evenly filled.
fn late(times: &Histogram, slo: &Slo, plain_step: Option<f64>) -> (f64, f64) {
    let bound = slo.bound.get();
    let (least, most) = times.number_above(bound);
    let between = most - least;
    if between <= 0.0 {
        return (least, times.count());
    }
    let slow_mean = plain_step
        .filter(|_| slo.kind == LatencyKind::InterToken && least == 0.0)
        .and_then(|plain| {
            Some((times.mean()? * times.count() - plain * (times.count() - between)) / between)
        });
    let share = match slow_mean {
        Some(mean) => ((mean / bound - 0.85) / 0.25).clamp(0.0, 1.0),
        None => times.share_of_bucket_above(bound),
    };
    (least + between * share, times.count())
}

#[cfg(test)]
mod tests;
