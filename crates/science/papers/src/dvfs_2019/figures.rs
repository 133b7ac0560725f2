//! The figures of dvfs_2019: performance, power and energy by core or memory clock.

use sweetspot_sim::Mode;

use super::boards::{ALGORITHMS, BOARDS, Board, NETWORKS, TURING};
use super::reproduction::Sample;
use super::tables::SavingCell;
use crate::figure::{Panel, PaperCurve, PaperFigure, gpu_name};

/// Which clock is on the horizontal axis of a figure.
#[derive(Clone, Copy, PartialEq)]
enum Clock {
    Core,
    Memory,
}

impl Clock {
    const fn of(self, sample: &Sample) -> f64 {
        match self {
            Self::Core => sample.core,
            Self::Memory => sample.memory,
        }
    }

    const fn axis(self) -> &'static str {
        match self {
            Self::Core => "Core clock [MHz]",
            Self::Memory => "Memory clock [MHz]",
        }
    }

    /// The clocks at which the paper measured a board.
    const fn values(self, board: &Board) -> &'static [f64] {
        match self {
            Self::Core => board.core,
            Self::Memory => board.memory,
        }
    }
}

/// A quantity of the figures, relative to the default core clock or the lowest memory clock.
#[derive(Clone, Copy)]
struct FigureQuantity {
    name: &'static str,
    value: fn(&Sample) -> f64,
}

const PERFORMANCE: FigureQuantity = FigureQuantity {
    name: "Performance",
    value: |sample| sample.items_per_s,
};
const POWER: FigureQuantity = FigureQuantity {
    name: "Power",
    value: |sample| sample.items_per_s * sample.joules_per_item,
};
const ENERGY: FigureQuantity = FigureQuantity {
    name: "Energy",
    value: |sample| sample.joules_per_item,
};

/// The samples of a figure's line.
struct LineOf<'a> {
    name: &'a str,
    mode: Mode,
    network: Option<&'a str>,
    algorithm: Option<&'a str>,
}

impl LineOf<'_> {
    fn has(&self, sample: &Sample) -> bool {
        sample.mode == self.mode
            && self.network.is_none_or(|network| sample.network == network)
            && self
                .algorithm
                .is_none_or(|name| sample.algorithm.as_deref() == Some(name))
    }

    /// The geometric means of a quantity at each clock, relative to the board's default core clock or to its lowest memory
    /// clock. Every combination of the other settings counts once.
    fn points(
        &self,
        samples: &[Sample],
        board: &Board,
        clock: Clock,
        quantity: FigureQuantity,
    ) -> Vec<(f64, f64)> {
        let mean = |at: f64| {
            let own = samples.iter().filter(|sample| {
                sample.gpu == board.gpu
                    && clock.of(sample) == at
                    && self.has(sample)
                    && board.core.contains(&sample.core)
            });
            let logs: Vec<f64> = own.map(|sample| (quantity.value)(sample).ln()).collect();
            (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
        };
        let values = clock.values(board);
        let reference = match clock {
            Clock::Core => Some(board.default),
            Clock::Memory => values.first().copied(),
        };
        let Some(reference) = reference.and_then(mean) else {
            return Vec::new();
        };
        let points = values
            .iter()
            .filter_map(|at| Some((*at, mean(*at)? / reference)));
        points.collect()
    }
}

