//! NVML functions for clocks: present values, supported values and locks.

use std::ffi::{c_uint, c_ulonglong};

use nvml::nvmlDevice_t;
use nvml_wrapper_sys::bindings as nvml;
use sweetspot_quantity::Megahertz;
use sweetspot_sim::{Generation, GpuProfile};
use sweetspot_sim_host::{LiveGpu, Throttle};

use crate::support::*;

/// NVML's code for the graphics clock.
pub(crate) const GRAPHICS: c_uint = nvml::nvmlClockType_enum_NVML_CLOCK_GRAPHICS;
/// NVML's code for the clock of the multiprocessors, which is the graphics clock.
pub(crate) const SM: c_uint = nvml::nvmlClockType_enum_NVML_CLOCK_SM;
/// NVML's code for the memory clock.
pub(crate) const MEMORY: c_uint = nvml::nvmlClockType_enum_NVML_CLOCK_MEM;
/// NVML's code for the video clock, which is simulated as the graphics clock.
pub(crate) const VIDEO: c_uint = nvml::nvmlClockType_enum_NVML_CLOCK_VIDEO;

/// Rounds a clock to whole megahertz.
pub(crate) fn to_megahertz(clock: Megahertz) -> c_uint {
    clock.get().round() as c_uint
}

/// The present clock of this kind, in megahertz.
fn current_clock(live: &LiveGpu<'_>, kind: c_uint) -> Result<c_uint, u32> {
    match kind {
        GRAPHICS | SM | VIDEO => Ok(to_megahertz(live.core_clock())),
        MEMORY => Ok(to_megahertz(live.memory_clock())),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// The highest clock of this kind that the GPU supports, in megahertz.
fn max_clock(profile: &GpuProfile, kind: c_uint) -> Result<c_uint, u32> {
    match kind {
        GRAPHICS | SM | VIDEO => Ok(to_megahertz(profile.core.max)),
        MEMORY => Ok(listed_memory_clocks(profile)
            .last()
            .map_or(0, |clock| to_megahertz(*clock))),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// The memory clocks that the driver lists, in ascending order: one for each performance state. Clocks that only an
/// offset reaches are not listed.
fn listed_memory_clocks(profile: &GpuProfile) -> &[Megahertz] {
    match profile.memory.clock_offsets {
        true => std::slice::from_ref(&profile.memory.default),
        false => &profile.memory.clocks,
    }
}

/// Whether a generation can lock the core clock: Volta and newer ones can.
fn can_lock_core_clock(generation: Generation) -> bool {
    !matches!(generation, Generation::Maxwell | Generation::Pascal)
}

/// Whether a generation can lock the memory clock: Ampere and newer ones can.
fn can_lock_memory_clock(generation: Generation) -> bool {
    can_lock_core_clock(generation) && !matches!(generation, Generation::Volta | Generation::Turing)
}

/// The range of supported clocks to which a requested lock is rounded, as the real driver does.
fn lock_range(
    levels: &[Megahertz],
    low: c_uint,
    high: c_uint,
) -> Result<(Megahertz, Megahertz), u32> {
    let (first, last) = (
        levels.first().ok_or(NOT_SUPPORTED)?,
        levels.last().ok_or(NOT_SUPPORTED)?,
    );
    let offered = to_megahertz(*first)..=to_megahertz(*last);
    if low > high || !offered.contains(&low) || !offered.contains(&high) {
        return Err(INVALID_ARGUMENT);
    }
    let at_or_below = |clock: c_uint| {
        let below = levels
            .iter()
            .rev()
            .find(|level| to_megahertz(**level) <= clock);
        below.copied().unwrap_or(*first)
    };
    Ok((at_or_below(low), at_or_below(high)))
}

/// NVML's bits for the reasons why the GPU does not run at its highest clock.
fn throttle_reasons(device: nvmlDevice_t) -> Result<c_ulonglong, u32> {
    let reason = match read_gpu(device, |live| live.throttle())? {
        Throttle::None => nvml::nvmlClocksEventReasonNone,
        Throttle::Idle => nvml::nvmlClocksEventReasonGpuIdle,
        Throttle::PowerCap => nvml::nvmlClocksEventReasonSwPowerCap,
        Throttle::ClockSetting => nvml::nvmlClocksEventReasonApplicationsClocksSetting,
    };
    Ok(reason.into())
}

/// NVML's bits for all throttle reasons.
const ALL_REASONS: c_ulonglong = 0x1ff;

/// The clocks in whole megahertz and descending order, as the driver lists them.
fn descending(levels: &[Megahertz]) -> Vec<c_uint> {
    levels
        .iter()
        .rev()
        .map(|level| to_megahertz(*level))
        .collect()
}

exports! {
    fn nvmlDeviceGetClockInfo(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        write_value(clock, read_gpu(device, |live| current_clock(live, kind))??)
    }
    fn nvmlDeviceGetClock(device: nvmlDevice_t, kind: c_uint, id: c_uint, clock: *mut c_uint) {
        match id {
            nvml::nvmlClockId_enum_NVML_CLOCK_ID_CURRENT => write_value(clock, read_gpu(device, |live| current_clock(live, kind))??),
            nvml::nvmlClockId_enum_NVML_CLOCK_ID_CUSTOMER_BOOST_MAX => write_value(clock, max_clock(gpu(device)?.profile(), kind)?),
            _ => Err(NOT_SUPPORTED),
        }
    }
    fn nvmlDeviceGetMaxClockInfo(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        write_value(clock, max_clock(gpu(device)?.profile(), kind)?)
    }
    fn nvmlDeviceGetSupportedMemoryClocks(device: nvmlDevice_t, count: *mut c_uint, clocks: *mut c_uint) {
        write_list(count, clocks, &descending(listed_memory_clocks(gpu(device)?.profile())))
    }
    fn nvmlDeviceGetSupportedGraphicsClocks(device: nvmlDevice_t, memory: c_uint, count: *mut c_uint, clocks: *mut c_uint) {
        let profile = gpu(device)?.profile();
        if !listed_memory_clocks(profile).iter().any(|clock| to_megahertz(*clock) == memory) {
            return Err(NOT_FOUND);
        }
        write_list(count, clocks, &descending(&profile.core.levels()))
    }
    fn nvmlDeviceSetGpuLockedClocks(device: nvmlDevice_t, low: c_uint, high: c_uint) {
        let profile = gpu(device)?.profile();
        if !can_lock_core_clock(profile.sensors) {
            return Err(NOT_SUPPORTED);
        }
        let range = lock_range(&profile.core.levels(), low, high)?;
        write_gpu(device, &format!("lock_core_clock {low} {high} MHz"), |live| live.lock_core_clock(Some(range)))
    }
    fn nvmlDeviceResetGpuLockedClocks(device: nvmlDevice_t) {
        if !can_lock_core_clock(gpu(device)?.profile().sensors) {
            return Err(NOT_SUPPORTED);
        }
        write_gpu(device, "reset_core_clock", |live| live.lock_core_clock(None))
    }
    fn nvmlDeviceSetMemoryLockedClocks(device: nvmlDevice_t, low: c_uint, high: c_uint) {
        let profile = gpu(device)?.profile();
        if !can_lock_memory_clock(profile.sensors) {
            return Err(NOT_SUPPORTED);
        }
        let range = lock_range(listed_memory_clocks(profile), low, high)?;
        write_gpu(device, &format!("lock_memory_clock {low} {high} MHz"), |live| live.lock_memory_clock(Some(range)))
    }
    fn nvmlDeviceResetMemoryLockedClocks(device: nvmlDevice_t) {
        if !can_lock_memory_clock(gpu(device)?.profile().sensors) {
            return Err(NOT_SUPPORTED);
        }
        write_gpu(device, "reset_memory_clock", |live| live.lock_memory_clock(None))
    }
    fn nvmlDeviceSetApplicationsClocks(device: nvmlDevice_t, memory: c_uint, core: c_uint) {
        let profile = gpu(device)?.profile();
        let find_clock = |levels: &[Megahertz], clock: c_uint| levels.iter().copied().find(|level| to_megahertz(*level) == clock);
        let (memory_clock, core_clock) = find_clock(listed_memory_clocks(profile), memory)
            .zip(find_clock(&profile.core.levels(), core))
            .ok_or(INVALID_ARGUMENT)?;
        write_gpu(device, &format!("application_clocks {memory} {core} MHz"), |live| {
            live.set_application_clocks(Some((memory_clock, core_clock)))
        })
    }
    fn nvmlDeviceResetApplicationsClocks(device: nvmlDevice_t) {
        write_gpu(device, "reset_application_clocks", |live| live.set_application_clocks(None))
    }
    fn nvmlDeviceGetApplicationsClock(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        let (memory, core) = read_gpu(device, |live| live.application_clocks())?;
        match kind {
            GRAPHICS | SM => write_value(clock, to_megahertz(core)),
            MEMORY => write_value(clock, to_megahertz(memory)),
            _ => Err(NOT_SUPPORTED),
        }
    }
    fn nvmlDeviceGetDefaultApplicationsClock(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        let profile = gpu(device)?.profile();
        match kind {
            GRAPHICS | SM => write_value(clock, to_megahertz(profile.core.default)),
            MEMORY => write_value(clock, to_megahertz(profile.memory.default)),
            _ => Err(NOT_SUPPORTED),
        }
    }
    fn nvmlDeviceGetCurrentClocksThrottleReasons(device: nvmlDevice_t, reasons: *mut c_ulonglong) {
        write_value(reasons, throttle_reasons(device)?)
    }
    fn nvmlDeviceGetCurrentClocksEventReasons(device: nvmlDevice_t, reasons: *mut c_ulonglong) {
        write_value(reasons, throttle_reasons(device)?)
    }
    fn nvmlDeviceGetSupportedClocksThrottleReasons(device: nvmlDevice_t, reasons: *mut c_ulonglong) {
        gpu(device)?;
        write_value(reasons, ALL_REASONS)
    }
    fn nvmlDeviceGetSupportedClocksEventReasons(device: nvmlDevice_t, reasons: *mut c_ulonglong) {
        gpu(device)?;
        write_value(reasons, ALL_REASONS)
    }
}
