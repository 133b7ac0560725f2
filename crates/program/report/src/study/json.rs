//! The document of a study, `sweetspot.study/1`.

use sweetspot_decide::search::StopReason;
use sweetspot_decide::{Aim, Change, Comparison, Criteria, Objective, Outcome};
use sweetspot_device::{Domain, KnobDescriptor, Shortfall};
use sweetspot_document::common::{
    EnergyOf, Number, NumberOrText, PowerCap, RelativeChange, SchemaName, SearchEnd, Settings,
    Status, Summary,
};
use sweetspot_document::study as document;
use sweetspot_quantity::Ratio;
use sweetspot_study::{Axis, Configuration, Point, Study};

use super::batch_json;
use super::nodes::nodes_json;
use crate::analysis::recommendation::Recommendation;
use crate::analysis::view::StudyView;

/// The objectives whose values the document lists for every point.
const OBJECTIVES: [Objective; 9] = [
    Objective::Energy,
    Objective::Time,
    Objective::Power,
    Objective::Edp,
    Objective::Ed2p,
    Objective::Eds(1.5),
    Objective::Eds(2.0),
    Objective::GainMinusLoss,
    Objective::EnergyPerItem,
];

/// Makes the document of a study; `criteria` is the objective and the limits that the user requested.
pub fn study_json(study: &Study, criteria: &Criteria) -> document::Study {
    let objectives = objectives(criteria.objective);
    let comparison = study.comparison(&criteria.tariff);
    let best = objectives.iter().filter_map(|objective| {
        let criteria = Criteria {
            objective: *objective,
            ..criteria.clone()
        };
        let choice = match study.search_recommendation(&criteria) {
            Some(_) => study.choose(&comparison, &criteria),
            None => comparison.choose(*objective, &criteria.limits),
        };
        let choice = choice.ok()?;
        let best = document::BestPoint {
            point: choice.candidate,
            tied_with: choice.tied_with(),
        };
        Some((objective.to_string(), best))
    });
    let best = best.collect();
    let points = study.points.iter().enumerate();
    let points = points.map(|(index, point)| {
        let same_work = comparison.mean(index);
        point_json(study, point, same_work, &comparison, &objectives)
    });
    let of_reference = comparison.reference();
    document::Study {
        schema: SchemaName::STUDY,
        study: study.name(),
        energy_of: energy_of(study.energy_of()),
        gpu_share_of_node: super::text::gpu_share(study),
        device: device(study),
        workload: workload(study),
        seed: study.plan.seed,
        repeat: study.plan.repeat.into(),
        axes: columns(&study.plan.axes),
        objective: criteria.objective.to_string(),
        limits: criteria.limits.iter().map(ToString::to_string).collect(),
        reference: point_json(
            study,
            &study.reference,
            of_reference,
            &comparison,
            &objectives,
        ),
        points: points.collect(),
        best,
        recommendation: recommendation(study, criteria),
        accuracy_choice: batch_json::accuracy(study, criteria),
        pareto: comparison.pareto(&Aim::TIME_AND_ENERGY),
        search: search(study),
        nodes: nodes_json(study),
    }
}

/// Makes the entry of the recommendation; `None` if no point can be chosen.
pub(crate) fn recommendation(
    study: &Study,
    criteria: &Criteria,
) -> Option<document::Recommendation> {
    let made = Recommendation::from_view(&StudyView::new(study, criteria))?;
    let interval = |change: Change| [change.interval95.low, change.interval95.high];
    let saving = document::Saving {
        energy: made.energy.map(|change| change.mean),
        time: made.time.map(|change| change.mean),
        ci95: document::SavingIntervals {
            energy: made.energy.map(interval),
            time: made.time.map(interval),
        },
    };
    Some(document::Recommendation {
        objective: criteria.objective.to_string(),
        change: made.change,
        point: made.point,
        may_be_best: made.may_be_best,
        saving: made.change.then_some(saving),
        chance_of_no_gain: made.chance_of_no_gain,
        chance_nothing_gains: made.chance_nothing_gains,
        expected_loss: made.expected_loss,
        reason: made.reason,
    })
}

/// The keys of some axes in documents.
pub(crate) fn columns(axes: &[Axis]) -> Vec<String> {
    axes.iter().map(|axis| axis.column().to_owned()).collect()
}

