//! The holder: events in, settings out.

mod control;
mod notices;
mod outside;

use sweetspot_quantity::Seconds;

use super::action::{Actions, Notice, Setting};
use super::event::{BatchDone, Event, PowerReading};
use super::ladder::Bounds;
use super::meter::Meter;
use super::robust::Verdict;
use super::search;
use super::terms::{DeviceKnob, Terms, TermsError};
use super::window::{Observed, Window};
use control::Control;
pub(super) use control::Place;
use notices::{Said, WAITING};

/// Of fine samples, this much time after a change says already that the cap is broken, if by enough.
const EARLY: f64 = 0.25;
const CLEARLY: f64 = 1.02;
/// After so many windows that keep the cap it can be kept again.
const FEASIBLE: u32 = 3;
/// Times are this exact.
const TINY: f64 = 1e-6;

/// Holds power under a cap with the most throughput; see the [module](super).
#[derive(Clone, Debug)]
pub struct Holder {
    terms: Terms,
    control: Control,
    /// Index of the batch size, and of the device's level.
    at: Place,
    meter: Meter,
    window: Window,
    /// Since when the setting is in force; nothing until the program has used it.
    in_force: Option<f64>,
    changed_at: f64,
    begun: Option<f64>,
    now: f64,
    windows: u64,
    changes: u64,
    strangers: u32,
    /// Windows in a row that kept the cap.
    kept: u32,
    /// Windows in a row at one setting.
    held: u32,
    /// Requests wait that came when less was served; and how many come in a second.
    behind: bool,
    arrivals: Option<f64>,
    last_reading: Option<f64>,
    asked: bool,
    said: Said,
    notices: [Option<Notice>; WAITING],
    device_refused: bool,
    /// Whether the last change was one of the device.
    device_moved: bool,
}

impl Holder {
    /// At its first setting: [`Holder::setting`] says which.
    pub fn new(terms: Terms) -> Result<Self, TermsError> {
        terms.check()?;
        let mut control = Control::new(&terms);
        Ok(Self {
            meter: Meter::new(terms.judged_over),
            at: Place {
                batch: 0,
                level: control.first_level(&terms),
            },
            behind: false,
            arrivals: None,
            held: 0,
            control,
            terms,
            window: Window::new(),
            in_force: None,
            changed_at: 0.0,
            begun: None,
            now: 0.0,
            windows: 0,
            changes: 0,
            strangers: 0,
            kept: 0,
            last_reading: None,
            asked: false,
            said: Said::default(),
            notices: [None; WAITING],
            device_refused: false,
            device_moved: false,
        })
    }

    /// What is to be set now.
    pub fn setting(&self) -> Setting {
        let batch = match self.terms.sets_device_alone() {
            true => self.terms.fixed_batch,
            false => self.terms.batches[self.at.batch],
        };
        let (mut core_clock, mut power_cap) = (None, None);
        if !self.device_refused {
            match &self.terms.knob {
                DeviceKnob::None => {}
                DeviceKnob::CoreClock(levels) => core_clock = levels.get(self.at.level).copied(),
                DeviceKnob::PowerCap(levels) => power_cap = levels.get(self.at.level).copied(),
            }
        }
        Setting {
            batch,
            core_clock,
            power_cap,
        }
    }

    /// The terms, with the cap as it is now.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Windows seen.
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// Changes asked for.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Something happened; time does not go back.
    pub fn step(&mut self, now: Seconds, event: Event) -> Actions {
        let now = if now.is_finite() { now.get() } else { self.now };
        self.now = self.now.max(now);
        let now = self.now;
        if self.begun.is_none() {
            self.begun = Some(now);
            self.changed_at = now;
            self.check_idle();
        }
        let before = self.setting();
        match event {
            Event::Asked => self.asked = true,
            Event::Batch(batch) => self.batch(&batch),
            Event::Power(reading) => self.power(&reading),
            Event::Cap(cap) => self.cap(cap),
            Event::Limit {
                enforced,
                throttled,
            } => self.limit(enforced, throttled),
            Event::Queue {
                length,
                arrivals_per_s,
            } => self.queue(length, arrivals_per_s),
            Event::OutOfMemory { size } => self.out_of_memory(size),
            Event::Refused(knob) => self.refused(knob),
            Event::Tick => {}
        }
        self.watch();
        self.actions(&before)
    }

