//! The leases of devices: writes what they ask for, after it is in the journal, and restores devices when leases end.

mod write;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use sweetspot_device::{AppliedSettings, ControllableDevice, DeviceId, Knob, Settings};

use crate::entry::{Entry, LeaseKind, LeaseRecord};
use crate::journal::{Claim, Journal, JournalError};
use crate::owner::Owner;
use crate::refusal::{Refusal, RestoreError, RestoreOutcome};
use crate::restore::restore_leftover;
use crate::server::OpenDevice;
use write::{apply_knob, settle};

/// A leased device, with its journal entry and its lock.
struct LeasedDevice {
    device: Box<dyn ControllableDevice>,
    entry: Entry,
    claim: Claim,
}

/// The leases that this process has given.
///
/// A device may have two leases: a ceiling, and below it a setting. The lower value applies. When one of them ends, the
/// other's value returns, and after the last one the settings from before the first.
pub struct Leases<'a> {
    journal: Journal,
    open: Box<OpenDevice<'a>>,
    devices: Vec<LeasedDevice>,
}

/// A request for a lease.
#[derive(Clone, Debug)]
pub struct LeaseTerms {
    /// Who leases the devices.
    pub owner: Owner,
    /// What the lease is for.
    pub kind: LeaseKind,
}

/// A device that an earlier process left changed, and what came of restoring it.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// The device; `None` if its journal cannot be read.
    pub device: Option<DeviceId>,
    /// What was restored, or why it was not.
    pub outcome: Result<RestoreOutcome, RestoreError>,
}

/// A lease that exists, for reports and checks.
#[derive(Clone, Debug)]
pub struct LeaseSummary {
    /// The leased device.
    pub device: DeviceId,
    /// Who has leased the device.
    pub owner: Owner,
    /// What the lease is for.
    pub kind: LeaseKind,
    /// The settings that the lease asks for.
    pub settings: Settings,
    /// How long the lease has lasted.
    pub age: Duration,
}

impl<'a> Leases<'a> {
    /// Creates the list of leases, which is empty; `open` opens a device for writing.
    pub fn new(
        journal: Journal,
        open: impl FnMut(&DeviceId) -> Result<Box<dyn ControllableDevice>, sweetspot_device::OpenError>
        + 'a,
    ) -> Self {
        Self {
            journal,
            open: Box::new(open),
            devices: Vec::new(),
        }
    }

    /// Leases devices: all of them, or none. Settings that a dead guard left changed are restored first. A lease that the
    /// same owner has already is kept.
    pub fn lease(
        &mut self,
        devices: &[DeviceId],
        terms: &LeaseTerms,
    ) -> Result<Vec<RestoreOutcome>, Refusal> {
        let mut notes = Vec::new();
        let mut leased = Vec::new();
        for id in devices {
            match self.lease_one(id, terms) {
                Ok(Leased::Before) => {}
                Ok(Leased::Now(note)) => {
                    leased.push(id);
                    notes.extend(note);
                }
                Err(refusal) => {
                    for id in leased {
                        // A device without changes needs nothing written; errors of others stay in the journal.
                        let _ = self.release(id, &terms.owner);
                    }
                    return Err(refusal);
                }
            }
        }
        Ok(notes)
    }

    /// Leases one device.
    fn lease_one(&mut self, id: &DeviceId, terms: &LeaseTerms) -> Result<Leased, Refusal> {
        let record = LeaseRecord {
            kind: terms.kind,
            owner: terms.owner.clone(),
            settings: Settings::default(),
            began_at: seconds_since_boot(),
        };
        if let Some(leased) = self.devices.iter_mut().find(|one| one.entry.device == *id) {
            let entry = &mut leased.entry;
            let is_own = |lease: &&LeaseRecord| lease.owner.is_same(&terms.owner);
            if let Some(own) = entry.leases.iter().find(is_own) {
                return match own.kind == terms.kind {
                    true => Ok(Leased::Before),
                    false => Err(held(id, own)),
                };
            }
            let in_the_way = |other: &&LeaseRecord| !may_nest(other, &record);
            if let Some(other) = entry.leases.iter().find(in_the_way) {
                return Err(held(id, other));
            }
            entry.leases.push(record);
            return Ok(Leased::Now(None));
        }
        let owner = &terms.owner;
        let claim = self.journal.claim(id, owner)?;
        let mut device = (self.open)(id)?;
        let mut note = None;
        if let Some(left) = self.journal.read(id)? {
            note = Some(restore_leftover(&self.journal, device.as_mut(), &left)?);
        }
        let name = device.descriptor().name.clone();
        let saved = device.settings().map_err(|error| Refusal::Read {
            name: name.clone(),
            error,
        })?;
        tracing::info!(device = %id, ?saved, "device leased");
        let mut entry = Entry::new(owner.clone(), id.clone(), name, saved);
        entry.leases.push(record);
        self.devices.push(LeasedDevice {
            device,
            entry,
            claim,
        });
        Ok(Leased::Now(note))
    }

