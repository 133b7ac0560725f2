//! Readings in the order of what they say something about, and what they come to together.

use sweetspot_device::Moment;

use super::counter::Knot;
use super::filter::{Filter, Place};
use super::process::Process;
use super::readings::{PolledPower, PowerSample, Response, Span, WindowSensor};

/// Something that happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// The buffer shows so many watts.
    Sample {
        watts: f64,
    },
    /// The counter moves to so many joules of its run; `blur` is the deviation of the moment, in seconds.
    Knot {
        joules: f64,
        run: usize,
        blur: f64,
    },
    /// A power sensor's window begins.
    WindowBegins {
        slot: usize,
    },
    /// It ends, and this was its mean.
    WindowEnds {
        slot: usize,
        watts: f64,
        length: f64,
        blur: f64,
    },
    /// The window whose energy is wanted begins or ends.
    Begin,
    End,
}

/// Events in order.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    origin: Moment,
    events: Vec<(f64, Event)>,
    slots: usize,
    /// Deviation of the buffer's lasting error, against the mean power.
    offset: f64,
}

/// What evidence comes to under a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Of the wanted window: joules and their variance.
    pub energy: f64,
    pub variance: f64,
    /// Sum of logarithms of variances, of squared relative distances, and their count.
    pub logs: f64,
    pub squares: f64,
    pub count: usize,
    /// Squared relative distance of each observation of power, and the place of its event.
    pub surprises: Vec<(usize, f64)>,
}

const BEGIN: Place = Place::new(0);
const END: Place = Place::new(1);
const RUN: Place = Place::new(2);
const OTHERS: usize = 3;

impl Evidence {
    pub fn new(origin: Moment) -> Self {
        Self {
            origin,
            events: Vec::new(),
            slots: 0,
            offset: 0.0,
        }
    }

    fn at(&self, moment: Moment) -> f64 {
        (moment - self.origin).get()
    }

    /// The window whose energy is wanted.
    pub fn window(&mut self, window: &Span) {
        self.events.push((self.at(window.begin), Event::Begin));
        self.events.push((self.at(window.end), Event::End));
    }

    /// Samples of the buffer show what was before their delay.
    /// Scaled by a gain that is known with a deviation.
    pub fn samples(
        &mut self,
        samples: &[PowerSample],
        response: &Response,
        gain: f64,
        deviation: f64,
    ) {
        self.offset = deviation;
        let delay = response.delay.get();
        for sample in samples {
            let watts = sample.power.get() * gain;
            let at = self.at(sample.at) - delay;
            self.events.push((at, Event::Sample { watts }));
        }
    }

    pub fn knots(&mut self, knots: &[Knot]) {
        for knot in knots {
            let event = Event::Knot {
                joules: knot.energy.get(),
                run: knot.run,
                blur: knot.moved.length().get() / 12f64.sqrt(),
            };
            self.events.push((self.at(knot.at()), event));
        }
    }

    pub fn windows(&mut self, values: &[PolledPower], sensor: &WindowSensor) {
        let length = sensor.window.get();
        // Windows that overlap keep their beginnings in different places.
        let first = self.slots;
        let mut taken: Vec<f64> = Vec::new();
        for value in values {
            // A value is no older than a period when it is first seen.
            let blur = value.appeared.length().min(sensor.period);
            let end = self.at(value.appeared.end) - 0.5 * blur.get() - sensor.lag.get();
            let free = taken.iter().position(|until| *until < end - length);
            let slot = match free {
                Some(place) => {
                    taken[place] = end;
                    first + place
                }
                None => {
                    taken.push(end);
                    first + taken.len() - 1
                }
            };
            self.events
                .push((end - length, Event::WindowBegins { slot }));
            let event = Event::WindowEnds {
                slot,
                watts: value.power.get(),
                length,
                blur: blur.get() / 12f64.sqrt(),
            };
            self.events.push((end, event));
        }
        self.slots += taken.len();
    }