    fn actions(&mut self, before: &Setting) -> Actions {
        let setting = self.setting();
        let changed = |is: bool| is && setting != *before;
        let actions = Actions {
            batch: (setting.batch != before.batch).then_some(setting.batch),
            core_clock: setting
                .core_clock
                .filter(|_| changed(setting.core_clock != before.core_clock)),
            power_cap: setting
                .power_cap
                .filter(|_| changed(setting.power_cap != before.power_cap)),
            notice: self.next_notice(),
        };
        if actions.changes() {
            self.changes += 1;
            self.begin_setting(
                actions.batch.is_some(),
                actions.core_clock.is_some() || actions.power_cap.is_some(),
            );
        }
        actions
    }

    /// A new setting: nothing is known of it yet.
    fn begin_setting(&mut self, batch: bool, device: bool) {
        self.changed_at = self.now;
        self.device_moved = device;
        self.window.begin();
        self.strangers = 0;
        self.in_force = None;
        if !batch && device {
            // The device obeys at once; the program goes on as it did.
            self.enforce(self.now + self.terms.settle_device.get());
        }
    }

    fn enforce(&mut self, from: f64) {
        self.in_force = Some(from);
        self.meter.fresh_from(from);
    }

    fn batch(&mut self, batch: &BatchDone) {
        self.asked = true;
        let wanted = self.setting().batch;
        if batch.size != wanted {
            self.strangers = self.strangers.saturating_add(1);
            let long = self.now - self.changed_at >= self.terms.judged_over.get();
            if self.strangers > self.terms.window && long && !self.said.ignores {
                self.said.ignores = true;
                self.say(Notice::IgnoresBatch {
                    asked: wanted,
                    used: batch.size,
                });
            }
            return;
        }
        self.strangers = 0;
        self.said.ignores = false;
        if self.in_force.is_none() {
            let begin = (self.now - batch.duration.get()).max(self.changed_at);
            let settle = match self.device_moved {
                true => self.terms.settle_device,
                false => self.terms.settle,
            };
            self.enforce(begin + settle.get());
        }
        // A batch that began earlier warms up, or was made at another setting of the device.
        let begun = self.now - batch.duration.get();
        if self.in_force.is_some_and(|from| begun < from - TINY) {
            return;
        }
        self.window.add(batch);
        if self.broken_early() {
            self.broken();
        } else {
            self.perhaps_whole();
        }
    }

    fn power(&mut self, reading: &PowerReading) {
        self.last_reading = Some(self.now);
        if self.said.silent {
            self.said.silent = false;
            self.say(Notice::SensorBack);
        }
        let Some(judged) = self.meter.push(reading) else {
            return;
        };
        if self.in_force.is_none() || self.window.batches == 0 {
            return;
        }
        let cap = self.terms.cap.get();
        let span = self.terms.judged_over.get();
        let broken = self.window.judge(&judged, cap, span);
        let at_once = match &self.control {
            Control::Search { search, .. } => search.decides_at_once(),
            _ => broken,
        };
        if at_once {
            self.broken();
        } else {
            self.perhaps_whole();
        }
    }

