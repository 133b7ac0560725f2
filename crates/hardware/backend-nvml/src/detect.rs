//! Which GPUs there are and what each can do.

use std::ffi::OsStr;

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::DeviceArchitecture;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use sweetspot_device::{
    Descriptor, DeviceId, DeviceKind, Domain, Host, HostDevice, HostError, KnobDescriptor,
    KnobRange, OpenError, Scope, SensorDescriptor, SensorKind,
};
use sweetspot_quantity::{Bytes, Megahertz, Seconds, Watts};

use crate::error::{failed, no_driver, no_library, of_open};
use crate::raw::{MEMORY_SCOPE, graphics_clocks, power_field, power_samples};

/// Logs which library the system's loader found, for a name may mean many files.
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

/// The name by which every client loads it.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Field ids of NVML that no driver has renumbered.
pub(crate) const POWER_AVERAGE: FieldId = FieldId(185);
pub(crate) const POWER_INSTANT: FieldId = FieldId(186);

/// NVML, opened once for the life of the process.
#[derive(Clone, Copy, Debug)]
pub struct Nvml {
    nvml: &'static nvml_wrapper::Nvml,
}

/// A GPU, or a slice of one.
#[derive(Debug)]
pub struct NvmlGpu {
    pub(crate) nvml: &'static nvml_wrapper::Nvml,
    pub(crate) device: Device<'static>,
    pub(crate) descriptor: Descriptor,
    pub(crate) architecture: DeviceArchitecture,
    pub(crate) power_is_averaged: bool,
    pub(crate) last_sample: u64,
    pub(crate) wall_offset: Option<i128>,
    index: u32,
    is_lost: bool,
}

impl Nvml {
    /// Loads the library: the usual one, or the one at a path.
    pub fn open(library: Option<&OsStr>) -> Result<Self, HostError> {
        let library = library.unwrap_or(OsStr::new(LIBRARY));
        let nvml = nvml_wrapper::Nvml::builder().lib_path(library).init();
        match &nvml {
            Ok(nvml) => log_opened(library, nvml),
            Err(error) => tracing::warn!(?library, %error, "NVML library not opened"),
        }
        match nvml {
            Ok(nvml) => Ok(Self {
                nvml: Box::leak(Box::new(nvml)),
            }),
            Err(NvmlError::DriverNotLoaded) => Err(no_driver()),
            Err(error) => Err(no_library(&library.to_string_lossy(), &error.to_string())),
        }
    }
}

impl Host for Nvml {
    fn driver_version(&self) -> Result<String, HostError> {
        self.nvml
            .sys_driver_version()
            .map_err(failed("tell the driver's version"))
    }

    fn list(&self) -> Result<Vec<Box<dyn HostDevice>>, HostError> {
        let count = self.nvml.device_count().map_err(failed("count the GPUs"))?;
        let mut gpus: Vec<Box<dyn HostDevice>> = Vec::new();
        for index in 0..count {
            let what = || failed(format!("open GPU {index}"));
            let device = self.nvml.device_by_index(index).map_err(what())?;
            let slices: Vec<_> = (0..device.mig_device_count().unwrap_or(0))
                .filter_map(|slice| device.mig_device_by_index(slice).ok())
                .collect();
            let gpu = NvmlGpu::open(self.nvml, device, index, None).map_err(what())?;
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
        let gpu = open().map_err(|error| of_open(id, error))?;
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
            device: device.map_err(|error| of_open(id, error))?,
            descriptor: self.descriptor.clone(),
            architecture: self.architecture.clone(),
            power_is_averaged: self.power_is_averaged,
            last_sample: 0,
            wall_offset: None,
            index: self.index,
            is_lost: self.is_lost,
        }))
    }

    fn architecture(&self) -> String {
        format!("{:?}", self.architecture)
    }

    fn persistence(&self) -> Option<bool> {
        self.device.is_in_persistent_mode().ok()
    }

    fn power_is_averaged(&self) -> bool {
        self.power_is_averaged
    }
}

impl NvmlGpu {
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
        // NVIDIA documents: a mean over one second on Ampere (except GA100) or newer.
        let power_is_averaged = !is_ga100 && !is_before_ampere(&architecture);
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
            knobs: knobs(nvml, &device, &architecture),
        };
        Ok(Self {
            nvml,
            device,
            descriptor,
            architecture,
            power_is_averaged,
            last_sample: 0,
            wall_offset: None,
            index,
            is_lost,
        })
    }
}

pub(crate) fn is_before_ampere(architecture: &DeviceArchitecture) -> bool {
    use DeviceArchitecture::{Kepler, Maxwell, Pascal, Turing, Volta};
    matches!(architecture, Kepler | Maxwell | Pascal | Volta | Turing)
}

/// Update period and window of the short-window power sensor, as published studies and an H200 have it.
fn short_window(architecture: &DeviceArchitecture, is_ga100: bool) -> Option<(Seconds, Seconds)> {
    use DeviceArchitecture::{Ada, Ampere, Hopper, Maxwell, Pascal, Turing, Volta};
    let (period, window) = match architecture {
        Maxwell | Pascal | Volta => (0.020, 0.010),
        Ampere if is_ga100 => (0.100, 0.025),
        Hopper => (0.100, 0.025),
        Turing | Ampere | Ada => (0.100, 0.100),
        _ => return None,
    };
    Some((Seconds::new(period), Seconds::new(window)))
}

