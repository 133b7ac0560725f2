//! Predictions of published values by fits that did not use them.
//!
//! The fits are made by `cargo run --release -p sweetspot-papers --example fit -- STUDY --held-out`, which stores the
//! values of the parameters in `data/held_out/STUDY.csv`. The predictions are computed from them with the simulator.

use crate::deviations::{HeldOut, SimulatorDeviations, Table, compare_rows, compare_with};
use crate::origin::ValueOrigin;
use crate::tables::{PublishedError, table_text};
use crate::{PapersError, Parameter, ParameterValue, Profiles};

/// A stored fit to a part of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredFit {
    /// What the fit did not use: a table, or the rows whose title or label contains these words.
    pub without: String,
    /// The parameters that were fitted, with their values.
    pub values: Vec<(Parameter, ParameterValue)>,
}

/// Whether the words of `without` follow each other in the title of a table or in the label of a row.
pub fn is_held_out(without: &str, title: &str, label: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let words = text.split_whitespace();
        words
            .map(|word| word.trim_end_matches([':', ',']).to_owned())
            .collect()
    };
    let wanted = words(without);
    [title, label]
        .iter()
        .any(|text| words(text).windows(wanted.len()).any(|own| own == wanted))
}

/// Reads the stored fits of a study; none if there are none.
pub fn stored_fits(study: &str) -> Result<Vec<StoredFit>, PapersError> {
    let Some(text) = table_text(&format!("held_out_{study}.csv")) else {
        return Ok(Vec::new());
    };
    let damaged = |reason: String| PublishedError::Damaged {
        file: format!("held_out_{study}.csv"),
        reason,
    };
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headers = reader
        .headers()
        .map_err(|error| damaged(error.to_string()))?
        .clone();
    let mut fits: Vec<StoredFit> = headers
        .iter()
        .skip(2)
        .map(|without| StoredFit {
            without: without.to_owned(),
            values: Vec::new(),
        })
        .collect();
    for record in reader.records() {
        let record = record.map_err(|error| damaged(error.to_string()))?;
        let field = |index: usize| record.get(index).unwrap_or_default();
        let parameter = Parameter {
            profile: field(0).parse().map_err(damaged)?,
            key: field(1).to_owned(),
        };
        for (fit, text) in fits.iter_mut().zip(record.iter().skip(2)) {
            // An empty cell is a parameter that the values held out do not depend on.
            if !text.is_empty() {
                let value = text.parse().map_err(damaged)?;
                fit.values.push((parameter.clone(), value));
            }
        }
    }
    Ok(fits)
}

/// Adds the predictions of all stored fits of the study; none if a profile was changed, because the fits belong to the
/// profiles as they were fitted.
pub fn with_held_out(
    mut deviations: SimulatorDeviations,
    profiles: &Profiles,
) -> Result<SimulatorDeviations, PapersError> {
    let study = deviations.study.clone();
    deviations.changed_profiles = profiles.changed(&study)?;
    if !deviations.changed_profiles.is_empty() {
        deviations.held_out.clear();
        return Ok(deviations);
    }
    let labels = deviations.tables.iter().flat_map(|table| &table.rows);
    let labels: Vec<&String> = labels.map(|(label, _)| label).collect();
    let mut rows: Option<HeldOut> = None;
    let mut groups = Vec::new();
    let fits = stored_fits(&study)?;
    deviations.not_held_out = not_held_out(&deviations.tables, &fits);
    for fit in fits {
        let is_row = labels.contains(&&fit.without);
        let predicted = predict(&study, profiles, &fit)?;
        match (&mut rows, is_row) {
            (_, false) => groups.push(predicted),
            (Some(rows), true) => rows.append(predicted),
            (None, true) => {
                rows = Some(HeldOut {
                    without: EACH_ROW.to_owned(),
                    ..predicted
                });
            }
        }
    }
    // A study may know values that its only fit did not use.
    let known = std::mem::take(&mut deviations.held_out);
    deviations.held_out = rows.into_iter().chain(groups).chain(known).collect();
    Ok(deviations)
}

/// The number of fitted values that no stored fit leaves out.
fn not_held_out(tables: &[Table], fits: &[StoredFit]) -> usize {
    let of_table = |table: &Table| {
        let rows = table.rows.iter().filter(|(label, _)| {
            let mut fits = fits.iter();
            !fits.any(|fit| is_held_out(&fit.without, &table.title, label))
        });
        let values = rows.flat_map(|(_, values)| values);
        values
            .filter(|value| value.origin == Some(ValueOrigin::Fitted))
            .count()
    };
    tables.iter().map(of_table).sum()
}

/// What fits did not use, of which each leaves out another row.
const EACH_ROW: &str = "the row, each in turn";

