//! The document of a hold, `sweetspot.hold/1`.

use sweetspot_control::hold::{Goal, Setting};
use sweetspot_document::common::SchemaName;
use sweetspot_document::hold as document;
use sweetspot_guard::Ended;
use sweetspot_session::hold::HoldResult;

use super::text::energy_per_item;
use crate::measure::machine_json;

/// Makes the document of a hold.
pub fn hold_json(held: &HoldResult) -> document::Hold {
    let summary = &held.summary;
    let (exit_code, signal) = match held.ended {
        Ended::Code(code) => (Some(code), None),
        Ended::Signal(signal) => (None, Some(signal)),
    };
    document::Hold {
        schema: SchemaName::HOLD,
        command: held.command.clone(),
        machine: machine_json(&held.machine),
        device: document::Device {
            uuid: held.device.id.to_string(),
            name: held.device.name.clone(),
        },
        knob: held.knob.name().to_owned(),
        mode: held.mode.name().to_owned(),
        objective: match held.goal {
            Goal::Throughput => document::Goal::Throughput,
            Goal::EnergyPerItem => document::Goal::EnergyPerItem,
        },
        batches: held.batches.clone(),
        cap_w: held.caps.last().map(|(_, cap)| cap.get()),
        run_time_s: held.run_time.get(),
        time_s: summary.time.get(),
        items: summary.items,
        items_per_s: summary.items_per_s,
        settled_items_per_s: held.settled_items_per_s,
        energy: energy(held),
        energy_per_item_j: energy_per_item(held),
        violation_share: summary.violation_share.map(|share| share.get()),
        fine_share: summary.fine_share.map(|share| share.get()),
        fine_p99_w: summary.fine_p99.map(|power| power.get()),
        largest_mean_w: summary.largest_mean.map(|power| power.get()),
        settle_s: summary.settle_time.map(|time| time.get()),
        settle_windows: summary.settle_windows,
        changes: summary.changes,
        average_batch: summary.average_batch,
        latency_p99_s: held.latency_p99.map(|time| time.get()),
        latency_bound_s: held.latency_bound.map(|time| time.get()),
        met: held.kept.is_met(),
        met_reason: held.kept.reason().to_owned(),
        restored: held.restored,
        exit_code,
        signal,
        caps: caps(held),
        settings: settings(held),
        over_time: over_time(held),
        notes: notes(held),
    }
}

fn energy(held: &HoldResult) -> Option<document::HoldEnergy> {
    held.energy.map(|energy| {
        let (low, high) = energy.interval95;
        document::HoldEnergy {
            energy_j: energy.value.get(),
            interval95_j: [low.get(), high.get()],
            method: energy.method.to_string(),
        }
    })
}

fn caps(held: &HoldResult) -> Vec<document::CapChange> {
    let caps = held.caps.iter().map(|(at, cap)| document::CapChange {
        time_s: at.get(),
        cap_w: cap.get(),
    });
    caps.collect()
}

fn settings(held: &HoldResult) -> Vec<document::SettingChange> {
    let settings = held.settings.iter();
    let changes = settings.map(|(at, setting)| document::SettingChange {
        setting: setting_json(setting),
        time_s: at.get(),
    });
    changes.collect()
}

fn over_time(held: &HoldResult) -> Vec<document::Slice> {
    let slices = held.over_time.iter().map(|slice| document::Slice {
        setting: setting_json(&slice.setting),
        time_s: slice.at.get(),
        power: slice
            .power
            .zip(slice.highest)
            .map(|(power, highest)| document::SlicePower {
                power_w: power.get(),
                highest_w: highest.get(),
            }),
        cap_w: slice.cap.get(),
        items_per_s: slice.items_per_s,
    });
    slices.collect()
}

fn notes(held: &HoldResult) -> Vec<document::Note> {
    let notes = held.notes.iter().map(|(at, text)| document::Note {
        time_s: at.get(),
        text: text.clone(),
    });
    notes.collect()
}

fn setting_json(setting: &Setting) -> document::Setting {
    document::Setting {
        batch: setting.batch,
        core_clock_mhz: setting.core_clock.map(|clock| clock.get()),
        power_cap_w: setting.power_cap.map(|cap| cap.get()),
    }
}
