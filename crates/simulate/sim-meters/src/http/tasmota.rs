//! A plug with the firmware Tasmota, in a new and an old version.

use serde_json::{Value, json};
use sweetspot_device::Moment;
use sweetspot_quantity::Seconds;

use super::text::iso_time;
use super::{HttpMeter, MAINS, PLUG, Page, Request, round};
use crate::{MeterKind, NodeEnergy};

impl HttpMeter {
    /// Answers a request to a plug with Tasmota. The new firmware answers `Status 8` as `Status 10`; the old one has the
    /// power in `Status 8` alone.
    pub(super) fn tasmota(
        &self,
        request: &Request<'_>,
        now: Moment,
        node: &dyn NodeEnergy,
    ) -> Page {
        if request.path() != "/cm" {
            return (404, json!({"Error": "File Not Found"}));
        }
        if let Some((user, secret)) = self.faults.password() {
            let given = (request.parameter("user"), request.parameter("password"));
            if given != (Some(user.to_owned()), Some(secret.to_owned())) {
                let warning = "Need user=<username>&password=<password>";
                return (401, json!({"WARNING": warning}));
            }
        }
        let command = request.parameter("cmnd").unwrap_or_default();
        let command = command.to_ascii_lowercase();
        let words: Vec<&str> = command.split_whitespace().collect();
        let is_old = self.kind == MeterKind::TasmotaOld;
        let time = || iso_time(self.unix(now));
        let page = match words[..] {
            ["status", "10"] if is_old => json!({"StatusSNS": {"Time": time()}}),
            ["status", "8"] if is_old => json!({"StatusPWR": self.tasmota_energy(now, node)}),
            ["status", "8" | "10"] => {
                json!({"StatusSNS": {"Time": time(), "ENERGY": self.tasmota_energy(now, node)}})
            }
            ["status", "2"] => {
                let version = if is_old { "5.9.1" } else { "13.4.0(tasmota)" };
                json!({"StatusFWR": {"Version": version, "Hardware": self.faults.model().unwrap_or("ESP8266EX")}})
            }
            ["status"] => {
                let name = self.faults.model().unwrap_or("Tasmota");
                json!({"Status": {"Module": 0, "DeviceName": name, "FriendlyName": [name], "Power": 1}})
            }
            _ => json!({"Command": "Unknown"}),
        };
        (200, page)
    }

    /// The energy and power: whole watts, kWh with three places.
    fn tasmota_energy(&self, now: Moment, node: &dyn NodeEnergy) -> Value {
        let shown = self.shown(&PLUG, now, node);
        let first = self.shown(&PLUG, self.origin, node);
        let kwh = |joules: f64| round(joules / 3.6e6, 3);
        let power = shown.power.get();
        let start = iso_time(self.unix_origin + Seconds::new(-8.64e6));
        json!({
            "TotalStartTime": start,
            "Total": kwh(shown.total.get()),
            "Yesterday": 0.0,
            "Today": kwh((shown.total - first.total).get()),
            "Period": 0,
            "Power": power.round() as u64,
            "ApparentPower": (power / 0.98).round() as u64,
            "ReactivePower": (power * 0.2).round() as u64,
            "Factor": 0.98,
            "Voltage": MAINS as u64,
            "Current": round(power / 0.98 / MAINS, 3),
        })
    }
}
