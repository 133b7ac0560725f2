//! The values that the papers print, as changes against their references.

use sweetspot_decide::Objective;

use super::{OwnChange, OwnOrigin};
use crate::tables::PublishedError;
use crate::{dvfs_2019, multi_gpu_2018, node_power_capping_2023, power_capping_2022};

/// A printed change at one setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PrintedPoint {
    pub gpus: u64,
    /// The power cap in watts or the batch size.
    pub value: f64,
    pub change: OwnChange,
}

/// A printed best setting by a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PrintedBest {
    pub gpus: u64,
    pub metric: Objective,
    /// The best power cap in watts, the core clock in MHz or the batch size; `None` if it is not printed.
    pub value: Option<f64>,
    /// How much better the metric is than at the reference, as a fraction.
    pub gain: f64,
}

/// All printed values that belong to a network and a GPU of a paper.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Printed {
    pub points: Vec<PrintedPoint>,
    pub best: Vec<PrintedBest>,
}

/// Reads the printed values.
pub(super) fn read(origin: &OwnOrigin) -> Result<Printed, PublishedError> {
    match origin.paper.as_str() {
        power_capping_2022::PAPER => power_capping(origin),
        node_power_capping_2023::PAPER => node_power_capping(),
        dvfs_2019::PAPER => dvfs(origin),
        multi_gpu_2018::PAPER => multi_gpu(origin),
        _ => Ok(Printed::default()),
    }
}

/// Tables 2 and 3 of power_capping_2022: time and energy at the best caps.
fn power_capping(origin: &OwnOrigin) -> Result<Printed, PublishedError> {
    let rows = power_capping_2022::tables::read_cap_rows()?;
    let own: Vec<_> = rows
        .iter()
        .filter(|row| row.gpu == origin.gpu && row.network == origin.network)
        .collect();
    let mut printed = Printed::default();
    let Some(default) = own.iter().find(|row| row.selection == "default") else {
        return Ok(printed);
    };
    for row in &own {
        let cap = row.power_cap.get();
        let (time, energy) = (
            (row.time / default.time).get(),
            (row.energy / default.energy).get(),
        );
        if !printed.points.iter().any(|point| point.value == cap) {
            printed.points.push(PrintedPoint {
                gpus: 1,
                value: cap,
                change: OwnChange {
                    time: Some(time - 1.0),
                    energy: Some(energy - 1.0),
                },
            });
        }
        if let Some(metric) = power_capping_2022::objective(&row.selection) {
            let value = match metric {
                Objective::Eds(k) => ((k - 1.0) * energy + time) / k,
                Objective::Edp => energy * time,
                _ => energy,
            };
            printed.best.push(PrintedBest {
                gpus: 1,
                metric,
                value: Some(cap),
                gain: 1.0 - value,
            });
        }
    }
    Ok(printed)
}

/// Table 1, figure 7 and the text of node_power_capping_2023.
fn node_power_capping() -> Result<Printed, PublishedError> {
    let facts = node_power_capping_2023::read_node_facts()?;
    let mut printed = Printed::default();
    for (gpus, cap, time) in &facts.times {
        let Some(default) = facts.time(*gpus, 260.0) else {
            continue;
        };
        printed.points.push(PrintedPoint {
            gpus: *gpus,
            value: cap.get(),
            change: OwnChange {
                time: Some(time.get() / default - 1.0),
                energy: None,
            },
        });
    }
    for (gpus, saving) in facts.savings.iter().filter(|(gpus, _)| *gpus != 8) {
        printed.best.push(PrintedBest {
            gpus: *gpus,
            metric: Objective::Energy,
            value: None,
            gain: saving.get(),
        });
    }
    for (metric, gain, cap) in &facts.best {
        printed.best.push(PrintedBest {
            gpus: 8,
            metric: node_power_capping_2023::objective(metric),
            value: Some(cap.get()),
            gain: gain.get(),
        });
    }
    Ok(printed)
}

/// Table III of dvfs_2019, of trainings: the best core clock's saving, without the clock.
fn dvfs(origin: &OwnOrigin) -> Result<Printed, PublishedError> {
    let (by_network, _) = dvfs_2019::tables::read_savings()?;
    let own = by_network.iter().filter(|cell| {
        cell.gpu == origin.gpu
            && cell.of == origin.network
            && cell.mode == sweetspot_sim::Mode::Train
    });
    Ok(Printed {
        points: Vec::new(),
        best: own
            .map(|cell| PrintedBest {
                gpus: 1,
                metric: Objective::Energy,
                value: None,
                gain: cell.saving.get(),
            })
            .collect(),
    })
}

/// Table 6 of multi_gpu_2018: whole trainings, against one GPU and the smallest batch.
fn multi_gpu(origin: &OwnOrigin) -> Result<Printed, PublishedError> {
    let network =
        |printed: &str| crate::tables::network_name("multi_gpu_2018_tables_6_9.csv", printed);
    let mut own = Vec::new();
    for row in multi_gpu_2018::read_whole_trainings()? {
        if row.measured_gpu == origin.gpu && network(&row.network)? == origin.network {
            own.push(row);
        }
    }
    let base = own.iter().find(|row| row.gpus == 1 && row.batch_size == 64);
    let Some((time, energy)) = base.and_then(|row| Some((row.kiloseconds?, row.megajoules?)))
    else {
        return Ok(Printed::default());
    };
    let points = own.iter().map(|row| PrintedPoint {
        gpus: row.gpus,
        value: row.batch_size as f64,
        change: OwnChange {
            time: row.kiloseconds.map(|own| own / time - 1.0),
            energy: row.megajoules.map(|own| own / energy - 1.0),
        },
    });
    Ok(Printed {
        points: points.collect(),
        best: Vec::new(),
    })
}
