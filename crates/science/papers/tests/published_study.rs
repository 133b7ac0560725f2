//! The simulated studies against the published ones, and their independence of threads and order.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use sweetspot_decide::{Objective, best};
use sweetspot_papers::power_capping_2022::tables::read_cap_rows;
use sweetspot_papers::{DeviationKind, FORMS, Profiles, SimulatorDeviations, deviations};
use sweetspot_study::{AxisText, Definition, Point, Study};
use sweetspot_virtual_time::sweep;

fn caps(axis: &str) -> Option<AxisText> {
    Some(AxisText(axis.to_owned()))
}

fn of_v100(network: &str) -> Definition {
    Definition::simulated("v100", network)
}

fn sweep_all(definition: &Definition) -> Study {
    sweep(definition, NonZeroUsize::MIN).unwrap()
}

fn bits(study: &Study) -> Vec<(u64, u64)> {
    let runs = study
        .points
        .iter()
        .chain([&study.reference])
        .flat_map(Point::results);
    runs.map(|run| {
        let energy = run.energies.job_gpus.unwrap().value;
        (run.time.get().to_bits(), energy.get().to_bits())
    })
    .collect()
}

/// What the profiles of node_power_capping_2023 miss with 6 parameters; docs/explanation/reproduce says why.
const MISSED_OF_NODE: [&str; 6] = [
    "1 GPU: energy saved",
    "4 GPUs: energy saved",
    "2 GPUs: time at 260 W",
    "8 GPUs: cap of the best energy",
    "8 GPUs: cap of the best edp",
    "8 GPUs: cap of the best eds:1.5",
];

/// What multi_gpu_2018 misses: ResNet's backward step on four GPUs, which grows with the batch as no exchange does.
const MISSED_OF_MULTI_GPU: [&str; 2] = [
    "pascal resnet_gait backward 256 on 4",
    "maxwell resnet_gait backward 256 on 4",
];

/// What batch_sizer_2021 misses with two host times: a statement of its section 3 and both ends of its figure 5;
/// docs/explanation/reproduce says why.
const MISSED_OF_BATCH_SIZER: [&str; 3] = [
    "mobilenet_v1 imagenet by 256 instead of 1",
    "job 19 resnet101 caltech",
    "job 5 mobilenet_v2 imagenet",
];

/// The number of values that dvfs_2019 misses with 17 parameters; docs/explanation/reproduce says which and why.
const MISSED_OF_DVFS: usize = 30;

/// The study whose profiles have more parameters than half of its values: two host times, chosen by hand, for three.
const MORE_THAN_HALF: &str = "batch_sizer_2021";

/// With all work computed from layers and boards no network has a number of its own; the page of the study says how far
/// that is off.
fn assert_errors_of_layers(study: &SimulatorDeviations) {
    assert!(study.free_parameters <= 16, "{}", study.free_parameters);
    let errors = study.fitted().mean_and_largest(DeviationKind::Relative);
    let (mean, largest) = errors.unwrap();
    assert!(mean < 0.085 && largest < 0.25, "{mean} {largest}");
    let held_out = study.held_out.iter();
    let networks: Vec<&str> = held_out.map(|fit| fit.without.as_str()).collect();
    let all = [
        "alexnet",
        "vgg19",
        "inception_v3",
        "inception_v4",
        "resnet50",
        "resnet152",
    ];
    assert_eq!(networks, all);
}

/// The labels of the rows with a value outside its tolerance.
fn missed(study: &SimulatorDeviations) -> Vec<&str> {
    let mut missed = Vec::new();
    for table in &study.tables {
        for (label, values) in &table.rows {
            let mut values = values.iter().zip(&table.columns);
            if values.any(|(value, column)| !value.is_met(column.deviation_kind)) {
                missed.push(label.as_str());
            }
        }
    }
    missed
}

#[test]
fn every_published_and_measured_value_is_within_tolerance_except_those_listed() {
    let studies = deviations(&Profiles::built_in().unwrap()).unwrap();
    let names: Vec<&str> = studies.iter().map(|study| study.study.as_str()).collect();
    assert_eq!(
        names,
        [
            "power_capping_2022",
            "dvfs_2019",
            "node_power_capping_2023",
            "multi_gpu_2018",
            "batch_sizer_2021",
            "h200",
            "power_capping_2022_from_layers",
            "batch_sizer_2021_from_sizes"
        ]
    );
    for study in &studies {
        let known: &[&str] = match study.study.as_str() {
            "node_power_capping_2023" => &MISSED_OF_NODE,
            "multi_gpu_2018" => &MISSED_OF_MULTI_GPU,
            "batch_sizer_2021" | "batch_sizer_2021_from_sizes" => &MISSED_OF_BATCH_SIZER,
            _ => &[],
        };
        let (met, judged) = study.count_met();
        match study.study.as_str() {
            "dvfs_2019" => assert_eq!(judged - met, MISSED_OF_DVFS),
            "power_capping_2022_from_layers" => assert_errors_of_layers(study),
            name => assert_eq!(missed(study), known, "{name}"),
        }
        assert!(met > 0, "{}: {met} of {judged}", study.study);
        let has_few_parameters = 2 * study.free_parameters <= study.values;
        assert_eq!(
            has_few_parameters,
            study.study != MORE_THAN_HALF,
            "{}: {} parameters for {} values",
            study.study,
            study.free_parameters,
            study.values
        );
    }
    // The study with too many parameters has another form with few enough.
    assert!(FORMS.iter().any(|form| form.study == MORE_THAN_HALF));
    let rows: usize = studies[0].tables.iter().map(|table| table.rows.len()).sum();
    assert_eq!(rows, 60);
}

