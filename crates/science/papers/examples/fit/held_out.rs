//! Fits without each row or group of rows of a study, and stores their parameters.

use std::error::Error;
use std::path::Path;

use sweetspot_papers::{
    IsWanted, Parameter, ParameterProfile, SimulatorDeviations, ValueOrigin, compare_rows,
};
use sweetspot_stats::fit;

use crate::candidate::{Candidate, rounded, stored_profiles};
use crate::residuals::residuals_without;
use crate::sum_of_squares;

/// What the fits leave out: tables and groups of rows, or each row if there are no groups.
fn groups(study: &str) -> &'static [&'static str] {
    match study {
        "node_power_capping_2023" => {
            &["1 GPU", "2 GPUs", "4 GPUs", "8 GPUs", "figure 7", "table 1"]
        }
        "power_capping_2022_from_layers" => &[
            "alexnet",
            "vgg19",
            "inception_v3",
            "inception_v4",
            "resnet50",
            "resnet152",
        ],
        "dvfs_2019" => &[
            "alexnet",
            "vgg16",
            "googlenet",
            "resnet50",
            "table III",
            "table IV",
            "the text",
        ],
        _ => &[],
    }
}

/// The labels of all rows with a value that profiles are fitted to, each once.
fn fitted_rows(deviations: &SimulatorDeviations) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for (label, values) in deviations.tables.iter().flat_map(|table| &table.rows) {
        let mut values = values.iter();
        let is_fitted = values.any(|value| value.origin == Some(ValueOrigin::Fitted));
        if is_fitted && !labels.contains(label) {
            labels.push(label.clone());
        }
    }
    labels
}

/// Whether a parameter is one of a GPU that the label of a row begins with, or of no certain GPU.
fn is_of_gpu(parameter: &Parameter, gpu: &str) -> bool {
    match (&parameter.profile, parameter.key.strip_prefix("on.")) {
        (ParameterProfile::Gpu(name), _) => name == gpu,
        (_, Some(key)) => key.starts_with(&format!("{gpu}.")),
        _ => true,
    }
}

/// Makes all fits of a study and writes `data/held_out/held_out_STUDY.csv`.
pub fn run(study: &str, rounds: usize) -> Result<(), Box<dyn Error>> {
    let profiles = stored_profiles()?;
    let whole = Candidate::built_in(study)?;
    let wanted: IsWanted<'_> = &|_, _| true;
    let deviations = compare_rows(study, &profiles, wanted)?.ok_or("no such study")?;
    let withouts: Vec<String> = match groups(study) {
        [] => fitted_rows(&deviations),
        groups => groups.iter().map(|group| (*group).to_owned()).collect(),
    };
    let mut columns = Vec::new();
    for without in &withouts {
        // In power_capping_2022 the rows of one GPU do not depend on the other.
        let gpu = without.split(' ').next().unwrap_or_default();
        let is_apart = study == "power_capping_2022";
        let candidate = whole.only(|parameter| !is_apart || is_of_gpu(parameter, gpu));
        let is_wanted = |_: &str, label: &str| !is_apart || label.starts_with(gpu);
        let residuals = |values: &[f64]| {
            let trial = Candidate {
                values: values.to_vec(),
                ..candidate.clone()
            };
            let compared = trial.checked_profiles(&profiles).and_then(|profiles| {
                let compared = compare_rows(study, &profiles, &is_wanted).ok()??;
                Some(residuals_without(&compared, without))
            });
            compared
                .filter(|all| all.iter().all(|value| value.is_finite()))
                .unwrap_or_default()
        };
        let count = residuals(&candidate.values).len();
        let checked = |values: &[f64]| {
            let own = residuals(values);
            if own.len() == count {
                own
            } else {
                vec![1e6; count]
            }
        };
        let found = fit(checked, &candidate.values, &candidate.bounds, rounds);
        println!(
            "without {without}: {:.3} after {} steps",
            sum_of_squares(&found.residuals),
            found.steps
        );
        columns.push(Candidate {
            values: found
                .parameters
                .iter()
                .map(|value| rounded(*value))
                .collect(),
            ..candidate
        });
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/held_out");
    let mut writer = csv::Writer::from_path(path.join(format!("held_out_{study}.csv")))?;
    let headings = ["profile", "parameter"].into_iter();
    writer.write_record(headings.chain(withouts.iter().map(String::as_str)))?;
    for parameter in &whole.parameters {
        let mut record = vec![parameter.profile.to_string(), parameter.key.clone()];
        for column in &columns {
            let mut own = column.with_units();
            let found = own.find(|(own, _)| *own == parameter);
            record.push(found.map_or_else(String::new, |(_, value)| value.to_string()));
        }
        writer.write_record(&record)?;
    }
    writer.flush()?;
    Ok(())
}
