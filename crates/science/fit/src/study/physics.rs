//! The simulator's steady state in closed form: fast enough for a fit, and corrected by the simulator.
//!
//! The model is described in docs/explanation/simulator.md. Its simplifications (no discrete clock steps, approximate
//! warm-up) are corrected by a factor for each point, found by running the simulator.

use sweetspot_sim::GpuProfile;

use super::MeasuredPoint;

/// A GPU and a workload in plain numbers: seconds, watts, and clocks relative to the default clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Physics {
    /// The core time per item at the usual batch size and default clock.
    pub core: f64,
    /// The memory time per item at the default memory clock.
    pub memory: f64,
    pub memory_per_batch: f64,
    pub host: f64,
    pub host_per_batch: f64,
    pub launch: f64,
    pub half_speed_batch: f64,
    /// The usual batch size, at which the times per item apply.
    pub batch: f64,
    /// The power while the GPU waits for the program: idle power and the power of an open context.
    pub waiting: f64,
    pub memory_power: f64,
    pub core_power: f64,
    pub knee: f64,
    pub floor: f64,
}

/// The settings of a point and the constants of its GPU, as the physics needs them.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    cap: f64,
    clock: f64,
    lowest: f64,
    memory_speed: f64,
    batch: f64,
    iterations: f64,
    idle: f64,
    leakage: f64,
    degrees_per_watt: f64,
    warming: f64,
}

impl Conditions {
    /// The conditions of a measured point on its GPU.
    pub fn new(point: &MeasuredPoint, gpu: &GpuProfile) -> Self {
        let settings = &point.settings;
        let relative = |clock| clock / gpu.core.default;
        let thermal = &gpu.thermal;
        let degrees = (thermal.at_default_cap - thermal.ambient).get();
        Self {
            cap: settings.power_cap.unwrap_or(gpu.cap.default).get(),
            clock: settings
                .core_clock
                .map_or(1.0, |clock| relative(clock).get()),
            lowest: relative(gpu.core.min).get(),
            memory_speed: settings
                .memory_clock
                .map_or(1.0, |clock| (clock / gpu.memory.default).get()),
            batch: point.batch as f64,
            iterations: point.items as f64 / point.batch as f64,
            idle: gpu.power.idle.get(),
            leakage: thermal.leakage_per_degree.get(),
            degrees_per_watt: degrees / gpu.cap.default.get(),
            warming: thermal.time_constant.get(),
        }
    }
}

/// The number of bisection steps when the clock is searched for a cap: precise enough for numerical derivatives.
const BISECTION_STEPS: usize = 40;
/// The number of iterations in which temperature and power are made consistent.
const THERMAL_ROUNDS: usize = 3;

impl Physics {
    /// The time and energy of a run under these conditions, in seconds and joules.
    pub fn run(&self, at: &Conditions) -> (f64, f64) {
        let busy = |batch: f64| batch / (batch + self.half_speed_batch);
        let busy = busy(at.batch) / busy(self.batch);
        let core = self.core * at.batch / busy;
        let memory = (self.memory * at.batch + self.memory_per_batch) / at.memory_speed;
        let host = self.host * at.batch + self.host_per_batch;
        // The time of kernels and launches together, and the share of it in which kernels run.
        let device = |clock: f64| {
            let kernels = core / clock + memory;
            let whole = match self.launch > 0.0 {
                true => {
                    let (shorter, longer) = (self.launch.min(kernels), self.launch.max(kernels));
                    let closeness = (shorter / longer).powi(8);
                    longer * (1.0 + closeness).sqrt().sqrt().sqrt()
                }
                false => kernels,
            };
            (whole, kernels / whole)
        };
        let running = |clock: f64, duty: f64| {
            let power = self.core_power * busy * self.switching(clock);
            duty * (self.memory_power * at.memory_speed + power)
        };
        let mut leaked = 0.0;
        let mut result = (0.0, 0.0);
        for _ in 0..THERMAL_ROUNDS {
            let waiting = self.waiting + leaked;
            let power = |clock: f64| waiting + running(clock, device(clock).1);
            let mut clock = at.clock;
            if power(clock) > at.cap {
                let (mut low, mut high) = (at.lowest.min(clock), clock);
                for _ in 0..BISECTION_STEPS {
                    clock = 0.5 * (low + high);
                    match power(clock) > at.cap {
                        true => high = clock,
                        false => low = clock,
                    }
                }
            }
            let (whole, _) = device(clock);
            let time = at.iterations * (host + whole);
            let energy = at.iterations * (waiting * host + power(clock) * whole);
            result = (time, energy);
            // The chip warms up during the run: its mean temperature rise is this share of the final one.
            let spans = time / at.warming;
            let warm = 1.0 - (1.0 - (-spans).exp()) / spans;
            let idle = at.idle.min(MAX_IDLE_SHARE * self.waiting);
            leaked = idle * at.leakage * at.degrees_per_watt * (energy / time - idle) * warm;
        }
        result
    }

    /// The switching power at a clock, relative to that at the default clock.
    fn switching(&self, clock: f64) -> f64 {
        let slope = (1.0 - self.floor) / (1.0 - self.knee);
        let voltage = self.floor + slope * (clock - self.knee).max(0.0);
        clock * voltage * voltage
    }

    /// The power under load at the lowest clock, which is the lowest power that a cap can enforce.
    pub fn lowest_power(&self, lowest: f64) -> f64 {
        self.waiting + self.memory_power + self.core_power * lowest * self.floor * self.floor
    }
}

/// The largest share of idle power in the waiting power.
pub const MAX_IDLE_SHARE: f64 = 0.8;
