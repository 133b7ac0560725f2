//! Which power sensors a generation of GPUs has.

use serde::{Deserialize, Serialize};
use sweetspot_device::{SensorDescriptor, SensorKind};
use sweetspot_quantity::Seconds;

/// A generation of NVIDIA GPUs, as far as its sensors are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generation {
    /// GTX 900 series, Titan X (Maxwell).
    Maxwell,
    /// P40, P100, Titan X (Pascal).
    Pascal,
    /// V100.
    Volta,
    /// RTX 20 series, Quadro RTX.
    Turing,
    /// A100.
    AmpereGa100,
    /// RTX 30 series, A40.
    Ampere,
    /// RTX 40 series, L40.
    Ada,
    /// H100, H200.
    Hopper,
}

impl Generation {
    /// The energy counter came with Volta.
    pub const fn has_energy_counter(self) -> bool {
        !matches!(self, Self::Maxwell | Self::Pascal)
    }

    /// The span one power value covers: 10 ms of every 20 on Pascal and Volta, 25 of every 100 on
    /// GA100 and Hopper, everything on the others (Yang, Adamek and Armour, 2023).
    const fn window(self) -> (f64, f64) {
        match self {
            Self::Maxwell | Self::Pascal | Self::Volta => (0.010, 0.020),
            Self::Turing | Self::Ampere | Self::Ada => (0.100, 0.100),
            Self::AmpereGa100 | Self::Hopper => (0.025, 0.100),
        }
    }

    /// The sensors as a device describes them.
    pub fn sensors(self) -> Vec<SensorDescriptor> {
        let (window, update) = self.window();
        let sensor =
            |kind, source: &str, update: Option<f64>, window: Option<f64>| SensorDescriptor {
                kind,
                source: source.to_owned(),
                update_period: update.map(Seconds::new),
                window: window.map(Seconds::new),
            };
        let mut sensors = vec![sensor(
            SensorKind::InstantPower,
            "simulated power",
            Some(update),
            Some(window),
        )];
        if self.has_energy_counter() {
            sensors.push(sensor(
                SensorKind::EnergyCounter,
                "simulated counter",
                Some(COUNTER_PERIOD),
                None,
            ));
        }
        for kind in [
            SensorKind::Temperature,
            SensorKind::CoreClock,
            SensorKind::MemoryClock,
        ] {
            sensors.push(sensor(kind, "simulated state", None, None));
        }
        sensors
    }
}

/// How often the energy counter moves.
pub(crate) const COUNTER_PERIOD: f64 = 0.100;
