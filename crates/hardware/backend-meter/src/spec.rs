//! The one syntax by which a user names a meter: `KIND:ADDRESS`.

use std::path::PathBuf;

use crate::MeterError;

/// A meter that is read over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpKind {
    /// A Shelly plug or energy meter, of any generation.
    Shelly,
    /// A plug with the firmware Tasmota.
    Tasmota,
    /// The management controller of a server.
    Redfish,
    /// A page of metrics in the format of Prometheus.
    Prometheus,
    /// The measuring service of Sweetspot on another machine.
    Sweetspot,
}

/// Where a meter that answers line by line is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A USB measurement device, `/dev/usbtmcN`.
    Usbtmc(PathBuf),
    /// A serial port.
    Serial(PathBuf),
    /// A network address, `HOST:PORT`.
    Tcp(String),
    /// A command whose output is read; only a meters.toml can name one.
    Command,
}

/// A meter as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// A Yokogawa WT310 or WT310E.
    Wt310(Target),
    /// A meter that is read over HTTP, by its kind and URL.
    Http(HttpKind, String),
    /// A power or energy channel that the kernel shows through hwmon: `NAME` or `NAME/CHANNEL`.
    Hwmon(String),
    /// A meter that sends lines of text; `pattern` in meters.toml says what they mean.
    Line(Target),
}

/// The forms of a spec, for messages.
const FORMS: &str = "wt310:/dev/usbtmc0, wt310:/dev/ttyUSB0, wt310:tcp://HOST:PORT, shelly:http://ADDRESS, tasmota:http://ADDRESS, redfish:https://ADDRESS, prometheus:URL#METRIC, sweetspot://HOST:PORT, hwmon:NAME/CHANNEL or a name in meters.toml";

impl std::str::FromStr for Spec {
    type Err = MeterError;

    fn from_str(text: &str) -> Result<Self, MeterError> {
        let unknown = || MeterError::Invalid(format!("unknown meter `{text}`: write {FORMS}"));
        let (kind, address) = text.split_once(':').ok_or_else(unknown)?;
        let http = |kind| Ok(Self::Http(kind, parse_url(kind, address)?));
        match kind {
            "wt310" | "wt310e" => Ok(Self::Wt310(parse_target(address)?)),
            "hwmon" if address.trim_matches('/').is_empty() => Err(MeterError::Invalid(
                "the spec `hwmon:` names no chip: `sweetspot devices` lists them, such as hwmon:ina219:0-0040/power1"
                    .to_owned(),
            )),
            "hwmon" => Ok(Self::Hwmon(address.to_owned())),
            "line" => Ok(Self::Line(parse_target(address)?)),
            "shelly" => http(HttpKind::Shelly),
            "tasmota" => http(HttpKind::Tasmota),
            "redfish" => http(HttpKind::Redfish),
            "prometheus" => http(HttpKind::Prometheus),
            // sweetspot://HOST:PORT is short for sweetspot:http://HOST:PORT.
            "sweetspot" if address.starts_with("//") => Ok(Self::Http(
                HttpKind::Sweetspot,
                parse_url(HttpKind::Sweetspot, &format!("http:{address}"))?,
            )),
            "sweetspot" => http(HttpKind::Sweetspot),
            _ => Err(unknown()),
        }
    }
}

impl std::fmt::Display for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Wt310(target) => write!(f, "wt310:{target}"),
            Self::Hwmon(channel) => write!(f, "hwmon:{channel}"),
            Self::Line(target) => write!(f, "line:{target}"),
            Self::Http(HttpKind::Shelly, url) => write!(f, "shelly:{url}"),
            Self::Http(HttpKind::Tasmota, url) => write!(f, "tasmota:{url}"),
            Self::Http(HttpKind::Redfish, url) => write!(f, "redfish:{url}"),
            Self::Http(HttpKind::Prometheus, url) => write!(f, "prometheus:{url}"),
            Self::Http(HttpKind::Sweetspot, url) => match url.strip_prefix("http:") {
                Some(address) => write!(f, "sweetspot:{address}"),
                None => write!(f, "sweetspot:{url}"),
            },
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usbtmc(path) | Self::Serial(path) => write!(f, "{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Command => f.write_str("command"),
        }
    }
}

