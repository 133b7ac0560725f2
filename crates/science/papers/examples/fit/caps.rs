//! The loss of a fit with best caps, which jump and have no derivative. A published best cap is met reliably if every
//! cap outside its tolerance is clearly worse.

use std::error::Error;

use sweetspot_decide::{Objective, Outcome};
use sweetspot_papers::node_power_capping_2023::tables::read_node_facts;
use sweetspot_papers::power_capping_2022::tables::read_cap_rows;
use sweetspot_papers::{Profiles, compare_with};
use sweetspot_quantity::Watts;
use sweetspot_study::EnergyOf;

/// The tolerance of a best cap in watts.
const CAP_TOLERANCE: f64 = 10.0;
/// The relative margin by which a cap outside the tolerance must be worse, so that noise does not make it the best.
const REQUIRED_MARGIN: f64 = 0.002;

/// A part of a study with its own loss: a network on a GPU, or a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    study: String,
    gpu: String,
    network: String,
}

impl Part {
    /// Whether the part depends on a workload's entry for a GPU, or on a GPU's profile.
    pub fn depends_on(&self, study: &str, network: Option<&str>, gpu: Option<&str>) -> bool {
        if self.network.is_empty() {
            return true;
        }
        let of_study = network.is_none() && gpu.is_some() || self.study == study;
        of_study
            && network.is_none_or(|network| network == self.network)
            && gpu.is_none_or(|gpu| gpu == self.gpu)
    }
}

/// The parts of a study.
pub fn parts(study: &str) -> Result<Vec<Part>, Box<dyn Error>> {
    let part = |gpu: &str, network: &str| Part {
        study: study.to_owned(),
        gpu: gpu.to_owned(),
        network: network.to_owned(),
    };
    Ok(match study {
        "power_capping_2022" => read_cap_rows()?
            .iter()
            .filter(|row| row.selection == "default")
            .map(|row| part(&row.gpu, row.network))
            .collect(),
        "node_power_capping_2023" => vec![part("quadro_rtx_6000", "xception")],
        _ => vec![part("", "")],
    })
}

fn objective(name: &str) -> Option<Objective> {
    Some(match name {
        "min E" | "energy" => Objective::Energy,
        "min EDP" | "edp" => Objective::Edp,
        "min EDS(k=2.0)" | "eds_k2.0" => Objective::Eds(2.0),
        "min EDS(k=1.5)" | "eds_k1.5" => Objective::Eds(1.5),
        "energy_gain_minus_time_loss" => Objective::GainMinusLoss,
        _ => return None,
    })
}

/// The loss of a part against the published values, including its best caps.
pub fn loss(part: &Part, profiles: &Profiles) -> Result<f64, Box<dyn Error>> {
    let name = format!("{}@{}", part.network, part.study);
    if part.network.is_empty() {
        let deviations = compare_with(&part.study, profiles)?.ok_or("no such study")?;
        let all = crate::residuals::residuals_of(&deviations).into_iter();
        // A part of the tolerance is left to the noise of the runs.
        return Ok(all
            .map(|residual| penalty(residual + residual.signum() * 0.35))
            .sum());
    }
    if part.study == "node_power_capping_2023" {
        let caps = (100..=260)
            .step_by(10)
            .map(|cap| Watts::new(f64::from(cap)));
        let gpus = [part.gpu.as_str(); 8];
        let curve = profiles.curve(&gpus, Some(&part.study), &name, EnergyOf::Node, 8, caps)?;
        let deviations = compare_with(&part.study, profiles)?.ok_or("no such study")?;
        let mut total: f64 = crate::residuals::residuals_of(&deviations)
            .into_iter()
            .map(penalty)
            .sum();
        for (metric, _, cap) in read_node_facts()?.best {
            let objective = objective(&metric).ok_or("no such metric")?;
            total += 2.0 * cap_loss(&curve, objective, cap.get());
        }
        return Ok(3.0 * total);
    }
    let (from, to) = match part.gpu.as_str() {
        "quadro_rtx_6000" => (100, 260),
        _ => (150, 300),
    };
    let caps = (from..=to).step_by(5).map(|cap| Watts::new(f64::from(cap)));
    let curve = profiles.curve(&[&part.gpu], None, &name, EnergyOf::JobGpus, 1, caps)?;
    let mut total = 0.0;
    for row in read_cap_rows()? {
        if row.gpu != part.gpu || row.network != part.network {
            continue;
        }
        let at = curve.iter().find(|(cap, _)| *cap == row.power_cap);
        let (_, here) = at.ok_or("a published cap is not on the grid")?;
        let energy = here.energy.ok_or("no energy")?;
        for ratio in [here.time / row.time, energy / row.energy] {
            total += penalty((ratio.get() - 1.0) / 0.02);
        }
        if let Some(objective) = objective(&row.selection) {
            total += cap_loss(&curve, objective, row.power_cap.get());
        }
    }
    Ok(total)
}

/// The penalty of a residual: small well within the tolerance, large near its end.
fn penalty(residual: f64) -> f64 {
    0.02 * residual * residual + 40.0 * (residual.abs() - 0.85).max(0.0).powi(2)
}

/// The loss of a best cap, and of its regret.
fn cap_loss(curve: &[(Watts, Outcome)], objective: Objective, published: f64) -> f64 {
    let Some((_, reference)) = curve.last() else {
        return 2.0;
    };
    let least = |is_included: &dyn Fn(f64) -> bool| {
        let values = curve.iter().filter(|(cap, _)| is_included(cap.get()));
        let values = values.filter_map(|(_, outcome)| objective.value(outcome, reference).ok());
        let values = values.map(|value| {
            if objective.is_maximised() {
                1.0 - value
            } else {
                value
            }
        });
        values.fold(f64::INFINITY, f64::min)
    };
    let is_near = |cap: f64| (cap - published).abs() <= CAP_TOLERANCE;
    let inside = least(&is_near);
    let outside = least(&|cap| !is_near(cap));
    let shortfall = (REQUIRED_MARGIN - (outside / inside - 1.0)).max(0.0) / REQUIRED_MARGIN;
    let regret = least(&|cap| cap == published) / inside.min(outside) - 1.0;
    let regret = (regret - 0.008).max(0.0) / 0.004;
    [shortfall, regret]
        .map(|loss| loss * loss / (1.0 + loss * loss))
        .iter()
        .sum()
}
