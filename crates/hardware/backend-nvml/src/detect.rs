//! Lists and opens the GPUs of a machine.

use std::ffi::OsStr;

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::DeviceArchitecture;
use nvml_wrapper::error::NvmlError;
use sweetspot_device::{Descriptor, DeviceId, DeviceKind, Host, HostDevice, HostError, OpenError};
use sweetspot_quantity::Bytes;

use crate::capabilities::{is_before_ampere, knobs, listed_memory_clocks, sensors, short_window};
use crate::error::{driver_not_loaded, library_not_found, open_error, request_failed};
use crate::limits::{ThrottleFields, UnitMonitor};
use crate::lost::LostGpu;
use crate::memory_clock::MemoryClockControl;

/// Logs which file was loaded as the NVML library, because several files may have its name.
fn log_opened(library: &OsStr, nvml: &nvml_wrapper::Nvml) {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let name = std::path::Path::new(library).file_name().unwrap_or(library);
    let name = name.to_string_lossy();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths = maps
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]));
    let path = paths.find(|path| path.contains(name.trim_end_matches(".1")));
    let driver = nvml.sys_driver_version();
    let driver = driver.unwrap_or_else(|error| error.to_string());
    tracing::info!(?library, path, driver, "NVML library opened");
}

/// The file name of the NVML library on Linux.
const NVML_LIBRARY: &str = "libnvidia-ml.so.1";

/// The NVML library, which stays loaded until the process ends.
#[derive(Clone, Copy, Debug)]
pub struct Nvml {
    nvml: &'static nvml_wrapper::Nvml,
}

/// A GPU or a MIG slice of one, opened through NVML.
#[derive(Debug)]
pub struct NvmlGpu {
    pub(crate) nvml: &'static nvml_wrapper::Nvml,
    pub(crate) device: Device<'static>,
    pub(crate) descriptor: Descriptor,
    pub(crate) architecture: DeviceArchitecture,
    /// How the memory clock is set; `None` if it cannot be set.
    pub(crate) memory_control: Option<MemoryClockControl>,
    pub(crate) power_is_averaged: bool,
    pub(crate) last_sample: u64,
    pub(crate) wall_offset: Option<i128>,
    pub(crate) throttle_fields: Option<ThrottleFields>,
    pub(crate) unit_monitor: UnitMonitor,
    index: u32,
    is_lost: bool,
}

impl Nvml {
    /// Loads NVML from the default library name, or from `library` if it is given.
    pub fn open(library: Option<&OsStr>) -> Result<Self, HostError> {
        let library = library.unwrap_or(OsStr::new(NVML_LIBRARY));
        let nvml = nvml_wrapper::Nvml::builder().lib_path(library).init();
        match &nvml {
            Ok(nvml) => log_opened(library, nvml),
            Err(error) => tracing::info!(?library, %error, "cannot open the NVML library"),
        }
        match nvml {
            Ok(nvml) => Ok(Self {
                nvml: Box::leak(Box::new(nvml)),
            }),
            Err(NvmlError::DriverNotLoaded) => Err(driver_not_loaded()),
            Err(error) => Err(library_not_found(
                &library.to_string_lossy(),
                &error.to_string(),
            )),
        }
    }
}

impl Host for Nvml {
    fn driver_version(&self) -> Result<String, HostError> {
        self.nvml
            .sys_driver_version()
            .map_err(request_failed("read the driver's version"))
    }

    fn list(&self) -> Result<Vec<Box<dyn HostDevice>>, HostError> {
        let count = self
            .nvml
            .device_count()
            .map_err(request_failed("count the GPUs"))?;
        let mut gpus: Vec<Box<dyn HostDevice>> = Vec::new();
        for index in 0..count {
            let what = || request_failed(format!("open GPU {index}"));
            let device = match self.nvml.device_by_index(index) {
                Err(NvmlError::GpuLost) => {
                    gpus.push(Box::new(LostGpu::new(index)));
                    continue;
                }
                device => device.map_err(what())?,
            };
            let slices: Vec<_> = (0..device.mig_device_count().unwrap_or(0))
                .filter_map(|slice| device.mig_device_by_index(slice).ok())
                .collect();
            let gpu = match NvmlGpu::open(self.nvml, device, index, None) {
                Err(NvmlError::GpuLost) => {
                    gpus.push(Box::new(LostGpu::new(index)));
                    continue;
                }
                gpu => gpu.map_err(what())?,
            };
            let parent = gpu.descriptor.id.clone();
            gpus.push(Box::new(gpu));
            for slice in slices {
                let slice = NvmlGpu::open(self.nvml, slice, index, Some(parent.clone()));
                gpus.push(Box::new(slice.map_err(what())?));
            }
        }
        Ok(gpus)
    }

