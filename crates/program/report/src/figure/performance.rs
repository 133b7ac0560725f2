//! Performance, power and energy against a knob, a line for each value of another (dvfs_2019, figures 1 to 3
//! and the appendix).

use sweetspot_decide::Objective;
use sweetspot_study::{Axis, BATCH_PARAMETER, Configuration};

use super::chart::{Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle};
use super::palette::colour_of;
use crate::analysis::view::StudyView;
use crate::settings::axis_name;
use crate::wording::format_amount;

/// The largest number of lines in a chart, so that they can be distinguished.
const MAX_LINES: usize = 6;

/// Makes a figure for each numeric clock axis, and for power caps if the study varies another axis too.
pub fn performance_figures(view: &StudyView<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for axis in view.varied.iter().filter(|axis| view.is_numeric(axis)) {
        let is_clock = matches!(axis, Axis::CoreClock | Axis::MemoryClock);
        let is_cap = matches!(axis, Axis::PowerCap | Axis::CpuPowerCap);
        let by = line_axes(view, axis);
        if !(is_clock || is_cap && !by.is_empty()) {
            continue;
        }
        let drawn: Vec<Figure> = by
            .iter()
            .filter_map(|other| figure(view, axis, Some(other)))
            .collect();
        if drawn.is_empty() && is_clock {
            figures.extend(figure(view, axis, None));
        }
        figures.extend(drawn);
    }
    figures
}

/// Returns the axes whose values become lines, parameters first.
fn line_axes(view: &StudyView<'_>, axis: &Axis) -> Vec<Axis> {
    let mut others: Vec<Axis> = view
        .varied
        .iter()
        .filter(|other| *other != axis)
        .cloned()
        .collect();
    others.retain(|other| view.values(other).len() > 1);
    others.sort_by_key(|other| match other {
        Axis::Parameter(name) if name != BATCH_PARAMETER => 0,
        Axis::Parameter(_) => 1,
        Axis::MemoryClock => 2,
        Axis::Gpus => 3,
        Axis::CoreClock | Axis::PowerCap | Axis::CpuPowerCap => 4,
    });
    others.truncate(2);
    others
}

/// Makes the line of an objective at every configuration along `axis`; the other axes have the values of `held`.
fn line(
    view: &StudyView<'_>,
    axis: &Axis,
    fixed: &Configuration,
    objective: Objective,
    unit: Unit,
) -> Vec<Dot> {
    let chart_axis = view.chart_axis(axis);
    let slice = view.slice(axis, fixed);
    slice
        .into_iter()
        .filter_map(|index| {
            let point = &view.study.points[index];
            let x = view.place(&chart_axis, axis, point)?;
            let estimate = view.estimate(index, objective)?;
            let text = format!(
                "{}\n{}",
                view.setting(index),
                format_amount(estimate.value, unit.0)
            );
            Some(super::dot(x, &estimate, unit.1, text))
        })
        .collect()
}

/// The unit of a value in a chart, and the factor that converts the SI unit to it.
#[derive(Clone, Copy)]
struct Unit(&'static str, f64);

/// Returns the quantities to draw: per item if items are known, otherwise per run.
fn quantities(view: &StudyView<'_>) -> [(&'static str, Objective, Unit); 3] {
    let power = ("Power [W]", Objective::Power, Unit("W", 1.0));
    match view.has_items() {
        true => [
            (
                "Performance [items/s]",
                Objective::Throughput,
                Unit("items/s", 1.0),
            ),
            power,
            (
                "Energy [J/item]",
                Objective::EnergyPerItem,
                Unit("J/item", 1.0),
            ),
        ],
        false => [
            ("Time [s]", Objective::Time, Unit("s", 1.0)),
            power,
            ("Energy [kJ]", Objective::Energy, Unit("J", 1e-3)),
        ],
    }
}

