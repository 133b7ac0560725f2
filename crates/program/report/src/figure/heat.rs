//! Draws a heat map: cells in the colours of their values, with the values in them if there is room.

use super::chart::{HeatCell, HeatMap};
use super::draw::Drawing;
use super::labels::Area;
use super::palette::{FIRST_LIGHT_LEVEL, HEAT};
use super::scale::number;
use super::shape::{Anchor, Fill, Rectangle, Shape, Text, TextRole};
use super::text_size::{fitted, text_width};

/// The width of the scale of colours, in pixels.
const SCALE_WIDTH: f64 = 12.0;
/// The room for the scale of colours and its values, in pixels.
const SCALE_ROOM: f64 = 74.0;

/// The ratio between the largest and the smallest value from which on colours follow logarithms. Otherwise one bad
/// setting would give all others the same colour.
const LOGARITHMIC_RATIO: f64 = 2.5;

/// The colours of values between the best and the worst one.
struct HeatScale {
    best: f64,
    worst: f64,
    is_logarithmic: bool,
}

impl HeatScale {
    /// The scale of a heat map; `None` if no cell has a value.
    fn new(heat_map: &HeatMap) -> Option<Self> {
        let values = || heat_map.cells.iter().filter_map(|cell| cell.value);
        let low = values().reduce(f64::min)?;
        let high = values().reduce(f64::max)?;
        let (best, worst) = match heat_map.larger_is_better {
            true => (high, low),
            false => (low, high),
        };
        Some(Self {
            best,
            worst,
            is_logarithmic: low > 1e-100 && high / low > LOGARITHMIC_RATIO,
        })
    }

    /// The value in the middle of the scale.
    fn middle(&self) -> f64 {
        match self.is_logarithmic {
            true => (0.5 * (self.best.ln() + self.worst.ln())).exp(),
            false => 0.5 * (self.best + self.worst),
        }
    }

    /// The level of a value, from 0 for the best.
    fn level(&self, value: f64) -> usize {
        let share = match self.is_logarithmic {
            _ if self.worst == self.best => 0.0,
            true => (value / self.best).ln() / (self.worst / self.best).ln(),
            false => (value - self.best) / (self.worst - self.best),
        };
        ((share * HEAT.len() as f64) as usize).min(HEAT.len() - 1)
    }
}

