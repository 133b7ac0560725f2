//! Why `hold` cannot keep the power below a cap.

use sweetspot_control::hold::{CapOn, HoldConfigError, HoldMode};
use sweetspot_quantity::Seconds;

use super::HoldKnob;

/// Why `hold` cannot keep the power below a cap.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HoldError {
    /// The settings of the control algorithm are invalid or contradict each other.
    #[error(transparent)]
    HoldConfig(#[from] HoldConfigError),
    /// The knob cannot keep latency bounds of a metrics page.
    #[error("--slo sets the core clock: --knob {0} is not supported with it")]
    KnobForSlo(HoldKnob),
    /// No power cap was given.
    #[error("no power cap was given")]
    NoCap,
    /// The cap was to follow the device's own power limit, but the device reports none.
    #[error(
        "the cap was to follow the device's own power limit, but the device reports none: give a cap in watts"
    )]
    NoDeviceLimit,
    /// The cap file contains no valid cap; the text says what is wrong with it.
    #[error("{0}; write a power such as 150W to the cap file, or give a cap on the command line")]
    CapFile(String),
    /// The cap was to follow the device's own power limit, but the knob `power-cap` changes that limit.
    #[error(
        "the cap cannot follow the device's own power limit, because the knob power-cap changes that limit: use another knob"
    )]
    KnobSetsCap,
    /// The cap was to follow both the device's own power limit and a file.
    #[error(
        "the cap cannot follow both the device's own power limit and a cap file: remove one of the two"
    )]
    TwoCaps,
    /// The requested control algorithm cannot set the requested knob.
    #[error("the mode {mode} cannot set the knob {knob}: remove one of the two options")]
    ModeForKnob {
        /// The control algorithm that was requested.
        mode: HoldMode,
        /// The knob that was requested.
        knob: HoldKnob,
    },
    /// The control algorithm, which follows a paper, does not support a requested feature.
    #[error(
        "the mode {mode} follows its paper and supports no {feature}: remove one of the two options"
    )]
    ModeWithout {
        /// The control algorithm that was requested.
        mode: HoldMode,
        /// What the algorithm does not support, such as `latency bound`.
        feature: &'static str,
    },
    /// A fixed batch size was given to a knob that chooses the batch size.
    #[error(
        "a fixed batch size works only with the knobs core-clock and power-cap; the knob {0} chooses the batch size itself"
    )]
    FixedBatch(HoldKnob),
    /// The knob changes device settings, which read-only mode forbids.
    #[error("read-only mode is on, but the knob {0} changes device settings: use the knob batch")]
    ReadOnly(HoldKnob),
    /// The knob changes device settings, for which the user has no permission.
    #[error(
        "the knob {knob} changes device settings: {problem}; the knob batch needs no permission"
    )]
    NotPermitted {
        /// The knob that was requested.
        knob: HoldKnob,
        /// Which change was refused, and why.
        problem: String,
    },
    /// The power sensor averages over a longer time than the cap binds.
    #[error(
        "the cap on {cap_on} cannot be kept, because the power sensor gives means of {window}: let the cap bind the mean of that time or of a longer one"
    )]
    SlowSensor {
        /// What the cap was to bind.
        cap_on: CapOn,
        /// The time over which the sensor averages.
        window: Seconds,
    },
    /// The control algorithm, which follows a paper, decides by single readings, but the power sensor averages.
    #[error(
        "the mode {mode} decides by single power readings, but the power sensor gives means of {window}: use another sensor or the mode robust"
    )]
    SlowSensorForMode {
        /// The control algorithm that was requested.
        mode: HoldMode,
        /// The time over which the sensor averages.
        window: Seconds,
    },
}
