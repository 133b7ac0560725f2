//! Checks which objectives and limits tuning supports: it measures rates over some seconds, not totals of the job.

use sweetspot_decide::{Basis, Criteria, Limit, Objective, Outcome, Value};
use sweetspot_quantity::{Joules, Seconds};

/// Names the objective or limit that needs the job's progress, such as `the limit time<=+5%`; `None` if power alone is
/// enough.
pub fn progress_requirement(criteria: &Criteria) -> Option<String> {
    if criteria.objective != Objective::Power {
        return Some(format!("the objective {}", criteria.objective));
    }
    let needs_power_only =
        |limit: &&Limit| matches!(limit.value(), Value::AveragePower | Value::Gpus);
    let limit = criteria
        .limits
        .iter()
        .find(|limit| !needs_power_only(limit))?;
    Some(format!("the limit {limit}"))
}

/// Whether the objective or a limit needs the job's progress.
pub fn needs_progress(criteria: &Criteria) -> bool {
    progress_requirement(criteria).is_some()
}

/// Names the objective, or the first limit, that tuning does not support, and says why; `None` if all are supported.
pub fn find_unsupported_criterion(criteria: &Criteria) -> Option<(String, String)> {
    let outcome = Outcome {
        items: Some(1.0),
        ..Outcome::new(Seconds::new(1.0), Joules::new(1.0))
    };
    let basis = Basis {
        reference: Some(&outcome),
        tariff: &criteria.tariff,
    };
    if let Err(reason) = criteria.objective.value(&outcome, basis) {
        let objective = format!("the objective {}", criteria.objective);
        return Some((objective, reason.to_string()));
    }
    criteria.limits.iter().find_map(|limit| {
        let reason = match limit.value() {
            Value::Reported(name) => format!(
                "`tune` does not measure {name}; use `sweetspot sweep`, whose limits can refer to it"
            ),
            Value::Items => {
                "a job processes the same items at every setting: remove this limit".to_owned()
            }
            value @ (Value::Time | Value::Energy | Value::DeviceTime) if !limit.is_relative() => {
                format!(
                    "tuning measures for some seconds and not the whole {value} of the job: write the limit as a percentage of the reference, such as {value}<=+5%"
                )
            }
            _ => return None,
        };
        Some((format!("the limit {limit}"), reason))
    })
}

#[cfg(test)]
mod tests {
    use sweetspot_decide::{Preference, Price, Tariff};

    use super::*;

    fn criteria(objective: &str, limits: &[&str]) -> Criteria {
        Criteria {
            objective: objective.parse().unwrap(),
            limits: limits.iter().map(|limit| limit.parse().unwrap()).collect(),
            tariff: Tariff::NONE,
            preference: Preference::default(),
        }
    }

    #[test]
    fn unsupported_criteria_are_named() {
        for limit in ["accuracy>=0.7", "time<=100s", "energy<=1J", "items>=5"] {
            let (criterion, _) = find_unsupported_criterion(&criteria("energy", &[limit])).unwrap();
            assert!(criterion.starts_with("the limit "), "{criterion}");
        }
        for limit in [
            "time<=+5%",
            "energy<=-10%",
            "average_power<=200W",
            "items_per_s>=300",
        ] {
            assert_eq!(
                find_unsupported_criterion(&criteria("energy", &[limit])),
                None
            );
        }
        let (criterion, why) = find_unsupported_criterion(&criteria("cost", &[])).unwrap();
        assert_eq!(criterion, "the objective cost");
        assert!(!why.is_empty());
        let priced = Criteria {
            tariff: Tariff {
                price: Some(Price::new(0.3, 0.0, "EUR".to_owned()).unwrap()),
                carbon: None,
            },
            ..criteria("cost", &[])
        };
        assert_eq!(find_unsupported_criterion(&priced), None);
    }

    #[test]
    fn the_requirement_of_progress_is_named() {
        assert_eq!(
            progress_requirement(&criteria("power", &["average_power<=200W"])),
            None
        );
        let by = |objective, limits: &[&str]| {
            progress_requirement(&criteria(objective, limits)).unwrap()
        };
        assert_eq!(by("power", &["time<=+5%"]), "the limit time<=+5%");
        assert_eq!(by("edp", &["time<=+5%"]), "the objective edp");
    }
}
