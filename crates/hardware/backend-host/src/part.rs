//! A part of the host as a device: a zone of powercap, or a channel of hwmon.

use std::path::PathBuf;
use std::sync::Arc;

use sweetspot_device::{Clock, Descriptor, HostDevice, OpenError, SensorDescriptor, SensorKind};

use crate::counter::EnergyCounter;
use crate::sysfs::read_number;

/// Whether a sensor can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SensorAccess {
    /// The sensor can be read.
    Readable,
    /// This user may not read the sensor.
    Denied,
    /// The sensor cannot be read for another reason.
    Failed(String),
}

impl SensorAccess {
    /// Finds out whether a file with a number can be read.
    pub(crate) fn of(path: &std::path::Path) -> Self {
        match read_number(path) {
            Ok(_) => Self::Readable,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Self::Denied,
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}

/// A sensor, and the file that it is read from.
#[derive(Clone, Debug)]
pub(crate) struct SensorFile {
    pub descriptor: SensorDescriptor,
    pub path: PathBuf,
    pub access: SensorAccess,
}

/// The files of a power cap.
#[derive(Clone, Debug)]
pub(crate) struct CapFiles {
    /// The file with the limit in microwatts.
    pub limit: PathBuf,
    /// The file that switches the limit on or off; `None` if it is always on.
    pub enabled: Option<PathBuf>,
    /// The same limit in the registers of `intel-rapl-mmio`, if the kernel shows it: the lower one is in force.
    pub twin: Option<Box<CapFiles>>,
}

/// A processor package, its memory, a part of it, the platform, or a power probe.
pub struct HostPart {
    pub(crate) descriptor: Descriptor,
    pub(crate) files: Vec<SensorFile>,
    pub(crate) cap: Option<CapFiles>,
    pub(crate) counter: EnergyCounter,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) driver: String,
    pub(crate) index: u32,
    pub(crate) zone: String,
}

impl HostPart {
    /// Whether a sensor of this part can be read; `None` if it has no such sensor.
    pub fn access(&self, sensor: SensorKind) -> Option<&SensorAccess> {
        Some(&self.file(sensor)?.access)
    }

    /// Whether there is a sensor that this user may not read.
    pub fn is_denied(&self) -> bool {
        let mut files = self.files.iter();
        files.any(|file| file.access == SensorAccess::Denied)
    }

    /// The kinds of the sensors of this part, also of those that may not be read.
    pub fn sensor_kinds(&self) -> Vec<SensorKind> {
        self.files.iter().map(|file| file.descriptor.kind).collect()
    }

    /// The name of the zone or channel in the kernel, such as `intel-rapl:0` or `hwmon3/power1`.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// How this channel of hwmon is named as a meter, such as `hwmon:ina219:0-0040/power1`; `None` for other parts.
    pub fn probe_spec(&self) -> Option<String> {
        let channel = self.zone.rsplit('/').next()?;
        let id = self.descriptor.id.as_str();
        let chip = id.strip_prefix(crate::hwmon::PREFIX)?.rsplit_once(':')?.0;
        Some(format!("{}{chip}/{channel}", crate::hwmon::PREFIX))
    }

    /// Whether this user may change the power cap; `None` if the part has none.
    pub fn may_set_cap(&self) -> Option<bool> {
        let cap = self.cap.as_ref()?;
        // Nothing is written by opening the file.
        Some(
            std::fs::OpenOptions::new()
                .write(true)
                .open(&cap.limit)
                .is_ok(),
        )
    }

    /// The file of a sensor.
    pub(crate) fn file(&self, sensor: SensorKind) -> Option<&SensorFile> {
        let mut files = self.files.iter();
        files.find(|file| file.descriptor.kind == sensor)
    }

    /// Opens the same part again: its counter begins anew.
    pub fn open_again(&self) -> Self {
        Self {
            descriptor: self.descriptor.clone(),
            files: self.files.clone(),
            cap: self.cap.clone(),
            counter: self.counter.restarted(),
            clock: Arc::clone(&self.clock),
            driver: self.driver.clone(),
            index: self.index,
            zone: self.zone.clone(),
        }
    }
}

impl HostDevice for HostPart {
    fn index(&self) -> u32 {
        self.index
    }

    fn is_lost(&self) -> bool {
        self.files.iter().all(|file| !file.path.exists())
    }

    fn reopen(&self) -> Result<Box<dyn HostDevice>, OpenError> {
        match self.is_lost() {
            true => Err(OpenError::Lost {
                name: self.descriptor.name.clone(),
            }),
            false => Ok(Box::new(self.open_again())),
        }
    }

    fn architecture(&self) -> String {
        self.driver.clone()
    }

    fn processes(&self) -> Result<Vec<u32>, String> {
        Err("every process of the machine uses its processors".to_owned())
    }

    fn pci_address(&self) -> Option<String> {
        None
    }

    fn power_is_averaged(&self) -> bool {
        self.file(SensorKind::AveragePower).is_some()
    }
}
