//! Checks what a study's files say before anything is computed from it: they may be damaged, or come from somebody else.

use crate::{
    Axis, Configuration, Energies, Energy, Outline, Plan, RunEnding, RunRecord, RunResult,
};

/// The maximum number of axes of a study.
const MAX_AXES: usize = 64;

/// The maximum number of parameters, and of power caps, of a configuration.
const MAX_PARAMETERS: usize = 256;
/// The maximum number of phases, and of reported values, of a run: more names than the link carries.
const MAX_NAMES: usize = 1 << 13;

/// Checks the definition, the devices and the plan of a study.
pub(super) fn check_outline(outline: &Outline) -> Result<(), String> {
    if outline.subject.devices.is_empty() {
        return Err("the study has no device".to_owned());
    }
    check_plan(&outline.plan)
}

/// Checks the indices and the sizes in a plan.
pub(super) fn check_plan(plan: &Plan) -> Result<(), String> {
    let configurations = plan.configurations.len();
    if plan.reference >= configurations {
        let reference = plan.reference;
        return Err(format!(
            "the reference is configuration {reference} of {configurations}"
        ));
    }
    if plan.on_axes > configurations {
        let on_axes = plan.on_axes;
        return Err(format!(
            "{on_axes} of {configurations} configurations are on the axes"
        ));
    }
    if plan.axes.len() > MAX_AXES {
        return Err(format!("the study has more than {MAX_AXES} axes"));
    }
    let is_too_large = |configuration: &Configuration| {
        let parameters = configuration.parameters.len();
        parameters.max(configuration.power_caps.len()) > MAX_PARAMETERS
    };
    if plan.configurations.iter().any(is_too_large) {
        return Err(format!(
            "a configuration has more than {MAX_PARAMETERS} parameters or power caps"
        ));
    }
    let is_repeated = |index: usize, axis: &Axis| plan.axes[..index].contains(axis);
    match plan
        .axes
        .iter()
        .enumerate()
        .any(|(index, axis)| is_repeated(index, axis))
    {
        true => Err("an axis is there twice".to_owned()),
        false => Ok(()),
    }
}

/// Checks that the figures of a run are possible.
pub(super) fn check_run(run: &RunRecord) -> Result<(), String> {
    let RunEnding::Done(result) = &run.end else {
        return Ok(());
    };
    let is_possible = |value: f64| value.is_finite() && value >= 0.0;
    let possible = |what: &str, value: f64| match is_possible(value) {
        true => Ok(()),
        false => Err(format!("the {what} of a run is {value}")),
    };
    possible("time", result.time.get())?;
    possible("number of items", result.items.unwrap_or(0.0))?;
    for energy in energies(result) {
        let (low, high) = energy.interval95.unwrap_or((energy.value, energy.value));
        possible("energy", energy.value.get())?;
        if !(low.get().is_finite() && high.get().is_finite()) {
            return Err("the interval of an energy is not finite".to_owned());
        }
    }
    if result.phases.len().max(result.values.len()) > MAX_NAMES {
        return Err(format!("it has more than {MAX_NAMES} phases or values"));
    }
    for phase in &result.phases {
        possible("time of a phase", phase.time.get())?;
        possible(
            "energy of a phase",
            phase.energy.map_or(0.0, |energy| energy.get()),
        )?;
    }
    match result.values.values().all(|value| value.is_finite()) {
        true => Ok(()),
        false => Err("a reported value of a run is not finite".to_owned()),
    }
}

/// All energies of a run.
fn energies(result: &RunResult) -> impl Iterator<Item = &Energy> {
    let Energies {
        job_gpus,
        all_gpus,
        node,
    } = &result.energies;
    let total = [job_gpus, all_gpus, node].into_iter().flatten();
    total.chain(
        result
            .devices
            .iter()
            .filter_map(|device| device.energy.as_ref()),
    )
}
