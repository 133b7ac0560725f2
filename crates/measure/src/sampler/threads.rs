//! One thread for each device.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use sweetspot_device::{Amount, Clock, Device, DeviceId, Moment, ReadError, SensorKind};
use sweetspot_quantity::{Seconds, Watts};

use super::beside::Beside;
use super::recorder::{Recorder, Task};
use crate::math::{Span, Trace};
use crate::method::MethodChoice;

/// Does what is due and tells the recorder; the same for a thread in real time and for a test in virtual time.
pub fn perform(recorder: &mut Recorder, task: Task, device: &mut dyn Device, clock: &dyn Clock) {
    match task {
        Task::Counter => {
            let begin = clock.now();
            let result = device.read(SensorKind::EnergyCounter);
            let call = Span::new(begin, clock.now());
            let energy = result.and_then(|reading| match reading.amount {
                Amount::Energy(energy) => Ok(energy),
                _ => Err(ReadError::Unsupported(SensorKind::EnergyCounter)),
            });
            recorder.counted(call, energy);
        }
        Task::Drain => {
            let result = device.drain();
            recorder.drained(clock.now(), result);
        }
        Task::Poll(sensor) => {
            let result = device.read(sensor);
            recorder.polled(sensor, clock.now(), result);
        }
        Task::Beside => {
            let row = Beside::read(device, clock.now());
            recorder.looked_beside(row);
        }
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
    thread: JoinHandle<Read>,
    latest: Arc<Mutex<Option<Watts>>>,
}

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
            let id = device.descriptor().id.clone();
            let reader = {
                let (clock, latest) = (Arc::clone(&clock), Arc::clone(&latest));
                move || read_until_told(device.as_mut(), choice, clock.as_ref(), &inbox, &latest)
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
        let readers = self.readers.iter().zip(asked);
        readers
            .map(|(reader, answer)| match answer.recv() {
                Ok((trace, beside)) => Ok(Recorded {
                    device: reader.device.clone(),
                    trace,
                    beside,
                }),
                Err(_) => Err(SamplerError::Died(reader.device.clone())),
            })
            .collect()
    }

    /// Waits for what the last mark asks for (some 150 ms), ends all threads and hands over what they read.
    pub fn stop(self) -> Result<Vec<Recorded>, SamplerError> {
        for reader in &self.readers {
            let _ = reader.orders.send(Order::Stop);
        }
        self.readers
            .into_iter()
            .map(|reader| match reader.thread.join() {
                Ok((trace, beside)) => Ok(Recorded {
                    device: reader.device,
                    trace,
                    beside,
                }),
                Err(_) => Err(SamplerError::Died(reader.device)),
            })
            .collect()
    }
}

/// Samples reach the buffer a little after their time.
const LAST_SAMPLES: Seconds = Seconds::new(0.12);
/// A cut waits no longer for a counter whose beat is not known: the interval is then wider.
const CUT_WITHIN: Seconds = Seconds::new(0.15);
/// What a cut leaves for the next window, which may begin at once.
const LEFT_BY_CUT: Seconds = Seconds::new(5.0);

fn read_until_told(
    device: &mut dyn Device,
    choice: MethodChoice,
    clock: &dyn Clock,
    inbox: &Receiver<Order>,
    latest: &Mutex<Option<Watts>>,
) -> Read {
    let cap = device.power_limits().ok().map(|limits| limits.enforced);
    let mut recorder = Recorder::new(device.descriptor(), cap, choice, clock.now());
    let mut stop_at = None;
    let mut cut: Option<(Moment, Sender<Read>)> = None;
    loop {
        let now = clock.now();
        if stop_at.is_some_and(|at| now >= at) && recorder.is_settled() {
            break;
        }
        let is_ready = |at: Moment| now >= at && (recorder.is_settled() || now >= at + CUT_WITHIN);
        if let Some((_, reply)) = cut.take_if(|(at, _)| is_ready(*at)) {
            if recorder.reads_buffer() {
                perform(&mut recorder, Task::Drain, device, clock);
            }
            let _ = reply.send(recorder.so_far(clock.now()));
            recorder.forget_before(now + -LEFT_BY_CUT);
            continue;
        }
        let due = recorder.next();
        let cut_at = cut.as_ref().map(|(at, _)| match *at > now {
            true => *at,
            false => *at + CUT_WITHIN,
        });
        let until = [due.map(|(at, _)| at), stop_at, cut_at];
        let until = until.into_iter().flatten().min();
        if let Some((_, task)) = due.filter(|(at, _)| *at <= now) {
            perform(&mut recorder, task, device, clock);
            let newest = newest(recorder.trace());
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = newest;
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
            Ok(Order::Mark(at)) => recorder.mark(at),
            Ok(Order::Cut(reply)) => cut = Some((now + LAST_SAMPLES, reply)),
            Ok(Order::Stop) => stop_at = stop_at.or(Some(now + LAST_SAMPLES)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // The samples up to the end are in the buffer by now, whatever else may be due before them.
    if recorder.reads_buffer() {
        perform(&mut recorder, Task::Drain, device, clock);
    }
    recorder.finish(clock.now())
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
