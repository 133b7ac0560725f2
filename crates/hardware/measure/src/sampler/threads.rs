//! One thread for each device.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sweetspot_device::{
    Amount, Clock, Device, DeviceId, Drained, Moment, ReadError, Reading, SensorKind,
};
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::beside::Beside;
use super::recorder::{Recorder, Task};
use crate::math::{Span, Trace};
use crate::method::MethodChoice;

/// What a read brought.
enum Outcome {
    Counter(Span, Result<Joules, ReadError>),
    Drained(Moment, Result<Drained, ReadError>),
    Polled(SensorKind, Moment, Result<Reading, ReadError>),
    Beside(Beside),
}

/// Reads what is due and gives it to the recorder; the same for a thread in real time and for a test in
/// virtual time.
pub fn perform(recorder: &mut Recorder, task: Task, device: &mut dyn Device, clock: &dyn Clock) {
    record(recorder, read(task, device, clock));
}

/// Reads what is due. This may block for as long as the driver likes.
fn read(task: Task, device: &mut dyn Device, clock: &dyn Clock) -> Outcome {
    match task {
        Task::Counter => {
            let begin = clock.now();
            let result = device.read(SensorKind::EnergyCounter);
            let call = Span::new(begin, clock.now());
            let energy = result.and_then(|reading| match reading.amount {
                Amount::Energy(energy) => Ok(energy),
                _ => Err(ReadError::Unsupported(SensorKind::EnergyCounter)),
            });
            Outcome::Counter(call, energy)
        }
        Task::Drain => {
            let result = device.drain();
            Outcome::Drained(clock.now(), result)
        }
        Task::Poll(sensor) => {
            let result = device.read(sensor);
            Outcome::Polled(sensor, clock.now(), result)
        }
        Task::Beside => Outcome::Beside(Beside::read(device, clock.now())),
    }
}

fn record(recorder: &mut Recorder, outcome: Outcome) {
    match outcome {
        Outcome::Counter(call, energy) => recorder.counted(call, energy),
        Outcome::Drained(at, result) => recorder.drained(at, result),
        Outcome::Polled(sensor, at, result) => recorder.polled(sensor, at, result),
        Outcome::Beside(row) => recorder.looked_beside(row),
    }
}

/// What was read from one device.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Which device.
    pub device: DeviceId,
    /// Power and energy.
    pub trace: Trace,
    /// What is kept beside power.
    pub beside: Vec<Beside>,
}

/// A sampler that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    /// No thread.
    #[error("no thread to read {device} with: {reason}; end other programs and try again")]
    Thread {
        /// Which device.
        device: DeviceId,
        /// What the system says.
        reason: std::io::Error,
    },
    /// A thread ended before it was told to.
    #[error("the thread that read {0} ended early: its readings are lost; report this as a bug")]
    Died(DeviceId),
}

/// What was read from a device.
type Read = (Trace, Vec<Beside>);

enum Order {
    Mark(Moment),
    Cut(Sender<Read>),
    Stop,
}

/// Reads devices until it is stopped.
pub struct Sampler {
    clock: Arc<dyn Clock>,
    readers: Vec<Reader>,
}

struct Reader {
    device: DeviceId,
    orders: Sender<Order>,
    thread: JoinHandle<()>,
    recorder: SharedRecorder,
    latest: Arc<Mutex<Option<Watts>>>,
}

/// What a thread has read so far. It is there for others as well, as a read may block for long; none before
/// the thread has begun.
#[derive(Clone, Default)]
struct SharedRecorder(Arc<Mutex<Option<Recorder>>>);

impl SharedRecorder {
    fn with<T>(&self, work: impl FnOnce(&mut Recorder) -> T) -> Option<T> {
        let mut recorder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorder.as_mut().map(work)
    }

    fn so_far(&self, now: Moment) -> Read {
        self.with(|recorder| recorder.so_far(now))
            .unwrap_or_default()
    }
}

/// For how long readings that are still to come are waited for. A driver that takes longer leaves a gap.
const READ_LIMIT: Duration = Duration::from_secs(3);

