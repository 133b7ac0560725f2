//! `sim-workload`: a stand-in training or serving program, in real time, on a simulated host.

mod arrivals;
mod requests;
mod serve;

pub use arrivals::{Arrivals, BadArrivals};
pub(crate) use requests::Requests;
pub use serve::Serving;

use std::io::Write;
use std::time::{Duration, Instant};

use sweetspot_link::Writer;
use sweetspot_quantity::{Bytes, Joules, Seconds};
use sweetspot_sim::{
    Exchange, Job, JobError, Order, Phase, Variant, Variation, Workload, find_workload,
    has_workloads,
};
use sweetspot_sim_host::{Host, HostError, JobId, JobProgress, SharedGpu};

use crate::SessionError;
use crate::simulated_host::usual_all_reduce;
use crate::virtual_time::{of_job, work_on};

/// How much is to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// As the study did.
    Study,
    /// So many items, all ranks together.
    Items(u64),
    /// As many as can be done in this time.
    For(Seconds),
}

/// A workload to stand in for.
#[derive(Clone, Debug, PartialEq)]
pub struct SimWorkloadRequest {
    /// Name or path.
    pub network: String,
    /// Which form of it, where the user says.
    pub variant: Variant,
    /// Items in a batch, where the user says: of each rank, or of all where the workload splits it.
    pub batch: Option<u64>,
    /// Processes of a data-parallel job, one GPU each.
    pub ranks: usize,
    /// How much is to be done.
    pub amount: Amount,
    /// How requests come, where it serves; the batch size is then the tool's, unless `batch` names one.
    pub serving: Option<Serving>,
}

/// What was done.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Items, all ranks together.
    pub items: u64,
    /// From the first iteration's start to the last one's end.
    pub time: Seconds,
    /// That the GPUs of the job really drew meanwhile.
    pub energy: Joules,
    /// Of the latency of its requests, where it served.
    pub p99: Option<Seconds>,
}

/// Runs it, telling of its progress as a training script does.
pub fn sim_workload(
    request: &SimWorkloadRequest,
    out: &mut impl Write,
) -> Result<Finished, SessionError> {
    let host = Host::from_environment().ok_or(SessionError::NoHost)??;
    let visible = visible(&host, std::env::var("CUDA_VISIBLE_DEVICES").ok())?;
    if visible.len() < request.ranks {
        return Err(SessionError::Ranks {
            ranks: request.ranks,
            visible: visible.len(),
        });
    }
    if let Some(serving) = &request.serving {
        return serve::serve(request, serving, (&host, visible[0]), out);
    }
    let workload = workload_of(&host, visible[0], request)?;
    let mut ranks = Vec::new();
    for gpu in &visible[..request.ranks] {
        ranks.push(Rank::join(gpu, &workload, request)?);
    }
    let all_reduce = match host.node() {
        Some((_, node)) => node.all_reduce.clone(),
        None => usual_all_reduce(),
    };
    let exchange = all_reduce.exchange(request.ranks, workload.profile.gradients);
    let mut teller = Teller {
        out,
        begun: Instant::now(),
        done: (Instant::now(), 0),
        last: (Instant::now(), 0),
        told: 0,
        link: Writer::from_env()?,
        reported: 0,
    };
    let finished = if let [rank] = ranks.as_slice() {
        alone(rank, request.amount, &mut teller)
    } else {
        together(&ranks, request.amount, exchange, &mut teller)
    };
    drop(ranks);
    let finished = finished?;
    teller.report(finished.items);
    Ok(finished)
}

/// The workload, of the node's study where that has some, else of the GPU's.
fn workload_of(
    host: &Host,
    gpu: &SharedGpu,
    request: &SimWorkloadRequest,
) -> Result<Workload, SessionError> {
    let of_node = host.node().map(|(name, _)| name.as_str());
    let study = of_node.filter(|study| has_workloads(study));
    let study = study.or(gpu.profile().study.as_deref());
    Ok(find_workload(&request.network, study, &request.variant)?)
}

/// The GPUs that a CUDA program would see, in its order; an unknown name ends the list, as CUDA has it.
fn visible(host: &Host, variable: Option<String>) -> Result<Vec<&SharedGpu>, SessionError> {
    let Some(variable) = variable else {
        return Ok(host.gpus().iter().collect());
    };
    let named = |text: &str| {
        let text = text.trim();
        host.gpus().iter().find(|gpu| match text.parse::<usize>() {
            Ok(index) => gpu.index() == index,
            Err(_) => text.starts_with("GPU-") && gpu.uuid().starts_with(text),
        })
    };
    let visible: Vec<_> = variable.split(',').map_while(named).collect();
    if visible.is_empty() {
        return Err(SessionError::Visible(variable));
    }
    Ok(visible)
}

