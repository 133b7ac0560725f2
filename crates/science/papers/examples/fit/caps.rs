//! Best caps: they jump, so that no derivative follows them. A published best cap is met with room where
//! every cap farther away than it may be is clearly worse.

use std::error::Error;

use sweetspot_decide::{Objective, Outcome};
use sweetspot_papers::node_power_capping_2023::tables::node_power_capping_2023;
use sweetspot_papers::power_capping_2022::tables::power_capping_2022;
use sweetspot_papers::{Profiles, deviations_of};
use sweetspot_quantity::Watts;
use sweetspot_study::EnergyOf;

/// How far off a best cap may be.
const NEAR: f64 = 10.0;
/// What a cap farther away should cost more, so that the noise of the runs does not make it the best.
const ROOM: f64 = 0.002;

/// What is judged together: a network on a GPU, or a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    study: String,
    gpu: String,
    network: String,
}

impl Part {
    /// Whether it changes with what is written in a workload's entry for a GPU, or in a GPU's profile.
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

/// Everything that is judged in a study.
pub fn parts(study: &str) -> Result<Vec<Part>, Box<dyn Error>> {
    let part = |gpu: &str, network: &str| Part {
        study: study.to_owned(),
        gpu: gpu.to_owned(),
        network: network.to_owned(),
    };
    Ok(match study {
        "power_capping_2022" => power_capping_2022()?
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

/// How far a part is from what was published, its best caps included.
pub fn loss(part: &Part, profiles: &Profiles) -> Result<f64, Box<dyn Error>> {
    let name = format!("{}@{}", part.network, part.study);
    if part.network.is_empty() {
        let deviations = deviations_of(&part.study, profiles)?.ok_or("no such study")?;
        let all = crate::off(&deviations).into_iter();
        // Half of what is allowed is left to the noise of the runs.
        return Ok(all
            .map(|residual| steep(residual + residual.signum() * 0.35))
            .sum());
    }
    if part.study == "node_power_capping_2023" {
        let caps = (100..=260)
            .step_by(10)
            .map(|cap| Watts::new(f64::from(cap)));
        let gpus = [part.gpu.as_str(); 8];
        let curve = profiles.curve(&gpus, Some(&part.study), &name, EnergyOf::Node, 8, caps)?;
        let deviations = deviations_of(&part.study, profiles)?.ok_or("no such study")?;
        let mut total: f64 = crate::off(&deviations).into_iter().map(steep).sum();
        for (metric, _, cap) in node_power_capping_2023()?.best {
            let objective = objective(&metric).ok_or("no such metric")?;
            total += 2.0 * of_cap(&curve, objective, cap.get());
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
    for row in power_capping_2022()? {
        if row.gpu != part.gpu || row.network != part.network {
            continue;
        }
        let at = curve.iter().find(|(cap, _)| *cap == row.power_cap);
        let (_, here) = at.ok_or("a published cap is not on the grid")?;
        let energy = here.energy.ok_or("no energy")?;
        for ratio in [here.time / row.time, energy / row.energy] {
            total += steep((ratio.get() - 1.0) / 0.02);
        }
        if let Some(objective) = objective(&row.selection) {
            total += of_cap(&curve, objective, row.power_cap.get());
        }
    }
    Ok(total)
}

/// Little for what is well within, much for what is nearly as far off as it may be.
fn steep(residual: f64) -> f64 {
    0.02 * residual * residual + 40.0 * (residual.abs() - 0.85).max(0.0).powi(2)
}

/// For the cap itself, and for the regret that it costs.
fn of_cap(curve: &[(Watts, Outcome)], objective: Objective, published: f64) -> f64 {
    let Some((_, reference)) = curve.last() else {
        return 2.0;
    };
    let least = |meant: &dyn Fn(f64) -> bool| {
        let values = curve.iter().filter(|(cap, _)| meant(cap.get()));
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
    let is_near = |cap: f64| (cap - published).abs() <= NEAR;
    let inside = least(&is_near);
    let outside = least(&|cap| !is_near(cap));
    let short = (ROOM - (outside / inside - 1.0)).max(0.0) / ROOM;
    let regret = least(&|cap| cap == published) / inside.min(outside) - 1.0;
    let regret = (regret - 0.008).max(0.0) / 0.004;
    [short, regret]
        .map(|off| off * off / (1.0 + off * off))
        .iter()
        .sum()
}
