//! Devices leased from a guard for as long as commands work with them.

use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_device::{AppliedKnob, Descriptor, DeviceId, Knob, Settings};
use sweetspot_guard::{Guard, GuardError, Journal, RestoreError, adopt_orphans};
use sweetspot_quantity::Watts;

use crate::WorkloadError;
use crate::process::end_descendants;
use crate::signals::SignalSource;

/// Makes the program that serves as guard.
pub type GuardProgram<'a> = &'a dyn Fn() -> Command;

/// The exclusive right to set some devices. A signal reaches the guard at once, which puts everything back
/// before anything else.
pub struct Lease<'a> {
    guard: Guard,
    program: GuardProgram<'a>,
    folder: PathBuf,
    devices: Vec<DeviceState>,
    signals: SignalSource,
}

/// What this lease has set on a device.
#[derive(Clone, Debug)]
struct DeviceState {
    id: DeviceId,
    /// Knobs that may be set since the device was last put back.
    knobs: Vec<Knob>,
    /// The cap that is set, where one is.
    cap: Option<Watts>,
}

impl DeviceState {
    fn new(id: DeviceId) -> Self {
        Self {
            id,
            knobs: Vec::new(),
            cap: None,
        }
    }
}

/// A power cap that is no longer what this lease set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{device}: the cap is {found}, and {set} was set: somebody else changed it")]
pub struct ChangedCap {
    /// The device.
    pub device: DeviceId,
    /// The cap that was set.
    pub set: Watts,
    /// The cap that is there.
    pub found: Watts,
}

impl<'a> Lease<'a> {
    /// Starts a guard, with its journals in `folder`, and takes the devices. `note` takes how they were
    /// found.
    pub fn take(
        devices: &[Descriptor],
        folder: &Path,
        program: GuardProgram<'a>,
        signals: &SignalSource,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, WorkloadError> {
        Journal::open(folder)?;
        // Should the guard be killed, what it ran becomes this process's to end.
        adopt_orphans();
        let guard = Guard::start(program(), folder)?;
        signals.on_signal(Box::new(guard.interrupter()));
        let states = devices
            .iter()
            .map(|device| DeviceState::new(device.id.clone()));
        let mut lease = Self {
            guard,
            program,
            folder: folder.to_owned(),
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

    /// The signal that came, if one did; everything is put back then.
    pub fn interrupted(&self) -> Option<i32> {
        self.signals.received()
    }

    /// Brings a device to these settings, which are its whole state: what was set before and is not named now
    /// is put back. A cap that is there already needs no right to set it. Returns the cap where the device
    /// enforces less than was asked for.
    pub fn set(
        &mut self,
        device: &DeviceId,
        settings: &Settings,
    ) -> Result<Option<AppliedKnob<Watts>>, GuardError> {
        let wanted = settings.knobs();
        let is_freed = |state: &DeviceState| state.knobs.iter().any(|knob| !wanted.contains(knob));
        if self.state(device).is_some_and(|state| is_freed(state)) {
            self.restore(device)?;
        }
        if let Some(state) = self.state(device) {
            state.cap = None;
            state.knobs.clone_from(&wanted);
        }
        tracing::debug!(%device, ?settings, "settings asked for");
        let applied = self.guard.apply(device, settings)?;
        if let Some(state) = self.state(device) {
            state.cap = settings.power_cap;
        }
        Ok(applied.power_cap.filter(|cap| cap.shortfall.is_some()))
    }

    /// Brings a device back to what was set before the lease, and keeps the lease.
    pub fn restore(&mut self, device: &DeviceId) -> Result<(), GuardError> {
        tracing::debug!(%device, "device put back");
        self.guard.restore(device)?;
        if let Some(state) = self.state(device) {
            *state = DeviceState::new(device.clone());
        }
        Ok(())
    }

    /// Says whether the cap that this lease set on a device is no longer there. The guard looks, which has to
    /// answer in time whatever the driver does.
    pub fn changed_by_others(
        &mut self,
        device: &DeviceId,
    ) -> Result<Option<ChangedCap>, GuardError> {
        let Some(set) = self.state(device).and_then(|state| state.cap) else {
            return Ok(None);
        };
        let found = self.guard.settings(device)?.power_cap;
        Ok(found.filter(|found| *found != set).map(|found| ChangedCap {
            device: device.clone(),
            set,
            found,
        }))
    }

    /// Ends what still runs of the last command.
    pub fn end_workload(&mut self) -> Result<(), WorkloadError> {
        crate::process::end_guarded(&mut self.guard)
    }

    fn ids(&self) -> Vec<DeviceId> {
        self.devices.iter().map(|state| state.id.clone()).collect()
    }

    fn state(&mut self, device: &DeviceId) -> Option<&mut DeviceState> {
        self.devices.iter_mut().find(|state| state.id == *device)
    }

    pub(crate) fn guard(&mut self) -> &mut Guard {
        &mut self.guard
    }

    /// Puts every device back and gives up the lease; says whether every device is as before. What a command
    /// left running goes on, unless a signal came.
    pub fn release(self, note: &mut dyn FnMut(&str)) -> Result<bool, WorkloadError> {
        let signal = self.interrupted();
        let devices = self.ids();
        let released = match self.guard.release(signal.is_some()) {
            // Killed: what it ran is ended, and another guard puts back what it left.
            Err(GuardError::Gone(why)) => {
                tracing::warn!(why, "the guard ended unexpectedly: starting another");
                end_descendants();
                replace_guard(self.program, &self.folder, devices, note)
            }
            released => released,
        };
        self.signals.report_no_more();
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

/// Has another guard put back what one that is gone left changed.
fn replace_guard(
    program: GuardProgram<'_>,
    folder: &Path,
    devices: Vec<DeviceId>,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<RestoreError>, GuardError> {
    // Without another guard the devices stay as the first one left them.
    let guard = Guard::start(program(), folder);
    let mut guard = guard.map_err(|error| GuardError::Gone(error.to_string()))?;
    for found in guard.lease(devices)? {
        note(&found.to_string());
    }
    guard.release(false)
}

impl WorkloadError {
    /// What to say of a guard that is gone, once it is known that another has put everything back.
    pub fn after_release(self, restored: &Result<bool, Self>) -> Self {
        match self {
            Self::Guard(GuardError::Gone(why)) if matches!(restored, Ok(true)) => {
                Self::Guard(GuardError::Replaced(why))
            }
            other => other,
        }
    }
}
