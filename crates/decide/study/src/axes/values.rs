//! The values of every axis of a study.

use std::collections::BTreeMap;
use std::fmt::Display;

use sweetspot_device::Domain;
use sweetspot_quantity::{Megahertz, Quantity, Watts, parse_bare};

use super::parameters::read_parameter;
use super::reference::change_reference;
use super::{AxesError, AxisError, KnobValues, SupportedKnobs, parse_axis};
use crate::{Axis, AxisText, Configuration, Definition};

/// The step between power caps if the user gives none, as in the papers.
const USUAL_CAP_STEP: Watts = Watts::new(5.0);

/// The step between core clocks of a device that supports a range of them, if the user gives none.
const USUAL_CORE_CLOCK_STEP: Megahertz = Megahertz::new(1.0);
/// The step between memory clocks of a device that supports a range of them, if the user gives none.
const USUAL_MEMORY_CLOCK_STEP: Megahertz = Megahertz::new(100.0);

/// The values that a study tries on every axis.
pub struct AxisValues {
    pub axes: Vec<Axis>,
    /// For each value on the axis, its power caps: empty if the cap is not set, one cap for all GPUs, or one for each
    /// GPU.
    pub caps: Vec<Vec<Watts>>,
    pub core_clocks: Vec<Option<Megahertz>>,
    pub memory_clocks: Vec<Option<Megahertz>>,
    /// The caps of processor packages; `None` if they are not set.
    pub cpu_caps: Vec<Option<Watts>>,
    pub gpu_counts: Vec<u64>,
    pub parameters: Vec<(String, Vec<String>)>,
    /// Which values were replaced by the nearest supported ones, for the user.
    pub notes: Vec<String>,
}

impl AxisValues {
    /// Parses the axes of a definition and checks that the devices support their values.
    pub fn read(
        definition: &Definition,
        supported: &SupportedKnobs<'_>,
    ) -> Result<Self, AxesError> {
        let named = [
            (Axis::PowerCap, &definition.power_cap),
            (Axis::CoreClock, &definition.core_clock),
            (Axis::MemoryClock, &definition.memory_clock),
        ];
        let first = named.iter().find(|(_, values)| values.is_some());
        let cpu_power_cap = definition.cpu_power_cap.as_ref();
        if (first.is_some() || cpu_power_cap.is_some()) && definition.read_only() {
            return Err(AxesError::ReadOnly);
        }
        if let Some((axis, _)) = first
            && supported.is_mixed()
        {
            return Err(AxesError::MixedGpus {
                axis: axis.clone(),
                gpus: supported.names.join(", "),
            });
        }
        let gpu_counts = read_gpu_counts(definition, supported.devices.len())?;
        let no_axis = first.is_none()
            && cpu_power_cap.is_none()
            && definition.gpus.is_none()
            && definition.axis.is_empty();
        if no_axis && definition.read_only() {
            return Err(AxesError::NothingToVary);
        }
        let mut notes = Vec::new();
        let caps = match &definition.power_cap {
            Some(axis) => read_caps(&axis.0, supported, &gpu_counts, &mut notes)?,
            None if definition.read_only() || supported.is_mixed() => vec![Vec::new()],
            None if no_axis => read_caps("all", supported, &gpu_counts, &mut notes)?,
            // If the cap is not explored, the default cap is used, whatever is set now.
            None => match supported.caps() {
                Ok(range) => vec![vec![range.default]],
                Err(_) => vec![Vec::new()],
            },
        };
        let core_clocks = match &definition.core_clock {
            Some(axis) => read_core_clocks(&axis.0, supported, &mut notes)?,
            None => vec![None],
        };
        let memory_clocks = match &definition.memory_clock {
            Some(axis) => read_memory_clocks(&axis.0, supported, &mut notes)?,
            None => vec![None],
        };
        let cpu_caps = match cpu_power_cap {
            Some(axis) => {
                let caps = read_cpu_caps(&axis.0, supported, &mut notes)?;
                caps.into_iter().map(Some).collect()
            }
            None => vec![None],
        };
        let parameters = definition.axis.iter();
        let parameters = parameters
            .map(|(name, axis)| Ok((name.clone(), read_parameter(name, axis)?)))
            .collect::<Result<Vec<_>, AxesError>>()?;
        let mut axes = Vec::new();
        axes.extend((gpu_counts.len() > 1).then_some(Axis::Gpus));
        axes.extend((definition.power_cap.is_some() || no_axis).then_some(Axis::PowerCap));
        axes.extend(definition.core_clock.is_some().then_some(Axis::CoreClock));
        axes.extend(
            definition
                .memory_clock
                .is_some()
                .then_some(Axis::MemoryClock),
        );
        axes.extend(cpu_power_cap.map(|_| Axis::CpuPowerCap));
        let names = parameters.iter().map(|(name, _)| name.clone());
        axes.extend(names.map(Axis::Parameter));
        Ok(Self {
            axes,
            caps,
            core_clocks,
            memory_clocks,
            cpu_caps,
            gpu_counts,
            parameters,
            notes,
        })
    }

