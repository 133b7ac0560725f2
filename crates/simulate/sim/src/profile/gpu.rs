//! The profile of a GPU: physical parameters, no outcome.

use serde::{Deserialize, Serialize};
use sweetspot_device::Domain;
use sweetspot_quantity::{
    Bytes, BytesPerSecond, Celsius, FlopsPerSecond, Megahertz, Ratio, Seconds, Watts,
};

use super::fault::Fault;
use super::{Problem, Profile, check, problem};
use crate::sensors::Generation;

/// A GPU board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuProfile {
    /// The product's name, as the driver tells it.
    pub name: String,
    /// Other names of the profile; each belongs to one profile.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The study whose workloads a bare network name means.
    pub study: Option<String>,
    /// Which sensors it has and how they behave.
    pub sensors: Generation,
    /// Standard deviation of speed and of switching power from run to run.
    #[serde(default = "usual_noise")]
    pub noise: Ratio,
    /// The keys that were fitted to a study's figures; the others are known or assumed.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// Its cores.
    pub core: Core,
    /// Its memory.
    pub memory: Memory,
    /// What it computes at most beside 32-bit arithmetic.
    #[serde(default)]
    pub peak: Peak,
    /// What it draws.
    pub power: PowerDraw,
    /// How its power cap works.
    pub cap: Cap,
    /// How it warms up.
    pub thermal: Thermal,
    /// What is broken about it.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Fault>,
}

/// 0.3 % unless the profile says otherwise.
fn usual_noise() -> Ratio {
    Ratio::new(0.003)
}

/// The cores' clock and voltage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// Arithmetic units (CUDA cores).
    pub units: u64,
    /// Lowest clock.
    pub min: Megahertz,
    /// Clock when nothing is set and no cap binds.
    pub default: Megahertz,
    /// Highest clock; above the default only when it is locked there.
    pub max: Megahertz,
    /// Distance of two clocks.
    pub step: Megahertz,
    /// Up to this clock the voltage stays at its floor; above, it rises in a straight line.
    pub voltage_knee: Megahertz,
    /// The lowest voltage, against the voltage at the default clock.
    pub voltage_floor: Ratio,
}

impl Core {
    /// The clocks that can be locked, ascending; a driver lists whole megahertz, rounded down.
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
    /// How much a program can have.
    pub capacity: Bytes,
    /// At the default clock.
    pub bandwidth: BytesPerSecond,
    /// Every clock it has, ascending.
    pub clocks: Vec<Megahertz>,
    /// The clock when nothing is set.
    pub default: Megahertz,
}

/// Peaks of the data sheet: dense matrices, in tensor cores where it has them, at the boost clock. What is absent
/// is not offered, or no faster than 32-bit arithmetic. No simulated number depends on them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peak {
    /// 19 bits, stored as 32.
    pub tf32: Option<FlopsPerSecond>,
    /// 16-bit floating point.
    pub fp16: Option<FlopsPerSecond>,
    /// 16 bits with the range of 32.
    pub bf16: Option<FlopsPerSecond>,
    /// 8-bit integers.
    pub int8: Option<FlopsPerSecond>,
    /// What SGEMM of large matrices gets from a joule, in GFLOP, where somebody measured it.
    pub sgemm_gflops_per_watt: Option<f64>,
}

impl Peak {
    fn check(&self) -> Result<(), Problem> {
        let (slow, fast) = (FlopsPerSecond::new(1e9), FlopsPerSecond::new(1e18));
        let named = [
            ("peak.tf32", self.tf32),
            ("peak.fp16", self.fp16),
            ("peak.bf16", self.bf16),
            ("peak.int8", self.int8),
        ];
        for (key, peak) in named {
            if let Some(peak) = peak {
                check::within(key, peak, slow, fast)?;
            }
        }
        match self.sgemm_gflops_per_watt {
            Some(figure) if !(0.1..=1e5).contains(&figure) => Err(problem(
                "peak.sgemm_gflops_per_watt",
                format!("{figure} is no such figure of a GPU"),
            )),
            _ => Ok(()),
        }
    }
}

