//! Behaves like a serving program: asks for the batch size before each batch, and reports each batch over the
//! shared-memory link.

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, Instant};

use sweetspot_link::Writer;
use sweetspot_quantity::{Bytes, Joules, Seconds};
use sweetspot_sim::{
    Arrivals, Job, JobError, JobRequest, Phase, PlacementError, RequestQueue, ScaledWork,
    Variation, Workload,
};

use super::marks::PhaseMarks;
use super::progress::ProgressPrinter;
use super::rank::{Rank, out_of_memory};
use super::{Amount, Finished, StandInError, StandInRequest, seconds};
use crate::SharedGpu;

/// How `sim-workload` serves requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Serving {
    /// When requests arrive.
    pub arrivals: Arrivals,
    /// The random seed of the arrival times.
    pub seed: u64,
}

/// Batches for about this time are queued on the GPU, because a real program also launches batches in
/// advance.
const QUEUED_TIME: Seconds = Seconds::new(0.04);

/// Serves requests until the requested amount is done or no more requests arrive.
pub fn serve(
    request: &StandInRequest,
    serving: &Serving,
    workload: &Workload,
    gpus: &[&SharedGpu],
    out: &mut impl Write,
) -> Result<Finished, StandInError> {
    let requests = RequestQueue::new(&serving.arrivals, serving.seed)?;
    // Memory for one item is reserved now; larger batches reserve theirs later.
    let first = StandInRequest {
        batch: Some(1),
        amount: Amount::Items(1),
        ranks: 1,
        ..request.clone()
    };
    let parts = gpus.iter().map(|gpu| {
        Ok::<_, StandInError>(ServingGpu {
            work: workload.work_on(gpu.name(), gpu.profile())?,
            rank: Rank::new(gpu, workload, &first, PhaseMarks::off())?,
            batches: HashMap::new(),
        })
    });
    let parts: Vec<_> = parts.collect::<Result<_, _>>()?;
    // The server itself reports over the link.
    let mut printer = ProgressPrinter::new(out, None);
    let items = match request.amount {
        Amount::Items(items) => Some(items),
        Amount::For(_) => None,
        Amount::Study => parts.first().map(|gpu| gpu.work.items()),
    };
    let mut server = Server {
        link: Writer::from_env()?,
        fixed_batch: request.batch,
        gpus: parts,
        workload,
        rejected_size: 0,
        started: 0,
        batch_time: Seconds::ZERO,
        items: 0,
        iterations: 0,
        energy: Joules::ZERO,
        latencies: Vec::new(),
    };
    server.start()?;
    let until = EndCondition {
        items,
        time: match request.amount {
            Amount::For(time) => Some(time),
            _ => None,
        },
    };
    let end = match requests {
        None => server.serve_closed_loop(&until, &mut printer)?,
        Some(requests) => server.serve_queue(requests, &until, &mut printer)?,
    };
    Ok(Finished {
        items: server.items,
        time: seconds(end - server.started),
        energy: server.energy,
        p99: server.p99(),
    })
}

/// When serving ends: after this many items or this time.
struct EndCondition {
    items: Option<u64>,
    time: Option<Seconds>,
}

/// A GPU of a serving program, and its part of the work.
struct ServingGpu<'a> {
    rank: Rank<'a>,
    work: ScaledWork,
    /// The phases of a workload iteration, by batch size.
    batches: HashMap<u64, Vec<Phase>>,
}

/// A serving program on one or several simulated GPUs, which divide each batch among them.
struct Server<'a> {
    link: Option<Writer>,
    fixed_batch: Option<u64>,
    gpus: Vec<ServingGpu<'a>>,
    workload: &'a Workload,
    /// The batch size that was last reported as too large for the memory; 0 if there was none.
    rejected_size: u64,
    started: u64,
    /// How long the last batch took.
    batch_time: Seconds,
    items: u64,
    iterations: u64,
    energy: Joules,
    latencies: Vec<f64>,
}

