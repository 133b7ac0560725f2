//! The policy: who may change which settings of which GPUs.
//!
//! A policy is a list of rules, read from [`POLICY_FILE`]. Without the file the default policy holds: members of the
//! group [`DEFAULT_GROUP`] may set power caps and clocks. A request is allowed if one rule allows all of it: the user,
//! the GPU, every value, the length of the lease, and that another user's process runs on the GPU. Root may do
//! everything.
//!
//! Promises: nothing is allowed that no rule allows; a file with any mistake is refused as a whole, with the line of
//! the mistake; a decision looks up no name and opens no file. Left to others: which user asks, whether a device
//! supports a value, whether other users' processes run on a GPU.

mod account;
mod decide;
mod denied;
mod error;
mod explain;
mod file;
mod keys;
mod load;
mod rule;
mod rule_keys;
mod slurm;
mod source;
mod values;

pub use account::{Account, Accounts, SystemAccounts};
pub use decide::{LeaseRequest, LeaseTerms};
pub use denied::{Denied, DeniedGpu};
pub use error::PolicyError;
pub use explain::explain;
pub use keys::{PolicyKey, RULE_KEYS, SLURM_KEYS};
pub use rule::{Gpu, Right};
pub use slurm::{JOBS_FOLDER, SlurmPolicy};
pub use source::PolicySource;

use std::time::Duration;

use rule::Rule;

/// The file with the policy of this machine.
pub const POLICY_FILE: &str = "/etc/sweetspot/policy.toml";

/// The group whose members may set power caps and clocks if there is no policy file.
pub const DEFAULT_GROUP: &str = "sweetspot";

/// The longest lease that a policy can allow, and the longest one of a rule that gives none.
pub const MAX_LEASE: Duration = Duration::from_secs(24 * 3600);

/// The rules by which the service decides what a user may change.
#[derive(Clone, Debug)]
pub struct Policy {
    source: PolicySource,
    rules: Vec<Rule>,
    slurm: SlurmPolicy,
}

impl Policy {
    /// The default policy, which holds if `file` does not exist. If the group [`DEFAULT_GROUP`] does not exist either,
    /// only root may change settings.
    pub fn default_policy(file: &str, accounts: &dyn Accounts) -> Self {
        let group = accounts.group_id(DEFAULT_GROUP);
        Self {
            source: PolicySource::Default {
                file: file.to_owned(),
                group_exists: group.is_some(),
            },
            rules: vec![Rule::for_default_group(group)],
            slurm: SlurmPolicy::default(),
        }
    }

    /// Reads a policy from the text of a file; `name` is the file's name in messages.
    pub fn from_text(text: &str, name: &str, accounts: &dyn Accounts) -> Result<Self, PolicyError> {
        let (rules, slurm) = file::read_policy(name, text, accounts)?;
        Ok(Self {
            source: PolicySource::File {
                file: name.to_owned(),
            },
            rules,
            slurm,
        })
    }

    /// What happens to jobs of Slurm.
    pub const fn slurm(&self) -> &SlurmPolicy {
        &self.slurm
    }

    /// Where the policy comes from: a file, or built in.
    pub const fn source(&self) -> &PolicySource {
        &self.source
    }
}
