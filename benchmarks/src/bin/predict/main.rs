//! Fits the constants of predictions to networks measured on an H200, and judges them on networks that were left out.
//!
//!     cargo run --release -p sweetspot-benchmarks --bin predict
//!
//! Prints the constants for the GPU's profile, and the errors of networks and of families of networks that took no part
//! in the fit that predicts them.

mod constants;
mod host;
mod others;
mod rows;

use std::collections::BTreeMap;

use anyhow::Result;
use sweetspot_sim::Mode;

use constants::{ENERGY, Energies, TIME, TRAINING, fit_energy, fit_time, fit_training};
use rows::{JUDGED, MeasuredRow, ZOO, family, measured_rows};

fn main() -> Result<()> {
    let inference = measured_rows("zoo_inference.csv", &ZOO)?;
    let training = measured_rows("zoo_training.csv", &ZOO)?;
    let all = Fitted::new(&inference, &training, None);
    println!(
        "fitted {} constants to {} rows",
        TIME + ENERGY + TRAINING,
        inference.len() + training.len()
    );
    let rows: Vec<MeasuredRow> = inference.iter().chain(&training).cloned().collect();
    report("fitted", &judge(&all, &rows));
    let by_network = left_out(&inference, &training, &all, &|row| row.network.name.clone());
    let mut errors = report("networks left out", &by_network);
    coverage_of_others(&by_network);
    let spread = host_spread()?;
    for (error, spread) in errors[1].iter_mut().zip(spread) {
        *error = error.ln_1p().hypot(spread).exp_m1();
    }
    println!(
        "  with the spread of hosts, 95 % of trainings are expected within {:.1}, {:.1} and {:.1} %",
        100.0 * errors[1][0],
        100.0 * errors[1][1],
        100.0 * errors[1][2]
    );
    let by_family = left_out(&inference, &training, &all, &|row| {
        family(&row.network.name).to_owned()
    });
    report("families left out", &by_family);

    let names: Vec<&str> = inference
        .iter()
        .map(|row| row.network.name.as_str())
        .collect();
    let mut later = measured_rows("judge_networks.csv", &JUDGED)?;
    later.retain(|row| row.mode == Mode::Train || !names.contains(&row.network.name.as_str()));
    // Within a graph, Hugging Face's BERT computes attention in fp32 with many kernels (`networks.py --kernels`), and GPT-2's
    // last product gave a constant.
    let is_language_model =
        |row: &MeasuredRow| ["bert_base", "gpt2"].contains(&row.network.name.as_str());
    let (language_models, later): (Vec<_>, Vec<_>) = later.into_iter().partition(is_language_model);
    let later = judge(&all, &later);
    report(
        "networks that were measured after all rules and constants were chosen",
        &later,
    );
    coverage(&later, errors);
    let again = judge(&all, &measured_rows("judge_training.csv", &JUDGED)?);
    report(
        "trainings, most of them fitted, on another machine of the same kind",
        &again,
    );
    report("language models", &judge(&all, &language_models));
    report_memory(&judge(&all, &measured_rows("judge_memory.csv", &JUDGED)?));
    host::report_batch_study()?;
    others::report_other_gpus()?;
    others::report_time()?;
    println!("\n{}", all.to_toml(errors));
    Ok(())
}

/// The constants that were fitted to some rows.
struct Fitted {
    time: Vec<f64>,
    energy: Vec<f64>,
    training: Vec<f64>,
}

impl Fitted {
    /// Fits all constants, from those of another fit if there is one.
    fn new(inference: &[MeasuredRow], training: &[MeasuredRow], near: Option<&Self>) -> Self {
        let time = fit_time(inference, near.map(|near| near.time.as_slice()));
        let energy = fit_energy(inference, &time);
        let training = fit_training(training, &time, &energy);
        Self {
            time,
            energy,
            training,
        }
    }

    /// The constants as they stand in a profile.
    fn to_toml(&self, errors: Bounds) -> String {
        constants::to_toml(&self.time, &self.energy, &self.training, errors)
    }

