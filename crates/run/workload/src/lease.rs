//! Leases devices from a guard process for as long as commands use them.

use std::process::Command;

use sweetspot_device::{AppliedKnob, Descriptor, DeviceId, Knob, Settings, Shortfall, is_same_cap};
use sweetspot_guard::{
    Guard, GuardError, LeaseKind, Refusal, RestoreError, RestoreOutcome, adopt_orphans,
};
use sweetspot_quantity::Watts;

use crate::WorkloadError;
use crate::process::end_descendants;
use crate::signals::SignalSource;

/// How the guard process is started.
#[derive(Clone, Copy)]
pub struct GuardProgram<'a> {
    /// Creates the command that starts the guard process.
    pub command: &'a dyn Fn() -> Result<Command, WorkloadError>,
    /// Whether the guard asks a process of root to change settings, which may refuse even a lease.
    pub asks_root: bool,
}

/// The exclusive right to change the settings of some devices. If a signal arrives, the guard process first restores
/// all devices.
pub struct Lease<'a> {
    guard: Guard,
    program: GuardProgram<'a>,
    devices: Vec<DeviceState>,
    signals: SignalSource,
}

/// The settings of a device that this lease has changed.
#[derive(Clone, Debug)]
struct DeviceState {
    id: DeviceId,
    /// The knobs that may have been set since the device was last restored.
    knobs: Vec<Knob>,
    /// The power cap that this lease has set, if any.
    cap: Option<Watts>,
}

impl DeviceState {
    /// The state of a device on which nothing is set yet.
    fn new(id: DeviceId) -> Self {
        Self {
            id,
            knobs: Vec::new(),
            cap: None,
        }
    }
}

/// Why the settings of a lease are no longer in force.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LostSettings {
    /// Another program changed the power cap.
    #[error("{device}: another program changed the power cap from {set} to {found}")]
    CapChanged {
        /// The device whose cap was changed.
        device: DeviceId,
        /// The cap that this lease had set.
        set: Watts,
        /// The cap that the device has now.
        found: Watts,
    },
    /// The service has ended the lease.
    #[error("{0}")]
    LeaseEnded(Refusal),
}

