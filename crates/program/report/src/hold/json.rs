//! The JSON document of a run with `sweetspot hold`, `sweetspot.hold/1`.

use sweetspot_control::hold::{HoldGoal, HoldSetting, UnusedRemedy};
use sweetspot_document::common::SchemaName;
use sweetspot_document::hold as document;
use sweetspot_guard::CommandExit;
use sweetspot_session::hold::{HoldEnergy, HoldResult};

use super::gpus::mean_power;
use super::text::energy_per_item;
use crate::measure::machine_json;

/// Makes the JSON document of a run with `sweetspot hold`.
pub fn hold_json(result: &HoldResult) -> document::Hold {
    let summary = &result.summary;
    let (exit_code, signal) = match result.ended {
        CommandExit::Code(code) => (Some(code), None),
        CommandExit::Signal(signal) => (None, Some(signal)),
    };
    document::Hold {
        schema: SchemaName::HOLD,
        command: result.command.clone(),
        machine: machine_json(&result.machine),
        device: document::Device {
            uuid: result.gpus[0].device.id.to_string(),
            name: result.gpus[0].device.name.clone(),
        },
        devices: devices(result),
        caps_of_devices: caps_of_devices(result),
        scope: (result.gpus.len() > 1).then(|| result.scope.to_string()),
        lost: result.lost.clone(),
        knob: result.knob.name().to_owned(),
        mode: result.mode.name().to_owned(),
        objective: match result.goal {
            HoldGoal::Throughput => document::Goal::Throughput,
            HoldGoal::EnergyPerItem => document::Goal::EnergyPerItem,
        },
        batches: result.batches.clone(),
        cap_w: result.caps.last().map(|(_, cap)| cap.get()),
        run_time_s: result.run_time.get(),
        time_s: summary.time.get(),
        items: summary.items,
        items_per_s: summary.items_per_s,
        settled_items_per_s: result.settled_items_per_s,
        energy: energy(result),
        energy_per_item_j: energy_per_item(result),
        cap_on: result.cap_on.to_string(),
        violation_share: summary.violation_share.map(|share| share.get()),
        unread_s: Some(summary.unread_time.get()).filter(|time| *time > 0.0),
        fine_share: summary.fine_share.map(|share| share.get()),
        fine_p99_w: summary.fine_p99.map(|power| power.get()),
        highest_reading_w: summary.highest_sample.map(|power| power.get()),
        largest_mean_w: summary.largest_mean.map(|power| power.get()),
        settled_power_w: summary.settled_power.map(|power| power.get()),
        settling_excess_s: summary.settling_excess.get(),
        settling_largest_mean_w: summary.settling_largest.map(|power| power.get()),
        unused: result.unused.map(|unused| document::Unused {
            power_w: unused.power.get(),
            remedy: remedy(unused.remedy),
        }),
        settle_s: summary.settle_time.map(|time| time.get()),
        settle_windows: summary.settle_windows,
        changes: summary.changes,
        average_batch: summary.average_batch,
        latency_p99_s: result.latency_p99.map(|time| time.get()),
        latency_bound_s: result.latency_bound.map(|time| time.get()),
        met: result.verdict.is_met(),
        met_reason: result.verdict.reason().to_owned(),
        restored: result.restored,
        exit_code,
        signal,
        caps: caps(result),
        settings: settings(result),
        over_time: over_time(result),
        notes: notes(result),
    }
}

/// Makes the entries of the GPUs.
fn devices(result: &HoldResult) -> Vec<document::HeldDevice> {
    let gpus = result.gpus.iter().map(|gpu| document::HeldDevice {
        uuid: gpu.device.id.to_string(),
        name: gpu.device.name.clone(),
        energy: gpu.energy.as_ref().map(energy_json),
        power_w: mean_power(result, gpu).map(|power| power.get()),
        power_cap_w: gpu
            .settings
            .and_then(|settings| settings.power_cap)
            .map(|cap| cap.get()),
        core_clock_mhz: gpu
            .settings
            .and_then(|settings| settings.core_clock)
            .map(|clock| clock.get()),
    });
    gpus.collect()
}

/// Makes the entries of the power caps of several GPUs over time.
fn caps_of_devices(result: &HoldResult) -> Vec<document::CapsOfDevices> {
    let changes = result.caps_of_gpus.iter();
    changes
        .map(|(at, caps)| document::CapsOfDevices {
            time_s: at.get(),
            caps_w: caps.iter().map(|cap| cap.get()).collect(),
        })
        .collect()
}

/// Makes the entry of what would use power below the cap.
fn remedy(remedy: UnusedRemedy) -> document::Remedy {
    match remedy {
        UnusedRemedy::DeviceSetting => document::Remedy::DeviceSetting,
        UnusedRemedy::BatchSize => document::Remedy::BatchSize,
        UnusedRemedy::LargerBatches { .. } => document::Remedy::LargerBatches,
        UnusedRemedy::LatencyBound => document::Remedy::LatencyBound,
        UnusedRemedy::Requests => document::Remedy::Requests,
        UnusedRemedy::Nothing => document::Remedy::Nothing,
    }
}

/// Makes the entry of the energy; `None` if it was not measured.
fn energy(result: &HoldResult) -> Option<document::HoldEnergy> {
    result.energy.as_ref().map(energy_json)
}

/// Makes the entry of an energy.
fn energy_json(energy: &HoldEnergy) -> document::HoldEnergy {
    let (low, high) = energy.interval95;
    document::HoldEnergy {
        energy_j: energy.value.get(),
        interval95_j: [low.get(), high.get()],
        method: energy.method.to_string(),
    }
}

/// Makes the entries of the power caps and their times.
fn caps(result: &HoldResult) -> Vec<document::CapChange> {
    let caps = result.caps.iter().map(|(at, cap)| document::CapChange {
        time_s: at.get(),
        cap_w: cap.get(),
    });
    caps.collect()
}

/// Makes the entries of the settings and their times.
fn settings(result: &HoldResult) -> Vec<document::SettingChange> {
    let settings = result.settings.iter();
    let changes = settings.map(|(at, setting)| document::SettingChange {
        setting: setting_json(setting),
        time_s: at.get(),
    });
    changes.collect()
}

/// Makes the entries of power and throughput over time.
fn over_time(result: &HoldResult) -> Vec<document::Slice> {
    let slices = result.over_time.iter().map(|slice| document::Slice {
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

/// Makes the entries of notices during the run.
fn notes(result: &HoldResult) -> Vec<document::Note> {
    let notes = result.notices.iter().map(|(at, text)| document::Note {
        time_s: at.get(),
        text: text.clone(),
    });
    notes.collect()
}

fn setting_json(setting: &HoldSetting) -> document::Setting {
    document::Setting {
        batch: setting.batch,
        core_clock_mhz: setting.core_clock.map(|clock| clock.get()),
        power_cap_w: setting.power_cap.map(|cap| cap.get()),
    }
}
