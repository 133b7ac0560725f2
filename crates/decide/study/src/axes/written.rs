//! Counts the configurations of a study before its GPUs are known.

use std::fmt::Display;

use sweetspot_device::Domain;
use sweetspot_quantity::{Megahertz, Quantity, Watts};

use super::parameters::read_parameter;
use super::{AxesError, parse_axis};
use crate::{Axis, AxisText, Definition};

/// The most configurations that the axes of a definition can have on any GPU: all combinations of the values as they are
/// written, of which the GPU may turn several into the same level. `None` if the number depends on the GPU, as with `all`
/// or without any axis. Values that no GPU has, such as a reversed range, are an error.
pub fn written_configurations(definition: &Definition) -> Result<Option<usize>, AxesError> {
    let knobs = [
        knob::<Watts>(Axis::PowerCap, definition.power_cap.as_ref())?,
        knob::<Megahertz>(Axis::CoreClock, definition.core_clock.as_ref())?,
        knob::<Megahertz>(Axis::MemoryClock, definition.memory_clock.as_ref())?,
        knob::<Watts>(Axis::CpuPowerCap, definition.cpu_power_cap.as_ref())?,
        definition
            .gpus
            .as_ref()
            .map(|AxisText(text)| Some(text.split(',').count())),
    ];
    let mut counts: Vec<Option<usize>> = knobs.into_iter().flatten().collect();
    for (name, axis) in &definition.axis {
        counts.push(Some(read_parameter(name, axis)?.len()));
    }
    if counts.is_empty() {
        // Every power cap of the GPU is then tried.
        return Ok(None);
    }
    let mut all = counts.into_iter();
    Ok(all.try_fold(1, |product: usize, count| {
        Some(product.saturating_mul(count?))
    }))
}

/// The number of values of a knob: absent if the knob is not an axis, and `Some(None)` if the GPU decides.
fn knob<Q: Quantity + Display>(
    axis: Axis,
    written: Option<&AxisText>,
) -> Result<Option<Option<usize>>, AxesError> {
    let Some(AxisText(text)) = written else {
        return Ok(None);
    };
    if text.trim() == "all" {
        return Ok(Some(None));
    }
    if text.contains('/') {
        // A list of caps, one for each GPU.
        return Ok(Some(Some(text.split(',').count())));
    }
    let any = Domain::Range {
        min: Q::from_base(0.0),
        max: Q::from_base(f64::MAX),
    };
    match parse_axis(text, &any, Q::from_base(1.0), "any GPU") {
        Ok(parsed) => Ok(Some(Some(parsed.values.len()))),
        Err(problem) => Err(AxesError::Axis { axis, problem }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_counted_without_a_gpu() {
        let text = |text: &str| Some(AxisText(text.to_owned()));
        let definition = Definition {
            power_cap: text("150..300:25"),
            ..Definition::default()
        };
        assert_eq!(written_configurations(&definition).unwrap(), Some(7));
        let two = Definition {
            core_clock: text("1000,1200"),
            gpus: text("1,2,4"),
            axis: [("batch".to_owned(), AxisText("32,64".to_owned()))].into(),
            ..definition.clone()
        };
        assert_eq!(written_configurations(&two).unwrap(), Some(7 * 2 * 3 * 2));
        let listed = Definition {
            power_cap: text("250/200,200/250"),
            ..Definition::default()
        };
        assert_eq!(written_configurations(&listed).unwrap(), Some(2));
        for open in [
            Definition::default(),
            Definition {
                memory_clock: text("all"),
                ..definition
            },
        ] {
            assert_eq!(written_configurations(&open).unwrap(), None);
        }
        let reversed = Definition {
            power_cap: text("300..150:25"),
            ..Definition::default()
        };
        let problem = written_configurations(&reversed).unwrap_err().to_string();
        assert!(problem.contains("reversed"), "{problem}");
    }
}
