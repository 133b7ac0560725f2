//! The paper's study on the simulated GPU of the paper.

use sweetspot_study::{AxisText, BATCH_PARAMETER, Definition, EnergyOf, Study};

use super::{OwnOrigin, PaperPlan, Swept};
use crate::{PapersError, SweepRunner, multi_gpu_2018};

/// Runs the paper's settings with these numbers of GPUs in virtual time. One study for each job whose GPUs are others.
pub(super) fn sweep(
    runner: &mut SweepRunner,
    plan: &PaperPlan,
    origin: &OwnOrigin,
    counts: &[u64],
    energy_of: EnergyOf,
) -> Result<Vec<Study>, PapersError> {
    let workload = format!("{}@{}", origin.network, plan.study);
    let text = |values: &[f64]| {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        Some(AxisText(values.join(",")))
    };
    let base = Definition {
        repeat: Some(plan.repeat),
        energy_of: Some(energy_of),
        ..Definition::simulated(&origin.gpu, &workload)
    };
    Ok(match plan.swept(&origin.gpu) {
        Some(Swept::PowerCap(caps)) if plan.counts.is_empty() => {
            vec![runner.sweep(Definition {
                power_cap: text(caps),
                ..base
            })?]
        }
        Some(Swept::PowerCap(caps)) => vec![runner.sweep(Definition {
            simulate: None,
            node: Some(plan.study.to_owned()),
            power_cap: text(caps),
            gpus: text(&counts.iter().map(|count| *count as f64).collect::<Vec<_>>()),
            ..base
        })?],
        Some(Swept::CoreClock(clocks, _)) => vec![runner.sweep(Definition {
            mode: Some("train".to_owned()),
            core_clock: text(clocks),
            ..base
        })?],
        Some(Swept::Batch(batches)) => {
            let batches = text(
                &batches
                    .iter()
                    .map(|batch| *batch as f64)
                    .collect::<Vec<_>>(),
            );
            let mut studies = Vec::new();
            for count in counts {
                let gpus = match count {
                    4 => format!("{}:2,{}:2", origin.gpu, multi_gpu_2018::MAXWELL),
                    count => format!("{}:{count}", origin.gpu),
                };
                studies.push(
                    runner.sweep(Definition {
                        simulate: Some(gpus),
                        node: Some(plan.study.to_owned()),
                        items: Some(multi_gpu_2018::ITEMS),
                        axis: batches
                            .clone()
                            .map(|axis| (BATCH_PARAMETER.to_owned(), axis))
                            .into_iter()
                            .collect(),
                        ..base.clone()
                    })?,
                );
            }
            studies
        }
        None => Vec::new(),
    })
}
