//! Deviations from throughput and mean power at several batch sizes, measured on an H200 at its default settings.

use sweetspot_device::Settings;
use sweetspot_sim::Variant;
use sweetspot_study::EnergyOf;

use super::tables::read_batch_rows;
use crate::PapersError;
use crate::Profiles;
use crate::ValueOrigin;
use crate::deviations::{Column, IsWanted, SimulatorDeviations, Table, Value};

/// The name of the study, which selects the workload profiles.
const STUDY: &str = "h200";
/// The profile of the measured GPU.
const GPU: &str = "nvidia_h200";

/// The smallest batch size at which the GPU limits the speed. Smaller batches are limited by the host, whose time
/// varies.
const MIN_GPU_BOUND_BATCH: u64 = 64;

/// The title of the table of deviations.
const TITLE: &str = "measured by batch size: tolerance 10 % from a batch of 64 on, 35 % below";

/// Compares the simulated throughput and power at each batch size with the measurements.
pub fn compare(
    profiles: &Profiles,
    is_wanted: IsWanted<'_>,
) -> Result<SimulatorDeviations, PapersError> {
    let mut rows = Vec::new();
    for (mode, row) in read_batch_rows()? {
        let label = format!("{} {mode}, batch {}", row.network, row.batch);
        if !is_wanted(TITLE, &label) {
            continue;
        }
        let variant = Variant {
            mode: Some(mode),
            ..Variant::default()
        };
        let name = format!("{}@{STUDY}", row.network);
        let case = profiles.case(&[GPU], None, &name, &variant, EnergyOf::JobGpus)?;
        let case = case.items(row.batch * row.iters);
        let here = case.run(Settings::default(), row.batch, 1)?;
        let tolerance = Some(if row.batch >= MIN_GPU_BOUND_BATCH {
            0.10
        } else {
            0.35
        });
        let value = |published: f64, here: f64| Value {
            published,
            here,
            tolerance,
            origin: Some(ValueOrigin::Fitted),
        };
        rows.push((
            label,
            vec![
                value(row.samples_per_s, here.items / here.time.get()),
                value(row.mean_w, (here.energy / here.time).get()),
            ],
        ));
    }
    Ok(SimulatorDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.parameters(STUDY).len(),
        values: 2 * rows.len(),
        by_hand: 0,
        held_out: Vec::new(),
        not_held_out: 0,
        changed_profiles: Vec::new(),
        tables: vec![Table {
            title: TITLE.to_owned(),
            columns: vec![Column::relative("items/s", 0), Column::relative("W", 1)],
            rows,
        }],
    })
}
