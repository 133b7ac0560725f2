//! Predictions of profiles fitted to measured rows, and rows that are rejected.

use std::path::Path;

use sweetspot_device::Settings;
use sweetspot_fit::{
    FitError, FitRequest, MeasuredRow, RowChoice, fit_workload, measured_rows, predict,
    workload_text,
};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{Mode, find_gpu, parse_workload};

const NETWORKS: [(Mode, &str); 8] = [
    (Mode::Infer, "mobilenet_v2"),
    (Mode::Infer, "resnet50"),
    (Mode::Infer, "alexnet"),
    (Mode::Infer, "googlenet"),
    (Mode::Infer, "inception_v3"),
    (Mode::Train, "alexnet"),
    (Mode::Train, "resnet50"),
    (Mode::Train, "vgg19"),
];

fn h200_rows(mode: Mode, network: &str) -> Vec<MeasuredRow> {
    let file = match mode {
        Mode::Infer => "batch_study_inference.csv",
        Mode::Train => "batch_study_training.csv",
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/measured_h200");
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let choice = RowChoice {
        network: Some(network.to_owned()),
        mode: Some(mode),
    };
    measured_rows(file, &text, &choice).unwrap().0
}

fn request(mode: Mode, network: &str, rows: Vec<MeasuredRow>) -> FitRequest {
    let (gpu_name, gpu) = find_gpu("nvidia_h200").unwrap();
    FitRequest {
        gpu_name,
        gpu,
        network: network.to_owned(),
        mode,
        rows,
    }
}

/// The tolerated deviation by batch size: below 64 the host limits the speed, and its time varies.
fn allowed(batch: u64) -> f64 {
    if batch >= 64 { 0.10 } else { 0.35 }
}

/// Each network is fitted to every other row, and the rest is predicted, both ways. Three values of 130 are
/// known to be out of reach: AlexNet's batch of 1, measured slower than its batch of 2; GoogLeNet's batch of
/// 32, measured slower than its batch of 64; and AlexNet's largest training batch from two smaller ones.
#[test]
fn half_of_the_rows_predicts_the_rest() {
    const OUT_OF_REACH: [(Mode, &str, u64); 3] = [
        (Mode::Infer, "alexnet", 1),
        (Mode::Infer, "googlenet", 32),
        (Mode::Train, "alexnet", 256),
    ];
    let (mut values, mut missed) = (0, Vec::new());
    for (mode, network) in NETWORKS {
        for half in [0, 1] {
            let rows = h200_rows(mode, network);
            let (to, rest): (Vec<_>, Vec<_>) = rows
                .into_iter()
                .enumerate()
                .partition(|(index, _)| index % 2 == half);
            let request = request(mode, network, to.into_iter().map(|(_, row)| row).collect());
            let fitted = fit_workload(&request).unwrap();
            assert!(fitted.parameters < fitted.values);
            for (_, row) in rest {
                let here = predict(&request, &fitted.profile, &row).unwrap();
                for off in [here.throughput_deviation(), here.power_deviation()] {
                    values += 1;
                    if off.abs() > Ratio::new(allowed(row.batch)) {
                        missed.push((mode, network, row.batch));
                    }
                }
            }
        }
    }
    assert_eq!(values, 130);
    for miss in &missed {
        assert!(OUT_OF_REACH.contains(miss), "{miss:?} of {missed:?}");
    }
}

#[test]
fn iterations_of_a_fitted_profile_take_longer_the_larger_the_batch() {
    for (mode, network) in NETWORKS {
        let request = request(mode, network, h200_rows(mode, network));
        let fitted = fit_workload(&request).unwrap();
        let time = |batch| {
            let row = MeasuredRow {
                batch,
                iterations: 100,
                ..request.rows[0].clone()
            };
            predict(&request, &fitted.profile, &row).unwrap().iteration
        };
        let times: Vec<Seconds> = (0..11).map(|power| time(1 << power)).collect();
        assert!(times.is_sorted_by(|a, b| a < b), "{network}: {times:?}");
    }
}

/// A fit to simulated rows recovers the parameters that made them.
#[test]
fn a_fit_to_simulated_rows_recovers_their_parameters() {
    let text = "power_cap_w,batch,gpus,status,time_s,energy_j,items\n";
    let (gpu_name, gpu) = find_gpu("v100").unwrap();
    let caps = [150.0, 175.0, 200.0, 225.0, 250.0, 275.0, 300.0];
    let known = parse_workload(
        "resnet50.toml",
        include_str!("../../../simulate/sim/profiles/workloads/power_capping_2022/resnet50.toml"),
    )
    .unwrap();
    let mut request = FitRequest {
        gpu_name,
        gpu,
        network: "resnet50".to_owned(),
        mode: Mode::Train,
        rows: Vec::new(),
    };
    let mut csv = text.to_owned();
    for cap in caps {
        let row = MeasuredRow {
            batch: 128,
            settings: Settings {
                power_cap: Some(Watts::new(cap)),
                ..Settings::default()
            },
            iterations: 500,
            iteration: Seconds::new(1.0),
            power: Watts::new(1.0),
        };
        let made = predict(&request, &known, &row).unwrap();
        let time = made.iteration.get() * 500.0;
        let energy = made.power.get() * time;
        csv += &format!("{cap},128,1,ok,{time},{energy},64000\n");
    }
    csv += "120,128,1,failed,,,\n";
    let (rows, _) = measured_rows("sweep.csv", &csv, &RowChoice::default()).unwrap();
    assert_eq!(rows.len(), caps.len());
    request.rows = rows;
    let fitted = fit_workload(&request).unwrap();
    for row in &fitted.rows {
        assert!(
            row.throughput_deviation().abs() < Ratio::new(0.005),
            "{row:?}"
        );
        assert!(row.power_deviation().abs() < Ratio::new(0.005), "{row:?}");
    }
    let (here, there) = (&fitted.profile.on[0], &known.on[0]);
    for (a, b) in [
        (here.host, there.host),
        (here.core, there.core),
        (here.memory, there.memory),
    ] {
        assert!(
            (a / b - Ratio::new(1.0)).abs() < Ratio::new(0.05),
            "{here:?}"
        );
    }
}

#[test]
fn the_text_of_a_profile_reads_back_unchanged() {
    let request = request(Mode::Train, "a \"name\"\\", h200_rows(Mode::Train, "vgg19"));
    let fitted = fit_workload(&request).unwrap();
    let read = parse_workload("mine.toml", &workload_text(&fitted)).unwrap();
    assert_eq!(read, fitted.profile);
}

/// Few rows have few parameters, and too few rows are an error.
#[test]
fn there_are_always_fewer_parameters_than_values() {
    let rows = h200_rows(Mode::Infer, "resnet50");
    for count in 2..=rows.len() {
        let request = request(Mode::Infer, "resnet50", rows[rows.len() - count..].to_vec());
        let fitted = fit_workload(&request).unwrap();
        assert_eq!(fitted.values, 2 * count);
        assert!(fitted.parameters < fitted.values, "{count} rows");
    }
    for few in [&rows[..1], &[rows[0].clone(), rows[0].clone()]] {
        let refused = fit_workload(&request(Mode::Infer, "resnet50", few.to_vec()));
        assert_eq!(refused, Err(FitError::TooFew { rows: 1 }));
    }
}

#[test]
fn a_row_that_the_gpu_cannot_run_is_an_error() {
    let mut rows = h200_rows(Mode::Infer, "resnet50");
    rows[3].settings.power_cap = Some(Watts::new(5000.0));
    let refused = fit_workload(&request(Mode::Infer, "resnet50", rows)).unwrap_err();
    let message = refused.to_string();
    assert!(
        message.starts_with("the row with batch 8 cannot have been measured on this GPU: "),
        "{message}"
    );
}

#[test]
fn invalid_rows_are_reported_with_file_line_and_column() {
    let read = |text: &str| {
        measured_rows("my.csv", text, &RowChoice::default())
            .unwrap_err()
            .to_string()
    };
    let cases = [
        (
            "batch,items_per_s\n1,2\n",
            "my.csv: there is no column `mean_w` (or `average_power_w`, or `energy_j` with `time_s`); there are batch, items_per_s",
        ),
        (
            "batch,mean_w\n1,2\n",
            "my.csv: there is no column `items_per_s` (or `samples_per_s`, or `time_s` with `items`); there are batch, mean_w",
        ),
        (
            "n,items_per_s,mean_w\n1,2,3\n",
            "my.csv: there is no column `batch`; there are n, items_per_s, mean_w",
        ),
        (
            "batch,items_per_s,mean_w\n1,2,3\n8,-5,3\n",
            "my.csv:3: `items_per_s`: `-5` must be a number above 0",
        ),
        (
            "batch,items_per_s,mean_w\n0.5,2,3\n",
            "my.csv:2: `batch`: `0.5` must be a whole number of at least 1",
        ),
        (
            "batch,items_per_s,mean_w\n1,2,NaN\n",
            "my.csv:2: `mean_w`: `NaN` must be a number above 0",
        ),
        (
            "batch,gpus,items_per_s,mean_w\n1,2,2,3\n",
            "my.csv:2: `gpus`: `2` must be 1, because a profile is fitted to runs on one GPU",
        ),
        (
            "network,batch,items_per_s,mean_w\na,1,2,3\nb,1,2,3\n",
            "my.csv has rows of several networks: choose one of a, b",
        ),
        (
            "batch,items_per_s,mean_w\n",
            "my.csv: not a CSV file with a header: it has no rows",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected);
    }
}