/// One process' place on one GPU; it leaves when it is dropped.
struct Rank<'a> {
    gpu: &'a SharedGpu,
    place: JobId,
    job: Job,
}

impl<'a> Rank<'a> {
    fn join(
        gpu: &'a SharedGpu,
        workload: &Workload,
        request: &SimWorkloadRequest,
    ) -> Result<Self, SessionError> {
        let profile = gpu.profile();
        let work = work_on(workload, gpu.name(), profile)?;
        let order = Order {
            batch: request.batch,
            items: Some(match request.amount {
                Amount::Items(items) => items,
                _ => work.items(),
            }),
        };
        let order = order.share(&workload.profile, request.ranks);
        let job = Job::new(&workload.profile, &work, profile, order, Variation::NONE)
            .map_err(|problem| of_job(workload, problem))?;
        let memory = &workload.profile.memory;
        let need = memory.fixed + memory.per_item * job.batch as f64;
        let joined = gpu.look(|live| {
            let free = profile.memory.capacity - live.memory_used();
            if need > free {
                return Err(of_job(workload, out_of_memory(gpu, job.batch, need, free)));
            }
            Ok(live.join(std::process::id(), need)?)
        })?;
        Ok(Self {
            gpu,
            place: joined?,
            job,
        })
    }

    fn grant(&self, phases: &[Phase], iterations: u64) -> Result<u64, HostError> {
        self.gpu.look(|live| {
            live.grant(self.place, phases, iterations)?;
            Ok(live.now())
        })?
    }

    fn show(&self) -> Result<(u64, JobProgress), HostError> {
        self.gpu
            .look(|live| Ok((live.now(), live.show(self.place)?)))?
    }

    /// Waits until all that was granted is done, and says when that was.
    fn finish(
        &self,
        mut see: impl FnMut(u64) -> Result<(), SessionError>,
    ) -> Result<(u64, JobProgress), SessionError> {
        let (mut last, mut before) = self.show()?;
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(at) = before.finished_at {
                return Ok((at, before));
            }
            std::thread::sleep(pause);
            let (now, progress) = self.show()?;
            see(progress.done)?;
            // Look often while iterations are short or the end may be near.
            let each = (now - last) / (progress.done - before.done).max(1);
            pause = Duration::from_nanos((each / 8).clamp(500_000, 20_000_000));
            if progress.done > before.done {
                (last, before) = (now, progress);
            } else {
                before.finished_at = progress.finished_at;
                before.energy = progress.energy;
            }
        }
    }
}

impl Rank<'_> {
    /// Waits for a single iteration, looking often once its end is near: others wait for it.
    fn await_iteration(&self, near: Instant) -> Result<(u64, JobProgress), HostError> {
        std::thread::sleep(near.saturating_duration_since(Instant::now()));
        loop {
            let (_, progress) = self.show()?;
            if let Some(at) = progress.finished_at {
                return Ok((at, progress));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Drop for Rank<'_> {
    fn drop(&mut self) {
        let _ = self.gpu.look(|live| live.leave(self.place));
    }
}

fn out_of_memory(gpu: &SharedGpu, batch: u64, need: Bytes, free: Bytes) -> JobError {
    JobError::OutOfMemory {
        gpu: gpu.profile().name.clone(),
        batch,
        need,
        capacity: free,
        largest: 0,
    }
}

/// Tells of progress: once a second in words, and over the link as it is made.
struct Teller<'a, W> {
    out: &'a mut W,
    begun: Instant,
    /// When so many items were done, at the last look and when something was told last.
    done: (Instant, u64),
    last: (Instant, u64),
    told: u64,
    link: Option<Writer>,
    reported: u64,
}

impl<W: Write> Teller<'_, W> {
    fn report(&mut self, items: u64) {
        if let Some(link) = &self.link
            && items > self.reported
        {
            link.progress(items - self.reported);
            self.reported = items;
        }
    }

    fn tell(&mut self, iterations: u64, items: u64) -> Result<(), SessionError> {
        self.report(items);
        if items > self.done.1 {
            self.done = (Instant::now(), items);
        }
        let seconds = self.begun.elapsed().as_secs();
        if seconds <= self.told || self.done.1 == self.last.1 {
            return Ok(());
        }
        self.told = seconds;
        // The present rate, as training programs print it: a mean since the start would hide every change.
        let before = std::mem::replace(&mut self.last, self.done);
        let took = self.done.0.duration_since(before.0).as_secs_f64();
        let rate = (self.done.1 - before.1) as f64 / took;
        writeln!(
            self.out,
            "step {iterations}: {items} items, images/sec: {rate:.1}"
        )
        .and_then(|()| self.out.flush())
        .map_err(SessionError::Print)
    }
}

