//! Deviations from what the paper says about its card, about batch sizes and about the ends of figure 5.

use sweetspot_device::Settings;
use sweetspot_quantity::Watts;
use sweetspot_sim::{Variant, Workload, WorkloadProfile};
use sweetspot_study::EnergyOf;

use super::jobs::{PRINTED_PRECISION, gain_over_dvfs, printed_ends};
use super::tables::{CardFacts, read_card_facts, read_jobs};
use crate::PapersError;
use crate::Profiles;
use crate::ValueOrigin;
use crate::deviations::{Column, SimulatorDeviations, Table, Value};

/// The name of the study, which selects the workload profiles.
pub(crate) const STUDY: &str = "batch_sizer_2021";
/// The profile of the GPU card that the paper used.
const GPU: &str = "tesla_p40";

/// The parameters that were chosen with results of the paper in view: the host's time for an item of each of the two data
/// sets, which is the same for all networks. The profiles have values chosen by hand; the fits that leave out a value start
/// there. The power of the card's cores is what the paper says about the card: 250 W at most, 50 W of
/// them with a model loaded.
pub(crate) const HOST_TIMES: [&str; 2] = ["dataset.imagenet.host", "dataset.caltech.host"];

/// The profiles of the study's workloads.
pub(crate) fn workloads(all: &mut [Workload]) -> impl Iterator<Item = &mut WorkloadProfile> {
    let own = all.iter_mut().filter(|one| one.name.ends_with(STUDY));
    own.map(|workload| &mut workload.profile)
}

/// The name of the network that section 3 calls MobileNet.
const MOBILENET: &str = "mobilenet_v1";
/// The tolerated gain of throughput, in percent, where the paper says that there is none.
const NO_GAIN: f64 = 3.0;
/// The tolerated gain of throughput, in percent, where the paper calls it negligible.
const NEGLIGIBLE_GAIN: f64 = 5.0;

/// Compares the simulated card and the throughput of each workload with the paper.
pub fn compare(profiles: &Profiles) -> Result<SimulatorDeviations, PapersError> {
    let facts = read_card_facts()?;
    let last = facts.saturation;
    let tables = vec![
        Table {
            title: "the card".to_owned(),
            columns: vec![Column::difference("W", 0)],
            rows: card_inputs(profiles, &facts),
        },
        Table {
            title: "section 3: larger batches that do not raise the throughput [%]".to_owned(),
            columns: vec![Column::difference("%", 1)],
            rows: vec![
                saturation(profiles, last)?,
                gain_of_mobilenet(profiles, last)?,
            ],
        },
        Table {
            title: "figure 5: throughput of windowed over DVFS [%]".to_owned(),
            columns: vec![Column::difference("%", 1)],
            rows: ends_of_figure_5(profiles)?,
        },
    ];
    Ok(SimulatorDeviations {
        study: STUDY.to_owned(),
        free_parameters: profiles.parameters(STUDY).len(),
        by_hand: HOST_TIMES.len(),
        values: tables.iter().map(Table::count_fitted).sum(),
        held_out: Vec::new(),
        not_held_out: 0,
        changed_profiles: Vec::new(),
        tables,
    })
}

/// The jobs that gain most and least in figure 5. The host's times were chosen with these two numbers in view.
fn ends_of_figure_5(profiles: &Profiles) -> Result<Vec<(String, Vec<Value>)>, PapersError> {
    let mut rows = Vec::new();
    for (job, published) in printed_ends()? {
        let printed = read_jobs()?.into_iter().find(|one| one.job == job);
        let Some(printed) = printed else { continue };
        let gain = gain_over_dvfs(profiles, &printed)?;
        let label = format!("job {job} {} {}", printed.network, printed.dataset);
        let value = Value {
            published: 100.0 * published,
            here: 100.0 * gain,
            tolerance: Some(100.0 * PRINTED_PRECISION),
            origin: Some(ValueOrigin::Fitted),
        };
        rows.push((label, vec![value]));
    }
    Ok(rows)
}

/// Beyond the largest batch size throughput does not grow: one statement about all workloads.
fn saturation(profiles: &Profiles, last: u64) -> Result<(String, Vec<Value>), PapersError> {
    let gains = gains(profiles, last, 2 * last)?;
    let count = gains.len();
    let largest = gains.into_iter().max_by(|a, b| a.gain.total_cmp(&b.gain));
    let (name, gain) = largest.map_or((String::new(), f64::NAN), |one| {
        (format!("{} {}", one.network, one.dataset), one.gain)
    });
    let label = format!(
        "{name}, which gains most of {count} workloads by {} instead of {last}",
        2 * last
    );
    let value = no_gain(gain, NO_GAIN, ValueOrigin::Predicted);
    Ok((label, vec![value]))
}

/// MobileNet gains next to nothing on ImageNet. The host's time for an item was chosen with this in view.
fn gain_of_mobilenet(profiles: &Profiles, last: u64) -> Result<(String, Vec<Value>), PapersError> {
    let gains = gains(profiles, 1, last)?;
    let mut own = gains.iter();
    let own = own.find(|one| one.network == MOBILENET && one.dataset == "imagenet");
    let gain = own.map_or(f64::NAN, |own| own.gain);
    let label = format!("{MOBILENET} imagenet by {last} instead of 1");
    let value = no_gain(gain, NEGLIGIBLE_GAIN, ValueOrigin::Fitted);
    Ok((label, vec![value]))
}

/// A gain, as a fraction, that the paper says does not exist.
fn no_gain(gain: f64, tolerance: f64, origin: ValueOrigin) -> Value {
    Value {
        published: 0.0,
        here: 100.0 * gain,
        tolerance: Some(tolerance),
        origin: Some(origin),
    }
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

/// What a workload gains by a larger batch.
struct Gain {
    network: String,
    dataset: String,
    /// The gain of throughput as a fraction.
    gain: f64,
}

/// What each workload gains by a batch of `to` items instead of `from`.
fn gains(profiles: &Profiles, from: u64, to: u64) -> Result<Vec<Gain>, PapersError> {
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
            gains.push(Gain {
                network: workload.profile.network.clone(),
                dataset: dataset.name.clone(),
                gain: throughput(to)? / throughput(from)? - 1.0,
            });
        }
    }
    Ok(gains)
}