impl Drawing<'_> {
    /// Draws the cells, the values of both axes, the scale and the legend of the outlines.
    pub(super) fn heat_map(&mut self, heat_map: &HeatMap) {
        let Some(scale) = HeatScale::new(heat_map) else {
            return;
        };
        let (left, right) = (self.left, self.width - SCALE_ROOM);
        self.right = right;
        self.outline_legend(heat_map);
        let (top, bottom) = (self.top, self.bottom);
        let width = (right - left) / heat_map.columns.len().max(1) as f64;
        let height = (bottom - top) / heat_map.rows.len().max(1) as f64;
        let place = |cell: &HeatCell| Area {
            left: left + width * cell.column as f64,
            top: bottom - height * (cell.row + 1) as f64,
            right: left + width * (cell.column + 1) as f64,
            bottom: bottom - height * cell.row as f64,
        };
        let texts = heat_map.cells.iter().filter_map(|cell| cell.value);
        let texts = texts.map(|value| text_width(&cell_text(value), TextRole::OnDark));
        let has_values = texts.fold(0.0, f64::max) + 4.0 <= width && height >= 15.0;
        for cell in &heat_map.cells {
            let area = place(cell);
            self.rectangle(
                match cell.value {
                    Some(value) => Fill::Heat(scale.level(value)),
                    None => Fill::NoValue,
                },
                area,
                &cell.text,
            );
            let (text, role) = match cell.value {
                Some(value) if scale.level(value) < FIRST_LIGHT_LEVEL => {
                    (cell_text(value), TextRole::OnDark)
                }
                Some(value) => (cell_text(value), TextRole::OnLight),
                None => ("×".to_owned(), TextRole::Tick),
            };
            if has_values {
                let middle = 0.5 * (area.left + area.right);
                let at = (middle, 0.5 * (area.top + area.bottom) + 4.0);
                self.text_if_free(role, Anchor::Middle, at, &text);
            }
        }
        for cell in &heat_map.cells {
            let outlines = [
                (cell.is_reference, Fill::ReferenceOutline),
                (cell.is_choice, Fill::ChoiceOutline),
            ];
            for (_, fill) in outlines.into_iter().filter(|(is_marked, _)| *is_marked) {
                let area = inset(place(cell), 2.5);
                self.rectangle(Fill::OutlineHalo, area, "");
                self.rectangle(fill, area, "");
            }
        }
        for (index, name) in heat_map.columns.iter().enumerate() {
            let at = (left + width * (index as f64 + 0.5), bottom + 16.0);
            // Values that would touch their neighbours are left out.
            let most = (5.0 * width).max(40.0);
            let name = fitted(name, TextRole::Tick, most);
            self.text_if_free(TextRole::Tick, Anchor::Middle, at, &name);
        }
        for (index, name) in heat_map.rows.iter().enumerate() {
            let at = (left - 6.0, bottom - height * (index as f64 + 0.5) + 4.0);
            let name = fitted(name, TextRole::Tick, left - 6.0);
            self.text_if_free(TextRole::Tick, Anchor::End, at, &name);
        }
        self.x_label();
        self.colour_scale(&scale);
    }

    /// Adds a rectangle.
    fn rectangle(&mut self, fill: Fill, area: Area, hover: &str) {
        self.picture.shapes.push(Shape::Rect(Rectangle {
            fill,
            area,
            hover: hover.to_owned(),
        }));
    }

    /// Draws the scale of colours at the right, the best value at the bottom.
    fn colour_scale(&mut self, scale: &HeatScale) {
        let (left, top, bottom) = (self.right + 12.0, self.top, self.bottom);
        let height = (bottom - top) / HEAT.len() as f64;
        for level in 0..HEAT.len() {
            let area = Area {
                left,
                top: bottom - height * (level + 1) as f64,
                right: left + SCALE_WIDTH,
                bottom: bottom - height * level as f64,
            };
            self.rectangle(Fill::Heat(level), area, "");
        }
        let x = left + SCALE_WIDTH + 5.0;
        for (y, text) in [
            (bottom, cell_text(scale.best)),
            (bottom - 14.0, "best".to_owned()),
            (0.5 * (top + bottom) + 4.0, cell_text(scale.middle())),
            (top + 8.0, cell_text(scale.worst)),
        ] {
            let text = fitted(&text, TextRole::Tick, self.width - x);
            self.text_if_free(TextRole::Tick, Anchor::Start, (x, y), &text);
        }
    }

    /// Explains the outlines of the reference and the choice, in a row above the cells.
    fn outline_legend(&mut self, heat_map: &HeatMap) {
        let has = |is: fn(&HeatCell) -> bool| heat_map.cells.iter().any(is);
        let entries = [
            (Fill::ReferenceOutline, "reference", has(|c| c.is_reference)),
            (Fill::ChoiceOutline, "choice", has(|c| c.is_choice)),
        ];
        // The legend is apart from the title above it.
        self.top += 6.0;
        let y = self.top - 6.0;
        let name = fitted(&self.chart.y.label, TextRole::AxisLabel, 0.5 * self.right);
        let mut x = self.left.max(text_width(&name, TextRole::AxisLabel) + 16.0);
        self.text_if_free(TextRole::AxisLabel, Anchor::Start, (0.0, y), &name);
        for (fill, name, is_shown) in entries {
            if !is_shown {
                continue;
            }
            let text = Text {
                role: TextRole::Legend,
                anchor: Anchor::Start,
                x: x + 20.0,
                y,
                text: name.to_owned(),
            };
            let end = text.area().right;
            let area = Area {
                left: x + 1.0,
                top: y - 9.0,
                right: x + 14.0,
                bottom: y + 1.0,
            };
            self.rectangle(Fill::OutlineHalo, area, "");
            self.rectangle(fill, area, "");
            self.text_if_free(TextRole::Legend, Anchor::Start, (x + 20.0, y), name);
            x = end + 14.0;
        }
        self.top += 6.0;
    }
}

/// A value as it stands in a cell, with three significant digits.
fn cell_text(value: f64) -> String {
    match value.abs() {
        size if (0.01..10.0).contains(&size) => format!("{value:.2}"),
        size if (10.0..100.0).contains(&size) => format!("{value:.1}"),
        size if (100.0..10_000.0).contains(&size) => format!("{value:.0}"),
        _ => number(value),
    }
}

/// An area that is smaller by a margin.
fn inset(area: Area, margin: f64) -> Area {
    Area {
        left: area.left + margin,
        top: area.top + margin,
        right: area.right - margin,
        bottom: area.bottom - margin,
    }
}