    /// The prediction of a row divided by its measurement: time, power and energy; and the predicted memory.
    fn ratios(&self, row: &MeasuredRow) -> (Energies, f64) {
        constants::ratios(row, &self.time, &self.energy, &self.training)
    }
}

/// A row with its prediction divided by its measurement: time, power and energy.
struct Judged {
    row: MeasuredRow,
    ratios: Energies,
    /// The predicted memory, in bytes.
    memory: f64,
}

/// The errors that 95 % of predictions stay within: of time, power and energy, in inference and in training.
type Bounds = [[f64; 3]; 2];

/// Predicts rows.
fn judge(fitted: &Fitted, rows: &[MeasuredRow]) -> Vec<Judged> {
    let judged = rows.iter().map(|row| {
        let (ratios, memory) = fitted.ratios(row);
        Judged {
            row: row.clone(),
            ratios,
            memory,
        }
    });
    judged.collect()
}

/// Predicts each group of rows by a fit to all others.
fn left_out(
    inference: &[MeasuredRow],
    training: &[MeasuredRow],
    near: &Fitted,
    group: &dyn Fn(&MeasuredRow) -> String,
) -> Vec<Judged> {
    let mut groups: Vec<String> = inference.iter().map(group).collect();
    groups.sort();
    groups.dedup();
    let split = |rows: &[MeasuredRow], name: &str| -> (Vec<MeasuredRow>, Vec<MeasuredRow>) {
        rows.iter().cloned().partition(|row| group(row) == *name)
    };
    let judged = groups.iter().flat_map(|name| {
        let (mut own, others) = split(inference, name);
        let (own_training, other_training) = split(training, name);
        own.extend(own_training);
        judge(&Fitted::new(&others, &other_training, Some(near)), &own)
    });
    judged.collect()
}

/// Prints the errors, and returns those that 95 % of the predictions stay within.
fn report(about: &str, judged: &[Judged]) -> Bounds {
    println!("\n{about}:  median and 90th percentile of the error, 95 % within");
    let within = bounds(judged);
    for (mode, within) in [Mode::Infer, Mode::Train].into_iter().zip(within) {
        if !judged.iter().any(|judged| judged.row.mode == mode) {
            continue;
        }
        for (column, what) in ["time", "power", "energy"].iter().enumerate() {
            let rows = judged.iter().filter(|judged| judged.row.mode == mode);
            let errors: Vec<f64> = rows
                .map(|judged| (judged.ratios[column] - 1.0).abs())
                .collect();
            println!(
                "  {:9} {what:6}  {:5.1} %  {:5.1} %  {:5.1} %",
                mode.to_string(),
                100.0 * quantile(&errors, 0.5),
                100.0 * quantile(&errors, 0.9),
                100.0 * within[column]
            );
        }
    }
    if std::env::args().any(|argument| argument == "--rows") {
        for Judged { row, ratios, .. } in judged {
            let [time, power, energy] = ratios;
            println!(
                "    {:20} {:3} {}  time {time:.2} power {power:.2} energy {energy:.2}",
                row.network.name, row.batch, row.mode
            );
        }
    }
    within
}

/// Prints how far the predicted memory is off.
fn report_memory(judged: &[Judged]) {
    let mut ratios = [Vec::new(), Vec::new()];
    for Judged { row, memory, .. } in judged {
        let Some(measured) = row.memory else { continue };
        ratios[usize::from(row.mode == Mode::Train)].push(memory / measured);
        if std::env::args().any(|argument| argument == "--rows") {
            println!(
                "    {:20} {:3} {}  memory {:.2}, measured {:.2} GB",
                row.network.name,
                row.batch,
                row.mode,
                1e-9 * memory,
                1e-9 * measured
            );
        }
    }
    println!(
        "\npredicted memory, divided by that measured: 10th percentile, median, 90th percentile"
    );
    for (mode, ratios) in [Mode::Infer, Mode::Train].iter().zip(&ratios) {
        let [low, middle, high] = [0.1, 0.5, 0.9].map(|share| quantile(ratios, share));
        println!(
            "  {mode}: {low:.2}, {middle:.2}, {high:.2} of {} rows",
            ratios.len()
        );
    }
}