impl Sampler {
    /// Begins to read; the first window may begin as soon as this returns.
    pub fn start(
        devices: Vec<Box<dyn Device + Send>>,
        choice: MethodChoice,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SamplerError> {
        let mut readers = Vec::with_capacity(devices.len());
        for mut device in devices {
            let (orders, inbox) = channel();
            let latest = Arc::new(Mutex::new(None));
            let recorder = SharedRecorder::default();
            let id = device.descriptor().id.clone();
            let reader = {
                let (clock, latest) = (Arc::clone(&clock), Arc::clone(&latest));
                let recorder = recorder.clone();
                move || {
                    let device = device.as_mut();
                    read_until_stopped(device, choice, clock.as_ref(), &inbox, &recorder, &latest);
                }
            };
            let thread = std::thread::Builder::new()
                .name("sampler".to_owned())
                .spawn(reader)
                .map_err(|reason| SamplerError::Thread {
                    device: id.clone(),
                    reason,
                })?;
            readers.push(Reader {
                device: id,
                orders,
                thread,
                recorder,
                latest,
            });
        }
        Ok(Self { clock, readers })
    }

    /// A window begins or ends now: the counters are read on either side of this moment, in the sampler's
    /// threads.
    pub fn mark(&self) -> Moment {
        let now = self.clock.now();
        for reader in &self.readers {
            // A reader whose device is gone no longer listens.
            let _ = reader.orders.send(Order::Mark(now));
        }
        now
    }

    /// The newest power of each device, for a line on the terminal.
    pub fn latest(&self) -> Vec<(DeviceId, Option<Watts>)> {
        let newest = |reader: &Reader| {
            let guard = reader.latest.lock().unwrap_or_else(PoisonError::into_inner);
            (reader.device.clone(), *guard)
        };
        self.readers.iter().map(newest).collect()
    }

    /// Waits for what the last mark asks for (120 to 270 ms) and hands over what was read since the last cut,
    /// and a little before it; reading goes on.
    pub fn cut(&self) -> Result<Vec<Recorded>, SamplerError> {
        let asked: Vec<_> = self
            .readers
            .iter()
            .map(|reader| {
                let (reply, answer) = channel();
                let _ = reader.orders.send(Order::Cut(reply));
                answer
            })
            .collect();
        let until = Instant::now() + READ_LIMIT;
        let readers = self.readers.iter().zip(asked);
        readers
            .map(|(reader, answer)| {
                let left = until.saturating_duration_since(Instant::now());
                match answer.recv_timeout(left) {
                    Ok(read) => Ok(reader.recorded(read)),
                    Err(RecvTimeoutError::Timeout) => {
                        Ok(reader.recorded(reader.recorder.so_far(self.clock.now())))
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        Err(SamplerError::Died(reader.device.clone()))
                    }
                }
            })
            .collect()
    }

    /// Waits for what the last mark asks for (some 150 ms), ends all threads and hands over what they read. A
    /// thread whose read blocks is left to itself.
    pub fn stop(self) -> Result<Vec<Recorded>, SamplerError> {
        for reader in &self.readers {
            let _ = reader.orders.send(Order::Stop);
        }
        let until = Instant::now() + READ_LIMIT;
        let mut recorded = Vec::with_capacity(self.readers.len());
        for reader in self.readers {
            while !reader.thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(2));
            }
            let read = reader.recorder.so_far(self.clock.now());
            recorded.push(reader.recorded(read));
            if reader.thread.is_finished() && reader.thread.join().is_err() {
                return Err(SamplerError::Died(reader.device));
            }
        }
        Ok(recorded)
    }
}

impl Reader {
    fn recorded(&self, (trace, beside): Read) -> Recorded {
        Recorded {
            device: self.device.clone(),
            trace,
            beside,
        }
    }
}

/// Samples reach the buffer a little after their time.
const LAST_SAMPLES: Seconds = Seconds::new(0.12);
/// A cut waits no longer for a counter whose beat is not known: the interval is then wider.
const CUT_WITHIN: Seconds = Seconds::new(0.15);
/// What a cut leaves for the next window, which may begin at once.
const LEFT_BY_CUT: Seconds = Seconds::new(5.0);

fn read_until_stopped(
    device: &mut dyn Device,
    choice: MethodChoice,
    clock: &dyn Clock,
    inbox: &Receiver<Order>,
    shared: &SharedRecorder,
    latest: &Mutex<Option<Watts>>,
) {
    let cap = device.power_limits().ok().map(|limits| limits.enforced);
    let recorder = Recorder::new(device.descriptor(), cap, choice, clock.now());
    *shared.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(recorder);
    let is_settled = || shared.with(|recorder| recorder.is_settled()) == Some(true);
    let drain = |device: &mut dyn Device| {
        if shared.with(|recorder| recorder.reads_buffer()) == Some(true) {
            let outcome = read(Task::Drain, device, clock);
            shared.with(|recorder| record(recorder, outcome));
        }
    };
    let mut stop_at = None;
    let mut cut: Option<(Moment, Sender<Read>)> = None;
    loop {
        let now = clock.now();
        if stop_at.is_some_and(|at| now >= at) && is_settled() {
            break;
        }
        let is_ready = |at: Moment| now >= at && (is_settled() || now >= at + CUT_WITHIN);
        if let Some((_, reply)) = cut.take_if(|(at, _)| is_ready(*at)) {
            drain(device);
            // A caller that no longer waits has not received it: the readings are kept for the next cut.
            if reply.send(shared.so_far(clock.now())).is_ok() {
                shared.with(|recorder| recorder.forget_before(now + -LEFT_BY_CUT));
            }
            continue;
        }
        let due = shared.with(|recorder| recorder.next()).flatten();
        let cut_at = cut.as_ref().map(|(at, _)| match *at > now {
            true => *at,
            false => *at + CUT_WITHIN,
        });
        let until = [due.map(|(at, _)| at), stop_at, cut_at];
        let until = until.into_iter().flatten().min();
        if let Some((_, task)) = due.filter(|(at, _)| *at <= now) {
            let outcome = read(task, device, clock);
            let newest = shared.with(|recorder| {
                record(recorder, outcome);
                newest(recorder.trace())
            });
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = newest.flatten();
            continue;
        }
        let order = match until {
            Some(at) => {
                let wait = Duration::from_nanos(at.nanos().saturating_sub(now.nanos()).max(1));
                inbox.recv_timeout(wait)
            }
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match order {
            Ok(Order::Mark(at)) => {
                shared.with(|recorder| recorder.mark(at));
            }
            Ok(Order::Cut(reply)) => cut = Some((now + LAST_SAMPLES, reply)),
            Ok(Order::Stop) => stop_at = stop_at.or(Some(now + LAST_SAMPLES)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // The samples up to the end are in the buffer by now, whatever else may be due before them.
    drain(device);
}

fn newest(trace: &Trace) -> Option<Watts> {
    let buffered = trace.buffer.last().map(|sample| (sample.at, sample.power));
    let polled = |values: &[crate::math::PolledPower]| {
        values.last().map(|value| (value.appeared.end, value.power))
    };
    [buffered, polled(&trace.average), polled(&trace.instant)]
        .into_iter()
        .flatten()
        .max_by_key(|(at, _)| *at)
        .map(|(_, power)| power)
}