    /// Writes settings to a leased device; the journal is written first.
    pub fn apply(
        &mut self,
        id: &DeviceId,
        owner: &Owner,
        settings: &Settings,
    ) -> Result<AppliedSettings, Refusal> {
        let (leased, number) = find(&mut self.devices, id, owner)?;
        if settings.power_cap.is_some() && leased.entry.saved.power_cap.is_none() {
            return Err(Refusal::UnknownPowerCap(id.clone()));
        }
        let mut applied = AppliedSettings::default();
        for knob in settings.knobs() {
            let one = apply_knob(&self.journal, leased, number, &settings.only(knob), knob)?;
            applied.power_cap = one.power_cap.or(applied.power_cap);
            applied.core_clock = one.core_clock.or(applied.core_clock);
            applied.memory_clock = one.memory_clock.or(applied.memory_clock);
        }
        Ok(applied)
    }

    /// Changes the persistence mode of a leased device. It is restored when the device's last lease ends.
    pub fn set_persistence(
        &mut self,
        id: &DeviceId,
        owner: &Owner,
        on: bool,
    ) -> Result<(), Refusal> {
        let (leased, _) = find(&mut self.devices, id, owner)?;
        let (device, entry) = (leased.device.as_mut(), &mut leased.entry);
        let before = device.persistence();
        if before == Some(on) {
            return Ok(());
        }
        if entry.saved_persistence.is_none() {
            entry.saved_persistence = Some(before.unwrap_or(!on));
            if let Err(error) = self.journal.write(entry) {
                entry.saved_persistence = None;
                return Err(error.into());
            }
        }
        let name = entry.name.clone();
        let set = device.set_persistence(on);
        set.map_err(|error| Refusal::Write { name, error })
    }

    /// Reads the present settings of a leased device.
    pub fn settings(&mut self, id: &DeviceId, owner: &Owner) -> Result<Settings, Refusal> {
        let (leased, _) = find(&mut self.devices, id, owner)?;
        let name = &leased.entry.name;
        leased.device.settings().map_err(|error| Refusal::Read {
            name: name.clone(),
            error,
        })
    }

    /// Takes back what a lease has set on a device; the lease continues.
    pub fn restore(&mut self, id: &DeviceId, owner: &Owner) -> Result<(), Refusal> {
        let (leased, number) = find(&mut self.devices, id, owner)?;
        leased.entry.leases[number].settings = Settings::default();
        Ok(settle(&self.journal, leased)?)
    }

    /// Takes back what a lease has set one knob to; the lease continues.
    pub fn restore_knob(
        &mut self,
        id: &DeviceId,
        owner: &Owner,
        knob: Knob,
    ) -> Result<(), Refusal> {
        let (leased, number) = find(&mut self.devices, id, owner)?;
        let settings = &mut leased.entry.leases[number].settings;
        *settings = settings.without(knob);
        Ok(settle(&self.journal, leased)?)
    }

    /// Ends a lease and takes back what it has set. It ends even if that fails: the settings then stay in the journal.
    pub fn release(&mut self, id: &DeviceId, owner: &Owner) -> Result<(), RestoreError> {
        let Ok((leased, number)) = find(&mut self.devices, id, owner) else {
            return Ok(());
        };
        leased.entry.leases.remove(number);
        let settled = settle(&self.journal, leased);
        let (device, touched) = (&leased.entry.device, &leased.entry.touched);
        tracing::info!(%device, ?touched, problem = ?settled.as_ref().err(), "lease ended");
        self.devices.retain(|one| !one.entry.leases.is_empty());
        settled
    }

    /// Ends all leases of an owner.
    pub fn release_owner(&mut self, owner: &Owner) -> Vec<RestoreError> {
        let own = self
            .summaries()
            .into_iter()
            .filter(|lease| lease.owner.is_same(owner));
        let devices: Vec<DeviceId> = own.map(|lease| lease.device).collect();
        let released = devices.iter().map(|id| self.release(id, owner));
        released.filter_map(Result::err).collect()
    }

