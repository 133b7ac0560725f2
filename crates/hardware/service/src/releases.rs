//! Ends leases: of an owner, of one device, or all of them.

use serde_json::json;
use sweetspot_device::DeviceId;
use sweetspot_guard::{Owner, RestoreError};

use crate::requests::Service;

impl Service<'_> {
    /// Ends all leases of an owner, because it asked for that or has ended.
    pub fn release(&mut self, owner: &Owner, event: &str) -> Vec<RestoreError> {
        let leases = self.leases.summaries().into_iter();
        let leases = leases.filter(|lease| lease.owner.is_same(owner));
        let devices: Vec<DeviceId> = leases.map(|lease| lease.device).collect();
        let problems = self.leases.release_owner(owner);
        self.ended.retain(|ended| !ended.owner.is_same(owner));
        if !devices.is_empty() {
            let none: Option<&RestoreError> = None;
            let restored = devices.iter().map(|device| self.restored(device, none));
            let restored: Vec<serde_json::Value> = restored.collect();
            let shown: Vec<String> = problems.iter().map(RestoreError::to_string).collect();
            let details = json!({"devices": restored, "problems": shown});
            self.audit.report(event, owner, details);
        }
        problems
    }

    /// Ends one lease of an owner, because the change that it was taken for was refused.
    pub fn release_device(&mut self, owner: &Owner, device: &DeviceId) {
        let problem = self.leases.release(device, owner).err();
        let problem = problem.map(|problem| problem.to_string());
        let details = json!({"device": device, "problem": problem});
        self.audit.report("released", owner, details);
    }

    /// Ends all leases, because the service stops.
    pub fn release_all(&mut self) {
        for owner in self.owners() {
            self.release(&owner, "service-stopped");
        }
    }

    /// The owners of leases, each once.
    pub fn owners(&self) -> Vec<Owner> {
        let mut owners: Vec<Owner> = Vec::new();
        for lease in self.leases.summaries() {
            if !owners.iter().any(|owner| owner.is_same(&lease.owner)) {
                owners.push(lease.owner);
            }
        }
        owners
    }
}