/// A single rank: the physics runs through its iterations without waiting for anybody.
fn alone(
    rank: &Rank<'_>,
    amount: Amount,
    teller: &mut Teller<'_, impl Write>,
) -> Result<Finished, SessionError> {
    let job = &rank.job;
    let batch = job.batch;
    let (iteration, count) = job.iterations();
    if let Amount::For(time) = amount {
        return for_a_time(rank, time, teller);
    }
    let begun = rank.gpu.look(|live| live.now())?;
    let mut end = begun;
    let mut done_before = 0;
    let mut progress = None;
    for (phases, iterations) in [(job.startup(), 1), (iteration, count), (job.last(), 1)] {
        if phases.is_empty() || iterations == 0 {
            continue;
        }
        rank.grant(phases, iterations)?;
        let is_work = !std::ptr::eq(phases, job.startup());
        let (at, reached) = rank.finish(|done| {
            let iterations = if is_work { done - done_before } else { 0 };
            teller.tell(iterations, (iterations * batch).min(job.items))
        })?;
        if !is_work {
            done_before = reached.done;
        }
        (end, progress) = (at, Some(reached));
    }
    Ok(Finished {
        items: job.items,
        time: nanos(end - begun),
        energy: progress.map_or(Joules::ZERO, |progress| progress.energy),
        p99: None,
    })
}

fn for_a_time(
    rank: &Rank<'_>,
    time: Seconds,
    teller: &mut Teller<'_, impl Write>,
) -> Result<Finished, SessionError> {
    const ENDLESS: u64 = u64::MAX / 4;
    let (iteration, _) = rank.job.iterations();
    let iteration = if iteration.is_empty() {
        rank.job.last()
    } else {
        iteration
    };
    let begun = rank.grant(iteration, ENDLESS)?;
    loop {
        let (now, progress) = rank.show()?;
        let left = time - nanos(now - begun);
        if left <= Seconds::ZERO {
            return Ok(Finished {
                items: progress.done * rank.job.batch,
                time: nanos(now - begun),
                energy: progress.energy,
                p99: None,
            });
        }
        teller.tell(progress.done, progress.done * rank.job.batch)?;
        std::thread::sleep(Duration::from_secs_f64(left.get().clamp(0.0005, 0.1)));
    }
}

/// Several ranks: every iteration begins when the slowest has ended the one before and gradients have been
/// exchanged.
fn together(
    ranks: &[Rank<'_>],
    amount: Amount,
    exchange: Exchange,
    teller: &mut Teller<'_, impl Write>,
) -> Result<Finished, SessionError> {
    let (_, count) = ranks[0].job.iterations();
    let batch = ranks[0].job.batch * ranks.len() as u64;
    let all: u64 = ranks.iter().map(|rank| rank.job.items).sum();
    let begun = ranks[0].gpu.look(|live| live.now())?;
    let mut end = begun;
    let mut energies = vec![Joules::ZERO; ranks.len()];
    let mut expected = Duration::ZERO;
    let mut at_once = |phases: &dyn Fn(&Job) -> Vec<Phase>| -> Result<u64, SessionError> {
        for rank in ranks {
            let mut phases = phases(&rank.job);
            phases.push(Phase {
                name: rank.job.phase_names().len(),
                load: rank.job.exchange(exchange.time, exchange.activity),
            });
            rank.grant(&phases, 1)?;
        }
        let this_begun = Instant::now();
        for (rank, energy) in ranks.iter().zip(&mut energies) {
            let (at, progress) = rank.await_iteration(this_begun + expected)?;
            end = end.max(at);
            *energy = progress.energy;
        }
        expected = this_begun.elapsed().mul_f64(0.97);
        Ok(end)
    };
    if !ranks[0].job.startup().is_empty() {
        at_once(&|job| job.startup().to_vec())?;
    }
    let mut items = 0;
    let mut done = 0;
    let mut now = begun;
    loop {
        let over = match amount {
            Amount::For(time) => nanos(now - begun) >= time,
            _ => done >= count,
        };
        if over {
            break;
        }
        now = at_once(&|job| job.iterations().0.to_vec())?;
        done += 1;
        items = done * batch;
        teller.tell(done, items)?;
    }
    if !matches!(amount, Amount::For(_)) {
        if !ranks[0].job.last().is_empty() {
            now = at_once(&|job| job.last().to_vec())?;
        }
        items = all;
    }
    Ok(Finished {
        items,
        time: nanos(now - begun),
        energy: energies.into_iter().sum(),
        p99: None,
    })
}

fn nanos(span: u64) -> Seconds {
    Seconds::new(span as f64 * 1e-9)
}
