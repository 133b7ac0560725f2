//! Profiles: TOML files, parsed with errors that name the line and the key.

mod fault;
mod gpu;
mod gpu_checks;
mod iteration;
mod kernels;
mod locate;
mod node;
mod processors;
mod step_line;
mod variant;
mod workload;

pub use fault::{Fault, UnitUseFault};
pub use gpu::{Cap, Core, GpuProfile, Memory, Peak, PowerDraw, Thermal};
pub use iteration::{IterationWork, PartWork};
pub use kernels::{KernelErrors, Kernels};
pub use locate::ProfileError;
pub use node::{AllReduce, HostPower, Meter, NodeLoad, NodePower, NodeProfile, Supply};
pub use processors::{PackageLoad, Processors};
pub use step_line::StepLine;
pub use variant::{ConvAlgorithm, Dataset, Variant, VariantError};
pub use workload::{ItemWork, MemoryNeed, Mode, PhaseShare, WorkloadProfile};

use locate::Document;
use serde::Deserialize;

/// The error for an invalid value in a profile, without its line.
struct Problem {
    /// The path of the key, such as `core.default` or `on.0.items`.
    key: String,
    /// What is wrong with the value, and which values are allowed.
    message: String,
}

/// Creates the error for the value of a key.
fn problem(key: impl Into<String>, message: impl Into<String>) -> Problem {
    Problem {
        key: key.into(),
        message: message.into(),
    }
}

/// A kind of profile: for a GPU, a workload or a node.
trait Profile: serde::de::DeserializeOwned {
    /// Checks all values; the error is about the first invalid one.
    fn check(&self) -> Result<(), Problem>;
}

/// Parses and checks a profile; `file` is its name in messages.
fn parse<P: Profile>(file: &str, text: &str) -> Result<P, ProfileError> {
    let document = Document::new(file, text)?;
    read(&document, text)
}

/// Reads and checks a profile whose TOML syntax is valid.
fn read<P: Profile>(document: &Document<'_>, text: &str) -> Result<P, ProfileError> {
    let profile: P = toml::from_str(text).map_err(|error| document.invalid_form(&error))?;
    profile
        .check()
        .map_err(|problem| document.invalid_value(&problem.key, problem.message))?;
    Ok(profile)
}

/// A file with the profiles of both a GPU and a workload, as they are fitted to one study.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GpuAndWorkload {
    gpu: GpuProfile,
    workload: WorkloadProfile,
}

impl Profile for GpuAndWorkload {
    fn check(&self) -> Result<(), Problem> {
        let within = |section: &'static str| {
            move |found: Problem| problem(format!("{section}.{}", found.key), found.message)
        };
        self.gpu.check().map_err(within("gpu"))?;
        self.workload.check().map_err(within("workload"))
    }
}

/// Parses both profiles if the file has the tables `gpu` and `workload`. The work on the file's GPU is then
/// listed under the file's name, because several GPUs may have the same product name.
fn pair(
    document: &Document<'_>,
    file: &str,
    text: &str,
) -> Result<Option<GpuAndWorkload>, ProfileError> {
    if !document.has_table("gpu") && !document.has_table("workload") {
        return Ok(None);
    }
    let mut pair: GpuAndWorkload = read(document, text)?;
    for on in &mut pair.workload.on {
        if on.gpu == pair.gpu.name {
            file.clone_into(&mut on.gpu);
        }
    }
    Ok(Some(pair))
}

/// Parses a GPU profile; `file` is its name in messages.
pub fn parse_gpu(file: &str, text: &str) -> Result<GpuProfile, ProfileError> {
    let document = Document::new(file, text)?;
    match pair(&document, file, text)? {
        Some(pair) => Ok(pair.gpu),
        None => read(&document, text),
    }
}

/// Parses a workload profile; `file` is its name in messages.
pub fn parse_workload(file: &str, text: &str) -> Result<WorkloadProfile, ProfileError> {
    let document = Document::new(file, text)?;
    match pair(&document, file, text)? {
        Some(pair) => Ok(pair.workload),
        None => read(&document, text),
    }
}

/// Parses a node profile; `file` is its name in messages.
pub fn parse_node(file: &str, text: &str) -> Result<NodeProfile, ProfileError> {
    parse(file, text)
}

/// Checks of single values, which all kinds of profiles use.
mod check {
    use std::fmt::Display;

    use sweetspot_quantity::Quantity;

    use super::{Problem, problem};

    /// Checks that a value lies between two bounds, which are included.
    pub fn within<Q>(key: &str, value: Q, low: Q, high: Q) -> Result<(), Problem>
    where
        Q: Quantity + Display,
    {
        if low <= value && value <= high {
            Ok(())
        } else {
            Err(problem(
                key,
                format!("{value} is out of range: give a value from {low} to {high}"),
            ))
        }
    }

    /// Checks that a value is zero or more.
    pub fn not_negative<Q: Quantity + Display>(key: &str, value: Q) -> Result<(), Problem> {
        if value.base() >= 0.0 {
            Ok(())
        } else {
            Err(problem(key, format!("{value} is negative: give 0 or more")))
        }
    }

    /// Checks that a value is more than zero.
    pub fn positive<Q: Quantity + Display>(key: &str, value: Q) -> Result<(), Problem> {
        if value.base() > 0.0 {
            Ok(())
        } else {
            Err(problem(
                key,
                format!("{value} is not above zero: give a larger value"),
            ))
        }
    }

    /// Checks that each name is allowed and is given once.
    pub fn names(key: &str, names: &[String], allowed: &[&str]) -> Result<(), Problem> {
        for (index, name) in names.iter().enumerate() {
            if !allowed.contains(&name.as_str()) {
                let message = format!("`{name}` is not allowed here: use {}", allowed.join(", "));
                return Err(problem(key, message));
            }
            if names[..index].contains(name) {
                return Err(problem(key, format!("`{name}` is given twice")));
            }
        }
        Ok(())
    }

    /// Checks that a number lies between 1 and `max`.
    pub fn count(key: &str, value: u64, max: u64) -> Result<(), Problem> {
        if (1..=max).contains(&value) {
            Ok(())
        } else {
            let message = format!("{value} is out of range: give a number from 1 to {max}");
            Err(problem(key, message))
        }
    }

    /// Checks that a name is one line of text.
    pub fn text(key: &str, text: &str) -> Result<(), Problem> {
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            return Err(problem(key, "a name must be one line of text"));
        }
        Ok(())
    }
}