/// Predicts the values that a fit did not use.
fn predict(study: &str, profiles: &Profiles, fit: &StoredFit) -> Result<HeldOut, PapersError> {
    let values = fit.values.iter();
    let values = values.map(|(parameter, value)| (parameter, value.clone()));
    let profiles = profiles.with_parameters(values)?;
    let is_wanted = |title: &str, label: &str| is_held_out(&fit.without, title, label);
    let compared = compare_rows(study, &profiles, &is_wanted)?;
    let tables = compared.into_iter().flat_map(|compared| compared.tables);
    let predicted = tables.flat_map(|mut table| {
        let title = table.title.clone();
        table.rows.retain(|(label, _)| is_wanted(&title, label));
        table.only(|value| value.origin == Some(ValueOrigin::Fitted))
    });
    let mut predicted: Vec<Table> = predicted.collect();
    let rows = predicted.iter_mut().flat_map(|table| &mut table.rows);
    for value in rows.flat_map(|(_, values)| values) {
        value.origin = Some(ValueOrigin::Predicted);
    }
    Ok(HeldOut {
        without: fit.without.clone(),
        tables: predicted,
    })
}

impl HeldOut {
    /// Adds other predictions, of tables with the same titles and columns to those tables.
    fn append(&mut self, other: Self) {
        for table in other.tables {
            let is_same =
                |own: &&mut Table| own.title == table.title && own.columns == table.columns;
            match self.tables.iter_mut().find(is_same) {
                Some(own) => own.rows.extend(table.rows),
                None => self.tables.push(table),
            }
        }
    }
}

/// The simulator's deviations from a study with the predictions of values that a fit did not use; `None` if there is no
/// study with this name.
pub fn deviations_of(
    study: &str,
    profiles: &Profiles,
) -> Result<Option<SimulatorDeviations>, PapersError> {
    let compared = compare_with(study, profiles)?;
    compared
        .map(|compared| with_held_out(compared, profiles))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of squared deviations, relative to their tolerances, of the values that a fit used.
    fn squares(study: &str, profiles: &Profiles, without: &str) -> f64 {
        let compared = compare_with(study, profiles).unwrap().unwrap();
        let used = |table: &Table| -> f64 {
            let rows = table.rows.iter();
            let rows = rows.filter(|(label, _)| !is_held_out(without, &table.title, label));
            let values = rows.flat_map(|(_, values)| values.iter().zip(&table.columns));
            values
                .filter(|(value, _)| value.origin == Some(ValueOrigin::Fitted))
                .filter_map(|(value, column)| {
                    let tolerance = value.tolerance.filter(|tolerance| *tolerance > 0.0)?;
                    Some((value.deviation(column.deviation_kind) / tolerance).powi(2))
                })
                .sum()
        };
        compared.tables.iter().map(used).sum()
    }

    /// The first stored fit of each study is a least-squares fit: no parameter can change by 3 % and bring the values that
    /// the fit used clearly nearer.
    #[test]
    fn stored_fits_are_least_squares() {
        let profiles = Profiles::built_in().unwrap();
        for study in [
            "node_power_capping_2023",
            "dvfs_2019",
            "multi_gpu_2018",
            "h200",
            "power_capping_2022_from_layers",
        ] {
            let fits = stored_fits(study).unwrap();
            let fit = &fits[0];
            let with = |changed: usize, factor: f64| {
                let values = fit.values.iter().enumerate();
                let values = values.map(|(index, (parameter, value))| {
                    let factor = if index == changed { factor } else { 1.0 };
                    (parameter, value.with_number(factor * value.number))
                });
                let profiles = profiles.with_parameters(values).unwrap();
                squares(study, &profiles, &fit.without)
            };
            let least = with(0, 1.0);
            // Every fifth parameter is enough to notice fits that belong to other profiles or another model.
            for index in (0..fit.values.len()).step_by(5) {
                for factor in [0.97, 1.03] {
                    let other = with(index, factor);
                    let (parameter, _) = &fit.values[index];
                    assert!(
                        other > 0.98 * least,
                        "{study}, {parameter}: {other} {least}"
                    );
                }
            }
        }
    }

    /// Each value that profiles were fitted to is predicted by a fit that did not use it.
    #[test]
    fn every_fitted_value_is_held_out() {
        let profiles = Profiles::built_in().unwrap();
        for study in [
            "power_capping_2022",
            "dvfs_2019",
            "node_power_capping_2023",
            "multi_gpu_2018",
            "batch_sizer_2021",
            "h200",
            "power_capping_2022_from_layers",
            "batch_sizer_2021_from_sizes",
        ] {
            let fits = stored_fits(study).unwrap();
            let compared = compare_with(study, &profiles).unwrap().unwrap();
            for table in &compared.tables {
                for (label, values) in &table.rows {
                    let is_fitted = values
                        .iter()
                        .any(|value| value.origin == Some(ValueOrigin::Fitted));
                    let mut fits = fits.iter();
                    assert!(
                        !is_fitted
                            || fits.any(|fit| is_held_out(&fit.without, &table.title, label)),
                        "{study}: {label}"
                    );
                }
            }
        }
    }

    #[test]
    fn words_are_compared_as_a_whole() {
        assert!(is_held_out(
            "8 GPUs",
            "figure 7, times",
            "8 GPUs: time at 260 W"
        ));
        assert!(is_held_out(
            "table IV",
            "table IV: energy saved",
            "tesla_p100 fft"
        ));
        assert!(!is_held_out(
            "table I",
            "table IV: energy saved",
            "tesla_p100 fft"
        ));
        assert!(!is_held_out("1 GPU", "", "21 GPU: time"));
    }
}
