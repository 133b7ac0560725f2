//! Decides about requests: who may do it, whether it may be done now, and what is logged.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::json;
use sweetspot_device::{AppliedSettings, DeviceId, Knob, Settings};
use sweetspot_guard::{
    LeaseKind, LeaseTerms, Leases, Owner, Refusal, RestoreOutcome, Resumed, SettingsReply,
    SettingsRequest,
};

use crate::audit::Audit;
use crate::gpus::ServedGpu;
use crate::monitor::Monitor;
use crate::policy::{Account, Policy, Right};
use crate::processor_energy::ProcessorCounters;
use crate::zeus_backend::StreamedPower;

/// A lease that the service has ended, to tell its owner why.
#[derive(Debug)]
pub(crate) struct EndedLease {
    pub owner: Owner,
    pub device: DeviceId,
    pub reason: String,
}

/// Who asks: the account for the policy, and the owner of the leases.
#[derive(Clone, Debug)]
pub struct Asker {
    /// The user and groups of the calling process.
    pub account: Account,
    /// The calling process, or the scheduler's job for which root asks.
    pub owner: Owner,
}

/// Leases, policy, GPUs and log: everything but the connections.
pub struct Service<'a> {
    pub(crate) leases: Leases<'a>,
    /// The GPUs that can be leased and read.
    pub gpus: Vec<ServedGpu>,
    /// The processor packages whose power cap can be leased.
    pub(crate) packages: Vec<ServedGpu>,
    /// What users may do; `None` if the only client may do everything.
    pub(crate) policy: Option<Policy>,
    pub(crate) audit: Audit,
    pub(crate) ended: Vec<EndedLease>,
    pub(crate) streamed: Vec<StreamedPower>,
    /// The users of jobs, by their ids.
    pub(crate) job_accounts: HashMap<u32, Account>,
    /// The measuring process; `None` if there is none.
    pub monitor: Option<Monitor>,
    /// The energy counters of the processors, which are read for the measuring process.
    pub(crate) processors: ProcessorCounters,
}

impl<'a> Service<'a> {
    /// Creates a service without leases.
    pub fn new(
        leases: Leases<'a>,
        gpus: Vec<ServedGpu>,
        policy: Option<Policy>,
        audit: Audit,
    ) -> Self {
        Self {
            leases,
            gpus,
            packages: Vec::new(),
            policy,
            audit,
            ended: Vec::new(),
            streamed: Vec::new(),
            job_accounts: HashMap::new(),
            monitor: None,
            processors: ProcessorCounters::default(),
        }
    }

    /// Returns the service with these processor packages beside the GPUs.
    pub fn serving_packages(mut self, packages: Vec<ServedGpu>) -> Self {
        self.packages = packages;
        self
    }

    /// Finds a GPU or a processor package by its identity.
    pub(crate) fn find(&self, id: &DeviceId) -> Result<&ServedGpu, Refusal> {
        let mut devices = self.gpus.iter().chain(&self.packages);
        let found = devices.find(|device| device.id() == id);
        found.ok_or_else(|| Refusal::Invalid(format!("there is no GPU {id}")))
    }

    /// Takes up the leases of living owners that an earlier service had given, and restores all other devices that were
    /// left changed.
    pub fn resume(&mut self) {
        let known = self.leases.summaries().into_iter();
        let known: Vec<_> = known.map(|lease| (lease.device, lease.owner)).collect();
        match self.leases.resume() {
            Ok(outcomes) => {
                for Resumed { device, outcome } in outcomes {
                    let details = match &outcome {
                        Ok(restored) => json!({"device": device, "outcome": restored.to_string()}),
                        Err(problem) => json!({"device": device, "problem": problem.to_string()}),
                    };
                    tracing::info!(%details, "settings that were left changed");
                    let owner = Owner::current_process();
                    self.audit.report("restored-left-changed", &owner, details);
                }
            }
            Err(error) => tracing::error!(%error, "cannot read the journal"),
        }
        for lease in self.leases.summaries() {
            let is_old = known
                .iter()
                .any(|(device, owner)| *device == lease.device && lease.owner.is_same(owner));
            if !is_old {
                let details = json!({"device": lease.device, "settings": lease.settings});
                self.audit.report("lease-resumed", &lease.owner, details);
            }
        }
    }

