//! The entries of a study's document about batches, numbers of GPUs and accuracy.

use sweetspot_decide::Criteria;
use sweetspot_document::common::Named;
use sweetspot_document::study as document;
use sweetspot_study::{DevicePhase, PhaseResult, Point, Study};

use crate::analysis::accuracy::AccuracyChoice;

/// Makes the entry of a batch; `None` if its size or the number of items is unknown.
pub(super) fn batch(study: &Study, point: &Point) -> Option<document::BatchCosts> {
    let costs = study.batch_costs(point)?;
    Some(document::BatchCosts {
        items: costs.batch,
        iterations: costs.iterations,
        time_s: costs.time.get(),
        energy_j: costs.energy.map(|energy| energy.get()),
        phases: phases(&costs.phases, &[]),
    })
}

/// Makes the entry of the scaling with the number of GPUs; `None` for a point on the fewest GPUs.
pub(super) fn scaling(study: &Study, point: &Point) -> Option<document::Scaling> {
    let scaling = study.scaling(point)?;
    Some(document::Scaling {
        base_gpus: scaling.base_gpus,
        speed_up: scaling.speed_up.get(),
        efficiency: scaling.efficiency.get(),
    })
}

/// Makes the entries of phases; `uuids` are those of the job's devices, or empty to leave out what each device did.
pub(super) fn phases(phases: &[PhaseResult], uuids: &[String]) -> Named<document::Phase> {
    let each = |phase: &PhaseResult, value: fn(&DevicePhase) -> Option<f64>| -> Named<f64> {
        let devices = phase.by_device.iter().zip(uuids);
        let is_shared = phase.by_device.len() > 1;
        devices
            .filter(|_| is_shared)
            .filter_map(|(one, uuid)| Some((uuid.clone(), value(one)?)))
            .collect()
    };
    let power = |phase: &PhaseResult| Some((phase.energy? / phase.time).get());
    let entry = |phase: &PhaseResult| document::Phase {
        time_s: phase.time.get(),
        energy_j: phase.energy.map(|energy| energy.get()),
        power_w: power(phase).filter(|power| power.is_finite()),
        time_by_device_s: each(phase, |one| Some(one.time.get())),
        energy_by_device_j: each(phase, |one| Some(one.energy?.get())),
    };
    let named = phases
        .iter()
        .map(|phase| (phase.name.clone(), entry(phase)));
    named.collect()
}

/// Makes the entry of the choice with and without regard to accuracy; `None` if no accuracy is known.
pub(super) fn accuracy(study: &Study, criteria: &Criteria) -> Option<document::AccuracyChoice> {
    let choice = AccuracyChoice::new(study, criteria)?;
    Some(document::AccuracyChoice {
        value: choice.value,
        without: choice.without,
        with: choice.with,
        unknown: choice.unknown,
        reason: choice.text,
    })
}
