//! Whether the statements of the appendices of dvfs_2019 about training hold: on memory clocks, batch sizes and
//! convolution algorithms.

use sweetspot_sim::Mode;

use super::boards::{ALGORITHMS, BOARDS, NETWORKS, TURING};
use super::reproduction::Sample;
use crate::row::{Conclusion, range_of};

/// The largest gain in speed that counts as hardly any, as a fraction.
const HARDLY_FASTER: f64 = 0.02;
/// The least increase that counts as higher power, as a fraction.
const MORE_POWER: f64 = 0.03;
/// The largest change that counts as nearly the same power, as a fraction.
const SAME_POWER: f64 = 0.03;
/// The least gain in speed that counts as better performance, as a fraction.
const FASTER: f64 = 0.10;
/// The largest gain in speed by larger batches that counts as rarely any change, as a fraction.
const RARELY_CHANGED: f64 = 0.06;

/// The networks that gain from larger batches, says appendix A.
const GAINING: [&str; 2] = ["googlenet", "resnet50"];

/// The gains in speed, in power and in energy from some samples to others.
#[derive(Default)]
struct Gains {
    speed: Vec<f64>,
    power: Vec<f64>,
    energy: Vec<f64>,
}

impl Gains {
    /// Adds the gains of a network from the first to the second sample of each pair, as a mean over the pairs.
    fn add(&mut self, pairs: &[(&Sample, &Sample)]) {
        let mean = |value: fn(&Sample) -> f64| {
            let logarithms = pairs
                .iter()
                .map(|(from, to)| (value(to) / value(from)).ln());
            (logarithms.sum::<f64>() / pairs.len() as f64).exp() - 1.0
        };
        if !pairs.is_empty() {
            self.speed.push(mean(speed));
            self.power.push(mean(power));
            self.energy.push(mean(|sample| sample.joules_per_item));
        }
    }
}

fn speed(sample: &Sample) -> f64 {
    sample.items_per_s
}

fn power(sample: &Sample) -> f64 {
    sample.items_per_s * sample.joules_per_item
}

/// The samples of training at a board's default core clock with a convolution algorithm.
fn of_training<'a>(
    samples: &'a [Sample],
    gpu: &str,
    network: &str,
    algorithm: &str,
) -> Vec<&'a Sample> {
    let board = BOARDS.iter().find(|board| board.gpu == gpu);
    let default = board.map(|board| board.default);
    let own = samples.iter().filter(|sample| {
        sample.mode == Mode::Train
            && sample.gpu == gpu
            && sample.network == network
            && sample.algorithm.as_deref() == Some(algorithm)
            && Some(sample.core) == default
    });
    own.collect()
}

/// Each sample of `from` with the one of `to` that has the same batch size and memory clock.
fn same_batch<'a>(from: &[&'a Sample], to: &[&'a Sample]) -> Vec<(&'a Sample, &'a Sample)> {
    let pairs = from.iter().filter_map(|from| {
        let is_same =
            |to: &&&Sample| to.batch == from.batch && to.memory.to_bits() == from.memory.to_bits();
        Some((*from, *to.iter().find(is_same)?))
    });
    pairs.collect()
}

/// The conclusions of the appendices.
pub fn appendix_conclusions(samples: &[Sample]) -> Vec<Conclusion> {
    let memory = memory_clock_gains(samples);
    vec![
        memory_clock(&memory),
        low_memory_clock(&memory),
        batch_sizes(samples),
        winograd(samples),
    ]
}

/// The lowest and the highest memory clock of the 2080 Ti in the paper, in MHz.
fn memory_clocks() -> (f64, f64) {
    let board = BOARDS.iter().find(|board| board.gpu == TURING);
    let clocks = board.map_or(&[][..], |board| board.memory);
    range_of(clocks.iter().copied())
}

