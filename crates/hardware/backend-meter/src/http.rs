//! Meters that are read over HTTP: one client, and for each kind of meter where its values are.

mod explain;
mod prometheus;
mod redfish;
mod remote;
mod shelly;
mod tasmota;

use std::time::Duration;

use serde_json::Value;
use sweetspot_device::{Clock, MeterReading, Moment};
use sweetspot_quantity::{Joules, Seconds, Watts};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};

use crate::channel::Source;
use crate::config::MeterSettings;
use crate::error::{Problem, excerpt};
use crate::spec::HttpKind;
use explain::explain;

/// The longest wait for an answer; controllers of servers take seconds.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// The largest answer that is read.
const MAX_ANSWER: u64 = 4 << 20;
/// How the problem of a page that the meter cannot show begins.
const HTTP_STATUS: &str = "it answers with HTTP status";
/// The largest accepted file of certificates.
const MAX_CERTIFICATES: u64 = 1 << 20;

/// The values that a meter shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Values {
    pub power: Option<Watts>,
    pub energy: Option<Joules>,
}

/// Where the values of a meter are, found when it was connected.
enum Page {
    Shelly(shelly::Page),
    Tasmota(tasmota::Page),
    Redfish(redfish::Page),
    Prometheus(prometheus::Metric),
    Remote(remote::Remote),
}

/// A connection to a meter.
pub(crate) struct HttpMeter {
    client: Client,
    page: Page,
    interval: Seconds,
    last: Option<Moment>,
}

impl HttpMeter {
    /// Connects to a meter and finds where its values are. Returns its model too.
    pub fn connect(
        kind: HttpKind,
        url: &str,
        settings: &MeterSettings,
        period: Seconds,
    ) -> Result<(Self, String), Problem> {
        let client = Client::new(kind, settings)?;
        let (page, model) = match kind {
            HttpKind::Shelly => shelly::find(&client, url, settings.channel)
                .map(|(page, model)| (Page::Shelly(page), model)),
            HttpKind::Tasmota => tasmota::find(&client, url, settings)
                .map(|page| (Page::Tasmota(page), "Tasmota".to_owned())),
            HttpKind::Redfish => redfish::find(&client, url, settings.channel)
                .map(|(page, model)| (Page::Redfish(page), model)),
            HttpKind::Prometheus => prometheus::Metric::parse(url, settings.unit).map(|metric| {
                let name = metric.to_string();
                (Page::Prometheus(metric), name)
            }),
            HttpKind::Sweetspot => {
                remote::find(&client, url).map(|(page, model)| (Page::Remote(page), model))
            }
        }?;
        // Four reads in a period find the moment of an update to an eighth of it.
        let interval = match settings.interval {
            Some(interval) => interval,
            // The service measures when it is asked.
            None if kind == HttpKind::Sweetspot => period,
            None => period / 4.0,
        };
        Ok((
            Self {
                client,
                page,
                interval,
                last: None,
            },
            model,
        ))
    }
}

impl Source for HttpMeter {
    fn read(&mut self, clock: &dyn Clock) -> Result<MeterReading, Problem> {
        let began = clock.now();
        let values = match &mut self.page {
            Page::Shelly(page) => page.read(&self.client),
            Page::Tasmota(page) => page.read(&self.client),
            Page::Redfish(page) => page.read(&self.client),
            Page::Prometheus(metric) => metric.read(&self.client),
            // It says itself which moment its values belong to.
            Page::Remote(page) => return page.read(&self.client, clock),
        }?;
        let at = clock.now();
        let after = self.last.replace(began).unwrap_or(began);
        Ok(MeterReading {
            after,
            at,
            power: values.power,
            energy: values.energy,
        })
    }

    fn interval(&self) -> Option<Seconds> {
        Some(self.interval)
    }
}

/// An HTTP client with a login, limits on time and size, and the user's choice of certificates.
pub(crate) struct Client {
    agent: ureq::Agent,
    login: Option<String>,
    /// Whether the other side wants a token rather than a name and a password.
    wants_token: bool,
}

