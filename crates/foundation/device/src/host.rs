//! The devices of a machine, independent of the backend that lists them.

use crate::{Actuator, Device, DeviceId, OpenError};

/// A device that can be read and set.
pub trait ControllableDevice: Device + Actuator {}
impl<T: Device + Actuator> ControllableDevice for T {}

/// A device as its host lists it: open for reading and, with permission, for writing.
pub trait HostDevice: ControllableDevice + Send + Sync {
    /// The device's index in the driver's order; a slice has the index of its GPU.
    fn index(&self) -> u32;

    /// Whether the device was found but no longer answers: its capabilities are then unknown.
    fn is_lost(&self) -> bool;

    /// Opens the same device again, without detecting its capabilities again.
    fn reopen(&self) -> Result<Box<dyn HostDevice>, OpenError>;

    /// The name of the device's generation.
    fn architecture(&self) -> String;

    /// Whether the driver stays loaded without a client (persistence mode), where known.
    fn persistence(&self) -> Option<bool>;

    /// Whether the ordinary power reading is a mean over one second.
    fn power_is_averaged(&self) -> bool;
}

/// The devices of one vendor on this machine. A backend is a crate that implements this trait.
pub trait Host: Send + Sync {
    /// The version of the vendor's driver.
    fn driver_version(&self) -> Result<String, HostError>;

    /// Lists every device in the driver's order, each followed by its slices.
    fn list(&self) -> Result<Vec<Box<dyn HostDevice>>, HostError>;

    /// Opens one device without accessing the others. A device that no longer answers is an error.
    fn open(&self, id: &DeviceId) -> Result<Box<dyn HostDevice>, OpenError>;
}

/// The reason why the devices of a host cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The vendor's library or driver is absent: install it. Holds a sentence for the user.
    #[error("{0}")]
    Unavailable(String),
    /// The driver rejected a request.
    #[error("{library} cannot {what}: {reason}")]
    Failed {
        /// The vendor's library.
        library: &'static str,
        /// The requested action.
        what: String,
        /// The library's answer.
        reason: String,
    },
}

/// Whether slices of a GPU may be selected: they can be read, but share the settings of their GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigSlices {
    /// Slices may be selected.
    Include,
    /// Only whole GPUs may be selected.
    Exclude,
}

/// The source of a selection of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector<'a> {
    /// Every device.
    All,
    /// The list that the user gave.
    Flag(&'a str),
    /// The list in `CUDA_VISIBLE_DEVICES`, which ends at the first unknown name.
    CudaVisibleDevices(&'a str),
}

impl<'a> Selector<'a> {
    /// Takes the user's list, else the list in `CUDA_VISIBLE_DEVICES`, else all devices.
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

/// The reason why a selection names no usable device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; the GPUs here are {known}")]
pub struct SelectError {
    /// The problem with the list.
    pub problem: String,
    /// The devices that can be named.
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
    let mut places = Vec::new();
    for name in list.split(',').map(str::trim) {
        let place = devices
            .iter()
            .position(|device| is_named(device.as_ref(), name));
        match place {
            Some(place) if !may_be_slice && is_slice(devices[place].as_ref()) => {
                return Err(refuse(format!(
                    "{name} is a slice, which shares its GPU's settings: name the GPU"
                )));
            }
            Some(place) if places.contains(&place) => {
                return Err(refuse(format!("`{name}` is given twice")));
            }
            Some(place) => places.push(place),
            // CUDA ends its list at the first unknown name.
            None if is_cuda && !places.is_empty() => break,
            None => return Err(refuse(format!("there is no GPU `{name}`"))),
        }
    }
    let mut devices: Vec<_> = devices.into_iter().map(Some).collect();
    Ok(places
        .into_iter()
        .filter_map(|place| devices[place].take())
        .collect())
}

fn is_slice(device: &dyn HostDevice) -> bool {
    device.descriptor().parent.is_some()
}

fn is_named(device: &dyn HostDevice, name: &str) -> bool {
    match name.parse::<u32>() {
        Ok(index) => !is_slice(device) && device.index() == index,
        Err(_) => name.len() > 4 && device.descriptor().id.as_str().starts_with(name),
    }
}
