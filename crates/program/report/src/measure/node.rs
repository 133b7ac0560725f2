//! The entries of the host and of the whole machine in the document of a measurement.

use sweetspot_document::measure::TotalEnergy as TotalEntry;
use sweetspot_document::node as document;
use sweetspot_measure::math::meter::MeterEnergy;
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_session::NodeEnergy;

/// Makes the entry of an energy and its interval.
fn entry(value: Joules, (low, high): (Joules, Joules)) -> TotalEntry {
    TotalEntry {
        energy_j: value.get(),
        interval95_j: [low.get(), high.get()],
    }
}

/// Makes the entry of the whole machine.
pub(crate) fn node_json(node: &Result<NodeEnergy, String>, time: Seconds) -> document::NodeEnergy {
    match node {
        Ok(node) => {
            let known = node.energy.as_ref().ok();
            document::NodeEnergy {
                energy: known.map(|known| entry(known.value, known.interval95)),
                average_power_w: known.map(|known| (known.value / time).get()),
                method: known.map(|_| node.method()),
                gpu_share: node.gpu_share.map(|share| share.get()),
                meters: node.meters.iter().map(meter_json).collect(),
                problem: node.energy.as_ref().err().cloned(),
            }
        }
        Err(problem) => document::NodeEnergy {
            energy: None,
            average_power_w: None,
            method: None,
            gpu_share: None,
            meters: Vec::new(),
            problem: Some(problem.clone()),
        },
    }
}

/// Makes the entry of one meter.
fn meter_json(meter: &MeterEnergy) -> document::MeterEnergy {
    let found = meter.alignment;
    document::MeterEnergy {
        name: meter.name.clone(),
        model: meter.model.clone(),
        energy: entry(meter.value, meter.interval95),
        method: meter.method.to_string(),
        delay_s: found.map(|found| found.delay.get()),
        delay_sd_s: found.map(|found| found.delay_deviation.get()),
        averaging_s: found.map(|found| found.window.get()),
        covered_s: meter.covered.length().get(),
        check: meter.check.map(|check| document::MeterCheck {
            energy: entry(check.value, check.interval95),
            method: check.method.to_string(),
            difference: (check.value / meter.value).get() - 1.0,
        }),
    }
}
