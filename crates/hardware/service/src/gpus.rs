//! The GPUs that the service serves, and who uses them.

use sweetspot_device::{DeviceId, Host, HostDevice, HostError};

use crate::policy::Gpu;

/// A GPU that the service can read.
pub struct ServedGpu {
    /// The open GPU.
    pub device: Box<dyn HostDevice>,
}

impl ServedGpu {
    /// Lists the whole GPUs of a host. A GPU that no longer answers is left out.
    pub fn list(host: &dyn Host) -> Result<Vec<Self>, HostError> {
        let gpus = host.list()?.into_iter();
        Ok(gpus
            .filter(|gpu| !gpu.is_lost() && gpu.descriptor().parent.is_none())
            .map(|device| Self { device })
            .collect())
    }

    /// The GPU's identity.
    pub fn id(&self) -> &DeviceId {
        &self.device.descriptor().id
    }

    /// The GPU as the policy names it.
    pub fn name(&self) -> Gpu<'_> {
        Gpu {
            index: self.device.index(),
            id: self.id(),
        }
    }

    /// Checks that no process of another user uses the GPU; else returns the reason. A list of processes that cannot be
    /// read, or a process whose user is unknown, counts as another user's.
    pub fn check_unshared(&self, uid: u32) -> Result<(), String> {
        let mut unknown = None;
        // A process may end between the two steps, so what is unknown is looked at again.
        for _ in 0..2 {
            let listed = self.device.processes().map_err(|reason| {
                format!("the processes that use the GPU cannot be listed ({reason})")
            })?;
            unknown = None;
            for pid in listed {
                match user_of(pid) {
                    Some(user) if user == uid => {}
                    Some(user) => {
                        return Err(format!(
                            "process {pid} of {} uses the GPU too",
                            user_name(user)
                        ));
                    }
                    None => unknown = Some(pid),
                }
            }
            if unknown.is_none() {
                return Ok(());
            }
        }
        match unknown {
            Some(pid) => Err(format!(
                "process {pid} uses the GPU too, and its user is unknown"
            )),
            None => Ok(()),
        }
    }
}

/// The user of a process; `None` if there is no such process. The owner of the folder in /proc does not tell: it is root
/// for a process that may not be traced.
fn user_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_whitespace().next()?.parse().ok()
}

/// The name of a user, or the number if it has none.
pub fn user_name(uid: u32) -> String {
    let name = uzers::get_user_by_uid(uid);
    match name {
        Some(user) => format!("user {}", user.name().to_string_lossy()),
        None => format!("user {uid}"),
    }
}
