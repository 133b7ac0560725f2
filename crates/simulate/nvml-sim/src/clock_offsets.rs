//! NVML functions for the offset of the memory clock, the way in which boards without locked memory clocks set it.
//!
//! Only the memory clock of the highest performance state has an offset here; a real board also has offsets of the core
//! clock and of other states.

use std::ffi::{c_int, c_uint};

use nvml::{nvmlClockOffset_v1_t, nvmlDevice_t};
use nvml_wrapper_sys::bindings as nvml;
use sweetspot_quantity::Megahertz;
use sweetspot_sim::GpuProfile;

use crate::clocks::{GRAPHICS, MEMORY, SM, VIDEO, to_megahertz};
use crate::support::*;

/// NVML's code for the highest performance state.
const HIGHEST_STATE: c_uint = nvml::nvmlPStates_enum_NVML_PSTATE_0;
/// The lowest performance state that NVML knows.
const LOWEST_STATE: c_uint = nvml::nvmlPStates_enum_NVML_PSTATE_15;

/// NVML counts a memory offset in transfers, of which double data rate memory makes two in a clock cycle: an offset of
/// 2 MHz changes the clock by 1 MHz. NVIDIA does not document it; users of GeForce boards, also of the Turing
/// generation, have measured it (LACT, issue 418).
const TRANSFERS_PER_CYCLE: f64 = 2.0;

/// The NVML offset that shifts the memory clock by this much.
fn to_offset(shift: Megahertz) -> c_int {
    (shift.get() * TRANSFERS_PER_CYCLE).round() as c_int
}

/// The smallest and the largest offset of the memory clock; an error if the board has no offsets.
fn offset_range(profile: &GpuProfile) -> Result<(c_int, c_int), u32> {
    let memory = &profile.memory;
    match memory.clocks.as_slice() {
        [lowest, .., highest] if memory.clock_offsets => Ok((
            to_offset(*lowest - memory.default),
            to_offset(*highest - memory.default),
        )),
        _ => Err(NOT_SUPPORTED),
    }
}

/// Reads a client's request for an offset and returns it with the range of offsets that the board supports.
fn read_request(
    device: nvmlDevice_t,
    request: *const nvmlClockOffset_v1_t,
) -> Result<(nvmlClockOffset_v1_t, c_int, c_int), u32> {
    if request.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the pointer is not null, and by NVML's contract the structure begins with its version.
    let version = unsafe { (&raw const (*request).version).read() };
    check_version::<nvmlClockOffset_v1_t>(version, 1)?;
    // SAFETY: a structure of this version has this layout.
    let request = unsafe { request.read() };
    let range = offset_range(gpu(device)?.profile());
    match (request.type_, request.pstate) {
        (MEMORY, HIGHEST_STATE) => range.map(|(min, max)| (request, min, max)),
        (GRAPHICS | SM | VIDEO | MEMORY, HIGHEST_STATE..=LOWEST_STATE) => Err(NOT_SUPPORTED),
        _ => Err(INVALID_ARGUMENT),
    }
}

exports! {
    fn nvmlDeviceGetClockOffsets(device: nvmlDevice_t, info: *mut nvmlClockOffset_v1_t) {
        let (request, min, max) = read_request(device, info)?;
        let shift = read_gpu(device, |live| live.memory_clock_offset())?;
        write_value(info, nvmlClockOffset_v1_t {
            clockOffsetMHz: to_offset(shift),
            minClockOffsetMHz: min,
            maxClockOffsetMHz: max,
            ..request
        })
    }
    fn nvmlDeviceSetClockOffsets(device: nvmlDevice_t, info: *mut nvmlClockOffset_v1_t) {
        let (request, min, max) = read_request(device, info)?;
        let offset = request.clockOffsetMHz;
        if !(min..=max).contains(&offset) {
            return Err(INVALID_ARGUMENT);
        }
        let shift = Megahertz::new(f64::from(offset) / TRANSFERS_PER_CYCLE);
        write_gpu(device, &format!("memory_clock_offset {offset} MHz"), |live| live.set_memory_clock_offset(shift))
    }
    fn nvmlDeviceGetMinMaxClockOfPState(device: nvmlDevice_t, kind: c_uint, state: c_uint, min: *mut c_uint, max: *mut c_uint) {
        let profile = gpu(device)?.profile();
        let (lowest, highest) = match (kind, state) {
            (GRAPHICS | SM | VIDEO, HIGHEST_STATE) => (profile.core.min, profile.core.max),
            // An offset does not change the clock of the state.
            (MEMORY, HIGHEST_STATE) => (profile.memory.default, profile.memory.default),
            (GRAPHICS | SM | VIDEO | MEMORY, HIGHEST_STATE..=LOWEST_STATE) => return Err(NOT_SUPPORTED),
            _ => return Err(INVALID_ARGUMENT),
        };
        if min.is_null() && max.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        for (target, clock) in [(min, lowest), (max, highest)] {
            if !target.is_null() {
                write_value(target, to_megahertz(clock))?;
            }
        }
        Ok(())
    }
}
