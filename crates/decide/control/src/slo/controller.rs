//! Chooses the clock of a server.

use std::collections::BTreeMap;

use sweetspot_quantity::{Megahertz, Ratio, Seconds};

use super::known_load::{KnownLoad, Verdict};
use super::messages::{ProbeObservation, ServingPage, SloAction, SloConfig, SloNotice};
use super::missing::MissingLatencies;
use super::power_bound::PowerBound;
use super::prefill::PromptCosts;
use super::target::LatencyKind;

/// How long a clock that was raised for prompts stays. Prompts come in bursts of several seconds: with 1 s, the clock was
/// lowered and raised again in each burst, and changed twice as often.
const BOOST: Seconds = Seconds::new(5.0);
/// The time over which tokens per second are smoothed.
const DEMAND_TIME: Seconds = Seconds::new(8.0);
/// The share of the bound on the first token that the prompts of waiting requests may take: they have waited before a page
/// shows them, and others arrive.
const QUEUE_SHARE: f64 = 0.25;
/// The share of the time that prompts may take before the clock is raised for them.
const PREFILL_SHARE: f64 = 0.65;
/// How long a bound is missed at full speed before the user is warned.
const FULL_SPEED_PATIENCE: Seconds = Seconds::new(10.0);
/// After this time without a page nothing is known of the server, and it gets the highest clock.
const SILENCE: Seconds = Seconds::new(1.0);
/// A new load between those known gets a clock above that of the next lower one by this factor.
const HIGHER_LOAD: f64 = 1.3;

/// Chooses the clock of a server.
#[derive(Clone, Debug)]
pub struct SloController {
    config: SloConfig,
    /// The clocks relative to the highest one.
    shares: Vec<Ratio>,
    level: usize,
    since: Seconds,
    /// The time of the last page, and whether pages have come too slowly since.
    last_page: Option<Seconds>,
    is_silent: bool,
    /// The tokens generated per second, smoothed.
    demand: Option<f64>,
    known: BTreeMap<i32, KnownLoad>,
    class: i32,
    prompts: PromptCosts,
    /// The mean time between tokens while no prompt is processed, smoothed, at each clock.
    plain_steps: Vec<Option<f64>>,
    boost_until: Seconds,
    boost: usize,
    power: Option<PowerBound>,
    missing: MissingLatencies,
    missed_at_top: Seconds,
    said_cannot_keep: Vec<LatencyKind>,
    said_power: bool,
    said_clash: bool,
}

