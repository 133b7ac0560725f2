//! Shelly relays with a power meter, of the first and of the second generation.

use serde_json::{Value, json};
use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds};

use super::{HttpMeter, MAINS, PLUG, Page, Request, round};
use crate::{MeterKind, NodeEnergy};

impl HttpMeter {
    /// Answers a request to a Shelly.
    pub(super) fn shelly(&self, request: &Request<'_>, now: Moment, node: &dyn NodeEnergy) -> Page {
        if self.kind == MeterKind::ShellyGen1 {
            return self.shelly_gen1(request, now, node);
        }
        let is_three_phase = self.kind == MeterKind::ShellyThreePhase;
        let status = || match is_three_phase {
            true => self.three_phase_status(now, node),
            false => self.switch_status(now, node),
        };
        match request.path() {
            "/shelly" | "/rpc/Shelly.GetDeviceInfo" => (200, self.device_info()),
            "/rpc/Shelly.GetStatus" => {
                let name = if is_three_phase { "em:0" } else { "switch:0" };
                let unix = self.unix(now).get() as u64;
                let system = json!({"mac": self.mac().to_uppercase(), "unixtime": unix});
                (200, json!({name: status(), "sys": system}))
            }
            "/rpc/EM.GetStatus" if is_three_phase => of_component(request, status),
            "/rpc/EMData.GetStatus" if is_three_phase => {
                of_component(request, || self.three_phase_energy(now, node))
            }
            "/rpc/Switch.GetStatus" if !is_three_phase => of_component(request, status),
            other => {
                let method = other.strip_prefix("/rpc/").unwrap_or(other);
                let message = format!("No handler for {method}");
                (404, json!({"code": 404, "message": message}))
            }
        }
    }

    /// The description of a device of the second generation.
    fn device_info(&self) -> Value {
        let mac = self.mac();
        let (name, model, app) = match self.kind {
            MeterKind::ShellyThreePhase => ("shellypro3em", "SPEM-003CEBEU", "Pro3EM"),
            _ => ("shellyplus1pm", "SNSW-001P16EU", "Plus1PM"),
        };
        json!({
            "name": null,
            "id": format!("{name}-{mac}"),
            "mac": mac.to_uppercase(),
            "slot": 0,
            "model": self.faults.model().unwrap_or(model),
            "gen": 2,
            "fw_id": "20240625-122529/1.3.3-gbdfd9b3",
            "ver": "1.3.3",
            "app": app,
            "auth_en": self.faults.password().is_some(),
            "auth_domain": null,
        })
    }

    /// The state of the relay: power in steps of 0.1 W, energy in Wh with three places.
    fn switch_status(&self, now: Moment, node: &dyn NodeEnergy) -> Value {
        let shown = self.shown(&PLUG, now, node);
        let minutes = self.minutes(now, node);
        let minutes = minutes.map(|energy| round(energy.get() / 3.6, 3));
        let unix = shown.unix.get() as u64;
        json!({
            "id": 0,
            "source": "init",
            "output": true,
            "apower": round(shown.power.get(), 1),
            "voltage": round(MAINS, 1),
            "freq": 50.0,
            "current": round(shown.power.get() / MAINS, 3),
            "aenergy": {
                "total": round(shown.total.get() / 3600.0, 3),
                "by_minute": minutes,
                "minute_ts": unix - unix % 60,
            },
            "temperature": {"tC": 41.3, "tF": 106.3},
        })
    }

    /// The state of a meter of three phases, of which each carries a third of the node's power.
    fn three_phase_status(&self, now: Moment, node: &dyn NodeEnergy) -> Value {
        let power = self.shown(&PLUG, now, node).power.get();
        let mut page = json!({"id": 0});
        for phase in ["a", "b", "c"] {
            let mut set = |name: &str, value: f64| page[format!("{phase}_{name}")] = json!(value);
            set("current", round(power / 3.0 / MAINS, 3));
            set("voltage", MAINS);
            set("act_power", round(power / 3.0, 1));
            set("aprt_power", round(power / 3.0 / 0.98, 1));
            set("pf", 0.98);
            set("freq", 50.0);
        }
        page["n_current"] = Value::Null;
        page["total_current"] = json!(round(power / MAINS, 3));
        page["total_act_power"] = json!(round(power, 3));
        page["total_aprt_power"] = json!(round(power / 0.98, 3));
        page["user_calibrated_phase"] = json!([]);
        page
    }

    /// The energy of a meter of three phases, in Wh with two places.
    fn three_phase_energy(&self, now: Moment, node: &dyn NodeEnergy) -> Value {
        let total = self.shown(&PLUG, now, node).total.get() / 3600.0;
        let third = round(total / 3.0, 2);
        json!({
            "id": 0,
            "a_total_act_energy": third,
            "a_total_act_ret_energy": 0.0,
            "b_total_act_energy": third,
            "b_total_act_ret_energy": 0.0,
            "c_total_act_energy": third,
            "c_total_act_ret_energy": 0.0,
            "total_act": round(total, 2),
            "total_act_ret": 0.0,
        })
    }

    /// The energy of each of the last three whole minutes, the newest first.
    fn minutes(&self, now: Moment, node: &dyn NodeEnergy) -> [Joules; 3] {
        let minute = Seconds::new(60.0);
        let into_minute = Seconds::new(self.unix(now).get().rem_euclid(60.0));
        std::array::from_fn(|back| {
            let to = now + -(into_minute + minute * back as f64);
            (node.energy_until(to) - node.energy_until(to + -minute)) * self.gain
        })
    }

    /// Answers a request to a plug of the first generation: power in steps of 0.01 W, energy in whole watt-minutes.
    fn shelly_gen1(&self, request: &Request<'_>, now: Moment, node: &dyn NodeEnergy) -> Page {
        let meter = || {
            let shown = self.shown(&PLUG, now, node);
            let minutes = self.minutes(now, node);
            json!({
                "power": round(shown.power.get(), 2),
                "overpower": 0.0,
                "is_valid": true,
                "timestamp": shown.unix.get() as u64,
                "counters": minutes.map(|energy| round(energy.get() / 60.0, 3)),
                "total": (shown.total.get() / 60.0) as u64,
            })
        };
        match request.path() {
            "/shelly" => (
                200,
                json!({
                    "type": self.faults.model().unwrap_or("SHPLG-S"),
                    "mac": self.mac().to_uppercase(),
                    "auth": self.faults.password().is_some(),
                    "fw": "20230913-113421/v1.14.0-gcb84623",
                    "discoverable": false,
                    "num_outputs": 1,
                    "num_meters": 1,
                }),
            ),
            "/meter/0" => (200, meter()),
            "/status" => {
                let unix = self.unix(now).get() as u64;
                let relay =
                    json!({"ison": true, "has_timer": false, "overpower": false, "source": "http"});
                (
                    200,
                    json!({"unixtime": unix, "relays": [relay], "meters": [meter()]}),
                )
            }
            _ => (404, json!("Not Found")),
        }
    }
}

/// Answers a request about a component by its number, which must be 0.
fn of_component(request: &Request<'_>, page: impl FnOnce() -> Value) -> Page {
    match request.parameter("id").as_deref() {
        Some("0") => (200, page()),
        Some(other) => {
            let message = format!("Argument 'id', value {other} not found!");
            (500, json!({"code": -105, "message": message}))
        }
        None => {
            let message = "Missing required argument 'id'!";
            (500, json!({"code": -103, "message": message}))
        }
    }
}
