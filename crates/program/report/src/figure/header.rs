//! The title, the name of the vertical axis and the legend above a chart.

use super::chart::Chart;
use super::legend::Legend;
use super::shape::{Anchor, Picture, TextRole};
use super::text_size::{fitted, text_width, wrapped};

/// The height of the title of a chart, if it takes one line and there is no legend.
pub const HEAD: f64 = 34.0;

/// Draws the title, the name of the vertical axis and the legend if the chart has one; returns the height of them all.
pub fn header(picture: &mut Picture, chart: &Chart, has_legend: bool) -> f64 {
    let width = picture.width;
    let mut y = 14.0;
    let title = wrapped(&chart.title, TextRole::Title, width);
    for (index, line) in title.iter().enumerate() {
        y = 14.0 + 15.0 * index as f64;
        picture.text(TextRole::Title, Anchor::Start, (0.0, y), line);
    }
    let is_named = chart.y.label == chart.title || !chart.bars.is_empty();
    let name = match is_named || chart.heat_map.is_some() {
        true => String::new(),
        false => fitted(&chart.y.label, TextRole::AxisLabel, width),
    };
    if !name.is_empty() {
        let last = title.last().map(String::as_str).unwrap_or_default();
        let used = text_width(last, TextRole::Title) + 12.0;
        if used + text_width(&name, TextRole::AxisLabel) <= width {
            picture.text(TextRole::AxisLabel, Anchor::End, (width, y), &name);
        } else {
            y += 15.0;
            picture.text(TextRole::AxisLabel, Anchor::Start, (0.0, y), &name);
        }
    }
    if has_legend {
        y = Legend::of(std::slice::from_ref(chart)).draw(picture, y);
    }
    y + HEAD - 14.0
}
