//! The sampler: one reading thread for each device.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sweetspot_device::{Clock, Device, DeviceId, Moment};
use sweetspot_quantity::{Seconds, Watts};

use super::auxiliary::AuxiliaryReadings;
use super::limit_readings::LimitReadings;
use super::recorder::{Recorder, Task};
use super::tasks::{read, record};
use crate::math::Trace;
use crate::method::MethodChoice;

/// The readings of one device.
#[derive(Clone, Debug)]
pub struct DeviceRecording {
    /// The device that was read.
    pub device: DeviceId,
    /// The readings of power and energy.
    pub trace: Trace,
    /// The readings of utilisation, clocks, temperature and throttle reasons.
    pub auxiliary: Vec<AuxiliaryReadings>,
    /// The readings of what limits the device, at the begin and end of each measurement window.
    pub limits: Vec<LimitReadings>,
}

/// Why the sampler, which reads the devices, failed.
#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    /// The operating system could not start a thread.
    #[error("cannot start a thread to read {device}: {reason}; end other programs and try again")]
    Thread {
        /// The device that was to be read.
        device: DeviceId,
        /// The operating system's error.
        reason: std::io::Error,
    },
    /// The thread that reads this device panicked.
    #[error("the thread that reads {0} panicked and its readings are lost; report this as a bug")]
    Died(DeviceId),
}

/// The power and energy readings of a device, its other readings, and those of what limits it.
type Readings = (Trace, Vec<AuxiliaryReadings>, Vec<LimitReadings>);

/// A request to the thread that reads a device.
enum Request {
    Mark(Moment),
    MarkSharingReads(Moment),
    Collect(Sender<Readings>),
    Stop,
}

/// Reads devices, each in a thread of its own, until it is stopped.
pub struct Sampler {
    clock: Arc<dyn Clock>,
    readers: Vec<Reader>,
}

/// The thread that reads one device, and what it shares with the sampler.
struct Reader {
    device: DeviceId,
    requests: Sender<Request>,
    thread: JoinHandle<()>,
    recorder: SharedRecorder,
    latest: Arc<Mutex<Option<Watts>>>,
}

/// The recorder of a reading thread, shared because a read may block for long; `None` until the thread has
/// started.
#[derive(Clone, Default)]
struct SharedRecorder(Arc<Mutex<Option<Recorder>>>);

impl SharedRecorder {
    /// Calls a function with the recorder; returns `None` if the thread has not started yet.
    fn with_recorder<T>(&self, work: impl FnOnce(&mut Recorder) -> T) -> Option<T> {
        let mut recorder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorder.as_mut().map(work)
    }

    /// A copy of the readings so far.
    fn snapshot(&self, now: Moment) -> Readings {
        self.with_recorder(|recorder| {
            let (trace, auxiliary) = recorder.snapshot(now);
            (trace, auxiliary, recorder.limits().to_vec())
        })
        .unwrap_or_default()
    }
}

/// The longest wait for a read that has not returned. A driver that takes longer leaves a gap.
const READ_LIMIT: Duration = Duration::from_secs(3);

impl Sampler {
    /// Starts a thread for each device. The first measurement window may begin as soon as this returns.
    pub fn start(
        devices: Vec<Box<dyn Device + Send>>,
        choice: MethodChoice,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SamplerError> {
        let mut readers = Vec::with_capacity(devices.len());
        for mut device in devices {
            let (requests, inbox) = channel();
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
                requests,
                thread,
                recorder,
                latest,
            });
        }
        Ok(Self { clock, readers })
    }

    /// Marks that a measurement window begins or ends now, and returns the moment. The threads read the
    /// counters just before and after it.
    pub fn mark(&self) -> Moment {
        let now = self.clock.now();
        self.mark_devices(now, 0..self.readers.len());
        now
    }

    /// Marks that a measurement window of some devices, given by their places, begins or ends at a moment, which is
    /// just now.
    pub fn mark_devices(&self, at: Moment, places: impl IntoIterator<Item = usize>) {
        self.request(places, || Request::Mark(at));
    }

    /// Marks that a measurement window of some devices, given by their places, begins or ends at a moment, which is
    /// just now. A read of a counter keeps a core busy for milliseconds, so marks that follow each other closely share
    /// reads: at most two marks in eight seconds have reads of their own, and the driver's buffer tells the rest.
    pub fn mark_sharing_reads(&self, at: Moment, places: impl IntoIterator<Item = usize>) {
        self.request(places, || Request::MarkSharingReads(at));
    }

    /// Sends a request to the threads of some devices, given by their places.
    fn request(&self, places: impl IntoIterator<Item = usize>, request: impl Fn() -> Request) {
        let readers = places
            .into_iter()
            .filter_map(|place| self.readers.get(place));
        for reader in readers {
            // A reader whose device is lost no longer receives.
            let _ = reader.requests.send(request());
        }
    }

    /// The newest power reading of each device, for display; `None` if the device has no reading yet.
    pub fn latest(&self) -> Vec<(DeviceId, Option<Watts>)> {
        let newest = |reader: &Reader| {
            let guard = reader.latest.lock().unwrap_or_else(PoisonError::into_inner);
            (reader.device.clone(), *guard)
        };
        self.readers.iter().map(newest).collect()
    }

    /// Waits for the reads of the last mark (120 to 270 ms) and returns the readings since the last call, and a
    /// little before it; reading goes on.
    pub fn collect(&self) -> Result<Vec<DeviceRecording>, SamplerError> {
        self.collect_devices(0..self.readers.len())
    }

    /// Collects the readings of some devices, given by their places, as [`Self::collect`] does. Those of the others stay
    /// stored.
    pub fn collect_devices(
        &self,
        places: impl IntoIterator<Item = usize>,
    ) -> Result<Vec<DeviceRecording>, SamplerError> {
        let readers = places
            .into_iter()
            .filter_map(|place| self.readers.get(place));
        let asked: Vec<_> = readers
            .map(|reader| {
                let (reply, answer) = channel();
                let _ = reader.requests.send(Request::Collect(reply));
                (reader, answer)
            })
            .collect();
        let until = Instant::now() + READ_LIMIT;
        let asked = asked.into_iter();
        asked
            .map(|(reader, answer)| {
                let left = until.saturating_duration_since(Instant::now());
                match answer.recv_timeout(left) {
                    Ok(read) => Ok(reader.recording(read)),
                    Err(RecvTimeoutError::Timeout) => {
                        Ok(reader.recording(reader.recorder.snapshot(self.clock.now())))
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        Err(SamplerError::Died(reader.device.clone()))
                    }
                }
            })
            .collect()
    }

    /// Waits for the reads of the last mark (about 150 ms), ends all threads and returns their readings. A
    /// thread whose read blocks is detached.
    pub fn stop(self) -> Result<Vec<DeviceRecording>, SamplerError> {
        for reader in &self.readers {
            let _ = reader.requests.send(Request::Stop);
        }
        let until = Instant::now() + READ_LIMIT;
        let mut recorded = Vec::with_capacity(self.readers.len());
        for reader in self.readers {
            while !reader.thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(2));
            }
            let read = reader.recorder.snapshot(self.clock.now());
            recorded.push(reader.recording(read));
            if reader.thread.is_finished() && reader.thread.join().is_err() {
                return Err(SamplerError::Died(reader.device));
            }
        }
        Ok(recorded)
    }
}

