//! Reproduces tables III and IV: every core and memory clock of three GPUs, four networks, their batches and
//! algorithms.

use sweetspot_decide::{Cell, Direction, Groups, Mean, Objective, group};
use sweetspot_sim::{JobError, Mode, PlacementError};
use sweetspot_study::{Axis, AxisText, Definition, Point};
use sweetspot_virtual_time::SimulationError;

use super::boards::{ALGORITHMS, BOARDS, Board, NETWORKS, RAISED_CLOCK_MHZ, RUNS, TURING, VOLTA};
use super::tables::{SavingCell, TextFact, read_boards, read_savings, read_text_facts};
use super::text_claims::{conclusions, text_rows};
use crate::PapersError;
use crate::Reproduction;
use crate::ValueOrigin;
use crate::row::{Judgement, Label, ReproducedRow, Rows, ValueKind};
use crate::simulated_runs::SweepRunner;

/// The name of the paper on the command line.
pub const PAPER: &str = "dvfs-2019";
/// The citation of the paper.
pub const SOURCE: &str = "Z. Tang, Y. Wang, Q. Wang, X. Chu: The Impact of GPU DVFS on the Energy and Performance of Deep Learning: an Empirical Study. e-Energy 2019";

/// The share of the energy that the best core clock saves.
const SAVING: ValueKind = ValueKind::difference("energy_saving", "energy saved [%]", 100.0, 1);
/// The highest core clock that was set on a board.
const HIGHEST_CLOCK: ValueKind =
    ValueKind::difference("core_clock_mhz", "highest core clock [MHz]", 1.0, 0);
/// The default core clock of a board.
const DEFAULT_CLOCK: ValueKind =
    ValueKind::difference("default_core_clock_mhz", "default clock [MHz]", 1.0, 0);

/// The tolerance of the savings in the cells of tables III and IV: two percentage points.
const CELL_TOLERANCE: Judgement = Judgement::Each(0.02);
/// The tolerance of the averages in the text: one percentage point.
pub const AVERAGE_TOLERANCE: f64 = 0.01;

/// A configuration and the means of its runs in a sweep.
pub(super) struct Sample {
    pub gpu: &'static str,
    pub mode: Mode,
    pub network: &'static str,
    pub algorithm: Option<String>,
    pub batch: u64,
    pub core: f64,
    pub memory: f64,
    pub items_per_s: f64,
    pub joules_per_item: f64,
}

