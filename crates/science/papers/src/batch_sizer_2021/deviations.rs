//! Deviations from what the paper says about its card and about batch sizes; nothing was fitted to it.

use sweetspot_device::Settings;
use sweetspot_sim::Variant;
use sweetspot_study::EnergyOf;

use super::tables::read_card_facts;
use crate::PapersError;
use crate::Profiles;
use crate::deviations::{Column, SimulatorDeviations, Table, Value};

/// The name of the study, which selects the workload profiles.
const STUDY: &str = "batch_sizer_2021";
/// The profile of the GPU card that the paper used.
const GPU: &str = "tesla_p40";

/// Compares the simulated card and the throughput of each workload with the paper.
pub fn compare(profiles: &Profiles) -> Result<SimulatorDeviations, PapersError> {
    let facts = read_card_facts()?;
    let gpu = profiles.gpus.get(GPU);
    let watts =
        |power: Option<sweetspot_quantity::Watts>| power.map_or(f64::NAN, |power| power.get());
    let value = |published: f64, here: f64, tolerance: f64| {
        vec![Value {
            published,
            here,
            tolerance: Some(tolerance),
        }]
    };
    let loaded = gpu.map(|gpu| gpu.power.idle + gpu.power.context);
    let card = vec![
        (
            "with a model loaded".to_owned(),
            value(facts.loaded.get(), watts(loaded), 1.0),
        ),
        (
            "at most".to_owned(),
            value(
                facts.max_power.get(),
                watts(gpu.map(|gpu| gpu.cap.max)),
                1.0,
            ),
        ),
    ];
    let mut saturation = Vec::new();
    let networks = profiles
        .workloads
        .iter()
        .filter(|workload| workload.name.ends_with(STUDY));
    for workload in networks {
        for dataset in &workload.profile.datasets {
            let variant = Variant {
                dataset: Some(dataset.name.clone()),
                ..Variant::default()
            };
            let case = profiles.case(&[GPU], None, &workload.name, &variant, EnergyOf::JobGpus)?;
            let throughput = |batch| -> Result<f64, PapersError> {
                let run = case.run(Settings::default(), batch, 1)?;
                Ok(run.items / run.time.get())
            };
            let last = facts.saturation;
            let gain = throughput(2 * last)? / throughput(last)? - 1.0;
            let label = format!(
                "{} {}: gained by {} instead of {last}",
                workload.profile.network,
                dataset.name,
                2 * last
            );
            saturation.push((label, value(0.0, 100.0 * gain, 3.0)));
        }
    }
    Ok(SimulatorDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.count_fitted(STUDY, &[GPU], &[]),
        values: card.len() + saturation.len(),
        tables: vec![
            Table {
                title: "the card".to_owned(),
                columns: vec![Column::difference("W", 0)],
                rows: card,
            },
            Table {
                title: "section 3: beyond the largest batch size, throughput does not grow [%]"
                    .to_owned(),
                columns: vec![Column::difference("%", 1)],
                rows: saturation,
            },
        ],
    })
}
