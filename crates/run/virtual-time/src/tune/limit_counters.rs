//! The counters of simulated GPUs that tell what limits a load, as a real driver shows them.

use sweetspot_control::limit::{EvidenceSpan, LoadEvidence};
use sweetspot_device::{Device, ThrottleTimes, UnitUse};
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_sim::{SimulatedGpu, Stretch, StretchSink};

/// The time between two readings of the counters, as on a real GPU.
const READ_EVERY: Seconds = Seconds::new(1.0);

/// The counters of all GPUs of a job, which are read at regular times.
pub struct LimitCounters {
    ranks: Vec<GpuTimes>,
    read_at: Seconds,
    read: Vec<GpuTimes>,
}

/// The total times of one GPU, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct GpuTimes {
    /// The time for which the power cap kept the clock low.
    capped: f64,
    /// The time for which kernels ran.
    busy: f64,
    /// The time for which the cores limited the work.
    core: f64,
    /// The time for which the memory limited the work.
    memory: f64,
}

impl LimitCounters {
    /// Creates the counters of this many GPUs.
    pub fn new(ranks: usize) -> Self {
        Self {
            ranks: vec![GpuTimes::default(); ranks],
            read_at: Seconds::ZERO,
            read: vec![GpuTimes::default(); ranks],
        }
    }

    /// What the counters tell about the time since the last reading; `None` if the next one is not due.
    pub fn read(&mut self, now: Seconds, gpus: &mut [SimulatedGpu]) -> Option<EvidenceSpan> {
        let time = now - self.read_at;
        if time < READ_EVERY {
            return None;
        }
        let ranks = self.ranks.iter().zip(&self.read).zip(gpus);
        let devices: Vec<LoadEvidence> = ranks
            .map(|((times, before), gpu)| evidence(gpu, before, times, time))
            .collect();
        let begin = std::mem::replace(&mut self.read_at, now);
        self.read.clone_from(&self.ranks);
        Some(EvidenceSpan {
            begin,
            end: now,
            evidence: LoadEvidence::mean_of_devices(&devices),
        })
    }
}

/// What the counters of a GPU tell, as far as it has them.
fn evidence(
    gpu: &mut SimulatedGpu,
    before: &GpuTimes,
    now: &GpuTimes,
    time: Seconds,
) -> LoadEvidence {
    let power_cap = gpu.power_limits().ok().map(|limits| limits.enforced);
    let profile = gpu.profile();
    // A simulated GPU never gets too hot, and its power supply always suffices.
    let throttle_times = |capped: f64| ThrottleTimes {
        power_cap: profile.throttle_time(Seconds::new(capped)),
        thermal: profile.throttle_time(Seconds::ZERO),
        power_brake: profile.throttle_time(Seconds::ZERO),
    };
    let throttled = throttle_times(now.capped).since(&throttle_times(before.capped));
    let units = match profile.unit_use_fault() {
        None => {
            let share = |seconds: f64| Some(Ratio::new(seconds / time.get()));
            let (core, memory) = (now.core - before.core, now.memory - before.memory);
            UnitUse {
                cores: share(core + memory),
                tensor: share(core),
                memory: share(memory),
            }
        }
        Some(_) => UnitUse::default(),
    };
    LoadEvidence {
        power: None,
        power_cap,
        throttled_by_cap: throttled.power_cap.map(|throttled| throttled / time),
        throttled_by_heat: throttled.thermal.map(|throttled| throttled / time),
        throttled_by_brake: throttled.power_brake.map(|throttled| throttled / time),
        utilisation: Some(Ratio::new((now.busy - before.busy) / time.get())),
        units,
    }
}

impl StretchSink for LimitCounters {
    /// Adds a time span of one GPU.
    fn record(&mut self, rank: usize, stretch: &Stretch) {
        let Some(times) = self.ranks.get_mut(rank) else {
            return;
        };
        let (time, bounds) = (stretch.time.get(), &stretch.bounds);
        times.capped += if bounds.is_capped { time } else { 0.0 };
        times.busy += if stretch.busy { time } else { 0.0 };
        times.core += time * bounds.core.get();
        times.memory += time * bounds.memory.get();
    }
}