impl Reader {
    /// Adds the device's identity to its readings.
    fn recording(&self, (trace, auxiliary, limits): Readings) -> DeviceRecording {
        DeviceRecording {
            device: self.device.clone(),
            trace,
            auxiliary,
            limits,
        }
    }
}

/// The time that a sample takes to appear in the driver's buffer.
const BUFFER_LAG: Seconds = Seconds::new(0.12);
/// [`Sampler::collect`] waits at most this long for a counter whose update times are unknown; the energy's
/// interval is then wider.
const MAX_COLLECT_WAIT: Seconds = Seconds::new(0.15);
/// After a [`Sampler::collect`], readings of this last time stay stored for the next measurement window. They contain at
/// least two reads of the counter, by which the driver's buffer is corrected.
const KEPT_BY_COLLECT: Seconds = Seconds::new(13.0);

/// The loop of a reading thread: reads one device and serves requests, until the sampler stops it.
fn read_until_stopped(
    device: &mut dyn Device,
    choice: MethodChoice,
    clock: &dyn Clock,
    inbox: &Receiver<Request>,
    shared: &SharedRecorder,
    latest: &Mutex<Option<Watts>>,
) {
    let cap = device.power_limits().ok().map(|limits| limits.enforced);
    let recorder = Recorder::new(device.descriptor(), cap, choice, clock.now());
    *shared.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(recorder);
    let is_settled = || shared.with_recorder(|recorder| recorder.is_settled()) == Some(true);
    let drain = |device: &mut dyn Device| {
        if shared.with_recorder(|recorder| recorder.reads_buffer()) == Some(true) {
            let outcome = read(Task::Drain, device, clock);
            shared.with_recorder(|recorder| record(recorder, outcome));
        }
    };
    let mut stop_at = None;
    let mut collect: Option<(Moment, Sender<Readings>)> = None;
    loop {
        let now = clock.now();
        if stop_at.is_some_and(|at| now >= at) && is_settled() {
            break;
        }
        let is_ready = |at: Moment| now >= at && (is_settled() || now >= at + MAX_COLLECT_WAIT);
        if let Some((_, reply)) = collect.take_if(|(at, _)| is_ready(*at)) {
            drain(device);
            // If the caller no longer waits, the readings are kept for the next call.
            if reply.send(shared.snapshot(clock.now())).is_ok() {
                shared.with_recorder(|recorder| recorder.forget_before(now + -KEPT_BY_COLLECT));
            }
            continue;
        }
        let due = shared.with_recorder(|recorder| recorder.next()).flatten();
        let collect_at = collect.as_ref().map(|(at, _)| match *at > now {
            true => *at,
            false => *at + MAX_COLLECT_WAIT,
        });
        let until = [due.map(|(at, _)| at), stop_at, collect_at];
        let until = until.into_iter().flatten().min();
        if let Some((_, task)) = due.filter(|(at, _)| *at <= now) {
            let outcome = read(task, device, clock);
            let newest = shared.with_recorder(|recorder| {
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
            Ok(Request::Mark(at)) => {
                shared.with_recorder(|recorder| recorder.mark(at));
            }
            Ok(Request::MarkSharingReads(at)) => {
                shared.with_recorder(|recorder| recorder.mark_sharing_reads(at));
            }
            Ok(Request::Collect(reply)) => collect = Some((now + BUFFER_LAG, reply)),
            Ok(Request::Stop) => stop_at = stop_at.or(Some(now + BUFFER_LAG)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // By now the buffer holds all samples up to the end.
    drain(device);
}

/// The newest power reading of any sensor.
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
