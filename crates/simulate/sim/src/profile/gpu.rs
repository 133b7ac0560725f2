//! The profile of a GPU: its physical parameters. It contains no measured run times or energies.

use serde::{Deserialize, Serialize};
use sweetspot_device::Domain;
use sweetspot_quantity::{
    Bytes, BytesPerSecond, Celsius, FlopsPerSecond, Megahertz, Ratio, Seconds, Watts,
};

use super::fault::{Fault, UnitUseFault};
use super::kernels::Kernels;
use crate::sensors::Generation;

/// The physical parameters of a GPU board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuProfile {
    /// The product's name, as the driver reports it.
    pub name: String,
    /// Other names of the profile; no two profiles share one.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The study whose workloads are used if the user names a network without a study.
    pub study: Option<String>,
    /// The GPU's generation, which determines its sensors.
    pub sensors: Generation,
    /// The relative standard deviation of speed and of switching power from run to run.
    #[serde(default = "default_noise")]
    pub noise: Ratio,
    /// The keys whose values were fitted to a study's results; the other values are known or assumed.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// The number, clocks and voltage of the cores.
    pub core: Core,
    /// The memory's size, speed and clocks.
    pub memory: Memory,
    /// The peak performance in other formats than 32-bit floating point.
    #[serde(default)]
    pub peak: Peak,
    /// The parts of the board's power draw.
    pub power: PowerDraw,
    /// The power cap and how it is enforced.
    pub cap: Cap,
    /// How the chip's temperature depends on its power, and the power on the temperature.
    pub thermal: Thermal,
    /// The constants from which the time and energy of networks are predicted; absent if they are unknown. They come last
    /// in a profile.
    pub kernels: Option<Kernels>,
    /// The name of the profile whose constants for predictions are used, adapted to this GPU's data sheet, because no
    /// network was measured on this GPU.
    pub kernels_of: Option<String>,
    /// The faults that are simulated on this GPU; usually none.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Fault>,
}

/// The noise if the profile gives none: 0.3 %.
fn default_noise() -> Ratio {
    Ratio::new(0.003)
}

/// The number, clocks and voltage of the cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// The number of arithmetic units (CUDA cores).
    pub units: u64,
    /// The number of multiprocessors; one for 128 arithmetic units if absent.
    pub multiprocessors: Option<u64>,
    /// The lowest core clock.
    pub min: Megahertz,
    /// The core clock if none is set and the power cap does not limit it.
    pub default: Megahertz,
    /// The highest core clock that can be set. Without a setting, the clock does not exceed the default.
    pub max: Megahertz,
    /// The step between two neighbouring core clocks.
    pub step: Megahertz,
    /// The clock up to which the voltage stays at its lowest value; above, the voltage rises linearly.
    pub voltage_knee: Megahertz,
    /// The lowest voltage, relative to the voltage at the default clock.
    pub voltage_floor: Ratio,
}

/// The usual number of arithmetic units of a multiprocessor.
const UNITS_PER_MULTIPROCESSOR: u64 = 128;

impl Core {
    /// The number of multiprocessors.
    pub fn multiprocessor_count(&self) -> u64 {
        let usual = self.units / UNITS_PER_MULTIPROCESSOR;
        self.multiprocessors.unwrap_or(usual).max(1)
    }

    /// The core clocks that can be set, in ascending order. As in the driver's list, they are rounded down to
    /// whole megahertz.
    pub fn levels(&self) -> Vec<Megahertz> {
        let steps = ((self.max - self.min) / self.step).get().round() as u32;
        (0..=steps)
            .map(|step| {
                let exact = (self.min + self.step * f64::from(step)).get();
                Megahertz::new((exact + 1e-9).floor())
            })
            .collect()
    }
}

