//! The energy that a device has drawn since the start, at any moment that was marked.
//!
//! A device is measured in segments of a few seconds. The energy of a segment comes from the estimator that `measure`
//! uses. What a counter has measured is the difference of two totals, so that counters that follow each other add up to
//! one that covers them.

use sweetspot_device::{Moment, SensorKind};
use sweetspot_measure::math::{EnergyEstimator, GapReason, Note, ReadingsFit, Span, Trace};
use sweetspot_measure::{Method, MethodChoice};
use sweetspot_quantity::{Joules, Seconds};

/// A segment that began longer than twice this before the first mark is divided this long before that mark.
const SHARED_BEFORE: Seconds = Seconds::new(1.5);

/// The longest time for which a fit to the readings is used. A fit takes thirty times as long as an estimate with it. With
/// 30 s intervals of long windows no longer hold.
const FIT_HOLDS_FOR: Seconds = Seconds::new(4.0);

/// The relative standard deviation of the gain of the driver's buffer, if it was found from reads of the energy counter before
/// a segment alone: on an H200 it depends on the load (-1.4 to +0.3 %).
const UNCHECKED_GAIN_DEVIATION: f64 = 0.003;

/// The energy of a device from the start up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// The energy.
    pub energy: Joules,
    /// The variance of all complete segments before the moment, in joules squared, without the deviation that `gain` says.
    segments_variance: f64,
    /// The deviation that the segments since the last read of the energy counter have in common, because they rely on the
    /// gain of the driver's buffer.
    gain: Joules,
    /// The number of reads of the energy counter after which segments rely on another gain.
    gains: u64,
    /// The variance of the segment that the moment lies in, up to the moment.
    part_variance: f64,
    /// The time without readings, whose energy is not counted.
    pub missing: Seconds,
    /// How often the machine's wall clock was set so far.
    clock_steps: u32,
    /// The method of the last segment.
    method: Option<Method>,
    /// Whether the device no longer answers.
    pub is_lost: bool,
}

/// The energy of a device between two moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The energy.
    pub energy: Joules,
    /// Half the width of the 95 % interval.
    pub half_width: Joules,
    /// The time without readings, whose energy is not counted.
    pub missing: Seconds,
    /// Whether the wall clock was set meanwhile.
    pub clock_stepped: bool,
    /// How the energy was measured; `None` if nothing was read.
    pub method: Option<Method>,
    /// Whether the device was lost meanwhile.
    pub is_lost: bool,
}

impl Total {
    /// The energy from an earlier moment to this one.
    pub fn since(&self, earlier: &Self) -> Difference {
        // Both ends cut a segment, and both cuts are uncertain. The segments between them partly make up for each other's
        // errors, so their sum is on the safe side.
        let between = (self.segments_variance - earlier.segments_variance).max(0.0);
        let gain = match self.gains == earlier.gains {
            true => self.gain - earlier.gain,
            false => self.gain,
        };
        let variance = between + self.part_variance + earlier.part_variance + gain.get().powi(2);
        Difference {
            energy: (self.energy - earlier.energy).max(Joules::ZERO),
            half_width: Joules::new(1.96 * variance.sqrt()),
            missing: (self.missing - earlier.missing).max(Seconds::ZERO),
            clock_stepped: self.clock_steps != earlier.clock_steps,
            method: self.method,
            is_lost: self.is_lost,
        }
    }
}

/// The total energy of one device.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The end of the last complete segment.
    until: Moment,
    total: Total,
    /// The last read of the energy counter that was known at the end of the last segment.
    counter_read: Option<Moment>,
    /// What was fitted to the readings, and when.
    fit: Option<(Moment, ReadingsFit)>,
}

impl Timeline {
    /// Begins at a moment.
    pub fn new(begin: Moment) -> Self {
        Self {
            until: begin,
            total: Total::default(),
            counter_read: None,
            fit: None,
        }
    }

    /// The energy up to the end of the last complete segment.
    pub const fn total(&self) -> &Total {
        &self.total
    }

    /// The end of the last complete segment.
    pub const fn until(&self) -> Moment {
        self.until
    }

    /// Adds the segment up to `until`, and returns the totals at the marked moments, each of which lies in it. `trace`
    /// covers the segment, and somewhat more before it.
    pub fn advance(&mut self, trace: &Trace, marks: &[Moment], until: Moment) -> Vec<Total> {
        self.begin_gain(trace);
        let estimator = self.estimator(trace, until);
        // The cost of an estimate grows with its window, so many marks after a long segment share the first part of it.
        if let Some(cut) = marks.first().map(|first| *first + -SHARED_BEFORE)
            && cut > self.until + SHARED_BEFORE
        {
            self.end_segment(&estimator, cut);
        }
        let begin = self.until;
        let at = |mark: &Moment| self.total_at(&estimator, begin, *mark);
        let totals = marks.iter().map(at).collect();
        self.end_segment(&estimator, until);
        totals
    }

    /// Segments after a read of the energy counter rely on another gain of the driver's buffer than those before it.
    fn begin_gain(&mut self, trace: &Trace) {
        let read = trace.counter.last().map(|reading| reading.call.end);
        if read > self.counter_read {
            self.counter_read = read;
            self.total.segments_variance += self.total.gain.get().powi(2);
            self.total.gain = Joules::ZERO;
            self.total.gains += 1;
        }
    }

