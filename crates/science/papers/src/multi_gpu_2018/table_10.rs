//! Reproduces table 10 of multi_gpu_2018: ResNet on Pascal compared with Maxwell.

use super::jobs::{JobMeasurement, MAXWELL, PASCAL, Step, find};
use super::tables::{Advantage, StepCell, read_advantages};
use crate::PapersError;
use crate::origin::ValueOrigin;
use crate::row::{Judgement, Label, ReproducedRow, Rows, ValueKind};

/// How much less time a Pascal takes than a Maxwell.
const LESS_TIME: ValueKind = ValueKind::difference("less_time", "less time [%]", 100.0, 1);
/// How much less energy a Pascal takes than a Maxwell.
const LESS_ENERGY: ValueKind = ValueKind::difference("less_energy", "less energy [%]", 100.0, 1);

/// The rows of table 10. A row has a tolerance if the cells of both GPUs are consistent.
pub fn rows(
    measured: &[JobMeasurement],
    cells: &[StepCell],
    tolerance: f64,
) -> Result<Vec<ReproducedRow>, PapersError> {
    let mut rows = Rows::new("10").with_origin(ValueOrigin::Derived);
    for row in read_advantages()? {
        let labels: [(&'static str, Label); 3] = [
            ("step", row.step.as_str().into()),
            ("gpus", row.gpus.into()),
            ("batch", row.batch_size.into()),
        ];
        let step = |gpu: &str| -> Option<Step> {
            let one = find(measured, gpu, "resnet_gait", row.gpus, row.batch_size)?;
            Some(if row.step == "forward" {
                one.forward
            } else {
                one.backward
            })
        };
        let (pascal, maxwell) = (step(PASCAL), step(MAXWELL));
        let both = pascal.zip(maxwell);
        let judgement = match is_consistent(&row, cells) {
            true => Judgement::Counted(tolerance),
            false => Judgement::Shown,
        };
        let values = [
            (
                LESS_TIME,
                row.less_time_pct,
                both.map(|(a, b)| 1.0 - a.time / b.time),
            ),
            (
                LESS_ENERGY,
                row.less_energy_pct,
                both.map(|(a, b)| 1.0 - a.energy / b.energy),
            ),
        ];
        for (kind, printed, here) in values {
            let note = rows.add(&labels, kind, Some(printed / 100.0), here, judgement);
            if judgement == Judgement::Shown {
                *note = Some("no tolerance: follows from cells that contradict themselves".into());
            }
        }
    }
    Ok(rows.rows)
}

/// Whether both cells that a row follows from are consistent.
fn is_consistent(row: &Advantage, cells: &[StepCell]) -> bool {
    let mut own = cells.iter().filter(|cell| {
        cell.network == "resnet_gait"
            && cell.step == row.step
            && cell.gpus == row.gpus
            && cell.batch == row.batch_size
    });
    own.clone().count() == 2 && own.all(StepCell::is_consistent)
}
