//! Power as the cap is judged: means over a set span that hold no time before the last change.

use sweetspot_quantity::{Seconds, Watts};

use super::event::PowerReading;

/// So many fine samples are kept: a second of a driver's buffer and room for uneven ones.
const KEPT: usize = 256;
/// A reading that covers this part of the judged span is a mean of it already.
const WHOLE: f64 = 0.9;
/// Samples that cover this part of the span cover it: their spacing is uneven.
const NEARLY: f64 = 0.98;
/// Samples further apart than this part of the span leave a gap.
const GAP: f64 = 0.3;
/// Sums of spans are this exact.
const TINY: f64 = 1e-6;

/// A mean over the judged span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The mean.
    pub power: f64,
    /// The same without its highest sample: one false sample moves it by nothing.
    pub trimmed: f64,
    /// The end of the span.
    pub to: f64,
}

/// Readings of any span in, judged means out.
#[derive(Clone, Debug)]
pub struct Meter {
    span: f64,
    fresh_from: f64,
    samples: [Sample; KEPT],
    first: usize,
    count: usize,
    /// Of the samples kept: time covered, and energy.
    covered: f64,
    energy: f64,
    last_to: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    from: f64,
    to: f64,
    power: f64,
}

impl Meter {
    /// Means over this span.
    pub fn new(span: Seconds) -> Self {
        Self {
            span: span.get(),
            fresh_from: f64::NEG_INFINITY,
            samples: [Sample::default(); KEPT],
            first: 0,
            count: 0,
            covered: 0.0,
            energy: 0.0,
            last_to: f64::NEG_INFINITY,
        }
    }

    /// What lies before this time is not judged.
    pub fn fresh_from(&mut self, time: f64) {
        self.fresh_from = time;
        while self.count > 0 && self.samples[self.first].from < time - TINY {
            self.drop_first();
        }
    }

    /// Mean power and time covered of the fine samples at hand.
    pub fn so_far(&self) -> Option<(Watts, Seconds)> {
        (self.covered > TINY).then(|| {
            let mean = self.energy / self.covered;
            (Watts::new(mean), Seconds::new(self.covered))
        })
    }

    /// Takes a reading; gives a mean where enough fresh time is covered. A reading out of order, of no
    /// span or of no number is left out.
    pub fn push(&mut self, reading: &PowerReading) -> Option<Judged> {
        let (from, to) = (reading.from.get(), reading.to.get());
        let power = reading.power.get();
        if !(power.is_finite() && from.is_finite() && to > from && to > self.last_to) {
            return None;
        }
        // After a gap nothing is known of what lies in it.
        if from - self.last_to > GAP * self.span {
            while self.count > 0 {
                self.drop_first();
            }
        }
        self.last_to = to;
        if to - from >= WHOLE * self.span {
            let is_fresh = from >= self.fresh_from - TINY;
            return is_fresh.then_some(Judged {
                power,
                trimmed: power,
                to,
            });
        }
        if from < self.fresh_from - TINY {
            return None;
        }
        if self.count == KEPT {
            self.drop_first();
        }
        let place = (self.first + self.count) % KEPT;
        self.samples[place] = Sample { from, to, power };
        self.count += 1;
        self.covered += to - from;
        self.energy += power * (to - from);
        // The oldest goes when the others cover the span without it.
        while self.count > 1 {
            let second = self.samples[(self.first + 1) % KEPT];
            if to - second.from < self.span - TINY {
                break;
            }
            self.drop_first();
        }
        let is_whole = to - self.samples[self.first].from >= NEARLY * self.span;
        is_whole.then(|| self.judge(to))
    }

    fn judge(&self, to: f64) -> Judged {
        let mut highest = self.samples[self.first];
        for place in 1..self.count {
            let sample = self.samples[(self.first + place) % KEPT];
            if sample.power > highest.power {
                highest = sample;
            }
        }
        let mean = self.energy / self.covered;
        let others = self.covered - (highest.to - highest.from);
        let trimmed = match others > TINY {
            true => (self.energy - highest.power * (highest.to - highest.from)) / others,
            false => mean,
        };
        Judged {
            power: mean,
            trimmed,
            to,
        }
    }

    fn drop_first(&mut self) {
        let sample = self.samples[self.first];
        self.covered -= sample.to - sample.from;
        self.energy -= sample.power * (sample.to - sample.from);
        self.first = (self.first + 1) % KEPT;
        self.count -= 1;
        if self.count == 0 {
            (self.covered, self.energy) = (0.0, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(from: f64, to: f64, power: f64) -> PowerReading {
        PowerReading {
            from: Seconds::new(from),
            to: Seconds::new(to),
            power: Watts::new(power),
        }
    }

    #[test]
    fn fine_samples_are_judged_once_they_cover_the_span() {
        let mut meter = Meter::new(Seconds::new(1.0));
        let mut judged = Vec::new();
        for index in 0..100 {
            let from = f64::from(index) * 0.02;
            let power = if index < 50 { 100.0 } else { 200.0 };
            judged.extend(meter.push(&reading(from, from + 0.02, power)));
        }
        let first = judged.first().expect("a second was covered");
        assert!(first.to >= 0.9 && (first.power - 100.0).abs() < 1e-9);
        let last = judged.last().expect("two seconds were covered");
        assert!((last.power - 200.0).abs() < 1e-6, "{last:?}");
    }

    #[test]
    fn after_a_gap_a_mean_waits_for_a_whole_span() {
        let mut meter = Meter::new(Seconds::new(1.0));
        let mut push = |from: f64, power| meter.push(&reading(from, from + 0.02, power));
        let before = (0..100).filter_map(|index| push(f64::from(index) * 0.02, 150.0));
        assert!(before.last().is_some());
        let after: Vec<Judged> = (0..60)
            .filter_map(|index| push(30.0 + f64::from(index) * 0.02, 240.0 - f64::from(index)))
            .collect();
        let first = after.first().expect("a second was covered again");
        assert!(first.to >= 30.97, "{first:?}");
    }

    #[test]
    fn what_holds_time_before_a_change_is_not_judged() {
        let mut meter = Meter::new(Seconds::new(1.0));
        meter.fresh_from(10.0);
        assert_eq!(meter.push(&reading(9.5, 10.5, 300.0)), None);
        assert!(meter.push(&reading(10.0, 11.0, 120.0)).is_some());
    }

    #[test]
    fn one_false_sample_does_not_move_the_trimmed_mean() {
        let mut meter = Meter::new(Seconds::new(1.0));
        let mut last = None;
        for index in 0..60 {
            let from = f64::from(index) * 0.02;
            let power = if index == 40 { 5000.0 } else { 100.0 };
            last = meter.push(&reading(from, from + 0.02, power)).or(last);
        }
        let last = last.expect("a second was covered");
        assert!(last.power > 190.0);
        assert!((last.trimmed - 100.0).abs() < 1e-6, "{last:?}");
    }
}
