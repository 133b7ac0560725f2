//! Checks that a request is refused and logged, and that nothing is written to a GPU.

use serde_json::Value;
use sweetspot_guard::SettingsReply;

use super::client::{Client, Connection};
use super::served_host::{Account, ServedHost};

/// The most refusals of one user that the service logs at once.
pub const MAX_LOGGED: usize = 50;

/// Requests of one user, each of which must be refused.
pub struct Refusals<'a> {
    served: &'a ServedHost,
    account: Account,
    pub client: Client,
    pub count: usize,
}

/// What has happened up to a moment.
struct Moment {
    writes: String,
    refused: usize,
}

impl<'a> Refusals<'a> {
    pub fn new(served: &'a ServedHost, account: Account) -> Self {
        Self {
            served,
            account,
            client: Client::start(served, account),
            count: 0,
        }
    }

    fn now(&self) -> Moment {
        Moment {
            writes: self.served.host.writes(),
            refused: self.served.audited("refused").len(),
        }
    }

    /// Checks that one refusal of this process was logged since then, and that no GPU was changed.
    fn check(&mut self, before: &Moment, what: &str, reason: &str) {
        self.count += 1;
        assert!(self.count < MAX_LOGGED, "use another account");
        let lines = self.served.audited("refused");
        assert_eq!(lines.len(), before.refused + 1, "{what}: {lines:?}");
        let line = &lines[before.refused];
        assert_eq!(line["uid"], self.account.uid, "{what}: {line}");
        assert_eq!(line["pid"], self.client.pid(), "{what}: {line}");
        let logged = line["reason"].as_str().unwrap();
        assert!(logged.len() < 1000, "{what}: a long reason is logged");
        assert!(logged.contains(reason), "{what}: {line}");
        assert_eq!(self.served.host.writes(), before.writes, "{what}");
    }

    /// Sends requests that are carried out and then one that must be refused for this reason. Finally all settings are
    /// restored.
    pub fn of(&mut self, earlier: &[Value], request: &Value, reason: &str) {
        let found: Vec<_> = (0..2).map(|gpu| self.served.settings(gpu)).collect();
        let connection = self.client.greet();
        for request in earlier {
            self.client.ask_allowed(connection, request);
        }
        self.refused_on(connection, request, reason);
        let released = self.client.ask(connection, &"release".into());
        let problems = Vec::new();
        assert_eq!(released, SettingsReply::Released { problems }, "{request}");
        self.client.close(connection);
        let restored: Vec<_> = (0..2).map(|gpu| self.served.settings(gpu)).collect();
        assert_eq!(restored, found, "{request}");
    }

    /// Sends a request, which must be refused for this reason, on a connection that stays open.
    pub fn refused_on(&mut self, connection: Connection, request: &Value, reason: &str) {
        let before = self.now();
        let refusal = self.client.ask_refused(connection, request).to_string();
        assert!(refusal.contains(reason), "{request}: {refusal}");
        self.check(&before, &request.to_string(), reason);
    }

    /// Sends a line, which must be refused for this reason, on a new connection, which is then closed.
    pub fn of_line(&mut self, is_greeted: bool, line: &[u8], reason: &str) {
        let what = format!("{:.200}", String::from_utf8_lossy(line));
        let connection = match is_greeted {
            true => self.client.greet(),
            false => self.client.open(),
        };
        let before = self.now();
        self.client.send(connection, &[line, b"\n"].concat());
        let answer = self.client.read_all(connection);
        assert!(answer.is_closed, "{what}: {answer:?}");
        let reply = serde_json::from_slice(&answer.bytes);
        let reply: SettingsReply = reply.unwrap_or_else(|error| panic!("{what}: {error}"));
        let SettingsReply::Refused(refusal) = reply else {
            panic!("{what} was not refused: {reply:?}");
        };
        assert!(refusal.to_string().contains(reason), "{what}: {refusal}");
        self.check(&before, &what, reason);
        self.client.close(connection);
    }

    /// Sends an HTTP request, which must be refused with this status and for this reason.
    pub fn of_http(&mut self, request: &str, status: u16, reason: &str) {
        let before = self.now();
        let response = self.client.http(request.as_bytes());
        let what = format!("{request:.300}\n{response}");
        let first = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&first), "{what}");
        self.check(&before, &what, reason);
    }
}
