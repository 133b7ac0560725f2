//! A rule of a policy: whom it applies to, on which GPUs, and what it allows.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, Knob, Settings};
use sweetspot_quantity::{Megahertz, Quantity, Watts};

use super::{Account, DEFAULT_GROUP, MAX_LEASE};

/// A GPU that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpu<'a> {
    /// The GPU's index in the driver's list.
    pub index: u32,
    /// The GPU's UUID.
    pub id: &'a DeviceId,
}

/// A right that a rule gives only if it says so, because its use affects other users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// To switch a GPU's persistence mode.
    Persistence,
    /// To cap the power of the machine's processors. It does not depend on the GPU.
    ProcessorCap,
    /// To set a ceiling on a GPU's power cap, under which the leases of others must stay.
    Ceiling,
}

impl Right {
    /// The key that gives this right in a rule.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Persistence => "persistence",
            Self::ProcessorCap => "processor-cap",
            Self::Ceiling => "ceiling",
        }
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Persistence => "persistence mode",
            Self::ProcessorCap => "processor cap",
            Self::Ceiling => "ceiling",
        })
    }
}

/// The key that allows a knob in a rule.
pub(super) const fn knob_key(knob: Knob) -> &'static str {
    match knob {
        Knob::PowerCap => "power-cap",
        Knob::CoreClock => "core-clock",
        Knob::MemoryClock => "memory-clock",
    }
}

/// The values of a knob that a rule allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Allowed<Q> {
    /// The knob may not be set.
    Nothing,
    /// Every value that the device supports is allowed.
    Any,
    /// The values from `low` to `high` are allowed, both included.
    Range { low: Q, high: Q },
}

impl<Q: Quantity> Allowed<Q> {
    /// Whether a value is allowed. A value that is not a finite number is never allowed.
    pub fn contains(&self, value: Q) -> bool {
        match self {
            Self::Nothing => false,
            Self::Any => value.base().is_finite(),
            Self::Range { low, high } => *low <= value && value <= *high,
        }
    }

    /// Whether no value is allowed.
    pub const fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

impl<Q: std::fmt::Display> std::fmt::Display for Allowed<Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("no value"),
            Self::Any => f.write_str("any value that the GPU supports"),
            Self::Range { low, high } => write!(f, "{low} to {high}"),
        }
    }
}

/// A user or a group in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// The id of the user or group.
    pub id: u32,
    /// The name as the rule gives it: a name, or the id as text.
    pub name: String,
}

/// How a rule names a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GpuPattern {
    /// The GPU with this index in the driver's list.
    Index(u32),
    /// The GPUs whose UUID begins with this text.
    Uuid(String),
}

impl GpuPattern {
    /// Whether this names the GPU.
    pub fn matches(&self, gpu: Gpu<'_>) -> bool {
        match self {
            Self::Index(index) => *index == gpu.index,
            Self::Uuid(start) => {
                let beginning = gpu.id.as_str().get(..start.len());
                beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(start))
            }
        }
    }
}

impl std::fmt::Display for GpuPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Uuid(start) => f.write_str(start),
        }
    }
}

/// Why a rule applies to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AppliesBecause<'a> {
    /// The rule applies to everyone.
    Everyone,
    /// The rule names the user.
    User,
    /// The rule names this group, of which the user is a member.
    Group(&'a str),
}

/// A rule of a policy.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// The line of the file at which the rule begins; `None` for the rule of the default policy.
    pub line: Option<usize>,
    /// Whether the rule applies to every user.
    pub everyone: bool,
    /// The users to whom the rule applies.
    pub users: Vec<Named>,
    /// The groups to whose members the rule applies.
    pub groups: Vec<Named>,
    /// The GPUs that the rule is about; `None` for all.
    pub gpus: Option<Vec<GpuPattern>>,
    /// The allowed power caps.
    pub power_cap: Allowed<Watts>,
    /// The allowed core clocks.
    pub core_clock: Allowed<Megahertz>,
    /// The allowed memory clocks.
    pub memory_clock: Allowed<Megahertz>,
    /// Whether the rule gives [`Right::Persistence`].
    pub persistence: bool,
    /// Whether the rule gives [`Right::ProcessorCap`].
    pub processor_cap: bool,
    /// Whether users may read the energy of the processors.
    pub processor_energy: bool,
    /// Whether the rule gives [`Right::Ceiling`].
    pub ceiling: bool,
    /// Whether settings may be changed although another user's process runs on the GPU.
    pub shared_gpus: bool,
    /// The longest lease.
    pub longest_lease: Duration,
}

