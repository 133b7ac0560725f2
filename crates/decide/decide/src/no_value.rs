//! Why something has no value.

/// Why an objective or a named value has no value for an outcome, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoValue {
    /// No run, or one that failed.
    #[error("it has not run without a failure; run it again")]
    NotRun,
    /// Not measured.
    #[error("energy is not known; `sweetspot doctor` says which sensors there are")]
    NoEnergy,
    /// Measured, and unusable.
    #[error("energy is not above zero; a run must last several periods of its sensor")]
    ZeroEnergy,
    /// Unusable.
    #[error("time is not above zero; measure a run that takes time")]
    ZeroTime,
    /// Not reported, or none done.
    #[error("the number of items is not known; let the workload report its progress")]
    NoItems,
    /// A value that the workload did not report.
    #[error("`{0}` was not reported")]
    NotReported(String),
    /// Nothing to compare with.
    #[error("there is no reference to compare with; measure one, or name one with --reference")]
    NoReference,
    /// The reference lacks what a comparison needs.
    #[error("the reference cannot be compared with: {0}")]
    Reference(Box<NoValue>),
    /// A cost without prices.
    #[error(
        "no price is known; give one per kWh (--price-per-kwh), per GPU-hour (--price-per-gpu-hour) or both"
    )]
    NoPrice,
    /// Carbon without what the electricity carries.
    #[error(
        "the carbon of the electricity is not known; give its grams per kWh, one number or 24 by the hour of day (--carbon)"
    )]
    NoIntensity,
    /// Carbon by the hour without an hour.
    #[error(
        "the hour at which the run started is not known; give the hour at which it is to start (--start 14:30), or one number for the day"
    )]
    NoStart,
    /// Out of the range of numbers.
    #[error("it is not a finite number; look at the time, energy and items of the runs")]
    NotFinite,
}