impl SloController {
    /// Creates a controller that begins at the highest clock.
    pub fn new(config: SloConfig) -> Self {
        let top = config.clocks.len().saturating_sub(1);
        let highest = config.clocks.last().copied().unwrap_or_default();
        let shares = config.clocks.iter().map(|clock| *clock / highest);
        Self {
            shares: shares.collect(),
            level: top,
            since: Seconds::ZERO,
            last_page: None,
            is_silent: false,
            demand: None,
            known: BTreeMap::new(),
            class: 0,
            prompts: PromptCosts::default(),
            plain_steps: vec![None; config.clocks.len()],
            boost_until: Seconds::ZERO,
            boost: 0,
            power: config.below.map(|below| PowerBound::new(below, top)),
            missing: MissingLatencies::new(config.slos.len()),
            missed_at_top: Seconds::ZERO,
            said_cannot_keep: Vec::new(),
            said_power: false,
            said_clash: false,
            config,
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

    /// Sets how long a change of the clock takes to have an effect, once that was measured.
    pub fn set_switch_time(&mut self, time: Seconds) {
        self.config.switch_time = time;
    }

    fn top(&self) -> usize {
        self.config.clocks.len().saturating_sub(1)
    }

    /// The lowest level with at least this clock, relative to the highest one.
    fn level_for(&self, share: f64) -> usize {
        let at = self.shares.partition_point(|clock| clock.get() < share);
        at.min(self.top())
    }

    fn share(&self, level: usize) -> Ratio {
        self.shares.get(level).copied().unwrap_or(Ratio::new(1.0))
    }

    /// Takes a page and decides.
    pub fn step(&mut self, page: &ServingPage) -> SloAction {
        let mut action = SloAction::default();
        self.last_page = Some(page.at);
        // A page that took long is as old as it is late.
        self.is_silent = page.interval > SILENCE;
        self.prompts
            .take(&page.change, page.interval, self.share(self.level));
        let slos = &self.config.slos;
        action.notice = self.missing.take(slos, &page.change, page.interval);
        self.classify(page);
        self.record(page);
        self.judge(page, &mut action);
        let for_prompts = self.level_for_prompts(page);
        let of_load = self.known.get(&self.class);
        let of_load = of_load.map_or(self.top(), |known| known.level);
        let wanted = match self.missing.are_any() || self.is_silent {
            true => self.top(),
            false => of_load.max(for_prompts),
        };
        let wanted = self.limit_power(page, wanted, &mut action);
        self.set(wanted, page.at, &mut action);
        action
    }

    /// Takes the latencies of a request of our own; they count if the clock was not changed since it was sent.
    pub fn add_probe(&mut self, probe: &ProbeObservation) {
        let slos = &self.config.slos;
        let is_same_clock = probe.sent - self.since > self.config.switch_time;
        let level = self.level;
        let mut known = self.known.get_mut(&self.class);
        let times: [(LatencyKind, &[Seconds]); 2] = [
            (
                LatencyKind::FirstToken,
                std::slice::from_ref(&probe.first_token),
            ),
            (LatencyKind::InterToken, &probe.inter_token),
        ];
        for (kind, times) in times {
            self.missing.add_probe(slos, kind);
            if let Some(known) = known
                .as_mut()
                .filter(|known| known.level == level && is_same_clock)
            {
                known.add_probe(slos, kind, times);
            }
        }
    }

    /// Called when no page has come: after a while the server gets the highest clock, for nothing is known of it, and an
    /// overloaded server answers late.
    pub fn without_page(&mut self, now: Seconds) -> SloAction {
        let mut action = SloAction::default();
        if self.last_page.is_some_and(|last| now - last > SILENCE) {
            self.is_silent = true;
            let allowed = self.power.as_ref().map_or(self.top(), PowerBound::level);
            self.set(self.top().min(allowed), now, &mut action);
        }
        action
    }

    fn set(&mut self, level: usize, now: Seconds, action: &mut SloAction) {
        if level != self.level {
            self.level = level;
            self.since = now;
            action.clock = Some(self.clock());
        }
    }

    /// Finds the class of the load: an octave of tokens per second. A load that was never seen starts with the clock of the
    /// next higher one that was, or a little above that of the next lower one.
    fn classify(&mut self, page: &ServingPage) {
        let Some(tokens) = page.change.items() else {
            return;
        };
        let rate = tokens / page.interval.get().max(1e-3);
        let weight = (page.interval.get() / DEMAND_TIME.get()).min(1.0);
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
            (None, Some((_, known))) => self.level_for(self.share(known.level).get() * HIGHER_LOAD),
            (None, None) => self.top(),
        };
        let new = KnownLoad::new(level, self.config.slos.len());
        self.known.insert(self.class, new);
    }

    /// Records latencies at the clock of this load. Those of the first moments after a change belong to the clock before,
    /// and those at a higher clock say nothing of this one.
    fn record(&mut self, page: &ServingPage) {
        let change = &page.change;
        let has_settled = page.at - self.since > self.config.switch_time + page.interval;
        if !has_settled {
            return;
        }
        let times = change.inter_token.as_ref();
        let without_prompts = times.filter(|_| change.prompt_tokens == Some(0.0));
        if let (Some(mean), Some(plain)) = (
            without_prompts.and_then(|times| times.mean()),
            self.plain_steps.get_mut(self.level),
        ) {
            let before = plain.unwrap_or(mean);
            *plain = Some(before + 0.2 * (mean - before));
        }
        let plain = self.plain_step();
        if let Some(known) = self.known.get_mut(&self.class)
            && known.level == self.level
        {
            known.add(&self.config.slos, change, page.interval, plain);
        }
    }

    /// The time of a step without prompts at this clock; if it was not seen yet, that of the nearest clock.
    fn plain_step(&self) -> Option<f64> {
        let seen = self.plain_steps.iter().enumerate();
        let seen = seen.filter_map(|(level, step)| Some((level.abs_diff(self.level), (*step)?)));
        seen.min_by_key(|(distance, _)| *distance)
            .map(|(_, step)| step)
    }

    /// Raises the clock of this load if a bound is missed, or lowers it if all have room.
    fn judge(&mut self, page: &ServingPage, action: &mut SloAction) {
        let Some(known) = self.known.get_mut(&self.class) else {
            return;
        };
        let before = known.level;
        match known.judge(page.at, &self.config.slos, &self.shares) {
            Verdict::MissedAtTop(slo) => {
                self.missed_at_top += page.interval;
                if self.missed_at_top > FULL_SPEED_PATIENCE
                    && !self.said_cannot_keep.contains(&slo.kind)
                {
                    self.said_cannot_keep.push(slo.kind);
                    action.notice = Some(SloNotice::CannotKeep(slo));
                }
                return;
            }
            Verdict::Stay => {}
            Verdict::Changed => {
                let level = known.level;
                if level < before {
                    // A lower load needs no higher clock.
                    for (_, lower) in self.known.range_mut(..self.class) {
                        if lower.level > level {
                            lower.set_level(level);
                        }
                    }
                }
            }
        }
        self.missed_at_top = Seconds::ZERO;
    }

    /// The level that serves waiting requests in time, or prompts that take much of the time: raised at once, and kept for
    /// a moment.
    fn level_for_prompts(&mut self, page: &ServingPage) -> usize {
        let waiting = page.change.waiting.unwrap_or(0.0);
        let mut needed: Option<usize> = None;
        if waiting > 0.0 {
            let mut bounds = self.config.slos.iter();
            let bound = bounds.find(|slo| slo.kind == LatencyKind::FirstToken);
            let share = bound.and_then(|slo| {
                let time = self.prompts.time_for(waiting + 1.0)?;
                Some((time / (slo.bound * QUEUE_SHARE)).get())
            });
            needed = Some(share.map_or(self.top(), |share| self.level_for(share)));
        }
        let tokens = page.change.prompt_tokens.unwrap_or(0.0);
        if let Some(time) = self.prompts.time_for_tokens(tokens)
            && page.interval > Seconds::ZERO
        {
            let share = (time / page.interval).get() / PREFILL_SHARE;
            needed = needed.max(Some(self.level_for(share)));
        }
        if let Some(level) = needed.filter(|level| *level > 0)
            && (level >= self.boost || page.at >= self.boost_until)
        {
            self.boost = level;
            self.boost_until = page.at + BOOST;
        }
        match page.at < self.boost_until {
            true => self.boost,
            false => 0,
        }
    }

    /// Keeps the mean power below its bound, also where the latency bounds need a higher clock; the user is informed once.
    fn limit_power(&mut self, page: &ServingPage, wanted: usize, action: &mut SloAction) -> usize {
        let Some(bound) = &mut self.power else {
            return wanted;
        };
        if let Some(power) = page.power {
            bound.take(page.at, page.interval, power, self.level, &self.shares);
        }
        if bound.cannot_be_kept(page.at) && !std::mem::replace(&mut self.said_power, true) {
            action.notice = self.config.below.map(SloNotice::PowerNotKept);
        } else if wanted > bound.level() && !std::mem::replace(&mut self.said_clash, true) {
            action.notice = self.config.below.map(SloNotice::PowerLimitsClock);
        }
        wanted.min(bound.level())
    }
}

#[cfg(test)]
mod tests;
