//! Tells the user if the settings of a run are no longer in force.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use sweetspot_device::DeviceId;
use sweetspot_workload::{RunHandler, RunInProgress, WorkloadError, WorkloadEvent};

use crate::host::Gpu;
use crate::observer::Observer;

/// The time between two checks of the settings.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Checks the settings while a command runs: another program may change them, or the service may end the lease.
pub(crate) struct SettingsWatch<'a, 'o> {
    devices: Vec<DeviceId>,
    observer: &'a RefCell<&'o mut dyn Observer>,
    next_check: Instant,
}

impl<'a, 'o> SettingsWatch<'a, 'o> {
    /// Watches the settings of these devices.
    pub fn new<'g>(
        devices: impl IntoIterator<Item = &'g Gpu>,
        observer: &'a RefCell<&'o mut dyn Observer>,
    ) -> Self {
        let devices = devices.into_iter();
        let ids = devices.map(|device| device.descriptor().id.clone());
        Self {
            devices: ids.collect(),
            observer,
            next_check: Instant::now() + CHECK_INTERVAL,
        }
    }
}

impl RunHandler for SettingsWatch<'_, '_> {
    type Error = WorkloadError;

    fn poll(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        _: Vec<WorkloadEvent>,
    ) -> Result<(), WorkloadError> {
        if Instant::now() < self.next_check || run.interrupted().is_some() {
            return Ok(());
        }
        self.next_check = Instant::now() + CHECK_INTERVAL;
        let Some(lease) = run.lease() else {
            return Ok(());
        };
        let mut lost = Vec::new();
        for device in &self.devices {
            let found = lease.lost_settings(device)?;
            lost.extend(found.map(|lost| (device.clone(), lost)));
        }
        for (device, lost) in lost {
            self.observer.borrow_mut().note(&lost.to_string());
            // The user is told once.
            self.devices.retain(|one| *one != device);
        }
        Ok(())
    }
}
