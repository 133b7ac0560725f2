//! Tables III and IV: every core and memory clock of three GPUs, four networks, their batches and algorithms.

use sweetspot_decide::{Cell, Direction, Groups, Mean, Objective, group};
use sweetspot_sim::{JobError, Mode};
use sweetspot_study::{Axis, AxisText, Definition, Point};

use super::Reproduction;
use super::boards::{ALGORITHMS, BOARDS, Board, NETWORKS, RAISED, RUNS, TURING, VOLTA};
use super::row::{Conclusion, Judgement, Kind, Label, ReproducedRow, Rows, ends};
use super::study::Runs;
use crate::SessionError;
use crate::published::{SavingCell, TextFact, dvfs_2019, dvfs_2019_boards, dvfs_2019_text};

pub const PAPER: &str = "dvfs-2019";
const SOURCE: &str = "Z. Tang, Y. Wang, Q. Wang, X. Chu: The Impact of GPU DVFS on the Energy and Performance of Deep Learning: an Empirical Study. e-Energy 2019";

const SAVING: Kind = Kind::difference("energy_saving", "energy saved [%]", 100.0, 1);
const FASTER: Kind = Kind::difference("speed_gain", "speed gained [%]", 100.0, 1);
const POWER: Kind = Kind::difference("power_gain", "power added [%]", 100.0, 1);
const CLOCK: Kind = Kind::difference("core_clock_mhz", "best core clock [MHz]", 1.0, 0);
const HIGHEST: Kind = Kind::difference("core_clock_mhz", "highest core clock [MHz]", 1.0, 0);
const DEFAULT: Kind = Kind::difference("default_core_clock_mhz", "default clock [MHz]", 1.0, 0);
const PARAMETERS: Kind = Kind::relative("parameters", "parameters [millions]", 1e-6, 0);

const CELL: Judgement = Judgement::Each(0.02);
const AVERAGE: Judgement = Judgement::Each(0.01);

/// A configuration with its means.
struct Sample {
    gpu: &'static str,
    mode: Mode,
    network: &'static str,
    algorithm: Option<String>,
    batch: u64,
    core: f64,
    memory: f64,
    items_per_s: f64,
    joules_per_item: f64,
}

impl Sample {
    fn of(
        point: &Point,
        board: &Board,
        mode: Mode,
        network: &'static str,
        batch: u64,
    ) -> Option<Self> {
        let outcome = point.outcome()?;
        let value = |objective: Objective| objective.value(&outcome, &outcome).ok();
        let configuration = &point.configuration;
        Some(Self {
            gpu: board.gpu,
            mode,
            network,
            algorithm: configuration.parameters.get("conv_algorithm").cloned(),
            batch,
            core: Axis::CoreClock.number(configuration)?,
            memory: Axis::MemoryClock.number(configuration)?,
            items_per_s: value(Objective::Throughput)?,
            joules_per_item: value(Objective::EnergyPerItem)?,
        })
    }
}

fn list<T: ToString>(values: impl IntoIterator<Item = T>) -> Option<AxisText> {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    Some(AxisText(values.join(",")))
}

