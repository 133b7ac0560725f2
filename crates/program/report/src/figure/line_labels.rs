//! The labels of lines at their right or left end, and those of markers, guides and reference lines inside the chart.

use super::chart::{Chart, Line, LineStyle};
use super::draw::{Drawing, MAX_LABEL_SHARE};
use super::labels::{Area, LINE_HEIGHT, Spot, fits_column, spread};
use super::shape::{Anchor, Pen, Shape, Step, TextRole};
use super::text_size::{fitted, text_width};

/// The distance from which on a thin line connects a label with its point, in pixels.
const LEADER_DISTANCE: f64 = 13.0;

impl Drawing<'_> {
    /// Writes all labels: first those at the ends of lines, whose column is fixed, then those inside the chart.
    pub(super) fn labels(&mut self) {
        let chart = self.chart;
        let mut ends: Vec<(f64, &Line)> = Vec::new();
        let mut guides: Vec<&Line> = Vec::new();
        if self.has_end_labels {
            for line in chart.lines.iter().filter(|line| has_end_label(line)) {
                match (line.style, self.end_of(line)) {
                    (LineStyle::Guide, end) => match end.filter(|_| !self.labels_left) {
                        Some((x, y)) if x >= self.right - 30.0 => ends.push((y, line)),
                        _ => guides.push(line),
                    },
                    (_, Some((_, y))) => ends.push((y, line)),
                    (_, None) => {}
                }
            }
        }
        self.column(ends);
        for line in &chart.lines {
            if line.style == LineStyle::Markers && !line.label.is_empty() {
                let dots = line.dots.iter().rev().filter(|dot| dot.is_drawable());
                let spots: Vec<Spot> = dots
                    .take(1)
                    .map(|dot| self.position(dot))
                    .map(|(x, y)| Spot { x, y, radius: 7.0 })
                    .collect();
                self.label(&line.label, TextRole::Label(line.colour), &spots);
            }
        }
        for rule in &chart.reference_lines {
            let spots: Vec<Spot> = (0..8)
                .map(|part| f64::from(part) / 8.0)
                .map(|share| match rule.is_vertical {
                    true => (
                        self.x.position_of(rule.at),
                        self.top + 6.0 + share * (self.bottom - self.top),
                    ),
                    false => (
                        self.right - 20.0 - share * (self.right - self.left),
                        self.y.position_of(rule.at),
                    ),
                })
                .map(|(x, y)| Spot { x, y, radius: 1.0 })
                .collect();
            self.label(&rule.label, TextRole::Label(rule.colour), &spots);
        }
        for line in guides {
            let inside: Vec<(f64, f64)> = line
                .dots
                .iter()
                .filter(|dot| dot.is_drawable() && self.is_inside(dot))
                .map(|dot| self.position(dot))
                .collect();
            let spots: Vec<Spot> = [1.0, 0.9, 0.75, 0.6, 0.45, 0.3]
                .iter()
                .filter_map(|share| inside.get((share * (inside.len().max(1) - 1) as f64) as usize))
                .map(|(x, y)| Spot {
                    x: *x,
                    y: *y,
                    radius: 1.0,
                })
                .collect();
            self.label(&line.label, TextRole::Label(line.colour), &spots);
        }
    }

    /// The position of the labelled end of a line; `None` if nothing of it can be drawn.
    fn end_of(&self, line: &Line) -> Option<(f64, f64)> {
        let is_guide = line.style == LineStyle::Guide;
        let mut dots = line
            .dots
            .iter()
            .filter(|dot| dot.is_drawable() && (!is_guide || self.is_inside(dot)));
        let end = match self.labels_left && !is_guide {
            true => dots.next(),
            false => dots.next_back(),
        };
        end.map(|dot| self.position(dot))
    }

    /// Writes labels below each other beside the ends of their lines.
    fn column(&mut self, mut ends: Vec<(f64, &Line)>) {
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = ends.iter().map(|(y, _)| *y).collect();
        let places = spread(&wanted, self.column_ends());
        let from = self.x.position_of(self.x.ends().0);
        let (x, anchor, room) = match self.labels_left {
            true => (from - 2.0, Anchor::End, from - self.left - 4.0),
            false => (
                self.right + 8.0,
                Anchor::Start,
                self.width - self.right - 8.0,
            ),
        };
        for ((_, line), y) in ends.iter().zip(places) {
            let role = TextRole::Label(line.colour);
            let label = fitted(&line.label, role, room);
            self.text_if_free(role, anchor, (x, y + 4.0), &label);
        }
    }

    /// The first and last position of a label beside the chart.
    fn column_ends(&self) -> (f64, f64) {
        (self.top - 2.0, self.bottom - 8.0)
    }

    /// Writes a label at the best free place beside one of some points, with a thin line if it is far away.
    fn label(&mut self, text: &str, role: TextRole, spots: &[Spot]) {
        if text.is_empty() {
            return;
        }
        let Some(placed) = self.space.place(text, role, spots) else {
            return;
        };
        let (spot, area) = (placed.spot, placed.area);
        if area.distance(spot.x, spot.y) - spot.radius > LEADER_DISTANCE {
            let (x, y) = nearest(&area, &spot);
            let steps = vec![Step::Move(spot.x, spot.y), Step::Line(x, y)];
            self.picture.shapes.push(Shape::Path(Pen::Leader, steps));
        }
        let at = placed.position(role);
        self.picture.text(role, placed.anchor, at, &placed.text);
    }
}

/// The point of an area that is nearest to a spot.
fn nearest(area: &Area, spot: &Spot) -> (f64, f64) {
    (
        spot.x.clamp(area.left, area.right.max(area.left)),
        spot.y.clamp(area.top, area.bottom.max(area.top)),
    )
}

/// Whether the ends of lines have too little room for their labels, so that a legend names them.
pub fn needs_legend(chart: &Chart, width: f64, height: f64) -> bool {
    if chart.has_legend {
        return true;
    }
    let labelled: Vec<&Line> = chart
        .lines
        .iter()
        .filter(|line| has_end_label(line))
        .collect();
    let widest = labelled
        .iter()
        .map(|line| text_width(&line.label, TextRole::Label(line.colour)))
        .fold(0.0, f64::max);
    let ends = (0.0, height - 80.0 - LINE_HEIGHT);
    widest + 14.0 > MAX_LABEL_SHARE * width || !fits_column(labelled.len(), ends)
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
    let has_end = !matches!(
        line.style,
        LineStyle::Points | LineStyle::Markers | LineStyle::Published
    );
    !line.label.is_empty() && has_end
}
