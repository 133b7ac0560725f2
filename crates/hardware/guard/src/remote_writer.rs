//! Asks a privileged process, such as the service, to write device settings.

use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use sweetspot_device::{AppliedSettings, DeviceId, Settings};

use crate::connect::connect_at_once;
use crate::entry::LeaseKind;
use crate::owner::Owner;
use crate::protocol::{receive, send};
use crate::refusal::{Refusal, RestoreError, RestoreOutcome};
use crate::settings_protocol::{Job, SETTINGS_PROTOCOL, SettingsReply, SettingsRequest};
use crate::writer::SettingsWriter;

/// The longest wait for a reply. A driver may need some hundred milliseconds for a write.
const REPLY_TIMEOUT: Duration = Duration::from_secs(8);

/// The longest time in which a service that was restarted is asked again.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// The same where a scheduler waits for the end of a job's preparation.
const JOB_RECONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause between two attempts to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

/// A connection to a privileged process that writes settings.
pub struct RemoteWriter {
    connect: Box<dyn FnMut() -> io::Result<UnixStream>>,
    connection: Option<BufReader<UnixStream>>,
    /// Whether there ever was a connection.
    was_reached: bool,
    /// How long a lost connection is made again.
    patience: Duration,
    /// The devices that are leased and what was set on them, to ask for both again if the service was restarted.
    leased: Vec<(DeviceId, Settings)>,
    /// The kind of the leases.
    kind: LeaseKind,
    /// The scheduler's job for which settings are written; `None` for this process.
    job: Option<Job>,
}

impl RemoteWriter {
    /// Uses the service at this socket. If the service is restarted meanwhile, requests wait for it.
    pub fn service(socket: &Path) -> Self {
        let socket = socket.to_owned();
        Self {
            connect: Box::new(move || connect_at_once(&socket)),
            connection: None,
            was_reached: false,
            patience: RECONNECT_TIMEOUT,
            leased: Vec::new(),
            kind: LeaseKind::Setting,
            job: None,
        }
    }

    /// Uses the service at this socket for a job of a scheduler; only root may do so. The leases belong to the job.
    pub fn for_job(socket: &Path, job: Job) -> Self {
        Self {
            job: Some(job),
            patience: JOB_RECONNECT_TIMEOUT,
            ..Self::service(socket)
        }
    }

    /// Whether the process was reached at all. If it was not, no request of this writer has had any effect.
    pub fn was_reached(&self) -> bool {
        self.was_reached
    }

    /// Ends all leases of the job, those of earlier processes too.
    pub fn release_job(&mut self) -> Result<Vec<RestoreError>, Refusal> {
        self.leased.clear();
        match self.request(&SettingsRequest::Release)? {
            SettingsReply::Released { problems } => Ok(problems),
            other => Err(unexpected(&other)),
        }
    }

    /// Uses a process at the other end of a connection that is made only once.
    pub fn once(connect: impl FnOnce() -> io::Result<UnixStream> + 'static) -> Self {
        let mut connect = Some(connect);
        Self {
            connect: Box::new(move || match connect.take() {
                Some(connect) => connect(),
                None => Err(io::ErrorKind::ConnectionReset.into()),
            }),
            connection: None,
            was_reached: false,
            patience: Duration::ZERO,
            leased: Vec::new(),
            kind: LeaseKind::Setting,
            job: None,
        }
    }

    /// Sends a request; after a lost connection again to the restarted service.
    fn request(&mut self, request: &SettingsRequest) -> Result<SettingsReply, Refusal> {
        let begun = Instant::now();
        loop {
            let reply = self.connect_and_lease().and_then(|refused| match refused {
                Some(refused) => Ok(SettingsReply::Refused(refused)),
                None => self.exchange(request),
            });
            match reply {
                Ok(SettingsReply::Refused(refusal)) => return Err(refusal),
                Ok(reply) => return Ok(reply),
                Err(error) => {
                    self.connection = None;
                    if begun.elapsed() >= self.patience {
                        return Err(Refusal::ServiceLost(reason(&error)));
                    }
                    tracing::warn!(%error, "the connection to the service is lost: trying again");
                    std::thread::sleep(RECONNECT_PAUSE);
                }
            }
        }
    }

    /// Connects if there is no connection, and leases again what was leased before. Returns the refusal, if any.
    fn connect_and_lease(&mut self) -> io::Result<Option<Refusal>> {
        if self.connection.is_some() {
            return Ok(None);
        }
        let stream = (self.connect)()?;
        self.was_reached = true;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        self.connection = Some(BufReader::new(stream));
        let hello = SettingsRequest::Hello {
            version: SETTINGS_PROTOCOL,
            job: self.job.clone(),
        };
        let mut first = vec![hello];
        if !self.leased.is_empty() {
            first.push(SettingsRequest::Lease {
                devices: self.leased.iter().map(|(id, _)| id.clone()).collect(),
                kind: self.kind,
            });
        }
        for (device, settings) in &self.leased {
            if *settings != Settings::default() {
                first.push(SettingsRequest::Apply {
                    device: device.clone(),
                    settings: *settings,
                });
            }
        }
        for request in first {
            if let SettingsReply::Refused(refusal) = self.exchange(&request)? {
                self.connection = None;
                return Ok(Some(refusal));
            }
        }
        Ok(None)
    }