impl GpuProfile {
    /// What is in force of a cap.
    pub fn enforced(&self, cap: Watts) -> Watts {
        let faults = self.faults.iter();
        faults.fold(cap, |cap, fault| fault.enforced(cap))
    }

    /// 32-bit arithmetic at the default clock: each unit multiplies and adds in every cycle.
    pub fn peak_fp32(&self) -> FlopsPerSecond {
        FlopsPerSecond::new(2.0 * self.core.units as f64 * self.core.default.get() * 1e6)
    }
}

/// The parts of the power drawn; each is added to those before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerDraw {
    /// With no program on it, at its idle temperature.
    pub idle: Watts,
    /// While a program holds it, even if it only waits.
    pub context: Watts,
    /// While kernels run, at the default memory clock and full memory activity.
    pub memory: Watts,
    /// While kernels run, at the default core clock and full switching.
    pub core: Watts,
}

/// The power cap and how it is enforced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cap {
    /// Lowest.
    pub min: Watts,
    /// Highest.
    pub max: Watts,
    /// As shipped.
    pub default: Watts,
    /// Time constant with which the clock falls while power is above the cap.
    pub settling: Seconds,
    /// Time constant with which the clock rises again.
    pub recovery: Seconds,
}

impl Cap {
    /// The caps that can be set.
    pub fn domain(&self) -> Domain<Watts> {
        Domain::Range {
            min: self.min,
            max: self.max,
        }
    }
}

/// How the chip warms up and what that costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thermal {
    /// Of the air it is cooled with.
    pub ambient: Celsius,
    /// After a long time at the default cap.
    pub at_default_cap: Celsius,
    /// Time constant of warming and cooling.
    pub time_constant: Seconds,
    /// How much idle power grows with each degree (leakage).
    pub leakage_per_degree: Ratio,
}

const FITTABLE: [&str; 11] = [
    "core.voltage_knee",
    "core.voltage_floor",
    "power.idle",
    "power.context",
    "power.memory",
    "power.core",
    "cap.settling",
    "cap.recovery",
    "thermal.at_default_cap",
    "thermal.time_constant",
    "thermal.leakage_per_degree",
];

/// No board draws more, and none is slower to react.
const MOST_POWER: Watts = Watts::new(10_000.0);
const SLOWEST: Seconds = Seconds::new(60.0);

impl Profile for GpuProfile {
    fn check(&self) -> Result<(), Problem> {
        check::text("name", &self.name)?;
        check::names("fitted", &self.fitted, &FITTABLE)?;
        check::within("noise", self.noise, Ratio::ZERO, Ratio::new(0.2))?;
        self.core.check()?;
        self.memory.check()?;
        self.peak.check()?;
        check::within("power.idle", self.power.idle, Watts::ZERO, MOST_POWER)?;
        check::within("power.context", self.power.context, Watts::ZERO, MOST_POWER)?;
        check::within("power.memory", self.power.memory, Watts::ZERO, MOST_POWER)?;
        check::within("power.core", self.power.core, Watts::new(0.1), MOST_POWER)?;
        self.check_cap()?;
        self.check_thermal()?;
        let mut faults = self.faults.iter().enumerate();
        faults.try_for_each(|(index, fault)| fault.check(index))
    }
}