/// A panel with a line for each of several kinds of samples.
fn panel(
    samples: &[Sample],
    board: &Board,
    clock: Clock,
    quantity: FigureQuantity,
    lines: &[LineOf<'_>],
    level: impl Fn(&LineOf<'_>) -> Option<f64>,
) -> Panel {
    let reference = match clock {
        Clock::Core => "default",
        Clock::Memory => "lowest",
    };
    let lines = lines.iter().map(|line| PaperCurve {
        published_level: level(line),
        ..PaperCurve::new(line.name, line.points(samples, board, clock, quantity))
    });
    Panel {
        title: format!("{}: {}", gpu_name(board.gpu), quantity.name.to_lowercase()),
        x: clock.axis().to_owned(),
        y: format!("{} [{reference} = 1]", quantity.name),
        curves: lines.collect(),
        ..Panel::default()
    }
}

/// The lowest relative energy that table III or IV prints for a line on a board.
fn printed_level(cells: &[SavingCell], line: &LineOf<'_>, board: &Board) -> Option<f64> {
    let of = line.network.or(line.algorithm)?;
    let mut cells = cells.iter();
    let cell = cells.find(|cell| cell.gpu == board.gpu && cell.mode == line.mode && cell.of == of);
    cell.map(|cell| 1.0 - cell.saving.get())
}

/// A line for each network, in training or inference, with one convolution algorithm or all.
fn by_network(mode: Mode, algorithm: Option<&'static str>) -> Vec<LineOf<'static>> {
    let lines = NETWORKS.iter().map(|(network, _)| LineOf {
        name: network,
        mode,
        network: Some(network),
        algorithm,
    });
    lines.collect()
}

/// Figures 1 to 3, and the 12 of the appendix.
pub(super) fn figures(
    samples: &[Sample],
    table_3: &[SavingCell],
    table_4: &[SavingCell],
) -> Vec<PaperFigure> {
    let by_algorithm: Vec<LineOf<'_>> = ALGORITHMS
        .into_iter()
        .map(|name| LineOf {
            name,
            mode: Mode::Train,
            network: None,
            algorithm: Some(name),
        })
        .collect();
    let main = [
        (
            "1",
            "training",
            by_network(Mode::Train, None),
            table_3,
            &[PERFORMANCE, ENERGY][..],
            "III",
        ),
        (
            "2",
            "inference",
            by_network(Mode::Infer, None),
            table_3,
            &[PERFORMANCE, POWER, ENERGY],
            "III",
        ),
        (
            "3",
            "training with three convolution algorithms",
            by_algorithm,
            table_4,
            &[PERFORMANCE, POWER, ENERGY],
            "IV",
        ),
    ];
    let mut figures: Vec<PaperFigure> = Vec::new();
    for (number, what, lines, cells, quantities, table) in main {
        let panels = quantities.iter().flat_map(|quantity| {
            let lines = &lines;
            BOARDS.iter().map(move |board| {
                let level = |line: &LineOf<'_>| match quantity.name {
                    "Energy" => printed_level(cells, line, board),
                    _ => None,
                };
                panel(samples, board, Clock::Core, *quantity, lines, level)
            })
        });
        figures.push(PaperFigure {
            number: number.to_owned(),
            title: format!("The core clock and {what}"),
            caption: format!(
                "Geometric means over batch sizes and the other settings. Dashed levels: the lowest energy by table {table}, which does not say at which clock."
            ),
            panels: panels.collect(),
        });
    }
    let Some(turing) = BOARDS.iter().find(|board| board.gpu == TURING) else {
        return figures;
    };
    // The appendix has four figures for each algorithm.
    let settings = BOARDS.iter().map(|board| (board, Clock::Core));
    let settings: Vec<(&Board, Clock)> = settings.chain([(turing, Clock::Memory)]).collect();
    let mut number = 4;
    for algorithm in ["gemm", "winograd", "fft"] {
        for (board, clock) in &settings {
            let lines = by_network(Mode::Train, Some(algorithm));
            let quantities = [PERFORMANCE, POWER, ENERGY];
            let panels = quantities
                .map(|quantity| panel(samples, board, *clock, quantity, &lines, |_| None));
            let clock = clock.axis().trim_end_matches(" [MHz]").to_lowercase();
            figures.push(PaperFigure {
                number: number.to_string(),
                title: format!("Training with {algorithm} on {} by {clock}", gpu_name(board.gpu)),
                caption: "Geometric means over batch sizes and the other clock. The paper prints no numbers of this figure.".to_owned(),
                panels: panels.into(),
            });
            number += 1;
        }
    }
    figures
}
