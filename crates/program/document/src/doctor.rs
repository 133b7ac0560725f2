//! The checks of a machine, `sweetspot.doctor/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::SchemaName;

/// The checks of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Doctor {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::DOCTOR))]
    pub schema: SchemaName,
    /// The checks, in the order in which they were made.
    pub checks: Vec<Check>,
}

/// One check of the machine and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// The name of what was checked.
    pub name: String,
    /// The result of the check.
    pub verdict: Verdict,
    /// What was found, and what to do about it.
    pub finding: String,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything that was checked works.
    Pass,
    /// What was checked works with a restriction, which `finding` describes.
    Warn,
    /// What was checked does not work; `finding` says what to do.
    Fail,
    /// The check does not apply to this machine.
    Skip,
}