impl ServingGpu<'_> {
    /// Computes this GPU's part of a batch that `gpus` GPUs divide among them, and reserves the memory for it.
    fn prepare(&mut self, workload: &Workload, size: u64, gpus: usize) -> Result<(), StandInError> {
        if self.batches.contains_key(&size) {
            return Ok(());
        }
        let (gpu, id) = (self.rank.on_gpu.gpu, self.rank.on_gpu.id);
        let request = JobRequest {
            batch: Some(size),
            items: Some(size),
        };
        let profile = &workload.profile;
        let job = Job::new(profile, &self.work, gpu.profile(), request, Variation::NONE)
            .map_err(|problem| workload.cannot_run(problem))?;
        let need: Bytes = profile.memory.fixed + profile.memory.per_item * size as f64;
        let reserved = gpu.with_gpu(|live| {
            let own = live.job_memory(id)?;
            let free = gpu.profile().memory.capacity - live.memory_used() + own;
            if need > free {
                let problem = out_of_memory(gpu, size, need, free);
                return Err(StandInError::from(workload.cannot_run(problem)));
            }
            Ok(live.reserve_memory(id, need.max(own))?)
        })?;
        reserved?;
        let phases = job.iterations().0.iter().map(|phase| Phase {
            load: match gpus {
                1 => phase.load,
                _ => phase.load.divided_among(gpus),
            },
            ..phase.clone()
        });
        self.batches.insert(size, phases.collect());
        Ok(())
    }
}