    /// Ends all leases.
    pub fn release_all(&mut self) -> Vec<RestoreError> {
        let all = self.summaries();
        let released = all
            .iter()
            .map(|lease| self.release(&lease.device, &lease.owner));
        released.filter_map(Result::err).collect()
    }

    /// Takes up the leases in the journal whose owners still live, and restores the devices of all others. A device that
    /// another process has locked is left alone.
    pub fn resume(&mut self) -> Result<Vec<Resumed>, JournalError> {
        let mut outcomes = Vec::new();
        for entry in self.journal.entries()? {
            let device = entry.as_ref().ok().map(|entry| entry.device.clone());
            let outcome = entry.map_err(RestoreError::from);
            let outcome = match outcome.and_then(|entry| self.resume_one(entry)) {
                Ok(None) | Err(RestoreError::Journal(JournalError::Held { .. })) => continue,
                Ok(Some(restored)) => Ok(restored),
                Err(error) => Err(error),
            };
            outcomes.push(Resumed { device, outcome });
        }
        Ok(outcomes)
    }

    /// Takes up the leases of one device, or restores it; `None` if there was nothing to restore.
    fn resume_one(&mut self, mut entry: Entry) -> Result<Option<RestoreOutcome>, RestoreError> {
        if self
            .devices
            .iter()
            .any(|one| one.entry.device == entry.device)
        {
            return Ok(None);
        }
        let claim = self.journal.claim(&entry.device, &entry.owner)?;
        let mut device = (self.open)(&entry.device)?;
        let before = entry.clone();
        entry.leases.retain(|lease| lease.owner.is_alive());
        let Some(first) = entry.leases.first() else {
            let restored = restore_leftover(&self.journal, device.as_mut(), &before)?;
            return Ok(Some(restored));
        };
        entry.owner = first.owner.clone();
        let mut leased = LeasedDevice {
            device,
            entry,
            claim,
        };
        settle(&self.journal, &mut leased)?;
        self.devices.push(leased);
        Ok(None)
    }

    /// All leases.
    pub fn summaries(&self) -> Vec<LeaseSummary> {
        let now = seconds_since_boot();
        let of_device = |one: &'_ LeasedDevice| -> Vec<LeaseSummary> {
            let leases = one.entry.leases.iter();
            let summary = |lease: &LeaseRecord| LeaseSummary {
                device: one.entry.device.clone(),
                owner: lease.owner.clone(),
                kind: lease.kind,
                settings: lease.settings,
                age: Duration::from_secs(now.saturating_sub(lease.began_at)),
            };
            leases.map(summary).collect()
        };
        self.devices.iter().flat_map(of_device).collect()
    }
}

/// The time since the machine was started, which goes on while it sleeps.
fn seconds_since_boot() -> u64 {
    clock_gettime(ClockId::Boottime).tv_sec.unsigned_abs()
}

/// Whether a lease existed before.
enum Leased {
    /// The owner had leased the device already.
    Before,
    /// The device is leased now; something that was left changed may have been restored.
    Now(Option<RestoreOutcome>),
}

/// Whether a device may have both leases: a ceiling and a setting, of the same user, or below a ceiling of root for all.
fn may_nest(existing: &LeaseRecord, new: &LeaseRecord) -> bool {
    let (ceiling, setting) = match (existing.kind, new.kind) {
        (LeaseKind::Ceiling, LeaseKind::Setting) => (existing, new),
        (LeaseKind::Setting, LeaseKind::Ceiling) => (new, existing),
        _ => return false,
    };
    ceiling.owner.uid == Some(0) || ceiling.owner.uid == setting.owner.uid
}

/// The refusal of a device that another process or job has leased.
fn held(device: &DeviceId, holder: &LeaseRecord) -> Refusal {
    Refusal::Journal(JournalError::Held {
        device: device.clone(),
        owner: holder.owner.to_string(),
    })
}

/// Finds a leased device and the number of the owner's lease; a device that the owner has not leased is refused.
fn find<'a>(
    devices: &'a mut [LeasedDevice],
    id: &DeviceId,
    owner: &Owner,
) -> Result<(&'a mut LeasedDevice, usize), Refusal> {
    let mut devices = devices.iter_mut();
    let found = devices.find_map(|leased| {
        let mut leases = leased.entry.leases.iter();
        let number = leases.position(|lease| lease.owner.is_same(owner))?;
        (leased.entry.device == *id).then_some((leased, number))
    });
    found.ok_or_else(|| Refusal::NotLeased(id.clone()))
}
