//! Axes and settings in words, with their units.

use sweetspot_study::{Axis, Configuration, Point};

/// Describes a configuration by its values of these axes: `150 W, batch 64`.
pub fn configuration_text(axes: &[Axis], configuration: &Configuration) -> String {
    let named = axes.iter().filter_map(|axis| {
        let value = axis.text(configuration)?;
        Some(match axis {
            Axis::Gpus if value == "1" => "1 GPU".to_owned(),
            Axis::Gpus => format!("{value} GPUs"),
            Axis::PowerCap => format!("{value} W"),
            Axis::CoreClock => format!("{value} MHz"),
            Axis::MemoryClock => format!("memory {value} MHz"),
            Axis::CpuPowerCap => format!("CPU {value} W"),
            Axis::Parameter(name) => format!("{name} {value}"),
        })
    });
    named.collect::<Vec<_>>().join(", ")
}

/// Describes the setting of a point: `175 W, batch 64`.
pub fn setting(varied: &[Axis], point: &Point) -> String {
    let values = varied.iter().map(|axis| value_text(axis, point));
    values.collect::<Vec<_>>().join(", ")
}

/// The name of an axis in sentences, such as `power cap`.
pub fn axis_name(axis: &Axis) -> String {
    match axis {
        Axis::Gpus => "number of GPUs".to_owned(),
        Axis::CpuPowerCap => "CPU power cap".to_owned(),
        Axis::Parameter(name) => name.clone(),
        knob => knob.name().replace('-', " "),
    }
}

/// Returns the value of an axis with its unit.
pub fn value_text(axis: &Axis, point: &Point) -> String {
    let Some(value) = axis.text(&point.configuration) else {
        return "its default".to_owned();
    };
    match axis {
        Axis::Gpus if value == "1" => "1 GPU".to_owned(),
        Axis::Gpus => format!("{value} GPUs"),
        Axis::PowerCap | Axis::CpuPowerCap => format!("{value} W"),
        Axis::CoreClock | Axis::MemoryClock => format!("{value} MHz"),
        Axis::Parameter(name) => format!("{name} {value}"),
    }
}

/// Names an axis with its unit, with a capital letter.
pub fn axis_label(axis: &Axis) -> String {
    let name = axis_name(axis);
    let mut letters = name.chars();
    let name: String = match (axis, letters.next()) {
        (Axis::Gpus, _) => "GPUs".to_owned(),
        (Axis::Parameter(_), _) | (_, None) => name,
        (_, Some(first)) => first.to_uppercase().chain(letters).collect(),
    };
    match axis {
        Axis::PowerCap | Axis::CpuPowerCap => format!("{name} [W]"),
        Axis::CoreClock | Axis::MemoryClock => format!("{name} [MHz]"),
        _ => name,
    }
}

/// Returns the heading of an axis' column in a table.
pub fn heading(axis: &Axis) -> String {
    match axis {
        Axis::Gpus => "GPUs".to_owned(),
        Axis::PowerCap => "Power cap\n[W]".to_owned(),
        Axis::CoreClock => "Core clock\n[MHz]".to_owned(),
        Axis::MemoryClock => "Memory clock\n[MHz]".to_owned(),
        Axis::CpuPowerCap => "CPU power cap\n[W]".to_owned(),
        Axis::Parameter(name) => name.clone(),
    }
}

/// Returns a point's value of an axis, as a cell of the axis' column.
pub fn cell(axis: &Axis, point: &Point) -> String {
    axis.text(&point.configuration)
        .unwrap_or_else(|| "-".to_owned())
}
