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
        let status = || self.switch_status(now, node);
        match request.path() {
            "/shelly" | "/rpc/Shelly.GetDeviceInfo" => (200, self.device_info()),
            "/rpc/Shelly.GetStatus" => {
                let unix = self.unix(now).get() as u64;
                (
                    200,
                    json!({"switch:0": status(), "sys": {"mac": self.mac().to_uppercase(), "unixtime": unix}}),
                )
            }
            "/rpc/Switch.GetStatus" => match request.parameter("id").as_deref() {
                Some("0") => (200, status()),
                Some(other) => {
                    let message = format!("Argument 'id', value {other} not found!");
                    (500, json!({"code": -105, "message": message}))
                }
                None => {
                    let message = "Missing required argument 'id'!";
                    (500, json!({"code": -103, "message": message}))
                }
            },
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
        json!({
            "name": null,
            "id": format!("shellyplus1pm-{mac}"),
            "mac": mac.to_uppercase(),
            "slot": 0,
            "model": self.faults.model().unwrap_or("SNSW-001P16EU"),
            "gen": 2,
            "fw_id": "20240625-122529/1.3.3-gbdfd9b3",
            "ver": "1.3.3",
            "app": "Plus1PM",
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
