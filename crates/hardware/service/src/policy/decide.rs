//! Decides what a user may do.

use std::fmt::Display;
use std::time::Duration;

use sweetspot_device::{Knob, Settings};
use sweetspot_quantity::Quantity;

use super::denied::{Denied, DeniedGpu};
use super::rule::{Allowed, Gpu, Right, Rule};
use super::values::union_text;
use super::{Account, Policy, PolicySource};

/// The most that a policy allows a user for leases of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The longest lease; `None` for root, whom nothing restricts.
    pub longest: Option<Duration>,
    /// Whether the GPU may be leased although another user's process runs on it.
    pub shared: bool,
}

/// A lease that is requested or held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// How long the lease lasts from its beginning.
    pub length: Duration,
    /// Whether another user's process runs on the GPU now.
    pub shared: bool,
}

impl Policy {
    /// Whether a user may set a power cap or a clock of a GPU at all, and the most generous terms of all rules that
    /// allow it. [`Policy::settings`] decides about each request: the rule that allows the longest lease may not be the
    /// one that allows a value.
    pub fn lease(&self, account: &Account, gpu: Gpu<'_>) -> Result<LeaseTerms, Denied> {
        if account.is_root() {
            return Ok(LeaseTerms {
                longest: None,
                shared: true,
            });
        }
        let rules = self.knob_rules(account, gpu)?;
        Ok(LeaseTerms {
            longest: rules.iter().map(|rule| rule.longest_lease).max(),
            shared: rules.iter().any(|rule| rule.shared_gpus),
        })
    }

    /// Whether a user may apply settings to a GPU during a lease. One rule must allow all values together, the length
    /// of the lease, and that another user's process runs on the GPU. Settings without values ask whether the lease
    /// itself is allowed.
    ///
    /// `settings` must have all values that are in force after the request, those from earlier requests of the lease
    /// too. Otherwise a user could combine, in two requests, values that no rule allows together.
    pub fn settings(
        &self,
        account: &Account,
        gpu: Gpu<'_>,
        settings: &Settings,
        lease: LeaseRequest,
    ) -> Result<(), Denied> {
        if account.is_root() {
            return Ok(());
        }
        let rules = self.knob_rules(account, gpu)?;
        let is_allowed = |rule: &&Rule| {
            rule.allows_values(settings)
                && rule.longest_lease >= lease.length
                && (rule.shared_gpus || !lease.shared)
        };
        match rules.iter().any(is_allowed) {
            true => Ok(()),
            false => {
                let refusal = RefusedSettings {
                    uid: account.uid,
                    gpu: gpu.into(),
                    policy: &self.source,
                    rules,
                };
                Err(refusal.explain(settings, lease))
            }
        }
    }

    /// Whether a user has a right. [`Right::ProcessorCap`] does not depend on the GPU.
    pub fn right(&self, account: &Account, gpu: Gpu<'_>, right: Right) -> Result<(), Denied> {
        if account.is_root() {
            return Ok(());
        }
        let rules = self.rules_for(account)?;
        let is_given =
            |rule: &&Rule| rule.gives(right) && (right == Right::ProcessorCap || rule.covers(gpu));
        match rules.iter().any(is_given) {
            true => Ok(()),
            false => Err(Denied::Right {
                uid: account.uid,
                gpu: (right != Right::ProcessorCap).then(|| gpu.into()),
                right,
                policy: self.source.clone(),
            }),
        }
    }

    /// Whether a user may read the energy of the processors, at one reading a second.
    pub fn may_read_processors(&self, account: &Account) -> bool {
        let rules = self.rules_for(account);
        account.is_root() || rules.is_ok_and(|rules| rules.iter().any(|rule| rule.processor_energy))
    }

    /// Whether a rule applies to a user, whatever it allows.
    pub fn applies_to(&self, account: &Account) -> bool {
        account.is_root() || self.rules_for(account).is_ok()
    }

