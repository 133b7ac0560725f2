//! What limits a load, and which knob therefore works.
//!
//! A power cap above the draw has no effect: a load that waits for the memory, as the generation of text does, draws less
//! than the cap, and only a lower core clock saves energy there. [`LoadLimit::decide`] tells such loads apart from
//! counters that are read twice. It is pure, and every input may be missing.

mod sentence;
mod series;
#[cfg(test)]
mod tests;

pub use series::{EvidenceSeries, EvidenceSpan};

use sweetspot_device::UnitUse;
use sweetspot_quantity::{Ratio, Watts};

/// The power cap counts as the limit if it throttled the device for at least this share of the time. It is more than what
/// a counter that lags (by up to 0.5 s on an H200) carries over from the load before.
const MIN_THROTTLED_SHARE: f64 = 0.2;
/// A mean power of at least this share of the cap is a power at the cap.
const AT_CAP_SHARE: f64 = 0.97;
/// If the time throttled by the cap is unknown, only a mean power below this share of the cap shows that the cap does not
/// limit the load: the power of short phases may be at the cap.
const CLEARLY_BELOW_CAP_SHARE: f64 = 0.9;
/// Below this use of its cores, a device mainly waits for the host.
const MIN_BUSY_SHARE: f64 = 0.5;
/// Below this use of its cores, a device is idle.
const MAX_IDLE_SHARE: f64 = 0.02;
/// The memory limits a load that uses at least this share of its bandwidth, relative to the use of the cores.
const MIN_MEMORY_SHARE: f64 = 0.5;

/// What is known of a load on a device over a time. Every value may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadEvidence {
    /// The mean power of the device.
    pub power: Option<Watts>,
    /// The power cap that the device enforced.
    pub power_cap: Option<Watts>,
    /// The share of the time in which the power cap throttled the device.
    pub throttled_by_cap: Option<Ratio>,
    /// The share of the time in which the temperature throttled the device.
    pub throttled_by_heat: Option<Ratio>,
    /// The share of the time in which the server's power supply throttled the device.
    pub throttled_by_brake: Option<Ratio>,
    /// The share of the time in which any kernel ran on the device.
    pub utilisation: Option<Ratio>,
    /// The use of the device's units.
    pub units: UnitUse,
}

/// What limits the speed of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The power cap limits the clock.
    PowerCap,
    /// The temperature limits the clock.
    Temperature,
    /// The server's power supply limits the clock.
    PowerBrake,
    /// The bandwidth of the memory.
    Memory,
    /// The speed of the cores, at a power below the cap.
    Compute,
    /// The host: the device waits for input or for kernels to be launched.
    Host,
    /// Nothing: no work runs on the device.
    Idle,
    /// The limit is unknown.
    Unknown,
}

impl Limit {
    /// The name of the limit in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PowerCap => "power-cap",
            Self::Temperature => "temperature",
            Self::PowerBrake => "power-brake",
            Self::Memory => "memory",
            Self::Compute => "compute",
            Self::Host => "host",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }
}

/// The setting that saves energy under a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectiveKnob {
    /// The power cap of the device.
    PowerCap,
    /// A locked core clock.
    CoreClock,
    /// The batch size or the input pipeline of the program.
    BatchOrInput,
    /// No setting is known to save energy.
    None,
}

impl EffectiveKnob {
    /// The name of the knob in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PowerCap => "power-cap",
            Self::CoreClock => "core-clock",
            Self::BatchOrInput => "batch-or-input",
            Self::None => "none",
        }
    }
}

/// Whether the power cap limits a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapEffect {
    /// The cap limits the clock.
    Binds,
    /// The cap has no effect.
    DoesNotBind,
    /// The evidence does not tell.
    Unknown,
}

/// What limits a load, which knob works, and the evidence for it. Its text is a sentence for the user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadLimit {
    /// What limits the load.
    pub limit: Limit,
    /// Whether the power cap has an effect.
    pub cap: CapEffect,
    /// The setting that saves energy.
    pub knob: EffectiveKnob,
    /// The evidence, without values that cannot be true.
    pub evidence: LoadEvidence,
}

