//! The loop that serves all clients: one thread, nothing in it waits for a client.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use sweetspot_guard::{Owner, Refusal};

use crate::caller::open_process;
use crate::connection::Connection;
use crate::notify::Notifier;
use crate::policy::Policy;
use crate::rate::Allowance;
use crate::requests::Service;

/// The most connections of one user.
const MAX_CONNECTIONS_OF_A_USER: usize = 64;

/// The most connections of all users to whom no rule of the policy applies. A user can have very many user ids, as in
/// containers, and must not take the places of others with them.
const MAX_CONNECTIONS_OF_STRANGERS: usize = 128;

/// The most connections of all users together; root has more. Each needs two file descriptors, and a process may often
/// have no more than 1024.
const MAX_CONNECTIONS: usize = 384;
const MAX_CONNECTIONS_WITH_ROOT: usize = MAX_CONNECTIONS + 32;

/// The most clients that are accepted in one turn.
const ACCEPTED_PER_TURN: usize = 32;

/// The time that the requests of one user may take before those of others have their turn.
const USER_TURN_TIME: Duration = Duration::from_millis(50);

/// How many requests of one user are answered at once, and per second after that.
const REQUESTS_AT_ONCE: f64 = 400.0;
const REQUESTS_PER_SECOND: f64 = 200.0;

/// The time between two checks of all leases.
const CHECK_PERIOD: Duration = Duration::from_secs(1);

/// The number of checks after which devices that could not be restored are tried again.
const CHECKS_PER_RETRY: u32 = 10;

/// What the loop serves, and until when.
pub struct ServerOptions<'a> {
    /// The socket on which clients connect; `None` if there is only the first client.
    pub listener: Option<UnixListener>,
    /// A client that is connected already. Without a listener the loop ends with this connection.
    pub first: Option<UnixStream>,
    /// Reads the policy again.
    pub reload: &'a mut dyn FnMut() -> Result<Policy, String>,
}

/// Serves clients until SIGTERM or SIGINT, or until the only client disconnects. Then all settings are restored.
pub fn serve(service: &mut Service<'_>, options: ServerOptions<'_>) -> io::Result<()> {
    let (stop, reload) = (signal_pipe(&[SIGTERM, SIGINT])?, signal_pipe(&[SIGHUP])?);
    if let Some(listener) = &options.listener {
        listener.set_nonblocking(true)?;
    }
    let first = options.first.map(Connection::new).transpose()?;
    let mut server = Server {
        service,
        has_listener: options.listener.is_some(),
        connections: first.into_iter().collect(),
        owners: Vec::new(),
        allowances: HashMap::new(),
        accepts: true,
        checks: 0,
        next_check: Instant::now(),
    };
    server.resume();
    let notifier = Notifier::from_environment();
    notifier.send("READY=1");
    loop {
        let ready = server.wait(options.listener.as_ref(), &stop, &reload)?;
        if ready.stop || !server.has_listener && server.connections.is_empty() {
            break;
        }
        if ready.reload {
            empty(&reload);
            match (options.reload)() {
                Ok(policy) => server.service.policy = Some(policy),
                Err(error) => tracing::error!(%error, "the policy stays as it was"),
            }
        }
        if let Some(listener) = options.listener.as_ref().filter(|_| ready.listener) {
            server.accept(listener);
        }
        server.release_ended(&ready.ended);
        server.serve_connections(&ready.connections);
        server.check(&notifier);
    }
    notifier.send("STOPPING=1");
    server.service.release_all();
    Ok(())
}

/// A socket that becomes readable when one of these signals arrives.
fn signal_pipe(signals: &[i32]) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, write.try_clone()?)?;
    }
    Ok(read)
}

/// Reads everything from a signal's socket.
fn empty(mut pipe: &UnixStream) {
    use std::io::Read;
    let mut bytes = [0; 64];
    while pipe.read(&mut bytes).is_ok_and(|length| length > 0) {}
}