    /// Carries out a request that came as a line of JSON.
    pub fn answer(&mut self, asker: &Asker, request: SettingsRequest) -> SettingsReply {
        let name = request_name(&request);
        let result = match request {
            // The connection has dealt with the greeting already.
            SettingsRequest::Hello { .. } | SettingsRequest::Ping => Ok(SettingsReply::Pong),
            SettingsRequest::Lease { devices, kind } => self
                .lease(asker, &devices, kind)
                .map(|notes| SettingsReply::Leased { notes }),
            SettingsRequest::Apply { device, settings } => self
                .apply(asker, &device, &settings)
                .map(SettingsReply::Applied),
            SettingsRequest::Restore { device } => self
                .restore(asker, &device)
                .map(|()| SettingsReply::Restored),
            SettingsRequest::Settings { device } => {
                self.settings(asker, &device).map(SettingsReply::Settings)
            }
            SettingsRequest::Release => Ok(SettingsReply::Released {
                problems: self.release(&asker.owner, "released"),
            }),
        };
        result.unwrap_or_else(|refusal| {
            self.log_refusal(&asker.owner, name, &refusal);
            SettingsReply::Refused(refusal)
        })
    }

    /// Logs a refused request.
    pub fn log_refusal(&mut self, owner: &Owner, request: &str, refusal: &Refusal) {
        tracing::info!(%owner, request, %refusal, "refused");
        let reason = refusal.to_string();
        self.audit.refusal(owner, request, &reason, Instant::now());
    }

    /// Whether a rule of the policy applies to a user.
    pub fn has_rules_for(&self, account: &Account) -> bool {
        let policy = self.policy.as_ref();
        policy.is_none_or(|policy| policy.applies_to(account))
    }

    /// Whether the measuring process may tell a user the energy of the processors.
    pub fn may_read_processors(&self, account: &Account) -> bool {
        let policy = self.policy.as_ref();
        policy.is_none_or(|policy| policy.may_read_processors(account))
    }

    /// Leases devices for a process or job, if the policy allows it and nobody else uses them.
    pub fn lease(
        &mut self,
        asker: &Asker,
        devices: &[DeviceId],
        kind: LeaseKind,
    ) -> Result<Vec<RestoreOutcome>, Refusal> {
        if devices.is_empty() {
            return Err(Refusal::Invalid("the lease names no device".to_owned()));
        }
        // A child may still have the connection of its parent, whose id another process may have by now.
        if !asker.owner.is_alive() {
            let text = "the process that opened the connection has ended";
            return Err(Refusal::NotAllowed(text.to_owned()));
        }
        let mut checked: Vec<DeviceId> = Vec::new();
        for id in devices {
            let gpu = self.find(id)?;
            // The check asks the driver, so a GPU that a request names a thousand times is checked once.
            if checked.contains(id) {
                continue;
            }
            checked.push(id.clone());
            let name = gpu.title();
            let nothing = Settings::default();
            self.check(
                &asker.owner,
                &asker.account,
                gpu,
                kind,
                &nothing,
                Duration::ZERO,
            )
            .map_err(|reason| reason.refusal(&name))?;
        }
        let devices = &checked[..];
        let terms = LeaseTerms {
            owner: asker.owner.clone(),
            kind,
        };
        let notes = self.leases.lease(devices, &terms)?;
        self.ended.retain(|ended| {
            !(ended.owner.is_same(&asker.owner) && devices.contains(&ended.device))
        });
        let mut details = json!({"devices": devices, "kind": kind});
        if !notes.is_empty() {
            // Settings that an earlier process left changed were restored first.
            let shown: Vec<String> = notes.iter().map(RestoreOutcome::to_string).collect();
            details["restored_first"] = shown.into();
        }
        self.audit.report("lease", &asker.owner, details);
        Ok(notes)
    }

    /// Applies settings to a leased device, if the policy allows these values and nobody else uses the device now.
    pub fn apply(
        &mut self,
        asker: &Asker,
        device: &DeviceId,
        settings: &Settings,
    ) -> Result<AppliedSettings, Refusal> {
        let before = self.settings(asker, device)?;
        let lease = self.check_now(asker, device)?;
        let gpu = self.find(device)?;
        let name = gpu.title();
        let in_force = lease.settings.with(settings);
        self.check(
            &asker.owner,
            &asker.account,
            gpu,
            lease.kind,
            &in_force,
            lease.age,
        )
        .map_err(|reason| reason.refusal(&name))?;
        self.log_write(
            asker,
            "apply",
            json!({"device": device, "before": before, "settings": settings}),
        )?;
        let applied = self.leases.apply(device, &asker.owner, settings);
        let after = match &applied {
            Ok(applied) => json!({"device": device, "after": applied}),
            Err(refusal) => json!({"device": device, "problem": refusal.to_string()}),
        };
        self.audit.report("applied", &asker.owner, after);
        applied
    }