/// The memory's size, speed and clocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The memory that programs can allocate.
    pub capacity: Bytes,
    /// The memory bandwidth at the default memory clock.
    pub bandwidth: BytesPerSecond,
    /// All supported memory clocks, in ascending order.
    pub clocks: Vec<Megahertz>,
    /// The memory clock if none is set.
    pub default: Megahertz,
    /// Whether the memory clock is set by an offset from the default, as on GeForce boards of the Turing generation, which
    /// cannot lock it. The driver then offers every clock between the lowest and the highest of `clocks`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clock_offsets: bool,
}

/// Peak performance from the data sheet, for dense matrices at the boost clock, in tensor cores if the GPU
/// has them. `None` if the GPU does not support a format, or is not faster with it than with fp32. No
/// simulated result depends on these values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peak {
    /// The peak performance with TensorFloat-32: 19 bits, stored as 32.
    pub tf32: Option<FlopsPerSecond>,
    /// The peak performance with 16-bit floating point.
    pub fp16: Option<FlopsPerSecond>,
    /// The peak performance with bfloat16: 16 bits with the range of 32-bit floating point.
    pub bf16: Option<FlopsPerSecond>,
    /// The peak performance with 8-bit integers.
    pub int8: Option<FlopsPerSecond>,
    /// The measured energy efficiency of SGEMM on large matrices, in GFLOPS per watt, if it is known.
    pub sgemm_gflops_per_watt: Option<f64>,
}

impl GpuProfile {
    /// The throttle time that the GPU shows after it has counted this one; `None` if it shows none.
    pub fn throttle_time(&self, counted: Seconds) -> Option<Seconds> {
        let counted = self.sensors.has_throttle_times().then_some(counted);
        let faults = self.faults.iter();
        faults.fold(counted, |counted, fault| fault.throttle_time(counted?))
    }

    /// What prevents that the use of the GPU's units is read; `None` if it can be read.
    pub fn unit_use_fault(&self) -> Option<UnitUseFault> {
        if !self.sensors.has_unit_use() {
            return Some(UnitUseFault::Unsupported);
        }
        self.faults.iter().find_map(Fault::unit_use_fault)
    }

    /// The power cap that the board enforces if `cap` is set.
    pub fn enforced_cap(&self, cap: Watts) -> Watts {
        let faults = self.faults.iter();
        faults.fold(cap, |cap, fault| fault.enforced_cap(cap))
    }

    /// The peak of 32-bit arithmetic at the default clock: each unit does one multiplication and one addition per clock
    /// cycle.
    pub fn peak_fp32(&self) -> FlopsPerSecond {
        FlopsPerSecond::new(2.0 * self.core.units as f64 * self.core.default.get() * 1e6)
    }
}

/// The parts of the power draw, whose sum is the board's power.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerDraw {
    /// The power if no program uses the GPU, at the idle temperature.
    pub idle: Watts,
    /// The power added while a program has opened the GPU, even if it only waits.
    pub context: Watts,
    /// The power added while kernels run, at the default memory clock and full memory activity.
    pub memory: Watts,
    /// The power added while kernels run, at the default core clock and full switching.
    pub core: Watts,
}

/// The power cap and how it is enforced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cap {
    /// The lowest power cap that can be set.
    pub min: Watts,
    /// The highest power cap that can be set.
    pub max: Watts,
    /// The power cap if none is set.
    pub default: Watts,
    /// The time constant with which the clock falls while the power is above the cap.
    pub settling: Seconds,
    /// The time constant with which the clock rises again when the power is below the cap.
    pub recovery: Seconds,
}

impl Cap {
    /// The range of power caps that can be set.
    pub fn domain(&self) -> Domain<Watts> {
        Domain::Range {
            min: self.min,
            max: self.max,
        }
    }
}

/// How the chip's temperature depends on its power, and the power on the temperature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thermal {
    /// The temperature of the cooling air.
    pub ambient: Celsius,
    /// The chip's temperature after a long time at a power equal to the default cap.
    pub at_default_cap: Celsius,
    /// The time constant of warming and cooling.
    pub time_constant: Seconds,
    /// The relative growth of idle power per degree, due to leakage.
    pub leakage_per_degree: Ratio,
}
