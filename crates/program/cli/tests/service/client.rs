//! A process of a user that speaks to the service directly, byte by byte.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use sweetspot_guard::{Refusal, SettingsReply};

use super::served_host::{Account, ServedHost};

/// The program of the process.
const PROGRAM: &str = include_str!("client.py");

/// A process of a user with connections to the service. It is killed when this value is dropped.
pub struct Client {
    process: Child,
    orders: ChildStdin,
    results: Lines<BufReader<ChildStdout>>,
    opened: u64,
}

/// A connection of the client.
#[derive(Clone, Copy, Debug)]
pub struct Connection(u64);

/// What the client has read from a connection.
#[derive(Debug)]
pub struct Answer {
    pub bytes: Vec<u8>,
    pub is_closed: bool,
}

impl Client {
    pub fn start(served: &ServedHost, account: Account) -> Self {
        let mut process = served
            .command_as(account, "python3")
            .args(["-c", PROGRAM])
            .arg(served.socket())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take());
        Self {
            process,
            orders: input.unwrap(),
            results: BufReader::new(output.unwrap()).lines(),
            opened: 0,
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Tells the process what to do, without waiting for it.
    fn order(&mut self, mut order: Value, connection: Connection) {
        order["connection"] = connection.0.into();
        writeln!(self.orders, "{order}").unwrap();
    }

    /// What came of the last order.
    fn result(&mut self) -> Value {
        let line = self.results.next().expect("the client runs").unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn obey(&mut self, order: Value, connection: Connection) -> Value {
        self.order(order, connection);
        self.result()
    }

    /// Connects to the service.
    pub fn open(&mut self) -> Connection {
        self.opened += 1;
        let connection = Connection(self.opened);
        let opened = self.obey(json!({"do": "open"}), connection);
        assert_eq!(opened, json!({}));
        connection
    }

    /// Connects to the service and names the version of the messages.
    pub fn greet(&mut self) -> Connection {
        let connection = self.open();
        let reply = self.ask(connection, &json!({"hello": {"version": 1}}));
        assert_eq!(reply, SettingsReply::Hello { version: 1 });
        connection
    }

    /// Sends bytes. The service may have closed the connection meanwhile.
    pub fn send(&mut self, connection: Connection, bytes: &[u8]) {
        let text: String = bytes.iter().copied().map(char::from).collect();
        self.obey(json!({"do": "send", "bytes": text}), connection);
    }

    fn read(&mut self, how: &str, connection: Connection) -> Answer {
        let answer = self.obey(json!({"do": how}), connection);
        let text = answer["bytes"].as_str();
        let text = text.unwrap_or_else(|| panic!("{answer}"));
        Answer {
            // The client writes each byte as the character of that number.
            bytes: text.chars().map(|letter| letter as u8).collect(),
            is_closed: answer["closed"] == true,
        }
    }

    /// Reads the next line, without its end.
    pub fn read_line(&mut self, connection: Connection) -> Answer {
        self.read("read-line", connection)
    }

    /// Reads until the service closes the connection.
    pub fn read_all(&mut self, connection: Connection) -> Answer {
        self.read("read-all", connection)
    }

    /// Begins to read until the service closes the connection; [`Client::finish_read`] returns what has arrived.
    pub fn begin_read(&mut self, connection: Connection) {
        self.order(json!({"do": "read-all"}), connection);
    }

    /// Waits for the end of a read.
    pub fn finish_read(&mut self) -> Value {
        self.result()
    }

    pub fn close(&mut self, connection: Connection) {
        self.obey(json!({"do": "close"}), connection);
    }

    /// Sends a line and reads the reply to it.
    pub fn ask_bytes(&mut self, connection: Connection, line: &[u8]) -> SettingsReply {
        self.send(connection, &[line, b"\n"].concat());
        let answer = self.read_line(connection);
        assert!(!answer.is_closed, "closed after {answer:?}");
        serde_json::from_slice(&answer.bytes).unwrap()
    }

    /// Sends a request and reads the reply to it.
    pub fn ask(&mut self, connection: Connection, request: &Value) -> SettingsReply {
        self.ask_bytes(connection, request.to_string().as_bytes())
    }

    /// Sends a request that must be refused.
    pub fn ask_refused(&mut self, connection: Connection, request: &Value) -> Refusal {
        match self.ask(connection, request) {
            SettingsReply::Refused(refusal) => refusal,
            other => panic!("{request} was not refused: {other:?}"),
        }
    }

    /// Sends a request that must be carried out.
    pub fn ask_allowed(&mut self, connection: Connection, request: &Value) -> SettingsReply {
        match self.ask(connection, request) {
            SettingsReply::Refused(refusal) => panic!("{request} was refused: {refusal}"),
            other => other,
        }
    }

    /// Leases a GPU and sets its power cap.
    pub fn lease_and_cap(&mut self, device: &str, watts: u32) -> Connection {
        let connection = self.greet();
        self.ask_allowed(connection, &lease(device));
        self.ask_allowed(connection, &apply_cap(device, &format!("{watts} W")));
        connection
    }

    /// Sends an HTTP request on a connection of its own, and returns the whole response.
    pub fn http(&mut self, request: &[u8]) -> String {
        let connection = self.open();
        self.send(connection, request);
        let answer = self.read_all(connection);
        self.close(connection);
        String::from_utf8_lossy(&answer.bytes).into_owned()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn lease(device: &str) -> Value {
    json!({"lease": {"devices": [device]}})
}

pub fn apply(device: &str, settings: Value) -> Value {
    json!({"apply": {"device": device, "settings": settings}})
}

pub fn apply_cap(device: &str, cap: &str) -> Value {
    apply(device, json!({"power_cap": cap}))
}