/// What each network gains in training on the 2080 Ti from the lowest to the highest memory clock.
fn memory_clock_gains(samples: &[Sample]) -> Gains {
    let (low, high) = memory_clocks();
    let mut gains = Gains::default();
    for (network, _) in NETWORKS {
        let all = of_training(samples, TURING, network, ALGORITHMS[0]);
        let at = |clock: f64| all.iter().filter(move |sample| sample.memory == clock);
        let pairs: Vec<_> = at(low)
            .filter_map(|from| Some((*from, *at(high).find(|to| to.batch == from.batch)?)))
            .collect();
        gains.add(&pairs);
    }
    gains
}

/// Appendix A: "increasing the memory frequency hardly affects the performance of DNN training, but leads to higher power
/// consumption".
fn memory_clock(gains: &Gains) -> Conclusion {
    let (low, high) = memory_clocks();
    let ends = |gains: &[f64]| range_of(gains.iter().copied());
    let (speed, power) = (ends(&gains.speed), ends(&gains.power));
    Conclusion::new(
        "the memory clock of the 2080 Ti hardly affects the speed of training, and raises the power",
        speed.1 < HARDLY_FASTER && power.0 > MORE_POWER,
        format!(
            "{} speed and {} power from {low} to {high} MHz",
            percent(speed),
            percent(power)
        ),
    )
}

/// Appendix A: "applying a low memory frequency surprisingly helps conserve energy".
fn low_memory_clock(gains: &Gains) -> Conclusion {
    let (low, high) = memory_clocks();
    let saved = gains.energy.iter().map(|gain| gain / (1.0 + gain));
    let saved = range_of(saved);
    Conclusion::new(
        "in training on the 2080 Ti the lowest memory clock saves energy for every network",
        saved.0 > 0.0,
        format!(
            "{} of the energy saved at {low} in place of {high} MHz",
            percent(saved)
        ),
    )
}

/// Appendix A: "the performance of AlexNet and VggNet-16 rarely changes with different batch sizes, while GoogleNet and
/// ResNet-50 gain higher image processing throughputs with larger batches".
fn batch_sizes(samples: &[Sample]) -> Conclusion {
    let (mut rarely, mut gaining) = (Vec::new(), Vec::new());
    for board in BOARDS.iter().filter(|board| board.gpu != TURING) {
        for (network, _) in NETWORKS {
            let mut all = of_training(samples, board.gpu, network, ALGORITHMS[0]);
            all.sort_by_key(|sample| sample.batch);
            if let [first, .., last] = all[..] {
                let gain = speed(last) / speed(first) - 1.0;
                match GAINING.contains(&network) {
                    true => gaining.push(gain),
                    false => rarely.push(gain),
                }
            }
        }
    }
    let (rarely, gaining) = (range_of(rarely), range_of(gaining));
    Conclusion::new(
        "in training on P100 and V100 larger batches hardly change the speed of AlexNet and VGG-16, and raise that of GoogLeNet and ResNet-50",
        rarely.0.abs().max(rarely.1) < RARELY_CHANGED && gaining.0 > FASTER,
        format!(
            "AlexNet and VGG-16 {}, GoogLeNet and ResNet-50 {}",
            percent(rarely),
            percent(gaining)
        ),
    )
}

/// Appendix B: "Winograd achieves better performance while keeping nearly the same power consumption".
fn winograd(samples: &[Sample]) -> Conclusion {
    let mut gains = Gains::default();
    for board in BOARDS.iter().filter(|board| board.gpu != TURING) {
        for (network, _) in NETWORKS {
            let of = |algorithm| of_training(samples, board.gpu, network, algorithm);
            gains.add(&same_batch(&of("gemm"), &of("winograd")));
        }
    }
    let (speed, power) = (range_of(gains.speed), range_of(gains.power));
    Conclusion::new(
        "on P100 and V100 Winograd is faster than a matrix product at nearly the same power",
        speed.0 > FASTER && power.0.abs().max(power.1.abs()) < SAME_POWER,
        format!("{} speed and {} power", percent(speed), percent(power)),
    )
}

/// A range of gains in percent.
fn percent((low, high): (f64, f64)) -> String {
    format!("{:+.1} to {:+.1} %", 100.0 * low, 100.0 * high)
}