    fn open(&self, id: &DeviceId) -> Result<Box<dyn HostDevice>, OpenError> {
        let open = || {
            let device = self.nvml.device_by_uuid(id.as_str())?;
            let index = device.index()?;
            NvmlGpu::open(self.nvml, device, index, None)
        };
        let gpu = open().map_err(|error| open_error(id, error))?;
        if gpu.is_lost {
            return Err(OpenError::Lost {
                name: gpu.descriptor.name,
            });
        }
        Ok(Box::new(gpu))
    }
}

impl HostDevice for NvmlGpu {
    fn index(&self) -> u32 {
        self.index
    }

    fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn reopen(&self) -> Result<Box<dyn HostDevice>, OpenError> {
        let id = &self.descriptor.id;
        let device = self.nvml.device_by_uuid(id.as_str());
        Ok(Box::new(Self {
            nvml: self.nvml,
            device: device.map_err(|error| open_error(id, error))?,
            descriptor: self.descriptor.clone(),
            architecture: self.architecture.clone(),
            memory_control: self.memory_control,
            power_is_averaged: self.power_is_averaged,
            last_sample: 0,
            wall_offset: None,
            throttle_fields: self.throttle_fields,
            unit_monitor: UnitMonitor::default(),
            index: self.index,
            is_lost: self.is_lost,
        }))
    }

    fn architecture(&self) -> String {
        format!("{:?}", self.architecture)
    }

    fn processes(&self) -> Result<Vec<u32>, String> {
        let compute = self.device.running_compute_processes();
        let mut all = compute.map_err(|error| error.to_string())?;
        // Clients of MPS are listed apart from its server. Drivers and GPUs without graphics or MPS have no such list.
        for more in [
            self.device.running_graphics_processes(),
            self.device.mps_running_compute_processes(),
        ] {
            match more {
                Ok(more) => all.extend(more),
                Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        let mut pids: Vec<u32> = all.iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    fn pci_address(&self) -> Option<String> {
        Some(self.device.pci_info().ok()?.bus_id)
    }

    fn power_is_averaged(&self) -> bool {
        self.power_is_averaged
    }
}

impl NvmlGpu {
    /// Opens a GPU and detects its sensors and knobs; `parent` is the whole GPU of a MIG slice.
    fn open(
        nvml: &'static nvml_wrapper::Nvml,
        device: Device<'static>,
        index: u32,
        parent: Option<DeviceId>,
    ) -> Result<Self, NvmlError> {
        let architecture = device.architecture().unwrap_or(DeviceArchitecture::Unknown);
        let is_ga100 = device
            .cuda_compute_capability()
            .is_ok_and(|capability| (capability.major, capability.minor) == (8, 0));
        let is_lost = matches!(device.power_usage(), Err(NvmlError::GpuLost));
        // According to NVIDIA's documentation it is a mean over one second on Ampere (except GA100) or newer.
        let power_is_averaged = !is_ga100 && !is_before_ampere(&architecture);
        let memory_clocks = listed_memory_clocks(&device);
        let memory_control = MemoryClockControl::detect(&device, &architecture, &memory_clocks);
        let descriptor = Descriptor {
            id: DeviceId::new(device.uuid()?),
            name: device.name()?,
            kind: DeviceKind::Gpu,
            backend: "nvml".to_owned(),
            parent,
            memory: device
                .memory_info()
                .ok()
                .map(|info| Bytes::new(info.total as f64)),
            sensors: sensors(
                nvml,
                &device,
                power_is_averaged,
                short_window(&architecture, is_ga100),
            ),
            knobs: knobs(nvml, &device, &architecture, memory_control, memory_clocks),
        };
        Ok(Self {
            nvml,
            device,
            descriptor,
            architecture,
            memory_control,
            power_is_averaged,
            last_sample: 0,
            wall_offset: None,
            throttle_fields: nvml
                .sys_driver_version()
                .ok()
                .and_then(|version| ThrottleFields::of_driver(&version)),
            unit_monitor: UnitMonitor::default(),
            index,
            is_lost,
        })
    }
}
