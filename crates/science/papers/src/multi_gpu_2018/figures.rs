//! The figures of multi_gpu_2018 with results: time and energy of a batch on two generations of GPUs.

use super::jobs::{BATCHES, GPU_COUNTS, JobMeasurement, MAXWELL, NETWORKS, PASCAL, find};
use super::tables::StepCell;
use crate::figure::{FigureNotDrawn, Panel, PaperCurve, PaperFigure, gpu_name};

/// The figures that are not drawn.
pub(super) const NOT_DRAWN: [FigureNotDrawn; 4] = [
    FigureNotDrawn {
        number: "1",
        reason: "it shows the layers of the networks",
    },
    FigureNotDrawn {
        number: "2",
        reason: "it is a photograph of the measuring hardware",
    },
    FigureNotDrawn {
        number: "3",
        reason: "it is a flow diagram of a measurement",
    },
    FigureNotDrawn {
        number: "4",
        reason: "it shows images of the data sets",
    },
];

/// A quantity of a batch: the name of its axis, the factor from the SI unit, and its simulated and printed values.
type Quantity = (
    &'static str,
    f64,
    fn(&JobMeasurement) -> f64,
    fn(&StepCell) -> f64,
);

/// The printed value of both steps of a batch together.
fn printed(
    cells: &[StepCell],
    (gpu, network, gpus, batch): (&str, &str, u64, u64),
    value: fn(&StepCell) -> f64,
) -> Option<f64> {
    let is_job = |cell: &&StepCell| {
        cell.gpu == gpu && cell.network == network && cell.gpus == gpus && cell.batch == batch
    };
    let steps: Vec<f64> = cells.iter().filter(is_job).map(value).collect();
    (steps.len() == 2).then(|| steps.iter().sum())
}

/// Figures 5 to 8, one for each network.
pub(super) fn figures(measured: &[JobMeasurement], cells: &[StepCell]) -> Vec<PaperFigure> {
    let quantities: [Quantity; 2] = [
        ("Time of a batch [ms]", 1e3, JobMeasurement::time, |cell| {
            cell.time.get()
        }),
        (
            "Energy of a batch, one GPU [J]",
            1.0,
            JobMeasurement::energy,
            |cell| cell.energy.get(),
        ),
    ];
    let mut figures = Vec::new();
    for (network, number) in NETWORKS.into_iter().zip(["5", "6", "7", "8"]) {
        let mut panels = Vec::new();
        for (y, scale, here, there) in quantities {
            for gpu in [PASCAL, MAXWELL] {
                let lines = GPU_COUNTS.map(|gpus| {
                    let name = if gpus == 1 {
                        "1 GPU".to_owned()
                    } else {
                        format!("{gpus} GPUs")
                    };
                    let reproduced = BATCHES.into_iter().filter_map(|batch| {
                        let job = find(measured, gpu, network, gpus, batch)?;
                        Some((batch as f64, scale * here(job)))
                    });
                    let published = BATCHES.into_iter().filter_map(|batch| {
                        let value = printed(cells, (gpu, network, gpus, batch), there)?;
                        Some((batch as f64, scale * value))
                    });
                    PaperCurve::new(name, reproduced).with_published(published)
                });
                panels.push(Panel {
                    title: gpu_name(gpu).to_owned(),
                    x: "Batch size".to_owned(),
                    y: y.to_owned(),
                    is_doubling: true,
                    from_zero: true,
                    curves: lines.into(),
                    ..Panel::default()
                });
            }
        }
        figures.push(PaperFigure {
            number: number.to_owned(),
            title: format!("{network} on Pascal and Maxwell: time and energy of a batch"),
            caption: "Forward and backward step together; 4 GPUs are 2 of each generation. Published points: the sums of both steps in tables 4, 5, 7 and 8.".to_owned(),
            panels,
        });
    }
    figures
}