/// By how much a prediction is off, in either direction: 0.5 for one and a half times as much, or two thirds.
fn factor(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio) - 1.0
}

/// The errors that 95 % of the predictions stay within.
fn bounds(judged: &[Judged]) -> Bounds {
    [Mode::Infer, Mode::Train].map(|mode| {
        [0, 1, 2].map(|column| {
            let rows = judged.iter().filter(|judged| judged.row.mode == mode);
            let factors: Vec<f64> = rows.map(|judged| factor(judged.ratios[column])).collect();
            quantile(&factors, 0.95)
        })
    })
}

/// Prints the share of rows within 95 % intervals that were made without them: from the errors of other networks.
fn coverage_of_others(judged: &[Judged]) {
    let inside = |judged_row: &Judged| {
        let others = judged.iter();
        let others = others.filter(|other| other.row.network.name != judged_row.row.network.name);
        let others: Vec<Judged> = others
            .map(|other| Judged {
                row: other.row.clone(),
                ratios: other.ratios,
                memory: other.memory,
            })
            .collect();
        is_inside(judged_row, &bounds(&others))
    };
    print_coverage(judged, &inside);
}

/// Prints the share of rows within intervals.
fn coverage(judged: &[Judged], errors: Bounds) {
    print_coverage(judged, &|judged| is_inside(judged, &errors));
}

/// How much the same training differs between machines with the same kind of GPU: 1.96 times the standard deviation of the
/// logarithms of time, power and energy.
fn host_spread() -> Result<[f64; 3]> {
    let mut rows = measured_rows("zoo_training.csv", &ZOO)?;
    for file in [
        "judge_networks.csv",
        "judge_training.csv",
        "judge_memory.csv",
    ] {
        rows.extend(measured_rows(file, &JUDGED)?);
    }
    rows.retain(|row| row.mode == Mode::Train);
    let mut same: BTreeMap<(String, u64), Vec<[f64; 3]>> = BTreeMap::new();
    for row in rows {
        let values = [row.time, row.power, row.time * row.power];
        let key = (row.network.name.clone(), row.batch);
        same.entry(key).or_default().push(values.map(f64::ln));
    }
    let mut squares = [0.0; 3];
    let mut free = 0;
    for values in same.values().filter(|values| values.len() > 1) {
        free += values.len() - 1;
        for (column, square) in squares.iter_mut().enumerate() {
            let all = values.iter().map(|value| value[column]);
            let mean = all.clone().sum::<f64>() / values.len() as f64;
            *square += all.map(|value| (value - mean).powi(2)).sum::<f64>();
        }
    }
    println!(
        "  the same trainings on other machines: {} pairs, time {:.1} %, power {:.1} %, energy {:.1} % (standard deviation)",
        free,
        100.0 * (squares[0] / free as f64).sqrt(),
        100.0 * (squares[1] / free as f64).sqrt(),
        100.0 * (squares[2] / free as f64).sqrt()
    );
    Ok(squares.map(|square| 1.96 * (square / free as f64).sqrt()))
}

/// Whether time, power and energy of a row are within their intervals.
fn is_inside(judged: &Judged, errors: &Bounds) -> [bool; 3] {
    let errors = errors[usize::from(judged.row.mode == Mode::Train)];
    [0, 1, 2].map(|column| factor(judged.ratios[column]) <= errors[column])
}

fn print_coverage(judged: &[Judged], inside: &dyn Fn(&Judged) -> [bool; 3]) {
    for mode in [Mode::Infer, Mode::Train] {
        let rows = judged.iter().filter(|judged| judged.row.mode == mode);
        let rows: Vec<[bool; 3]> = rows.map(inside).collect();
        let share = |column: usize| {
            let within = rows.iter().filter(|row| row[column]).count();
            100.0 * within as f64 / rows.len() as f64
        };
        println!(
            "  within the 95 % intervals, {mode}: time {:.0} %, power {:.0} %, energy {:.0} % of {} rows",
            share(0),
            share(1),
            share(2),
            rows.len()
        );
    }
}

/// A quantile of values.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}
