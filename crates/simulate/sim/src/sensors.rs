//! The sensors of each generation of GPUs.

use serde::{Deserialize, Serialize};
use sweetspot_device::{Scope, SensorDescriptor, SensorKind};
use sweetspot_quantity::Seconds;

/// A generation of NVIDIA GPUs, whose members have the same kinds of sensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generation {
    /// GTX 900 series, Titan X (Maxwell).
    Maxwell,
    /// P40, P100, Titan X (Pascal).
    Pascal,
    /// The V100.
    Volta,
    /// RTX 20 series, Quadro RTX.
    Turing,
    /// The A100, whose chip is the GA100.
    AmpereGa100,
    /// RTX 30 series, A40.
    Ampere,
    /// RTX 40 series, L40.
    Ada,
    /// H100 and H200.
    Hopper,
}

impl Generation {
    /// Whether the generation counts for how long it was throttled. The counters were read on an H200; here every
    /// generation with an energy counter is assumed to have them.
    pub const fn has_throttle_times(self) -> bool {
        self.has_energy_counter()
    }

    /// Whether the generation reports the use of its units (NVML's GPM), which came with Hopper.
    pub const fn has_unit_use(self) -> bool {
        matches!(self, Self::Hopper)
    }

    /// Whether the generation has an energy counter, which came with Volta.
    pub const fn has_energy_counter(self) -> bool {
        !matches!(self, Self::Maxwell | Self::Pascal)
    }

    /// The sensors of a [`SimulatedGpu`](crate::SimulatedGpu): exact values, and an energy counter with an update
    /// period. The crate `sim-host` models how the real sensors of a generation average and lag.
    pub fn sensors(self) -> Vec<SensorDescriptor> {
        let sensor = |kind, update: Option<f64>| SensorDescriptor {
            kind,
            scope: Scope::Device,
            source: "simulator".to_owned(),
            update_period: update.map(Seconds::new),
            window: None,
        };
        let mut sensors = vec![
            sensor(SensorKind::InstantPower, None),
            sensor(SensorKind::Temperature, None),
            sensor(SensorKind::CoreClock, None),
            sensor(SensorKind::MemoryClock, None),
        ];
        if self.has_energy_counter() {
            sensors.push(sensor(SensorKind::EnergyCounter, Some(COUNTER_PERIOD)));
        }
        sensors
    }
}

/// The update period of the energy counter, in seconds.
pub(crate) const COUNTER_PERIOD: f64 = 0.100;
