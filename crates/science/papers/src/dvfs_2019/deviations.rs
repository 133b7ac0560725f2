//! Deviations from tables III and IV (energy saved by the best core clock) and from the text about speed and power.

use sweetspot_device::Settings;
use sweetspot_quantity::Megahertz;
use sweetspot_sim::{Mode, Variant};
use sweetspot_stats::geometric_mean;
use sweetspot_study::EnergyOf;

use super::boards::{ALGORITHMS, BOARDS, Board, NETWORKS, RAISED_CLOCK_MHZ, TURING, VOLTA};
use super::tables::{SavingCell, read_savings, read_text_facts};
use crate::PapersError;
use crate::Profiles;
use crate::ValueOrigin;
use crate::deviations::{Column, SimulatorDeviations, Table, Value};

/// The name of the study, which selects the workload profiles.
pub const STUDY: &str = "dvfs_2019";

/// One simulated configuration of the study and its results.
struct Sample {
    network: &'static str,
    algorithm: Option<&'static str>,
    batch: u64,
    core: f64,
    items_per_s: f64,
    watts: f64,
}

/// Simulates every configuration that fits into the board's memory, at each of the board's core clocks and at the clock
/// `extra`, if given.
fn samples(
    profiles: &Profiles,
    board: &Board,
    mode: Mode,
    extra: Option<f64>,
) -> Result<Vec<Sample>, PapersError> {
    let algorithms: Vec<Option<&'static str>> = match mode {
        Mode::Train => ALGORITHMS.into_iter().map(Some).collect(),
        Mode::Infer => vec![None],
    };
    let mut samples = Vec::new();
    for (network, batches) in NETWORKS {
        for algorithm in &algorithms {
            let variant = Variant {
                mode: Some(mode),
                conv_algorithm: algorithm.map(str::to_owned),
                dataset: None,
            };
            let name = format!("{network}@{STUDY}");
            let case = profiles.case(&[board.gpu], None, &name, &variant, EnergyOf::JobGpus)?;
            for batch in batches.iter().filter(|batch| case.fits(**batch)) {
                for core in board.core.iter().copied().chain(extra) {
                    for memory in board.memory {
                        let settings = Settings {
                            core_clock: Some(Megahertz::new(core)),
                            memory_clock: Some(Megahertz::new(*memory)),
                            ..Settings::default()
                        };
                        let run = case.run(settings, *batch, 1)?;
                        samples.push(Sample {
                            network,
                            algorithm: *algorithm,
                            batch: *batch,
                            core,
                            items_per_s: run.items / run.time.get(),
                            watts: (run.energy / run.time).get(),
                        });
                    }
                }
            }
        }
    }
    Ok(samples)
}

/// The geometric mean of a value over the included samples with this core clock.
fn mean_at(
    samples: &[Sample],
    core: f64,
    is_included: impl Fn(&Sample) -> bool,
    value: impl Fn(&Sample) -> f64,
) -> f64 {
    let values: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.core == core && is_included(sample))
        .map(value)
        .collect();
    geometric_mean(&values).unwrap_or(f64::NAN)
}

/// The largest saving `1 - g(f) / g(default)` over the clocks `f`, where `g` is the geometric mean of joules per item,
/// and the clock with that saving.
fn saving(samples: &[Sample], board: &Board, is_included: impl Fn(&Sample) -> bool) -> (f64, f64) {
    let joules = |core| mean_at(samples, core, &is_included, |s| s.watts / s.items_per_s);
    let default = joules(board.default);
    let each = board
        .core
        .iter()
        .map(|core| (1.0 - joules(*core) / default, *core));
    each.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
}

/// Compares the simulated energy savings, speed and power with the paper.
pub fn compare(profiles: &Profiles) -> Result<SimulatorDeviations, PapersError> {
    let (by_network, by_algorithm) = read_savings()?;
    let mut networks = Vec::new();
    let mut algorithms = Vec::new();
    let mut facts = Vec::new();
    for board in &BOARDS {
        let is_turing = board.gpu == TURING;
        let extra = is_turing.then_some(RAISED_CLOCK_MHZ);
        for mode in [Mode::Train, Mode::Infer] {
            let samples = samples(profiles, board, mode, extra)?;
            let of_board = |cell: &&SavingCell| cell.gpu == board.gpu && cell.mode == mode;
            for cell in by_network.iter().filter(of_board) {
                let (here, _) = saving(&samples, board, |s| s.network == cell.of);
                let label = format!("{} {} {mode}", board.gpu, cell.of);
                networks.push((label, vec![percentage(cell.saving.get(), here)]));
            }
            for cell in by_algorithm.iter().filter(of_board) {
                let (here, _) = saving(&samples, board, |s| s.algorithm == Some(&cell.of));
                let label = format!("{} {}", board.gpu, cell.of);
                algorithms.push((label, vec![percentage(cell.saving.get(), here)]));
            }
            if is_turing {
                facts.extend(speed_gain_rows(&samples, board, mode));
            }
            if board.gpu == VOLTA && mode == Mode::Train {
                facts.extend(alexnet_1024_rows(&samples, board));
            }
        }
    }
    let values = networks.len() + algorithms.len() + facts.len();
    let averages = averages(&networks, &algorithms)?;
    Ok(SimulatorDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.parameters(STUDY).len(),
        values,
        by_hand: 0,
        held_out: Vec::new(),
        not_held_out: 0,
        changed_profiles: Vec::new(),
        tables: vec![
            Table {
                title: "table III: energy saved by the best core clock, over all algorithms, batches and memory clocks"
                    .to_owned(),
                columns: vec![Column::difference("%", 1)],
                rows: networks,
            },
            Table {
                title: "table IV: energy saved in training by the best core clock, by convolution algorithm"
                    .to_owned(),
                columns: vec![Column::difference("%", 1)],
                rows: algorithms,
            },
            Table {
                title: "sections IV-A and IV-B: averages of tables III and IV".to_owned(),
                columns: vec![Column::difference("%", 1)],
                rows: averages,
            },
            Table {
                title: "the text".to_owned(),
                columns: vec![Column::difference("%, MHz", 1)],
                rows: facts,
            },
        ],
    })
}

