//! The energy of GPUs since they were leased, where it belongs to one job alone.

use sweetspot_device::{DeviceId, HostDevice};
use sweetspot_guard::LeaseKind;
use sweetspot_service::monitor_link::LeaseView;

use crate::counters::GpuName;
use crate::timeline::Total;

/// The energy of a GPU under a lease.
#[derive(Debug)]
struct LeasedEnergy {
    device: DeviceId,
    owner: (Option<u32>, u32, Option<String>),
    start: Total,
    energy_j: f64,
    /// Whether another program has used the GPU since the lease began.
    is_shared: bool,
}

/// The energies of all leases.
#[derive(Debug, Default)]
pub struct LeasedEnergies(Vec<LeasedEnergy>);

impl LeasedEnergies {
    /// Begins with new leases, ends with those that are over, and adds what was drawn.
    pub fn update(
        &mut self,
        leases: &[LeaseView],
        gpus: &[Box<dyn HostDevice>],
        names: &[GpuName],
        totals: &[Total],
    ) {
        let is_it = |one: &LeasedEnergy, lease: &LeaseView| {
            one.device == lease.device && one.owner == owner(lease)
        };
        self.0
            .retain(|one| leases.iter().any(|lease| is_it(one, lease)));
        for lease in leases {
            let place = names
                .iter()
                .position(|name| name.uuid == lease.device.as_str());
            let Some((gpu, total)) = place.and_then(|place| gpus.get(place).zip(totals.get(place)))
            else {
                continue;
            };
            let mut others = leases.iter();
            let has_others = others.any(|other| is_of_others(other, lease, descends_from));
            let known = self.0.iter_mut().find(|one| is_it(one, lease));
            let one = match known {
                Some(known) => known,
                None => {
                    self.0.push(LeasedEnergy {
                        device: lease.device.clone(),
                        owner: owner(lease),
                        start: *total,
                        energy_j: 0.0,
                        is_shared: false,
                    });
                    let Some(new) = self.0.last_mut() else {
                        continue;
                    };
                    new
                }
            };
            one.energy_j = total.since(&one.start).energy.get();
            one.is_shared |= has_others || is_used_by_others(gpu.as_ref(), lease);
        }
    }

    /// The energy of a lease; `None` if the GPU is shared, or the lease is unknown.
    pub fn energy(&self, lease: &LeaseView) -> Option<f64> {
        let mut all = self.0.iter();
        let one = all.find(|one| one.device == lease.device && one.owner == owner(lease))?;
        (!one.is_shared).then_some(one.energy_j)
    }
}

/// The owner of a lease.
fn owner(lease: &LeaseView) -> (Option<u32>, u32, Option<String>) {
    (lease.uid, lease.pid, lease.job.clone())
}

/// Whether another lease of the GPU shows that the GPU is not the lease's alone. A job's own commands lease the GPU that the
/// scheduler has leased for the job, and a command may start another one; the processes on the GPU tell whether it is
/// their own. A ceiling without a job uses no GPU: it only limits others.
fn is_of_others(other: &LeaseView, lease: &LeaseView, descends: impl Fn(u32, u32) -> bool) -> bool {
    if other.device != lease.device || owner(other) == owner(lease) {
        return false;
    }
    if other.job.is_none() && other.kind == LeaseKind::Ceiling {
        return false;
    }
    let is_same_user = other.uid == lease.uid && lease.uid.is_some();
    let is_within = match (&other.job, &lease.job) {
        // A GPU that two jobs have leased is not one job's.
        (Some(_), Some(_)) => false,
        // Which processes belong to a job is unknown: those of its user.
        (Some(_), None) | (None, Some(_)) => true,
        (None, None) => descends(other.pid, lease.pid) || descends(lease.pid, other.pid),
    };
    !(is_same_user && is_within)
}

/// Whether a process uses the GPU that does not belong to the lease: it is neither its owner nor a descendant of it. For
/// a job of a scheduler only the user is known. What cannot be found out counts as used by others.
fn is_used_by_others(gpu: &dyn HostDevice, lease: &LeaseView) -> bool {
    let Ok(processes) = gpu.processes() else {
        return true;
    };
    let is_foreign = |pid: &u32| match lease.job {
        Some(_) => user_of(*pid).is_some_and(|uid| Some(uid) != lease.uid),
        None => !descends_from(*pid, lease.pid) && user_of(*pid).is_some(),
    };
    processes.iter().any(is_foreign)
}

/// Whether a process is another one or a descendant of it.
fn descends_from(mut pid: u32, ancestor: u32) -> bool {
    // A loop of parents cannot be, but the files may change meanwhile.
    for _ in 0..64 {
        if pid == ancestor {
            return true;
        }
        match parent_of(pid) {
            Some(parent) if parent > 1 => pid = parent,
            _ => return false,
        }
    }
    false
}

/// The parent of a process.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// The user of a process; `None` if it has ended.
fn user_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use sweetspot_device::Settings;

    use super::*;

    fn lease(uid: u32, pid: u32, job: Option<&str>, kind: LeaseKind) -> LeaseView {
        LeaseView {
            device: DeviceId::new("GPU-1"),
            user: String::new(),
            uid: Some(uid),
            pid,
            job: job.map(str::to_owned),
            kind,
            settings: Settings::default(),
            age_s: 1.0,
            left_s: None,
        }
    }

    #[test]
    fn leases_within_a_job_do_not_share_its_gpu() {
        use LeaseKind::{Ceiling, Setting};
        // Process 20 is a child of process 10; process 30 is neither.
        let descends = |pid: u32, ancestor: u32| pid == ancestor || (pid, ancestor) == (20, 10);
        let is_shared = |one: &LeaseView, other: &LeaseView| {
            let shared = is_of_others(one, other, descends);
            assert_eq!(
                shared,
                is_of_others(other, one, descends),
                "{one:?} {other:?}"
            );
            shared
        };
        let job = lease(1000, 0, Some("slurm-7"), Ceiling);
        let own = lease(1000, 10, None, Setting);
        assert!(!is_shared(&job, &job));
        assert!(!is_shared(&job, &own));
        assert!(!is_shared(&own, &lease(1000, 20, None, Setting)));
        assert!(is_shared(&own, &lease(1000, 30, None, Setting)));
        assert!(is_shared(&job, &lease(1001, 10, None, Setting)));
        assert!(is_shared(&job, &lease(1000, 0, Some("slurm-8"), Ceiling)));
        // A budget's ceiling uses no GPU, and whether the GPU is its owner's alone is another question.
        let budget = lease(0, 5, None, Ceiling);
        assert!(!is_of_others(&budget, &own, descends) && !is_of_others(&budget, &job, descends));
        assert!(is_of_others(&own, &budget, descends));
        let elsewhere = LeaseView {
            device: DeviceId::new("GPU-2"),
            ..lease(1001, 30, None, Setting)
        };
        assert!(!is_of_others(&elsewhere, &own, descends));
    }

    #[test]
    fn a_child_descends_from_its_parent() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        assert!(descends_from(pid, std::process::id()) && descends_from(pid, pid));
        assert!(!descends_from(std::process::id(), pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descends_from(pid, std::process::id()));
    }
}
