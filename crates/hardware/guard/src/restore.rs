//! Putting back what was set before.

use sweetspot_device::{ControllableDevice, Knob, Settings};

use crate::journal::{Entry, Journal, Left};
use crate::owner::{Owner, boot_id};
use crate::refusal::{RestoreError, Restored};
use crate::server::Open;

/// In the opposite order of the touching, each knob whatever became of the others. What was set is written
/// and read back; where nothing is known of it (a lock has no getter), the knob is freed.
pub(crate) fn restore(
    device: &mut dyn ControllableDevice,
    entry: &Entry,
) -> Result<(), RestoreError> {
    let mut errors = Vec::new();
    // What somebody else changed under the lease is put back as well, where it is known.
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
        let before = entry.saved.only(*knob);
        let is_there = device.settings().is_ok_and(|now| now.only(*knob) == before);
        let restored = if before == Settings::default() {
            device.reset(*knob)
        } else if is_there {
            Ok(())
        } else {
            device.apply(&before).map(drop)
        };
        errors.extend(restored.err());
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

/// Undoes what an earlier guard left; what an earlier boot left is gone already.
pub(crate) fn settle(
    journal: &Journal,
    device: &mut dyn ControllableDevice,
    left: &Entry,
) -> Result<Restored, RestoreError> {
    let name = left.name.clone();
    let restored = if left.owner.boot_id == boot_id() {
        restore(device, left)?;
        let owner = left.owner.clone();
        Restored::PutBack { name, owner }
    } else {
        Restored::EarlierBoot { name }
    };
    journal.forget(&left.device)?;
    Ok(restored)
}

/// Puts back what a guard that is gone left changed on a device.
pub fn restore_left(
    journal: &Journal,
    left: &Left,
    open: &mut Open<'_>,
) -> Result<Restored, RestoreError> {
    let _claim = journal.claim(&left.device, &Owner::me())?;
    let Some(entry) = journal.read(&left.device)? else {
        let name = left.name.clone();
        return Ok(Restored::AlreadyAsBefore { name });
    };
    let mut device = open(&left.device)?;
    settle(journal, device.as_mut(), &entry)
}
