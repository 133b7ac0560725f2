//! Fits the constants of predictions to networks measured on an H200, and judges them on networks that were left out.
//!
//!     cargo run --release -p sweetspot-benchmarks --bin predict
//!
//! Prints the constants for the GPU's profile, and the errors of networks and of families of networks that took no part
//! in the fit that predicts them.

mod constants;
mod rows;

use anyhow::Result;
use sweetspot_predict::Pass;

use constants::{ENERGY, Energies, TIME, TRAINING, fit_energy, fit_time, fit_training};
use rows::{MeasuredRow, family, measured_rows};

fn main() -> Result<()> {
    let inference = measured_rows("zoo_inference.csv", Pass::Inference)?;
    let training = measured_rows("zoo_training.csv", Pass::Training)?;
    let all = Fitted::new(&inference, &training, None);
    println!(
        "fitted {} constants to {} rows",
        TIME + ENERGY + TRAINING,
        inference.len() + training.len()
    );
    report("fitted", &[(&all, &inference, &training)]);
    let name = |row: &MeasuredRow| row.network.name.clone();
    let by_network = left_out(&inference, &training, &all, &name);
    let errors = report("networks left out", &borrowed(&by_network));
    let by_family = left_out(&inference, &training, &all, &|row| {
        family(&row.network.name).to_owned()
    });
    report("families left out", &borrowed(&by_family));
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
    fn to_toml(&self, errors: [f64; 4]) -> String {
        constants::to_toml(&self.time, &self.energy, &self.training, errors)
    }

    /// The prediction of a row divided by its measurement: time, power and energy.
    fn ratios(&self, row: &MeasuredRow) -> Energies {
        constants::ratios(row, &self.time, &self.energy, &self.training)
    }
}

/// A fit with the rows that it is judged on.
type Judged<'a> = (&'a Fitted, &'a [MeasuredRow], &'a [MeasuredRow]);

/// Fits with and judged rows that this owns.
type OwnJudged = (Fitted, Vec<MeasuredRow>, Vec<MeasuredRow>);

fn borrowed(judged: &[OwnJudged]) -> Vec<Judged<'_>> {
    let all = judged.iter();
    all.map(|(fit, inference, training)| (fit, inference.as_slice(), training.as_slice()))
        .collect()
}

/// For each group of rows, a fit to all others.
fn left_out(
    inference: &[MeasuredRow],
    training: &[MeasuredRow],
    near: &Fitted,
    group: &dyn Fn(&MeasuredRow) -> String,
) -> Vec<OwnJudged> {
    let mut groups: Vec<String> = inference.iter().map(group).collect();
    groups.sort();
    groups.dedup();
    let split = |rows: &[MeasuredRow], name: &str| -> (Vec<MeasuredRow>, Vec<MeasuredRow>) {
        rows.iter().cloned().partition(|row| group(row) == *name)
    };
    let judged = groups.iter().map(|name| {
        let (own, others) = split(inference, name);
        let (own_training, other_training) = split(training, name);
        let fitted = Fitted::new(&others, &other_training, Some(near));
        (fitted, own, own_training)
    });
    judged.collect()
}

/// Prints the errors, and returns those that 95 % of the predictions stay within: of time, power and energy in
/// inference, and of all of them in training.
fn report(about: &str, judged: &[Judged<'_>]) -> [f64; 4] {
    println!("\n{about}:  median and 90th percentile of the error, 95 % within");
    let mut within = [0.0; 4];
    for (mode, is_training) in [("inference", false), ("training", true)] {
        let mut ratios = Vec::new();
        for (fit, inference, training) in judged {
            let rows = if is_training { training } else { inference };
            ratios.extend(rows.iter().map(|row| fit.ratios(row)));
        }
        for (column, what) in ["time", "power", "energy"].iter().enumerate() {
            let errors: Vec<f64> = ratios
                .iter()
                .map(|ratio| (ratio[column] - 1.0).abs())
                .collect();
            let factors: Vec<f64> = ratios
                .iter()
                .map(|ratio| ratio[column].max(1.0 / ratio[column]) - 1.0)
                .collect();
            let bound = quantile(&factors, 0.95);
            println!(
                "  {mode:9} {what:6}  {:5.1} %  {:5.1} %  {:5.1} %",
                100.0 * quantile(&errors, 0.5),
                100.0 * quantile(&errors, 0.9),
                100.0 * bound
            );
            match is_training {
                true => within[3] = bound.max(within[3]),
                false => within[column] = bound,
            }
        }
    }
    if std::env::args().any(|argument| argument == "--rows") {
        for (fit, inference, training) in judged {
            for row in inference.iter().chain(*training) {
                let [time, power, energy] = fit.ratios(row);
                println!(
                    "    {:20} {:3} {:?}  time {time:.2} power {power:.2} energy {energy:.2}",
                    row.network.name, row.batch, row.pass
                );
            }
        }
    }
    within
}

/// A quantile of values.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}