/// The best caps of the paper are nearly the best in the simulator. They were used to choose among voltage curves, so this
/// guards a fit and proves little. V100 with Inception v3 is an exception: its least energy is printed at 170 W, where a
/// smooth curve has it at 150 W.
#[test]
fn the_published_best_caps_are_nearly_optimal_in_the_simulator() {
    let (mut cases, mut good, mut near) = (0, 0, 0);
    let mut studies = HashMap::new();
    for row in read_cap_rows().unwrap() {
        let objective = match row.selection.as_str() {
            "min E" => Objective::Energy,
            "min EDP" => Objective::Edp,
            "min EDS(k=2.0)" => Objective::Eds(2.0),
            "min EDS(k=1.5)" => Objective::Eds(1.5),
            _ => continue,
        };
        let study = studies
            .entry((row.gpu.clone(), row.network))
            .or_insert_with(|| {
                let definition = Definition {
                    repeat: Some(20),
                    ..Definition::simulated(&row.gpu, row.network)
                };
                sweep_all(&definition)
            });
        let outcomes: Vec<_> = study.points.iter().filter_map(Point::outcome).collect();
        let reference = study.reference.outcome().unwrap();
        let ours = best(&outcomes, &reference, objective).unwrap();
        let caps: Vec<_> = study
            .points
            .iter()
            .filter_map(|p| p.configuration.power_cap())
            .collect();
        let theirs = caps.iter().position(|cap| *cap == row.power_cap).unwrap();
        let value = |index: usize| objective.value(&outcomes[index], &reference).unwrap();
        cases += 1;
        good += usize::from(value(theirs) / value(ours) - 1.0 <= 0.015);
        near += usize::from((caps[theirs] - caps[ours]).get().abs() <= 10.0);
    }
    assert_eq!(cases, 48);
    assert!(good >= 46, "{good} of {cases} within 1.5 % of the best");
    assert!(near >= 36, "{near} of {cases} within 10 W of the best");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let alone = sweep_all(&of_v100("resnet50"));
    for threads in [2, 3, 7] {
        let count = NonZeroUsize::new(threads).unwrap();
        let together = sweep(&of_v100("resnet50"), count);
        assert_eq!(bits(&alone), bits(&together.unwrap()), "{threads} threads");
    }
}

#[test]
fn a_run_depends_only_on_its_seed_configuration_and_subject() {
    let whole = sweep_all(&of_v100("resnet50"));
    let one = sweep_all(&Definition {
        power_cap: caps("150"),
        repeat: Some(2),
        ..of_v100("resnet50")
    });
    assert_eq!(whole.points[0].runs[..2], one.points[0].runs[..]);
    let other_seed = sweep_all(&Definition {
        seed: Some(2),
        ..of_v100("resnet50")
    });
    assert_ne!(bits(&whole), bits(&other_seed));
    let first = &whole.points[0].runs;
    assert_ne!(first[0].end, first[1].end);
}

#[test]
fn the_reference_is_the_default_cap_even_if_it_is_not_on_the_axis() {
    let study = sweep_all(&Definition {
        power_cap: caps("200,150"),
        ..of_v100("alexnet")
    });
    let cap = |point: &Point| point.configuration.power_cap().unwrap().get();
    assert_eq!(
        study.points.iter().map(cap).collect::<Vec<_>>(),
        [200.0, 150.0]
    );
    assert_eq!(cap(&study.reference), 300.0);
    assert_eq!(study.reference.runs.len(), 5);
}

#[test]
fn phases_sum_to_the_run() {
    let study = sweep_all(&Definition::simulated("quadro_rtx_6000", "vgg19"));
    let run = study.points[0].results().next().unwrap();
    let names: Vec<_> = run.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["host", "forward", "backward"]);
    let energy: f64 = run
        .phases
        .iter()
        .filter_map(|phase| Some(phase.energy?.get()))
        .sum();
    let whole = run.energies.job_gpus.unwrap().value.get();
    assert!((energy / whole - 1.0).abs() < 1e-12);
}
