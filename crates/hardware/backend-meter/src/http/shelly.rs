//! Shelly plugs and energy meters: generation 2 and newer by RPC, generation 1 by its pages.

use serde_json::Value;
use sweetspot_quantity::{Joules, Watts};

use super::{Client, Values, missing, number};
use crate::error::Problem;

/// Joules in a watt-hour and in a watt-minute, the units of the two generations.
const WATT_HOUR: f64 = 3600.0;
const WATT_MINUTE: f64 = 60.0;

/// The pages of Shelly devices with power, each with the place of its power, of its energy, and the energy's unit. A plug
/// (`Switch`), a meter without a switch (`PM1`), one phase of a meter with clamps (`EM1`), three phases together (`EM`),
/// and the two pages of generation 1.
const PAGES: [(&str, &str, &str, f64, &str); 6] = [
    (
        "/rpc/Switch.GetStatus?id=",
        "/apower",
        "/aenergy/total",
        WATT_HOUR,
        "Shelly plug",
    ),
    (
        "/rpc/EM.GetStatus?id=",
        "/total_act_power",
        "",
        0.0,
        "Shelly three-phase meter",
    ),
    (
        "/rpc/PM1.GetStatus?id=",
        "/apower",
        "/aenergy/total",
        WATT_HOUR,
        "Shelly meter",
    ),
    (
        "/rpc/EM1.GetStatus?id=",
        "/act_power",
        "",
        0.0,
        "Shelly meter",
    ),
    (
        "/meter/",
        "/power",
        "/total",
        WATT_MINUTE,
        "Shelly plug (generation 1)",
    ),
    (
        "/emeter/",
        "/power",
        "/total",
        WATT_HOUR,
        "Shelly meter (generation 1)",
    ),
];

/// The page of a device, and where its values are.
#[derive(Clone, Debug)]
pub(super) struct Page {
    url: String,
    power: &'static str,
    energy: &'static str,
    unit: f64,
}

/// Finds the page of a device that shows power.
pub(super) fn find(client: &Client, url: &str, channel: u32) -> Result<(Page, String), Problem> {
    let mut answered = None;
    for (path, power, energy, unit, model) in PAGES {
        let page = Page {
            url: format!("{url}{path}{channel}"),
            power,
            energy,
            unit,
        };
        // A device of another generation may answer with a page of its own, which is not JSON.
        match client.get_json(&page.url) {
            Ok(None) => {}
            Ok(Some(document)) if page.values(&document).is_ok() => {
                return Ok((page, model.to_owned()));
            }
            Ok(Some(document)) => answered = Some(missing("a Shelly", &document)),
            Err(Problem::Failed(text))
                if text.ends_with("which is not JSON") || text.contains("HTTP status") =>
            {
                answered = Some(Problem::Failed(text));
            }
            Err(problem) => return Err(problem),
        }
    }
    Err(answered.unwrap_or_else(|| {
        Problem::Refused(format!("it has no page of a Shelly with power for channel {channel}: check the address, and channel in meters.toml"))
    }))
}

impl Page {
    pub fn read(&self, client: &Client) -> Result<Values, Problem> {
        let document = client.get_json(&self.url)?;
        self.values(
            &document.ok_or_else(|| Problem::Failed("its page with power is gone".to_owned()))?,
        )
    }

    fn values(&self, document: &Value) -> Result<Values, Problem> {
        let power = number(document, self.power).ok_or_else(|| missing("a Shelly", document))?;
        let energy = match self.energy.is_empty() {
            true => None,
            false => number(document, self.energy),
        };
        Ok(Values {
            power: Some(Watts::new(power)),
            energy: energy.map(|count| Joules::new(count * self.unit)),
        })
    }
}