/// The state of the loop.
struct Server<'s, 'a> {
    service: &'s mut Service<'a>,
    has_listener: bool,
    connections: Vec<Connection>,
    /// The processes that own leases.
    owners: Vec<(Owner, OwnedFd)>,
    /// How many requests each user may make.
    allowances: HashMap<u32, Allowance>,
    /// Whether clients are accepted; not for a while after the system refused one.
    accepts: bool,
    checks: u32,
    next_check: Instant,
}

/// What has happened.
struct Ready {
    stop: bool,
    reload: bool,
    listener: bool,
    connections: Vec<bool>,
    ended: Vec<Owner>,
}

impl Server<'_, '_> {
    /// Waits until something happens, at most until the next check.
    fn wait(
        &self,
        listener: Option<&UnixListener>,
        stop: &UnixStream,
        reload: &UnixStream,
    ) -> io::Result<Ready> {
        let mut waits = vec![
            PollFd::new(stop, PollFlags::IN),
            PollFd::new(reload, PollFlags::IN),
        ];
        let accepts = listener.filter(|_| self.accepts);
        waits.extend(accepts.map(|listener| PollFd::new(listener, PollFlags::IN)));
        for connection in &self.connections {
            let stream = connection.stream.as_fd();
            waits.push(PollFd::from_borrowed_fd(stream, connection.events()));
        }
        for (_, process) in &self.owners {
            waits.push(PollFd::new(process, PollFlags::IN));
        }
        match poll(&mut waits, Some(&self.time_to_wait())) {
            Ok(_) => {}
            Err(Errno::INTR) => waits.iter_mut().for_each(PollFd::clear_revents),
            Err(error) => return Err(error.into()),
        }
        let mut ready = waits.iter().map(|wait| !wait.revents().is_empty());
        let mut next = || ready.next().unwrap_or(false);
        let (stop, reload) = (next(), next());
        let listener = accepts.is_some() && next();
        let connections = self.connections.iter().map(|_| next()).collect();
        let ended = self.owners.iter().filter(|_| next());
        let ended = ended.map(|(owner, _)| owner.clone()).collect();
        Ok(Ready {
            stop,
            reload,
            listener,
            connections,
            ended,
        })
    }

    /// The time until something must be done although nothing happens.
    fn time_to_wait(&self) -> Timespec {
        let now = Instant::now();
        let is_waiting = self
            .connections
            .iter()
            .any(Connection::has_waiting_requests);
        let events = self.connections.iter().filter_map(Connection::next_event);
        let next = events.chain([self.next_check]).min().unwrap_or(now);
        let wait = match is_waiting {
            true => Duration::ZERO,
            false => next.saturating_duration_since(now),
        };
        Timespec {
            tv_sec: wait.as_secs() as i64,
            tv_nsec: wait.subsec_nanos().into(),
        }
    }

