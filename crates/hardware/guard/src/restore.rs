//! Restores the settings that a device had before its lease.

use std::time::Duration;

use sweetspot_device::{ControllableDevice, Knob, Settings, WriteError, is_same_cap};

use crate::entry::Entry;
use crate::journal::{Journal, UnrestoredDevice};
use crate::owner::{Owner, boot_id};
use crate::refusal::{CapChange, RestoreError, RestoreOutcome};
use crate::server::OpenDevice;

/// How often a write is tried that fails for a reason that may be temporary.
const ATTEMPTS: u32 = 4;

/// The pause after the first failed attempt; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Restores the changed knobs in reverse order; if one fails, the others are still restored. Known settings
/// are written and read back. A knob whose earlier setting is unknown, such as a clock lock, is reset to its
/// default. A power cap that another program has changed meanwhile is left as it is; the result describes it.
pub(crate) fn restore(
    device: &mut dyn ControllableDevice,
    entry: &Entry,
) -> Result<Option<CapChange>, RestoreError> {
    let mut errors = Vec::new();
    let change = change_by_other(device, entry);
    for knob in entry.touched.iter().rev() {
        if *knob == Knob::PowerCap && change.is_some() {
            continue;
        }
        errors.extend(restore_knob(device, entry, *knob).err());
    }
    if let Some(before) = entry.saved_persistence
        && device.persistence() != Some(before)
    {
        errors.extend(retry(|| device.set_persistence(before)).err());
    }
    if errors.is_empty() {
        return Ok(change);
    }
    Err(RestoreError::Write {
        device: entry.device.clone(),
        name: entry.name.clone(),
        errors,
    })
}

/// Finds out whether another program has changed the power cap since this one wrote it.
pub(crate) fn change_by_other(
    device: &mut dyn ControllableDevice,
    entry: &Entry,
) -> Option<CapChange> {
    if !entry.touched.contains(&Knob::PowerCap) {
        return None;
    }
    let (written, before) = (entry.next_cap?, entry.saved.power_cap?);
    let found = device.settings().ok()?.power_cap?;
    let is_expected = entry.wrote_cap(found) || is_same_cap(found, before);
    (!is_expected).then(|| CapChange {
        device: entry.device.clone(),
        name: entry.name.clone(),
        written,
        found,
        before,
    })
}

/// Restores one knob to its earlier setting, or to its default if that is unknown. A power cap that was switched off is
/// switched off again, after its value is restored.
pub(crate) fn restore_knob(
    device: &mut dyn ControllableDevice,
    entry: &Entry,
    knob: Knob,
) -> Result<(), WriteError> {
    let before = entry.saved.only(knob);
    if before == Settings::default() {
        return retry(|| device.reset(knob));
    }
    if device.settings().map(|now| now.only(knob)) != Ok(before) {
        retry(|| device.restore(&before))?;
    }
    match entry.saved_cap_enabled {
        Some(enabled) if knob == Knob::PowerCap && device.cap_is_enabled() != Some(enabled) => {
            retry(|| device.enable_cap(enabled))
        }
        _ => Ok(()),
    }
}

/// Tries a write several times if it fails for a reason that may be temporary.
pub(crate) fn retry(mut write: impl FnMut() -> Result<(), WriteError>) -> Result<(), WriteError> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match write() {
            Err(
                error @ (WriteError::Failed { .. }
                | WriteError::ReadBackDiffers { .. }
                | WriteError::Persistence(_)),
            ) => tracing::warn!(%error, "restoring failed: trying again"),
            result => return result,
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
    write()
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
        match restore(device, entry)? {
            Some(change) => RestoreOutcome::ChangedByOther(change),
            None => RestoreOutcome::Restored {
                name,
                owner: entry.owner.clone(),
            },
        }
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
