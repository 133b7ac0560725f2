//! Readings of all sensors as one sequence of events, and the filter's result for them.

use sweetspot_device::Moment;

use super::counter_steps::CounterStep;
use super::filter::{EnergySlot, Filter};
use super::power_process::PowerProcess;
use super::readings::{PolledPower, PowerSample, Response, Span, WindowSensor};

/// An observation of a sensor at one moment, or an end of the measurement window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// A sample of the driver's buffer, in watts.
    Sample { watts: f64 },
    /// The energy counter steps to this energy; `blur` is the standard deviation of the step's time, in
    /// seconds.
    CounterStep { joules: f64, run: usize, blur: f64 },
    /// The time over which a power sensor averages begins; the energy at this moment is saved in `slot`.
    WindowBegins { slot: usize },
    /// The time over which a power sensor averages ends; its value is `watts`, the mean over `length`
    /// seconds.
    WindowEnds {
        slot: usize,
        watts: f64,
        length: f64,
        blur: f64,
    },
    /// The beginning of the measurement window whose energy is estimated.
    Begin,
    /// The end of the measurement window whose energy is estimated.
    End,
}

/// The observations of all sensors in order of time.
#[derive(Clone, Debug)]
pub(crate) struct Observations {
    origin: Moment,
    events: Vec<(f64, Event)>,
    slots: usize,
    /// The standard deviation of the driver buffer's constant error, relative to the mean power.
    offset: f64,
}

/// The result of the Kalman filter over all observations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The energy of the measurement window, in joules.
    pub energy: f64,
    /// The variance of the energy, in joules squared.
    pub variance: f64,
    /// The variance of the driver buffer's constant error, in watts squared.
    pub offset_variance: f64,
    /// The sum of the logarithms of the innovations' variances, a term of the log likelihood.
    pub logs: f64,
    /// The sum of the squared normalised innovations, a term of the log likelihood.
    pub squares: f64,
    /// The number of innovations.
    pub count: usize,
    /// For each power reading: the index of its event, and its squared normalised innovation.
    pub innovations: Vec<(usize, f64)>,
}

/// Where the filter saves the energy at the beginning of the measurement window.
const BEGIN_SLOT: EnergySlot = EnergySlot::new(0);
/// Where the filter saves the energy at the end of the measurement window.
const END_SLOT: EnergySlot = EnergySlot::new(1);
/// Where the filter saves the energy at the counter's first step after its last reset.
const RUN_START_SLOT: EnergySlot = EnergySlot::new(2);
/// The number of reserved slots: slots for the means of power sensors follow them.
const FIRST_SLOT: usize = 3;

impl Observations {
    /// Creates an empty sequence; times are counted from `origin`.
    pub fn new(origin: Moment) -> Self {
        Self {
            origin,
            events: Vec::new(),
            slots: 0,
            offset: 0.0,
        }
    }

    /// The time of a moment, in seconds since the origin.
    fn seconds_since_origin(&self, moment: Moment) -> f64 {
        (moment - self.origin).get()
    }

    /// Adds the two ends of the measurement window whose energy is estimated.
    pub fn set_window(&mut self, window: &Span) {
        self.events
            .push((self.seconds_since_origin(window.begin), Event::Begin));
        self.events
            .push((self.seconds_since_origin(window.end), Event::End));
    }

    /// Adds samples of the driver's buffer; their times are corrected for the response's delay. `deviation`
    /// is the relative standard deviation of the buffer's gain.
    pub fn add_samples(&mut self, samples: &[PowerSample], response: &Response, deviation: f64) {
        self.offset = deviation;
        let delay = response.delay.get();
        for sample in samples {
            let watts = sample.power.get();
            let at = self.seconds_since_origin(sample.at) - delay;
            self.events.push((at, Event::Sample { watts }));
        }
    }

    /// Adds the steps of the energy counter.
    pub fn add_steps(&mut self, steps: &[CounterStep]) {
        for step in steps {
            let event = Event::CounterStep {
                joules: step.energy.get(),
                run: step.run,
                blur: step.span.length().get() / 12f64.sqrt(),
            };
            self.events
                .push((self.seconds_since_origin(step.at()), event));
        }
    }

    /// Adds the values of a power sensor that averages over a time before each value.
    pub fn add_window_means(&mut self, values: &[PolledPower], sensor: &WindowSensor) {
        let length = sensor.window.get();
        // Windows that overlap save their beginnings in different slots.
        let first = self.slots;
        let mut taken: Vec<f64> = Vec::new();
        for value in values {
            // A value is at most one period old when it is first seen.
            let blur = value.appeared.length().min(sensor.period);
            let end =
                self.seconds_since_origin(value.appeared.end) - 0.5 * blur.get() - sensor.lag.get();
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

    /// Sorts the observations by time; they must be sorted before [`Self::run`].
    pub fn sort(&mut self) {
        self.events.sort_by(|a, b| a.0.total_cmp(&b.0));
    }

    /// The observations within each of these time spans (in seconds since the origin), without the ends of
    /// the measurement window.
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

    /// Runs the Kalman filter over all events. `noise` is the standard deviation of a power reading, in
    /// watts; `scales` multiplies the process's standard deviation before each event.
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
        outcome.offset_variance = filter.offset_variance();
        outcome
    }

    /// The number of observations.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// The times of the first and the last event, in seconds since the origin.
    pub fn extent(&self) -> Option<(f64, f64)> {
        Some((self.events.first()?.0, self.events.last()?.0))
    }
}
