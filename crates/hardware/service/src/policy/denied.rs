//! Why a policy does not allow a request.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, Knob};

use super::rule::knob_key;
use super::values::length_text;
use super::{DEFAULT_GROUP, Gpu, PolicySource, Right};

/// The GPU of a request that was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedGpu {
    /// The GPU's index in the driver's list.
    pub index: u32,
    /// The GPU's UUID.
    pub id: DeviceId,
}

impl From<Gpu<'_>> for DeniedGpu {
    fn from(gpu: Gpu<'_>) -> Self {
        Self {
            index: gpu.index,
            id: gpu.id.clone(),
        }
    }
}

impl std::fmt::Display for DeniedGpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GPU {}", self.index)
    }
}

/// Why a policy does not allow a request. The service sends this to its client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Denied {
    /// No rule applies to the user.
    #[error("{}", no_rule_text(*.uid, .policy))]
    NoRuleForUser {
        /// The id of the user.
        uid: u32,
        /// The policy that decided.
        policy: PolicySource,
    },
    /// Rules apply to the user, but none allows a setting of this GPU.
    #[error(
        "user {uid} may not change settings of {gpu}: no rule in {policy} that applies to the user allows it"
    )]
    NoRuleForGpu {
        /// The id of the user.
        uid: u32,
        /// The GPU whose settings were to be changed.
        gpu: DeniedGpu,
        /// The policy that decided.
        policy: PolicySource,
    },
    /// No rule allows the user to set this knob of the GPU.
    #[error(
        "user {uid} may not set the {knob} of {gpu}: no rule in {policy} that applies to the user has the key `{}`",
        knob_key(*.knob)
    )]
    Knob {
        /// The id of the user.
        uid: u32,
        /// The GPU whose settings were to be changed.
        gpu: DeniedGpu,
        /// The knob that was to be set.
        knob: Knob,
        /// The policy that decided.
        policy: PolicySource,
    },
    /// No rule allows this value of a knob.
    #[error("user {uid} may not set the {knob} of {gpu} to {value}: {policy} allows {allowed}")]
    Value {
        /// The id of the user.
        uid: u32,
        /// The GPU whose settings were to be changed.
        gpu: DeniedGpu,
        /// The knob that was to be set.
        knob: Knob,
        /// The requested value, such as `300 W`.
        value: String,
        /// The values that would be allowed, such as `150 W to 250 W`.
        allowed: String,
        /// The policy that decided.
        policy: PolicySource,
    },
    /// Each value is allowed by a rule, but no rule allows them all.
    #[error(
        "user {uid} may not set {values} of {gpu} at the same time: each is allowed, but no single rule in {policy} allows them together"
    )]
    Combination {
        /// The id of the user.
        uid: u32,
        /// The GPU whose settings were to be changed.
        gpu: DeniedGpu,
        /// The requested values, such as `power cap 200 W and core clock 900 MHz`.
        values: String,
        /// The policy that decided.
        policy: PolicySource,
    },
    /// Another user's process runs on the GPU.
    #[error(
        "user {uid} may not change these settings of {gpu} while another user's process runs on it: wait for that process to end, or for a rule with `shared-gpus = true` in {}",
        .policy.file()
    )]
    SharedGpu {
        /// The id of the user.
        uid: u32,
        /// The GPU on which another user's process runs.
        gpu: DeniedGpu,
        /// The policy that decided.
        policy: PolicySource,
    },
    /// The lease is longer than the rules that allow its settings permit.
    #[error(
        "user {uid} may not change these settings of {gpu} for {}: {policy} allows {} at most",
        length_text(*.length),
        length_text(*.longest)
    )]
    LeaseTooLong {
        /// The id of the user.
        uid: u32,
        /// The GPU that was to be leased.
        gpu: DeniedGpu,
        /// The requested length of the lease.
        length: Duration,
        /// The longest lease that would be allowed.
        longest: Duration,
        /// The policy that decided.
        policy: PolicySource,
    },
    /// No rule gives the user this right.
    #[error(
        "user {uid} may not set the {right}{}: no rule in {policy} that applies to the user has `{} = true`",
        .gpu.as_ref().map(|gpu| format!(" of {gpu}")).unwrap_or_default(),
        .right.key()
    )]
    Right {
        /// The id of the user.
        uid: u32,
        /// The GPU that the request was about; `None` for a right that does not depend on the GPU.
        gpu: Option<DeniedGpu>,
        /// The missing right.
        right: Right,
        /// The policy that decided.
        policy: PolicySource,
    },
}

/// The message for a user to whom no rule applies.
fn no_rule_text(uid: u32, policy: &PolicySource) -> String {
    let denied = format!("user {uid} may not change GPU settings");
    match policy {
        PolicySource::File { file } => {
            format!(
                "{denied}: no rule in {file} applies to this user; an administrator can add one"
            )
        }
        PolicySource::Default { file, group_exists } => {
            let create = match group_exists {
                true => String::new(),
                false => {
                    format!("create the group with `sudo groupadd --system {DEFAULT_GROUP}`, then ")
                }
            };
            format!(
                "{denied}: without {file} only members of the group {DEFAULT_GROUP} may; {create}add the user with \
                 `sudo usermod -aG {DEFAULT_GROUP} USER` and log in again"
            )
        }
    }
}