impl<'a> Lease<'a> {
    /// Starts a guard and leases the devices. `note` receives messages for the user, for example about settings that a
    /// dead guard had left changed.
    pub fn take(
        devices: &[Descriptor],
        program: GuardProgram<'a>,
        signals: &SignalSource,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, WorkloadError> {
        let command = (program.command)()?;
        // If the guard is killed, its command becomes a child of this process, which can then end it.
        adopt_orphans();
        // Nothing is changed yet, so a signal need not wait for a guard that does not start.
        let is_cancelled = || signals.received().is_some();
        let guard = Guard::start_unless(command, &is_cancelled).map_err(|error| {
            let signal = signals.received();
            signal.map_or(error.into(), WorkloadError::Interrupted)
        })?;
        signals.on_signal(Box::new(guard.interrupter()));
        let states = devices
            .iter()
            .map(|device| DeviceState::new(device.id.clone()));
        let mut lease = Self {
            guard,
            program,
            devices: states.collect(),
            signals: signals.clone(),
        };
        match lease.guard.lease(lease.ids()) {
            Ok(notes) => notes.iter().for_each(|found| note(&found.to_string())),
            Err(error) => {
                let signal = signals.received();
                lease.release(note)?;
                return Err(match signal {
                    Some(signal) => WorkloadError::Interrupted(signal),
                    None => error.into(),
                });
            }
        }
        tracing::info!(devices = ?lease.ids(), "devices leased");
        Ok(lease)
    }

    /// Starts a guard and leases each of the devices that it can, as a ceiling for the settings of others. Returns the
    /// refusals of the devices that it cannot lease.
    pub fn take_ceilings(
        devices: &[Descriptor],
        program: GuardProgram<'a>,
        signals: &SignalSource,
        note: &mut dyn FnMut(&str),
    ) -> Result<(Self, Vec<(DeviceId, Refusal)>), WorkloadError> {
        let mut lease = Self::take(&[], program, signals, note)?;
        let mut refused = Vec::new();
        for device in devices {
            match lease.try_ceiling(&device.id, note) {
                Ok(None | Some(Refusal::Interrupted)) => {}
                Ok(Some(refusal)) => refused.push((device.id.clone(), refusal)),
                Err(error) => {
                    lease.release(note)?;
                    return Err(error.into());
                }
            }
        }
        if let Some(signal) = lease.interrupted() {
            lease.release(note)?;
            return Err(WorkloadError::Interrupted(signal));
        }
        Ok((lease, refused))
    }

    /// Leases one more device as a ceiling; the refusal if that is not possible now.
    pub fn try_ceiling(
        &mut self,
        device: &DeviceId,
        note: &mut dyn FnMut(&str),
    ) -> Result<Option<Refusal>, GuardError> {
        match self.add_ceiling(device) {
            Ok(notes) => {
                notes.iter().for_each(|found| note(&found.to_string()));
                self.devices.push(DeviceState::new(device.clone()));
                Ok(None)
            }
            Err(GuardError::Refused(refusal)) => Ok(Some(refusal)),
            Err(error) => Err(error),
        }
    }

    /// Leases one more device as a ceiling, or for settings if the policy does not allow a ceiling.
    fn add_ceiling(&mut self, device: &DeviceId) -> Result<Vec<RestoreOutcome>, GuardError> {
        let devices = vec![device.clone()];
        match self.guard.lease_as(devices.clone(), LeaseKind::Ceiling) {
            Err(GuardError::Refused(Refusal::NotAllowed(_))) => self.guard.lease(devices),
            leased => leased,
        }
    }

    /// The number of the signal that has arrived, if any; the guard has then restored all devices.
    pub fn interrupted(&self) -> Option<i32> {
        self.signals.received()
    }

    /// Sets a device to exactly these settings; knobs that were set before and are not in `settings` are restored. No
    /// permission is needed for a cap that the device already has. Returns the enforced cap if the device enforces a
    /// lower one than requested.
    pub fn set(
        &mut self,
        device: &DeviceId,
        settings: &Settings,
    ) -> Result<Option<AppliedKnob<Watts>>, GuardError> {
        let wanted = settings.knobs();
        let has_other_knobs =
            |state: &DeviceState| state.knobs.iter().any(|knob| !wanted.contains(knob));
        if self
            .state(device)
            .is_some_and(|state| has_other_knobs(state))
        {
            self.restore(device)?;
        }
        if let Some(state) = self.state(device) {
            state.cap = None;
            state.knobs.clone_from(&wanted);
        }
        tracing::debug!(%device, ?settings, "asking the guard to apply settings");
        let applied = self.guard.apply(device, settings)?;
        if let Some(state) = self.state(device) {
            // Below a ceiling the device has the ceiling's cap.
            let is_capped = |cap: &&AppliedKnob<Watts>| cap.shortfall == Some(Shortfall::Ceiling);
            let ceiling = applied.power_cap.as_ref().filter(is_capped);
            state.cap = ceiling.map(|cap| cap.enforced).or(settings.power_cap);
        }
        Ok(applied.power_cap.filter(|cap| cap.shortfall.is_some()))
    }

    /// Restores a device's settings from before the lease; the lease continues.
    pub fn restore(&mut self, device: &DeviceId) -> Result<(), GuardError> {
        tracing::debug!(%device, "device restored");
        self.guard.restore(device)?;
        if let Some(state) = self.state(device) {
            *state = DeviceState::new(device.clone());
        }
        Ok(())
    }

    /// Checks whether what this lease set on a device is still in force: another program may have changed the cap, or the
    /// service may have ended the lease. The guard reads the cap, because the guard replies in time even if the driver
    /// blocks.
    pub fn lost_settings(&mut self, device: &DeviceId) -> Result<Option<LostSettings>, GuardError> {
        let state = self.state(device);
        let Some(state) = state.filter(|state| !state.knobs.is_empty()) else {
            return Ok(None);
        };
        let set = state.cap;
        let found = match self.guard.settings(device) {
            Err(GuardError::Refused(refusal @ Refusal::LeaseEnded { .. })) => {
                return Ok(Some(LostSettings::LeaseEnded(refusal)));
            }
            settings => settings?.power_cap,
        };
        let changed = set
            .zip(found)
            .filter(|(set, found)| !is_same_cap(*set, *found));
        Ok(changed.map(|(set, found)| LostSettings::CapChanged {
            device: device.clone(),
            set,
            found,
        }))
    }

    /// Ends the processes of the last command that are still running.
    pub fn end_workload(&mut self) -> Result<(), WorkloadError> {
        crate::process::end_guarded(&mut self.guard)
    }

    /// The identities of the leased devices.
    fn ids(&self) -> Vec<DeviceId> {
        self.devices.iter().map(|state| state.id.clone()).collect()
    }

    /// The settings that this lease has made on a device; `None` if the device is not leased.
    fn state(&mut self, device: &DeviceId) -> Option<&mut DeviceState> {
        self.devices.iter_mut().find(|state| state.id == *device)
    }

    /// The connection to the guard process.
    pub(crate) fn guard(&mut self) -> &mut Guard {
        &mut self.guard
    }

    /// Restores every device and ends the lease. Returns whether every device has its earlier settings again. Processes
    /// that a command has left running go on, unless a signal arrived.
    pub fn release(self, note: &mut dyn FnMut(&str)) -> Result<bool, WorkloadError> {
        let signal = self.interrupted();
        let devices = self.ids();
        let is_lost = |problems: &Vec<RestoreError>| {
            let mut problems = problems.iter();
            problems.any(|problem| matches!(problem, RestoreError::Service(_)))
        };
        let released = match self.guard.release(signal.is_some()) {
            // The process of root was killed: another one restores the devices.
            Ok(problems) if is_lost(&problems) => {
                replace_guard(self.program, devices, &self.signals, note).or(Ok(problems))
            }
            // If the guard was killed, its command is ended, and another guard restores the devices.
            Err(GuardError::Gone(reason)) => {
                tracing::warn!(reason, "the guard exited unexpectedly: starting another");
                end_descendants();
                replace_guard(self.program, devices, &self.signals, note)
            }
            released => released,
        };
        self.signals.stop_reports();
        tracing::info!(?released, "lease released");
        let problems: Vec<String> = match (signal, released) {
            (_, Ok(problems)) => problems.iter().map(RestoreError::to_string).collect(),
            (Some(_), Err(error)) => vec![error.to_string()],
            (None, Err(error)) => return Err(error.into()),
        };
        for problem in &problems {
            note(problem);
        }
        Ok(problems.is_empty())
    }
}

/// Starts another guard, which restores the devices whose settings a dead guard has left changed. A further signal ends
/// the wait for one that does not reply; the devices then stay changed, which the error says.
fn replace_guard(
    program: GuardProgram<'_>,
    devices: Vec<DeviceId>,
    signals: &SignalSource,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<RestoreError>, GuardError> {
    let gone = |reason: &dyn std::fmt::Display| GuardError::Gone(reason.to_string());
    let command = (program.command)().map_err(|error| gone(&error))?;
    let before = signals.after(0).len();
    let is_cancelled = || signals.after(0).len() > before;
    let guard = Guard::start_unless(command, &is_cancelled);
    let mut guard = guard.map_err(|error| gone(&error))?;
    signals.on_later_signal(Box::new(guard.canceller()));
    for found in guard.lease(devices)? {
        note(&found.to_string());
    }
    guard.release(false)
}

impl WorkloadError {
    /// If another guard has restored all devices, replaces the error about the dead guard by one that says
    /// so.
    pub fn after_release(self, restored: &Result<bool, Self>) -> Self {
        match self {
            Self::Guard(GuardError::Gone(reason)) if matches!(restored, Ok(true)) => {
                Self::Guard(GuardError::Replaced(reason))
            }
            other => other,
        }
    }
}