impl Core {
    fn check(&self) -> Result<(), Problem> {
        check::count("core.units", self.units, 1_000_000)?;
        check::within(
            "core.min",
            self.min,
            Megahertz::new(1.0),
            Megahertz::new(10_000.0),
        )?;
        check::within("core.max", self.max, self.min, Megahertz::new(10_000.0))?;
        check::within("core.default", self.default, self.min, self.max)?;
        check::within(
            "core.step",
            self.step,
            Megahertz::new(0.5),
            Megahertz::new(10_000.0),
        )?;
        let count = ((self.max - self.min) / self.step).get();
        if (count - count.round()).abs() > 1e-6 {
            let message = format!(
                "{} does not lead from core.min to core.max in whole steps",
                self.step
            );
            return Err(problem("core.step", message));
        }
        if !self.levels().contains(&self.default) {
            let domain = Domain::Levels(self.levels());
            let message = format!(
                "{} is not a clock of this GPU; {}",
                self.default,
                domain.describe_nearest(self.default)
            );
            return Err(problem("core.default", message));
        }
        let floor = self.voltage_floor;
        check::within(
            "core.voltage_floor",
            floor,
            Ratio::new(0.3),
            Ratio::new(1.0),
        )?;
        // Where the voltage rises at all, it needs some way to do so.
        let knee = self.default * if floor < Ratio::new(1.0) { 0.99 } else { 1.0 };
        check::within(
            "core.voltage_knee",
            self.voltage_knee,
            Megahertz::ZERO,
            knee,
        )
    }
}

impl Memory {
    fn check(&self) -> Result<(), Problem> {
        check::within(
            "memory.capacity",
            self.capacity,
            Bytes::new(1e6),
            Bytes::new(1e15),
        )?;
        let (slow, fast) = (BytesPerSecond::new(1e6), BytesPerSecond::new(1e15));
        check::within("memory.bandwidth", self.bandwidth, slow, fast)?;
        for clock in &self.clocks {
            check::within(
                "memory.clocks",
                *clock,
                Megahertz::new(1.0),
                Megahertz::new(100_000.0),
            )?;
        }
        if !self.clocks.is_sorted_by(|a, b| a < b) {
            return Err(problem("memory.clocks", "the clocks must be ascending"));
        }
        if !self.clocks.contains(&self.default) {
            let message = format!("{} is not among memory.clocks", self.default);
            return Err(problem("memory.default", message));
        }
        Ok(())
    }
}

impl GpuProfile {
    fn check_cap(&self) -> Result<(), Problem> {
        let cap = &self.cap;
        if cap.min > cap.max {
            let message = format!("{} is above cap.max ({})", cap.min, cap.max);
            return Err(problem("cap.min", message));
        }
        check::within("cap.max", cap.max, Watts::new(1.0), MOST_POWER)?;
        check::within("cap.default", cap.default, cap.min, cap.max)?;
        let power = &self.power;
        let floor = self.core.voltage_floor.get();
        let lowest = power.core * (self.core.min / self.core.default) * (floor * floor);
        let least = power.idle + power.context + power.memory + lowest;
        if cap.min < least {
            let message = format!(
                "{} cannot be kept: at the lowest clock the parts of [power] come to {least:.1}",
                cap.min
            );
            return Err(problem("cap.min", message));
        }
        check::within("cap.settling", cap.settling, Seconds::new(1e-4), SLOWEST)?;
        check::within("cap.recovery", cap.recovery, Seconds::new(1e-4), SLOWEST)
    }

    fn check_thermal(&self) -> Result<(), Problem> {
        let thermal = &self.thermal;
        let (cold, hot) = (Celsius::new(-60.0), Celsius::new(120.0));
        check::within("thermal.ambient", thermal.ambient, cold, Celsius::new(80.0))?;
        check::within(
            "thermal.at_default_cap",
            thermal.at_default_cap,
            thermal.ambient,
            hot,
        )?;
        let constant = thermal.time_constant;
        check::within(
            "thermal.time_constant",
            constant,
            Seconds::new(0.1),
            Seconds::new(3600.0),
        )?;
        let leakage = thermal.leakage_per_degree;
        check::within(
            "thermal.leakage_per_degree",
            leakage,
            Ratio::ZERO,
            Ratio::new(0.05),
        )?;
        let per_watt = (thermal.at_default_cap - thermal.ambient).get() / self.cap.default.get();
        let feedback = self.power.idle.get() * leakage.get() * per_watt;
        if feedback > 0.5 {
            let message = "so much leakage at this temperature would run away: take less of one";
            return Err(problem("thermal.leakage_per_degree", message));
        }
        Ok(())
    }
}
