//! Converts errors of the file system to those of the crate `device`, and names the remedies.

use std::io;

use sweetspot_device::{Knob, ReadError, SensorKind, WriteError};

use crate::counter::CounterProblem;

/// What to do where the energy of a package may not be read.
pub const ENERGY_FIX: &str = "run as root, or let an administrator allow it with `chmod a+r /sys/class/powercap/*/energy_uj` after each boot";

/// What to do where the cap of a package may not be set.
pub const CAP_FIX: &str =
    "run as root, add --sudo, or use the service with a policy that has `processor-cap = true`";

/// Converts an error when a sensor is read. A file that is gone means that its device is gone.
pub(crate) fn read_error(sensor: SensorKind, error: &io::Error) -> ReadError {
    tracing::debug!(%sensor, %error, "read failed");
    match error.kind() {
        io::ErrorKind::PermissionDenied => ReadError::Denied(sensor),
        io::ErrorKind::NotFound => ReadError::Lost,
        _ => ReadError::Failed {
            sensor,
            reason: error.to_string(),
        },
    }
}

/// Converts a problem of an energy counter.
pub(crate) fn counter_error(problem: CounterProblem) -> ReadError {
    let reason = match problem {
        CounterProblem::LongGap => {
            "it was not read for so long that it may have wrapped around more than once"
        }
        CounterProblem::AboveRange => "its value is above the largest one that the kernel states",
        CounterProblem::WentBack => {
            "it went back, and the kernel does not say where it wraps around"
        }
    };
    ReadError::Failed {
        sensor: SensorKind::EnergyCounter,
        reason: reason.to_owned(),
    }
}

/// Converts an error when the power limits are read.
pub(crate) fn limits_error(error: &io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::NotFound => ReadError::Lost,
        _ => ReadError::Limits(error.to_string()),
    }
}

/// Converts an error when the power cap is written.
pub(crate) fn write_error(error: &io::Error) -> WriteError {
    const KNOB: Knob = Knob::PowerCap;
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            WriteError::Denied(KNOB)
        }
        io::ErrorKind::NotFound => WriteError::Lost,
        _ => WriteError::Failed {
            knob: KNOB,
            reason: error.to_string(),
        },
    }
}