    /// Changes the persistence mode of a leased device, if the policy allows it.
    pub fn set_persistence(
        &mut self,
        asker: &Asker,
        device: &DeviceId,
        on: bool,
    ) -> Result<(), Refusal> {
        self.settings(asker, device)?;
        self.check_now(asker, device)?;
        let gpu = self.find(device)?;
        let before = gpu.device.persistence();
        if before == Some(on) {
            return Ok(());
        }
        self.check_right(&asker.account, gpu, Right::Persistence)?;
        self.log_write(
            asker,
            "persistence",
            json!({"device": device, "before": before, "after": on}),
        )?;
        let set = self.leases.set_persistence(device, &asker.owner, on);
        let after = match &set {
            Ok(()) => json!({"device": device, "persistence": on}),
            Err(refusal) => json!({"device": device, "problem": refusal.to_string()}),
        };
        self.audit.report("applied", &asker.owner, after);
        set
    }

    /// Writes a line about a change before it is made. Without the line there is no change.
    fn log_write(
        &self,
        asker: &Asker,
        event: &str,
        details: serde_json::Value,
    ) -> Result<(), Refusal> {
        let logged = self.audit.record(event, &asker.owner, details);
        logged.map_err(|error| {
            Refusal::NotAllowed(format!(
                "the audit log cannot be written, so nothing is changed: {error}"
            ))
        })
    }

    /// Takes back what a lease has set; the lease continues.
    pub fn restore(&mut self, asker: &Asker, device: &DeviceId) -> Result<(), Refusal> {
        self.settings(asker, device)?;
        let restored = self.leases.restore(device, &asker.owner);
        let details = self.restored(device, restored.as_ref().err());
        self.audit.report("restored", &asker.owner, details);
        restored
    }

    /// What the log says about a device that was restored.
    pub(crate) fn restored(
        &mut self,
        device: &DeviceId,
        problem: Option<&impl std::fmt::Display>,
    ) -> serde_json::Value {
        let mut devices = self.gpus.iter_mut().chain(&mut self.packages);
        let gpu = devices.find(|gpu| gpu.id() == device);
        let after = gpu.and_then(|gpu| gpu.device.settings().ok());
        match problem {
            None => json!({"device": device, "after": after}),
            Some(problem) => {
                json!({"device": device, "after": after, "problem": problem.to_string()})
            }
        }
    }

    /// Unlocks a clock that the asker has locked; a lock of somebody else stays.
    pub fn unlock_clock(
        &mut self,
        asker: &Asker,
        device: &DeviceId,
        clock: Knob,
    ) -> Result<(), Refusal> {
        match self.leases.restore_knob(device, &asker.owner, clock) {
            Err(Refusal::NotLeased(_)) => Ok(()),
            unlocked => {
                let mut details = self.restored(device, unlocked.as_ref().err());
                details["knob"] = json!(clock);
                self.audit.report("restored", &asker.owner, details);
                unlocked
            }
        }
    }

    /// Reads the present settings of a device that the asker has leased.
    pub fn settings(&mut self, asker: &Asker, device: &DeviceId) -> Result<Settings, Refusal> {
        let found = self.leases.settings(device, &asker.owner);
        found.map_err(|refusal| {
            let is_it =
                |ended: &&EndedLease| ended.device == *device && ended.owner.is_same(&asker.owner);
            match (refusal, self.ended.iter().find(is_it)) {
                (Refusal::NotLeased(device), Some(ended)) => Refusal::LeaseEnded {
                    device,
                    reason: ended.reason.clone(),
                },
                (refusal, _) => refusal,
            }
        })
    }
}

/// The name of a request in the log.
fn request_name(request: &SettingsRequest) -> &'static str {
    match request {
        SettingsRequest::Hello { .. } => "hello",
        SettingsRequest::Lease { .. } => "lease",
        SettingsRequest::Apply { .. } => "apply",
        SettingsRequest::Restore { .. } => "restore",
        SettingsRequest::Settings { .. } => "settings",
        SettingsRequest::Release => "release",
        SettingsRequest::Ping => "ping",
    }
}
