//! Initialisation and shutdown in every order, in one test because the state belongs to the process.
#![allow(unsafe_code)]

mod common;

use std::ffi::CStr;
use std::ptr::null_mut;

use common::*;

#[test]
fn calls_before_during_and_after_initialisation() {
    let count = || {
        let mut count = 0;
        // SAFETY: there is room for a number.
        (unsafe { nvmlDeviceGetCount_v2(&mut count) }, count)
    };
    // SAFETY: the calls below get only null and pointers to variables of the right size.
    unsafe {
        assert_eq!(nvmlShutdown(), UNINITIALIZED);
        assert_eq!(count(), (UNINITIALIZED, 0));
        assert_eq!(
            nvmlDeviceGetPowerUsage(null_mut(), null_mut()),
            UNINITIALIZED
        );
        assert_eq!(nvmlDeviceGetHandleByIndex_v2(0, null_mut()), UNINITIALIZED);
        assert_eq!(nvmlSystemGetDriverVersion(null_mut(), 0), UNINITIALIZED);
        std::env::remove_var(sweetspot_sim_host::ENVIRONMENT);
        assert_eq!(nvmlInit_v2(), DRIVER_NOT_LOADED);
        std::env::set_var(sweetspot_sim_host::ENVIRONMENT, "/no/such/folder");
        assert_eq!(nvmlInit_v2(), DRIVER_NOT_LOADED);
        assert_eq!(count(), (UNINITIALIZED, 0));
        host(&[("v100", ""), ("h200", "")]);
        // After two initialisations, two shutdowns are needed.
        assert_eq!((nvmlInit_v2(), nvmlInit_v2()), (SUCCESS, SUCCESS));
        assert_eq!(count(), (SUCCESS, 2));
        assert_eq!(nvmlShutdown(), SUCCESS);
        assert_eq!(count(), (SUCCESS, 2));
        assert_eq!(nvmlShutdown(), SUCCESS);
        assert_eq!(count(), (UNINITIALIZED, 0));
        assert_eq!(nvmlShutdown(), UNINITIALIZED);
        assert_eq!(nvmlInit_v2(), SUCCESS);
        assert_eq!(count(), (SUCCESS, 2));
        for code in 0..1000 {
            assert!(!CStr::from_ptr(nvmlErrorString(code)).is_empty());
        }
    }
}
