//! Clocks: what they are, what they may be, what locks them.

use std::ffi::{c_uint, c_ulonglong};

use nvml::nvmlDevice_t;
use nvml_wrapper_sys::bindings as nvml;
use sweetspot_quantity::Megahertz;
use sweetspot_sim::{Generation, GpuProfile};
use sweetspot_sim_host::{LiveGpu, Throttle};

use crate::support::*;

const GRAPHICS: c_uint = nvml::nvmlClockType_enum_NVML_CLOCK_GRAPHICS;
const SM: c_uint = nvml::nvmlClockType_enum_NVML_CLOCK_SM;
const MEMORY: c_uint = nvml::nvmlClockType_enum_NVML_CLOCK_MEM;
const VIDEO: c_uint = nvml::nvmlClockType_enum_NVML_CLOCK_VIDEO;

fn whole(clock: Megahertz) -> c_uint {
    clock.get().round() as c_uint
}

fn now(live: &LiveGpu<'_>, kind: c_uint) -> Result<c_uint, u32> {
    match kind {
        GRAPHICS | SM | VIDEO => Ok(whole(live.core_clock())),
        MEMORY => Ok(whole(live.memory_clock())),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn highest(profile: &GpuProfile, kind: c_uint) -> Result<c_uint, u32> {
    match kind {
        GRAPHICS | SM | VIDEO => Ok(whole(profile.core.max)),
        MEMORY => Ok(profile
            .memory
            .clocks
            .last()
            .map_or(0, |clock| whole(*clock))),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Core clocks can be locked from Volta on.
fn locks_cores(generation: Generation) -> bool {
    !matches!(generation, Generation::Maxwell | Generation::Pascal)
}

/// Memory clocks can be locked from Ampere on.
fn locks_memory(generation: Generation) -> bool {
    locks_cores(generation) && !matches!(generation, Generation::Volta | Generation::Turing)
}

/// A range of clocks with both ends among those offered, as the driver rounds them.
fn range(levels: &[Megahertz], low: c_uint, high: c_uint) -> Result<(Megahertz, Megahertz), u32> {
    let (first, last) = (
        levels.first().ok_or(NOT_SUPPORTED)?,
        levels.last().ok_or(NOT_SUPPORTED)?,
    );
    let offered = whole(*first)..=whole(*last);
    if low > high || !offered.contains(&low) || !offered.contains(&high) {
        return Err(INVALID_ARGUMENT);
    }
    let at_or_below = |clock: c_uint| {
        let below = levels.iter().rev().find(|level| whole(**level) <= clock);
        below.copied().unwrap_or(*first)
    };
    Ok((at_or_below(low), at_or_below(high)))
}

fn throttle_reasons(device: nvmlDevice_t) -> Result<c_ulonglong, u32> {
    let reason = match look(device, |live| live.throttle())? {
        Throttle::None => nvml::nvmlClocksEventReasonNone,
        Throttle::Idle => nvml::nvmlClocksEventReasonGpuIdle,
        Throttle::PowerCap => nvml::nvmlClocksEventReasonSwPowerCap,
        Throttle::ClockSetting => nvml::nvmlClocksEventReasonApplicationsClocksSetting,
    };
    Ok(reason.into())
}

const ALL_REASONS: c_ulonglong = 0x1ff;

/// Descending, as the driver lists them.
fn listed(levels: &[Megahertz]) -> Vec<c_uint> {
    levels.iter().rev().map(|level| whole(*level)).collect()
}

exports! {
    fn nvmlDeviceGetClockInfo(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        put(clock, look(device, |live| now(live, kind))??)
    }
    fn nvmlDeviceGetClock(device: nvmlDevice_t, kind: c_uint, id: c_uint, clock: *mut c_uint) {
        match id {
            nvml::nvmlClockId_enum_NVML_CLOCK_ID_CURRENT => put(clock, look(device, |live| now(live, kind))??),
            nvml::nvmlClockId_enum_NVML_CLOCK_ID_CUSTOMER_BOOST_MAX => put(clock, highest(gpu(device)?.profile(), kind)?),
            _ => Err(NOT_SUPPORTED),
        }
    }
    fn nvmlDeviceGetMaxClockInfo(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        put(clock, highest(gpu(device)?.profile(), kind)?)
    }
    fn nvmlDeviceGetSupportedMemoryClocks(device: nvmlDevice_t, count: *mut c_uint, clocks: *mut c_uint) {
        put_list(count, clocks, &listed(&gpu(device)?.profile().memory.clocks))
    }
    fn nvmlDeviceGetSupportedGraphicsClocks(device: nvmlDevice_t, memory: c_uint, count: *mut c_uint, clocks: *mut c_uint) {
        let profile = gpu(device)?.profile();
        if !profile.memory.clocks.iter().any(|clock| whole(*clock) == memory) {
            return Err(NOT_FOUND);
        }
        put_list(count, clocks, &listed(&profile.core.levels()))
    }
    fn nvmlDeviceSetGpuLockedClocks(device: nvmlDevice_t, low: c_uint, high: c_uint) {
        let profile = gpu(device)?.profile();
        if !locks_cores(profile.sensors) {
            return Err(NOT_SUPPORTED);
        }
        let range = range(&profile.core.levels(), low, high)?;
        change(device, &format!("lock_core_clock {low} {high} MHz"), |live| live.lock_core_clock(Some(range)))
    }
    fn nvmlDeviceResetGpuLockedClocks(device: nvmlDevice_t) {
        if !locks_cores(gpu(device)?.profile().sensors) {
            return Err(NOT_SUPPORTED);
        }
        change(device, "reset_core_clock", |live| live.lock_core_clock(None))
    }
    fn nvmlDeviceSetMemoryLockedClocks(device: nvmlDevice_t, low: c_uint, high: c_uint) {
        let profile = gpu(device)?.profile();
        if !locks_memory(profile.sensors) {
            return Err(NOT_SUPPORTED);
        }
        let range = range(&profile.memory.clocks, low, high)?;
        change(device, &format!("lock_memory_clock {low} {high} MHz"), |live| live.lock_memory_clock(Some(range)))
    }
    fn nvmlDeviceResetMemoryLockedClocks(device: nvmlDevice_t) {
        if !locks_memory(gpu(device)?.profile().sensors) {
            return Err(NOT_SUPPORTED);
        }
        change(device, "reset_memory_clock", |live| live.lock_memory_clock(None))
    }
    fn nvmlDeviceSetApplicationsClocks(device: nvmlDevice_t, memory: c_uint, core: c_uint) {
        let profile = gpu(device)?.profile();
        let offered = |levels: &[Megahertz], clock: c_uint| levels.iter().copied().find(|level| whole(*level) == clock);
        let (memory_clock, core_clock) = offered(&profile.memory.clocks, memory)
            .zip(offered(&profile.core.levels(), core))
            .ok_or(INVALID_ARGUMENT)?;
        change(device, &format!("application_clocks {memory} {core} MHz"), |live| {
            live.set_application_clocks(Some((memory_clock, core_clock)))
        })
    }
    fn nvmlDeviceResetApplicationsClocks(device: nvmlDevice_t) {
        change(device, "reset_application_clocks", |live| live.set_application_clocks(None))
    }
    fn nvmlDeviceGetApplicationsClock(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        let (memory, core) = look(device, |live| live.application_clocks())?;
        match kind {
            GRAPHICS | SM => put(clock, whole(core)),
            MEMORY => put(clock, whole(memory)),
            _ => Err(NOT_SUPPORTED),
        }
    }
    fn nvmlDeviceGetDefaultApplicationsClock(device: nvmlDevice_t, kind: c_uint, clock: *mut c_uint) {
        let profile = gpu(device)?.profile();
        match kind {
            GRAPHICS | SM => put(clock, whole(profile.core.default)),
            MEMORY => put(clock, whole(profile.memory.default)),
            _ => Err(NOT_SUPPORTED),
        }
    }
    fn nvmlDeviceGetCurrentClocksThrottleReasons(device: nvmlDevice_t, reasons: *mut c_ulonglong) {
        put(reasons, throttle_reasons(device)?)
    }
    fn nvmlDeviceGetCurrentClocksEventReasons(device: nvmlDevice_t, reasons: *mut c_ulonglong) {
        put(reasons, throttle_reasons(device)?)
    }
    fn nvmlDeviceGetSupportedClocksThrottleReasons(device: nvmlDevice_t, reasons: *mut c_ulonglong) {
        gpu(device)?;
        put(reasons, ALL_REASONS)
    }
    fn nvmlDeviceGetSupportedClocksEventReasons(device: nvmlDevice_t, reasons: *mut c_ulonglong) {
        gpu(device)?;
        put(reasons, ALL_REASONS)
    }
}
