//! Earlier studies that a search learns from.

use std::path::Path;

use crate::{Definition, Plan, PriorResults, Store, StoreError, Study, Subject};

/// The maximum number of earlier studies that a search uses; more would add little information.
const MAX_PRIOR_STUDIES: usize = 6;

/// Which of the earlier studies that the user named are not used by the search, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorStudies {
    /// The studies whose results do not apply: for each one, its folder and the reason.
    pub unused: Vec<(String, String)>,
    /// The studies that cannot be read: for each one, its folder and the reason.
    pub damaged: Vec<(String, String)>,
}

/// Reads the results of earlier studies of the same GPU over the same axes, the newest first; a study that is
/// named twice counts once.
pub fn read_prior_studies(
    definition: &Definition,
    subject: &Subject,
    plan: &Plan,
) -> (Vec<PriorResults>, PriorStudies) {
    let mut folders: Vec<&String> = definition.prior.iter().flatten().collect();
    folders.sort();
    folders.dedup();
    let mut studies: Vec<(f64, PriorResults)> = Vec::new();
    let mut prior = PriorStudies::default();
    for folder in folders {
        let read = || {
            let store = Store::open(Path::new(folder))?;
            let created = store.outline()?.created_unix_s.unwrap_or(0.0);
            Ok::<_, StoreError>((created, store.study(Some(subject.energy_of))?))
        };
        match read() {
            Err(problem) => prior.damaged.push((folder.clone(), problem.to_string())),
            Ok((created, study)) => match usable_results(&study, subject, plan) {
                Ok(results) => studies.push((created, results)),
                Err(why) => prior.unused.push((folder.clone(), why)),
            },
        }
    }
    studies.sort_by(|a, b| b.0.total_cmp(&a.0));
    let newest = studies.into_iter().map(|(_, study)| study);
    (newest.take(MAX_PRIOR_STUDIES).collect(), prior)
}

/// The results of an earlier study that the search of `plan` can use, or why it cannot use them.
fn usable_results(study: &Study, subject: &Subject, plan: &Plan) -> Result<PriorResults, String> {
    let (own, device) = (study.device(), subject.devices.first());
    if device.is_none_or(|device| device.name != own.name) {
        return Err(format!("the study measured another GPU, {}", own.name));
    }
    if study.plan.axes != plan.axes {
        let axes = study.plan.axes.iter();
        let axes: Vec<&str> = axes.map(|axis| axis.name()).collect();
        return Err(format!("the study has other axes: {}", axes.join(", ")));
    }
    let results = PriorResults::from_study(study, &plan.axes);
    results.ok_or_else(|| "fewer than two of its configurations have time and energy".to_owned())
}