    /// The number of combinations of the values.
    pub fn combination_count(&self) -> usize {
        let knobs = [
            self.caps.len(),
            self.core_clocks.len(),
            self.memory_clocks.len(),
            self.cpu_caps.len(),
            self.gpu_counts.len(),
        ];
        let parameters = self.parameters.iter().map(|(_, values)| values.len());
        knobs
            .into_iter()
            .chain(parameters)
            .fold(1, usize::saturating_mul)
    }

    /// The configurations for every combination of the values.
    pub fn combinations(&self) -> Vec<Configuration> {
        let mut all = vec![BTreeMap::new()];
        for (name, values) in &self.parameters {
            let with = |others: &BTreeMap<String, String>, value: &String| {
                let mut combined = others.clone();
                combined.insert(name.clone(), value.clone());
                combined
            };
            all = all
                .iter()
                .flat_map(|others| values.iter().map(move |value| with(others, value)))
                .collect();
        }
        let mut configurations = Vec::new();
        for gpus in &self.gpu_counts {
            for parameters in &all {
                let knobs = self.knobs().map(|knobs| Configuration {
                    gpus: *gpus,
                    parameters: parameters.clone(),
                    ..knobs
                });
                configurations.extend(knobs);
            }
        }
        configurations
    }

    /// Every combination of the settings of devices; the last knob varies fastest.
    fn knobs(&self) -> impl Iterator<Item = Configuration> {
        let clocks = self.memory_clocks.iter().flat_map(|memory_clock| {
            let core_clocks = self.core_clocks.iter();
            core_clocks.map(|core_clock| (*memory_clock, *core_clock))
        });
        clocks.flat_map(move |(memory_clock, core_clock)| {
            self.cpu_caps.iter().flat_map(move |cpu_power_cap| {
                self.caps.iter().map(move |caps| Configuration {
                    power_caps: caps.clone(),
                    core_clock,
                    memory_clock,
                    cpu_power_cap: *cpu_power_cap,
                    ..Configuration::default()
                })
            })
        })
    }

    /// The configuration that all others are compared with.
    pub fn reference(
        &mut self,
        definition: &Definition,
        supported: &SupportedKnobs<'_>,
    ) -> Result<Configuration, AxesError> {
        let default_cap = match self.caps.iter().any(|caps| !caps.is_empty()) {
            true => vec![supported.caps()?.default],
            false => Vec::new(),
        };
        // If a clock is on an axis, the reference locks it too; the reference is then one of the points.
        let is_locked = |clocks: &[Option<Megahertz>]| clocks[0].is_some();
        let mut reference = Configuration {
            power_caps: default_cap,
            core_clock: match is_locked(&self.core_clocks) {
                true => Some(supported.core_clocks()?.default),
                false => None,
            },
            memory_clock: match is_locked(&self.memory_clocks) {
                true => Some(supported.memory_clocks()?.default),
                false => None,
            },
            cpu_power_cap: match self.cpu_caps[0] {
                Some(_) => Some(supported.cpu_caps()?.default),
                None => None,
            },
            gpus: self.gpu_counts.iter().copied().max().unwrap_or(1),
            parameters: BTreeMap::new(),
        };
        for (name, values) in &self.parameters {
            let usual = supported
                .usual_parameters
                .get(name)
                .filter(|usual| values.contains(usual));
            let value = usual.unwrap_or(&values[0]).clone();
            reference.parameters.insert(name.clone(), value);
        }
        if let Some(text) = &definition.reference {
            change_reference(&mut reference, text, supported, &mut self.notes)?;
        }
        Ok(reference)
    }
}