impl Server<'_> {
    /// Runs the startup phases, before the first batch.
    fn start(&mut self) -> Result<(), StandInError> {
        for gpu in &self.gpus {
            let startup = gpu.rank.job.startup();
            if !startup.is_empty() {
                gpu.rank.grant_iterations(startup, 1)?;
                gpu.rank.await_iteration(Instant::now())?;
            }
        }
        self.started = self.now()?;
        Ok(())
    }

    /// The present time of the GPUs, in nanoseconds.
    fn now(&self) -> Result<u64, StandInError> {
        let mut now = 0;
        for gpu in &self.gpus {
            now = now.max(gpu.rank.poll()?.0);
        }
        Ok(now)
    }

    /// Whether the requested number of items or time is reached.
    fn is_over(&self, now: u64, until: &EndCondition) -> bool {
        let time = until
            .time
            .is_some_and(|time| seconds(now - self.started) >= time);
        time || until.items.is_some_and(|items| self.items >= items)
    }

    /// The size of the next batch: the user's, or else that of sweetspot, or else the study's. It is reduced
    /// if it does not fit into memory.
    fn choose_size(&mut self, at_most: u64) -> Result<u64, StandInError> {
        let asked = self.link.as_ref().and_then(Writer::batch_size);
        let wanted = self.fixed_batch.or(asked.map(|size| size.get()));
        let wanted = wanted.unwrap_or(self.workload.profile.batch).max(1);
        let mut size = wanted.min(at_most.max(1));
        loop {
            match self.prepare(size) {
                Ok(()) => return Ok(size),
                Err(StandInError::Placement(PlacementError {
                    problem: JobError::OutOfMemory { .. },
                    ..
                })) if size > 1 => {
                    if self.rejected_size != wanted {
                        self.rejected_size = wanted;
                        // Standard error may be closed or full.
                        let _ = writeln!(
                            std::io::stderr(),
                            "sim-workload: CUDA out of memory: a batch of {size}"
                        );
                        if let Some(link) = &self.link {
                            link.out_of_memory(size);
                        }
                    }
                    size = size.div_ceil(2);
                }
                Err(problem) => return Err(problem),
            }
        }
    }

    /// Computes the phases of a batch of this size, and reserves the memory for it.
    fn prepare(&mut self, size: u64) -> Result<(), StandInError> {
        let (count, workload) = (self.gpus.len(), self.workload);
        let mut gpus = self.gpus.iter_mut();
        gpus.try_for_each(|gpu| gpu.prepare(workload, size, count))
    }

    /// Runs `count` batches of this size. Returns when the last one was done, and how long each took.
    fn run_batches(&mut self, size: u64, count: u64) -> Result<(u64, Seconds), StandInError> {
        let expected = self.batch_time.max(Seconds::ZERO) * (count as f64 * 0.97);
        let near = Instant::now() + Duration::from_secs_f64(expected.get());
        let mut started = u64::MAX;
        for gpu in &self.gpus {
            let phases = gpu.batches.get(&size).map_or(&[][..], Vec::as_slice);
            started = started.min(gpu.rank.grant_iterations(phases, count)?);
        }
        let (mut end, mut energy) = (0, Joules::ZERO);
        for gpu in &self.gpus {
            let (at, progress) = gpu.rank.await_iteration(near)?;
            end = end.max(at);
            energy += progress.energy;
        }
        self.batch_time = seconds(end.saturating_sub(started)) / count as f64;
        self.items += size * count;
        self.iterations += count;
        self.energy = energy;
        Ok((end, self.batch_time))
    }

    /// Reports a batch and its latencies over the shared-memory link.
    fn report_batch(&mut self, size: u64, time: Seconds, latencies: &[f64]) {
        self.latencies.extend(latencies);
        let Some(link) = &self.link else { return };
        for latency in latencies {
            link.latency(Duration::from_secs_f64(latency.max(0.0)));
        }
        link.batch(size, Duration::from_secs_f64(time.get()));
    }

    /// Serves a closed loop: the next request arrives as soon as the last one is answered.
    fn serve_closed_loop(
        &mut self,
        until: &EndCondition,
        printer: &mut ProgressPrinter<'_, impl Write>,
    ) -> Result<u64, StandInError> {
        let mut now = self.started;
        let mut last = 0;
        while !self.is_over(now, until) {
            let left = until.items.map_or(u64::MAX, |items| items - self.items);
            let size = self.choose_size(left)?;
            let fit = (QUEUED_TIME / self.batch_time.max(Seconds::new(1e-6))).get() as u64;
            let count = if size == last {
                fit.clamp(1, (left / size).max(1))
            } else {
                1
            };
            last = size;
            let (at, each) = self.run_batches(size, count)?;
            now = at;
            for _ in 0..count {
                self.report_batch(size, each, &[each.get()]);
            }
            printer.update(self.iterations, self.items)?;
        }
        Ok(now)
    }

    /// Serves requests that arrive independently of the server and wait in a queue.
    fn serve_queue(
        &mut self,
        mut requests: RequestQueue,
        until: &EndCondition,
        printer: &mut ProgressPrinter<'_, impl Write>,
    ) -> Result<u64, StandInError> {
        let started = self.started;
        let mut now = started;
        loop {
            now = now.max(self.now()?);
            if self.is_over(now, until) {
                return Ok(now);
            }
            let since = seconds(now - started);
            requests.admit(since);
            if let (Some(queue), Some(link)) = (requests.report(since), &self.link) {
                link.queue(queue.length);
                link.arrivals(queue.arrivals_per_s);
            }
            if requests.waiting() == 0 {
                let Some(next) = requests.next_arrival() else {
                    return Ok(now);
                };
                let wait = (next - since).get().clamp(50e-6, 0.02);
                std::thread::sleep(Duration::from_secs_f64(wait));
                continue;
            }
            let size = self.choose_size(requests.waiting())?;
            let (at, each) = self.run_batches(size, 1)?;
            now = at;
            let done = seconds(at.saturating_sub(started));
            let taken = requests.take(size).into_iter();
            let latencies: Vec<f64> = taken.map(|came| (done - came).get().max(0.0)).collect();
            self.report_batch(size, each, &latencies);
            printer.update(self.iterations, self.items)?;
        }
    }

    /// The 99th percentile of all latencies; `None` if there are none.
    fn p99(&self) -> Option<Seconds> {
        let mut all = self.latencies.clone();
        all.sort_by(f64::total_cmp);
        let rank = (all.len() as f64 * 0.99).ceil() as usize;
        all.get(rank.checked_sub(1)?).copied().map(Seconds::new)
    }
}
