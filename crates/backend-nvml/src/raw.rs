//! Calls that the wrapper gets wrong: it asks for 128 clocks and takes "too few" for an answer.
#![allow(unsafe_code)]

use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings::nvmlReturn_enum_NVML_SUCCESS;

/// The core clocks that go with a memory clock, as the driver lists them.
pub fn graphics_clocks(nvml: &Nvml, device: &Device<'_>, memory_clock: u32) -> Vec<u32> {
    const ROOM: usize = 4096;
    let mut clocks = vec![0; ROOM];
    let mut count = ROOM as u32;
    let Ok(call) = nvml.lib().nvmlDeviceGetSupportedGraphicsClocks.as_ref() else {
        return Vec::new();
    };
    // SAFETY: the handle is of this library, and there is room for as many clocks as `count` says.
    let result = unsafe {
        call(
            device.handle(),
            memory_clock,
            &mut count,
            clocks.as_mut_ptr(),
        )
    };
    if result != nvmlReturn_enum_NVML_SUCCESS {
        return Vec::new();
    }
    clocks.truncate(count as usize);
    clocks
}
