//! Plugs with the firmware Tasmota, new and old.

use serde_json::Value;
use sweetspot_quantity::{Joules, Watts};

use super::{Client, Values, missing, number};
use crate::config::MeterSettings;
use crate::error::Problem;

/// Joules in a kilowatt-hour.
const KILOWATT_HOUR: f64 = 3.6e6;
/// The two commands that show power, each with the part of the answer that has it.
const PAGES: [(&str, &str); 2] = [
    ("Status%2010", "/StatusSNS/ENERGY"),
    ("Status%208", "/StatusPWR"),
];

/// The page of a plug; the login is part of its address, as the firmware wants it.
pub(super) struct Page {
    url: String,
    place: &'static str,
    channel: u32,
}

/// Finds the page of a plug that shows power.
pub(super) fn find(client: &Client, url: &str, settings: &MeterSettings) -> Result<Page, Problem> {
    let password = settings.password().map_err(Problem::Refused)?;
    let login = password.map(|password| {
        let user = settings.user.as_deref().unwrap_or("admin");
        format!("user={}&password={}&", escape(user), escape(&password))
    });
    let login = login.unwrap_or_default();
    let mut answered = None;
    for (command, place) in PAGES {
        let page = Page {
            url: format!("{url}/cm?{login}cmnd={command}"),
            place,
            channel: settings.channel,
        };
        let Some(document) = client.get_json(&page.url)? else {
            continue;
        };
        if document.get("WARNING").is_some() {
            return Err(client.explain_refusal(None));
        }
        match page.values(&document) {
            Ok(_) => return Ok(page),
            Err(problem) => answered = Some(problem),
        }
    }
    Err(answered.unwrap_or_else(|| {
        Problem::Refused("it has no page /cm of Tasmota: check the address".to_owned())
    }))
}

impl Page {
    pub fn read(&self, client: &Client) -> Result<Values, Problem> {
        let document = client.get_json(&self.url)?;
        self.values(&document.ok_or_else(|| Problem::Failed("its page /cm is gone".to_owned()))?)
    }

    fn values(&self, document: &Value) -> Result<Values, Problem> {
        // A device with several relays has a list of powers, and one total.
        let channel = self.channel;
        let several = number(document, &format!("{}/Power/{channel}", self.place));
        let power = several.or_else(|| number(document, &format!("{}/Power", self.place)));
        let power = power.ok_or_else(|| missing("a Tasmota plug", document))?;
        let energy =
            number(document, &format!("{}/Total", self.place)).filter(|_| several.is_none());
        Ok(Values {
            power: Some(Watts::new(power)),
            energy: energy.map(|count| Joules::new(count * KILOWATT_HOUR)),
        })
    }
}

/// Escapes a text for a URL.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