/// Returns each line's label and configuration: one for each value of `by`, or a single one without a label.
fn line_configurations(
    view: &StudyView<'_>,
    fixed: &Configuration,
    by: Option<&Axis>,
) -> Vec<(String, Option<Colour>, Configuration)> {
    let Some(by) = by else {
        return vec![(String::new(), None, fixed.clone())];
    };
    let values = spread_values(view.values(by)).into_iter().enumerate();
    values
        .filter_map(|(index, value)| {
            let fixed = with_axis_value(view, fixed, by, &value)?;
            let label = crate::settings::configuration_text(std::slice::from_ref(by), &fixed);
            Some((label, Some(Colour::of(index)), fixed))
        })
        .collect()
}

/// Makes the figure of one axis; `by` is the axis whose values become lines.
fn figure(view: &StudyView<'_>, axis: &Axis, by: Option<&Axis>) -> Option<Figure> {
    let chosen = view
        .chosen()
        .map(|index| &view.study.points[index].configuration);
    let fixed = chosen.unwrap_or(&view.study.reference.configuration);
    let configurations = line_configurations(view, fixed, by);
    let mut charts = Vec::new();
    for (title, objective, unit) in quantities(view) {
        let lines = configurations.iter().map(|(label, colour, fixed)| Line {
            label: label.clone(),
            // A single line is the quantity itself.
            colour: colour.unwrap_or_else(|| colour_of(objective)),
            dots: line(view, axis, fixed, objective, unit),
            style: LineStyle::PointsAndLine,
        });
        let lines: Vec<Line> = lines.filter(|line| line.dots.len() > 1).collect();
        if !lines.is_empty() {
            charts.push(Chart {
                title: title.to_owned(),
                x: view.chart_axis(axis),
                y: ChartAxis::from_zero(title),
                lines,
                ..Chart::default()
            });
        }
    }
    // A single line shows nothing about the other axis.
    let min_lines = if by.is_some() { 2 } else { 1 };
    if charts.iter().all(|chart| chart.lines.len() < min_lines) {
        return None;
    }
    let others: Vec<String> = view
        .varied
        .iter()
        .filter(|other| *other != axis && Some(*other) != by)
        .filter_map(|other| Some(format!("{} {}", axis_name(other), other.text(fixed)?)))
        .collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(
            " Other settings as in the recommendation: {}.",
            others.join(", ")
        ),
    };
    let name = by.map_or_else(String::new, |by| format!("-by-{}", by.name()));
    Some(Figure {
        id: format!("performance-power-energy-{}{name}", axis.name()),
        title: match by {
            Some(by) => format!(
                "Performance, power and energy: {} by {}",
                axis_name(axis),
                axis_name(by)
            ),
            None => format!("Performance, power and energy: {}", axis_name(axis)),
        },
        caption: format!("As measured, with 95 % intervals.{others}"),
        charts,
    })
}

/// Returns a configuration with another value of an axis, taken from a point that has it.
pub fn with_axis_value(
    view: &StudyView<'_>,
    fixed: &Configuration,
    axis: &Axis,
    value: &str,
) -> Option<Configuration> {
    let points = view.study.points.iter();
    let donor = points
        .map(|point| &point.configuration)
        .find(|configuration| axis.text(configuration).as_deref() == Some(value))?;
    let mut configuration = fixed.clone();
    match axis {
        Axis::Gpus => configuration.gpus = donor.gpus,
        Axis::PowerCap => configuration.power_caps.clone_from(&donor.power_caps),
        Axis::CoreClock => configuration.core_clock = donor.core_clock,
        Axis::MemoryClock => configuration.memory_clock = donor.memory_clock,
        Axis::CpuPowerCap => configuration.cpu_power_cap = donor.cpu_power_cap,
        Axis::Parameter(name) => {
            configuration
                .parameters
                .insert(name.clone(), value.to_owned());
        }
    }
    Some(configuration)
}

/// Selects at most [`MAX_LINES`] values, evenly spread.
pub fn spread_values(values: Vec<String>) -> Vec<String> {
    let count = values.len();
    if count <= MAX_LINES {
        return values;
    }
    let mut places: Vec<usize> = (0..MAX_LINES)
        .map(|place| place * (count - 1) / (MAX_LINES - 1))
        .collect();
    places.dedup();
    places
        .into_iter()
        .map(|place| values[place].clone())
        .collect()
}
