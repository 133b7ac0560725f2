//! Serves stand-in meters on sockets and on a serial line, in real time.

mod http;
mod lines;
mod pty;

use std::io::{self, PipeReader};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use sweetspot_device::{Clock, Moment, MonotonicClock};

use crate::node::LiveNode;
use crate::{HttpMeter, Wt310};

pub(crate) use pty::SerialLine;

/// A meter that clients connect to.
#[derive(Clone, Debug)]
pub(crate) enum ServedMeter {
    Lines(Arc<Mutex<Wt310>>),
    Http(Arc<Mutex<HttpMeter>>),
}

/// What all threads of the stand-ins share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub node: LiveNode,
    has_ended: AtomicBool,
    connections: AtomicUsize,
}

impl Shared {
    /// Creates what the threads share.
    pub fn new(node: LiveNode) -> Self {
        Self {
            node,
            has_ended: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        }
    }

    /// Tells all threads to end.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Whether the threads shall end.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Sleeps until a moment, or until the threads shall end.
    fn sleep_until(&self, moment: Moment) {
        /// The longest time until the end is noticed.
        const LONGEST: f64 = 0.1;
        while !self.has_ended() {
            let left = (moment - MonotonicClock.now()).get();
            if left <= 0.0 {
                return;
            }
            std::thread::sleep(Duration::from_secs_f64(left.min(LONGEST)));
        }
    }
}

/// Accepts connections to all meters until the end; each is served by a thread of its own.
pub(crate) fn accept_connections(
    listeners: &[(TcpListener, ServedMeter)],
    ended: &PipeReader,
    shared: &Arc<Shared>,
) {
    /// The number of connections at a time; more are refused.
    const MAX_CONNECTIONS: usize = 64;
    while !shared.has_ended() {
        let mut polled: Vec<PollFd<'_>> = listeners
            .iter()
            .map(|(listener, _)| PollFd::new(listener, PollFlags::IN))
            .collect();
        polled.push(PollFd::new(ended, PollFlags::IN));
        if poll(&mut polled, None).is_err() {
            continue;
        }
        let is_ready = |index: usize| !polled[index].revents().is_empty();
        let ready: Vec<usize> = (0..listeners.len())
            .filter(|index| is_ready(*index))
            .collect();
        for index in ready {
            let (listener, meter) = &listeners[index];
            let Ok((stream, _)) = listener.accept() else {
                continue;
            };
            if shared.connections.load(Ordering::Acquire) < MAX_CONNECTIONS {
                start_connection(stream, meter.clone(), Arc::clone(shared));
            }
        }
    }
}

/// Serves a connection in a thread of its own.
fn start_connection(stream: TcpStream, meter: ServedMeter, shared: Arc<Shared>) {
    shared.connections.fetch_add(1, Ordering::AcqRel);
    let serve = move || {
        // The client may end the connection at any time, which is no error of the meter.
        let _ = serve_connection(stream, &meter, &shared);
        shared.connections.fetch_sub(1, Ordering::AcqRel);
    };
    let _ = std::thread::Builder::new()
        .name("meter".to_owned())
        .spawn(serve);
}

/// Serves a connection until its end.
fn serve_connection(mut stream: TcpStream, meter: &ServedMeter, shared: &Shared) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    match meter {
        ServedMeter::Lines(meter) => lines::serve(&mut stream, meter, shared),
        ServedMeter::Http(meter) => http::serve(&mut stream, meter, shared),
    }
}
