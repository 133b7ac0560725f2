//! Profiles as people write them: TOML files, read with errors that name the line and the key.

mod fault;
mod form;
mod gpu;
mod locate;
mod node;
mod workload;

pub use fault::Fault;
pub use form::{ConvAlgorithm, Dataset, Variant, VariantError};
pub use gpu::{Cap, Core, GpuProfile, Memory, Peak, PowerDraw, Thermal};
pub use locate::ProfileError;
pub use node::{AllReduce, HostPower, Meter, NodeProfile, Supply};
pub use workload::{MemoryNeed, Mode, On, PhaseShare, WorkloadProfile};

use locate::Document;
use serde::Deserialize;

/// A value that cannot be, and what could.
struct Problem {
    /// Path of the key: `core.default`, `on.0.items`.
    key: String,
    /// What is wrong and what is allowed.
    message: String,
}

fn problem(key: impl Into<String>, message: impl Into<String>) -> Problem {
    Problem {
        key: key.into(),
        message: message.into(),
    }
}

trait Profile: serde::de::DeserializeOwned {
    /// The first value that is impossible.
    fn check(&self) -> Result<(), Problem>;
}

fn parse<P: Profile>(file: &str, text: &str) -> Result<P, ProfileError> {
    let document = Document::new(file, text)?;
    read(&document, text)
}

fn read<P: Profile>(document: &Document<'_>, text: &str) -> Result<P, ProfileError> {
    let profile: P = toml::from_str(text).map_err(|error| document.refused(&error))?;
    profile
        .check()
        .map_err(|problem| document.impossible(&problem.key, problem.message))?;
    Ok(profile)
}

/// A GPU and a workload in one file, as a study of both is fitted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    gpu: GpuProfile,
    workload: WorkloadProfile,
}

impl Profile for Pair {
    fn check(&self) -> Result<(), Problem> {
        let inside = |section: &'static str| {
            move |found: Problem| problem(format!("{section}.{}", found.key), found.message)
        };
        self.gpu.check().map_err(inside("gpu"))?;
        self.workload.check().map_err(inside("workload"))
    }
}

/// Both profiles, where the file has the tables `gpu` and `workload`. The work on the file's own GPU is found by
/// the file's name from then on, whatever other boards have the same product's name.
fn pair(document: &Document<'_>, file: &str, text: &str) -> Result<Option<Pair>, ProfileError> {
    if !document.has_table("gpu") && !document.has_table("workload") {
        return Ok(None);
    }
    let mut pair: Pair = read(document, text)?;
    for on in &mut pair.workload.on {
        if on.gpu == pair.gpu.name {
            file.clone_into(&mut on.gpu);
        }
    }
    Ok(Some(pair))
}

/// Reads a GPU profile; `file` is its name in messages.
pub fn parse_gpu(file: &str, text: &str) -> Result<GpuProfile, ProfileError> {
    let document = Document::new(file, text)?;
    match pair(&document, file, text)? {
        Some(pair) => Ok(pair.gpu),
        None => read(&document, text),
    }
}

/// Reads a workload profile; `file` is its name in messages.
pub fn parse_workload(file: &str, text: &str) -> Result<WorkloadProfile, ProfileError> {
    let document = Document::new(file, text)?;
    match pair(&document, file, text)? {
        Some(pair) => Ok(pair.workload),
        None => read(&document, text),
    }
}

/// Reads a node profile; `file` is its name in messages.
pub fn parse_node(file: &str, text: &str) -> Result<NodeProfile, ProfileError> {
    parse(file, text)
}

/// Checks used by all kinds of profile.
mod check {
    use std::fmt::Display;

    use sweetspot_quantity::Quantity;

    use super::{Problem, problem};

    pub fn within<Q>(key: &str, value: Q, low: Q, high: Q) -> Result<(), Problem>
    where
        Q: Quantity + Display,
    {
        if low <= value && value <= high {
            Ok(())
        } else {
            Err(problem(
                key,
                format!("{value} is not possible; allowed are {low} to {high}"),
            ))
        }
    }

    pub fn not_negative<Q: Quantity + Display>(key: &str, value: Q) -> Result<(), Problem> {
        if value.base() >= 0.0 {
            Ok(())
        } else {
            Err(problem(
                key,
                format!("{value} is not possible; it cannot be negative"),
            ))
        }
    }

    pub fn positive<Q: Quantity + Display>(key: &str, value: Q) -> Result<(), Problem> {
        if value.base() > 0.0 {
            Ok(())
        } else {
            Err(problem(
                key,
                format!("{value} is not possible; it must be more than zero"),
            ))
        }
    }

    /// Each name is one of those allowed and is there once.
    pub fn names(key: &str, names: &[String], allowed: &[&str]) -> Result<(), Problem> {
        for (index, name) in names.iter().enumerate() {
            if !allowed.contains(&name.as_str()) {
                let message = format!(
                    "`{name}` is not possible; allowed are {}",
                    allowed.join(", ")
                );
                return Err(problem(key, message));
            }
            if names[..index].contains(name) {
                return Err(problem(key, format!("`{name}` is there twice")));
            }
        }
        Ok(())
    }

    pub fn count(key: &str, value: u64, most: u64) -> Result<(), Problem> {
        if (1..=most).contains(&value) {
            Ok(())
        } else {
            let message = format!("{value} is not possible; allowed are 1 to {most}");
            Err(problem(key, message))
        }
    }

    /// A name that can be printed on one line.
    pub fn text(key: &str, text: &str) -> Result<(), Problem> {
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            return Err(problem(key, "a name must be one line of text"));
        }
        Ok(())
    }
}
