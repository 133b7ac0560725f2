//! Writes to a leased device what its leases ask for together.

use sweetspot_device::{
    AppliedKnob, AppliedSettings, ControllableDevice, Knob, Settings, Shortfall,
};
use sweetspot_quantity::Watts;

use super::LeasedDevice;
use crate::entry::LeaseRecord;
use crate::journal::Journal;
use crate::refusal::{Refusal, RestoreError};
use crate::restore::{change_by_other, restore, restore_knob, retry};

/// Sets one knob of a device as a lease asks, or lower where another lease asks for that.
pub(super) fn apply_knob(
    journal: &Journal,
    leased: &mut LeasedDevice,
    number: usize,
    asked: &Settings,
    knob: Knob,
) -> Result<AppliedSettings, Refusal> {
    let entry = &mut leased.entry;
    if let Some(change) = change_by_other(leased.device.as_mut(), entry) {
        return Err(Refusal::ChangedByOther(change));
    }
    let earlier = entry.leases[number].settings;
    entry.leases[number].settings = earlier.with(asked);
    let wanted = entry.requested(knob);
    if let Some(cap) = wanted.power_cap
        && let Some(there) = already_set(leased.device.as_mut(), cap)
    {
        // Nothing is written to the device, but what this lease asks for counts when another one ends, after a restart
        // too.
        if !entry.is_unchanged()
            && let Err(error) = journal.write(entry)
        {
            entry.leases[number].settings = earlier;
            return Err(error.into());
        }
        let applied = AppliedSettings {
            power_cap: Some(there),
            ..AppliedSettings::default()
        };
        return Ok(below_ceiling(applied, asked, &wanted));
    }
    let is_new = !entry.touched.contains(&knob);
    if is_new {
        entry.touched.push(knob);
    }
    let caps = (entry.written_cap, entry.next_cap);
    if knob == Knob::PowerCap {
        // What is there now is what must be restored, also if somebody changed it since the device was leased.
        if is_new && let Ok(Some(now)) = leased.device.settings().map(|now| now.power_cap) {
            entry.saved.power_cap = Some(now);
            entry.saved_cap_enabled = leased.device.cap_is_enabled();
        }
        (entry.written_cap, entry.next_cap) = (entry.next_cap, wanted.power_cap);
    }
    // The journal is on disk before the first write; if it cannot be, nothing is written.
    if let Err(error) = journal.write(entry) {
        entry.leases[number].settings = earlier;
        (entry.written_cap, entry.next_cap) = caps;
        if is_new {
            entry.touched.pop();
        }
        return Err(error.into());
    }
    match leased.device.apply(&wanted) {
        Ok(applied) => Ok(below_ceiling(applied, asked, &wanted)),
        Err(error) => {
            // A rejected setting changed nothing and need not be restored.
            if error.left_unchanged() {
                entry.leases[number].settings = earlier;
                (entry.written_cap, entry.next_cap) = caps;
                if is_new {
                    entry.touched.pop();
                }
                journal.update(entry)?;
            } else if knob == Knob::PowerCap {
                // It is not known what the device has now.
                (entry.written_cap, entry.next_cap) = (None, None);
                journal.write(entry)?;
            }
            tracing::info!(device = %entry.device, %knob, %error, "setting rejected");
            let name = entry.name.clone();
            Err(Refusal::Write { name, error })
        }
    }
}

/// Says where a ceiling is the reason why a power cap is lower than requested.
fn below_ceiling(
    mut applied: AppliedSettings,
    asked: &Settings,
    wanted: &Settings,
) -> AppliedSettings {
    if let (Some(cap), Some(asked), Some(wanted)) =
        (&mut applied.power_cap, asked.power_cap, wanted.power_cap)
        && wanted < asked
    {
        cap.requested = asked;
        cap.shortfall = Some(Shortfall::Ceiling);
    }
    applied
}

/// The power cap of the device if it already has the requested value. It is then not written, so no permission is needed.
fn already_set(device: &mut dyn ControllableDevice, cap: Watts) -> Option<AppliedKnob<Watts>> {
    let limits = device.power_limits().ok()?;
    // A cap that is switched off limits nothing.
    if device.cap_is_enabled() == Some(false) {
        return None;
    }
    (limits.requested == cap).then(|| AppliedKnob {
        requested: limits.requested,
        enforced: limits.enforced,
        shortfall: (limits.enforced < limits.requested).then_some(Shortfall::BoardLimit),
    })
}

/// Writes what the leases of a device ask for after one of them has changed, and restores what none of them asks for.
pub(super) fn settle(journal: &Journal, leased: &mut LeasedDevice) -> Result<(), RestoreError> {
    let (device, entry) = (leased.device.as_mut(), &mut leased.entry);
    let is_idle = |lease: &LeaseRecord| lease.settings == Settings::default();
    if entry.leases.iter().all(is_idle) {
        let change = restore(device, entry)?;
        let other = leased.claim.other_claim().filter(|_| !entry.is_unchanged());
        if !entry.is_unchanged() {
            entry.saved_persistence = None;
            if change.is_none() {
                journal.remove(&entry.device)?;
            } else {
                // A program that did not see this lease has found the cap that was written here, and will restore it. So
                // the journal stays, and the next command or `sweetspot restore` restores what was there before both.
                entry.touched.retain(|knob| *knob == Knob::PowerCap);
                journal.write(entry)?;
            }
            entry.touched.clear();
            (entry.written_cap, entry.next_cap) = (None, None);
        }
        return match (change, other) {
            (Some(change), _) => Err(RestoreError::ChangedByOther(change)),
            (None, Some(other)) => Err(RestoreError::LeasedByOther {
                device: entry.device.clone(),
                other: other.to_owned(),
            }),
            (None, None) => Ok(()),
        };
    }
    if let Some(change) = change_by_other(device, entry) {
        return Err(RestoreError::ChangedByOther(change));
    }
    // A cap that was there already was not written, but it may have been that of a lease that is over.
    let cap = entry.requested(Knob::PowerCap);
    let is_there = device
        .settings()
        .is_ok_and(|now| now.only(Knob::PowerCap) == cap);
    if cap != Settings::default() && !is_there && !entry.touched.contains(&Knob::PowerCap) {
        entry.touched.push(Knob::PowerCap);
        if let Err(error) = journal.write(entry) {
            entry.touched.pop();
            return Err(error.into());
        }
    }
    let mut errors = Vec::new();
    for knob in entry.touched.clone().into_iter().rev() {
        let wanted = entry.requested(knob);
        if let Some(cap) = wanted.power_cap {
            (entry.written_cap, entry.next_cap) = (entry.next_cap, Some(cap));
            journal.write(entry)?;
        }
        let result = match wanted == Settings::default() {
            true => restore_knob(device, entry, knob),
            false if device.settings().is_ok_and(|now| now.only(knob) == wanted) => Ok(()),
            false => retry(|| device.apply(&wanted).map(drop)),
        };
        match result {
            Ok(()) if wanted == Settings::default() => {
                entry.touched.retain(|one| *one != knob);
                if knob == Knob::PowerCap {
                    (entry.written_cap, entry.next_cap) = (None, None);
                }
            }
            Ok(()) => {}
            Err(error) => errors.push(error),
        }
    }
    journal.update(entry)?;
    match errors.is_empty() {
        true => Ok(()),
        false => Err(RestoreError::Write {
            device: entry.device.clone(),
            name: entry.name.clone(),
            errors,
        }),
    }
}
