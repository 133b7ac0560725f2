//! Deviations from what the paper says about its card and about batch sizes; nothing was fitted by least squares.

use sweetspot_device::Settings;
use sweetspot_quantity::Watts;
use sweetspot_sim::Variant;
use sweetspot_study::EnergyOf;

use super::tables::{CardFacts, read_card_facts};
use crate::PapersError;
use crate::Profiles;
use crate::ValueOrigin;
use crate::deviations::{Column, SimulatorDeviations, Table, Value};

/// The name of the study, which selects the workload profiles.
const STUDY: &str = "batch_sizer_2021";
/// The profile of the GPU card that the paper used.
const GPU: &str = "tesla_p40";

/// The parameters that were chosen by hand with results of the paper in view: the host's time for an item of each of the
/// two data sets (figure 5). The power of the card's cores is what the paper says about the card: 250 W at most, 50 W of
/// them with a model loaded.
const HAND_CHOSEN_PARAMETERS: usize = 2;

/// Compares the simulated card and the throughput of each workload with the paper.
pub fn compare(profiles: &Profiles) -> Result<SimulatorDeviations, PapersError> {
    let facts = read_card_facts()?;
    let (label, gain) = largest_gain(profiles, facts.saturation)?;
    let saturation = Value {
        published: 0.0,
        here: 100.0 * gain,
        tolerance: Some(3.0),
        origin: Some(ValueOrigin::Predicted),
    };
    Ok(SimulatorDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.parameters(STUDY).len() + HAND_CHOSEN_PARAMETERS,
        // One statement about all workloads, and the two ends of figure 5, which `reproduce` compares. What the paper
        // says about the card is put into its profile.
        values: 3,
        held_out: Vec::new(),
        not_held_out: 0,
        changed_profiles: Vec::new(),
        tables: vec![
            Table {
                title: "the card".to_owned(),
                columns: vec![Column::difference("W", 0)],
                rows: card_inputs(profiles, &facts),
            },
            Table {
                title: "section 3: beyond the largest batch size, throughput does not grow [%]"
                    .to_owned(),
                columns: vec![Column::difference("%", 1)],
                rows: vec![(label, vec![saturation])],
            },
        ],
    })
}

/// What the paper says about its card. These values are parameters of its profile, so that they cannot be missed.
fn card_inputs(profiles: &Profiles, facts: &CardFacts) -> Vec<(String, Vec<Value>)> {
    let gpu = profiles.gpus.get(GPU);
    let row = |what: &str, published: Watts, here: Option<Watts>| {
        let value = Value {
            published: published.get(),
            here: here.map_or(f64::NAN, |power| power.get()),
            tolerance: None,
            origin: Some(ValueOrigin::Input),
        };
        (what.to_owned(), vec![value])
    };
    let loaded = gpu.map(|gpu| gpu.power.idle + gpu.power.context);
    vec![
        row("with a model loaded", facts.loaded, loaded),
        row("at most", facts.max_power, gpu.map(|gpu| gpu.cap.max)),
    ]
}

/// The workload that gains most throughput from twice the batch size `last`, in words, and its gain as a fraction.
fn largest_gain(profiles: &Profiles, last: u64) -> Result<(String, f64), PapersError> {
    let networks = profiles
        .workloads
        .iter()
        .filter(|workload| workload.name.ends_with(STUDY));
    let mut gains = Vec::new();
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
            let gain = throughput(2 * last)? / throughput(last)? - 1.0;
            gains.push((
                format!("{} {}", workload.profile.network, dataset.name),
                gain,
            ));
        }
    }
    let count = gains.len();
    let largest = gains.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (name, gain) = largest.unwrap_or_default();
    let label = format!(
        "{name}, which gains most of {count} workloads by {} instead of {last}",
        2 * last
    );
    Ok((label, gain))
}
