//! Draws stacked bars.

use super::chart::{AxisKind, Colour};
use super::draw::Drawing;
use super::labels::Area;
use super::legend::part_names;
use super::shape::{Anchor, Fill, Pen, Rectangle, Shape, Step, TextRole};
use super::text_size::{fitted, text_width};

/// The distance between the upper edges of two bars, in pixels.
pub const ROW_HEIGHT: f64 = 34.0;
/// The height of a bar, in pixels.
const BAR_HEIGHT: f64 = 22.0;

impl Drawing<'_> {
    /// Draws the bars of the chart, one below the other.
    pub(super) fn bars(&mut self) {
        let most = ((self.right - self.left) / 62.0).max(2.0) as usize;
        let mut grid = Vec::new();
        for (value, label) in self.x.ticks(&AxisKind::Linear, most) {
            let x = self.x.position_of(value);
            if x > self.right + 0.5 {
                continue;
            }
            grid.extend([Step::Move(x, self.top - 6.0), Step::Line(x, self.bottom)]);
            let at = (x, self.bottom + 16.0);
            self.text_if_free(TextRole::Tick, Anchor::Middle, at, &label);
        }
        self.path(Pen::Grid, grid);
        self.x_label();
        let names = part_names(self.chart);
        for (row, bar) in self.chart.bars.iter().enumerate() {
            let top = self.top + ROW_HEIGHT * row as f64;
            let label = fitted(&bar.label, TextRole::Tick, self.left - 8.0);
            let at = (self.left - 8.0, top + 15.0);
            self.text_if_free(TextRole::Tick, Anchor::End, at, &label);
            let mut from = 0.0;
            for (name, amount, hover) in &bar.parts {
                let place = names.iter().position(|known| known == name);
                let (x, end) = (self.x.position_of(from), self.x.position_of(from + amount));
                from += amount;
                self.picture.shapes.push(Shape::Rect(Rectangle {
                    fill: Fill::Series(Colour::of(place.unwrap_or_default())),
                    area: Area {
                        left: x,
                        top,
                        right: end.max(x + 0.5),
                        bottom: top + BAR_HEIGHT,
                    },
                    hover: hover.clone(),
                }));
                if row == 0 && end - x > text_width(name, TextRole::OnBar) + 10.0 {
                    let at = (x + 6.0, top + 15.0);
                    self.text_if_free(TextRole::OnBar, Anchor::Start, at, name);
                }
            }
        }
    }
}