impl Client {
    fn new(kind: HttpKind, settings: &MeterSettings) -> Result<Self, Problem> {
        let password = settings.password().map_err(Problem::Refused)?;
        let login = password.map(|password| {
            if kind == HttpKind::Sweetspot {
                return format!("Bearer {}", password.trim());
            }
            let user = settings.user.as_deref().unwrap_or("admin");
            format!("Basic {}", base64(format!("{user}:{password}").as_bytes()))
        });
        let mut tls = TlsConfig::builder().disable_verification(settings.insecure);
        if let Some(path) = &settings.ca_file {
            tls = tls.root_certs(read_certificates(path)?);
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(ANSWER_TIME))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("sweetspot/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build());
        Ok(Self {
            agent: config.build().into(),
            login,
            wants_token: kind == HttpKind::Sweetspot,
        })
    }

    /// Reads a page; `None` if the meter has no such page.
    fn get(&self, url: &str) -> Result<Option<String>, Problem> {
        let mut request = self.agent.get(url);
        if let Some(login) = &self.login {
            request = request.header("Authorization", login);
        }
        let mut answer = request.call().map_err(|error| explain(&error))?;
        match answer.status().as_u16() {
            200 => {}
            401 | 403 => return Err(self.explain_refusal(answer.headers().get("www-authenticate"))),
            404 | 405 | 501 => return Ok(None),
            status => {
                return Err(Problem::Failed(format!("{HTTP_STATUS} {status}")));
            }
        }
        let body = answer
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER)
            .read_to_string();
        body.map(Some).map_err(|error| explain(&error))
    }

    /// Reads a page of JSON; `None` if the meter has no such page, or answers that it cannot show it.
    fn get_json_if_shown(&self, url: &str) -> Result<Option<Value>, Problem> {
        match self.get_json(url) {
            Err(Problem::Failed(text)) if text.starts_with(HTTP_STATUS) => Ok(None),
            document => document,
        }
    }

    /// Reads a page of JSON; `None` if the meter has no such page.
    fn get_json(&self, url: &str) -> Result<Option<Value>, Problem> {
        let Some(text) = self.get(url)? else {
            return Ok(None);
        };
        serde_json::from_str(&text).map(Some).map_err(|_| {
            Problem::Failed(format!(
                "it answers `{}`, which is not JSON",
                excerpt(&text)
            ))
        })
    }

    /// Why the meter refused a request.
    fn explain_refusal(&self, challenge: Option<&ureq::http::HeaderValue>) -> Problem {
        let challenge = challenge
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let is_digest = challenge.to_lowercase().starts_with("digest");
        Problem::Refused(match &self.login {
            _ if is_digest => "it wants a login by digest, which is not supported: switch its password off, or put it behind a proxy on this machine".to_owned(),
            Some(_) if self.wants_token => "it refuses the token: check password-file and password-env in meters.toml".to_owned(),
            None if self.wants_token => "it wants a token: name the meter in meters.toml, with password-file = \"FILE\" or password-env = \"VARIABLE\" for the token".to_owned(),
            Some(_) => "it refuses the user name or password: check user, password-file and password-env in meters.toml".to_owned(),
            None => "it wants a password: name it in meters.toml, with user = \"NAME\" and password-file = \"FILE\" or password-env = \"VARIABLE\"".to_owned(),
        })
    }
}

/// Reads the certificates of a PEM file.
fn read_certificates(path: &std::path::Path) -> Result<RootCerts, Problem> {
    let file = path.display();
    let bytes = sweetspot_input::read_bytes(path, MAX_CERTIFICATES).map_err(|error| {
        Problem::Refused(format!("cannot read the certificates {file}: {error}"))
    })?;
    let items: Vec<Certificate<'static>> = ureq::tls::parse_pem(&bytes)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    match items.is_empty() {
        true => Err(Problem::Refused(format!(
            "{file} has no certificate in PEM form"
        ))),
        false => Ok(RootCerts::from(items)),
    }
}

/// The problem that an answer has not the fields of its kind of meter.
fn missing(kind: &str, answer: &Value) -> Problem {
    Problem::Failed(format!(
        "it answers `{}`, which has no power of {kind}",
        excerpt(&answer.to_string())
    ))
}

/// A number at a place of a JSON document, written as a number or as a text.
fn number(document: &Value, pointer: &str) -> Option<f64> {
    let value = document.pointer(pointer)?;
    let number = value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite())
}

/// Encodes bytes for an HTTP login (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let word = part
            .iter()
            .fold(0u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - part.len()));
        for digit in 0..4 {
            text.push(match digit <= part.len() {
                true => char::from(DIGITS[(word >> (18 - 6 * digit)) as usize & 63]),
                false => '=',
            });
        }
    }
    text
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;
