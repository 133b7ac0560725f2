//! The messages between client and guard: one JSON object per line.

use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sweetspot_device::{AppliedSettings, DeviceId, Moment, Settings};

use crate::LeaseKind;
use crate::owner::Owner;
use crate::refusal::{Refusal, RestoreError, RestoreOutcome};

/// A command to run as the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadCommand {
    /// The program and its arguments, as bytes because a path need not be text.
    pub command: Vec<Vec<u8>>,
    /// The environment variables to add, as names and values.
    pub environment: Vec<(String, String)>,
    /// The id of the process group in which the command starts: that of the client, so the command receives
    /// the terminal's signals.
    pub process_group: i32,
    /// Where the command reads its input and writes its output.
    pub streams: Streams,
    /// The working directory of the command; that of the guard if `None`.
    pub folder: Option<String>,
}

/// Where a workload reads its input and writes its output. A stream without a value is inherited from the
/// client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// Whether standard input is empty (`/dev/null`).
    pub no_input: bool,
    /// The path of the file or pipe for standard output; inherited if `None`.
    pub output: Option<String>,
    /// The path of the file or pipe for standard error; inherited if `None`.
    pub error: Option<String>,
}

/// The way in which a command exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandExit {
    /// The command exited with this code.
    Code(i32),
    /// The command was killed by this signal.
    Signal(i32),
}

/// How and when a workload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadEnd {
    /// The exit code of the command, or the signal that killed it.
    pub exit: CommandExit,
    /// The time when the command ended, on the machine's monotonic clock.
    pub at: Moment,
    /// Whether other processes of the workload still run.
    pub has_descendants: bool,
}

/// A request of the client to the guard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Request {
    Lease {
        devices: Vec<DeviceId>,
        owner: Owner,
        #[serde(default)]
        kind: LeaseKind,
    },
    Apply {
        device: DeviceId,
        settings: Settings,
    },
    Start(WorkloadCommand),
    /// Asks the guard to restore a device's settings; the device stays leased.
    Restore {
        device: DeviceId,
    },
    /// Asks for the present settings of a leased device.
    Settings {
        device: DeviceId,
    },
    /// Asks the guard to end all processes of the workload; the devices stay leased.
    EndWorkload,
    Interrupt {
        signal: i32,
        pass_on: bool,
    },
    Release {
        end_workload: bool,
    },
    /// Asks for a reply, to check that the guard responds.
    Ping,
}

/// A message of the guard to its client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    Leased { notes: Vec<RestoreOutcome> },
    Applied(AppliedSettings),
    Started,
    NotStarted { missing: bool, reason: String },
    Ended(WorkloadEnd),
    Restored,
    Settings(Settings),
    Pong,
    WorkloadEnded { all: bool },
    Released { problems: Vec<RestoreError> },
    Refused(Refusal),
}

/// Sends a message as one line of JSON.
pub(crate) fn send<T: Serialize>(stream: &mut impl Write, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads the next message; `None` if the other side has closed the stream, even in the middle of a line.
pub(crate) fn receive<T: DeserializeOwned>(stream: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn start() -> WorkloadCommand {
        WorkloadCommand {
            command: vec![b"sh".to_vec(), vec![0xff, 0, b'\n']],
            environment: vec![("NAME".to_owned(), "a \"value\"\n".to_owned())],
            process_group: 7,
            streams: Streams::default(),
            folder: None,
        }
    }

    #[test]
    fn a_request_is_always_one_line() {
        let mut bytes = Vec::new();
        let requests = [Request::Start(start()), Request::EndWorkload];
        for request in &requests {
            send(&mut bytes, request).unwrap();
        }
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, requests.len());
        let mut stream = &bytes[..];
        for request in requests {
            assert_eq!(receive::<Request>(&mut stream).unwrap(), Some(request));
        }
        assert_eq!(receive::<Request>(&mut stream).unwrap(), None);
    }

    #[test]
    fn an_incomplete_line_is_no_message() {
        let mut bytes = Vec::new();
        send(&mut bytes, &Request::Start(start())).unwrap();
        for length in 0..bytes.len() {
            let mut stream = &bytes[..length];
            assert_eq!(receive::<Request>(&mut stream).unwrap(), None, "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_cause_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut stream = &bytes[..];
            while let Ok(Some(_)) = receive::<Request>(&mut stream) {}
            let mut stream = &bytes[..];
            while let Ok(Some(_)) = receive::<Reply>(&mut stream) {}
        }

        #[test]
        fn changed_requests_cause_no_panic(place in 0usize..200, byte: u8) {
            let mut bytes = Vec::new();
            send(&mut bytes, &Request::Start(start())).unwrap();
            let place = place % bytes.len();
            bytes[place] = byte;
            let _ = receive::<Request>(&mut &bytes[..]);
        }
    }
}
