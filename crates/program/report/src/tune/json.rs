//! What `tune` came to, for programs: `sweetspot.tune/1`.

use serde_json::{Map, Value, json};
use sweetspot_control::tune::{Claim, Cost, Purpose, Share, TunedLoad, Window};
use sweetspot_device::Settings;
use sweetspot_session::TunedJob;

/// As one object.
pub fn tuning_json(job: &TunedJob) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| {
        object.insert(name.to_owned(), value);
    };
    put("schema", json!("sweetspot.tune/1"));
    put("workload", json!(job.workload));
    let devices = job.devices.iter().map(|device| {
        json!({"uuid": device.id.as_str(), "name": device.name, "backend": device.backend})
    });
    put("devices", devices.collect());
    put("knob", json!(job.knob.to_string()));
    put("objective", json!(job.question.objective.to_string()));
    let limits = job.question.limits.iter();
    put(
        "limits",
        limits.map(|limit| json!(limit.to_string())).collect(),
    );
    put("strategy", json!(job.strategy.to_string()));
    put("status", json!(status(job)));
    if let Some(why) = &job.tuned.gave_up {
        put("reason", json!(why.to_string()));
    }
    if let Some(at) = job.tuned.gave_up_at {
        put("gave_up_at_s", json!(at.get()));
    }
    if job.is_outside_limits() {
        put("outside_limits", json!(true));
    }
    put("reference", settings(&job.settings[job.reference]));
    if let Some(choice) = job.choice() {
        put("choice", settings(&job.settings[choice]));
    }
    let last = job.tuned.last_choice().or(job.tuned.loads.last());
    if let Some(load) = last {
        if let Some(regret) = load.expected_regret {
            put("expected_regret", json!(regret));
        }
        if let Some(claim) = load.claim {
            put("against_reference", claim_json(&claim));
        }
    }
    if let Some(claim) = &job.tuned.whole {
        let mut whole = claim_map(claim);
        if let Some(saved) = job.tuned.energy_saved {
            whole.insert("energy_saved_j".to_owned(), json!(saved.get()));
        }
        put("whole", Value::Object(whole));
    }
    let loads = job.tuned.loads.iter();
    put("loads", loads.map(|load| load_json(job, load)).collect());
    let windows = job.tuned.windows.iter();
    put(
        "windows",
        windows.map(|window| window_json(job, window)).collect(),
    );
    let notices = job.tuned.notices.iter();
    let notices = notices.map(|(at, notice)| json!({"at_s": at.get(), "text": notice.to_string()}));
    put("notices", notices.collect());
    put("time_s", json!(job.time.get()));
    if let Some(energy) = job.energy {
        put("energy_j", json!(energy.get()));
    }
    if let Some(items) = job.items {
        put("items", json!(items));
    }
    put("restored", json!(job.restored));
    Value::Object(object)
}

fn status(job: &TunedJob) -> &'static str {
    match (&job.tuned.gave_up, job.tuned.ended_early) {
        (Some(_), _) => "gave-up",
        (None, true) => "ended-early",
        (None, false) => "settled",
    }
}

fn settings(settings: &Settings) -> Value {
    let mut object = Map::new();
    if let Some(cap) = settings.power_cap {
        object.insert("power_cap_w".to_owned(), json!(cap.get()));
    }
    if let Some(clock) = settings.core_clock {
        object.insert("core_clock_mhz".to_owned(), json!(clock.get()));
    }
    Value::Object(object)
}

fn share(share: &Share) -> Value {
    json!({
        "value": share.value.get(),
        "ci95": [share.low.get(), share.high.get()],
    })
}

fn claim_map(claim: &Claim) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("energy_saved".to_owned(), share(&claim.energy_saved));
    object.insert("time_lost".to_owned(), share(&claim.time_lost));
    object
}

fn claim_json(claim: &Claim) -> Value {
    Value::Object(claim_map(claim))
}

fn cost(cost: &Cost) -> Value {
    json!({"time_s": cost.time.get(), "energy_j": cost.energy.get()})
}

fn load_json(job: &TunedJob, load: &TunedLoad) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            object.insert(name.to_owned(), value);
        }
    };
    put("phase", load.phase.as_ref().map(|name| json!(name)));
    put(
        "steady_since_s",
        load.steady_since.map(|at| json!(at.get())),
    );
    put("found_at_s", load.found_at.map(|at| json!(at.get())));
    put(
        "choice",
        load.choice.map(|choice| settings(&job.settings[choice])),
    );
    put(
        "expected_regret",
        load.expected_regret.map(|regret| json!(regret)),
    );
    put("gain", load.gain.map(|gain| json!(gain)));
    put("evaluations", Some(json!(load.evaluations)));
    put("against_reference", load.claim.as_ref().map(claim_json));
    put("whole", load.whole.as_ref().map(claim_json));
    put(
        "energy_saved_j",
        load.energy_saved.map(|saved| json!(saved.get())),
    );
    put("exploring_cost", load.cost.as_ref().map(cost));
    put(
        "exploring_cost_against_choice",
        load.cost_against_choice.as_ref().map(cost),
    );
    Value::Object(object)
}

fn window_json(job: &TunedJob, window: &Window) -> Value {
    let mut object = Map::new();
    let purpose = match window.purpose {
        Purpose::Reference => "reference",
        Purpose::Explore => "explore",
        Purpose::Hold => "hold",
    };
    object.insert("purpose".to_owned(), json!(purpose));
    object.insert("settings".to_owned(), settings(&job.settings[window.place]));
    object.insert("begin_s".to_owned(), json!(window.begin.get()));
    object.insert("end_s".to_owned(), json!(window.end.get()));
    object.insert("power_w".to_owned(), json!(window.power.get()));
    if let Some(rate) = window.items_per_second {
        object.insert("items_per_s".to_owned(), json!(rate));
    }
    if let Some(energy) = window.energy_per_item() {
        object.insert("energy_per_item_j".to_owned(), json!(energy.get()));
    }
    let noise = json!({"time": window.noise.time, "energy": window.noise.energy});
    object.insert("noise".to_owned(), noise);
    Value::Object(object)
}
