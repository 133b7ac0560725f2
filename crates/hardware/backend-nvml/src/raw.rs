//! NVML calls that the crate `nvml-wrapper` lacks or gets wrong: it returns at most 128 clocks, cannot read a
//! field for the memory alone, and drains the driver's buffer in two calls instead of one.
#![allow(unsafe_code)]

use std::mem::zeroed;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings::{
    nvmlFieldValue_t, nvmlReturn_enum_NVML_ERROR_NOT_FOUND, nvmlReturn_enum_NVML_SUCCESS,
    nvmlSample_t, nvmlSamplingType_enum_NVML_TOTAL_POWER_SAMPLES,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
};

/// The scope id with which NVML's fields describe the whole device.
pub const DEVICE_SCOPE: u32 = 0;
/// The scope id with which NVML's power fields measure the memory alone.
pub const MEMORY_SCOPE: u32 = 2;

/// Reads an NVML power field in milliwatts. `scope` selects the part of the device, such as its memory.
pub fn power_field(
    nvml: &Nvml,
    device: &Device<'_>,
    id: u32,
    scope: u32,
) -> Result<u32, NvmlError> {
    let value = field_value(nvml, device, id, scope)?;
    if value.valueType != nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT {
        return Err(NvmlError::NotSupported);
    }
    // SAFETY: the value type tells which member of the union is valid.
    Ok(unsafe { value.value.uiVal })
}

/// Reads an NVML field whose value is a 64-bit number, such as a time in nanoseconds.
pub fn long_field(nvml: &Nvml, device: &Device<'_>, id: u32, scope: u32) -> Result<u64, NvmlError> {
    let value = field_value(nvml, device, id, scope)?;
    if value.valueType != nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG {
        return Err(NvmlError::NotSupported);
    }
    // SAFETY: the value type tells which member of the union is valid.
    Ok(unsafe { value.value.ullVal })
}

/// Reads an NVML field of any type.
fn field_value(
    nvml: &Nvml,
    device: &Device<'_>,
    id: u32,
    scope: u32,
) -> Result<nvmlFieldValue_t, NvmlError> {
    let call = nvml.lib().nvmlDeviceGetFieldValues.as_ref();
    let call = call.map_err(|_| NvmlError::FunctionNotFound)?;
    // SAFETY: a field value is plain data; zero is a valid value of each member.
    let mut value: nvmlFieldValue_t = unsafe { zeroed() };
    (value.fieldId, value.scopeId) = (id, scope);
    // SAFETY: the handle belongs to this library, and there is room for one value.
    let result = unsafe { call(device.handle(), 1, &mut value) };
    for code in [result, value.nvmlReturn] {
        if code != nvmlReturn_enum_NVML_SUCCESS {
            return Err(code.into());
        }
    }
    Ok(value)
}

/// Reads the driver's power samples since a wall-clock time, as pairs of time in microseconds and power in
/// milliwatts.
pub fn power_samples(
    nvml: &Nvml,
    device: &Device<'_>,
    last_seen: u64,
) -> Result<Vec<(u64, u32)>, NvmlError> {
    /// More samples than the driver's buffer contains.
    const MAX_COUNT: usize = 200;
    let call = nvml.lib().nvmlDeviceGetSamples.as_ref();
    let call = call.map_err(|_| NvmlError::FunctionNotFound)?;
    // SAFETY: samples are plain data; zero is a valid value of each member.
    let mut samples: Vec<nvmlSample_t> = vec![unsafe { zeroed() }; MAX_COUNT];
    let (mut kind, mut count) = (0, MAX_COUNT as u32);
    // SAFETY: the handle belongs to this library, and there is room for as many samples as `count` says.
    let result = unsafe {
        call(
            device.handle(),
            nvmlSamplingType_enum_NVML_TOTAL_POWER_SAMPLES,
            last_seen,
            &mut kind,
            &mut count,
            samples.as_mut_ptr(),
        )
    };
    if result == nvmlReturn_enum_NVML_ERROR_NOT_FOUND {
        return Ok(Vec::new());
    }
    if result != nvmlReturn_enum_NVML_SUCCESS {
        return Err(result.into());
    }
    if kind != nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT {
        return Err(NvmlError::NotSupported);
    }
    samples.truncate(count as usize);
    // The driver may count more samples than it returns: the rest have no time.
    samples.retain(|sample| sample.timeStamp > 0);
    // SAFETY: the value type tells which member of the union is valid.
    let plain = samples
        .iter()
        .map(|sample| (sample.timeStamp, unsafe { sample.sampleValue.uiVal }));
    Ok(plain.collect())
}

/// The core clocks that are supported together with a memory clock, in MHz.
pub fn graphics_clocks(nvml: &Nvml, device: &Device<'_>, memory_clock: u32) -> Vec<u32> {
    /// More clocks than any GPU supports.
    const MAX_COUNT: usize = 4096;
    let mut clocks = vec![0; MAX_COUNT];
    let mut count = MAX_COUNT as u32;
    let Ok(call) = nvml.lib().nvmlDeviceGetSupportedGraphicsClocks.as_ref() else {
        return Vec::new();
    };
    // SAFETY: the handle belongs to this library, and there is room for as many clocks as `count` says.
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
