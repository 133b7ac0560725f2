//! Who may ask what: clients of the Unix socket by their user, clients of TCP by address, `Host` and token.

use std::net::{IpAddr, SocketAddr};

use sweetspot_service::zeusd::{Request, Response};

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A process on this machine, by its user and process as the kernel knows them.
    Local {
        /// The user.
        uid: u32,
        /// The process.
        pid: u32,
    },
    /// A client of TCP, which may only read what everybody may see.
    Remote,
}

/// The rules for clients of TCP.
#[derive(Clone, Debug, Default)]
pub struct TcpRules {
    /// The token that clients of other addresses than loopback must send; `None` if there is no such address.
    pub token: Option<String>,
    /// Further names by which clients may call this machine.
    pub hosts: Vec<String>,
}

impl TcpRules {
    /// Checks a request that came to a local address; the error is the answer to it.
    pub fn check(&self, request: &Request, local: &SocketAddr) -> Result<(), Box<Response>> {
        let refuse = |status, text: &str| {
            Err(Box::new(Response {
                close: true,
                ..Response::error(status, text)
            }))
        };
        if !self.is_our_name(request.host.as_deref(), local) {
            // A page of another site that has its name resolved to this address must not read anything.
            return refuse(
                421,
                "the Host header does not name this machine: use its address, or allow the name with --host-name",
            );
        }
        let needs_token = !local.ip().to_canonical().is_loopback();
        if needs_token && !self.is_our_token(request.token.as_deref()) {
            return refuse(
                401,
                "a token is needed: send the header `Authorization: Bearer TOKEN` with the token from the service's token file",
            );
        }
        if request.method != "GET" && request.method != "HEAD" {
            return Err(Box::new(Response {
                allow: Some("GET"),
                close: true,
                ..Response::error(405, "only GET is answered over TCP: it sets nothing")
            }));
        }
        Ok(())
    }

    /// Whether a `Host` header names this machine: an address of it, `localhost` on loopback, or an allowed name.
    fn is_our_name(&self, host: Option<&str>, local: &SocketAddr) -> bool {
        let Some(host) = host else {
            // HTTP/1.0 has no such header, and no browser speaks it.
            return true;
        };
        let (name, port) = split_port(host);
        if port.is_some_and(|port| port != local.port()) {
            return false;
        }
        let ip = local.ip().to_canonical();
        match name.parse::<IpAddr>() {
            Ok(named) => named.to_canonical() == ip,
            Err(_) => {
                let is_local = name.eq_ignore_ascii_case("localhost") && ip.is_loopback();
                is_local
                    || self
                        .hosts
                        .iter()
                        .any(|known| known.eq_ignore_ascii_case(name))
            }
        }
    }

    /// Whether a token is the one of the file. The time of the comparison does not depend on where they differ.
    fn is_our_token(&self, given: Option<&str>) -> bool {
        let (Some(token), Some(given)) = (self.token.as_deref(), given) else {
            return false;
        };
        let (token, given) = (token.as_bytes(), given.as_bytes());
        let differences = token
            .iter()
            .zip(given)
            .fold(0, |all, (one, other)| all | (one ^ other));
        token.len() == given.len() && differences == 0
    }
}

/// Splits a `Host` header into name and port: `[::1]:9440`, `name:9440`, `name`.
fn split_port(host: &str) -> (&str, Option<u16>) {
    if let Some(rest) = host.strip_prefix('[') {
        let (name, rest) = rest.split_once(']').unwrap_or((rest, ""));
        return (
            name,
            rest.strip_prefix(':').and_then(|port| port.parse().ok()),
        );
    }
    match host.rsplit_once(':') {
        // Port 0 belongs to no server, so a port that is not a number is not ours.
        Some((name, port)) => (name, Some(port.parse().unwrap_or(0))),
        None => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(host: &str, token: Option<&str>) -> Request {
        Request {
            method: "GET".to_owned(),
            host: Some(host.to_owned()),
            token: token.map(str::to_owned),
            ..Request::default()
        }
    }

    #[test]
    fn only_our_names_are_answered() {
        let rules = TcpRules {
            token: None,
            hosts: vec!["node7".to_owned()],
        };
        let local: SocketAddr = "127.0.0.1:9440".parse().unwrap();
        for host in [
            "127.0.0.1:9440",
            "localhost:9440",
            "LOCALHOST",
            "node7:9440",
        ] {
            assert!(rules.check(&get(host, None), &local).is_ok(), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1:80",
            "127.0.0.2:9440",
            "",
            "localhost:x",
            "[::1]:9440",
        ] {
            let refused = rules.check(&get(host, None), &local).unwrap_err();
            assert_eq!(refused.status, 421, "{host}");
        }
        let local: SocketAddr = "[::1]:9440".parse().unwrap();
        assert!(rules.check(&get("[::1]:9440", None), &local).is_ok());
    }

    #[test]
    fn other_addresses_need_the_token() {
        let rules = TcpRules {
            token: Some("secret".to_owned()),
            hosts: Vec::new(),
        };
        let local: SocketAddr = "192.0.2.1:9440".parse().unwrap();
        for token in [
            None,
            Some(""),
            Some("secre"),
            Some("secret2"),
            Some("SECRET"),
        ] {
            let refused = rules
                .check(&get("192.0.2.1:9440", token), &local)
                .unwrap_err();
            assert_eq!(refused.status, 401, "{token:?}");
        }
        assert!(
            rules
                .check(&get("192.0.2.1:9440", Some("secret")), &local)
                .is_ok()
        );
        let mut post = get("192.0.2.1", Some("secret"));
        post.method = "POST".to_owned();
        assert_eq!(rules.check(&post, &local).unwrap_err().status, 405);
    }
}