/// Parses the values of a knob, which the devices, all of one kind, support. Adds a note about values that are replaced
/// by the nearest ones.
pub fn read_axis<Q: Quantity + Display>(
    axis: Axis,
    text: &str,
    domain: &Domain<Q>,
    step: Q,
    supported: &SupportedKnobs<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Q>, AxesError> {
    let device = match (&axis, supported.packages) {
        (Axis::CpuPowerCap, [package, ..]) => &package.name,
        _ => &supported.names[0],
    };
    let KnobValues { values, replaced } = match parse_axis(text, domain, step, device) {
        Ok(parsed) => parsed,
        Err(problem) => return Err(AxesError::Axis { axis, problem }),
    };
    if !replaced.is_empty() {
        let changes = replaced.iter().map(|(from, to)| format!("{to} for {from}"));
        let changes = changes.collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "{axis}: the nearest values that {device} has are used: {changes}"
        ));
    }
    Ok(values)
}

/// Parses core clocks.
fn read_core_clocks(
    text: &str,
    supported: &SupportedKnobs<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Option<Megahertz>>, AxesError> {
    let (axis, domain) = (Axis::CoreClock, &supported.core_clocks()?.domain);
    let clocks = read_axis(axis, text, domain, USUAL_CORE_CLOCK_STEP, supported, notes)?;
    Ok(clocks.into_iter().map(Some).collect())
}

/// Parses memory clocks.
fn read_memory_clocks(
    text: &str,
    supported: &SupportedKnobs<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Option<Megahertz>>, AxesError> {
    let (axis, domain) = (Axis::MemoryClock, &supported.memory_clocks()?.domain);
    let clocks = read_axis(
        axis,
        text,
        domain,
        USUAL_MEMORY_CLOCK_STEP,
        supported,
        notes,
    )?;
    Ok(clocks.into_iter().map(Some).collect())
}

/// Parses power caps of processor packages.
pub fn read_cpu_caps(
    text: &str,
    supported: &SupportedKnobs<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Watts>, AxesError> {
    let (axis, domain) = (Axis::CpuPowerCap, &supported.cpu_caps()?.domain);
    read_axis(axis, text, domain, USUAL_CAP_STEP, supported, notes)
}

/// Parses power caps: each value is one cap for all GPUs, or a list such as `250/200` with one cap for each GPU of
/// the job.
pub fn read_caps(
    text: &str,
    supported: &SupportedKnobs<'_>,
    counts: &[u64],
    notes: &mut Vec<String>,
) -> Result<Vec<Vec<Watts>>, AxesError> {
    let domain = &supported.caps()?.domain;
    if !text.contains('/') {
        let axis = Axis::PowerCap;
        let caps = read_axis(axis, text, domain, USUAL_CAP_STEP, supported, notes)?;
        return Ok(caps.into_iter().map(|cap| vec![cap]).collect());
    }
    let error = |problem| AxesError::Axis {
        axis: Axis::PowerCap,
        problem,
    };
    let mut all: Vec<Vec<Watts>> = Vec::new();
    for value in text.split(',').map(str::trim) {
        let mut each = Vec::new();
        for part in value.split('/') {
            let cap: Watts = parse_bare(part).map_err(|problem| {
                let axis = text.to_owned();
                error(AxisError::Value { axis, problem })
            })?;
            if !domain.contains(cap) {
                return Err(error(AxisError::NotSupported {
                    value: cap.to_string(),
                    device: supported.names[0].clone(),
                    supported: domain.describe_nearest(cap),
                }));
            }
            each.push(cap);
        }
        if each.len() > 1 && counts.iter().any(|count| *count != each.len() as u64) {
            return Err(AxesError::CapList {
                value: value.to_owned(),
                caps: each.len(),
                gpus: counts.to_vec(),
            });
        }
        if all.contains(&each) {
            let (axis, value) = (text.to_owned(), value.to_owned());
            return Err(error(AxisError::Duplicate { axis, value }));
        }
        all.push(each);
    }
    Ok(all)
}

/// Reads numbers of GPUs such as `1,2,4,8`; without an axis, all available GPUs are used.
fn read_gpu_counts(definition: &Definition, available: usize) -> Result<Vec<u64>, AxesError> {
    let Some(AxisText(text)) = &definition.gpus else {
        return Ok(vec![available as u64]);
    };
    let error = |problem: String| AxesError::GpuCount {
        text: text.clone(),
        problem,
    };
    let mut counts = Vec::new();
    for value in text.split(',').map(str::trim) {
        let count = value.parse().ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| error(format!("`{value}` is not a number of GPUs")))?;
        if count > available as u64 {
            return Err(error(match definition.command {
                Some(_) => format!("the number of usable GPUs is {available}"),
                None => format!(
                    "the number of simulated GPUs is {available}: simulate more with NAME:{count}"
                ),
            }));
        }
        if counts.contains(&count) {
            return Err(error(format!("{count} is given twice")));
        }
        counts.push(count);
    }
    Ok(counts)
}
