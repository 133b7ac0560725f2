//! Everything that requests are answered from.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sweetspot_device::{HostDevice, Moment};
use sweetspot_document::common::SchemaName;
use sweetspot_document::live::{Live, LiveGpu, LiveLease};
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_service::monitor_link::{LeaseView, ProcessorReading};

use crate::counters::{Counters, GpuName};
use crate::gpus::read_gpu;
use crate::jobs::ReportedJobs;
use crate::leased::LeasedEnergies;
use crate::meter::Meter;
use crate::processors::Processors;

/// The age up to which the readings of GPUs are given to further clients, so that many clients do not make the driver
/// busy.
const MAX_READING_AGE: Duration = Duration::from_millis(900);
/// The seconds of power in the figure of the live page.
const FIGURE_SECONDS: usize = 120;
/// The power of a GPU whose default power cap is unknown.
const ASSUMED_GPU_POWER: Watts = Watts::new(1500.0);

/// Everything that requests are answered from.
pub struct State {
    /// The meter, which knows energies.
    pub meter: Meter,
    /// The named counters.
    pub counters: Counters,
    /// The names of all GPUs.
    pub names: Vec<GpuName>,
    /// The energy of the processors, as the privileged process has read it.
    pub processors: Processors,
    /// The leases, as the privileged process told last.
    pub leases: Vec<LeaseView>,
    /// The jobs that report.
    pub jobs: ReportedJobs,
    /// Whether metrics have the names of DCGM too.
    pub dcgm_names: bool,
    gpus: Vec<Box<dyn HostDevice>>,
    leased: LeasedEnergies,
    read: Option<(Instant, Vec<LiveGpu>)>,
    /// The core clocks of each GPU that were read for somebody who looks, in MHz.
    clocks: Vec<VecDeque<(Instant, f64)>>,
    /// The moment at which requests of this turn take effect, once one needs it.
    turn: Option<Moment>,
}

impl State {
    /// Begins with GPUs that were opened for this, and a meter that reads the same.
    pub fn new(mut gpus: Vec<Box<dyn HostDevice>>, meter: Meter, dcgm_names: bool) -> Self {
        let most_power = |gpu: &mut Box<dyn HostDevice>| {
            let limits = gpu.power_limits();
            limits.map_or(ASSUMED_GPU_POWER, |limits| limits.default)
        };
        let gpu_power: Watts = gpus.iter_mut().map(most_power).sum();
        let name = |gpu: &dyn HostDevice| GpuName {
            index: gpu.index(),
            uuid: gpu.descriptor().id.to_string(),
        };
        Self {
            clocks: vec![VecDeque::new(); gpus.len()],
            names: gpus.iter().map(|gpu| name(gpu.as_ref())).collect(),
            gpus,
            meter,
            counters: Counters::default(),
            processors: Processors::default(),
            leases: Vec::new(),
            jobs: ReportedJobs::new(gpu_power),
            dcgm_names,
            leased: LeasedEnergies::default(),
            read: None,
            turn: None,
        }
    }

    /// Ends a turn: the next request gets a moment of its own.
    pub const fn end_turn(&mut self) {
        self.turn = None;
    }

    /// The moment of this turn, which all its requests share. The energies of these GPUs at it are known a little later if
    /// a client waits for them, otherwise some seconds later.
    pub fn mark(&mut self, gpus: &[usize], is_awaited: bool) -> Moment {
        let moment = *self.turn.get_or_insert_with(|| self.meter.now());
        self.meter.request(moment, gpus, is_awaited);
        moment
    }

    /// The GPUs with their product names.
    pub fn gpu_names(&self) -> Vec<(&GpuName, &str)> {
        let products = self.gpus.iter().map(|gpu| gpu.descriptor().name.as_str());
        self.names.iter().zip(products).collect()
    }

    /// Takes over the leases, and measures what is drawn under them.
    pub fn set_leases(&mut self, leases: Vec<LeaseView>) {
        let totals = self.meter.totals();
        self.leased
            .update(&leases, &self.gpus, &self.names, &totals);
        self.leases = leases;
    }

    /// Takes over a reading of the processors' energy.
    pub fn add_processors(&mut self, reading: ProcessorReading) {
        self.processors.add(reading);
        self.counters.resolve_processors(&self.processors);
    }

    /// The energy of the GPU of a lease since the lease began; `None` where others use the GPU too.
    pub fn leased_energy(&self, lease: &LeaseView) -> Option<f64> {
        self.leased.energy(lease)
    }

