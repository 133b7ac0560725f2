//! Invalid arguments return the code that NVIDIA documents, and never crash.
#![allow(unsafe_code)]

mod common;

use std::ffi::{c_char, c_uint, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::OnceLock;

use common::*;

const V100: usize = 0;
const H200: usize = 1;
const DENIED: usize = 2;
const LOST: usize = 3;
const P100: usize = 4;

fn device(index: usize) -> Device {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(|| {
        host(&[
            ("v100", ""),
            ("h200", ""),
            (
                "v100",
                "[[fault]]\nkind = \"write-denied\"\nknob = \"power-cap\"",
            ),
            ("v100", "[[fault]]\nkind = \"lost\"\nafter = \"0 s\""),
            ("tesla_p100", ""),
        ]);
        // SAFETY: the function has no arguments.
        assert_eq!(unsafe { nvmlInit_v2() }, SUCCESS);
    });
    let mut device = null_mut();
    // SAFETY: there is room for a handle.
    let code = unsafe { nvmlDeviceGetHandleByIndex_v2(index as c_uint, &mut device) };
    assert_eq!(code, SUCCESS);
    device
}

fn cap(device: Device) -> (c_uint, c_uint) {
    let mut limit = 0;
    // SAFETY: there is room for a number.
    let code = unsafe { nvmlDeviceGetPowerManagementLimit(device, &mut limit) };
    (code, limit)
}

#[test]
fn null_pointers() {
    let gpu = device(H200);
    // SAFETY: a client may pass null by mistake.
    let codes = unsafe {
        [
            nvmlDeviceGetCount_v2(null_mut()),
            nvmlDeviceGetHandleByIndex_v2(0, null_mut()),
            nvmlDeviceGetHandleByUUID(null(), null_mut()),
            nvmlDeviceGetName(gpu, null_mut(), 96),
            nvmlDeviceGetUUID(gpu, null_mut(), 96),
            nvmlDeviceGetPowerUsage(gpu, null_mut()),
            nvmlDeviceGetTotalEnergyConsumption(gpu, null_mut()),
            nvmlDeviceGetPowerManagementLimit(gpu, null_mut()),
            nvmlDeviceGetPowerManagementLimitConstraints(gpu, null_mut(), null_mut()),
            nvmlDeviceGetClockInfo(gpu, 0, null_mut()),
            nvmlDeviceGetSupportedMemoryClocks(gpu, null_mut(), null_mut()),
            nvmlDeviceGetTemperature(gpu, 0, null_mut()),
            nvmlDeviceGetTemperatureV(gpu, null_mut()),
            nvmlDeviceGetMemoryInfo_v2(gpu, null_mut()),
            nvmlDeviceGetUtilizationRates(gpu, null_mut()),
            nvmlDeviceGetFieldValues(gpu, 1, null_mut()),
            nvmlDeviceGetSamples(gpu, 0, 0, null_mut(), null_mut(), null_mut()),
            nvmlSystemGetDriverVersion(null_mut(), 80),
        ]
    };
    for (place, code) in codes.into_iter().enumerate() {
        assert_eq!(code, INVALID_ARGUMENT, "call {place}");
    }
}

#[test]
fn invalid_handles_and_indices() {
    let good = device(V100);
    let mut found = null_mut();
    // SAFETY: there is room for a handle, and the names are zero-terminated.
    unsafe {
        for index in [5, 6, c_uint::MAX] {
            assert_eq!(
                nvmlDeviceGetHandleByIndex_v2(index, &mut found),
                INVALID_ARGUMENT
            );
        }
        for name in [c"", c"GPU-nothing", c"\xff\xfe"] {
            let code = nvmlDeviceGetHandleByUUID(name.as_ptr(), &mut found);
            assert!(
                [NOT_FOUND, INVALID_ARGUMENT].contains(&code),
                "{name:?}: {code}"
            );
        }
    }
    let address = good.addr();
    for wrong in [
        0,
        1,
        address - 16,
        address + 1,
        address + 16 * 5,
        usize::MAX,
    ] {
        let mut power = 7;
        // SAFETY: a handle is only a number.
        let code = unsafe { nvmlDeviceGetPowerUsage(without_provenance_mut(wrong), &mut power) };
        assert_eq!((code, power), (INVALID_ARGUMENT, 7), "{wrong:x}");
    }
}

#[test]
fn short_buffers() {
    let gpu = device(V100);
    let mut text = [0x55 as c_char; 96];
    // SAFETY: there is as much room as the count says.
    unsafe {
        for room in 0..5 {
            assert_eq!(
                nvmlDeviceGetName(gpu, text.as_mut_ptr(), room),
                INSUFFICIENT_SIZE
            );
            assert_eq!(
                nvmlDeviceGetUUID(gpu, text.as_mut_ptr(), room),
                INSUFFICIENT_SIZE
            );
        }
        assert!(text.iter().all(|byte| *byte == 0x55));
        assert_eq!(nvmlDeviceGetName(gpu, text.as_mut_ptr(), 96), SUCCESS);
    }
    let (mut count, mut memory) = (0, 0);
    // SAFETY: there is as much room as the count says.
    unsafe {
        let code = nvmlDeviceGetSupportedMemoryClocks(gpu, &mut count, null_mut());
        assert_eq!((code, count), (INSUFFICIENT_SIZE, 1));
        let code = nvmlDeviceGetSupportedMemoryClocks(gpu, &mut count, &mut memory);
        assert_eq!((code, count), (SUCCESS, 1));
        let mut clocks = [0; 4];
        count = 4;
        let code =
            nvmlDeviceGetSupportedGraphicsClocks(gpu, memory, &mut count, clocks.as_mut_ptr());
        assert_eq!((code, clocks), (INSUFFICIENT_SIZE, [0; 4]));
        assert!(count > 4);
        let code = nvmlDeviceGetSupportedGraphicsClocks(gpu, 1, &mut count, clocks.as_mut_ptr());
        assert_eq!(code, NOT_FOUND);
    }
}

#[repr(C)]
struct Memory {
    version: c_uint,
    numbers: [u64; 4],
}

#[repr(C)]
struct Temperature {
    version: c_uint,
    sensor: c_uint,
    degrees: i32,
}

#[test]
fn structures_of_other_versions() {
    let gpu = device(V100);
    let right = (size_of::<Memory>() | 2 << 24) as c_uint;
    for version in [0, 1, right - 1, right, right | 1 << 24] {
        let mut memory = Memory {
            version,
            numbers: [0; 4],
        };
        // SAFETY: the structure has NVML's layout.
        let code = unsafe { nvmlDeviceGetMemoryInfo_v2(gpu, (&raw mut memory).cast::<c_void>()) };
        if version == right {
            assert_eq!(code, SUCCESS);
            assert!(memory.numbers[0] > 0);
        } else {
            assert_eq!(code, ARGUMENT_VERSION_MISMATCH, "{version:x}");
            assert_eq!(memory.numbers, [0; 4]);
        }
    }
    let right = (size_of::<Temperature>() | 1 << 24) as c_uint;
    for (version, sensor, expected) in [
        (right, 0, SUCCESS),
        (right, 7, INVALID_ARGUMENT),
        (0, 0, ARGUMENT_VERSION_MISMATCH),
    ] {
        let mut place = Temperature {
            version,
            sensor,
            degrees: -1,
        };
        // SAFETY: the structure has NVML's layout.
        let code = unsafe { nvmlDeviceGetTemperatureV(gpu, (&raw mut place).cast::<c_void>()) };
        assert_eq!(code, expected, "{version:x}, {sensor}");
        assert_eq!(place.degrees == -1, expected != SUCCESS);
    }
}

#[test]
fn unsupported_values() {
    let (v100, h200, p100) = (device(V100), device(H200), device(P100));
    let before = cap(v100);
    let (mut number, mut kind) = (0, 0);
    // SAFETY: there is room for a number.
    unsafe {
        for limit in [0, 149_999, 300_001, c_uint::MAX] {
            assert_eq!(
                nvmlDeviceSetPowerManagementLimit(v100, limit),
                INVALID_ARGUMENT
            );
        }
        for (low, high) in [(0, 0), (2000, 2000), (1200, 1100)] {
            assert_eq!(
                nvmlDeviceSetGpuLockedClocks(v100, low, high),
                INVALID_ARGUMENT
            );
        }
        // These are not available on this generation.
        assert_eq!(
            nvmlDeviceSetMemoryLockedClocks(v100, 877, 877),
            NOT_SUPPORTED
        );
        assert_eq!(
            nvmlDeviceSetGpuLockedClocks(p100, 1000, 1000),
            NOT_SUPPORTED
        );
        assert_eq!(nvmlDeviceResetGpuLockedClocks(p100), NOT_SUPPORTED);
        assert_eq!(
            nvmlDeviceGetFanSpeed_v2(h200, 0, &mut number),
            NOT_SUPPORTED
        );
        assert_eq!(
            nvmlDeviceGetClockInfo(h200, 99, &mut number),
            INVALID_ARGUMENT
        );
        assert_eq!(
            nvmlDeviceGetTemperature(h200, 9, &mut number),
            INVALID_ARGUMENT
        );
        assert_eq!(
            nvmlDeviceGetFieldValues(h200, -1, null_mut()),
            INVALID_ARGUMENT
        );
        let code = nvmlDeviceGetSamples(h200, 99, 0, &mut kind, &mut number, null_mut());
        assert_eq!(code, NOT_SUPPORTED);
    }
    assert_eq!(cap(v100), before);
}

#[test]
fn faults_return_their_codes() {
    let (denied, lost) = (device(DENIED), device(LOST));
    let before = cap(denied);
    let mut power = 0;
    // SAFETY: there is room for a number.
    unsafe {
        assert_eq!(
            nvmlDeviceSetPowerManagementLimit(denied, 200_000),
            NO_PERMISSION
        );
        assert_eq!(cap(denied), before);
        assert_eq!(nvmlDeviceGetPowerUsage(lost, &mut power), GPU_IS_LOST);
        assert_eq!(
            nvmlDeviceSetPowerManagementLimit(lost, 200_000),
            GPU_IS_LOST
        );
        assert_eq!(nvmlDeviceResetGpuLockedClocks(lost), GPU_IS_LOST);
    }
}