    /// With fine samples a clear breach shows before the judged span is over.
    fn broken_early(&self) -> bool {
        if matches!(self.control, Control::Search { .. }) || self.window.is_judged() {
            return false;
        }
        let clearly = self.terms.cap.get() * CLEARLY;
        self.window.batches >= 2
            && self.in_force.is_some()
            && self.meter.so_far().is_some_and(|(power, time)| {
                // Parts of a batch differ; several whole ones must be seen.
                let least = EARLY.max(5.0 * self.window.longest());
                time.get() >= least && power.get() > clearly
            })
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            cap: self.terms.cap.get(),
            latency: self.terms.latency_p99.map_or(f64::INFINITY, Seconds::get),
        }
    }

    /// The cap is broken, or the control decides at every reading.
    fn broken(&mut self) {
        let drawn = self.window.highest();
        let power = drawn.or_else(|| self.meter.so_far().map(|(power, _)| power.get()));
        let Some(power) = power else { return };
        self.windows += 1;
        let bounds = self.bounds();
        let now = self.now;
        match &mut self.control {
            Control::Robust {
                ladder,
                over_levels,
            } => {
                let (at, over_levels) = (self.at, *over_levels);
                let verdict = ladder.broken(at.rung(over_levels), power, &bounds, now);
                self.follow(verdict.map(|rung| at.with_rung(rung, over_levels)), power);
            }
            Control::Joint(joint) => {
                let verdict = joint.broken(self.at, power, &bounds, now);
                self.follow(verdict, power);
            }
            Control::OwnCap { lower } => {
                *lower += 1;
                let level = self.terms.own_cap(*lower);
                if level == self.at.level {
                    self.infeasible(power);
                }
                self.at.level = level;
            }
            Control::Search { .. } => self.search(power),
        }
        self.window.clear();
    }

    fn perhaps_whole(&mut self) {
        if self.window.batches < self.terms.window || !self.window.is_seen_through() {
            return;
        }
        let Some(observed) = self.window.observed(self.terms.cap.get()) else {
            return;
        };
        self.windows += 1;
        self.decide(&observed);
        self.window.clear();
    }

    fn decide(&mut self, observed: &Observed) {
        let bounds = self.bounds();
        let (now, before) = (self.now, self.at);
        match &mut self.control {
            Control::Robust {
                ladder,
                over_levels,
            } => {
                let (at, over_levels) = (self.at, *over_levels);
                let verdict = ladder.window(at.rung(over_levels), observed, &bounds, now);
                self.follow(
                    verdict.map(|rung| at.with_rung(rung, over_levels)),
                    observed.power,
                );
            }
            Control::Joint(joint) => {
                let verdict = joint.window(self.at, observed, &bounds, now);
                self.follow(verdict, observed.power);
            }
            Control::OwnCap { .. } => {}
            Control::Search { .. } => self.search(observed.power),
        }
        self.held = match self.at == before {
            true => self.held.saturating_add(1),
            false => 0,
        };
        self.check_arrivals(observed.rate);
    }

    fn search(&mut self, power: f64) {
        let cap = self.terms.cap;
        let Control::Search {
            search,
            over_levels,
        } = &mut self.control
        else {
            return;
        };
        match search.decide(power, cap) {
            search::Verdict::At(next) if *over_levels => self.at.level = next,
            search::Verdict::At(next) => self.at.batch = next,
            search::Verdict::Infeasible => self.infeasible(power),
        }
    }

    /// `power` is what was drawn last, where nothing is known of the setting that is meant.
    pub(super) fn follow(&mut self, verdict: Verdict<Place>, power: f64) {
        let keeps = power <= self.terms.cap.get();
        match verdict {
            Verdict::At(next) => {
                self.at = next;
                self.kept = if keeps {
                    self.kept.saturating_add(1)
                } else {
                    0
                };
                if self.kept >= FEASIBLE && self.said.infeasible {
                    self.said.infeasible = false;
                    self.say(Notice::FeasibleAgain);
                }
            }
            Verdict::OverCap(least) => {
                (self.kept, self.at) = (0, least);
                self.infeasible(self.control.power_at(least).unwrap_or(power));
            }
            Verdict::TooSlow(least) => {
                (self.kept, self.at) = (0, least);
                if let Some(bound) = self.terms.latency_p99.filter(|_| !self.said.infeasible) {
                    self.said.infeasible = true;
                    let p99 = Seconds::new(self.window.p99());
                    self.say(Notice::LatencyInfeasible { p99, bound });
                }
            }
        }
    }
}
