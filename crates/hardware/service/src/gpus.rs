//! The GPUs that the service serves, and who uses them.

use rustix::io::Errno;
use rustix::process::Pid;
use sweetspot_device::{
    Device, DeviceId, DeviceKind, Domain, Host, HostDevice, HostError, Knob, KnobDescriptor,
    Settings,
};
use sweetspot_hosts::HostTree;
use sweetspot_quantity::Megahertz;

use crate::policy::Gpu;

/// A GPU, or a processor package, that the service can read and set.
pub struct ServedGpu {
    /// The open GPU.
    pub device: Box<dyn HostDevice>,
}

impl ServedGpu {
    /// Lists the whole GPUs of a host. A GPU that no longer answers is left out.
    pub fn list(host: &dyn Host) -> Result<Vec<Self>, HostError> {
        let gpus = host.list()?.into_iter().map(|device| Self { device });
        let is_served =
            |gpu: &Self| !gpu.device.is_lost() && gpu.device.descriptor().parent.is_none();
        Ok(gpus.filter(is_served).collect())
    }

    /// Lists the processor packages whose power cap can be set. A tree that cannot be read has none.
    pub fn list_packages(tree: &HostTree) -> Vec<Self> {
        let packages = tree.packages();
        let packages = packages.inspect_err(|error| tracing::warn!(%error, "no packages"));
        let packages = packages.unwrap_or_default().into_iter();
        let settable =
            packages.filter(|package| package.descriptor().knob(Knob::PowerCap).is_some());
        settable
            .map(|package| Self {
                device: Box::new(package),
            })
            .collect()
    }

    /// Whether this is a processor package rather than a GPU.
    pub fn is_package(&self) -> bool {
        self.device.descriptor().kind == DeviceKind::CpuPackage
    }

    /// The device in a message.
    pub fn title(&self) -> String {
        match self.is_package() {
            true => self.device.descriptor().name.clone(),
            false => format!("GPU {} ({})", self.device.index(), self.id()),
        }
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

    /// The default memory clock, if settings have a higher one on a GPU whose memory clock is set by an offset. Locked
    /// clocks are those that the vendor lists; offsets also reach clocks that it does not.
    pub fn overclocked_memory(&self, settings: &Settings) -> Option<Megahertz> {
        let clock = settings.memory_clock?;
        match self.device.descriptor().knob(Knob::MemoryClock)? {
            KnobDescriptor::MemoryClock(range) => {
                let is_offset = matches!(range.domain, Domain::Range { .. });
                (is_offset && clock > range.default).then_some(range.default)
            }
            _ => None,
        }
    }

    /// Checks that no process of another user uses the GPU; else returns the reason. A list of processes that cannot be
    /// read, or a process whose user is unknown, counts as another user's. One that has ended does not count, although the
    /// driver may still list it.
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
                    None if has_ended(pid) => {}
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

/// Whether it is certain that there is no such process. Where /proc hides it, the kernel still knows it. In a container
/// nothing is certain: the driver may list processes that are not in it.
fn has_ended(pid: u32) -> bool {
    /// The first namespace of processes, in which all processes are (PROC_PID_INIT_INO in the kernel).
    const FIRST_NAMESPACE: &str = "pid:[4026531836]";
    let is_first = || {
        let namespace = std::fs::read_link("/proc/self/ns/pid");
        namespace.is_ok_and(|namespace| namespace.as_os_str() == FIRST_NAMESPACE)
    };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let found = pid.map(rustix::process::test_kill_process);
    matches!(found, Some(Err(Errno::SRCH))) && is_first()
}

/// The name of a user for messages: `user alice`, or `user 1001` if the id has no name.
pub fn user_name(uid: u32) -> String {
    format!("user {}", account_name(uid))
}

/// The name of a user, or the number if it has none.
pub fn account_name(uid: u32) -> String {
    let user = uzers::get_user_by_uid(uid);
    user.map_or_else(
        || uid.to_string(),
        |user| user.name().to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_waited_for_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        assert!(!has_ended(pid), "nobody has waited for it");
        child.wait().unwrap();
        let is_first = std::fs::read_link("/proc/self/ns/pid").unwrap();
        let is_first = is_first.to_str() == Some("pid:[4026531836]");
        assert_eq!(has_ended(pid), is_first);
        assert!(!has_ended(std::process::id()) && !has_ended(1));
        assert!(!has_ended(0) && !has_ended(u32::MAX));
    }
}
