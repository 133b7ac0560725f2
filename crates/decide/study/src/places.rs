//! Which points of a study are neighbours, so that their runs inform each other.

use sweetspot_decide::LinePosition;

use crate::{Axis, Point};

/// The place of each point among the others. Along the axis of power caps or core clocks neighbours are alike, so
/// their runs inform each other; points that differ in anything else are independent of each other.
pub(crate) fn places(points: &[Point], axes: &[Axis]) -> Vec<LinePosition> {
    let number = |axis: &Axis, point: &Point| axis.number(&point.configuration);
    let values = |axis: &Axis| {
        let mut values: Vec<f64> = points.iter().filter_map(|one| number(axis, one)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    };
    let ordered = [Axis::PowerCap, Axis::CoreClock].into_iter();
    let Some(axis) = ordered.max_by_key(|axis| values(axis).len()) else {
        return Vec::new();
    };
    let values = values(&axis);
    let [low, .., high] = values[..] else {
        return vec![LinePosition::WITHOUT_ORDER; points.len()];
    };
    let others: Vec<&Axis> = axes.iter().filter(|other| **other != axis).collect();
    let mut lines: Vec<Vec<Option<String>>> = Vec::new();
    let place = |point: &Point| {
        let line: Vec<Option<String>> = others
            .iter()
            .map(|other| other.text(&point.configuration))
            .collect();
        let known = lines.iter().position(|other| *other == line);
        LinePosition {
            line: known.unwrap_or_else(|| {
                lines.push(line);
                lines.len() - 1
            }),
            position: number(&axis, point).map(|value| (value - low) / (high - low)),
        }
    };
    points.iter().map(place).collect()
}
