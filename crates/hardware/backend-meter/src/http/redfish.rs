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

/// A chassis that shows power.
struct Found {
    page: Page,
    /// The last part of its address.
    name: String,
    url: String,
    watts: Watts,
}

/// The types of chassis that are parts of a machine (DSP0268, ChassisType).
const PARTS: [&str; 7] = [
    "Component",
    "Module",
    "Card",
    "Cartridge",
    "Zone",
    "StorageEnclosure",
    "Drawer",
];

/// Finds the page of a controller, or of the chassis that the URL names, that shows power. Where several chassis do, the
/// machine's own is that which is neither within another one nor a part by its type; if that does not leave one of them,
/// the user must name it.
pub(super) fn find(client: &Client, url: &str, channel: u32) -> Result<(Page, String), Problem> {
    let root = url.split_once("/redfish").map_or(url, |(root, _)| root);
    let is_named = url.contains("/Chassis/");
    let chassis = match is_named {
        true => vec![url.to_owned()],
        false => list_chassis(client, root)?,
    };
    let mut found: Vec<Found> = Vec::new();
    for url in &chassis {
        found.extend(find_page(client, url, channel)?);
    }
    if found.is_empty() {
        return Err(Problem::Refused(match chassis.len() {
            0 => "it lists no chassis".to_owned(),
            _ if is_named => "the chassis in its address shows no power".to_owned(),
            _ => "none of its chassis shows its power: name one in the address, such as redfish:https://ADDRESS/redfish/v1/Chassis/1".to_owned(),
        }));
    }
    let shown: Vec<String> = found
        .iter()
        .map(|one| format!("{} ({:.0} W)", one.name, one.watts.get()))
        .collect();
    let shown = shown.join(", ");
    let largest = found
        .iter()
        .max_by(|a, b| a.watts.get().total_cmp(&b.watts.get()));
    let example = largest.map_or_else(String::new, |one| one.url.clone());
    let several = found.len() > 1;
    if several {
        let mut own = Vec::new();
        for one in found {
            if is_whole_machine(client, &one.url)? {
                own.push(one);
            }
        }
        found = own;
    }
    match <[Found; 1]>::try_from(found) {
        Ok([one]) => {
            let model = match several {
                true => format!(
                    "Redfish chassis {} of those that show power: {shown}",
                    one.name
                ),
                false => format!("Redfish chassis {}", one.name),
            };
            Ok((one.page, model))
        }
        Err(_) => Err(Problem::Refused(format!(
            "several of its chassis show power: {shown}; name that of the whole machine in the address, such as redfish:{example}"
        ))),
    }
}

/// Finds the page of a chassis that shows power; `None` if it has none. A page that fails is none.
fn find_page(client: &Client, chassis: &str, channel: u32) -> Result<Option<Found>, Problem> {
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
        let document = client.get_json_if_shown(&page.url)?;
        let values = document.and_then(|document| page.values(&document).ok());
        if let Some(watts) = values.and_then(|values| values.power) {
            let name = chassis.rsplit('/').next().unwrap_or_default().to_owned();
            let url = chassis.to_owned();
            return Ok(Some(Found {
                page,
                name,
                url,
                watts,
            }));
        }
    }
    Ok(None)
}

/// Whether a chassis is neither within another one nor a part by its type.
fn is_whole_machine(client: &Client, chassis: &str) -> Result<bool, Problem> {
    let document = client.get_json_if_shown(chassis)?.unwrap_or_default();
    let kind = document.get("ChassisType").and_then(Value::as_str);
    let is_part = kind.is_some_and(|kind| PARTS.contains(&kind));
    let is_within = document.pointer("/Links/ContainedBy/@odata.id").is_some();
    Ok(!is_part && !is_within)
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
