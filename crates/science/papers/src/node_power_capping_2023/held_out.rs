//! Predictions for each number of GPUs by a fit to the values about the others.

use sweetspot_quantity::{BytesPerSecond, Ratio, Seconds, Watts};

use super::deviations::{GPU_COUNTS, NodeTable, STUDY, node_tables};
use crate::deviations::{HeldOut, Table};
use crate::{PapersError, Profiles, ValueOrigin};

/// The values of the parameters that are fitted to the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FittedValues {
    /// The core work of an item in milliseconds.
    core: f64,
    /// The memory work of an item in milliseconds.
    memory: f64,
    /// The power of the host in watts.
    host_idle: f64,
    /// The bandwidth of the link in GB/s.
    bandwidth: f64,
    /// The power of a GPU during the exchange, in percent of its power at work.
    activity: f64,
}

/// The least squares without the values about 1, 2, 4 and 8 GPUs, as printed by
/// `cargo run --release -p sweetspot-papers --example fit -- node_power_capping_2023 --least-squares --without "8 GPUs"`.
const FITS: [FittedValues; 4] = [
    FittedValues {
        core: 1.8013,
        memory: 6.5617,
        host_idle: 672.1943,
        bandwidth: 8.7805,
        activity: 89.0318,
    },
    FittedValues {
        core: 1.6902,
        memory: 6.8337,
        host_idle: 731.6314,
        bandwidth: 8.8723,
        activity: 86.1525,
    },
    FittedValues {
        core: 1.7663,
        memory: 6.6387,
        host_idle: 553.5784,
        bandwidth: 8.7797,
        activity: 74.8019,
    },
    FittedValues {
        core: 1.9775,
        memory: 6.4253,
        host_idle: 482.0003,
        bandwidth: 10.9576,
        activity: 0.0,
    },
];

impl FittedValues {
    /// The profiles with these values in place of their own.
    fn replace_in(&self, profiles: &Profiles) -> Profiles {
        let mut profiles = profiles.clone();
        if let Some(node) = profiles.nodes.get_mut(STUDY) {
            node.host.idle = Watts::new(self.host_idle);
            node.all_reduce.bandwidth = BytesPerSecond::new(1e9 * self.bandwidth);
            node.all_reduce.activity = Ratio::new(self.activity / 100.0);
        }
        let of_study = |name: &str| name.ends_with(&format!("@{STUDY}"));
        let workloads = profiles.workloads.iter_mut();
        for workload in workloads.filter(|workload| of_study(&workload.name)) {
            for on in &mut workload.profile.on {
                on.core = Seconds::new(self.core / 1e3);
                on.memory = Seconds::new(self.memory / 1e3);
            }
        }
        profiles
    }
}

/// Predicts the values about each number of GPUs without them.
pub fn held_out(profiles: &Profiles) -> Result<Vec<HeldOut>, PapersError> {
    let each = GPU_COUNTS.into_iter().zip(FITS);
    each.map(|(gpus, fit)| {
        let tables = node_tables(&fit.replace_in(profiles))?;
        let own = tables.into_iter().map(|table| only(table, gpus));
        Ok(HeldOut {
            without: match gpus {
                1 => "1 GPU".to_owned(),
                _ => format!("{gpus} GPUs"),
            },
            tables: own
                .filter(|table| !table.rows.is_empty())
                .map(Table::from)
                .collect(),
        })
    })
    .collect()
}

/// The rows about a number of GPUs that the profiles were fitted to with the others; here they are predicted.
fn only(table: NodeTable, gpus: u64) -> NodeTable {
    let rows = table.rows.into_iter().filter(|row| row.gpus == gpus);
    let fitted = rows.filter(|row| row.value.origin == Some(ValueOrigin::Fitted));
    let predicted = fitted.map(|row| match row.value.tolerance {
        Some(tolerance) => row.predicted(tolerance),
        None => row,
    });
    NodeTable {
        rows: predicted.collect(),
        ..table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of squared deviations, relative to their tolerances, of the fitted values about other numbers of GPUs.
    fn squares(profiles: &Profiles, without: u64) -> f64 {
        let tables = node_tables(profiles).unwrap();
        let rows = tables.iter().flat_map(|table| {
            let kind = table.column.deviation_kind;
            table.rows.iter().map(move |row| (row, kind))
        });
        rows.filter(|(row, _)| row.gpus != without)
            .filter(|(row, _)| row.value.origin == Some(ValueOrigin::Fitted))
            .map(|(row, kind)| row.value.deviation(kind) / row.value.tolerance.unwrap())
            .map(|residual| residual * residual)
            .sum()
    }

    /// The values in the built-in profiles.
    fn built_in(profiles: &Profiles) -> FittedValues {
        let node = &profiles.nodes[STUDY];
        let name = format!("xception@{STUDY}");
        let mut workloads = profiles.workloads.iter();
        let workload = workloads.find(|workload| workload.name == name).unwrap();
        let on = &workload.profile.on[0];
        FittedValues {
            core: 1e3 * on.core.get(),
            memory: 1e3 * on.memory.get(),
            host_idle: node.host.idle.get(),
            bandwidth: node.all_reduce.bandwidth.get() / 1e9,
            activity: 100.0 * node.all_reduce.activity.get(),
        }
    }

    /// The stored values are least squares: no value can change by 2 % and come nearer to the published values that it
    /// was fitted to.
    #[test]
    fn stored_fits_are_least_squares() {
        let profiles = Profiles::built_in().unwrap();
        let own = built_in(&profiles);
        let each = GPU_COUNTS.into_iter().zip(FITS);
        for (without, fit) in [(0, own)].into_iter().chain(each) {
            let least = squares(&fit.replace_in(&profiles), without);
            let change: [fn(&mut FittedValues, f64); 5] = [
                |fit, factor| fit.core *= factor,
                |fit, factor| fit.memory *= factor,
                |fit, factor| fit.host_idle *= factor,
                |fit, factor| fit.bandwidth *= factor,
                |fit, factor| fit.activity = (fit.activity + 100.0 * (factor - 1.0)).max(0.0),
            ];
            for change in change {
                for factor in [0.98, 1.02] {
                    let mut changed = fit;
                    change(&mut changed, factor);
                    let other = squares(&changed.replace_in(&profiles), without);
                    assert!(
                        other > 0.995 * least,
                        "without {without}: {changed:?} has {other}, {fit:?} has {least}"
                    );
                }
            }
        }
    }

    /// Each fitted value is predicted once without those of its number of GPUs.
    #[test]
    fn every_fitted_value_is_held_out_once() {
        let profiles = Profiles::built_in().unwrap();
        let tables = node_tables(&profiles).unwrap();
        let rows = tables.iter().flat_map(|table| &table.rows);
        let fitted = rows.filter(|row| row.value.origin == Some(ValueOrigin::Fitted));
        let held_out = held_out(&profiles).unwrap();
        let predicted: usize = held_out.iter().map(HeldOut::count).sum();
        assert_eq!(predicted, fitted.count());
        assert_eq!(held_out.len(), 4);
    }
}
