//! The profile of a GPU: physical parameters, no outcome.

use serde::{Deserialize, Serialize};
use sweetspot_device::{Domain, Knob, SensorKind};
use sweetspot_quantity::{
    Bytes, BytesPerSecond, Celsius, Joules, Megahertz, Ratio, Seconds, Watts,
};

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

/// Something that goes wrong. Times count from the moment the GPU is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// The GPU no longer answers.
    Lost {
        /// From here on.
        after: Seconds,
    },
    /// A knob may not be set.
    WriteDenied {
        /// Which.
        knob: Knob,
    },
    /// A sensor repeats its last value for ever.
    StuckSensor {
        /// Which.
        sensor: SensorKind,
        /// From here on.
        after: Seconds,
    },
    /// The energy counter starts again from zero.
    CounterWraps {
        /// When it has counted this much.
        at: Joules,
    },
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

impl Profile for GpuProfile {
    fn check(&self) -> Result<(), Problem> {
        check::names("fitted", &self.fitted, &FITTABLE)?;
        check::within("noise", self.noise, Ratio::ZERO, Ratio::new(0.2))?;
        self.core.check()?;
        self.memory.check()?;
        check::not_negative("power.idle", self.power.idle)?;
        check::not_negative("power.context", self.power.context)?;
        check::not_negative("power.memory", self.power.memory)?;
        check::positive("power.core", self.power.core)?;
        self.check_cap()?;
        self.check_thermal()?;
        self.faults.iter().enumerate().try_for_each(check_fault)
    }
}

impl Core {
    fn check(&self) -> Result<(), Problem> {
        check::count("core.units", self.units)?;
        check::positive("core.min", self.min)?;
        check::within("core.default", self.default, self.min, self.max)?;
        check::positive("core.step", self.step)?;
        let count = ((self.max - self.min) / self.step).get();
        if count > 10_000.0 {
            return Err(problem("core.step", "gives more than 10,000 clocks"));
        }
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
                domain.offered_near(self.default)
            );
            return Err(problem("core.default", message));
        }
        check::within(
            "core.voltage_knee",
            self.voltage_knee,
            Megahertz::ZERO,
            self.default,
        )?;
        if self.voltage_knee == self.default && self.voltage_floor != Ratio::new(1.0) {
            let message = "at the default clock itself the floor can only be 100 %";
            return Err(problem("core.voltage_knee", message));
        }
        check::within(
            "core.voltage_floor",
            self.voltage_floor,
            Ratio::new(0.3),
            Ratio::new(1.0),
        )
    }
}

impl Memory {
    fn check(&self) -> Result<(), Problem> {
        check::positive("memory.capacity", self.capacity)?;
        check::positive("memory.bandwidth", self.bandwidth)?;
        if !self.clocks.is_sorted_by(|a, b| a < b) || self.clocks.iter().any(|c| c.get() <= 0.0) {
            let message = "clocks must be positive and ascending";
            return Err(problem("memory.clocks", message));
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
        check::within("cap.default", cap.default, cap.min, cap.max)?;
        let waiting = self.power.idle + self.power.context;
        if cap.min <= waiting {
            let message = format!(
                "{} is not above power.idle + power.context ({waiting}), which no cap can lower",
                cap.min
            );
            return Err(problem("cap.min", message));
        }
        check::positive("cap.settling", cap.settling)?;
        check::positive("cap.recovery", cap.recovery)
    }

    fn check_thermal(&self) -> Result<(), Problem> {
        let thermal = &self.thermal;
        check::within(
            "thermal.at_default_cap",
            thermal.at_default_cap,
            thermal.ambient,
            Celsius::new(120.0),
        )?;
        check::positive("thermal.time_constant", thermal.time_constant)?;
        check::within(
            "thermal.leakage_per_degree",
            thermal.leakage_per_degree,
            Ratio::ZERO,
            Ratio::new(0.05),
        )
    }
}

fn check_fault((index, fault): (usize, &Fault)) -> Result<(), Problem> {
    match fault {
        Fault::Lost { after } | Fault::StuckSensor { after, .. } => {
            check::not_negative(&format!("fault.{index}.after"), *after)
        }
        Fault::CounterWraps { at } => check::positive(&format!("fault.{index}.at"), *at),
        Fault::WriteDenied { .. } => Ok(()),
    }
}