    pub fn sort(&mut self) {
        self.events.sort_by(|a, b| a.0.total_cmp(&b.0));
    }

    /// The parts within these stretches of time, without the wanted window.
    pub fn parts(&self, spans: &[(f64, f64)]) -> Vec<Self> {
        let inside = |span: &(f64, f64)| Self {
            origin: self.origin,
            events: self
                .events
                .iter()
                .filter(|(at, event)| {
                    *at >= span.0 && *at <= span.1 && !matches!(event, Event::Begin | Event::End)
                })
                .copied()
                .collect(),
            slots: self.slots,
            offset: self.offset,
        };
        spans.iter().map(inside).collect()
    }

    /// Mean and deviation of what the power sensors show, values weighted alike.
    pub fn spread(&self) -> Option<(f64, f64)> {
        let shown: Vec<f64> = self
            .events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Sample { watts } | Event::WindowEnds { watts, .. } => Some(*watts),
                _ => None,
            })
            .collect();
        if shown.is_empty() {
            return None;
        }
        let count = shown.len() as f64;
        let mean = shown.iter().sum::<f64>() / count;
        let square = shown
            .iter()
            .map(|watts| (watts - mean).powi(2))
            .sum::<f64>()
            / count;
        Some((mean, square.sqrt()))
    }

    /// Runs the filter over everything. `noise` is the deviation of a power reading, in watts; `scales`
    /// multiplies the process's deviation before each event.
    pub fn run(&self, process: &Process, noise: f64, scales: Option<&[f64]>) -> Outcome {
        let mut filter = Filter::new(process, OTHERS + self.slots, self.offset * process.mean);
        let mut outcome = Outcome::default();
        let mut now = self.events.first().map_or(0.0, |(at, _)| *at);
        let mut run = None;
        let mut open = vec![false; self.slots];
        let speed = process.mean.powi(2) + process.deviation.powi(2);
        for (index, (at, event)) in self.events.iter().enumerate() {
            let span = at - now;
            if span > 0.0 {
                let scale = scales.map_or(1.0, |scales| scales[index]);
                filter.pass(&process.over(span, scale));
                now = *at;
            }
            let mut is_power = true;
            let surprise = match *event {
                Event::Sample { watts } => filter.see_filtered(watts - process.mean, noise * noise),
                Event::WindowBegins { slot } => {
                    filter.keep(Place::new(OTHERS + slot), 0.0);
                    open[slot] = true;
                    continue;
                }
                Event::WindowEnds {
                    slot,
                    watts,
                    length,
                    blur,
                } => {
                    if !std::mem::take(&mut open[slot]) {
                        continue;
                    }
                    let moved = 2.0 * (process.deviation * blur).powi(2);
                    let variance = (noise * length).powi(2) + moved;
                    let place = Place::new(OTHERS + slot);
                    filter.see_energy_since(place, watts * length, variance)
                }
                Event::Knot {
                    joules,
                    run: of,
                    blur,
                } => {
                    // Knots count from the first of their run.
                    let variance = blur * blur * speed;
                    match run {
                        Some((known, first)) if known == of => {
                            is_power = false;
                            filter.see_energy_since(RUN, joules - first, variance)
                        }
                        _ => {
                            filter.keep(RUN, variance);
                            run = Some((of, joules));
                            continue;
                        }
                    }
                }
                Event::Begin => {
                    filter.keep(BEGIN, 0.0);
                    continue;
                }
                Event::End => {
                    filter.keep(END, 0.0);
                    continue;
                }
            };
            let square = surprise.distance.powi(2) / surprise.variance.max(1e-12);
            outcome.logs += surprise.variance.max(1e-12).ln();
            outcome.squares += square;
            outcome.count += 1;
            if is_power {
                outcome.surprises.push((index, square));
            }
        }
        (outcome.energy, outcome.variance) = filter.between(BEGIN, END);
        outcome
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// In seconds since the origin.
    pub fn extent(&self) -> Option<(f64, f64)> {
        Some((self.events.first()?.0, self.events.last()?.0))
    }
}