/// Makes the entry of the search; `None` if the study ran all configurations.
fn search(study: &Study) -> Option<document::Search> {
    let search = study.plan.search.as_ref()?;
    let searched = study.search_progress()?;
    let answer = searched.recommendation.as_ref();
    let place = answer.map(|answer| answer.point);
    let chosen = place.and_then(|place| Some((place, study.points.get(place)?)));
    let earlier = search.prior.iter();
    Some(document::Search {
        strategy: search.strategy.to_string(),
        objective: search.objective.to_string(),
        limits: search.limits.iter().map(ToString::to_string).collect(),
        evaluations: searched.evaluations,
        learns_from: earlier.map(|study| study.name.clone()).collect(),
        ended: searched.stop_reason.map(search_end),
        point: chosen.map(|(place, _)| place),
        choice: chosen.map(|(_, point)| settings(&point.configuration)),
        expected_regret: answer.and_then(|answer| answer.expected_regret),
        regret_bound: answer.and_then(|answer| answer.regret_bound),
    })
}

/// Converts the reason why a search ended.
pub(crate) const fn search_end(done: StopReason) -> SearchEnd {
    match done {
        StopReason::Complete => SearchEnd::Complete,
        StopReason::Converged => SearchEnd::Sure,
        StopReason::BudgetSpent => SearchEnd::Spent,
        StopReason::ReferenceFailed => SearchEnd::ReferenceFailed,
    }
}

/// Converts the choice of devices whose energy the results contain.
pub(crate) const fn energy_of(energy_of: sweetspot_study::EnergyOf) -> EnergyOf {
    match energy_of {
        sweetspot_study::EnergyOf::JobGpus => EnergyOf::JobGpus,
        sweetspot_study::EnergyOf::AllGpus => EnergyOf::AllGpus,
        sweetspot_study::EnergyOf::Node => EnergyOf::Node,
    }
}

/// Converts the state of a configuration.
pub(crate) const fn status(status: sweetspot_study::Status) -> Status {
    match status {
        sweetspot_study::Status::Ok => Status::Ok,
        sweetspot_study::Status::Failed => Status::Failed,
        sweetspot_study::Status::Timeout => Status::Timeout,
        sweetspot_study::Status::OutOfMemory => Status::OutOfMemory,
        sweetspot_study::Status::NotRun => Status::NotRun,
    }
}

/// The objectives whose values are listed: the usual ones and the user's own.
fn objectives(own: Objective) -> Vec<Objective> {
    let mut all = OBJECTIVES.to_vec();
    if !all.contains(&own) {
        all.push(own);
    }
    all
}

/// Makes the entry of the workload.
fn workload(study: &Study) -> document::Workload {
    let workload = study.subject.workload.clone();
    document::Workload {
        name: workload.name,
        network: workload.network,
        mode: workload.mode,
        conv_algorithm: workload.conv_algorithm,
        dataset: workload.dataset,
        scaled_from: workload.scaled_from,
        batch: workload.batch,
        items: workload.items,
        command: workload.command,
    }
}

/// Makes the entry of the devices.
fn device(study: &Study) -> document::Device {
    let device = study.device();
    let caps = device.knobs.iter().find_map(|knob| match knob {
        KnobDescriptor::PowerCap(range) => match &range.domain {
            Domain::Range { min, max } => Some(document::PowerCapRange {
                min: min.get(),
                max: max.get(),
                default: range.default.get(),
            }),
            Domain::Levels(_) => None,
        },
        _ => None,
    });
    let devices = study.subject.devices.iter();
    document::Device {
        uuid: device.id.to_string(),
        name: device.name.clone(),
        profile: study.subject.device_name.clone(),
        backend: device.backend.clone(),
        uuids: devices.map(|device| device.id.to_string()).collect(),
        power_cap_w: caps,
    }
}

/// Describes a point. `same_work` is the point's time and energy for the work for which all points are compared.
fn point_json(
    study: &Study,
    point: &Point,
    same_work: Option<&Outcome>,
    comparison: &Comparison,
    objectives: &[Objective],
) -> document::Point {
    let enforced = point.reduced_caps().into_iter();
    let enforced = enforced.map(|one| document::EnforcedCap {
        uuid: one.device.to_string(),
        requested_w: one.requested.get(),
        enforced_w: one.enforced.get(),
        reason: match one.reason {
            Shortfall::Thermal => document::Shortfall::Thermal,
            Shortfall::BoardLimit => document::Shortfall::BoardLimit,
            Shortfall::Ceiling => document::Shortfall::Ceiling,
            Shortfall::Unknown => document::Shortfall::Unknown,
        },
    });
    document::Point {
        settings: settings(&point.configuration),
        status: status(point.status()),
        reason: point.failure().map(|failure| failure.reason.clone()),
        runs: point.results().count(),
        enforced: enforced.collect(),
        results: results(study, point, same_work, comparison, objectives),
    }
}