impl Sample {
    /// Reads the results of a sweep's point; `None` if it has no successful run.
    fn from_point(
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

/// Writes values as the text of an axis, separated by commas.
fn axis_text<T: ToString>(values: impl IntoIterator<Item = T>) -> Option<AxisText> {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    Some(AxisText(values.join(",")))
}

/// Sweeps one batch size of one network on one board. Returns `None` if the batch does not fit into memory.
fn sweep(
    runner: &mut SweepRunner,
    board: &Board,
    mode: Mode,
    (network, batch): (&'static str, u64),
) -> Result<Vec<Sample>, PapersError> {
    let raised = (board.gpu == TURING).then_some(RAISED_CLOCK_MHZ);
    let mut definition = Definition {
        mode: Some(match mode {
            Mode::Train => "train".to_owned(),
            Mode::Infer => "infer".to_owned(),
        }),
        batch: Some(batch),
        repeat: Some(RUNS),
        core_clock: axis_text(board.core.iter().copied().chain(raised)),
        memory_clock: axis_text(board.memory),
        ..Definition::simulated(board.gpu, &format!("{network}@dvfs_2019"))
    };
    if mode == Mode::Train {
        let algorithms = axis_text(ALGORITHMS).map(|axis| ("conv_algorithm".to_owned(), axis));
        definition.axis.extend(algorithms);
    }
    let study = match runner.sweep(definition) {
        Err(PapersError::Simulation(SimulationError::Placement(PlacementError {
            problem: JobError::OutOfMemory { .. },
            ..
        }))) => return Ok(Vec::new()),
        study => study?,
    };
    let points = study.points.iter();
    Ok(points
        .filter_map(|point| Sample::from_point(point, board, mode, network, batch))
        .collect())
}

/// Sweeps all boards, networks and batch sizes, in training and inference.
fn samples(runner: &mut SweepRunner) -> Result<Vec<Sample>, PapersError> {
    let mut samples = Vec::new();
    for board in &BOARDS {
        for mode in [Mode::Train, Mode::Infer] {
            for (network, batches) in NETWORKS {
                for batch in batches {
                    samples.extend(sweep(runner, board, mode, (network, *batch))?);
                }
            }
        }
    }
    Ok(samples)
}

/// The geometric means of a value over the included samples, one for each core clock.
pub(super) fn by_clock(
    samples: &[Sample],
    board: &Board,
    extra: Option<f64>,
    is_included: impl Fn(&Sample) -> bool,
    value: impl Fn(&Sample) -> f64,
    direction: Direction,
) -> Option<Groups<f64>> {
    let cells: Vec<_> = samples
        .iter()
        .filter(|sample| sample.gpu == board.gpu && is_included(sample))
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

/// The largest energy saving of any core clock over the default clock, and the clock with that saving.
pub(super) fn saving(
    samples: &[Sample],
    board: &Board,
    is_included: impl Fn(&Sample) -> bool,
) -> Option<(f64, f64)> {
    let joules = |sample: &Sample| sample.joules_per_item;
    let groups = by_clock(samples, board, None, is_included, joules, Direction::Least)?;
    Some((groups.saving.get(), groups.groups[groups.best].by))
}

/// Runs all sweeps of the paper and compares the results with its tables and text.
pub fn reproduce(runner: &mut SweepRunner) -> Result<Reproduction, PapersError> {
    let (by_network, by_algorithm) = read_savings()?;
    let text = read_text_facts()?;
    let samples = samples(runner)?;
    let mut rows = table_1()?;
    let table_3 = savings("III", "network", &by_network, &samples);
    let table_4 = savings("IV", "conv_algorithm", &by_algorithm, &samples);
    let averages = averages(&text, &table_3, &table_4);
    let conclusions = conclusions(&samples, &averages);
    rows.extend(table_3);
    rows.extend(table_4);
    rows.extend(averages);
    rows.extend(text_rows(&text, &samples));
    Ok(Reproduction {
        fit: None,
        paper: PAPER,
        source: SOURCE,
        runs: runner.clone(),
        rows,
        counted_tolerances: Vec::new(),
        conclusions,
        not_reproduced: Vec::new(),
        jobs: Vec::new(),
        figures: super::figures::figures(&samples, &by_network, &by_algorithm),
        figures_not_drawn: Vec::new(),
    })
}

/// The rows of table I: the highest and the default core clock of each board.
fn table_1() -> Result<Vec<ReproducedRow>, PapersError> {
    let mut rows = Rows::new("I").with_origin(ValueOrigin::Input);
    for printed in read_boards()? {
        let Some(board) = BOARDS.iter().find(|board| board.gpu == printed.gpu) else {
            continue;
        };
        let labels: [(&'static str, Label); 1] = [("gpu", printed.gpu.into())];
        let highest = |clocks: &mut dyn Iterator<Item = f64>| clocks.reduce(f64::max);
        let theirs = highest(&mut printed.core.iter().map(|clock| clock.get()));
        let here = highest(&mut board.core.iter().copied());
        *rows.add(&labels, HIGHEST_CLOCK, theirs, here, Judgement::Each(0.0)) = match printed.gpu {
            TURING => Some("error in the paper's text: it names 2,050 MHz and 1.5 times the default (2,025 MHz), but table I ends at 1,950 MHz".to_owned()),
            VOLTA => Some("1,380 MHz is the default of the PCIe V100; the V100 of power-capping-2022 is another board".to_owned()),
            _ => None,
        };
        let (theirs, here) = (Some(printed.default_core.get()), Some(board.default));
        rows.add(&labels, DEFAULT_CLOCK, theirs, here, Judgement::Each(0.0));
    }
    Ok(rows.rows)
}

/// The rows of table III or IV: the energy saved by the best core clock.
fn savings(
    table: &str,
    of: &'static str,
    cells: &[SavingCell],
    samples: &[Sample],
) -> Vec<ReproducedRow> {
    let mut rows = Rows::new(table).with_origin(ValueOrigin::Fitted);
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
        rows.add(
            &labels,
            SAVING,
            Some(cell.saving.get()),
            here,
            CELL_TOLERANCE,
        );
    }
    rows.rows
}

/// The rows for the averages over tables III and IV that the text states.
fn averages(
    text: &[TextFact],
    table_3: &[ReproducedRow],
    table_4: &[ReproducedRow],
) -> Vec<ReproducedRow> {
    let mut rows = Rows::new("sections IV-A and IV-B, averages").with_origin(ValueOrigin::Derived);
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
        *rows.add(
            &labels,
            SAVING,
            Some(printed),
            here,
            Judgement::Each(AVERAGE_TOLERANCE),
        ) = from_cells
            .filter(|from| (from - printed).abs() > 0.0011)
            .map(|from| {
                format!(
                    "error in the paper's text: the cells of its table average {:.1} %",
                    100.0 * from
                )
            });
    }
    rows.rows
}
