//! The processes that the costs along a line of settings may follow.

use sweetspot_stats::matern;

/// A process that the costs along a line may follow: a constant plus random parts. All deviations are shares of the
/// cost, all positions and lengths shares of the line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Process {
    /// The position above which the cost is constant, because the setting has no effect there, as a power cap that the
    /// job does not reach.
    pub(super) knee: f64,
    /// The standard deviation of the smooth part, which varies along the line below the knee.
    smooth: f64,
    /// The correlation length of the smooth part.
    length: f64,
    /// The standard deviation of the local part, which allows for bends.
    bend: f64,
    /// The standard deviation of the part that is independent at every configuration.
    pub(super) rough: f64,
}

/// The process in which no setting makes a difference.
const CONSTANT: Process = Process {
    knee: 0.0,
    smooth: 0.0,
    length: 1.0,
    bend: 0.0,
    rough: 0.0,
};
/// The prior probability that no setting makes a difference.
const CONSTANT_PROBABILITY: f64 = 0.25;
/// The number of possible knees, evenly spaced along the line; the last one is the end of the line.
const KNEES: usize = 20;
/// The prior probability of a knee at the end of the line: all settings have an effect.
const NO_KNEE_PROBABILITY: f64 = 0.5;
/// The possible standard deviations of the smooth part, all equally likely.
const SMOOTH: [f64; 4] = [0.02, 0.08, 0.3, 1.2];
/// The possible correlation lengths of the smooth part, all equally likely.
const LENGTHS: [f64; 2] = [0.4, 1.2];
/// The possible standard deviations of the local part, each with its prior probability.
const BENDS: [(f64, f64); 3] = [(0.0, 0.5), (0.003, 0.3), (0.012, 0.2)];
/// The correlation length of the local part.
const BEND_LENGTH: f64 = 0.15;
/// The possible standard deviations of the independent part, each with its prior probability. No two settings are
/// exactly alike.
const ROUGH: [(f64, f64); 3] = [(0.0005, 0.75), (0.004, 0.15), (0.02, 0.1)];
/// The possible standard deviations of the independent part of a line without order, all equally likely.
const ROUGH_WITHOUT_ORDER: [f64; 7] = [0.0005, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0];

impl Process {
    /// The covariance of the smooth and the local part at two positions.
    pub(super) fn covariance(&self, a: f64, b: f64) -> f64 {
        let distance = (a.min(self.knee) - b.min(self.knee)).abs();
        let part = |deviation: f64, length: f64| match deviation > 0.0 {
            true => deviation * deviation * matern(distance / length),
            false => 0.0,
        };
        part(self.smooth, self.length) + part(self.bend, BEND_LENGTH)
    }

    /// The variants of this process with other local and independent parts, each with its prior probability.
    fn variants(self, probability: f64) -> impl Iterator<Item = (Self, f64)> {
        BENDS.into_iter().flat_map(move |(bend, of_bend)| {
            ROUGH.into_iter().map(move |(rough, of_rough)| {
                let variant = Self {
                    bend,
                    rough,
                    ..self
                };
                (variant, probability * of_bend * of_rough)
            })
        })
    }
}

/// The processes with a smooth part and this knee, each with its prior probability.
fn with_knee(number: usize) -> Vec<(Process, f64)> {
    let of_knee = match number == KNEES {
        true => NO_KNEE_PROBABILITY,
        false => (1.0 - NO_KNEE_PROBABILITY) / (KNEES - 1) as f64,
    };
    let share = (1.0 - CONSTANT_PROBABILITY) * of_knee / (SMOOTH.len() * LENGTHS.len()) as f64;
    let mut all = Vec::new();
    for smooth in SMOOTH {
        all.extend(LENGTHS.map(|length| {
            let process = Process {
                knee: number as f64 / KNEES as f64,
                smooth,
                length,
                ..CONSTANT
            };
            (process, share)
        }));
    }
    all
}

/// The possible processes of a line without order, each with its prior probability.
pub(super) fn without_order() -> Vec<(Process, f64)> {
    let share = 1.0 / ROUGH_WITHOUT_ORDER.len() as f64;
    ROUGH_WITHOUT_ORDER
        .map(|rough| (Process { rough, ..CONSTANT }, share))
        .to_vec()
}

/// The possible processes of an ordered line, each with its prior probability. Of the many possible knees only the few
/// that `score` rates best are included.
pub(super) fn with_order(score: impl Fn(&Process) -> f64) -> Vec<(Process, f64)> {
    /// The number of knees that are included.
    const BEST_KNEES: usize = 4;
    let mut knees: Vec<(f64, usize)> = (1..=KNEES)
        .map(|number| {
            let processes = with_knee(number).into_iter();
            let scores = processes.map(|(process, probability)| {
                let bend = BENDS[1].0;
                score(&Process { bend, ..process }) + libm::log(probability)
            });
            (scores.fold(f64::NEG_INFINITY, f64::max), number)
        })
        .collect();
    knees.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut all: Vec<(Process, f64)> = CONSTANT.variants(CONSTANT_PROBABILITY).collect();
    for (_, number) in knees.into_iter().take(BEST_KNEES) {
        for (process, probability) in with_knee(number) {
            all.extend(process.variants(probability));
        }
    }
    all
}