/// Makes the results of a point; `None` if it has no successful run.
fn results(
    study: &Study,
    point: &Point,
    same_work: Option<&Outcome>,
    comparison: &Comparison,
    objectives: &[Objective],
) -> Option<document::PointResults> {
    let (outcome, time) = (point.outcome()?, point.time()?);
    let energy = point.energy().map(|energy| Summary {
        method: point.method(),
        ..summary(&energy)
    });
    let by_device = point.energy_by_device().into_iter();
    let values = point.values().into_iter();
    let joules = outcome.energy.map(|energy| energy.get());
    let per_item = joules
        .zip(outcome.items)
        .map(|(joules, items)| joules / items);
    let reference = comparison.reference();
    let devices = study
        .subject
        .devices
        .iter()
        .take(point.configuration.gpus as usize);
    let uuids: Vec<String> = devices.map(|device| device.id.to_string()).collect();
    Some(document::PointResults {
        time_s: summary(&time),
        energy_j: energy,
        energy_by_device_j: by_device
            .map(|(uuid, energy)| (uuid, energy.get()))
            .collect(),
        average_power_w: finite(point.average_power().map(|power| power.get())),
        items: finite(outcome.items),
        items_per_s: finite(outcome.items.map(|items| items / outcome.time.get())),
        energy_per_item_j: finite(per_item),
        values: values.map(|(name, value)| (name, value.mean)).collect(),
        phases: batch_json::phases(&point.phases(), &uuids),
        phases_refused: point.phase_problem().map(str::to_owned),
        batch: batch_json::batch(study, point),
        waiting_energy_share: study.waiting_share(point).map(Ratio::get),
        scaling: batch_json::scaling(study, point),
        one_measured_j: study
            .one_measured_and_multiplied(point)
            .map(|energy| energy.get()),
        vs_reference: same_work
            .zip(reference)
            .map(|(outcome, reference)| relative_change(outcome, reference)),
        objectives: same_work.map(|outcome| {
            let values = objectives.iter().filter_map(|objective| {
                let value = objective.value(outcome, comparison.basis()).ok()?;
                Some((objective.to_string(), value))
            });
            values.collect()
        }),
    })
}

/// The value, or `None` if it is not finite.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

/// The relative change of an outcome against the reference.
fn relative_change(outcome: &Outcome, reference: &Outcome) -> RelativeChange {
    let change = |ratio: Option<Ratio>| {
        let ratio = finite(ratio.map(Ratio::get));
        ratio.map(|ratio| ratio - 1.0)
    };
    let energies = outcome.energy.zip(reference.energy);
    RelativeChange {
        time: change(Some(outcome.time / reference.time)),
        energy: change(energies.map(|(here, there)| here / there)),
    }
}

/// Converts the knobs of a configuration.
pub(crate) fn settings(configuration: &Configuration) -> Settings {
    let number = |axis: Axis| axis.number(configuration).map(Number::from);
    let power_cap = match number(Axis::PowerCap) {
        Some(cap) => Some(PowerCap::All(cap)),
        None => Axis::PowerCap.text(configuration).map(|_| {
            let caps = configuration.power_caps.iter();
            PowerCap::Each(caps.map(|cap| cap.get().into()).collect())
        }),
    };
    let parameters = configuration.parameters.keys().filter_map(|name| {
        let axis = Axis::Parameter(name.clone());
        let value = match axis.number(configuration) {
            Some(number) => NumberOrText::Number(number.into()),
            None => NumberOrText::Text(axis.text(configuration)?),
        };
        Some((name.clone(), value))
    });
    Settings {
        power_cap_w: power_cap,
        core_clock_mhz: number(Axis::CoreClock),
        memory_clock_mhz: number(Axis::MemoryClock),
        cpu_power_cap_w: number(Axis::CpuPowerCap),
        parameters: parameters.collect(),
        gpus: configuration.gpus,
    }
}

/// Converts the mean of several runs and its uncertainty.
pub(crate) fn summary(summary: &sweetspot_stats::Summary) -> Summary {
    Summary {
        mean: summary.mean,
        sd: summary.deviation,
        ci95: summary
            .interval95
            .map(|interval| [interval.low, interval.high]),
        method: None,
    }
}
