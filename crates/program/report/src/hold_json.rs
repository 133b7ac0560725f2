//! The JSON of a hold, schema `sweetspot.hold/1`.

use serde_json::{Map, Value, json};
use sweetspot_control::hold::{HoldGoal, HoldSetting};
use sweetspot_guard::CommandExit;
use sweetspot_session::hold::HoldResult;

use crate::hold::energy_per_item;
use crate::measure_json::machine_json;

/// What is not known is absent.
pub fn held_json(held: &HoldResult) -> Value {
    let summary = &held.summary;
    let mut object = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            object.insert(name.to_owned(), value);
        }
    };
    put("schema", Some(json!("sweetspot.hold/1")));
    put("command", Some(json!(held.command)));
    put("machine", Some(machine_json(&held.machine)));
    put(
        "device",
        Some(json!({"uuid": held.device.id.as_str(), "name": held.device.name})),
    );
    put("knob", Some(json!(held.knob.name())));
    put("mode", Some(json!(held.mode.name())));
    let goal = match held.goal {
        HoldGoal::Throughput => "throughput",
        HoldGoal::EnergyPerItem => "energy-per-item",
    };
    put("objective", Some(json!(goal)));
    put("batches", Some(json!(held.batches)));
    put("cap_w", held.caps.last().map(|(_, cap)| json!(cap.get())));
    put("run_time_s", Some(json!(held.run_time.get())));
    put("time_s", Some(json!(summary.time.get())));
    put("items", Some(json!(summary.items)));
    put("items_per_s", Some(json!(summary.items_per_s)));
    put(
        "settled_items_per_s",
        held.settled_items_per_s.map(|rate| json!(rate)),
    );
    if let Some(energy) = &held.energy {
        put("energy_j", Some(json!(energy.value.get())));
        let (low, high) = energy.interval95;
        put("interval95_j", Some(json!([low.get(), high.get()])));
        put("method", Some(json!(energy.method.to_string())));
    }
    put(
        "energy_per_item_j",
        energy_per_item(held).map(|joules| json!(joules)),
    );
    let share = |share: Option<sweetspot_quantity::Ratio>| share.map(|share| json!(share.get()));
    put("violation_share", share(summary.violation_share));
    put("fine_share", share(summary.fine_share));
    put(
        "fine_p99_w",
        summary.fine_p99.map(|power| json!(power.get())),
    );
    put(
        "largest_mean_w",
        summary.largest_mean.map(|power| json!(power.get())),
    );
    put(
        "settle_s",
        summary.settle_time.map(|time| json!(time.get())),
    );
    put(
        "settle_windows",
        summary.settle_windows.map(|windows| json!(windows)),
    );
    put("changes", Some(json!(summary.changes)));
    put(
        "average_batch",
        summary.average_batch.map(|size| json!(size)),
    );
    put(
        "latency_p99_s",
        held.latency_p99.map(|time| json!(time.get())),
    );
    put(
        "latency_bound_s",
        held.latency_bound.map(|time| json!(time.get())),
    );
    put("met", held.verdict.is_met().map(|met| json!(met)));
    put("met_reason", Some(json!(held.verdict.reason())));
    put("restored", Some(json!(held.restored)));
    match held.ended {
        CommandExit::Code(code) => put("exit_code", Some(json!(code))),
        CommandExit::Signal(signal) => put("signal", Some(json!(signal))),
    }
    let caps = held.caps.iter();
    let caps = caps.map(|(at, cap)| json!({"time_s": at.get(), "cap_w": cap.get()}));
    put("caps", Some(caps.collect()));
    let settings = held.settings.iter().map(|(at, setting)| {
        let mut row = setting_json(setting);
        row.insert("time_s".to_owned(), json!(at.get()));
        Value::Object(row)
    });
    put("settings", Some(settings.collect()));
    let over_time = held.over_time.iter().map(|slice| {
        let mut row = setting_json(&slice.setting);
        row.insert("time_s".to_owned(), json!(slice.at.get()));
        if let (Some(power), Some(highest)) = (slice.power, slice.highest) {
            row.insert("power_w".to_owned(), json!(power.get()));
            row.insert("highest_w".to_owned(), json!(highest.get()));
        }
        row.insert("cap_w".to_owned(), json!(slice.cap.get()));
        row.insert("items_per_s".to_owned(), json!(slice.items_per_s));
        Value::Object(row)
    });
    put("over_time", Some(over_time.collect()));
    let notes = held.notices.iter();
    let notes = notes.map(|(at, text)| json!({"time_s": at.get(), "text": text}));
    put("notes", Some(notes.collect()));
    Value::Object(object)
}

fn setting_json(setting: &HoldSetting) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("batch".to_owned(), json!(setting.batch));
    if let Some(clock) = setting.core_clock {
        row.insert("core_clock_mhz".to_owned(), json!(clock.get()));
    }
    if let Some(cap) = setting.power_cap {
        row.insert("power_cap_w".to_owned(), json!(cap.get()));
    }
    row
}
