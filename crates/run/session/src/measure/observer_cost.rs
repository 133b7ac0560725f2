//! What measuring itself costs: processor time, and power where it can be measured.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use sweetspot_device::{Amount, Device, Moment, SensorKind};
use sweetspot_hosts::open_host_tree;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};
use sweetspot_workload::SignalSource;

use crate::SessionError;
use crate::host::Gpu;

/// How long the devices are left alone, to compare with the time in which they are read.
const QUIET_TIME: Duration = Duration::from_secs(3);

/// The update period of a GPU's energy counter where the driver states none.
const USUAL_COUNTER_PERIOD: Seconds = Seconds::new(0.1);

/// What measuring itself cost.
#[derive(Clone, Debug, PartialEq)]
pub struct ObserverCost {
    /// The processor time of this program, all threads together, while the runs were measured.
    pub cpu_time: Seconds,
    /// The time in which the runs were measured.
    pub time: Seconds,
    /// How much more power the GPUs draw while they are read, or why that is unknown.
    pub gpu_power: Result<PowerDifference, String>,
    /// How much more power the host draws while devices are read, or why that is unknown.
    pub host_power: Result<PowerDifference, String>,
}

impl ObserverCost {
    /// The processor time as a share of one core.
    pub fn share_of_core(&self) -> Option<Ratio> {
        (self.time > Seconds::ZERO).then(|| self.cpu_time / self.time)
    }
}

/// The difference of two mean powers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerDifference {
    /// The power while devices are read, less the power while they are not.
    pub value: Watts,
    /// The smallest difference that the counters can show in this time; a smaller one means nothing.
    pub resolution: Watts,
}

impl PowerDifference {
    /// Whether the difference is larger than what the counters can show.
    pub fn is_visible(&self) -> bool {
        self.value.abs() > self.resolution
    }
}

/// Measures the processor time of this program.
pub(super) struct CostClock {
    cpu: Seconds,
    began: Instant,
}

impl CostClock {
    /// Starts the clock.
    pub fn start() -> Self {
        Self {
            cpu: processor_time(),
            began: Instant::now(),
        }
    }

    /// Stops the clock; `idle` is what was found out about the power.
    pub fn stop(&self, idle: Option<IdleCost>) -> ObserverCost {
        let unknown =
            || Err("it is measured with --idle, on a machine that does nothing else".to_owned());
        let idle = idle.unwrap_or_else(|| IdleCost {
            gpus: unknown(),
            host: unknown(),
        });
        ObserverCost {
            cpu_time: processor_time() - self.cpu,
            time: Seconds::new(self.began.elapsed().as_secs_f64()),
            gpu_power: idle.gpus,
            host_power: idle.host,
        }
    }
}

/// The processor time of all threads of this process.
fn processor_time() -> Seconds {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Seconds::new(time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9)
}

/// How much more power GPUs and host draw while the sampler reads them.
pub(super) struct IdleCost {
    gpus: Result<PowerDifference, String>,
    host: Result<PowerDifference, String>,
}

/// The energy counters of devices that are compared with and without a sampler.
pub(super) struct CostProbe {
    gpus: Result<CounterGroup, String>,
    host: Result<CounterGroup, String>,
}

impl CostProbe {
    /// Opens the counters, and measures the power while nothing is read.
    pub fn measure_quiet(gpus: &[Gpu], signals: &SignalSource) -> Result<Self, SessionError> {
        let mut opened = Vec::new();
        for gpu in gpus.iter().filter(|gpu| gpu.descriptor().parent.is_none()) {
            let device: Box<dyn Device> = gpu.reopen()?;
            opened.push(device);
        }
        let mut probe = Self {
            gpus: CounterGroup::new(opened, "a GPU has no energy counter"),
            host: host_counters(),
        };
        probe.mark();
        signals.wait_until(Instant::now() + QUIET_TIME)?;
        probe.mark();
        Ok(probe)
    }

    /// Reads all counters.
    pub fn mark(&mut self) {
        for group in [&mut self.gpus, &mut self.host].into_iter().flatten() {
            group.mark();
        }
    }

    /// Compares the time between the third and the fourth mark with that between the first two.
    pub fn finish(self) -> IdleCost {
        let difference = |group: Result<CounterGroup, String>| {
            let group = group?;
            let found = group.difference();
            found.ok_or_else(|| "an energy counter could not be read".to_owned())
        };
        IdleCost {
            gpus: difference(self.gpus),
            host: difference(self.host),
        }
    }
}

/// The counters of the host.
fn host_counters() -> Result<CounterGroup, String> {
    let parts = open_host_tree().host_energy_parts();
    let parts = parts.map_err(|error| error.to_string())?;
    let boxed = parts
        .into_iter()
        .map(|part| Box::new(part) as Box<dyn Device>);
    CounterGroup::new(
        boxed.collect(),
        "the energy of the processors cannot be read (`sweetspot doctor` says why)",
    )
}

/// The energy counters of several devices, read at several moments.
struct CounterGroup {
    devices: Vec<Box<dyn Device>>,
    /// The readings of all devices at each mark; `None` if one could not be read.
    marks: Vec<Option<Vec<(Moment, Joules)>>>,
}

impl CounterGroup {
    /// Creates the group; an error with this reason if one of the devices has no counter, or if there is none.
    fn new(devices: Vec<Box<dyn Device>>, reason: &str) -> Result<Self, String> {
        let mut sensors = devices
            .iter()
            .map(|device| device.descriptor().sensor(SensorKind::EnergyCounter));
        let has_counters = sensors.all(|sensor| sensor.is_some());
        match !devices.is_empty() && has_counters {
            true => Ok(Self {
                devices,
                marks: Vec::new(),
            }),
            false => Err(reason.to_owned()),
        }
    }

    /// Reads all counters.
    fn mark(&mut self) {
        let read = self.devices.iter_mut().map(|device| {
            let reading = device.read(SensorKind::EnergyCounter).ok()?;
            match reading.amount {
                Amount::Energy(energy) => Some((reading.at, energy)),
                _ => None,
            }
        });
        self.marks.push(read.collect());
    }

    /// The difference between the mean powers, and what the counters' update periods let be seen of it.
    fn difference(&self) -> Option<PowerDifference> {
        let [Some(a), Some(b), Some(c), Some(d)] = self.marks.as_slice() else {
            return None;
        };
        let (mut value, mut resolution) = (Watts::ZERO, Watts::ZERO);
        for (index, device) in self.devices.iter().enumerate() {
            let sensor = device.descriptor().sensor(SensorKind::EnergyCounter)?;
            let period = sensor.update_period.unwrap_or(USUAL_COUNTER_PERIOD);
            let power = |from: (Moment, Joules), to: (Moment, Joules)| {
                let time = to.0 - from.0;
                let energy = to.1 - from.1;
                let is_possible = time > Seconds::ZERO && energy >= Joules::ZERO;
                is_possible.then(|| (energy / time, time))
            };
            let (quiet, quiet_time) = power(a[index], b[index])?;
            let (read, read_time) = power(c[index], d[index])?;
            value += read - quiet;
            // Each end of a span may miss the energy of one update.
            resolution += quiet * (period / quiet_time) + read * (period / read_time);
        }
        Some(PowerDifference { value, resolution })
    }
}
