//! All meters of a simulated node, offered to a command in real time.

use std::ffi::OsString;
use std::io::{self, PipeWriter};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::time::{ClockId, clock_gettime};
use sweetspot_device::{Clock, Moment, MonotonicClock};
use sweetspot_quantity::Seconds;
use sweetspot_sim_host::{Host, HostError};
use sweetspot_stats::Seed;

use crate::fault::{Faults, NamedFault};
use crate::node::LiveNode;
use crate::recorder::{Truth, record};
use crate::serve::{SerialLine, ServedMeter, Shared, accept_connections};
use crate::sysfs::Sysfs;
use crate::{HttpMeter, MeterFault, MeterKind, Wt310};

/// The environment variable with the root of the tree of sysfs files.
const SYSFS: &str = "SWEETSPOT_SYSFS";
/// The environment variable with the path of the list of meters.
const METERS: &str = "SWEETSPOT_METERS";
/// The environment variable with the password of a meter that has one.
const PASSWORD: &str = "SWEETSPOT_METER_PASSWORD";

/// The meters to offer: `wt310`, or `wt310:5025` on a port of the user's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterList(Vec<(MeterKind, u16)>);

/// Why a list of meters cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid meter `{0}`: give a list of NAME or NAME:PORT, each once, separated by commas, with names out of {names}",
    names = MeterKind::names()
)]
pub struct MeterListError(String);

impl MeterList {
    /// All meters, on free ports.
    pub fn all() -> Self {
        Self(MeterKind::ALL.map(|kind| (kind, 0)).to_vec())
    }
}

impl FromStr for MeterList {
    type Err = MeterListError;

    fn from_str(text: &str) -> Result<Self, MeterListError> {
        let mut list: Vec<(MeterKind, u16)> = Vec::new();
        for one in text.split(',') {
            let error = || MeterListError(one.to_owned());
            let (name, port) = match one.split_once(':') {
                Some((name, port)) => (name, port.parse().map_err(|_| error())?),
                None => (one, 0),
            };
            let kind = MeterKind::from_name(name).ok_or_else(error)?;
            let has_port_on_a_line = kind == MeterKind::Wt310Serial && port != 0;
            if has_port_on_a_line || list.iter().any(|known| known.0 == kind) {
                return Err(error());
            }
            list.push((kind, port));
        }
        Ok(Self(list))
    }
}

/// Why the meters of a simulated node cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    /// The host has no node profile.
    #[error(
        "the simulated host has no node: name one, because its profile says what the meters measure"
    )]
    NoNode,
    /// The simulated host cannot be used.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A port cannot be used.
    #[error("cannot offer the meter {meter} on port {port}: {problem}", meter = meter.name())]
    Port {
        /// The meter.
        meter: MeterKind,
        /// The port; 0 for any.
        port: u16,
        /// The operating system's error.
        problem: io::Error,
    },
    /// The files, the serial line or a thread cannot be made.
    #[error("cannot make the meters of the simulated node in {}: {problem}", folder.display())]
    Files {
        /// The folder of the simulated host.
        folder: PathBuf,
        /// The operating system's error.
        problem: io::Error,
    },
}

/// A meter that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedMeter {
    /// The kind of the meter.
    pub kind: MeterKind,
    /// How a user names the meter: `wt310:tcp://127.0.0.1:5025`.
    pub spec: String,
    /// The user that the meter asks for, and the user's password.
    login: Option<(String, String)>,
}

/// The meters of a simulated node in real time. They end when this value is dropped.
#[derive(Debug)]
pub struct OfferedMeters {
    meters: Vec<OfferedMeter>,
    folder: PathBuf,
    shared: Arc<Shared>,
    /// The threads wait for the other end of this pipe, which closes when this end does.
    ended: Option<PipeWriter>,
    threads: Vec<JoinHandle<()>>,
}

/// The parts of the meters while they are being made.
struct Preparation<'a> {
    seed: Seed,
    now: Moment,
    unix_origin: Seconds,
    faults: &'a [NamedFault],
    listeners: Vec<(TcpListener, ServedMeter)>,
    serial: Option<(SerialLine, Mutex<Wt310>)>,
    meters: Vec<OfferedMeter>,
}

impl OfferedMeters {
    /// Offers the meters of the simulated host in a folder. The seed determines their errors.
    pub fn start(
        folder: &Path,
        list: &MeterList,
        faults: &[NamedFault],
        seed: u64,
    ) -> Result<Self, OfferError> {
        let host = Host::open(folder)?;
        let profile = host.node().map(|(_, node)| node.clone());
        let node = LiveNode::new(host, profile.ok_or(OfferError::NoNode)?);
        let files = |problem| OfferError::Files {
            folder: folder.to_owned(),
            problem,
        };
        let mut preparation = Preparation::new(Seed::new(seed).label("meters"), faults);
        for (kind, port) in &list.0 {
            preparation.add(*kind, *port, folder)?;
        }
        let shared = Arc::new(Shared::new(node));
        let sysfs = Sysfs::create(
            &folder.join("sys"),
            &shared.node.advance(),
            preparation.seed,
        );
        let sysfs = sysfs.map_err(files)?;
        let truth = Truth::create(&folder.join("truth.csv")).map_err(files)?;
        let (wait_end, ended) = io::pipe().map_err(files)?;
        let mut offered = Self {
            meters: preparation.meters,
            folder: folder.to_owned(),
            shared: Arc::clone(&shared),
            ended: Some(ended),
            threads: Vec::new(),
        };
        std::fs::write(offered.list_path(), offered.list_text()).map_err(files)?;
        let recorder = Arc::clone(&shared);
        offered
            .spawn(move || record(&recorder, sysfs, truth))
            .map_err(files)?;
        let (acceptor, listeners) = (Arc::clone(&shared), preparation.listeners);
        offered
            .spawn(move || accept_connections(&listeners, &wait_end, &acceptor))
            .map_err(files)?;
        if let Some((line, meter)) = preparation.serial {
            offered
                .spawn(move || line.serve(&meter, &shared))
                .map_err(files)?;
        }
        Ok(offered)
    }

