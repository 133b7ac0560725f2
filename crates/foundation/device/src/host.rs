//! Listing, opening and selecting the devices of a machine, independent of the vendor.

use crate::{Actuator, Device, DeviceId, OpenError};

/// A device whose sensors can be read and whose knobs can be set.
pub trait ControllableDevice: Device + Actuator {}
impl<T: Device + Actuator> ControllableDevice for T {}

/// An open device from [`Host::list`] or [`Host::open`]. Every user can read its sensors; setting its knobs needs
/// permission.
pub trait HostDevice: ControllableDevice + Send + Sync {
    /// The device's index in the driver's list; a MIG slice has the index of its GPU.
    fn index(&self) -> u32;

    /// Whether the driver lists the device but the device no longer answers. If so, its sensors and knobs are
    /// unknown.
    fn is_lost(&self) -> bool;

    /// Opens the same device again, with the capabilities that were detected before.
    fn reopen(&self) -> Result<Box<dyn HostDevice>, OpenError>;

    /// The name of the device's architecture, such as `Hopper`.
    fn architecture(&self) -> String;

    /// The ids of the processes that use the device; an error if they cannot be listed completely.
    fn processes(&self) -> Result<Vec<u32>, String>;

    /// The device's address on the PCI bus, such as `0000:01:00.0`; `None` if unknown.
    fn pci_address(&self) -> Option<String>;

    /// Whether the vendor's default power reading is a mean over one second. If not, it covers a shorter time.
    fn power_is_averaged(&self) -> bool;
}

/// The devices of one vendor on this machine. A backend is a crate that implements this trait.
pub trait Host: Send + Sync {
    /// The version of the vendor's driver.
    fn driver_version(&self) -> Result<String, HostError>;

    /// Lists every device in the driver's order, each GPU followed by its MIG slices.
    fn list(&self) -> Result<Vec<Box<dyn HostDevice>>, HostError>;

    /// Opens one device without accessing the others. A device that no longer answers is an error.
    fn open(&self, id: &DeviceId) -> Result<Box<dyn HostDevice>, OpenError>;
}

/// The reason why the devices of a host cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The vendor's library or driver is missing; the text tells the user what to install.
    #[error("{0}")]
    Unavailable(String),
    /// The vendor's library returned an error.
    #[error("{library} cannot {what}: {reason}")]
    Failed {
        /// The name of the vendor's library.
        library: &'static str,
        /// The action that failed, as a verb phrase, such as `count the GPUs`.
        what: String,
        /// The error text of the library.
        reason: String,
    },
}

/// Whether MIG slices of a GPU may be selected. The sensors of a slice can be read, but it has no settings of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigSlices {
    /// MIG slices may be selected.
    Include,
    /// Only whole GPUs may be selected.
    Exclude,
}

/// Which devices to use: all, those that the user named, or those in the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector<'a> {
    /// All devices are used.
    All,
    /// The devices that the user named on the command line.
    Flag(&'a str),
    /// The devices in `CUDA_VISIBLE_DEVICES`; as in CUDA, everything from the first unknown name on is ignored.
    CudaVisibleDevices(&'a str),
}

impl<'a> Selector<'a> {
    /// Selects the user's list if there is one, else the list in `CUDA_VISIBLE_DEVICES`, else all devices.
    pub fn new(flag: Option<&'a str>, cuda_visible_devices: Option<&'a str>) -> Self {
        let (list, selector): (&str, fn(&'a str) -> Self) = match (flag, cuda_visible_devices) {
            (Some(list), _) => (list, Self::Flag),
            (None, Some(list)) => (list, Self::CudaVisibleDevices),
            (None, None) => return Self::All,
        };
        match list {
            "all" => Self::All,
            list => selector(list),
        }
    }
}

/// The reason why a list of devices cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; the GPUs here are {known}")]
pub struct SelectError {
    /// What is wrong with the list, as the beginning of an error message.
    pub problem: String,
    /// The existing devices with index and UUID, as the end of an error message.
    pub known: String,
}

/// Selects devices by index, by UUID or by the beginning of a UUID, separated by commas, as CUDA does.
pub fn select_devices(
    devices: Vec<Box<dyn HostDevice>>,
    selector: Selector<'_>,
    slices: MigSlices,
) -> Result<Vec<Box<dyn HostDevice>>, SelectError> {
    let may_be_slice = slices == MigSlices::Include;
    let (list, is_cuda) = match selector {
        Selector::All => {
            let is_meant = |device: &dyn HostDevice| may_be_slice || !is_slice(device);
            let devices = devices.into_iter();
            return Ok(devices.filter(|one| is_meant(one.as_ref())).collect());
        }
        Selector::Flag(list) => (list, false),
        Selector::CudaVisibleDevices(list) => (list, true),
    };
    let refuse = |problem: String| {
        let known = devices
            .iter()
            .map(|device| format!("{} ({})", device.index(), device.descriptor().id));
        SelectError {
            problem,
            known: known.collect::<Vec<_>>().join(", "),
        }
    };
    let mut positions = Vec::new();
    for name in list.split(',').map(str::trim) {
        let position = devices
            .iter()
            .position(|device| is_named(device.as_ref(), name));
        match position {
            Some(position) if !may_be_slice && is_slice(devices[position].as_ref()) => {
                return Err(refuse(format!(
                    "{name} is a MIG slice, which has no settings of its own: name its GPU"
                )));
            }
            Some(position) if positions.contains(&position) => {
                return Err(refuse(format!("`{name}` is given twice")));
            }
            Some(position) => positions.push(position),
            // CUDA ends its list at the first unknown name.
            None if is_cuda && !positions.is_empty() => break,
            None => return Err(refuse(format!("there is no GPU `{name}`"))),
        }
    }
    let mut devices: Vec<_> = devices.into_iter().map(Some).collect();
    Ok(positions
        .into_iter()
        .filter_map(|position| devices[position].take())
        .collect())
}

/// Whether a device is a MIG slice of a GPU.
fn is_slice(device: &dyn HostDevice) -> bool {
    device.descriptor().parent.is_some()
}

/// Whether a name in a list means this device: its index, or the beginning of its UUID.
fn is_named(device: &dyn HostDevice, name: &str) -> bool {
    match name.parse::<u32>() {
        Ok(index) => !is_slice(device) && device.index() == index,
        Err(_) => name.len() > 4 && device.descriptor().id.as_str().starts_with(name),
    }
}