/// One batch size of one network on one board; nothing where it does not fit.
fn sweep(
    runs: &mut Runs,
    board: &Board,
    mode: Mode,
    (network, batch): (&'static str, u64),
) -> Result<Vec<Sample>, SessionError> {
    let raised = (board.gpu == TURING).then_some(RAISED);
    let mut definition = Definition {
        mode: Some(match mode {
            Mode::Train => "train".to_owned(),
            Mode::Infer => "infer".to_owned(),
        }),
        batch: Some(batch),
        repeat: Some(RUNS),
        core_clock: list(board.core.iter().copied().chain(raised)),
        memory_clock: list(board.memory),
        ..Definition::simulated(board.gpu, &format!("{network}@dvfs_2019"))
    };
    if mode == Mode::Train {
        let algorithms = list(ALGORITHMS).map(|axis| ("conv_algorithm".to_owned(), axis));
        definition.axis.extend(algorithms);
    }
    let study = match runs.sweep(definition) {
        Err(SessionError::Job {
            problem: JobError::OutOfMemory { .. },
            ..
        }) => return Ok(Vec::new()),
        study => study?,
    };
    let points = study.points.iter();
    Ok(points
        .filter_map(|point| Sample::of(point, board, mode, network, batch))
        .collect())
}

fn samples(runs: &mut Runs) -> Result<Vec<Sample>, SessionError> {
    let mut samples = Vec::new();
    for board in &BOARDS {
        for mode in [Mode::Train, Mode::Infer] {
            for (network, batches) in NETWORKS {
                for batch in batches {
                    samples.extend(sweep(runs, board, mode, (network, *batch))?);
                }
            }
        }
    }
    Ok(samples)
}

/// Geometric means by core clock over everything else that is meant.
fn by_clock(
    samples: &[Sample],
    board: &Board,
    extra: Option<f64>,
    meant: impl Fn(&Sample) -> bool,
    value: impl Fn(&Sample) -> f64,
    direction: Direction,
) -> Option<Groups<f64>> {
    let cells: Vec<_> = samples
        .iter()
        .filter(|sample| sample.gpu == board.gpu && meant(sample))
        .filter(|sample| board.core.contains(&sample.core) || extra == Some(sample.core))
        .map(|sample| Cell {
            by: sample.core,
            over: (
                sample.network,
                sample.algorithm.clone(),
                sample.batch,
                sample.memory.to_bits(),
            ),
            value: Some(value(sample)),
        })
        .collect();
    group(&cells, board.default, Mean::Geometric, direction).ok()
}

fn saving(
    samples: &[Sample],
    board: &Board,
    meant: impl Fn(&Sample) -> bool,
) -> Option<(f64, f64)> {
    let joules = |sample: &Sample| sample.joules_per_item;
    let groups = by_clock(samples, board, None, meant, joules, Direction::Least)?;
    Some((groups.saving.get(), groups.groups[groups.best].by))
}

pub fn again(runs: &mut Runs) -> Result<Reproduction, SessionError> {
    let (by_network, by_algorithm) = dvfs_2019()?;
    let text = dvfs_2019_text()?;
    let samples = samples(runs)?;
    let mut rows = table_1()?;
    let table_3 = savings("III", "network", &by_network, &samples);
    let table_4 = savings("IV", "conv_algorithm", &by_algorithm, &samples);
    let averages = averages(&text, &table_3, &table_4);
    let conclusions = conclusions(&samples, &averages);
    rows.extend(table_3);
    rows.extend(table_4);
    rows.extend(averages);
    rows.extend(in_words(&text, &samples));
    Ok(Reproduction {
        paper: PAPER,
        source: SOURCE,
        runs: runs.clone(),
        rows,
        counted: Vec::new(),
        conclusions,
        waits: Vec::new(),
        jobs: Vec::new(),
    })
}

/// The clocks that were set.
fn table_1() -> Result<Vec<ReproducedRow>, SessionError> {
    let mut rows = Rows::new("I");
    for printed in dvfs_2019_boards()? {
        let Some(board) = BOARDS.iter().find(|board| board.gpu == printed.gpu) else {
            continue;
        };
        let labels: [(&'static str, Label); 1] = [("gpu", printed.gpu.into())];
        let highest = |clocks: &mut dyn Iterator<Item = f64>| clocks.reduce(f64::max);
        let theirs = highest(&mut printed.core.iter().map(|clock| clock.get()));
        let here = highest(&mut board.core.iter().copied());
        *rows.add(&labels, HIGHEST, theirs, here, Judgement::Each(0.0)) = match printed.gpu {
            TURING => Some("fault of the text: it speaks of 2,050 MHz, and of 1.5 times the default (2,025 MHz); this table ends at 1,950 MHz".to_owned()),
            VOLTA => Some("1,380 MHz is the PCIe board's, not that of power-capping-2022's V100".to_owned()),
            _ => None,
        };
        let (theirs, here) = (Some(printed.default_core.get()), Some(board.default));
        rows.add(&labels, DEFAULT, theirs, here, Judgement::Each(0.0));
    }
    Ok(rows.rows)
}

/// Each cell of a table of savings.
fn savings(
    table: &str,
    of: &'static str,
    cells: &[SavingCell],
    samples: &[Sample],
) -> Vec<ReproducedRow> {
    let mut rows = Rows::new(table);
    for cell in cells {
        let Some(board) = BOARDS.iter().find(|board| board.gpu == cell.gpu) else {
            continue;
        };
        let here = saving(samples, board, |sample| {
            let own = sample.algorithm.as_deref().unwrap_or_default();
            sample.mode == cell.mode
                && if of == "network" { sample.network } else { own } == cell.of
        });
        let labels: [(&'static str, Label); 3] = [
            (of, cell.of.as_str().into()),
            ("mode", cell.mode.to_string().into()),
            ("gpu", cell.gpu.into()),
        ];
        let here = here.map(|(saving, _)| saving);
        rows.add(&labels, SAVING, Some(cell.saving.get()), here, CELL);
    }
    rows.rows
}

/// The averages that the text gives of both tables.
fn averages(
    text: &[TextFact],
    table_3: &[ReproducedRow],
    table_4: &[ReproducedRow],
) -> Vec<ReproducedRow> {
    let mut rows = Rows::new("sections IV-A and IV-B, averages");
    for fact in text.iter().filter(|fact| fact.what == "average_saving_pct") {
        let has = |row: &&ReproducedRow, what: &str| {
            row.row.iter().any(|(_, label)| *label == Label::from(what))
        };
        let cells: Vec<&ReproducedRow> = match fact.gpu {
            Some(gpu) => table_3
                .iter()
                .filter(|row| has(row, gpu) && has(row, &fact.of))
                .collect(),
            None => table_4.iter().filter(|row| has(row, &fact.of)).collect(),
        };
        let mean = |value: fn(&ReproducedRow) -> Option<f64>| {
            let values: Option<Vec<f64>> = cells.iter().map(|row| value(row)).collect();
            let values = values.filter(|values| !values.is_empty())?;
            Some(values.iter().sum::<f64>() / values.len() as f64)
        };
        let labels: [(&'static str, Label); 2] = [
            ("of", fact.of.as_str().into()),
            ("gpu", fact.gpu.unwrap_or("all three").into()),
        ];
        let printed = fact.value / 100.0;
        let here = mean(|row| row.reproduced);
        let from_cells = mean(|row| row.published);
        *rows.add(&labels, SAVING, Some(printed), here, AVERAGE) = from_cells
            .filter(|from| (from - printed).abs() > 0.0011)
            .map(|from| format!("fault of the text: its cells average {:.1} %", 100.0 * from));
    }
    rows.rows
}

/// What the text says of speed and power: shown here, and judged without noise by `simulate --errors`.
fn in_words(text: &[TextFact], samples: &[Sample]) -> Vec<ReproducedRow> {
    let mut rows = Rows::new("the text");
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
                let (low, high) = faster(samples, board, mode, speed);
                let (which, here) = match fact.what.as_str() {
                    "least_faster_pct" => ("slowest", low),
                    _ => ("fastest", high),
                };
                let mut labels = labels.to_vec();
                labels.push(("network", which.into()));
                let note = rows.add(&labels, FASTER, Some(share), Some(here), Judgement::Shown);
                *note = Some(
                    "at 1.5 times the default clock; the text says 2,050 MHz, table I ends at 1,950 MHz"
                        .to_owned(),
                );
            }
            "alexnet_1024_faster_pct" => {
                let mut labels = labels.to_vec();
                labels.push(("network", "alexnet, batch 1024, 510 to 945 MHz".into()));
                let here = growth(|sample| sample.items_per_s);
                *rows.add(&labels, FASTER, Some(share), here, Judgement::Shown) = Some("fault of the text: it defines performance as time over batch, the inverse of what it shows".to_owned());
            }
            "alexnet_1024_more_power_pct" => {
                let mut labels = labels.to_vec();
                labels.push(("network", "alexnet, batch 1024, 510 to 945 MHz".into()));
                let here = growth(|sample| sample.items_per_s * sample.joules_per_item);
                rows.add(&labels, POWER, Some(share), here, Judgement::Shown);
            }
            "alexnet_1024_best_mhz" => {
                let mut labels = labels.to_vec();
                labels.push(("network", "alexnet, batch 1024".into()));
                let best = board.and_then(|board| saving(samples, board, large));
                let here = best.map(|(_, clock)| clock);
                rows.add(&labels, CLOCK, Some(fact.value), here, Judgement::Shown);
            }
            "googlenet_parameters_millions" => {
                let labels = [("network", Label::from("googlenet"))];
                let printed = Some(1e6 * fact.value);
                *rows.add(&labels, PARAMETERS, printed, None, Judgement::Shown) = Some(
                    "fault of table II: GoogLeNet has about 7 million; `sweetspot network` counts them"
                        .to_owned(),
                );
            }
            _ => {}
        }
    }
    rows.rows
}

/// How much faster the slowest and the fastest network become at 1.5 times the default clock.
fn faster(
    samples: &[Sample],
    board: Option<&Board>,
    mode: Mode,
    speed: fn(&Sample) -> f64,
) -> (f64, f64) {
    let gain = |network: &str| {
        let meant = |sample: &Sample| sample.mode == mode && sample.network == network;
        let groups = by_clock(samples, board?, Some(RAISED), meant, speed, Direction::Most)?;
        let raised = groups.groups.iter().find(|group| group.by == RAISED)?;
        Some(raised.relative.get() - 1.0)
    };
    ends(NETWORKS.iter().filter_map(|(network, _)| gain(network)))
}

fn conclusions(samples: &[Sample], averages: &[ReproducedRow]) -> Vec<Conclusion> {
    let mut all = Vec::new();
    for (mode, words) in [(Mode::Train, "training"), (Mode::Infer, "inference")] {
        let of_mode = |row: &&ReproducedRow| {
            let labels = row.row.iter().map(|(_, label)| label.to_string());
            labels.into_iter().any(|label| label == words)
        };
        let (low, high) = ends(
            averages
                .iter()
                .filter(of_mode)
                .filter_map(|row| row.reproduced),
        );
        all.push(Conclusion::new(
            &match mode {
                Mode::Train => "the best core clock saves 8.7 to 23.1 % of the energy of training, on average over networks",
                Mode::Infer => "and 19.6 to 26.4 % of that of inference",
            }
            .to_owned(),
            low > 0.05,
            format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high),
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
        "on P100 and V100 energy has its valley in the middle of the core clocks",
        inner.len() == 2 && inner.iter().all(is_inside),
        inner
            .iter()
            .map(|(board, clock)| format!("{clock} MHz on {}", board.gpu))
            .collect::<Vec<_>>()
            .join(", "),
    ));
    all.extend(large_batch(samples));
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
    all
}

/// AlexNet with batches of 1024 on the V100: why there is a valley.
fn large_batch(samples: &[Sample]) -> Option<Conclusion> {
    let board = BOARDS.iter().find(|board| board.gpu == VOLTA)?;
    let meant = |sample: &Sample| {
        let gemm = sample.algorithm.as_deref() == Some(ALGORITHMS[0]);
        sample.network == "alexnet" && sample.batch == 1024 && gemm
    };
    let growth = |value: fn(&Sample) -> f64| {
        let groups = by_clock(samples, board, None, meant, value, Direction::Most)?;
        let at = |clock: f64| groups.groups.iter().find(|group| group.by == clock);
        Some(at(945.0)?.mean / at(510.0)?.mean - 1.0)
    };
    let speed = growth(|sample| sample.items_per_s)?;
    let power = growth(|sample| sample.items_per_s * sample.joules_per_item)?;
    let (_, best) = saving(samples, board, meant)?;
    Some(Conclusion::new(
        "AlexNet in batches of 1024 on the V100: up to 945 MHz speed grows faster than power, and energy is least there",
        speed > power && best == 945.0,
        format!(
            "{:+.0} % speed and {:+.0} % power from 510 to 945 MHz; least at {best} MHz",
            100.0 * speed,
            100.0 * power
        ),
    ))
}