    /// The rules that apply to a user; an error if there is none.
    fn rules_for(&self, account: &Account) -> Result<Vec<&Rule>, Denied> {
        let rules = self.rules.iter();
        let rules: Vec<&Rule> = rules
            .filter(|rule| rule.applies_to(account).is_some())
            .collect();
        match rules.is_empty() {
            true => Err(Denied::NoRuleForUser {
                uid: account.uid,
                policy: self.source.clone(),
            }),
            false => Ok(rules),
        }
    }

    /// The rules that allow a user to set at least one knob of a GPU; an error if there is none.
    fn knob_rules(&self, account: &Account, gpu: Gpu<'_>) -> Result<Vec<&Rule>, Denied> {
        let mut rules = self.rules_for(account)?;
        rules.retain(|rule| rule.allows_any_knob() && rule.covers(gpu));
        match rules.is_empty() {
            true => Err(Denied::NoRuleForGpu {
                uid: account.uid,
                gpu: gpu.into(),
                policy: self.source.clone(),
            }),
            false => Ok(rules),
        }
    }
}

/// Settings that no rule allows, with the rules that apply to the user and the GPU.
struct RefusedSettings<'a> {
    uid: u32,
    gpu: DeniedGpu,
    policy: &'a PolicySource,
    rules: Vec<&'a Rule>,
}

impl RefusedSettings<'_> {
    /// Finds the reason why no rule allows the settings: a value, all values together, or the lease.
    fn explain(&self, settings: &Settings, lease: LeaseRequest) -> Denied {
        let cap = settings.power_cap;
        let core = settings.core_clock;
        let memory = settings.memory_clock;
        let wrong_value = self
            .check_value(Knob::PowerCap, cap, |rule| rule.power_cap)
            .or_else(|| self.check_value(Knob::CoreClock, core, |rule| rule.core_clock))
            .or_else(|| self.check_value(Knob::MemoryClock, memory, |rule| rule.memory_clock));
        if let Some(denied) = wrong_value {
            return denied;
        }
        let (uid, gpu, policy) = (self.uid, self.gpu.clone(), self.policy.clone());
        let mut rules = self.rules.clone();
        rules.retain(|rule| rule.allows_values(settings));
        if rules.is_empty() {
            return Denied::Combination {
                uid,
                gpu,
                values: values_text(settings),
                policy,
            };
        }
        rules.retain(|rule| rule.shared_gpus || !lease.shared);
        match rules.iter().map(|rule| rule.longest_lease).max() {
            None => Denied::SharedGpu { uid, gpu, policy },
            Some(longest) => Denied::LeaseTooLong {
                uid,
                gpu,
                length: lease.length,
                longest,
                policy,
            },
        }
    }

    /// The error if no rule allows this value of a knob; `None` if one does, or if there is no value.
    fn check_value<Q: Quantity + Display>(
        &self,
        knob: Knob,
        value: Option<Q>,
        allowed: impl Fn(&Rule) -> Allowed<Q>,
    ) -> Option<Denied> {
        let value = value?;
        let all: Vec<Allowed<Q>> = self.rules.iter().map(|rule| allowed(rule)).collect();
        if all.iter().any(|allowed| allowed.contains(value)) {
            return None;
        }
        let (uid, gpu, policy) = (self.uid, self.gpu.clone(), self.policy.clone());
        Some(match all.iter().all(Allowed::is_nothing) {
            true => Denied::Knob {
                uid,
                gpu,
                knob,
                policy,
            },
            false => Denied::Value {
                uid,
                gpu,
                knob,
                value: value.to_string(),
                allowed: union_text(all.into_iter()),
                policy,
            },
        })
    }
}

/// Prints settings, such as `power cap 200 W and core clock 900 MHz`.
fn values_text(settings: &Settings) -> String {
    let cap = settings.power_cap.map(|cap| cap.to_string());
    let core = settings.core_clock.map(|clock| clock.to_string());
    let memory = settings.memory_clock.map(|clock| clock.to_string());
    let values = [
        (Knob::PowerCap, cap),
        (Knob::CoreClock, core),
        (Knob::MemoryClock, memory),
    ];
    let texts = values
        .into_iter()
        .filter_map(|(knob, value)| Some(format!("{knob} {}", value?)));
    texts.collect::<Vec<_>>().join(" and ")
}