impl LoadLimit {
    /// Decides what limits a load.
    pub fn decide(evidence: &LoadEvidence) -> Self {
        let evidence = evidence.plausible();
        let cap = evidence.cap_effect();
        let limit = evidence.limit(cap);
        let knob = match (limit, cap) {
            (Limit::PowerCap, _) => EffectiveKnob::PowerCap,
            (Limit::Temperature | Limit::Memory | Limit::Compute, _)
            | (Limit::Unknown, CapEffect::DoesNotBind) => EffectiveKnob::CoreClock,
            (Limit::Host, _) => EffectiveKnob::BatchOrInput,
            (Limit::PowerBrake | Limit::Idle | Limit::Unknown, _) => EffectiveKnob::None,
        };
        Self {
            limit,
            cap,
            knob,
            evidence,
        }
    }

    /// Whether the decision tells the user anything.
    pub fn is_known(&self) -> bool {
        self.limit != Limit::Unknown || self.cap != CapEffect::Unknown
    }
}

impl LoadEvidence {
    /// The evidence without values that cannot be true: shares outside 0 to 1, and powers that are not positive.
    fn plausible(&self) -> Self {
        // The counters and the clock are not read at the same moment, so a share may be a little above 1.
        let share = |share: Option<Ratio>| {
            let share = share.filter(|share| (0.0..=1.1).contains(&share.get()))?;
            Some(Ratio::new(share.get().min(1.0)))
        };
        let power = |power: Option<Watts>| {
            power.filter(|power| power.get().is_finite() && *power > Watts::ZERO)
        };
        let utilisation = share(self.utilisation);
        let units = UnitUse {
            cores: share(self.units.cores),
            tensor: share(self.units.tensor),
            memory: share(self.units.memory),
        };
        // Monitors that show idle cores although kernels run most of the time have failed.
        let is_dead = units
            .cores
            .is_some_and(|cores| cores.get() < MAX_IDLE_SHARE)
            && utilisation.is_some_and(|busy| busy.get() >= MIN_BUSY_SHARE);
        Self {
            power: power(self.power),
            power_cap: power(self.power_cap),
            throttled_by_cap: share(self.throttled_by_cap),
            throttled_by_heat: share(self.throttled_by_heat),
            throttled_by_brake: share(self.throttled_by_brake),
            utilisation,
            units: match is_dead {
                true => UnitUse::default(),
                false => units,
            },
        }
    }

    /// Whether the power cap limits the load.
    fn cap_effect(&self) -> CapEffect {
        let of_cap = self
            .power
            .zip(self.power_cap)
            .map(|(power, cap)| (power / cap).get());
        let is_throttled = self.throttled_by_cap.map(is_throttled);
        match (is_throttled, of_cap) {
            (Some(true), _) => CapEffect::Binds,
            // A counter that does not run although the power is at the cap does not count.
            (_, Some(share)) if share >= AT_CAP_SHARE => CapEffect::Binds,
            (Some(false), _) => CapEffect::DoesNotBind,
            (None, Some(share)) if share < CLEARLY_BELOW_CAP_SHARE => CapEffect::DoesNotBind,
            (None, _) => CapEffect::Unknown,
        }
    }

    /// What limits the load, once the effect of the cap is known.
    fn limit(&self, cap: CapEffect) -> Limit {
        if self.throttled_by_heat.is_some_and(is_throttled) {
            return Limit::Temperature;
        }
        if self.throttled_by_brake.is_some_and(is_throttled) {
            return Limit::PowerBrake;
        }
        if cap == CapEffect::Binds {
            return Limit::PowerCap;
        }
        let busy = self.units.cores.or(self.utilisation).map(Ratio::get);
        let (tensor, memory) = (self.units.tensor, self.units.memory);
        if busy.is_some_and(|busy| busy < MAX_IDLE_SHARE) {
            return Limit::Idle;
        }
        if memory.is_some_and(|memory| memory.get() >= MIN_MEMORY_SHARE) && memory > tensor {
            return Limit::Memory;
        }
        if busy.is_some_and(|busy| busy < MIN_BUSY_SHARE) {
            return Limit::Host;
        }
        // The cap may be the limit, or the use of the units is unknown.
        let (Some(cores), Some(used), CapEffect::DoesNotBind) = (self.units.cores, memory, cap)
        else {
            return Limit::Unknown;
        };
        if (used / cores).get() >= MIN_MEMORY_SHARE && memory > tensor {
            Limit::Memory
        } else {
            Limit::Compute
        }
    }
}

/// Whether something throttled a device for so long that it limits the load.
fn is_throttled(share: Ratio) -> bool {
    share.get() >= MIN_THROTTLED_SHARE
}
