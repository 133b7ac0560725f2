//! Who writes device settings for a supervisor: the same process, or another one with more rights.

use sweetspot_device::{AppliedSettings, DeviceId, Settings};

use crate::entry::LeaseKind;
use crate::leases::{LeaseTerms, Leases};
use crate::owner::Owner;
use crate::refusal::{Refusal, RestoreError, RestoreOutcome};

/// Leases devices, applies settings and restores them.
pub trait SettingsWriter {
    /// Leases devices: all of them, or none. Settings that were left changed are restored first.
    fn lease(
        &mut self,
        devices: &[DeviceId],
        owner: &Owner,
    ) -> Result<Vec<RestoreOutcome>, Refusal>;

    /// Applies settings to a leased device.
    fn apply(&mut self, device: &DeviceId, settings: &Settings)
    -> Result<AppliedSettings, Refusal>;

    /// Reads the present settings of a leased device.
    fn settings(&mut self, device: &DeviceId) -> Result<Settings, Refusal>;

    /// Restores a device, which stays leased.
    fn restore(&mut self, device: &DeviceId) -> Result<(), Refusal>;

    /// Restores and releases all devices, and returns the errors.
    fn release_all(&mut self) -> Vec<RestoreError>;
}

/// Writes device settings in this process.
pub struct LocalWriter<'a> {
    leases: Leases<'a>,
    owner: Owner,
}

impl<'a> LocalWriter<'a> {
    /// Creates a writer that keeps its journal in these leases' folder.
    pub fn new(leases: Leases<'a>) -> Self {
        Self {
            leases,
            owner: Owner::current_process(),
        }
    }
}

impl SettingsWriter for LocalWriter<'_> {
    fn lease(
        &mut self,
        devices: &[DeviceId],
        owner: &Owner,
    ) -> Result<Vec<RestoreOutcome>, Refusal> {
        self.owner = owner.clone();
        let terms = LeaseTerms {
            owner: owner.clone(),
            kind: LeaseKind::Setting,
        };
        self.leases.lease(devices, &terms)
    }

    fn apply(
        &mut self,
        device: &DeviceId,
        settings: &Settings,
    ) -> Result<AppliedSettings, Refusal> {
        self.leases.apply(device, &self.owner, settings)
    }

    fn settings(&mut self, device: &DeviceId) -> Result<Settings, Refusal> {
        self.leases.settings(device, &self.owner)
    }

    fn restore(&mut self, device: &DeviceId) -> Result<(), Refusal> {
        self.leases.restore(device, &self.owner)
    }

    fn release_all(&mut self) -> Vec<RestoreError> {
        self.leases.release_all()
    }
}
