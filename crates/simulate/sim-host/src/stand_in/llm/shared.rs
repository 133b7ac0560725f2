//! What the engine and the threads of HTTP clients share.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sweetspot_device::{Clock, MonotonicClock};
use sweetspot_quantity::Seconds;
use sweetspot_sim::{GeneratedToken, LlmEngine, LlmMetrics, LlmRequest};

use crate::stand_in::seconds;

/// A server that clients and the engine use at the same time.
pub struct Shared {
    state: Mutex<ServerState>,
    /// Notified when a client sends a request.
    arrived: Condvar,
    has_ended: AtomicBool,
    connections: AtomicUsize,
    /// The start on the monotonic clock, in nanoseconds.
    started: u64,
    started_unix: Duration,
}

/// The engine and those who wait for its tokens.
pub struct ServerState {
    pub engine: LlmEngine,
    pub metrics: LlmMetrics,
    /// Where the tokens of each HTTP request go: whether each is the last one.
    clients: HashMap<u64, Sender<bool>>,
    next_id: u64,
}

/// A connection that is counted until it is dropped.
pub struct Connection(Arc<Shared>);

impl Deref for Connection {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Shared {
    /// Creates a server that started at this time of the monotonic clock, in nanoseconds.
    pub fn new(engine: LlmEngine, started: u64) -> Self {
        Self {
            state: Mutex::new(ServerState {
                engine,
                metrics: LlmMetrics::default(),
                clients: HashMap::new(),
                next_id: 0,
            }),
            arrived: Condvar::new(),
            has_ended: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            started,
            started_unix: since_epoch(),
        }
    }

    /// The engine, which no other thread changes meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all threads to end; unfinished requests end without their last token.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.lock().clients.clear();
    }

    /// Whether the server ends.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Counts a connection; `None` if there are too many.
    pub fn connect(self: Arc<Self>, most: usize) -> Option<Connection> {
        let before = self.connections.fetch_add(1, Ordering::AcqRel);
        // Dropping the connection counts it no more.
        let connection = Connection(self);
        (before < most).then_some(connection)
    }

    /// The time since the start.
    fn now(&self) -> Seconds {
        seconds(MonotonicClock.now().nanos().saturating_sub(self.started))
    }

    /// Adds a request that arrives now. Returns its number, and the source of its tokens.
    pub fn add(&self, prompt: u64, output: u64) -> (u64, Receiver<bool>) {
        let (sender, receiver) = channel();
        let arrival = self.now();
        let mut state = self.lock();
        let id = state.add(LlmRequest {
            id: 0,
            arrival,
            prompt,
            output,
        });
        // A request that comes as the server ends is never answered.
        if !self.has_ended() {
            state.clients.insert(id, sender);
        }
        drop(state);
        self.arrived.notify_one();
        (id, receiver)
    }

    /// Waits until a client sends a request, or for this time.
    pub fn wait(&self, at_most: Duration) {
        let state = self.lock();
        if state.engine.waiting() == 0 {
            let waited = self.arrived.wait_timeout(state, at_most);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// The metrics page, as vLLM writes it.
    pub fn metrics_page(&self) -> String {
        let state = self.lock();
        let mut page = state.metrics.page(&state.engine);
        let _ = writeln!(
            page,
            "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {}",
            self.started_unix.as_secs_f64()
        );
        page
    }

    /// The Unix time of the start, in seconds.
    pub fn created(&self) -> u64 {
        self.started_unix.as_secs()
    }

    /// The present Unix time, in seconds.
    pub fn unix_time(&self) -> u64 {
        since_epoch().as_secs()
    }
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

impl ServerState {
    /// Adds a request under a number of its own, which is returned.
    pub fn add(&mut self, request: LlmRequest) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.engine.add(LlmRequest { id, ..request });
        id
    }

    /// The requests that are not answered yet.
    pub fn active(&self) -> usize {
        self.engine.running() + self.engine.waiting()
    }

    /// Ends the step that was begun: counts its tokens and passes them to their clients.
    pub fn end_step(&mut self, now: Seconds) -> Vec<GeneratedToken> {
        let tokens = self.engine.end_step(now);
        let mut gone = Vec::new();
        for token in &tokens {
            self.metrics.add(token, now);
            let id = token.request.id;
            let Some(client) = self.clients.get(&id) else {
                continue;
            };
            if client.send(token.is_last).is_err() {
                gone.push(id);
            }
            if token.is_last {
                self.clients.remove(&id);
            }
        }
        for id in gone {
            self.clients.remove(&id);
            self.engine.cancel(id);
        }
        tokens
    }
}
