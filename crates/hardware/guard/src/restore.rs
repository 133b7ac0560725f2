//! Restores the settings that a device had before its lease.

use sweetspot_device::{ControllableDevice, Knob, Settings, WriteError};

use crate::journal::{Entry, Journal, UnrestoredDevice};
use crate::owner::{Owner, boot_id};
use crate::refusal::{RestoreError, RestoreOutcome};
use crate::server::OpenDevice;

/// Restores the changed knobs in reverse order; if one fails, the others are still restored. Known settings
/// are written and read back. A knob whose earlier setting is unknown, such as a clock lock, is reset to its
/// default.
pub(crate) fn restore(
    device: &mut dyn ControllableDevice,
    entry: &Entry,
) -> Result<(), RestoreError> {
    let mut errors = Vec::new();
    // A known power cap is restored even if another program changed it during the lease.
    let is_ours = entry.touched.contains(&Knob::PowerCap);
    let cap = entry.saved.only(Knob::PowerCap);
    let is_there = |device: &mut dyn ControllableDevice| {
        let now = device.settings().map(|now| now.only(Knob::PowerCap));
        now.is_ok_and(|now| now == cap)
    };
    if !is_ours && cap != Settings::default() && !is_there(device) {
        errors.extend(device.apply(&cap).err());
    }
    for knob in entry.touched.iter().rev() {
        errors.extend(restore_knob(device, &entry.saved, *knob).err());
    }
    if let Some(before) = entry.saved_persistence
        && device.persistence() != Some(before)
    {
        errors.extend(device.set_persistence(before).err());
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(RestoreError::Write {
        device: entry.device.clone(),
        name: entry.name.clone(),
        errors,
    })
}

/// Restores one knob to its earlier setting, or to its default if that is unknown.
pub(crate) fn restore_knob(
    device: &mut dyn ControllableDevice,
    saved: &Settings,
    knob: Knob,
) -> Result<(), WriteError> {
    let before = saved.only(knob);
    if before == Settings::default() {
        return device.reset(knob);
    }
    let is_there = device.settings().is_ok_and(|now| now.only(knob) == before);
    match is_there {
        true => Ok(()),
        false => device.apply(&before).map(drop),
    }
}

/// Restores a device from its journal file, which an earlier guard has left. Nothing is written if a reboot
/// has reset the settings.
pub(crate) fn restore_leftover(
    journal: &Journal,
    device: &mut dyn ControllableDevice,
    entry: &Entry,
) -> Result<RestoreOutcome, RestoreError> {
    let name = entry.name.clone();
    let restored = if entry.owner.boot_id == boot_id() {
        restore(device, entry)?;
        let owner = entry.owner.clone();
        RestoreOutcome::Restored { name, owner }
    } else {
        RestoreOutcome::EarlierBoot { name }
    };
    journal.remove(&entry.device)?;
    Ok(restored)
}

/// Restores a device that a dead guard left changed.
pub fn restore_device(
    journal: &Journal,
    unrestored: &UnrestoredDevice,
    open: &mut OpenDevice<'_>,
) -> Result<RestoreOutcome, RestoreError> {
    let _claim = journal.claim(&unrestored.device, &Owner::current_process())?;
    let Some(entry) = journal.read(&unrestored.device)? else {
        let name = unrestored.name.clone();
        return Ok(RestoreOutcome::AlreadyRestored { name });
    };
    let mut device = open(&unrestored.device)?;
    restore_leftover(journal, device.as_mut(), &entry)
}
