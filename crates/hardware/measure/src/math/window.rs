//! From readings to the energy of a window.

use sweetspot_device::{Moment, SensorKind};
use sweetspot_quantity::{Joules, Ratio, Seconds};

use super::alias::Range;
use super::counter::Knots;
use super::energy::{Check, Energy, EnergyError, Measured, Note, Z95};
use super::evidence::{Evidence, Outcome};
use super::fit::{Fitted, fit, respond};
use super::integrate::{Integral, holes};
use super::process::Process;
use super::readings::{Gap, GapReason, PowerSample, Response, Span, Trace};
use crate::method::{Method, MethodChoice};

/// Readings this long before and after a window still say something about it.
pub(super) const MARGIN: Seconds = Seconds::new(1.5);
/// Samples farther apart than this leave a hole: the driver's own gaps are 46 ms at most (H200).
const HOLE: Seconds = Seconds::new(0.08);

pub(super) const CLOCK: f64 = 1e-4;

/// A trace made ready to be asked for windows.
#[derive(Clone, Debug)]
pub struct Ledger<'a> {
    pub(super) trace: &'a Trace,
    pub(super) knots: Knots,
    pub(super) range: Range,
    pub(super) response: Response,
}

impl<'a> Ledger<'a> {
    /// Of everything that was read from one device.
    pub fn new(trace: &'a Trace) -> Self {
        let model = &trace.model;
        let mut knots =
            Knots::from_readings(&trace.counter, model.counter_period, model.counter_modulus);
        knots.compare(model.counter_modulus, |span| {
            let integral = Integral::of(&trace.buffer, &model.response, span, HOLE);
            (integral.covered >= span.length() * 0.9).then_some(integral.energy)
        });
        Self {
            range: Range::of(trace, &knots),
            response: respond(trace, &knots.knots),
            knots,
            trace,
        }
    }

    /// How the buffer's samples follow power: as the counter has it, or else as the model has it.
    pub fn response(&self) -> Response {
        self.response
    }

    /// What was read.
    pub fn trace(&self) -> &Trace {
        self.trace
    }

    /// The counter's moves.
    pub fn knots(&self) -> &Knots {
        &self.knots
    }

    /// The window's energy by the method asked for.
    pub fn energy(&self, window: &Span, choice: MethodChoice) -> Result<Energy, EnergyError> {
        if window.end <= window.begin {
            return Err(EnergyError::Empty(window.length()));
        }
        let energy = match choice {
            MethodChoice::Auto => self
                .counter_and_buffer(window)
                .or_else(|_| self.poll(window)),
            MethodChoice::Counter if self.knots.knots.len() < 2 => {
                Err(nothing("counter readings", window))
            }
            MethodChoice::Counter => self.counter_and_buffer(window),
            MethodChoice::Buffer => self.buffer(window),
            MethodChoice::Poll(_) => self.poll(window),
        };
        Ok(self.blur(energy?, choice))
    }

    /// The window's energy by the method asked for, and by the others as checks.
    pub fn measure(&self, window: &Span, choice: MethodChoice) -> Result<Measured, EnergyError> {
        let energy = self.energy(window, choice)?;
        let others = [self.counter(window), self.buffer(window), self.poll(window)];
        let checks = others
            .into_iter()
            .flatten()
            .map(|other| self.blur(other, choice))
            .filter(|other| other.method != energy.method)
            .filter_map(|other| Check::of(other, &energy))
            .collect();
        Ok(Measured { energy, checks })
    }

    /// The window moved to the counter's nearest moves: exact, with a time of its own.
    pub fn snapped(&self, window: &Span) -> Result<Energy, EnergyError> {
        let knots = &self.knots.knots;
        let nearest = |moment: Moment| {
            let distance = |at: Moment| (at - moment).abs().get();
            knots
                .iter()
                .min_by(|a, b| distance(a.at()).total_cmp(&distance(b.at())))
        };
        let ends = nearest(window.begin).zip(nearest(window.end));
        let (begin, end) = ends
            .filter(|(begin, end)| begin.run == end.run && begin.at() < end.at())
            .ok_or_else(|| nothing("two moves of the counter", window))?;
        let value = end.energy - begin.energy;
        let covered = Span::new(begin.at(), end.at());
        // A counter of whole millijoules.
        let rounding = Joules::new(0.001);
        Ok(Energy {
            value,
            interval95: (value - rounding, value + rounding),
            method: Method::CounterSnapped,
            covered,
            missing: self.missing(&[SensorKind::EnergyCounter], &covered),
            notes: Vec::new(),
        })
    }

    /// Runs the filter on power readings, under the process that they speak for.
    pub(super) fn judge(&self, mut evidence: Evidence, covered: &Span, method: Method) -> Energy {
        evidence.window(covered);
        evidence.sort();
        let response = self.response.time_constant.get();
        let (fitted, is_known) = match fit(&evidence, response) {
            Some(fitted) => (fitted, true),
            None => (self.safe_guess(&evidence, response), false),
        };
        let outcome = evidence.run(&fitted.process, fitted.noise, fitted.scales.as_deref());
        let mut energy = self.value(&outcome, covered, method, 0.0);
        if !is_known {
            energy.notes.push(Note::FewReadings);
        }
        if self.trace.clock_steps.iter().any(|at| inside(covered, *at)) {
            energy.notes.push(Note::ClockStepped);
        }
        energy
    }

