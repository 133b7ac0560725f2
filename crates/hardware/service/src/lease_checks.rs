//! Checks whether leases are still allowed, and ends those that are not.

use std::time::Duration;

use sweetspot_device::{DeviceId, Knob, Settings};
use sweetspot_guard::{LeaseKind, LeaseSummary, Owner, Refusal};
use sweetspot_quantity::Megahertz;

use crate::caller::account_of;
use crate::gpus::{ServedGpu, account_name};
use crate::monitor_link::LeaseView;
use crate::policy::{Account, Denied, LeaseRequest, Right, SystemAccounts};
use crate::requests::{Asker, EndedLease, Service};

/// The most leases that are remembered after the service has ended them.
const MAX_ENDED_LEASES: usize = 256;

impl Service<'_> {
    /// Starts the measuring process again if it has ended, and tells it which leases there are.
    pub(crate) fn update_monitor(&mut self) {
        let views = self.lease_views();
        if let Some(monitor) = &mut self.monitor {
            monitor.check();
            monitor.publish(views);
            if let Some(reading) = self.processors.read() {
                monitor.publish_processors(reading);
            }
        }
    }

    /// The leases as everybody may see them.
    fn lease_views(&self) -> Vec<LeaseView> {
        let view = |lease: LeaseSummary| {
            let left = self
                .longest_lease(&lease)
                .map(|longest| longest.saturating_sub(lease.age));
            let (uid, owner) = (lease.owner.uid, lease.owner);
            LeaseView {
                device: lease.device,
                user: uid.map_or_else(|| "unknown".to_owned(), account_name),
                uid,
                pid: owner.pid,
                job: owner.job,
                kind: lease.kind,
                settings: lease.settings,
                age_s: lease.age.as_secs_f64(),
                left_s: left.map(|left| left.as_secs_f64()),
            }
        };
        self.leases.summaries().into_iter().map(view).collect()
    }

    /// The longest time for which the policy allows a lease; `None` if nothing limits it.
    fn longest_lease(&self, lease: &LeaseSummary) -> Option<Duration> {
        let policy = self.policy.as_ref()?;
        let account = account_of(&lease.owner)?;
        let gpu = self.find(&lease.device).ok()?;
        match lease.kind {
            LeaseKind::Ceiling => None,
            LeaseKind::Setting => policy.lease(&account, gpu.name()).ok()?.longest,
        }
    }

    /// Checks that a lease may still be used; if not, it ends. Returns the lease.
    pub(crate) fn check_now(
        &mut self,
        asker: &Asker,
        device: &DeviceId,
    ) -> Result<LeaseSummary, Refusal> {
        let mut leases = self.leases.summaries().into_iter();
        let is_it =
            |lease: &LeaseSummary| lease.device == *device && lease.owner.is_same(&asker.owner);
        let lease = leases.find(is_it);
        let lease = lease.ok_or_else(|| Refusal::NotLeased(device.clone()))?;
        let gpu = self.find(device)?;
        let (kind, settings) = (lease.kind, &lease.settings);
        let checked = self.check(&asker.owner, &asker.account, gpu, kind, settings, lease.age);
        checked.map_err(|reason| {
            let reason = self.end_lease(device, &asker.owner, &reason.to_string());
            let device = device.clone();
            Refusal::LeaseEnded { device, reason }
        })?;
        Ok(lease)
    }

    /// Checks whether the policy allows a user these settings on a GPU now, for a lease that has lasted this long. A
    /// ceiling is a power cap alone. It holds for whoever uses the GPU, and as long as the user has the right to it.
    pub(crate) fn check(
        &self,
        owner: &Owner,
        account: &Account,
        gpu: &ServedGpu,
        kind: LeaseKind,
        settings: &Settings,
        age: Duration,
    ) -> Result<(), Objection> {
        if owner.job.is_some() {
            return self.check_job(account, gpu, settings, age);
        }
        if kind == LeaseKind::Ceiling && settings.only(Knob::PowerCap) != *settings {
            return Err(Objection::NotACeiling);
        }
        let Some(policy) = &self.policy else {
            return Ok(());
        };
        if gpu.is_package() {
            // Everybody uses the processors: whoever has the right may slow all of them.
            let given = policy.right(account, gpu.name(), Right::ProcessorCap);
            return given.map_err(Objection::Policy);
        }
        if kind == LeaseKind::Ceiling {
            let given = policy.right(account, gpu.name(), Right::Ceiling);
            return given.map_err(Objection::Policy);
        }
        if let Some(default) = gpu
            .overclocked_memory(settings)
            .filter(|_| !account.is_root())
        {
            return Err(Objection::Overclocked(default));
        }
        let ask = |shared| {
            let lease = LeaseRequest {
                length: age,
                shared,
            };
            policy.settings(account, gpu.name(), settings, lease)
        };
        ask(false).map_err(Objection::Policy)?;
        // Where the policy allows to share the GPU, nobody needs to know who uses it.
        if ask(true).is_ok() {
            return Ok(());
        }
        let unshared = gpu.check_unshared(account.uid);
        unshared.map_err(Objection::Shared)
    }

    /// Checks whether the policy allows the user of a job these settings on a GPU that the scheduler has given to the job.
    /// They are a ceiling for the job, whatever rights its user has to ceilings, and clocks may be limited too. Nobody
    /// asks who uses the GPU: the scheduler has decided that.
    fn check_job(
        &self,
        account: &Account,
        gpu: &ServedGpu,
        settings: &Settings,
        age: Duration,
    ) -> Result<(), Objection> {
        let Some(policy) = &self.policy else {
            return Ok(());
        };
        if let Some(default) = gpu
            .overclocked_memory(settings)
            .filter(|_| !account.is_root())
        {
            return Err(Objection::Overclocked(default));
        }
        let lease = LeaseRequest {
            length: age,
            shared: false,
        };
        let allowed = policy.settings(account, gpu.name(), settings, lease);
        allowed.map_err(Objection::Policy)
    }

    /// The user of a job with all groups, which are looked up once: a directory of users may answer slowly.
    pub(crate) fn job_account(&mut self, uid: u32) -> Account {
        /// The most users that are remembered.
        const MAX_ACCOUNTS: usize = 1024;
        if self.job_accounts.len() >= MAX_ACCOUNTS {
            self.job_accounts.clear();
        }
        let look_up = || SystemAccounts.account_of_id(uid);
        self.job_accounts.entry(uid).or_insert_with(look_up).clone()
    }

    /// Checks whether the policy gives a user a right on a GPU.
    pub(crate) fn check_right(
        &self,
        account: &Account,
        gpu: &ServedGpu,
        right: Right,
    ) -> Result<(), Refusal> {
        let Some(policy) = &self.policy else {
            return Ok(());
        };
        let given = policy.right(account, gpu.name(), right);
        given.map_err(|denied| Refusal::NotAllowed(denied.to_string()))
    }

    /// Ends a lease and remembers why. Returns what its owner is told.
    fn end_lease(&mut self, device: &DeviceId, owner: &Owner, reason: &str) -> String {
        let problem = self.leases.release(device, owner).err();
        tracing::info!(%device, %owner, reason, "lease ended");
        let mut details = self.restored(device, problem.as_ref());
        details["reason"] = reason.into();
        self.audit.report("lease-ended", owner, details);
        let told = match problem {
            None => format!("{reason}; the previous settings are restored"),
            Some(problem) => format!("{reason}; {problem}"),
        };
        if self.ended.len() >= MAX_ENDED_LEASES {
            self.ended.remove(0);
        }
        self.ended.push(EndedLease {
            owner: owner.clone(),
            device: device.clone(),
            reason: told.clone(),
        });
        told
    }

    /// Ends leases that are over: their time has passed, another user's process uses the GPU, or the policy changed.
    pub fn check_leases(&mut self) {
        for lease in self.leases.summaries() {
            let account = match (&lease.owner.job, lease.owner.uid) {
                (Some(_), Some(uid)) => Some(self.job_account(uid)),
                _ => account_of(&lease.owner),
            };
            let gpu = self.find(&lease.device).ok();
            let checked = match (gpu, account) {
                (Some(_), None) => Ok(()),
                (Some(gpu), Some(account)) => {
                    let (kind, settings) = (lease.kind, &lease.settings);
                    let owner = &lease.owner;
                    let checked = self.check(owner, &account, gpu, kind, settings, lease.age);
                    checked.map_err(|reason| reason.to_string())
                }
                (None, _) => Err("the GPU is gone".to_owned()),
            };
            if let Err(reason) = checked {
                self.end_lease(&lease.device, &lease.owner, &reason);
            }
        }
    }
}

/// Why the policy does not allow settings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Objection {
    /// The policy never allows them.
    #[error(transparent)]
    Policy(Denied),
    /// The policy allows them on a GPU that nobody else uses.
    #[error("{0}")]
    Shared(String),
    /// The memory clock is above the default, which may damage results; only root may set it.
    #[error(
        "a memory clock above the default of {0} overclocks the GPU, which only root may do: use a lower one"
    )]
    Overclocked(Megahertz),
    /// A ceiling has other settings than a power cap.
    #[error("a ceiling is a power cap alone: lease the GPU for settings to lock its clocks")]
    NotACeiling,
}

impl Objection {
    /// The refusal of a request for this reason; `gpu` names the GPU.
    pub(crate) fn refusal(&self, gpu: &str) -> Refusal {
        Refusal::NotAllowed(match self {
            Self::Policy(denied) => denied.to_string(),
            Self::NotACeiling | Self::Overclocked(_) => self.to_string(),
            Self::Shared(reason) => format!(
                "{gpu} cannot be set: {reason}, and the policy does not allow that (its key shared-gpus would)"
            ),
        })
    }
}
