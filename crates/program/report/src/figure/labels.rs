//! The labels of lines, at their right or left end.

use super::chart::{Chart, Line, LineStyle};
use super::draw::Drawing;
use super::svg::{LETTER_WIDTH, shortened, text, text_width};

impl Drawing<'_> {
    /// Writes labels at the ends of lines; labels that would overlap are shifted apart.
    pub(super) fn labels(&self, out: &mut String) {
        /// The smallest vertical distance between two labels, in pixels.
        const APART: f64 = 14.0;
        let mut ends: Vec<(f64, &Line)> = Vec::new();
        for line in self.chart.lines.iter().filter(|line| has_end_label(line)) {
            match line.style {
                LineStyle::Markers => self.label_marker(out, line),
                LineStyle::Guide => {
                    let mut seen = line.dots.iter().filter(|dot| self.is_inside(dot));
                    let Some(last) = seen.next_back() else {
                        continue;
                    };
                    let (x, y) = (self.x.position_of(last.x), self.y.position_of(last.y));
                    match x < self.right - 30.0 {
                        true => {
                            let class = format!("lb c{}", line.colour.0);
                            text(out, &class, "start", x + 6.0, y, &line.label);
                        }
                        false if self.labels_left => {
                            let class = format!("lb c{}", line.colour.0);
                            text(out, &class, "end", x, y + 15.0, &line.label);
                        }
                        false => ends.push((y, line)),
                    }
                }
                _ => {
                    let end = match self.labels_left {
                        true => line.dots.first(),
                        false => line.dots.last(),
                    };
                    ends.extend(end.map(|dot| (self.y.position_of(dot.y), line)));
                }
            }
        }
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut places: Vec<f64> = ends.iter().map(|(y, _)| *y).collect();
        for index in 1..places.len() {
            places[index] = places[index].max(places[index - 1] + APART);
        }
        let mut limit = self.bottom;
        for place in places.iter_mut().rev() {
            *place = place.min(limit);
            limit = *place - APART;
        }
        let from = self.x.position_of(self.x.ends().0);
        let room = match self.labels_left {
            true => from - self.left - 4.0,
            false => f64::from(self.size.0) - self.right - 8.0,
        };
        let most = (room / LETTER_WIDTH).max(3.0) as usize;
        for ((_, line), y) in ends.iter().zip(places) {
            let class = format!("lb c{}", line.colour.0);
            let label = shortened(&line.label, most);
            match self.labels_left {
                true => text(out, &class, "end", from, y + 4.0, &label),
                false => text(out, &class, "start", self.right + 8.0, y + 4.0, &label),
            }
        }
    }

    /// Writes the label of a marker on the side on which the chart has room.
    fn label_marker(&self, out: &mut String, line: &Line) {
        let Some(dot) = line.dots.last().filter(|dot| dot.is_drawable()) else {
            return;
        };
        let (x, y) = (self.x.position_of(dot.x), self.y.position_of(dot.y));
        let class = format!("lb c{}", line.colour.0);
        let width = f64::from(self.size.0);
        let label = shortened(&line.label, ((width - self.left) / LETTER_WIDTH) as usize);
        let from = (x + 10.0).min(width - text_width(&label));
        text(out, &class, "start", from, y - 10.0, &label);
    }
}

/// Whether the lines are further apart at their left end than at their right end.
pub fn starts_further_apart(chart: &Chart) -> bool {
    let lines = || {
        let drawn = |line: &&Line| {
            matches!(line.style, LineStyle::PointsAndLine | LineStyle::Line) && has_end_label(line)
        };
        chart.lines.iter().filter(drawn)
    };
    let spread = |values: Vec<f64>| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low
    };
    let first = spread(
        lines()
            .filter_map(|line| Some(line.dots.first()?.y))
            .collect(),
    );
    let last = spread(
        lines()
            .filter_map(|line| Some(line.dots.last()?.y))
            .collect(),
    );
    lines().count() > 1 && first > 2.0 * last
}

/// Whether the line has a label at its end.
pub fn has_end_label(line: &Line) -> bool {
    !line.label.is_empty() && !matches!(line.style, LineStyle::Points)
}
