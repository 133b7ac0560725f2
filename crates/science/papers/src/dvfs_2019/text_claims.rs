//! Reproduces what the text of dvfs_2019 says about speed, power and the best clocks.

use sweetspot_decide::Direction;
use sweetspot_sim::Mode;

use super::appendix_claims::appendix_conclusions;
use super::boards::{ALGORITHMS, BOARDS, Board, NETWORKS, RAISED_CLOCK_MHZ, TURING, VOLTA};
use super::reproduction::{AVERAGE_TOLERANCE, Sample, by_clock, saving};
use super::tables::TextFact;
use crate::ValueOrigin;
use crate::row::{
    Conclusion, Judgement, Label, ReproducedRow, Rows, ValueKind, is_range_near, range_of,
};

/// The number of parameters of a network.
const PARAMETERS: ValueKind = ValueKind::relative("parameters", "parameters [millions]", 1e-6, 0);
/// The core clock that saves the most energy.
const BEST_CLOCK: ValueKind =
    ValueKind::difference("core_clock_mhz", "best core clock [MHz]", 1.0, 0);
/// The additional power at a higher clock.
const POWER_GAIN: ValueKind = ValueKind::difference("power_gain", "power added [%]", 100.0, 1);
/// The additional speed at a higher clock.
const SPEED_GAIN: ValueKind = ValueKind::difference("speed_gain", "speed gained [%]", 100.0, 1);

