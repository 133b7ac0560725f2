//! Deviations from tables 2 and 3: time and energy at the published caps.

use std::collections::BTreeSet;

use sweetspot_device::Settings;
use sweetspot_sim::Variant;
use sweetspot_study::EnergyOf;

use super::structure::{FROM_LAYERS, from_layers};
use super::tables::read_cap_rows;
use crate::PapersError;
use crate::Profiles;
use crate::ValueOrigin;
use crate::deviations::{Column, IsWanted, SimulatorDeviations, TWO_PERCENT, Table, Value};

/// The name of the study, which selects the workload profiles.
pub const STUDY: &str = "power_capping_2022";

/// The title of the table of deviations.
const TITLE: &str =
    "tables 2 and 3: a run at each published cap; a row printed for several metrics counts once";

/// Compares the form of the study that has no number of a network with the paper.
pub fn compare_from_layers(
    profiles: &Profiles,
    is_wanted: IsWanted<'_>,
) -> Result<SimulatorDeviations, PapersError> {
    Ok(SimulatorDeviations {
        study: FROM_LAYERS.to_owned(),
        free_parameters: profiles.parameters(FROM_LAYERS).len(),
        ..compare(&from_layers(profiles)?, is_wanted)?
    })
}

/// Compares the simulated time and energy at each published cap with the paper.
pub fn compare(
    profiles: &Profiles,
    is_wanted: IsWanted<'_>,
) -> Result<SimulatorDeviations, PapersError> {
    let mut rows = Vec::new();
    let mut different = BTreeSet::new();
    for row in read_cap_rows()? {
        let label = format!("{} {} {:.0} W", row.gpu, row.network, row.power_cap.get());
        if !is_wanted(TITLE, &label) {
            continue;
        }
        let network = format!("{}@{STUDY}", row.network);
        let variant = Variant::default();
        let case = profiles.case(&[&row.gpu], None, &network, &variant, EnergyOf::JobGpus)?;
        let settings = Settings {
            power_cap: Some(row.power_cap),
            ..Settings::default()
        };
        let here = case.run(settings, case.batch(), 1)?;
        // A row printed for several metrics has one pair of independent values.
        let origin = match different.insert(label.clone()) {
            true => ValueOrigin::Fitted,
            false => ValueOrigin::Derived,
        };
        let value = |published: f64, here: f64| Value {
            published,
            here,
            tolerance: Some(TWO_PERCENT.get()),
            origin: Some(origin),
        };
        rows.push((
            label,
            vec![
                value(row.time.get(), here.time.get()),
                value(row.energy.get() / 1e3, here.energy.get() / 1e3),
            ],
        ));
    }
    Ok(SimulatorDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.parameters(STUDY).len(),
        by_hand: 0,
        values: 2 * different.len(),
        held_out: Vec::new(),
        not_held_out: 0,
        changed_profiles: Vec::new(),
        tables: vec![Table {
            title: TITLE.to_owned(),
            columns: vec![Column::relative("s", 1), Column::relative("kJ", 3)],
            rows,
        }],
    })
}