/// A row of a table: its label and its values.
type LabelledValues = (String, Vec<Value>);

/// The rows for the averages over cells of tables III and IV that the text states, with a tolerance of one percentage
/// point.
fn averages(
    networks: &[LabelledValues],
    algorithms: &[LabelledValues],
) -> Result<Vec<LabelledValues>, PapersError> {
    let mut rows = Vec::new();
    for fact in read_text_facts()? {
        if fact.what != "average_saving_pct" {
            continue;
        }
        let gpu = fact.gpu.unwrap_or_default();
        let cells = match fact.gpu {
            Some(_) => networks,
            None => algorithms,
        };
        let is_averaged = |label: &str| label.starts_with(gpu) && label.ends_with(&fact.of);
        let averaged = cells.iter().filter(|(label, _)| is_averaged(label));
        let here: Vec<f64> = averaged
            .flat_map(|(_, values)| values.iter().map(|value| value.here))
            .collect();
        let value = Value {
            published: fact.value,
            here: here.iter().sum::<f64>() / here.len() as f64,
            tolerance: Some(1.0),
            origin: Some(ValueOrigin::Derived),
        };
        let label = format!("{gpu} {}, average", fact.of);
        rows.push((label.trim().to_owned(), vec![value]));
    }
    Ok(rows)
}

/// A percentage with a tolerance of two percentage points.
fn percentage(published: f64, here: f64) -> Value {
    Value {
        published: 100.0 * published,
        here: 100.0 * here,
        tolerance: Some(2.0),
        origin: Some(ValueOrigin::Fitted),
    }
}

/// The rows for the smallest and the largest gain in speed of any network at 1.5 times the default clock.
fn speed_gain_rows(samples: &[Sample], board: &Board, mode: Mode) -> Vec<(String, Vec<Value>)> {
    let published = match mode {
        Mode::Train => [0.174, 0.382],
        Mode::Infer => [0.225, 0.330],
    };
    let mut gains: Vec<f64> = NETWORKS
        .iter()
        .map(|(network, _)| {
            let at = |core| mean_at(samples, core, |s| s.network == *network, |s| s.items_per_s);
            at(RAISED_CLOCK_MHZ) / at(board.default) - 1.0
        })
        .collect();
    gains.sort_by(f64::total_cmp);
    let ends = [("least", gains[0]), ("most", gains[gains.len() - 1])];
    ends.into_iter()
        .zip(published)
        .map(|((which, here), published)| {
            let label = format!("{} {mode}: {which} speed gained at 1.5 x clock", board.gpu);
            (label, vec![percentage(published, here)])
        })
        .collect()
}

/// The rows about AlexNet with batches of 1024: the best clock of 945 MHz, and the growth of speed and power from 510
/// MHz.
fn alexnet_1024_rows(samples: &[Sample], board: &Board) -> Vec<(String, Vec<Value>)> {
    let is_included = |s: &Sample| {
        s.network == "alexnet" && s.batch == 1024 && s.algorithm == Some(ALGORITHMS[0])
    };
    let growth = |value: fn(&Sample) -> f64| {
        mean_at(samples, 945.0, is_included, value) / mean_at(samples, 510.0, is_included, value)
            - 1.0
    };
    let (_, best) = saving(samples, board, is_included);
    let of = |what: &str, value| {
        (
            format!("{} alexnet batch 1024: {what}", board.gpu),
            vec![value],
        )
    };
    vec![
        of(
            "speed from 510 to 945 MHz",
            percentage(0.83, growth(|s| s.items_per_s)),
        ),
        of(
            "power from 510 to 945 MHz",
            percentage(0.66, growth(|s| s.watts)),
        ),
        of(
            "best clock",
            Value {
                published: 945.0,
                here: best,
                tolerance: Some(0.0),
                origin: Some(ValueOrigin::Fitted),
            },
        ),
    ]
}
