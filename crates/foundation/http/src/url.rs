//! The address of a page.

use std::fmt;
use std::str::FromStr;

/// The address of a page: host, port and path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The name or number of the computer; an IPv6 number without its brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The path with its query; it begins with a slash.
    pub path: String,
}

/// Why a text is not the address of a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// The page is behind encryption.
    #[error(
        "`{0}`: https is not supported: give the address of the server itself, http://HOST:PORT/PATH"
    )]
    Encrypted(String),
    /// The text is not an address.
    #[error(
        "`{0}` is not an address of a page: give http://HOST:PORT/PATH, such as http://127.0.0.1:8000/metrics"
    )]
    Invalid(String),
}

/// The longest accepted address, in bytes.
const MAX_LENGTH: usize = 2048;

impl FromStr for Url {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let invalid = || InvalidUrl::Invalid(text.chars().take(200).collect());
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain || text.len() > MAX_LENGTH {
            return Err(invalid());
        }
        if text.starts_with("https://") {
            return Err(InvalidUrl::Encrypted(text.to_owned()));
        }
        let rest = text.strip_prefix("http://").ok_or_else(invalid)?;
        let rest = rest.split('#').next().unwrap_or(rest);
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let (host, port) = split_port(authority).ok_or_else(invalid)?;
        if host.is_empty() || host.contains(['@', '[', ']']) {
            return Err(invalid());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            path: match path.starts_with('/') {
                true => path.to_owned(),
                false => format!("/{path}"),
            },
        })
    }
}

/// Splits `host:port`; the port is 80 unless it is given.
fn split_port(authority: &str) -> Option<(&str, u16)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest
            .split_once(']')
            .filter(|(host, _)| host.contains(':'))?;
        return match port {
            "" => Some((host, 80)),
            _ => Some((host, port.strip_prefix(':')?.parse().ok()?)),
        };
    }
    match authority.split_once(':') {
        None => Some((authority, 80)),
        Some((host, port)) => Some((host, port.parse().ok()?)),
    }
}

impl Url {
    /// The same server with another path.
    pub fn with_path(&self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self.clone()
        }
    }

    /// The host and port as in the header `Host`.
    pub(crate) fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_read() {
        let read = |text: &str| text.parse::<Url>().map(|url| url.to_string());
        let good = [
            (
                "http://127.0.0.1:8000/metrics",
                "http://127.0.0.1:8000/metrics",
            ),
            ("http://host", "http://host:80/"),
            ("http://[::1]:9/x?y=1#z", "http://[::1]:9/x?y=1"),
            ("http://host?y=1", "http://host:80/?y=1"),
        ];
        for (text, expected) in good {
            assert_eq!(read(text).as_deref(), Ok(expected));
        }
        for text in [
            "",
            "host",
            "http://",
            "http://h:70000/",
            "http://u@h/",
            "ftp://h/",
            "http://h/a b",
            "http://[::1",
        ] {
            assert!(matches!(read(text), Err(InvalidUrl::Invalid(_))), "{text}");
        }
        assert!(matches!(read("https://h/"), Err(InvalidUrl::Encrypted(_))));
    }

    proptest! {
        /// What is read is the same after writing it.
        #[test]
        fn written_addresses_are_read_back(text in "http://[a-z0-9.:\\[\\]]{0,20}/?[ -~]{0,20}") {
            if let Ok(url) = text.parse::<Url>() {
                prop_assert_eq!(url.to_string().parse::<Url>(), Ok(url));
            }
        }
    }
}