    fn safe_guess(&self, evidence: &Evidence, response: f64) -> Fitted {
        let mean = evidence
            .spread()
            .map_or(self.range.middle(), |(mean, _)| mean);
        Fitted {
            process: Process {
                mean,
                deviation: self.range.two_levels(mean),
                memory: 0.05,
                response,
            },
            noise: 1.0,
            scales: None,
        }
    }

    pub(super) fn value(
        &self,
        outcome: &Outcome,
        covered: &Span,
        method: Method,
        extra: f64,
    ) -> Energy {
        let half = Z95 * (outcome.variance + extra).sqrt();
        let value = Joules::new(outcome.energy.max(0.0));
        Energy {
            value,
            interval95: (
                (value - Joules::new(half)).max(Joules::ZERO),
                value + Joules::new(half),
            ),
            method,
            covered: *covered,
            missing: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Relative deviation of times by the counter's beat; no clock is trusted beyond 1 in 10,000.
    pub(super) fn timing(&self) -> f64 {
        let drift = self.knots.drift.map_or(0.0, Ratio::get);
        drift.hypot(CLOCK)
    }

    /// A counter that was set back says nothing of what was drawn meanwhile.
    pub(super) fn widen_for_resets(&self, energy: &mut Energy) {
        let resets = energy.missing.iter();
        let lost: f64 = resets
            .filter(|gap| gap.reason == GapReason::Reset)
            .map(|gap| gap.span.length().get())
            .sum();
        let part = lost * self.range.width() / 12f64.sqrt() / energy.value.get().max(1e-9);
        if part > 0.0 {
            widen(energy, part);
        }
    }

    /// With the counter's moves before and after.
    pub(super) fn around(&self, window: &Span) -> Span {
        let (mut begin, mut end) = (window.begin + -MARGIN, window.end + MARGIN);
        if let Some(knot) = self.knots.around(window.begin).0 {
            begin = begin.min(knot.at());
        }
        if let Some(knot) = self.knots.around(window.end).1 {
            end = end.max(knot.at());
        }
        Span::new(begin, end)
    }

    /// The part of the window that readings reach, give or take a usual gap between two of them.
    pub(super) fn covered(
        &self,
        window: &Span,
        seen: &[Span],
    ) -> Result<(Span, Option<Note>), EnergyError> {
        let begin = seen.iter().map(|span| span.begin + -HOLE).min();
        let end = seen.iter().map(|span| span.end + HOLE).max();
        let (begin, end) = begin.zip(end).ok_or_else(|| nothing("readings", window))?;
        let covered = window
            .overlap(&Span::new(begin, end))
            .ok_or_else(|| nothing("readings", window))?;
        let note = (covered != *window).then(|| Note::Trimmed {
            begin: covered.begin - window.begin,
            end: window.end - covered.end,
        });
        Ok((covered, note))
    }

    /// What of these sensors is missing within a stretch.
    pub(super) fn missing(&self, sensors: &[SensorKind], within: &Span) -> Vec<Gap> {
        let known = self.trace.gaps.iter().chain(&self.knots.gaps);
        let mut missing: Vec<Gap> = known
            .filter(|gap| sensors.contains(&gap.sensor))
            .filter_map(|gap| {
                let span = gap.span.overlap(within)?;
                Some(Gap { span, ..*gap })
            })
            .collect();
        if sensors.contains(&SensorKind::BufferedPower) {
            let silent = holes(&self.trace.buffer, within, HOLE);
            missing.extend(silent.into_iter().filter_map(|span| {
                let is_new = !self.trace.gaps.iter().any(|gap| {
                    gap.sensor == SensorKind::BufferedPower && gap.span.overlap(&span).is_some()
                });
                is_new.then_some(Gap {
                    sensor: SensorKind::BufferedPower,
                    span,
                    reason: GapReason::NotRead,
                })
            }));
        }
        missing
    }
}

fn inside(span: &Span, moment: Moment) -> bool {
    span.begin <= moment && moment <= span.end
}

pub(super) fn within<'a, T>(sorted: &'a [T], span: &Span, at: impl Fn(&T) -> Moment) -> &'a [T] {
    let begin = sorted.partition_point(|item| at(item) < span.begin);
    let end = sorted.partition_point(|item| at(item) <= span.end);
    &sorted[begin..end.max(begin)]
}

/// Adds a relative deviation.
pub(super) fn widen(energy: &mut Energy, part: f64) {
    let more = part * energy.value.get();
    let half = Joules::new(Z95 * energy.deviation().get().hypot(more));
    energy.interval95 = ((energy.value - half).max(Joules::ZERO), energy.value + half);
}

pub(super) fn nothing(what: &'static str, window: &Span) -> EnergyError {
    EnergyError::Nothing {
        what,
        window: window.length(),
    }
}

/// The buffer is asked for by time alone: duplicates and late samples are taken out beforehand.
pub fn in_order(mut samples: Vec<PowerSample>) -> Vec<PowerSample> {
    samples.sort_by_key(|sample| sample.at);
    samples.dedup_by_key(|sample| sample.at);
    samples
}
