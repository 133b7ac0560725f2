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
    /// Each check.
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// The name of the check.
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
    /// Everything is as it should be.
    Pass,
    /// It works, with a restriction.
    Warn,
    /// It does not work.
    Fail,
    /// The check does not apply to this machine.
    Skip,
}