impl Rule {
    /// A rule that applies to nobody and allows nothing.
    pub const fn empty(line: Option<usize>) -> Self {
        Self {
            line,
            everyone: false,
            users: Vec::new(),
            groups: Vec::new(),
            gpus: None,
            power_cap: Allowed::Nothing,
            core_clock: Allowed::Nothing,
            memory_clock: Allowed::Nothing,
            persistence: false,
            processor_cap: false,
            processor_energy: false,
            ceiling: false,
            shared_gpus: false,
            longest_lease: MAX_LEASE,
        }
    }

    /// The rule of the default policy. It applies to nobody if the group does not exist.
    pub fn for_default_group(group: Option<u32>) -> Self {
        let named = group.map(|id| Named {
            id,
            name: DEFAULT_GROUP.to_owned(),
        });
        Self {
            groups: named.into_iter().collect(),
            power_cap: Allowed::Any,
            core_clock: Allowed::Any,
            memory_clock: Allowed::Any,
            ..Self::empty(None)
        }
    }

    /// Why the rule applies to a user; `None` if it does not.
    pub fn applies_to(&self, account: &Account) -> Option<AppliesBecause<'_>> {
        if self.everyone {
            return Some(AppliesBecause::Everyone);
        }
        if self.users.iter().any(|user| user.id == account.uid) {
            return Some(AppliesBecause::User);
        }
        let mut groups = self.groups.iter();
        let group = groups.find(|group| account.groups.contains(&group.id))?;
        Some(AppliesBecause::Group(&group.name))
    }

    /// Whether the rule is about this GPU.
    pub fn covers(&self, gpu: Gpu<'_>) -> bool {
        let patterns = self.gpus.as_ref();
        patterns.is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(gpu)))
    }

    /// Whether the rule allows a knob to be set to at least one value.
    pub const fn allows_any_knob(&self) -> bool {
        !(self.power_cap.is_nothing()
            && self.core_clock.is_nothing()
            && self.memory_clock.is_nothing())
    }

    /// Whether the rule allows every value in these settings. Knobs without a value need no permission.
    pub fn allows_values(&self, settings: &Settings) -> bool {
        let cap = settings.power_cap;
        let core = settings.core_clock;
        let memory = settings.memory_clock;
        cap.is_none_or(|cap| self.power_cap.contains(cap))
            && core.is_none_or(|clock| self.core_clock.contains(clock))
            && memory.is_none_or(|clock| self.memory_clock.contains(clock))
    }

    /// Whether the rule gives a right.
    pub const fn gives(&self, right: Right) -> bool {
        match right {
            Right::Persistence => self.persistence,
            Right::ProcessorCap => self.processor_cap,
            Right::Ceiling => self.ceiling,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_matched_by_its_beginning_in_either_case() {
        let id = DeviceId::new("GPU-72f4549c-b587");
        let gpu = Gpu { index: 3, id: &id };
        let matches = |start: &str| GpuPattern::Uuid(start.to_owned()).matches(gpu);
        assert!(matches("GPU-7") && matches("gpu-72F4") && matches("GPU-72f4549c-b587"));
        assert!(!matches("GPU-8") && !matches("GPU-72f4549c-b5870"));
        assert!(GpuPattern::Index(3).matches(gpu) && !GpuPattern::Index(0).matches(gpu));
        // The beginning ends within a character: no match, and no panic.
        let id = DeviceId::new("GPU-é");
        assert!(!GpuPattern::Uuid("GPU-7".into()).matches(Gpu { index: 0, id: &id }));
    }

    #[test]
    fn values_that_are_no_numbers_are_never_allowed() {
        let range = Allowed::Range {
            low: Watts::new(0.0),
            high: Watts::new(f64::MAX),
        };
        for allowed in [Allowed::Nothing, Allowed::Any, range] {
            assert!(!allowed.contains(Watts::new(f64::NAN)));
            assert!(!allowed.contains(Watts::new(f64::INFINITY)));
        }
    }
}
