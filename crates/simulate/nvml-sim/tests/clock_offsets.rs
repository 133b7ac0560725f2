//! The offset of the memory clock, on a board that has offsets and on others.
#![allow(unsafe_code)]

mod common;

use std::ffi::{c_int, c_uint};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::*;

const TURING: usize = 0;
const DENIED: usize = 1;
const V100: usize = 2;
const H200: usize = 3;

const GRAPHICS: c_uint = 0;
const MEMORY: c_uint = 2;

/// NVML's structure for a clock offset, as its header declares it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct ClockOffset {
    version: c_uint,
    kind: c_uint,
    state: c_uint,
    offset: c_int,
    min: c_int,
    max: c_int,
}

/// The version of the structure: its size of 24 bytes and the number 1.
const VERSION: c_uint = 0x0100_0018;

unsafe extern "C" {
    fn nvmlDeviceGetClockOffsets(device: Device, info: *mut ClockOffset) -> c_uint;
    fn nvmlDeviceSetClockOffsets(device: Device, info: *mut ClockOffset) -> c_uint;
    fn nvmlDeviceGetMinMaxClockOfPState(
        device: Device,
        kind: c_uint,
        state: c_uint,
        min: *mut c_uint,
        max: *mut c_uint,
    ) -> c_uint;
}

/// The devices of the host. They are shared, so only one test uses them at a time.
fn devices() -> MutexGuard<'static, [usize; 4]> {
    static DEVICES: Mutex<[usize; 4]> = Mutex::new([0; 4]);
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    if devices[0] == 0 {
        let denied = "[[fault]]\nkind = \"write-denied\"\nknob = \"memory-clock\"";
        host(&[
            ("gtx_2080ti", ""),
            ("gtx_2080ti", denied),
            ("v100", ""),
            ("h200", ""),
        ]);
        // SAFETY: the function has no arguments.
        assert_eq!(unsafe { nvmlInit_v2() }, SUCCESS);
        for (index, address) in devices.iter_mut().enumerate() {
            let mut device = null_mut();
            // SAFETY: there is room for a handle.
            let code = unsafe { nvmlDeviceGetHandleByIndex_v2(index as c_uint, &mut device) };
            assert_eq!(code, SUCCESS);
            *address = device.addr();
        }
    }
    devices
}

/// A request for the memory clock of the highest performance state.
fn request(offset: c_int) -> ClockOffset {
    ClockOffset {
        version: VERSION,
        kind: MEMORY,
        state: 0,
        offset,
        min: 0,
        max: 0,
    }
}

fn read(device: usize) -> ClockOffset {
    let mut info = request(77);
    // SAFETY: the structure has NVML's layout, and a handle is only a number.
    let code = unsafe { nvmlDeviceGetClockOffsets(without_provenance_mut(device), &mut info) };
    assert_eq!(code, SUCCESS);
    info
}

fn write(device: usize, mut info: ClockOffset) -> c_uint {
    // SAFETY: as above.
    unsafe { nvmlDeviceSetClockOffsets(without_provenance_mut(device), &mut info) }
}

fn memory_clock(device: usize) -> c_uint {
    let mut clock = 0;
    // SAFETY: there is room for a number.
    let code =
        unsafe { nvmlDeviceGetClockInfo(without_provenance_mut(device), MEMORY, &mut clock) };
    assert_eq!(code, SUCCESS);
    clock
}

#[test]
fn an_offset_counts_two_megahertz_for_one_of_the_clock() {
    let device = devices()[TURING];
    assert_eq!(memory_clock(device), 6800);
    for (offset, clock) in [(-2000, 5800), (-1000, 6300), (1000, 7300), (0, 6800)] {
        assert_eq!(write(device, request(offset)), SUCCESS);
        let read = read(device);
        assert_eq!((read.offset, read.min, read.max), (offset, -2000, 1000));
        assert_eq!(memory_clock(device), clock);
        let (mut min, mut max) = (0, 0);
        // SAFETY: there is room for two numbers.
        let code = unsafe {
            let device = without_provenance_mut(device);
            nvmlDeviceGetMinMaxClockOfPState(device, MEMORY, 0, &mut min, &mut max)
        };
        assert_eq!((code, min, max), (SUCCESS, 6800, 6800));
    }
}

#[test]
fn wrong_requests_return_their_codes_and_change_nothing() {
    let device = devices()[TURING];
    let before = read(device);
    for (wrong, expected) in [
        (request(-2001), INVALID_ARGUMENT),
        (request(1001), INVALID_ARGUMENT),
        (request(c_int::MIN), INVALID_ARGUMENT),
        (
            ClockOffset {
                version: 0,
                ..request(-500)
            },
            ARGUMENT_VERSION_MISMATCH,
        ),
        (
            ClockOffset {
                version: VERSION | 2 << 24,
                ..request(-500)
            },
            ARGUMENT_VERSION_MISMATCH,
        ),
        (
            ClockOffset {
                kind: 99,
                ..request(-500)
            },
            INVALID_ARGUMENT,
        ),
        (
            ClockOffset {
                kind: GRAPHICS,
                ..request(-500)
            },
            NOT_SUPPORTED,
        ),
        (
            ClockOffset {
                state: 8,
                ..request(-500)
            },
            NOT_SUPPORTED,
        ),
        (
            ClockOffset {
                state: 32,
                ..request(-500)
            },
            INVALID_ARGUMENT,
        ),
    ] {
        assert_eq!(write(device, wrong), expected, "{wrong:?}");
    }
    // SAFETY: a client may pass null by mistake.
    unsafe {
        let device = without_provenance_mut(device);
        assert_eq!(
            nvmlDeviceGetClockOffsets(device, null_mut()),
            INVALID_ARGUMENT
        );
        assert_eq!(
            nvmlDeviceSetClockOffsets(device, null_mut()),
            INVALID_ARGUMENT
        );
        let code = nvmlDeviceGetMinMaxClockOfPState(device, MEMORY, 0, null_mut(), null_mut());
        assert_eq!(code, INVALID_ARGUMENT);
    }
    assert_eq!(read(device), before);
}

#[test]
fn a_denied_write_changes_nothing() {
    let device = devices()[DENIED];
    assert_eq!(write(device, request(-500)), NO_PERMISSION);
    assert_eq!(read(device).offset, 0);
}

#[test]
fn boards_have_either_offsets_or_locks() {
    let devices = devices();
    for index in [V100, H200] {
        assert_eq!(write(devices[index], request(0)), NOT_SUPPORTED);
    }
    // SAFETY: a handle is only a number.
    let code = unsafe {
        nvmlDeviceSetMemoryLockedClocks(without_provenance_mut(devices[TURING]), 6800, 6800)
    };
    assert_eq!(code, NOT_SUPPORTED);
}
