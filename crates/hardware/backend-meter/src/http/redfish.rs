//! Management controllers of servers by Redfish (DMTF DSP0266): EnvironmentMetrics, or Power on older ones.

use serde_json::Value;
use sweetspot_quantity::{Joules, Watts};

use super::{Client, Values, missing, number};
use crate::error::Problem;

/// Joules in a kilowatt-hour.
const KILOWATT_HOUR: f64 = 3.6e6;
/// The most chassis that are looked at.
const MAX_CHASSIS: usize = 32;

/// The page of a chassis that shows power.
pub(super) struct Page {
    url: String,
    power: String,
    energy: Option<&'static str>,
}

/// Finds the page of a controller, or of the chassis that the URL names, that shows power.
pub(super) fn find(client: &Client, url: &str, channel: u32) -> Result<(Page, String), Problem> {
    let root = url.split_once("/redfish").map_or(url, |(root, _)| root);
    let chassis = match url.contains("/Chassis/") {
        true => vec![url.to_owned()],
        false => list_chassis(client, root)?,
    };
    for chassis in &chassis {
        let pages = [
            Page {
                url: format!("{chassis}/EnvironmentMetrics"),
                power: "/PowerWatts/Reading".to_owned(),
                energy: Some("/EnergykWh/Reading"),
            },
            Page {
                url: format!("{chassis}/Power"),
                power: format!("/PowerControl/{channel}/PowerConsumedWatts"),
                energy: None,
            },
        ];
        for page in pages {
            let document = client.get_json(&page.url)?;
            if let Some(values) = document.map(|document| page.values(&document))
                && values.is_ok()
            {
                let name = chassis.rsplit('/').next().unwrap_or_default();
                let model = format!("Redfish chassis {name}");
                return Ok((page, model));
            }
        }
    }
    Err(Problem::Refused(match chassis.len() {
        0 => "it lists no chassis".to_owned(),
        _ => "none of its chassis shows its power: name one in the address, such as redfish:https://ADDRESS/redfish/v1/Chassis/1".to_owned(),
    }))
}

/// The addresses of the controller's chassis.
fn list_chassis(client: &Client, root: &str) -> Result<Vec<String>, Problem> {
    let document = client.get_json(&format!("{root}/redfish/v1/Chassis"))?;
    let document = document.ok_or_else(|| {
        Problem::Refused("it has no page /redfish/v1/Chassis: check the address".to_owned())
    })?;
    let members = document.get("Members").and_then(Value::as_array);
    let members = members.ok_or_else(|| missing("a Redfish controller", &document))?;
    let paths = members
        .iter()
        .filter_map(|member| member.get("@odata.id")?.as_str());
    // An address on another machine is not followed: it would get the password.
    let local = paths.filter(|path| path.starts_with('/') && !path.starts_with("//"));
    Ok(local
        .take(MAX_CHASSIS)
        .map(|path| format!("{root}{}", path.trim_end_matches('/')))
        .collect())
}

impl Page {
    pub fn read(&self, client: &Client) -> Result<Values, Problem> {
        let document = client.get_json(&self.url)?;
        self.values(
            &document.ok_or_else(|| Problem::Failed("its page with power is gone".to_owned()))?,
        )
    }

    fn values(&self, document: &Value) -> Result<Values, Problem> {
        let power = number(document, &self.power)
            .ok_or_else(|| missing("a Redfish controller", document))?;
        let energy = self.energy.and_then(|place| number(document, place));
        Ok(Values {
            power: Some(Watts::new(power)),
            energy: energy.map(|count| Joules::new(count * KILOWATT_HOUR)),
        })
    }
}
