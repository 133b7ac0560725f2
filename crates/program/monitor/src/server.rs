//! The loop that serves all clients: one thread, nothing in it waits for a client.

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use sweetspot_service::monitor_link::{MonitorMessage, Received, accept_link, receive_message};

use crate::access::{Asker, TcpRules};
use crate::client::{Client, is_wait};
use crate::state::State;

/// The most connections of one user.
const MAX_CLIENTS_OF_A_USER: usize = 256;
/// The most connections of TCP.
const MAX_TCP_CLIENTS: usize = 256;
/// The most connections of all.
const MAX_CLIENTS: usize = 1536;
/// The most bytes of answers that the clients of one user, or those of TCP, may leave unread together. A single answer can
/// have some hundred kilobytes, and a client has ten seconds to read some of it.
const MAX_UNREAD_OF_A_USER: usize = 32 << 20;
/// The most clients that are taken in one turn.
const TAKEN_PER_TURN: usize = 64;
/// The longest wait, after which stuck clients are looked for.
const CHECK_PERIOD: Duration = Duration::from_secs(1);

/// Serves clients until the privileged process closes the link.
pub struct Server {
    state: State,
    rules: TcpRules,
    /// The link from the privileged process; `None` if there is none.
    link: Option<OwnedFd>,
    /// The socket at which the privileged process connects, if systemd has started this one.
    link_listener: Option<OwnedFd>,
    listeners: Vec<TcpListener>,
    clients: Vec<Client>,
    next_check: Instant,
}

impl Server {
    /// Begins without clients.
    pub fn new(
        state: State,
        rules: TcpRules,
        link: Option<OwnedFd>,
        listeners: Vec<TcpListener>,
    ) -> Self {
        Self {
            state,
            rules,
            link,
            link_listener: None,
            listeners,
            clients: Vec::new(),
            next_check: Instant::now(),
        }
    }

    /// Lets the privileged process connect at a socket, again and again.
    #[must_use]
    pub fn with_link_listener(mut self, listener: OwnedFd) -> Self {
        self.link_listener = Some(listener);
        self
    }

    /// Serves until the link is closed and cannot be made again.
    pub fn serve(&mut self) -> io::Result<()> {
        loop {
            let ready = self.wait()?;
            if ready.link && !self.take_messages()? {
                self.link = None;
                self.state.set_leases(Vec::new());
                if self.link_listener.is_none() {
                    return Ok(());
                }
            }
            if ready.link_listener {
                self.accept_link()?;
            }
            for place in ready.listeners {
                self.accept(place);
            }
            if ready.meter {
                self.resolve();
            }
            for client in &mut self.clients {
                client.resolve_processors(&self.state);
            }
            self.serve_clients(&ready.clients);
            self.state.end_turn();
        }
    }

    /// Waits until something happens.
    fn wait(&self) -> io::Result<Ready> {
        let mut waits = vec![PollFd::new(&self.state.meter, PollFlags::IN)];
        waits.extend(
            self.link
                .iter()
                .map(|link| PollFd::new(link, PollFlags::IN)),
        );
        waits.extend(
            self.link_listener
                .iter()
                .map(|one| PollFd::new(one, PollFlags::IN)),
        );
        waits.extend(
            self.listeners
                .iter()
                .map(|one| PollFd::new(one, PollFlags::IN)),
        );
        for client in &self.clients {
            waits.push(PollFd::from_borrowed_fd(client.as_fd(), client.events()));
        }
        let now = Instant::now();
        let is_waiting = self.clients.iter().any(Client::has_waiting_requests);
        let wait = match is_waiting {
            true => Duration::ZERO,
            false => self.next_check.saturating_duration_since(now),
        };
        let timeout = Timespec {
            tv_sec: wait.as_secs() as i64,
            tv_nsec: wait.subsec_nanos().into(),
        };
        match poll(&mut waits, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => waits.iter_mut().for_each(PollFd::clear_revents),
            Err(error) => return Err(error.into()),
        }
        let mut ready = waits.iter().map(|wait| !wait.revents().is_empty());
        let mut next = || ready.next().unwrap_or(false);
        Ok(Ready {
            meter: next(),
            link: self.link.is_some() && next(),
            link_listener: self.link_listener.is_some() && next(),
            listeners: (0..self.listeners.len()).filter(|_| next()).collect(),
            clients: self.clients.iter().map(|_| next()).collect(),
        })
    }