    /// Starts a thread that ends with this value.
    fn spawn(&mut self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("meters".to_owned());
        self.threads.push(thread.spawn(work)?);
        Ok(())
    }

    /// The meters that are offered.
    pub fn meters(&self) -> &[OfferedMeter] {
        &self.meters
    }

    /// The root of the tree of sysfs files.
    pub fn sysfs(&self) -> PathBuf {
        self.folder.join("sys")
    }

    /// The environment variables with which a command finds the meters and the sysfs tree.
    pub fn environment(&self) -> Vec<(String, OsString)> {
        let mut variables = vec![
            (SYSFS.to_owned(), self.sysfs().into()),
            (METERS.to_owned(), self.list_path().into()),
        ];
        for meter in &self.meters {
            variables.push((meter.kind.variable(), meter.spec.clone().into()));
            if let Some((_, secret)) = &meter.login {
                variables.push((PASSWORD.to_owned(), secret.clone().into()));
            }
        }
        variables
    }

    /// The path of the list of meters.
    fn list_path(&self) -> PathBuf {
        self.folder.join("meters.toml")
    }

    /// The list of meters by name.
    fn list_text(&self) -> String {
        let meters = self.meters.iter().map(|meter| {
            let login = meter.login.as_ref().map_or(String::new(), |(user, _)| {
                format!("user = {user:?}\npassword-env = \"{PASSWORD}\"\n")
            });
            let name = meter.kind.given_name();
            format!("[{name}]\nspec = {:?}\n{login}\n", meter.spec)
        });
        meters.collect()
    }
}

impl Drop for OfferedMeters {
    fn drop(&mut self) {
        self.shared.end();
        self.ended = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl<'a> Preparation<'a> {
    /// Prepares meters that are switched on now.
    fn new(seed: Seed, faults: &'a [NamedFault]) -> Self {
        let now = MonotonicClock.now();
        let wall = clock_gettime(ClockId::Realtime);
        let unix = wall.tv_sec as f64 + wall.tv_nsec as f64 * 1e-9;
        Self {
            seed,
            now,
            unix_origin: Seconds::new(unix) - (now - Moment::default()),
            faults,
            listeners: Vec::new(),
            serial: None,
            meters: Vec::new(),
        }
    }

    /// Makes a meter and the socket or serial line on which it will be offered.
    fn add(&mut self, kind: MeterKind, port: u16, folder: &Path) -> Result<(), OfferError> {
        let faults: Vec<MeterFault> = self
            .faults
            .iter()
            .filter(|fault| fault.meter == kind)
            .map(|fault| fault.fault.clone())
            .collect();
        let login = Faults::new(faults.clone())
            .password()
            .map(|(user, secret)| (user.to_owned(), secret.to_owned()));
        let seed = self.seed.label(kind.name());
        let address = match kind {
            MeterKind::Wt310Serial => {
                let line = SerialLine::open().map_err(|problem| OfferError::Files {
                    folder: folder.to_owned(),
                    problem,
                })?;
                let path = line.path().display().to_string();
                self.serial = Some((line, Mutex::new(Wt310::new(self.now, seed, faults))));
                path
            }
            MeterKind::Wt310 => {
                let meter = Arc::new(Mutex::new(Wt310::new(self.now, seed, faults)));
                let port = self.listen(kind, port, ServedMeter::Lines(meter))?;
                format!("tcp://127.0.0.1:{port}")
            }
            _ => {
                let meter = HttpMeter::new(kind, self.now, self.unix_origin, seed, faults);
                let meter = ServedMeter::Http(Arc::new(Mutex::new(meter)));
                let port = self.listen(kind, port, meter)?;
                format!("http://127.0.0.1:{port}")
            }
        };
        self.meters.push(OfferedMeter {
            kind,
            spec: format!("{}:{address}", kind.family()),
            login,
        });
        Ok(())
    }

    /// Listens for connections to a meter, from this machine only; returns the port.
    fn listen(
        &mut self,
        meter: MeterKind,
        port: u16,
        served: ServedMeter,
    ) -> Result<u16, OfferError> {
        let failed = |problem| OfferError::Port {
            meter,
            port,
            problem,
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        // A client may be gone before its connection is accepted.
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        self.listeners.push((listener, served));
        Ok(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_meters_are_read() {
        let list: MeterList = "wt310:5025,shelly".parse().unwrap();
        assert_eq!(list.0, [(MeterKind::Wt310, 5025), (MeterKind::Shelly, 0)]);
        for wrong in [
            "",
            "wt310,wt310",
            "wt310:x",
            "wt500",
            "wt310-serial:5",
            "shelly:70000",
        ] {
            assert!(wrong.parse::<MeterList>().is_err(), "{wrong}");
        }
    }
}