/// Parses where a line-based meter is connected.
fn parse_target(address: &str) -> Result<Target, MeterError> {
    if let Some(address) = address.strip_prefix("tcp://") {
        let port = address
            .rsplit_once(':')
            .map(|(host, port)| (host, port.parse::<u16>()));
        return match port {
            Some((host, Ok(1..))) if !host.is_empty() => Ok(Target::Tcp(address.to_owned())),
            _ => Err(MeterError::Invalid(format!(
                "the address `tcp://{address}` needs a host and a port, such as tcp://192.168.1.5:10001"
            ))),
        };
    }
    match address {
        "command" => Ok(Target::Command),
        path if path.starts_with('/') => Ok(match path.contains("usbtmc") {
            true => Target::Usbtmc(path.into()),
            false => Target::Serial(path.into()),
        }),
        _ => Err(MeterError::Invalid(format!(
            "unknown place `{address}` of a meter: write a device such as /dev/usbtmc0 or /dev/ttyUSB0, or tcp://HOST:PORT"
        ))),
    }
}

/// Checks the URL of a meter; a password in it is refused.
fn parse_url(kind: HttpKind, url: &str) -> Result<String, MeterError> {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let Some(rest) = rest else {
        return Err(MeterError::Invalid(format!(
            "the address `{}` of a meter must begin with http:// or https://",
            without_password(url)
        )));
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err(MeterError::Invalid(
            "a password in a URL is visible to every user of this machine: name the meter in meters.toml, with user = \"NAME\" and password-file = \"FILE\" or password-env = \"VARIABLE\""
                .to_owned(),
        ));
    }
    if host.is_empty() {
        return Err(MeterError::Invalid(format!(
            "the address `{url}` of a meter has no host"
        )));
    }
    if kind == HttpKind::Prometheus
        && url
            .split_once('#')
            .is_none_or(|(_, metric)| metric.is_empty())
    {
        return Err(MeterError::Invalid(format!(
            "the address `{url}` names no metric: write prometheus:URL#METRIC, such as prometheus:http://pdu:9100/metrics#outlet_watts{{outlet=\"3\"}}"
        )));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// A URL for a message, without what may be a password.
fn without_password(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Spec>().unwrap_err().to_string()
    }

    #[test]
    fn every_form_is_read_and_written_alike() {
        for text in [
            "wt310:/dev/usbtmc0",
            "wt310:/dev/ttyUSB0",
            "wt310:tcp://10.0.0.7:10001",
            "line:/dev/ttyACM0",
            "line:command",
            "hwmon:power_meter",
            "hwmon:ina219:0-0040/power1",
            "shelly:http://10.0.0.8",
            "tasmota:http://plug.lan:8080",
            "redfish:https://bmc/redfish/v1/Chassis/1",
            "prometheus:http://pdu:9100/metrics#watts{outlet=\"3\"}",
            "sweetspot://node7:9440",
            "sweetspot://10.0.0.7:9440/GPU-1",
            "sweetspot:https://node7/0",
        ] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
        assert!(matches!(
            "wt310:/dev/usbtmc1".parse(),
            Ok(Spec::Wt310(Target::Usbtmc(_)))
        ));
    }

    #[test]
    fn wrong_texts_say_what_to_write() {
        assert!(error("wall").starts_with("unknown meter `wall`: write wt310:/dev/usbtmc0"));
        assert!(error("wt310:usbtmc0").contains("unknown place `usbtmc0`"));
        assert!(error("wt310:tcp://host").contains("needs a host and a port"));
        assert!(error("wt310:tcp://host:0").contains("needs a host and a port"));
        assert!(error("shelly:10.0.0.8").contains("must begin with http://"));
        assert!(error("prometheus:http://pdu/metrics").contains("names no metric"));
        for text in [
            "redfish:https://root:secret@bmc",
            "shelly:ftp://u:secret@host",
        ] {
            assert!(!error(text).contains("secret"), "{}", error(text));
        }
    }
}
