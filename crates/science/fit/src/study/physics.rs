//! The simulator's steady state in closed form: fast enough for a search, and corrected by the simulator.
//!
//! The model is that of docs/simulator.md. What it leaves out (how a governor moves, how the chip warms up in
//! detail) is a factor on each point, found by running the simulator itself.

use sweetspot_sim::GpuProfile;

use super::MeasuredPoint;

/// A GPU and a workload in plain numbers: seconds, watts, clocks against the default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Physics {
    /// Core work of an item at the usual batch size.
    pub core: f64,
    /// Memory work of an item.
    pub memory: f64,
    pub memory_per_batch: f64,
    pub host: f64,
    pub host_per_batch: f64,
    pub launch: f64,
    pub half_speed_batch: f64,
    /// The usual batch size.
    pub batch: f64,
    /// Drawn while the program waits: idle and context.
    pub waiting: f64,
    pub memory_power: f64,
    pub core_power: f64,
    pub knee: f64,
    pub floor: f64,
}

/// What a point's settings mean for the physics.
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

/// Halvings of the range of clocks: far below what a derivative can see.
const HALVINGS: usize = 40;
/// Rounds in which temperature and power agree.
const ROUNDS: usize = 3;

impl Physics {
    /// Time and energy of a run.
    pub fn run(&self, at: &Conditions) -> (f64, f64) {
        let busy = |batch: f64| batch / (batch + self.half_speed_batch);
        let busy = busy(at.batch) / busy(self.batch);
        let core = self.core * at.batch / busy;
        let memory = (self.memory * at.batch + self.memory_per_batch) / at.memory_speed;
        let host = self.host * at.batch + self.host_per_batch;
        // Kernels and launches together, and the part of it in which kernels run.
        let device = |clock: f64| {
            let kernels = core / clock + memory;
            let whole = match self.launch > 0.0 {
                true => {
                    let (shorter, longer) = (self.launch.min(kernels), self.launch.max(kernels));
                    let alike = (shorter / longer).powi(8);
                    longer * (1.0 + alike).sqrt().sqrt().sqrt()
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
        for _ in 0..ROUNDS {
            let waiting = self.waiting + leaked;
            let power = |clock: f64| waiting + running(clock, device(clock).1);
            let mut clock = at.clock;
            if power(clock) > at.cap {
                let (mut low, mut high) = (at.lowest.min(clock), clock);
                for _ in 0..HALVINGS {
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
            // The chip is colder at first: on average over the run it is warmer by this part of the end.
            let spans = time / at.warming;
            let warm = 1.0 - (1.0 - (-spans).exp()) / spans;
            let idle = at.idle.min(MOST_IDLE * self.waiting);
            leaked = idle * at.leakage * at.degrees_per_watt * (energy / time - idle) * warm;
        }
        result
    }

    fn switching(&self, clock: f64) -> f64 {
        let slope = (1.0 - self.floor) / (1.0 - self.knee);
        let voltage = self.floor + slope * (clock - self.knee).max(0.0);
        clock * voltage * voltage
    }

    /// What cannot be brought down: the parts of the power at the lowest clock.
    pub fn least(&self, lowest: f64) -> f64 {
        self.waiting + self.memory_power + self.core_power * lowest * self.floor * self.floor
    }
}

/// The part of the waiting power that is idle power at most.
pub const MOST_IDLE: f64 = 0.8;
