//! Lists and opens the parts of a host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sweetspot_device::{
    Clock, Device, DeviceId, DeviceKind, Host, HostDevice, HostError, MonotonicClock, OpenError,
};

use crate::part::HostPart;
use crate::{hwmon, powercap};

/// The environment variable with the folder that is read instead of `/sys`.
pub const ROOT_VARIABLE: &str = "SWEETSPOT_SYSFS";

/// Where Linux mounts sysfs.
pub const DEFAULT_ROOT: &str = "/sys";

/// The tree of sysfs: `class/powercap` and `class/hwmon` below a root.
#[derive(Clone)]
pub struct HostTree {
    root: PathBuf,
    clock: Arc<dyn Clock>,
}

impl HostTree {
    /// The tree below a root. Nothing is read yet; a machine without powercap and hwmon has no parts.
    pub fn open(root: &Path) -> Self {
        Self::with_clock(root, Arc::new(MonotonicClock))
    }

    /// The tree below a root, whose readings have the times of this clock.
    pub fn with_clock(root: &Path, clock: Arc<dyn Clock>) -> Self {
        Self {
            root: root.to_owned(),
            clock,
        }
    }

    /// The tree at `SWEETSPOT_SYSFS`, or at `/sys`.
    pub fn from_environment() -> Self {
        let root = std::env::var_os(ROOT_VARIABLE).filter(|root| !root.is_empty());
        Self::open(Path::new(root.as_deref().unwrap_or(DEFAULT_ROOT.as_ref())))
    }

    /// The root of the tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether an identity is that of a part of a host, rather than of a GPU or a meter.
    pub fn owns(id: &DeviceId) -> bool {
        let id = id.as_str();
        id.starts_with(powercap::PREFIX) || id.starts_with(hwmon::PREFIX)
    }

    /// Lists all parts: zones of powercap, each followed by its own parts, then channels of hwmon.
    pub fn parts(&self) -> Result<Vec<HostPart>, HostError> {
        let failed = |what: &str| {
            let what = format!("list {} below `{}`", what, self.root.display());
            move |error: std::io::Error| HostError::Failed {
                library: "the kernel",
                what,
                reason: error.to_string(),
            }
        };
        let zones = powercap::list(&self.root, &self.clock);
        let mut parts = zones.map_err(failed("the zones of powercap"))?;
        let channels = hwmon::list(&self.root, &self.clock);
        parts.extend(channels.map_err(failed("the chips of hwmon"))?);
        let suffix = identity_suffix(&self.root);
        let marked = |id: &DeviceId| DeviceId::new(format!("{id}{suffix}"));
        for part in &mut parts {
            part.descriptor.id = marked(&part.descriptor.id);
            part.descriptor.parent = part.descriptor.parent.as_ref().map(marked);
        }
        Ok(parts)
    }

    /// The parts whose energies add up to that of the host: packages and the memory beside them.
    pub fn host_energy_parts(&self) -> Result<Vec<HostPart>, HostError> {
        let mut parts = self.parts()?;
        parts.retain(|part| part.descriptor().kind.is_host_energy());
        Ok(parts)
    }

    /// The processor packages.
    pub fn packages(&self) -> Result<Vec<HostPart>, HostError> {
        let mut parts = self.parts()?;
        parts.retain(|part| part.descriptor().kind == DeviceKind::CpuPackage);
        Ok(parts)
    }
}

/// Distinguishes the parts of a made tree from those of this machine, whose settings must never be restored to what a
/// made tree had: empty for the tree of the kernel.
fn identity_suffix(root: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let place = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    match place(root) {
        Some(made) if Some(made) != place(Path::new(DEFAULT_ROOT)) => {
            format!("@{}-{}", made.0, made.1)
        }
        _ => String::new(),
    }
}

impl Host for HostTree {
    fn driver_version(&self) -> Result<String, HostError> {
        let path = "/proc/sys/kernel/osrelease";
        std::fs::read_to_string(path)
            .map(|version| version.trim().to_owned())
            .map_err(|error| HostError::Failed {
                library: "the kernel",
                what: "tell its version".to_owned(),
                reason: error.to_string(),
            })
    }

    fn list(&self) -> Result<Vec<Box<dyn HostDevice>>, HostError> {
        let boxed = |part| Box::new(part) as Box<dyn HostDevice>;
        Ok(self.parts()?.into_iter().map(boxed).collect())
    }

    fn open(&self, id: &DeviceId) -> Result<Box<dyn HostDevice>, OpenError> {
        let parts = self.parts().map_err(|error| OpenError::Failed {
            device: id.clone(),
            reason: error.to_string(),
        })?;
        let mut parts = parts.into_iter();
        match parts.find(|part| part.descriptor().id == *id) {
            Some(part) => Ok(Box::new(part)),
            None => Err(OpenError::NotFound {
                device: id.clone(),
                reason: format!("there is none below `{}`", self.root.display()),
            }),
        }
    }
}