    /// Accepts clients that wait, within the limits.
    fn accept(&mut self, listener: &UnixListener) {
        for _ in 0..ACCEPTED_PER_TURN {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // The client still waits, and would wake the service again at once.
                    tracing::warn!(%error, "cannot accept a connection: trying again in a second");
                    self.accepts = false;
                    return;
                }
            };
            match Connection::new(stream) {
                Ok(connection) if self.has_place_for(&connection) => {
                    self.connections.push(connection);
                }
                Ok(connection) => {
                    let owner = connection.owner();
                    self.service
                        .log_refusal(owner, "connect", &Refusal::TooMany);
                }
                Err(error) => tracing::debug!(%error, "a connection was refused"),
            }
        }
    }

    /// Whether one more connection of this client is within the limits.
    fn has_place_for(&self, new: &Connection) -> bool {
        let account = &new.caller.account;
        let others = self.connections.iter();
        let same = others.clone().filter(|one| one.uid() == account.uid);
        let is_stranger = |account| !self.service.has_rules_for(account);
        let strangers = others.filter(|one| is_stranger(&one.caller.account));
        same.count() < MAX_CONNECTIONS_OF_A_USER
            && match account.is_root() {
                true => self.connections.len() < MAX_CONNECTIONS_WITH_ROOT,
                false => self.connections.len() < MAX_CONNECTIONS,
            }
            && (!is_stranger(account) || strangers.count() < MAX_CONNECTIONS_OF_STRANGERS)
    }

    /// Answers the connections that have something to say or to be told, and drops those that are over.
    fn serve_connections(&mut self, ready: &[bool]) {
        let now = Instant::now();
        let mut index = 0;
        let (service, allowances) = (&mut *self.service, &mut self.allowances);
        let mut is_allowed = |uid: u32| {
            let allowance = allowances
                .entry(uid)
                .or_insert_with(|| Allowance::new(REQUESTS_AT_ONCE, REQUESTS_PER_SECOND, now));
            allowance.take(Instant::now())
        };
        let mut spent: HashMap<u32, Duration> = HashMap::new();
        self.connections.retain_mut(|connection| {
            let is_ready = ready.get(index).copied().unwrap_or(true);
            index += 1;
            let is_due = connection.next_event().is_some_and(|at| at <= now);
            if is_ready || is_due || connection.has_waiting_requests() {
                let spent = spent.entry(connection.uid()).or_default();
                if *spent > USER_TURN_TIME {
                    // It stays ready, and is served in the next turn.
                    return true;
                }
                let begun = Instant::now();
                let is_open = connection.serve(service, &mut is_allowed).is_ok();
                *spent += begun.elapsed();
                if !is_open {
                    return false;
                }
            }
            let is_stuck = connection.is_stuck(now);
            if is_stuck {
                let text = "a request was not sent, or a reply not read, in time".to_owned();
                service.log_refusal(connection.owner(), "connection", &Refusal::Invalid(text));
            }
            !is_stuck
        });
        self.watch_owners();
    }

    /// Watches the processes that own leases, and no others.
    fn watch_owners(&mut self) {
        let owners = self.service.owners();
        self.owners
            .retain(|(known, _)| owners.iter().any(|owner| owner.is_same(known)));
        for owner in owners {
            let is_known = self.owners.iter().any(|(known, _)| known.is_same(&owner));
            if owner.job.is_some() || is_known {
                continue;
            }
            let of_connection = |connection: &&Connection| connection.caller.owner.is_same(&owner);
            let connected = self.connections.iter().find(of_connection);
            let process = match connected {
                Some(connection) => connection.caller.process.try_clone().ok(),
                None => open_process(&owner),
            };
            match process {
                Some(process) => self.owners.push((owner, process)),
                // The owner has ended, or cannot be watched: its leases end.
                None => drop(self.service.release(&owner, "owner-ended")),
            }
        }
    }

    /// Ends the leases of processes that have ended.
    fn release_ended(&mut self, ended: &[Owner]) {
        for owner in ended {
            self.service.release(owner, "owner-ended");
        }
        self.owners
            .retain(|(owner, _)| !ended.iter().any(|ended| ended.is_same(owner)));
    }

    /// Takes up leases and restores devices that were left changed. A process for one client leaves them to the service,
    /// which may be about to start again: it would end them with its client.
    fn resume(&mut self) {
        if self.has_listener {
            self.service.resume();
        }
    }

    /// Checks all leases once a second.
    fn check(&mut self, notifier: &Notifier) {
        let now = Instant::now();
        if now < self.next_check {
            return;
        }
        self.next_check = now + CHECK_PERIOD;
        self.accepts = true;
        self.allowances.retain(|_, one| !one.is_full(now));
        self.service.check_leases();
        self.service.update_monitor();
        self.checks = self.checks.wrapping_add(1);
        if self.checks.is_multiple_of(CHECKS_PER_RETRY) {
            self.resume();
        }
        self.watch_owners();
        notifier.send("WATCHDOG=1");
    }
}
