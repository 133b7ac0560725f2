//! What client and guard say to each other: one JSON object a line.

use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sweetspot_device::{AppliedSettings, DeviceId, Moment, Settings};

use crate::owner::Owner;
use crate::refusal::{Refusal, RestoreError, Restored};

/// A command to run as the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Program and arguments; bytes, because a path need not be text.
    pub command: Vec<Vec<u8>>,
    /// Variables to add to the environment.
    pub environment: Vec<(String, String)>,
    /// The process group of the client, to which a terminal sends its signals.
    pub process_group: i32,
    /// Where its input comes from and its output goes.
    pub streams: Streams,
    /// Where it runs, if not where the guard does.
    pub folder: Option<String>,
}

/// Where a workload's input comes from and its output goes; what is not named is the guard's own, which is
/// the client's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// It reads nothing.
    pub no_input: bool,
    /// A file to write to; a pipe of the client has a name under /proc.
    pub output: Option<String>,
    /// The same for errors.
    pub error: Option<String>,
}

/// How the workload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// With a code of its own.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// The end of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How.
    pub ended: Ended,
    /// When, on the machine's monotonic clock.
    pub at: Moment,
    /// Whether processes of it are still there.
    pub left: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Request {
    Lease {
        devices: Vec<DeviceId>,
        owner: Owner,
    },
    Apply {
        device: DeviceId,
        settings: Settings,
    },
    Start(Start),
    /// Puts a device back and keeps its lease.
    PutBack {
        device: DeviceId,
    },
    /// Asks what is set on a leased device.
    Settings {
        device: DeviceId,
    },
    /// Ends what runs of the workload, and keeps the leases.
    EndWorkload,
    Interrupt {
        signal: i32,
        pass_on: bool,
    },
    Release {
        end_workload: bool,
    },
    /// Asks for a sign of life.
    AreYouAlive,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    Leased { notes: Vec<Restored> },
    Applied(AppliedSettings),
    Started,
    NotStarted { missing: bool, reason: String },
    Ended(End),
    IsBack,
    Settings(Settings),
    Alive,
    WorkloadEnded { all: bool },
    Released { problems: Vec<RestoreError> },
    Refused(Refusal),
}

pub(crate) fn send<T: Serialize>(stream: &mut impl Write, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// The next message; nothing where the other side is gone, be it in the middle of a line.
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

    fn start() -> Start {
        Start {
            command: vec![b"sh".to_vec(), vec![0xff, 0, b'\n']],
            environment: vec![("NAME".to_owned(), "a \"value\"\n".to_owned())],
            process_group: 7,
            streams: Streams::default(),
            folder: None,
        }
    }

    #[test]
    fn a_request_is_one_line_whatever_it_holds() {
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
    fn a_line_without_its_end_is_nothing() {
        let mut bytes = Vec::new();
        send(&mut bytes, &Request::Start(start())).unwrap();
        for length in 0..bytes.len() {
            let mut stream = &bytes[..length];
            assert_eq!(receive::<Request>(&mut stream).unwrap(), None, "{length}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut stream = &bytes[..];
            while let Ok(Some(_)) = receive::<Request>(&mut stream) {}
            let mut stream = &bytes[..];
            while let Ok(Some(_)) = receive::<Reply>(&mut stream) {}
        }

        #[test]
        fn no_changed_request_is_a_panic(place in 0usize..200, byte: u8) {
            let mut bytes = Vec::new();
            send(&mut bytes, &Request::Start(start())).unwrap();
            let place = place % bytes.len();
            bytes[place] = byte;
            let _ = receive::<Request>(&mut &bytes[..]);
        }
    }
}
