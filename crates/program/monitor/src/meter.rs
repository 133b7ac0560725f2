//! Reads all GPUs without pause, and knows the energy of each at every moment that was marked.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sweetspot_device::{Clock, Device, HostDevice, Moment, MonotonicClock};
use sweetspot_measure::{MethodChoice, Sampler, SamplerError};
use sweetspot_quantity::Watts;

use crate::samples::Samples;
use crate::timeline::{Timeline, Total, samples_after};

/// The length of a segment while nobody waits for an energy.
const IDLE_PERIOD: Duration = Duration::from_secs(4);
/// The time for which marks are gathered before they are measured together.
const GATHERING_TIME: Duration = Duration::from_millis(40);

/// The state that the reading thread shares with the one that serves clients.
#[derive(Debug, Default)]
struct Shared {
    /// The moments whose totals clients wait for.
    marks: Vec<Moment>,
    /// The totals of each GPU at moments that were marked, until they are fetched.
    measured: Vec<(Moment, Vec<Total>)>,
    /// The totals of each GPU at the end of the last segment.
    totals: Vec<Total>,
    samples: Vec<Samples>,
    is_ended: bool,
}

/// Reads all GPUs in threads of its own.
pub struct Meter {
    sampler: Arc<Sampler>,
    shared: Arc<(Mutex<Shared>, Condvar)>,
    /// Becomes readable when marked moments were measured.
    wake: UnixStream,
}

/// Why measuring cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    /// The sampler cannot read the GPUs.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The operating system refused something.
    #[error("cannot start measuring: {0}")]
    System(#[from] io::Error),
}

impl Meter {
    /// Begins to read these GPUs.
    pub fn start(gpus: Vec<Box<dyn HostDevice>>) -> Result<Self, MeterError> {
        let count = gpus.len();
        let devices: Vec<Box<dyn Device + Send>> = gpus
            .into_iter()
            .map(|gpu| gpu as Box<dyn Device + Send>)
            .collect();
        let clock = Arc::new(MonotonicClock);
        let sampler = Arc::new(Sampler::start(devices, MethodChoice::Auto, clock)?);
        let begin = sampler.mark();
        let shared = Shared {
            totals: vec![Total::default(); count],
            samples: (0..count).map(|_| Samples::default()).collect(),
            ..Shared::default()
        };
        let shared = Arc::new((Mutex::new(shared), Condvar::new()));
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let thread = {
            let (sampler, shared) = (Arc::clone(&sampler), Arc::clone(&shared));
            let timelines = vec![Timeline::new(begin); count];
            move || measure_until_ended(&sampler, &shared, timelines, &waker)
        };
        std::thread::Builder::new()
            .name("meter".to_owned())
            .spawn(thread)?;
        Ok(Self {
            sampler,
            shared,
            wake,
        })
    }

    /// Marks the present moment. Its totals are known about 0.2 s later.
    pub fn mark(&self) -> Moment {
        let moment = self.sampler.mark();
        let (_, condition) = &*self.shared;
        self.shared().marks.push(moment);
        condition.notify_one();
        moment
    }

    /// The present moment.
    pub fn now(&self) -> Moment {
        MonotonicClock.now()
    }

    /// The totals at moments that were marked and have been measured since the last call.
    pub fn take_measured(&self) -> Vec<(Moment, Vec<Total>)> {
        use std::io::Read;
        let mut bytes = [0; 64];
        while (&self.wake).read(&mut bytes).is_ok_and(|length| length > 0) {}
        std::mem::take(&mut self.shared().measured)
    }

    /// The totals of each GPU at the end of the last segment, at most some seconds ago.
    pub fn totals(&self) -> Vec<Total> {
        self.shared().totals.clone()
    }

    /// Calls a function with the samples of a GPU.
    pub fn with_samples<T>(&self, gpu: usize, work: impl FnOnce(&Samples) -> T) -> Option<T> {
        self.shared().samples.get(gpu).map(work)
    }

    /// The newest power reading of each GPU.
    pub fn power(&self) -> Vec<Option<Watts>> {
        self.sampler
            .latest()
            .into_iter()
            .map(|(_, power)| power)
            .collect()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Meter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.shared().is_ended = true;
        self.shared.1.notify_one();
    }
}

/// Measures segment after segment.
fn measure_until_ended(
    sampler: &Sampler,
    shared: &(Mutex<Shared>, Condvar),
    mut timelines: Vec<Timeline>,
    waker: &UnixStream,
) {
    use std::io::Write;
    let lock = || shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let is_idle = |shared: &mut Shared| shared.marks.is_empty() && !shared.is_ended;
        let waited = shared.1.wait_timeout_while(lock(), IDLE_PERIOD, is_idle);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_ended {
            return;
        }
        let gathers = !state.marks.is_empty();
        drop(state);
        if gathers {
            std::thread::sleep(GATHERING_TIME);
        }
        let until = sampler.mark();
        let recordings = match sampler.collect() {
            Ok(recordings) => recordings,
            Err(error) => {
                tracing::error!(%error, "measuring ended");
                std::process::exit(1);
            }
        };
        let mut marks: Vec<Moment> = {
            let mut state = lock();
            let (now, later) = state.marks.drain(..).partition(|mark| *mark <= until);
            state.marks = later;
            now
        };
        marks.sort_unstable();
        marks.dedup();
        let mut totals: Vec<Vec<Total>> = vec![Vec::with_capacity(timelines.len()); marks.len()];
        for (timeline, recording) in timelines.iter_mut().zip(&recordings) {
            let measured = timeline.advance(&recording.trace, &marks, until);
            totals
                .iter_mut()
                .zip(measured)
                .for_each(|(all, one)| all.push(one));
        }
        let mut state = lock();
        for (samples, recording) in state.samples.iter_mut().zip(&recordings) {
            let after = samples.newest().unwrap_or_default();
            for (at, power) in samples_after(&recording.trace, after) {
                samples.push(at, power);
            }
        }
        state.totals = timelines.iter().map(|one| *one.total()).collect();
        state.measured.extend(marks.into_iter().zip(totals));
        drop(state);
        // If the socket is full, it is readable already.
        let _ = (&*waker).write(&[0]);
    }
}
