//! Checks that the values of a GPU profile are possible.

use sweetspot_device::Domain;
use sweetspot_quantity::{
    Bytes, BytesPerSecond, Celsius, FlopsPerSecond, Megahertz, Ratio, Seconds, Watts,
};

use super::gpu::{Core, GpuProfile, Memory, Peak};
use super::{Problem, Profile, check, problem};

/// The keys that the list `fitted` of a GPU profile may contain.
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

/// The highest power of a board that a profile may contain.
const MAX_POWER: Watts = Watts::new(10_000.0);
/// The longest time constant of the governor that a profile may contain.
const MAX_TIME_CONSTANT: Seconds = Seconds::new(60.0);

impl Profile for GpuProfile {
    fn check(&self) -> Result<(), Problem> {
        check::text("name", &self.name)?;
        check::names("fitted", &self.fitted, &FITTABLE)?;
        check::within("noise", self.noise, Ratio::ZERO, Ratio::new(0.2))?;
        self.core.check()?;
        self.memory.check()?;
        self.peak.check()?;
        check::within("power.idle", self.power.idle, Watts::ZERO, MAX_POWER)?;
        check::within("power.context", self.power.context, Watts::ZERO, MAX_POWER)?;
        check::within("power.memory", self.power.memory, Watts::ZERO, MAX_POWER)?;
        check::within("power.core", self.power.core, Watts::new(0.1), MAX_POWER)?;
        self.check_cap()?;
        self.check_thermal()?;
        let mut faults = self.faults.iter().enumerate();
        faults.try_for_each(|(index, fault)| fault.check(index))
    }
}

impl Core {
    /// Checks the number, clocks and voltage of the cores.
    fn check(&self) -> Result<(), Problem> {
        check::count("core.units", self.units, 1_000_000)?;
        if let Some(count) = self.multiprocessors {
            check::count("core.multiprocessors", count, self.units)?;
        }
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
                "core.max cannot be reached from core.min in whole steps of {}",
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
        // If the voltage rises, the knee must be below the default clock.
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
    /// Checks the memory's size, bandwidth and clocks.
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
    /// Checks that the power caps can be enforced at the clocks of this GPU.
    fn check_cap(&self) -> Result<(), Problem> {
        let cap = &self.cap;
        if cap.min > cap.max {
            let message = format!("{} is above cap.max ({})", cap.min, cap.max);
            return Err(problem("cap.min", message));
        }
        check::within("cap.max", cap.max, Watts::new(1.0), MAX_POWER)?;
        check::within("cap.default", cap.default, cap.min, cap.max)?;
        let power = &self.power;
        let floor = self.core.voltage_floor.get();
        let lowest = power.core * (self.core.min / self.core.default) * (floor * floor);
        let least = power.idle + power.context + power.memory + lowest;
        if cap.min < least {
            let message = format!(
                "{} cannot be enforced: at the lowest clock the parts of [power] add up to {least:.1}",
                cap.min
            );
            return Err(problem("cap.min", message));
        }
        check::within(
            "cap.settling",
            cap.settling,
            Seconds::new(1e-4),
            MAX_TIME_CONSTANT,
        )?;
        check::within(
            "cap.recovery",
            cap.recovery,
            Seconds::new(1e-4),
            MAX_TIME_CONSTANT,
        )
    }

    /// Checks temperatures and leakage.
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
            let message = "leakage and temperature would rise without bound: lower this value or thermal.at_default_cap";
            return Err(problem("thermal.leakage_per_degree", message));
        }
        Ok(())
    }
}

impl Peak {
    /// Checks the peak performance and the efficiency of SGEMM.
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
                format!("{figure} is out of range: give a value from 0.1 to 100000"),
            )),
            _ => Ok(()),
        }
    }
}
