//! Parses the reference that the user gives.

use sweetspot_device::Domain;
use sweetspot_quantity::Megahertz;

use super::values::{read_axis, read_caps, read_cpu_caps};
use super::{AxesError, SupportedKnobs};
use crate::{Axis, Configuration};

/// Sets the knobs and parameters of the reference that a text such as `power-cap=250,batch=64` names; the others stay
/// the same.
pub fn change_reference(
    reference: &mut Configuration,
    text: &str,
    supported: &SupportedKnobs<'_>,
    notes: &mut Vec<String>,
) -> Result<(), AxesError> {
    let error = |problem: String| AxesError::Reference {
        text: text.to_owned(),
        problem,
    };
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (name, value) = part.split_once('=').ok_or_else(|| {
            error(format!(
                "`{part}` is invalid: write NAME=VALUE, such as power-cap=250W"
            ))
        })?;
        let (name, value) = (name.trim(), value.trim());
        let axis = Axis::named(name);
        let mut clock = |axis: Axis, range: &Domain<Megahertz>| {
            let clocks = read_axis(axis, value, range, Megahertz::new(1.0), supported, notes)?;
            require_single(&clocks).map_err(error)?;
            Ok::<_, AxesError>(clocks[0])
        };
        match axis {
            Axis::PowerCap => {
                let gpus = [reference.gpus];
                let mut caps = read_caps(value, supported, &gpus, notes)?;
                require_single(&caps).map_err(error)?;
                reference.power_caps = caps.swap_remove(0);
            }
            Axis::CoreClock => {
                let range = &supported.core_clocks()?.domain;
                reference.core_clock = Some(clock(axis, range)?);
            }
            Axis::MemoryClock => {
                let range = &supported.memory_clocks()?.domain;
                reference.memory_clock = Some(clock(axis, range)?);
            }
            Axis::CpuPowerCap => {
                let caps = read_cpu_caps(value, supported, notes)?;
                require_single(&caps).map_err(error)?;
                reference.cpu_power_cap = Some(caps[0]);
            }
            Axis::Gpus => {
                let count: Option<u64> = value.parse().ok();
                let available = supported.devices.len() as u64;
                let count = count.filter(|count| (1..=available).contains(count));
                reference.gpus = count.ok_or_else(|| {
                    error(format!(
                        "`{value}` is not a number of GPUs from 1 to {available}"
                    ))
                })?;
            }
            Axis::Parameter(name) => {
                let known: Vec<&str> = reference.parameters.keys().map(String::as_str).collect();
                let known = match known.as_slice() {
                    [] => "the study has no other axes".to_owned(),
                    known => format!("the other axes are {}", known.join(", ")),
                };
                let parameter = reference.parameters.get_mut(&name);
                let parameter = parameter.ok_or_else(|| {
                    error(format!("there is no axis `{name}`: use power-cap, core-clock, memory-clock, cpu-power-cap or gpus; {known}"))
                })?;
                *parameter = value.to_owned();
            }
        }
    }
    Ok(())
}

/// Returns an error if there is more than one value.
fn require_single<T>(values: &[T]) -> Result<(), String> {
    match values.len() {
        1 => Ok(()),
        count => Err(format!(
            "{count} values are given, but a reference has only one value of each axis"
        )),
    }
}
