//! Draws error bars and bands.

use super::chart::{Dot, Line, is_drawable};
use super::draw::Drawing;
use super::shape::{Pen, Step};

/// The share of a chart's height that a band may cover on average. A band that covers more only says that the readings
/// vary over all of it, and hides what is behind.
const MAX_BAND_HEIGHT: f64 = 0.3;

impl Drawing<'_> {
    /// Draws the error bars of a line in one path.
    pub(super) fn error_bars(&mut self, line: &Line) {
        let mut steps = Vec::new();
        for dot in line.dots.iter().filter(|dot| dot.is_drawable()) {
            let Some((low, high)) = drawable_span(dot) else {
                continue;
            };
            let x = self.x.position_of(dot.x);
            let (low, high) = (self.y.position_of(low), self.y.position_of(high));
            if low - high >= 1.5 {
                for (from, to) in [
                    ((x - 2.5, low), (x + 2.5, low)),
                    ((x, low), (x, high)),
                    ((x - 2.5, high), (x + 2.5, high)),
                ] {
                    steps.extend([Step::Move(from.0, from.1), Step::Line(to.0, to.1)]);
                }
            }
        }
        self.path(Pen::ErrorBar(line.colour), steps);
    }

    /// Draws the band between the lowest and the highest values of a line, unless it would fill the chart.
    pub(super) fn band(&mut self, line: &Line) {
        let dots = line.dots.iter().filter(|dot| dot.is_drawable());
        let spans: Vec<(f64, f64, f64)> = dots
            .filter_map(|dot| {
                let (low, high) = drawable_span(dot)?;
                let (low, high) = (self.y.position_of(low), self.y.position_of(high));
                Some((self.x.position_of(dot.x), low, high))
            })
            .collect();
        if spans.is_empty() {
            return;
        }
        let high = spans.iter().map(|(x, _, high)| (*x, *high));
        let low = spans.iter().map(|(x, low, _)| (*x, *low));
        let height: f64 = spans.iter().map(|(_, low, high)| low - high).sum();
        if height / spans.len() as f64 > MAX_BAND_HEIGHT * (self.bottom - self.top) {
            return;
        }
        let mut steps = Self::path_through(high.chain(low.rev()));
        steps.push(Step::Close);
        self.path(Pen::Band(line.colour), steps);
    }
}

/// The ends of a point's error bar or band, if both can be drawn.
fn drawable_span(dot: &Dot) -> Option<(f64, f64)> {
    dot.span
        .filter(|(low, high)| is_drawable(*low) && is_drawable(*high))
}
