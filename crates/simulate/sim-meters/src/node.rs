//! The simulated node in real time: its energy follows the GPUs, the processors and their power caps.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sweetspot_device::{Clock, Moment, MonotonicClock};
use sweetspot_quantity::{Joules, Ratio, Watts};
use sweetspot_sim::{NodeLoad, NodePower, NodeProfile, Processors};
use sweetspot_sim_host::Host;

use crate::NodeEnergy;
use crate::energy::EnergyHistory;

/// A simulated node that threads share. Whoever looks at it first advances it to the present.
#[derive(Debug)]
pub(crate) struct LiveNode(Mutex<NodeState>);

/// The state of a simulated node at its last advance.
#[derive(Debug)]
pub(crate) struct NodeState {
    host: Host,
    profile: NodeProfile,
    /// The sum of the GPUs' default caps.
    most: Watts,
    gpus: Vec<GpuState>,
    /// The power caps of the packages; empty for their defaults.
    caps: Vec<Watts>,
    /// The power since the last advance, as far as it does not come from the GPUs.
    power: NodePower,
    history: EnergyHistory,
    packages: Vec<Joules>,
    memory: Joules,
}

/// What is known about a GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GpuState {
    /// The energy since the node's start.
    pub energy: Joules,
    /// The mean power between the last two advances.
    pub power: Watts,
    at_start: Joules,
    is_in_use: bool,
}

impl LiveNode {
    /// Starts to follow a host whose node is known.
    pub fn new(host: Host, profile: NodeProfile) -> Self {
        let gpus: Vec<GpuState> = host.gpus().iter().map(GpuState::new).collect();
        let most: Watts = host
            .gpus()
            .iter()
            .map(|gpu| gpu.profile().cap.default)
            .sum();
        let idle = gpus.iter().map(|gpu| gpu.power).sum();
        let in_use: Vec<bool> = gpus.iter().map(|gpu| gpu.is_in_use).collect();
        let power = profile.power(&NodeLoad {
            gpus: idle,
            most,
            in_use: &in_use,
            package_caps: &[],
        });
        Self(Mutex::new(NodeState {
            history: EnergyHistory::new(MonotonicClock.now(), power.wall),
            packages: vec![Joules::ZERO; power.packages.len()],
            memory: Joules::ZERO,
            caps: Vec::new(),
            host,
            profile,
            most,
            gpus,
            power,
        }))
    }

    /// The state of the node, advanced to the present.
    pub fn advance(&self) -> MutexGuard<'_, NodeState> {
        let mut state = self.lock();
        state.advance();
        state
    }

    /// The state of the node at its last advance.
    pub fn lock(&self) -> MutexGuard<'_, NodeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GpuState {
    /// The state of a GPU, whose energy counts from now on.
    fn new(gpu: &sweetspot_sim_host::SharedGpu) -> Self {
        let read = gpu.with_gpu(|live| (live.energy(), live.is_occupied()));
        let (energy, is_in_use) = read.unwrap_or_default();
        Self {
            energy: Joules::ZERO,
            power: gpu.profile().power.idle,
            at_start: energy,
            is_in_use,
        }
    }
}

impl NodeState {
    /// Advances all GPUs to the present, and counts the energy since the last advance. Each GPU learns the speed of the
    /// processor that feeds it.
    fn advance(&mut self) {
        let now = MonotonicClock.now();
        let (before, wall) = self.history.last();
        let time = now - before;
        if now <= before {
            return;
        }
        let gpus = self.host.gpus();
        let processors = self.profile.processors.as_ref();
        for (index, (shared, gpu)) in gpus.iter().zip(&mut self.gpus).enumerate() {
            let package = processors.map_or(0, |all| all.package_of(index, gpus.len()));
            let full = Ratio::new(1.0);
            let package = self.power.packages.get(package);
            let speed = package.map_or(full, |package| package.speed);
            let read = shared.with_gpu(|live| {
                live.set_host_speed(speed);
                (live.energy(), live.is_occupied())
            });
            // A GPU whose files are gone draws nothing more.
            let Ok((energy, is_in_use)) = read else {
                continue;
            };
            let energy = energy - gpu.at_start;
            gpu.power = (energy - gpu.energy) / time;
            (gpu.energy, gpu.is_in_use) = (energy, is_in_use);
        }
        for (energy, package) in self.packages.iter_mut().zip(&self.power.packages) {
            *energy += package.power * time;
        }
        let memory = processors.map_or(Watts::ZERO, |one| one.dram);
        self.memory += memory * time;
        self.power = self.present_power();
        self.history.push(now, wall + self.power.wall * time);
    }

    /// The power of the node with the GPUs' latest power.
    fn present_power(&self) -> NodePower {
        let in_use: Vec<bool> = self.gpus.iter().map(|gpu| gpu.is_in_use).collect();
        self.profile.power(&NodeLoad {
            gpus: self.gpus.iter().map(|gpu| gpu.power).sum(),
            most: self.most,
            in_use: &in_use,
            package_caps: &self.caps,
        })
    }

    /// The processors of the node.
    pub fn processors(&self) -> Option<&Processors> {
        self.profile.processors.as_ref()
    }

    /// Sets the power caps of the packages.
    pub fn set_caps(&mut self, caps: Vec<Watts>) {
        self.caps = caps;
    }

    /// The GPUs of the node.
    pub fn gpus(&self) -> &[GpuState] {
        &self.gpus
    }

    /// The energy of each package up to a moment after the last advance, since the node's start.
    pub fn package_energies(&self, now: Moment) -> Vec<Joules> {
        let time = now - self.history.last().0;
        let packages = self.packages.iter().zip(&self.power.packages);
        packages
            .map(|(energy, one)| *energy + one.power * time)
            .collect()
    }

    /// The energy of the memory of each package up to a moment after the last advance, since the node's start.
    pub fn memory_energy(&self, now: Moment) -> Joules {
        let power = self.processors().map_or(Watts::ZERO, |one| one.dram);
        self.memory + power * (now - self.history.last().0)
    }

    /// The moment of the last advance, and the energy at the wall since the node's start.
    pub fn wall(&self) -> (Moment, Joules) {
        self.history.last()
    }
}

impl NodeEnergy for NodeState {
    fn energy_until(&self, moment: Moment) -> Joules {
        self.history.energy_until(moment)
    }
}