    /// Takes a new link from the privileged process, which may have been started again.
    fn accept_link(&mut self) -> io::Result<()> {
        if let Some(listener) = &self.link_listener
            && let Some(link) = accept_link(listener)?
        {
            self.link = Some(link);
        }
        Ok(())
    }

    /// Takes messages of the privileged process; false if it has closed the link.
    fn take_messages(&mut self) -> io::Result<bool> {
        for _ in 0..TAKEN_PER_TURN {
            let Some(link) = &self.link else {
                return Ok(true);
            };
            match receive_message(link) {
                Ok(None) => return Ok(false),
                Ok(Some(received)) => self.take(received),
                Err(error) if is_wait(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn take(&mut self, received: Received) {
        match (received.message, received.socket) {
            (MonitorMessage::Listener { token }, Some(socket)) => {
                self.rules.token = token;
                self.listeners.push(TcpListener::from(socket));
            }
            (
                MonitorMessage::Client {
                    may_read_processors,
                },
                Some(socket),
            ) => match Client::local(socket.into(), &received.bytes, may_read_processors) {
                Ok(client) => self.add(client),
                Err(error) => tracing::debug!(%error, "a client was refused"),
            },
            (MonitorMessage::Leases(leases), None) => self.state.set_leases(leases),
            (MonitorMessage::Processors(reading), None) => self.state.add_processors(reading),
            (message, _) => tracing::warn!(?message, "an unexpected message"),
        }
    }

    /// Accepts clients of TCP.
    fn accept(&mut self, listener: usize) {
        for _ in 0..TAKEN_PER_TURN {
            let Some(accepted) = self.listeners.get(listener).map(TcpListener::accept) else {
                return;
            };
            match accepted.and_then(|(stream, _)| Client::remote(stream)) {
                Ok(client) => self.add(client),
                Err(error) if is_wait(&error) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    return;
                }
            }
        }
    }

    /// Adds a client. Where its kind has too many, the one that has been silent for longest makes place: it is the one
    /// that is least likely to be missed.
    fn add(&mut self, client: Client) {
        let is_same = |other: &Client| match (client.asker, other.asker) {
            (Asker::Local { uid, .. }, Asker::Local { uid: other, .. }) => uid == other,
            (one, other) => one == other,
        };
        let most = match client.asker {
            Asker::Local { .. } => MAX_CLIENTS_OF_A_USER,
            Asker::Remote => MAX_TCP_CLIENTS,
        };
        let same = self.clients.iter().filter(|other| is_same(other)).count();
        if same >= most {
            let others = self.clients.iter().enumerate();
            let others = others.filter(|(_, other)| is_same(other) && other.awaits().is_none());
            let silent = others
                .min_by_key(|(_, other)| other.used)
                .map(|(place, _)| place);
            match silent {
                Some(place) => drop(self.clients.remove(place)),
                None => return,
            }
        } else if self.clients.len() >= MAX_CLIENTS {
            return;
        }
        self.clients.push(client);
    }

    /// Gives counters and clients the energies that they wait for.
    fn resolve(&mut self) {
        for (at, totals) in self.state.meter.take_measured() {
            self.state.counters.resolve(at, &totals);
            for client in &mut self.clients {
                client.resolve(&self.state, at, &totals);
            }
        }
    }

    /// Serves the clients that have something to say or to be told, and drops those that are over.
    fn serve_clients(&mut self, ready: &[bool]) {
        let now = Instant::now();
        let is_check = now >= self.next_check;
        if is_check {
            self.next_check = now + CHECK_PERIOD;
            self.state.jobs.end_old();
        }
        let (state, rules) = (&mut self.state, &self.rules);
        let mut place = 0;
        let mut unread: HashMap<Option<u32>, usize> = HashMap::new();
        self.clients.retain_mut(|client| {
            // A client that was removed or added meanwhile shifts the places; being served for nothing does no harm.
            let is_ready = ready.get(place).copied().unwrap_or(true);
            place += 1;
            if (is_ready || is_check || client.has_waiting_requests())
                && client.serve(state, rules).is_err()
            {
                return false;
            }
            let user = match client.asker {
                Asker::Local { uid, .. } => Some(uid),
                Asker::Remote => None,
            };
            let unread = unread.entry(user).or_default();
            *unread += client.unsent_bytes();
            *unread <= MAX_UNREAD_OF_A_USER && !(is_check && client.is_stuck(now))
        });
    }
}

/// What has happened.
struct Ready {
    meter: bool,
    link: bool,
    link_listener: bool,
    listeners: Vec<usize>,
    clients: Vec<bool>,
}
