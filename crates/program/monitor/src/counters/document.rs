//! The documents of counters.

use sweetspot_device::Moment;
use sweetspot_document::common::SchemaName;
use sweetspot_document::counter::{
    Counter as Document, CounterDevice, CounterProcessor, CounterState,
};
use sweetspot_quantity::{Joules, Seconds};

use super::{Counter, GpuName};
use crate::processors::{ProcessorMark, Processors};
use crate::timeline::Difference;

/// The document of a counter whose energies are known, or not yet.
pub(super) fn document(
    name: &str,
    counter: &Counter,
    state: CounterState,
    gpus: &[GpuName],
    measured: Option<(Moment, Vec<Difference>)>,
) -> Document {
    let differences = measured.as_ref().map(|(_, differences)| differences);
    let interval = |energy: f64, half: f64| [(energy - half).max(0.0), energy + half];
    let devices = counter.gpus.iter().enumerate().map(|(place, gpu)| {
        let name = gpus.get(*gpu);
        let own = differences.and_then(|all| all.get(place));
        CounterDevice {
            index: name.map_or(0, |gpu| gpu.index),
            uuid: name.map_or_else(String::new, |gpu| gpu.uuid.clone()),
            energy_j: own.map(|own| own.energy.get()),
            interval95_j: own.map(|own| interval(own.energy.get(), own.half_width.get())),
            method: own
                .and_then(|own| own.method)
                .map(|method| method.to_string()),
        }
    });
    let energy = differences.map(|all| all.iter().map(|one| one.energy.get()).sum::<f64>());
    let half = differences.map(|all| {
        let squares = all.iter().map(|one| one.half_width.get().powi(2));
        squares.sum::<f64>().sqrt()
    });
    let time = measured
        .as_ref()
        .map(|(at, _)| (*at - counter.start.at).get());
    Document {
        schema: SchemaName::COUNTER,
        name: name.to_owned(),
        state,
        started_unix_s: counter.started_unix_s,
        time_s: time,
        energy_j: energy,
        interval95_j: energy
            .zip(half)
            .map(|(energy, half)| interval(energy, half)),
        average_power_w: energy
            .zip(time.filter(|time| *time > 0.0))
            .map(|(energy, time)| energy / time),
        devices: devices.collect(),
        processors: Vec::new(),
        notes: differences.map_or_else(Vec::new, |all| notes(counter, gpus, all)),
    }
}

/// Remarks about energies.
fn notes(counter: &Counter, gpus: &[GpuName], differences: &[Difference]) -> Vec<String> {
    let mut notes = Vec::new();
    for (gpu, one) in counter.gpus.iter().zip(differences) {
        let index = gpus.get(*gpu).map_or(0, |gpu| gpu.index);
        if one.is_lost {
            notes.push(format!(
                "GPU {index} no longer answers: its energy ends there"
            ));
        } else if one.missing > Seconds::ZERO {
            let missing = one.missing.get();
            notes.push(format!(
                "GPU {index}: no readings for {missing:.2} s, whose energy is not counted"
            ));
        }
    }
    if differences.iter().any(|one| one.clock_stepped) {
        notes.push("the wall clock was set while the counter ran; energies and times do not depend on it, but some power samples may have wrong times".to_owned());
    }
    notes
}

/// Adds the energies of the processors to a document.
pub(super) fn add_processors(
    document: &mut Document,
    processors: &Processors,
    start: Option<&ProcessorMark>,
    end: Option<ProcessorMark>,
) {
    let energies = start.zip(end).and_then(|(start, end)| end.since(start));
    let known: Vec<Option<(Joules, [Joules; 2])>> = match energies {
        Some(energies) if energies.len() == processors.names().len() => {
            energies.into_iter().map(Some).collect()
        }
        _ => vec![None; processors.names().len()],
    };
    if known.contains(&None) {
        let note = "the energy of the processors is unknown: it was not read at the start, at the end or in between";
        document.notes.push(note.to_owned());
    }
    let part = |(name, energy): (
        &crate::processors::ProcessorName,
        Option<(Joules, [Joules; 2])>,
    )| {
        CounterProcessor {
            name: name.name.clone(),
            zone: name.zone.clone(),
            energy_j: energy.map(|(value, _)| value.get()),
            interval95_j: energy.map(|(_, bounds)| bounds.map(Joules::get)),
        }
    };
    document.processors = processors.names().iter().zip(known).map(part).collect();
}
