//! What a client has asked for, read from its bytes without the service's own types, and what the policy allows.

use serde_json::Value;
use sweetspot_device::Knob;
use sweetspot_quantity::{Megahertz, Quantity, Watts};
use sweetspot_service::zeusd::{Request, RequestReader};

use super::device::{CAP, Change, GPUS, PERSISTENCE, id_of};

/// The policy of the second pass; USER stands for the id of the user. Nothing is allowed on GPU 1.
pub const POLICY: &str = "
[[allow]]
users = [USER]
gpus = [0]
power-cap = \"150..250 W\"
core-clock = true
persistence = true

[[allow]]
users = [USER]
gpus = [2]
core-clock = \"900..1100 MHz\"
memory-clock = true
ceiling = true
";

/// Whether the policy allows a change. It is written down a second time, so that a mistake in the service is found.
fn is_in_policy(gpu: usize, change: Change) -> bool {
    match (gpu, change) {
        (0, Change::Set(Knob::PowerCap, watts)) => (150.0..=250.0).contains(&watts),
        (0, Change::Set(Knob::CoreClock, _)) => true,
        (0, Change::Persistence(_)) => true,
        (2, Change::Set(Knob::CoreClock, clock)) => (900.0..=1100.0).contains(&clock),
        (2, Change::Set(Knob::MemoryClock, _)) => true,
        // Only as a ceiling.
        (2, Change::Set(Knob::PowerCap, _)) => true,
        _ => false,
    }
}

/// Whether a change restores what was there before the test.
pub fn is_restoration(change: Change) -> bool {
    match change {
        Change::Set(knob, value) => knob == Knob::PowerCap && value == CAP,
        Change::Reset(knob) => knob != Knob::PowerCap,
        Change::Persistence(on) => on == PERSISTENCE,
    }
}

/// What valid requests have asked for.
#[derive(Debug, Default)]
pub struct Asked {
    changes: Vec<(usize, Change)>,
    /// Whether a request takes changes back.
    takes_back: bool,
}

impl Asked {
    /// Reads everything that a client has sent on a connection.
    pub fn read(sent: &[u8]) -> Self {
        let mut asked = Self::default();
        if sent.first() == Some(&b'{') {
            for line in sent.split(|byte| *byte == b'\n') {
                if let Ok(request) = serde_json::from_slice::<Value>(line) {
                    asked.add_line(&request);
                }
            }
            return asked;
        }
        let mut reader = RequestReader::new();
        for piece in sent.chunks(4096) {
            reader.push(piece);
            while let Ok(Some(request)) = reader.next_request() {
                asked.add_http(&request);
            }
        }
        asked
    }

    /// Whether the service may make this change for these requests.
    pub fn explains(&self, gpu: usize, change: Change) -> bool {
        let is_asked = self.changes.contains(&(gpu, change)) && is_in_policy(gpu, change);
        is_asked || self.takes_back && is_restoration(change)
    }

    fn add_line(&mut self, request: &Value) {
        if request == "release" || request.get("release").is_some() {
            self.takes_back = true;
        }
        if request.get("restore").is_some() {
            self.takes_back = true;
        }
        let Some(apply) = request.get("apply") else {
            return;
        };
        let device = part(apply, "device", 0).and_then(Value::as_str);
        let gpu = (0..GPUS).find(|gpu| device == Some(id_of(*gpu).as_str()));
        let (Some(gpu), Some(settings)) = (gpu, part(apply, "settings", 1)) else {
            return;
        };
        let text = |name, place| part(settings, name, place).and_then(Value::as_str);
        let watts = text("power_cap", 0).and_then(base::<Watts>);
        let core = text("core_clock", 1).and_then(base::<Megahertz>);
        let memory = text("memory_clock", 2).and_then(base::<Megahertz>);
        let knobs = [
            (Knob::PowerCap, watts),
            (Knob::CoreClock, core),
            (Knob::MemoryClock, memory),
        ];
        for (knob, value) in knobs {
            let change = value.map(|value| (gpu, Change::Set(knob, value)));
            self.changes.extend(change);
        }
    }

    fn add_http(&mut self, request: &Request) {
        let get = |name: &str| {
            let found = request.query.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        let number = |name| get(name).and_then(|text| text.parse::<u32>().ok());
        let clock = number("min_clock_mhz").filter(|min| number("max_clock_mhz") == Some(*min));
        let change = match request.path.as_str() {
            "/gpu/set_power_limit" => number("power_limit_mw")
                .map(|limit| Change::Set(Knob::PowerCap, f64::from(limit) / 1e3)),
            "/gpu/set_gpu_locked_clocks" => {
                clock.map(|clock| Change::Set(Knob::CoreClock, f64::from(clock)))
            }
            "/gpu/set_mem_locked_clocks" => {
                clock.map(|clock| Change::Set(Knob::MemoryClock, f64::from(clock)))
            }
            "/gpu/set_persistence_mode" => get("enabled")
                .and_then(|text| text.parse().ok())
                .map(Change::Persistence),
            path => {
                self.takes_back |= path.starts_with("/gpu/reset_");
                None
            }
        };
        let Some(change) = change.filter(|_| request.method == "POST") else {
            return;
        };
        let ids = get("gpu_ids").unwrap_or_default().split(',');
        let ids = ids.filter_map(|id| id.trim().parse::<usize>().ok());
        self.changes.extend(ids.map(|gpu| (gpu, change)));
    }
}

/// A part of a JSON value, by name or by its place in a list.
fn part<'a>(value: &'a Value, name: &str, place: usize) -> Option<&'a Value> {
    value.get(name).or_else(|| value.get(place))
}

/// The value of a quantity in its base unit.
fn base<Q: Quantity + std::str::FromStr>(text: &str) -> Option<f64> {
    text.parse::<Q>().ok().map(Quantity::base)
}