/// The rows for the numbers on speed and power in the text. They have no tolerance, because `deviations.rs` compares
/// them without noise.
pub fn text_rows(text: &[TextFact], samples: &[Sample]) -> Vec<ReproducedRow> {
    let mut rows = Rows::new("the text").with_origin(ValueOrigin::Fitted);
    let speed = |sample: &Sample| sample.items_per_s;
    for fact in text {
        let mode = match fact.of.as_str() {
            "inference" => Mode::Infer,
            _ => Mode::Train,
        };
        let board = BOARDS.iter().find(|board| Some(board.gpu) == fact.gpu);
        let labels: [(&'static str, Label); 2] = [
            ("of", fact.of.as_str().into()),
            ("gpu", fact.gpu.unwrap_or("all three").into()),
        ];
        let share = fact.value / 100.0;
        let large = |sample: &Sample| {
            let gemm = sample.algorithm.as_deref() == Some(ALGORITHMS[0]);
            sample.mode == mode && sample.network == "alexnet" && sample.batch == 1024 && gemm
        };
        let growth = |value: fn(&Sample) -> f64| {
            let groups = by_clock(samples, board?, None, large, value, Direction::Most)?;
            let at = |clock: f64| groups.groups.iter().find(|group| group.by == clock);
            Some(at(945.0)?.mean / at(510.0)?.mean - 1.0)
        };
        match fact.what.as_str() {
            "least_faster_pct" | "most_faster_pct" => {
                let (low, high) = speed_gain_range(samples, board, mode, speed);
                let (which, here) = match fact.what.as_str() {
                    "least_faster_pct" => ("slowest", low),
                    _ => ("fastest", high),
                };
                let mut labels = labels.to_vec();
                labels.push(("network", which.into()));
                let note = rows.add(
                    &labels,
                    SPEED_GAIN,
                    Some(share),
                    Some(here),
                    Judgement::Shown,
                );
                *note = Some(
                    "at 1.5 times the default clock; the text says 2,050 MHz, but table I ends at 1,950 MHz"
                        .to_owned(),
                );
            }
            "alexnet_1024_faster_pct" => {
                let mut labels = labels.to_vec();
                labels.push(("network", "alexnet-1024, 510-945 MHz".into()));
                let here = growth(|sample| sample.items_per_s);
                *rows.add(&labels, SPEED_GAIN, Some(share), here, Judgement::Shown) = Some("error in the paper's text: it defines performance as time over batch, but shows the inverse".to_owned());
            }
            "alexnet_1024_more_power_pct" => {
                let mut labels = labels.to_vec();
                labels.push(("network", "alexnet-1024, 510-945 MHz".into()));
                let here = growth(|sample| sample.items_per_s * sample.joules_per_item);
                rows.add(&labels, POWER_GAIN, Some(share), here, Judgement::Shown);
            }
            "alexnet_1024_best_mhz" => {
                let mut labels = labels.to_vec();
                labels.push(("network", "alexnet-1024".into()));
                let best = board.and_then(|board| saving(samples, board, large));
                let here = best.map(|(_, clock)| clock);
                rows.add(
                    &labels,
                    BEST_CLOCK,
                    Some(fact.value),
                    here,
                    Judgement::Shown,
                );
            }
            "googlenet_parameters_millions" => {
                let labels = [("network", Label::from("googlenet"))];
                let printed = Some(1e6 * fact.value);
                *rows.add(&labels, PARAMETERS, printed, None, Judgement::Shown) = Some(
                    "error in table II: GoogLeNet has about 7 million parameters; `sweetspot network` counts them"
                        .to_owned(),
                );
                // Nothing is simulated for it.
                if let Some(row) = rows.rows.last_mut() {
                    row.origin = None;
                }
            }
            _ => {}
        }
    }
    rows.rows
}

/// The smallest and the largest gain in speed of any network at 1.5 times the default clock.
fn speed_gain_range(
    samples: &[Sample],
    board: Option<&Board>,
    mode: Mode,
    speed: fn(&Sample) -> f64,
) -> (f64, f64) {
    let gain = |network: &str| {
        let is_included = |sample: &Sample| sample.mode == mode && sample.network == network;
        let groups = by_clock(
            samples,
            board?,
            Some(RAISED_CLOCK_MHZ),
            is_included,
            speed,
            Direction::Most,
        )?;
        let raised = groups
            .groups
            .iter()
            .find(|group| group.by == RAISED_CLOCK_MHZ)?;
        Some(raised.relative.get() - 1.0)
    };
    range_of(NETWORKS.iter().filter_map(|(network, _)| gain(network)))
}

/// The paper's conclusions, and whether the reproduction confirms them.
pub fn conclusions(samples: &[Sample], averages: &[ReproducedRow]) -> Vec<Conclusion> {
    let mut all = Vec::new();
    for (mode, words) in [(Mode::Train, "training"), (Mode::Infer, "inference")] {
        let of_mode = |row: &&ReproducedRow| {
            let labels = row.row.iter().map(|(_, label)| label.to_string());
            labels.into_iter().any(|label| label == words)
        };
        let here = range_of(
            averages
                .iter()
                .filter(of_mode)
                .filter_map(|row| row.reproduced),
        );
        let stated = match mode {
            Mode::Train => (0.087, 0.231),
            Mode::Infer => (0.196, 0.264),
        };
        let percent = |(low, high)| format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high);
        all.push(Conclusion::new(
            &format!(
                "the best core clock saves {} of the energy of {words}, on average over networks (both ends within {:.0} point)",
                percent(stated),
                100.0 * AVERAGE_TOLERANCE
            ),
            is_range_near(here, stated, AVERAGE_TOLERANCE),
            percent(here),
        ));
    }
    let mut inner = Vec::new();
    for board in BOARDS.iter().filter(|board| board.gpu != TURING) {
        let best = saving(samples, board, |sample| sample.mode == Mode::Train);
        inner.extend(best.map(|(_, clock)| (board, clock)));
    }
    let is_inside = |(board, clock): &(&Board, f64)| {
        *clock > board.core[0] && *clock < board.core[board.core.len() - 1]
    };
    all.push(Conclusion::new(
        "on P100 and V100 energy is least at a medium core clock",
        inner.len() == 2 && inner.iter().all(is_inside),
        inner
            .iter()
            .map(|(board, clock)| format!("{clock} MHz on {}", board.gpu))
            .collect::<Vec<_>>()
            .join(", "),
    ));
    all.extend(large_batch_conclusion(samples));
    let turing = BOARDS.iter().find(|board| board.gpu == TURING);
    for (mode, words) in [(Mode::Train, "training"), (Mode::Infer, "inference")] {
        let best = turing.and_then(|board| saving(samples, board, |sample| sample.mode == mode));
        let clock = best.map_or(0.0, |(_, clock)| clock);
        all.push(Conclusion::new(
            &format!("the 2080 Ti is most efficient in {words} at a high core clock"),
            turing.is_some_and(|board| clock > board.default),
            format!("at {clock} MHz"),
        ));
    }
    all.extend(appendix_conclusions(samples));
    all
}

/// The conclusion about AlexNet with batches of 1024 on the V100, whose energy is least at a medium clock.
fn large_batch_conclusion(samples: &[Sample]) -> Option<Conclusion> {
    let board = BOARDS.iter().find(|board| board.gpu == VOLTA)?;
    let is_included = |sample: &Sample| {
        let gemm = sample.algorithm.as_deref() == Some(ALGORITHMS[0]);
        sample.network == "alexnet" && sample.batch == 1024 && gemm
    };
    let growth = |value: fn(&Sample) -> f64| {
        let groups = by_clock(samples, board, None, is_included, value, Direction::Most)?;
        let at = |clock: f64| groups.groups.iter().find(|group| group.by == clock);
        Some(at(945.0)?.mean / at(510.0)?.mean - 1.0)
    };
    let speed = growth(|sample| sample.items_per_s)?;
    let power = growth(|sample| sample.items_per_s * sample.joules_per_item)?;
    let (_, best) = saving(samples, board, is_included)?;
    Some(Conclusion::new(
        "AlexNet in batches of 1024 on the V100: up to 945 MHz speed grows faster than power, and energy is least at 945 MHz",
        speed > power && best == 945.0,
        format!(
            "{:+.0} % speed and {:+.0} % power from 510 to 945 MHz; energy is least at {best} MHz",
            100.0 * speed,
            100.0 * power
        ),
    ))
}