fn sensors(
    nvml: &nvml_wrapper::Nvml,
    device: &Device<'_>,
    power_is_averaged: bool,
    short_window: Option<(Seconds, Seconds)>,
) -> Vec<SensorDescriptor> {
    let mut sensors = Vec::new();
    let mut add = |there: bool, kind, source: &str, window: Option<f64>| {
        if there {
            sensors.push(SensorDescriptor {
                kind,
                scope: match kind {
                    SensorKind::MemoryPower => Scope::Memory,
                    _ => Scope::Device,
                },
                source: source.to_owned(),
                update_period: short_window
                    .filter(|_| kind == SensorKind::InstantPower)
                    .map(|(period, _)| period),
                window: match kind {
                    SensorKind::InstantPower => short_window.map(|(_, window)| window),
                    _ => window.map(Seconds::new),
                },
            });
        }
    };
    let field = |id| {
        let values = device.field_values_for(&[id]);
        values.is_ok_and(|values| {
            let value = values.into_iter().next();
            value.is_some_and(|value| value.is_ok_and(|sample| sample.value.is_ok()))
        })
    };
    let usage = device.power_usage().is_ok();
    add(
        device.total_energy_consumption().is_ok(),
        SensorKind::EnergyCounter,
        "nvmlDeviceGetTotalEnergyConsumption",
        None,
    );
    add(
        usage && power_is_averaged,
        SensorKind::AveragePower,
        "nvmlDeviceGetPowerUsage",
        Some(1.0),
    );
    if power_is_averaged {
        add(
            field(POWER_INSTANT),
            SensorKind::InstantPower,
            "NVML_FI_DEV_POWER_INSTANT",
            None,
        );
    } else {
        add(
            usage,
            SensorKind::InstantPower,
            "nvmlDeviceGetPowerUsage",
            None,
        );
        add(
            field(POWER_AVERAGE),
            SensorKind::AveragePower,
            "NVML_FI_DEV_POWER_AVERAGE",
            Some(1.0),
        );
    }
    let buffered = power_samples(nvml, device, 0).is_ok();
    add(
        buffered,
        SensorKind::BufferedPower,
        "nvmlDeviceGetSamples(NVML_TOTAL_POWER_SAMPLES)",
        None,
    );
    add(
        power_field(nvml, device, POWER_AVERAGE.0, MEMORY_SCOPE).is_ok(),
        SensorKind::MemoryPower,
        "NVML_FI_DEV_POWER_AVERAGE, memory scope",
        Some(1.0),
    );
    use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
    add(
        device.temperature(TemperatureSensor::Gpu).is_ok(),
        SensorKind::Temperature,
        "nvmlDeviceGetTemperature",
        None,
    );
    add(
        device.clock_info(Clock::SM).is_ok(),
        SensorKind::CoreClock,
        "nvmlDeviceGetClockInfo(SM)",
        None,
    );
    add(
        device.clock_info(Clock::Memory).is_ok(),
        SensorKind::MemoryClock,
        "nvmlDeviceGetClockInfo(MEM)",
        None,
    );
    add(
        device.utilization_rates().is_ok(),
        SensorKind::Utilisation,
        "nvmlDeviceGetUtilizationRates",
        None,
    );
    add(
        device.current_throttle_reasons().is_ok(),
        SensorKind::ThrottleReasons,
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        None,
    );
    sensors
}

fn knobs(
    nvml: &nvml_wrapper::Nvml,
    device: &Device<'_>,
    architecture: &DeviceArchitecture,
) -> Vec<KnobDescriptor> {
    let mut knobs = Vec::new();
    let watts = |milliwatts: u32| Watts::new(f64::from(milliwatts) / 1e3);
    if let (Ok(limits), Ok(default)) = (
        device.power_management_limit_constraints(),
        device.power_management_limit_default(),
    ) {
        knobs.push(KnobDescriptor::PowerCap(KnobRange {
            domain: Domain::Range {
                min: watts(limits.min_limit),
                max: watts(limits.max_limit),
            },
            default: watts(default),
            readable: true,
        }));
    }
    let ascending = |clocks: Vec<u32>| {
        let mut clocks: Vec<f64> = clocks.into_iter().map(f64::from).collect();
        clocks.sort_by(f64::total_cmp);
        clocks.dedup();
        clocks.into_iter().map(Megahertz::new).collect::<Vec<_>>()
    };
    let memory = device
        .supported_memory_clocks()
        .map(ascending)
        .unwrap_or_default();
    let Some(fastest) = memory.last().copied() else {
        return knobs;
    };
    let cores = ascending(graphics_clocks(nvml, device, fastest.get() as u32));
    if let Some(highest) = cores.last().copied() {
        knobs.push(KnobDescriptor::CoreClock(KnobRange {
            domain: Domain::Levels(cores),
            default: highest,
            readable: !locks_cores(architecture),
        }));
    }
    // Before Ampere memory clocks cannot be locked; with application clocks they can be set.
    if !is_before_ampere(architecture) || !locks_cores(architecture) {
        knobs.push(KnobDescriptor::MemoryClock(KnobRange {
            domain: Domain::Levels(memory),
            default: fastest,
            readable: !locks_cores(architecture),
        }));
    }
    knobs
}

/// Core clocks can be locked from Volta on; older boards have application clocks.
pub(crate) fn locks_cores(architecture: &DeviceArchitecture) -> bool {
    use DeviceArchitecture::{Kepler, Maxwell, Pascal};
    !matches!(architecture, Kepler | Maxwell | Pascal)
}
