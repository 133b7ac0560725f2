//! Nodes and meters whose truth is known, for the tests of energies and calibrations.

use sweetspot_device::{MeterProperties, MeterReading, MeterTrace, Moment};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use super::FastPower;

/// Random numbers from a seed.
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }
    pub fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// A node: the power of its GPUs and of the whole at each millisecond.
pub(super) struct Node {
    pub gpus: Vec<f64>,
    pub total: Vec<f64>,
    pub begin: f64,
    pub end: f64,
}

const MILLI: f64 = 0.001;
/// The time before and after a job, in seconds; a controller shows the end of a job within the latter.
const LEAD: f64 = 6.0;
const TRAIL: f64 = 10.0;

impl Node {
    /// A job of `length` seconds that iterates on GPUs, with idle time before and after it, behind a supply with losses.
    pub fn new(random: &mut Random, length: f64) -> Self {
        let (begin, end) = (LEAD + random.next(), LEAD + 1.0 + length);
        let idle = random.within(40.0, 80.0);
        let busy = random.within(200.0, 700.0);
        let iteration = random.within(0.2, 8.0);
        let duty = random.within(0.5, 0.95);
        let rest = random.within(80.0, 250.0);
        let efficiency = random.within(0.88, 0.95);
        let count = ((end + TRAIL) / MILLI) as usize;
        let mut wander = 0.0;
        let mut gpus = Vec::with_capacity(count);
        let mut total = Vec::with_capacity(count);
        for index in 0..count {
            let time = index as f64 * MILLI;
            let is_busy = time >= begin && time < end;
            let phase = ((time - begin) / iteration).rem_euclid(1.0);
            let gpu = match is_busy {
                true if phase < duty => busy,
                true => idle + 0.3 * (busy - idle),
                false => idle,
            };
            wander = 0.999 * wander + 0.05 * random.normal();
            let others = rest + if is_busy { 25.0 } else { 0.0 } + 3.0 * wander;
            gpus.push(gpu);
            total.push((gpu + others) / efficiency);
        }
        Self {
            gpus,
            total,
            begin,
            end,
        }
    }

    pub fn truth(&self) -> f64 {
        let index = |time: f64| (time / MILLI).round() as usize;
        self.total[index(self.begin)..index(self.end)]
            .iter()
            .sum::<f64>()
            * MILLI
    }

    /// The GPUs' power every 20 ms, with noise.
    pub fn fast(&self, random: &mut Random) -> FastPower {
        let curve = self.gpus.iter().enumerate().step_by(20);
        let curve = curve.map(|(index, power)| {
            (
                at(index as f64 * MILLI),
                power * (1.0 + 0.005 * random.normal()),
            )
        });
        FastPower::from_curves(&[curve.collect()]).unwrap()
    }
}

pub(super) fn at(seconds: f64) -> Moment {
    Moment::from_nanos((seconds * 1e9) as u64 + 1_000_000_000_000)
}

/// How a simulated meter behaves; `known` is what the reader may know.
pub(super) struct Model {
    pub period: f64,
    pub window: f64,
    pub delay: f64,
    pub gain: f64,
    pub poll: f64,
    pub counter: Option<f64>,
    pub known: MeterProperties,
}

pub(super) fn wt310(random: &mut Random) -> Model {
    Model {
        period: 0.1,
        window: 0.1,
        delay: random.within(0.0, 0.02),
        gain: 1.0 + 0.001 * random.within(-1.0, 1.0),
        poll: 0.0,
        counter: Some(0.036),
        known: properties(0.1, Some(0.1), 0.05, 0.01, 0.002),
    }
}

pub(super) fn plug(random: &mut Random) -> Model {
    Model {
        period: 1.0,
        window: random.within(0.3, 1.0),
        delay: random.within(0.05, 1.5),
        gain: 1.0 + 0.005 * random.within(-1.0, 1.0),
        poll: 0.25,
        counter: None,
        known: properties(1.0, None, 2.0, 0.1, 0.01),
    }
}

/// A controller of a server that averages this long, which its reader does not know.
pub(super) fn controller(random: &mut Random, window: f64) -> Model {
    Model {
        period: 1.0,
        window,
        delay: random.within(0.5, 5.0),
        gain: 1.0 + 0.01 * random.within(-1.0, 1.0),
        poll: 0.25,
        counter: None,
        known: MeterProperties {
            max_window: Seconds::new(60.0),
            ..properties(1.0, None, 10.0, 1.0, 0.02)
        },
    }
}

pub(super) fn properties(
    period: f64,
    window: Option<f64>,
    max_delay: f64,
    resolution: f64,
    accuracy: f64,
) -> MeterProperties {
    MeterProperties {
        period: Seconds::new(period),
        window: window.map(Seconds::new),
        max_window: Seconds::ZERO,
        max_delay: Seconds::new(max_delay),
        resolution: Watts::new(resolution),
        energy_resolution: None,
        accuracy: Ratio::new(accuracy),
        accuracy_offset: Watts::ZERO,
    }
}

/// Reads a simulated meter on a node.
pub(super) fn read(node: &Node, model: &Model, random: &mut Random) -> MeterTrace {
    let mut sums = vec![0.0; node.total.len() + 1];
    for (index, power) in node.total.iter().enumerate() {
        sums[index + 1] = sums[index] + power * MILLI;
    }
    let until = |time: f64| sums[((time / MILLI).round().max(0.0) as usize).min(sums.len() - 1)];
    let phase = random.next() * model.period;
    let step = model.known.resolution.get();
    let end = node.total.len() as f64 * MILLI;
    // What the meter shows from each update on.
    let mut updates: Vec<(f64, f64, Option<f64>)> = Vec::new();
    let mut time = phase + model.period;
    while time + model.delay < end {
        let power = model.gain * (until(time) - until(time - model.window)) / model.window;
        let energy = model
            .counter
            .map(|step| (model.gain * until(time) / step).floor() * step);
        updates.push((time + model.delay, (power / step).round() * step, energy));
        time += model.period;
    }
    let reading = |after: f64, now: f64, shown: &(f64, f64, Option<f64>)| MeterReading {
        after: at(after),
        at: at(now),
        power: Some(Watts::new(shown.1)),
        energy: shown.2.map(Joules::new),
    };
    let mut readings = Vec::new();
    if model.poll == 0.0 {
        readings.extend(
            updates
                .iter()
                .map(|shown| reading(shown.0, shown.0 + 0.003, shown)),
        );
    } else {
        let (mut now, mut before) = (updates[0].0 + 0.01, updates[0].0);
        while now < end {
            let shown = updates.partition_point(|update| update.0 <= now) - 1;
            readings.push(reading(before, now, &updates[shown]));
            before = now;
            now += model.poll * random.within(1.0, 1.1);
        }
    }
    MeterTrace {
        name: "meter".to_owned(),
        model: "plug".to_owned(),
        properties: model.known,
        readings,
        gaps: Vec::new(),
    }
}