    /// The estimator for the present segment, with a fit of some seconds ago if that still holds.
    fn estimator<'a>(&mut self, trace: &'a Trace, until: Moment) -> EnergyEstimator<'a> {
        let segment = Span::new(self.until, until);
        let recent = self
            .fit
            .as_ref()
            .filter(|(at, _)| until - *at < FIT_HOLDS_FOR);
        let known = recent.map(|(_, fit)| EnergyEstimator::with_fit(trace, fit));
        if let Some(estimator) = known.filter(|estimator| estimator.fit_holds(&segment)) {
            return estimator;
        }
        let estimator = EnergyEstimator::new(trace);
        self.fit = estimator.fit(&segment).map(|fit| (until, fit));
        match &self.fit {
            Some((_, fit)) => EnergyEstimator::with_fit(trace, fit),
            None => estimator,
        }
    }

    /// Ends the present segment at a moment.
    fn end_segment(&mut self, estimator: &EnergyEstimator<'_>, until: Moment) {
        let mut total = self.total_at(estimator, self.until, until);
        total.segments_variance += total.part_variance;
        total.part_variance = 0.0;
        self.total = total;
        self.until = self.until.max(until);
    }

    /// The total at a moment within the segment that begins at `begin`.
    fn total_at(&self, estimator: &EnergyEstimator<'_>, begin: Moment, moment: Moment) -> Total {
        let mut total = self.total;
        let window = Span::new(begin, moment);
        if moment <= begin {
            return total;
        }
        let gaps = estimator.trace().gaps.iter();
        total.is_lost = gaps.clone().any(|gap| gap.reason == GapReason::Lost);
        let steps = estimator.trace().clock_steps.iter();
        total.clock_steps += steps.filter(|at| begin < **at && **at <= moment).count() as u32;
        match estimator.energy(&window, MethodChoice::Auto) {
            Ok(energy) => {
                total.energy += energy.value;
                let (all, known) = (energy.deviation().get(), energy.gain_deviation());
                total.part_variance = (all.powi(2) - known.get().powi(2)).max(0.0);
                // Where the counter was not read afterwards, the gain is that of an earlier load.
                let is_checked = estimator.steps().around(moment).1.is_some();
                total.gain += match is_checked {
                    true => known,
                    false => known.max(energy.value * UNCHECKED_GAIN_DEVIATION),
                };
                total.method = Some(energy.method);
                let uncovered = energy.uncovered(&window).map(|part| part.length().get());
                total.missing += Seconds::new(uncovered.sum());
                if energy.notes.contains(&Note::ClockStepped)
                    && total.clock_steps == self.total.clock_steps
                {
                    total.clock_steps += 1;
                }
            }
            // Without readings nothing is counted, and the time is reported as missing.
            Err(_) => total.missing += window.length(),
        }
        total
    }
}

/// The power samples of a trace after a moment, in order of time, from the best sensor that has any.
pub fn samples_after(trace: &Trace, after: Moment) -> Vec<(Moment, f64)> {
    let buffered = trace.buffer.iter().map(|one| (one.at, one.power.get()));
    let polled = |values: &[sweetspot_measure::math::PolledPower]| -> Vec<(Moment, f64)> {
        let values = values.iter().map(|one| (one.appeared.end, one.power.get()));
        values.filter(|(at, _)| *at > after).collect()
    };
    let new: Vec<_> = buffered.filter(|(at, _)| *at > after).collect();
    let has_buffer = !new.is_empty()
        || trace
            .gaps
            .iter()
            .any(|gap| gap.sensor == SensorKind::BufferedPower);
    match (has_buffer, trace.instant.is_empty()) {
        (true, _) => new,
        (false, false) => polled(&trace.instant),
        (false, true) => polled(&trace.average),
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_measure::math::PowerSample;
    use sweetspot_quantity::Watts;

    use super::*;

    fn at(seconds: f64) -> Moment {
        Moment::from_nanos((seconds * 1e9) as u64)
    }

    /// Power that changes every second between 100 and 300 W.
    fn trace(begin: f64, end: f64) -> Trace {
        let count = ((end - begin) / 0.02) as usize;
        let sample = |number: usize| {
            let time = begin + number as f64 * 0.02;
            let power = if time.rem_euclid(2.0) < 1.0 {
                100.0
            } else {
                300.0
            };
            PowerSample {
                at: at(time),
                power: Watts::new(power),
            }
        };
        Trace {
            buffer: (0..count).map(sample).collect(),
            ..Trace::default()
        }
    }

    #[test]
    fn counters_add_up_over_segments() {
        let mut timeline = Timeline::new(at(2.0));
        let mut marked = vec![*timeline.total()];
        for segment in 0..5 {
            let begin = 2.0 + 4.0 * f64::from(segment);
            let marks = [at(begin + 1.3), at(begin + 2.7)];
            let readings = trace((begin - 2.0).max(0.0), begin + 4.2);
            marked.extend(timeline.advance(&readings, &marks, at(begin + 4.0)));
        }
        marked.push(*timeline.total());
        let parts: f64 = marked
            .windows(2)
            .map(|pair| pair[1].since(&pair[0]).energy.get())
            .sum();
        let whole = timeline.total().since(&Total::default());
        assert!((parts - whole.energy.get()).abs() < 1e-6);
        // 20 seconds at a mean of 200 W.
        assert!(
            (whole.energy.get() - 4000.0).abs() < whole.half_width.get().max(8.0),
            "{whole:?}"
        );
        assert_eq!(whole.missing, Seconds::ZERO);
    }

    #[test]
    fn a_device_without_readings_counts_as_missing() {
        let mut timeline = Timeline::new(at(0.0));
        let totals = timeline.advance(&Trace::default(), &[at(1.0)], at(4.0));
        assert_eq!(
            (totals[0].energy, totals[0].missing),
            (Joules::ZERO, Seconds::new(1.0))
        );
        let whole = timeline.total().since(&Total::default());
        assert_eq!((whole.missing, whole.method), (Seconds::new(4.0), None));
        assert_eq!(timeline.until(), at(4.0));
    }
}
