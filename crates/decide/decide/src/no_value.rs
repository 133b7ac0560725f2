//! Why a value is missing.

/// Why an objective or a named value has no value for an outcome, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoValue {
    /// The configuration has no run, or one of its runs failed.
    #[error("no run succeeded; run the configuration again")]
    NotRun,
    /// The energy was not measured.
    #[error("the energy is unknown; `sweetspot doctor` lists the sensors")]
    NoEnergy,
    /// The measured energy is zero, negative or not finite.
    #[error(
        "the measured energy is not above zero; measure a run that lasts several update periods of the power sensor"
    )]
    ZeroEnergy,
    /// The measured time is zero, negative or not finite.
    #[error("the measured time is not above zero; measure a longer run")]
    ZeroTime,
    /// The number of items was not reported, or is zero.
    #[error("the number of items is unknown; let the workload report its progress")]
    NoItems,
    /// The workload did not report this value.
    #[error("the workload did not report `{0}`")]
    NotReported(String),
    /// There is no reference to compare with.
    #[error(
        "the reference has no result, and other settings are compared with it; measure the reference, or choose another one"
    )]
    NoReference,
    /// The reference lacks a value that the comparison needs.
    #[error("the reference has no value: {0}")]
    Reference(Box<NoValue>),
    /// The cost needs a price, and none is given.
    #[error("there is no price; give a price per kWh, a price per GPU-hour, or both")]
    NoPrice,
    /// No carbon intensity is given.
    #[error(
        "the carbon intensity of the electricity is unknown; give the grams of carbon dioxide per kWh, as one number or as 24 numbers for the hours of the day"
    )]
    NoIntensity,
    /// The carbon intensity depends on the hour, and the hour is unknown.
    #[error(
        "the hour at which the run started is unknown; give the hour at which it is to start, or one carbon intensity for the whole day"
    )]
    NoStart,
    /// The value is infinite or not a number.
    #[error("the value is not a finite number; check the time, energy and items of the runs")]
    NotFinite,
}
