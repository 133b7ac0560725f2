//! Why a power cap cannot be held.

use sweetspot_control::hold::{HoldConfigError, HoldMode};

use super::HoldKnob;

/// Why a power cap cannot be held.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HoldError {
    /// The constraints contradict each other.
    #[error(transparent)]
    HoldConfig(#[from] HoldConfigError),
    /// There is no cap.
    #[error("no power cap to hold")]
    NoCap,
    /// The cap is to follow the device's limit, but the device reports none.
    #[error("the cap is to follow the device's limit, but the device reports none: give watts")]
    NoDeviceLimit,
    /// The cap file holds no cap.
    #[error("{0}; write a power such as 150W to it, or give a cap as well")]
    CapFile(String),
    /// The cap follows the device's limit, which the knob would set.
    #[error(
        "the cap follows the device's limit, which the knob power-cap would set: use another knob"
    )]
    KnobSetsCap,
    /// The cap follows both the device's limit and a file.
    #[error("the cap follows the device's limit and a cap file: remove one of the two")]
    TwoCaps,
    /// The mode does not set the knob.
    #[error("mode {mode} does not set the knob {knob}: remove one of the two")]
    ModeForKnob {
        /// The mode.
        mode: HoldMode,
        /// The knob.
        knob: HoldKnob,
    },
    /// The mode of the paper lacks a feature.
    #[error("mode {mode} has no {feature}, as in the paper: remove one of the two")]
    ModeWithout {
        /// The mode.
        mode: HoldMode,
        /// The feature.
        feature: &'static str,
    },
    /// A fixed batch size was given to a knob that chooses the batch size.
    #[error(
        "a fixed batch size is for the knobs core-clock and power-cap; the knob {0} chooses among the batch sizes"
    )]
    FixedBatch(HoldKnob),
    /// The knob sets the device, which read-only mode forbids.
    #[error("read-only mode is on: the knob {0} sets the device; use the knob batch")]
    ReadOnly(HoldKnob),
    /// The knob sets the device, for which the user has no permission.
    #[error(
        "the knob {knob} sets the device: {problem}; run as root, or use the knob batch, which needs no privilege"
    )]
    NotPermitted {
        /// The knob.
        knob: HoldKnob,
        /// What was refused.
        problem: String,
    },
    /// There are several GPUs.
    #[error("hold works on one GPU, and there are {0}: name one, and hold each by itself")]
    SeveralGpus(usize),
}
