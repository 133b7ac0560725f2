//! Fits profiles to some rows of each network measured on the H200 and predicts the others: to every other
//! batch size (both halves), and to all but the two largest batches.
//!
//! `cargo run --release -p sweetspot-fit --example half_half` prints a Markdown table; a mark shows
//! values that are more than 10 % off (35 % below a batch of 64).

use std::error::Error;
use std::path::Path;

use sweetspot_fit::{FitRequest, MeasuredRow, RowChoice, fit_workload, measured_rows, predict};
use sweetspot_sim::{GpuProfile, Mode, find_gpu};

const STUDIES: [(Mode, &str, &[&str]); 2] = [
    (
        Mode::Infer,
        "batch_study_inference.csv",
        &[
            "mobilenet_v2",
            "resnet50",
            "alexnet",
            "googlenet",
            "inception_v3",
        ],
    ),
    (
        Mode::Train,
        "batch_study_training.csv",
        &["alexnet", "resnet50", "vgg19"],
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/measured_h200");
    let (gpu_name, gpu) = find_gpu("nvidia_h200")?;
    println!(
        "| network | fitted to batches | parameters | predicted: batch, items/s and W off [%] |"
    );
    println!("|---|---|---|---|");
    for (mode, file, networks) in STUDIES {
        let text = std::fs::read_to_string(data.join(file))?;
        for network in networks {
            let choice = RowChoice {
                network: Some((*network).to_owned()),
                mode: Some(mode),
            };
            let (rows, _) = measured_rows(file, &text, &choice)?;
            let most = rows.len() - 2;
            let splits: [&dyn Fn(usize) -> bool; 3] =
                [&|row| row % 2 == 0, &|row| row % 2 == 1, &|row| row < most];
            for is_fitted in splits {
                let (to, rest): (Vec<_>, Vec<_>) = rows
                    .iter()
                    .cloned()
                    .enumerate()
                    .partition(|(index, _)| is_fitted(*index));
                let request = FitRequest {
                    gpu_name: gpu_name.clone(),
                    gpu: GpuProfile::clone(&gpu),
                    network: (*network).to_owned(),
                    mode,
                    rows: to.into_iter().map(|(_, row)| row).collect(),
                };
                let rest: Vec<MeasuredRow> = rest.into_iter().map(|(_, row)| row).collect();
                println!("{}", line(&request, &rest)?);
            }
        }
    }
    Ok(())
}

fn line(request: &FitRequest, rest: &[MeasuredRow]) -> Result<String, Box<dyn Error>> {
    let fitted = fit_workload(request)?;
    let batches: Vec<String> = request
        .rows
        .iter()
        .map(|row| row.batch.to_string())
        .collect();
    let mut predicted = Vec::new();
    for row in rest {
        let here = predict(request, &fitted.profile, row)?;
        let may = if row.batch >= 64 { 0.10 } else { 0.35 };
        let mark = |off: f64| {
            let sign = if off.abs() > may { "!" } else { "" };
            format!("{:+.1}{sign}", 100.0 * off)
        };
        predicted.push(format!(
            "{}: {} {}",
            row.batch,
            mark(here.throughput_deviation().get()),
            mark(here.power_deviation().get())
        ));
    }
    Ok(format!(
        "| {}, {} | {} | {} | {} |",
        request.network,
        request.mode,
        batches.join(" "),
        fitted.parameters,
        predicted.join("; ")
    ))
}