    /// The state of all GPUs, at most a second old.
    pub fn gpus(&mut self) -> Vec<LiveGpu> {
        self.meter.watch();
        let known = self.read.as_ref();
        if let Some((_, gpus)) = known.filter(|(at, _)| at.elapsed() < MAX_READING_AGE) {
            return gpus.clone();
        }
        let powers = self.meter.power();
        let totals = self.meter.totals();
        let mut live = Vec::with_capacity(self.gpus.len());
        for (place, gpu) in self.gpus.iter_mut().enumerate() {
            let total = totals.get(place);
            let power = powers
                .get(place)
                .copied()
                .flatten()
                .map(|power| power.get());
            let mut one = read_gpu(gpu.as_mut(), power);
            one.lost |= total.is_some_and(|total| total.is_lost);
            if one.lost {
                one.power_w = None;
            }
            one.energy_j = total.map(|total| total.energy.get());
            let recent = |samples: &crate::samples::Samples| samples.recent_means(FIGURE_SECONDS);
            let recent = self.meter.with_samples(place, recent).unwrap_or_default();
            let rounded = recent
                .iter()
                .map(|(_, power)| (f64::from(*power) * 10.0).round() / 10.0);
            one.recent_power_w = rounded.collect();
            if let Some(clocks) = self.clocks.get_mut(place) {
                one.recent_core_clock_mhz = recent_clocks(clocks, one.core_clock_mhz);
            }
            live.push(one);
        }
        self.read = Some((Instant::now(), live.clone()));
        live
    }

    /// What happens on the machine now.
    pub fn live(&mut self) -> Live {
        self.jobs.end_old();
        let gpus = self.gpus();
        let lease = |lease: &LeaseView| LiveLease {
            gpu: lease.device.to_string(),
            user: lease.user.clone(),
            pid: (lease.pid != 0).then_some(lease.pid),
            job: lease.job.clone(),
            kind: match lease.kind {
                sweetspot_guard::LeaseKind::Ceiling => "ceiling".to_owned(),
                sweetspot_guard::LeaseKind::Setting => "setting".to_owned(),
            },
            settings: settings_in_words(&lease.settings),
            age_s: lease.age_s,
            left_s: lease.left_s,
            energy_j: self.leased_energy(lease),
        };
        Live {
            schema: SchemaName::LIVE,
            unix_s: unix_seconds(),
            host: host_name(),
            leases: self.leases.iter().map(lease).collect(),
            jobs: self.jobs.jobs().into_iter().cloned().collect(),
            gpus,
        }
    }

    /// The wall-clock time of a moment, in seconds since 1970.
    pub fn unix_seconds_at(&self, moment: Moment) -> f64 {
        let passed: Seconds = self.meter.now() - moment;
        unix_seconds() - passed.get()
    }
}

/// Adds a clock that was read just now to those of a GPU, and returns those of the figure.
fn recent_clocks(clocks: &mut VecDeque<(Instant, f64)>, read: Option<f64>) -> Vec<[f64; 2]> {
    let now = Instant::now();
    clocks.extend(read.map(|clock| (now, clock)));
    let age = |at: Instant| now.saturating_duration_since(at).as_secs_f64();
    while clocks
        .front()
        .is_some_and(|(at, _)| age(*at) > FIGURE_SECONDS as f64)
    {
        clocks.pop_front();
    }
    let rounded = |value: f64| (value * 10.0).round() / 10.0;
    let shown = clocks.iter().map(|(at, clock)| [rounded(age(*at)), *clock]);
    shown.collect()
}

/// The wall-clock time in seconds since 1970.
pub fn unix_seconds() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_secs_f64())
}

/// The name of this machine.
pub fn host_name() -> Option<String> {
    let name = rustix::system::uname();
    name.nodename().to_str().ok().map(str::to_owned)
}

/// The name of a user, or the number if it has none.
pub fn user_name(uid: u32) -> String {
    let user = sweetspot_service::privileges::User::from_uid(uid);
    user.map_or_else(
        || uid.to_string(),
        |user| user.name.to_string_lossy().into_owned(),
    )
}

/// The settings of a lease in words.
pub fn settings_in_words(settings: &sweetspot_device::Settings) -> String {
    let power = settings
        .power_cap
        .map(|cap| format!("power cap {:.0} W", cap.get()));
    let core = settings
        .core_clock
        .map(|clock| format!("core clock {:.0} MHz", clock.get()));
    let memory = settings
        .memory_clock
        .map(|clock| format!("memory clock {:.0} MHz", clock.get()));
    let all: Vec<String> = [power, core, memory].into_iter().flatten().collect();
    match all.is_empty() {
        true => "nothing changed".to_owned(),
        false => all.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_the_last_two_minutes_are_shown() {
        let mut clocks = VecDeque::new();
        let before = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds));
        clocks.extend([300, 60].map(|seconds| (before(seconds).unwrap(), 900.0)));
        assert_eq!(
            recent_clocks(&mut clocks, Some(1500.0)),
            [[60.0, 900.0], [0.0, 1500.0]]
        );
        // A GPU that cannot tell its clock keeps the ones before.
        assert_eq!(recent_clocks(&mut clocks, None).len(), 2);
    }
}
