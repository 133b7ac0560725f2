//! Readings of all sensors as one sequence of events, and the filter's result for them.

use sweetspot_device::Moment;

use super::counter_steps::CounterStep;
use super::filter::{EnergySlot, Filter};
use super::power_process::PowerProcess;
use super::readings::{PolledPower, PowerSample, Response, Span, WindowSensor};

/// What a sensor shows at one moment, or an end of the measurement window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// A sample of the buffer, in watts.
    Sample {
        watts: f64,
    },
    /// The counter steps to this energy; `blur` is the standard deviation of the moment, in seconds.
    CounterStep {
        joules: f64,
        run: usize,
        blur: f64,
    },
    /// The averaging time of a power sensor's value begins.
    WindowBegins {
        slot: usize,
    },
    /// The averaging time of a power sensor's value ends; the value is this mean.
    WindowEnds {
        slot: usize,
        watts: f64,
        length: f64,
        blur: f64,
    },
    /// The measurement window, whose energy is to be estimated, begins or ends.
    Begin,
    End,
}

/// The events of all sensors, ordered by time.
#[derive(Clone, Debug)]
pub(crate) struct Observations {
    origin: Moment,
    events: Vec<(f64, Event)>,
    slots: usize,
    /// The standard deviation of the buffer's constant error, relative to the mean power.
    offset: f64,
}

/// The result of the Kalman filter over all observations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The energy of the measurement window, in joules, and its variance.
    pub energy: f64,
    pub variance: f64,
    /// The sums of the log variances and of the squared normalised innovations, and their count: the terms of
    /// the likelihood.
    pub logs: f64,
    pub squares: f64,
    pub count: usize,
    /// The squared normalised innovation of each power reading, with the index of its event.
    pub innovations: Vec<(usize, f64)>,
}

const BEGIN_SLOT: EnergySlot = EnergySlot::new(0);
const END_SLOT: EnergySlot = EnergySlot::new(1);
const RUN_START_SLOT: EnergySlot = EnergySlot::new(2);
const FIRST_SLOT: usize = 3;

impl Observations {
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

    /// Sets the measurement window, whose energy is to be estimated.
    pub fn set_window(&mut self, window: &Span) {
        self.events.push((self.at(window.begin), Event::Begin));
        self.events.push((self.at(window.end), Event::End));
    }

    /// Adds samples of the buffer, which show the power before their delay. `deviation` is the
    /// relative deviation of their gain.
    pub fn add_samples(&mut self, samples: &[PowerSample], response: &Response, deviation: f64) {
        self.offset = deviation;
        let delay = response.delay.get();
        for sample in samples {
            let watts = sample.power.get();
            let at = self.at(sample.at) - delay;
            self.events.push((at, Event::Sample { watts }));
        }
    }

    pub fn add_steps(&mut self, steps: &[CounterStep]) {
        for step in steps {
            let event = Event::CounterStep {
                joules: step.energy.get(),
                run: step.run,
                blur: step.span.length().get() / 12f64.sqrt(),
            };
            self.events.push((self.at(step.at()), event));
        }
    }

    pub fn add_window_means(&mut self, values: &[PolledPower], sensor: &WindowSensor) {
        let length = sensor.window.get();
        // Windows that overlap save their beginnings in different slots.
        let first = self.slots;
        let mut taken: Vec<f64> = Vec::new();
        for value in values {
            // A value is at most one period old when it is first seen.
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

    /// The observations within each of these spans, without the window to estimate.
    pub fn within(&self, spans: &[(f64, f64)]) -> Vec<Self> {
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

    /// The mean and standard deviation of all power readings, in watts; `None` if there are none.
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

    /// Runs the filter over all events. `noise` is the deviation of a power reading, in watts; `scales`
    /// multiplies the process's deviation before each event.
    pub fn run(&self, process: &PowerProcess, noise: f64, scales: Option<&[f64]>) -> Outcome {
        let mut filter = Filter::new(process, FIRST_SLOT + self.slots, self.offset * process.mean);
        let mut outcome = Outcome::default();
        let mut now = self.events.first().map_or(0.0, |(at, _)| *at);
        let mut run = None;
        let mut open = vec![false; self.slots];
        let speed = process.mean.powi(2) + process.deviation.powi(2);
        for (index, (at, event)) in self.events.iter().enumerate() {
            let span = at - now;
            if span > 0.0 {
                let scale = scales.map_or(1.0, |scales| scales[index]);
                filter.advance(&process.transition(span, scale));
                now = *at;
            }
            let mut is_power = true;
            let innovation = match *event {
                Event::Sample { watts } => {
                    filter.observe_buffer(watts - process.mean, noise * noise)
                }
                Event::WindowBegins { slot } => {
                    filter.save_energy(EnergySlot::new(FIRST_SLOT + slot), 0.0);
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
                    let timing = 2.0 * (process.deviation * blur).powi(2);
                    let variance = (noise * length).powi(2) + timing;
                    let place = EnergySlot::new(FIRST_SLOT + slot);
                    filter.observe_energy_since(place, watts * length, variance)
                }
                Event::CounterStep {
                    joules,
                    run: of,
                    blur,
                } => {
                    // Energies of steps count from the first step of their run.
                    let variance = blur * blur * speed;
                    match run {
                        Some((known, first)) if known == of => {
                            is_power = false;
                            filter.observe_energy_since(RUN_START_SLOT, joules - first, variance)
                        }
                        _ => {
                            filter.save_energy(RUN_START_SLOT, variance);
                            run = Some((of, joules));
                            continue;
                        }
                    }
                }
                Event::Begin => {
                    filter.save_energy(BEGIN_SLOT, 0.0);
                    continue;
                }
                Event::End => {
                    filter.save_energy(END_SLOT, 0.0);
                    continue;
                }
            };
            let square = innovation.difference.powi(2) / innovation.variance.max(1e-12);
            outcome.logs += innovation.variance.max(1e-12).ln();
            outcome.squares += square;
            outcome.count += 1;
            if is_power {
                outcome.innovations.push((index, square));
            }
        }
        (outcome.energy, outcome.variance) = filter.energy_between(BEGIN_SLOT, END_SLOT);
        outcome
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// The times of the first and the last event, in seconds since the origin.
    pub fn extent(&self) -> Option<(f64, f64)> {
        Some((self.events.first()?.0, self.events.last()?.0))
    }
}