    /// Takes note of what is set on a device now.
    fn remember(&mut self, device: &DeviceId, change: impl Fn(&Settings) -> Settings) {
        for (id, settings) in &mut self.leased {
            if id == device {
                *settings = change(settings);
            }
        }
    }

    /// Sends a request over the present connection and waits for its reply.
    fn exchange(&mut self, request: &SettingsRequest) -> io::Result<SettingsReply> {
        let lost = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let connection = self.connection.as_mut().ok_or_else(lost)?;
        send(connection.get_mut(), request)?;
        receive(connection)?.ok_or_else(lost)
    }
}

/// Why a process cannot be reached, in the words of a user.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not respond".to_owned(),
        _ => error.to_string(),
    }
}

/// Whether the service at this socket replies within two seconds. One that is stopped, or that waits for the driver,
/// still accepts connections.
pub fn service_responds(socket: &Path) -> bool {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let greet = || -> io::Result<bool> {
        let mut stream = connect_at_once(socket)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let (version, job) = (SETTINGS_PROTOCOL, None);
        send(&mut stream, &SettingsRequest::Hello { version, job })?;
        let reply: Option<SettingsReply> = receive(&mut BufReader::new(stream))?;
        Ok(reply.is_some())
    };
    greet().unwrap_or(false)
}

/// The refusal for a reply that does not fit its request.
fn unexpected(reply: &SettingsReply) -> Refusal {
    Refusal::ServiceLost(format!("unexpected reply {reply:?}"))
}

impl SettingsWriter for RemoteWriter {
    /// Leases devices for this process, whatever `owner` says: the kernel tells the service who asks.
    fn lease(
        &mut self,
        devices: &[DeviceId],
        _: &Owner,
        kind: LeaseKind,
    ) -> Result<Vec<RestoreOutcome>, Refusal> {
        if devices.is_empty() {
            return Ok(Vec::new());
        }
        let request = SettingsRequest::Lease {
            devices: devices.to_vec(),
            kind,
        };
        match self.request(&request)? {
            SettingsReply::Leased { notes } => {
                self.kind = kind;
                for device in devices {
                    self.leased.push((device.clone(), Settings::default()));
                }
                Ok(notes)
            }
            other => Err(unexpected(&other)),
        }
    }

    fn apply(
        &mut self,
        device: &DeviceId,
        settings: &Settings,
    ) -> Result<AppliedSettings, Refusal> {
        let request = SettingsRequest::Apply {
            device: device.clone(),
            settings: *settings,
        };
        match self.request(&request)? {
            SettingsReply::Applied(applied) => {
                self.remember(device, |known| known.with(settings));
                Ok(applied)
            }
            other => Err(unexpected(&other)),
        }
    }

    fn settings(&mut self, device: &DeviceId) -> Result<Settings, Refusal> {
        let device = device.clone();
        match self.request(&SettingsRequest::Settings { device })? {
            SettingsReply::Settings(settings) => Ok(settings),
            other => Err(unexpected(&other)),
        }
    }

    fn restore(&mut self, device: &DeviceId) -> Result<(), Refusal> {
        let request = SettingsRequest::Restore {
            device: device.clone(),
        };
        match self.request(&request)? {
            SettingsReply::Restored => {
                self.remember(device, |_| Settings::default());
                Ok(())
            }
            other => Err(unexpected(&other)),
        }
    }

    fn release_all(&mut self) -> Vec<RestoreError> {
        if std::mem::take(&mut self.leased).is_empty() {
            return Vec::new();
        }
        match self.request(&SettingsRequest::Release) {
            Ok(SettingsReply::Released { problems }) => problems,
            Ok(other) => vec![RestoreError::Service(unexpected(&other).to_string())],
            Err(refusal) => vec![RestoreError::Service(refusal.to_string())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_process_that_accepts_no_connections_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("service.sock");
        assert!(!service_responds(&socket));
        let _listener = UnixListener::bind(&socket).unwrap();
        let begun = Instant::now();
        assert!(!service_responds(&socket));
        // Everybody can fill the queue of the service's socket.
        while connect_at_once(&socket).is_ok() {}
        assert!(!service_responds(&socket));
        let mut writer = RemoteWriter::service(&socket);
        writer.patience = Duration::from_millis(100);
        let refusal = writer.request(&SettingsRequest::Ping).unwrap_err();
        assert_eq!(
            refusal,
            Refusal::ServiceLost("it does not respond".to_owned())
        );
        assert!(begun.elapsed() < Duration::from_secs(6));
    }
}
