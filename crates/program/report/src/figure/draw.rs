//! Draws a chart as a picture: axes, lines, error bars and bands. Bars and heat maps are drawn by their own modules.

use super::chart::{AxisKind, Chart, Colour, Dot, Line, LineStyle};
use super::header::{HEAD, header};
use super::labels::{Area, LabelSpace, Spot};
use super::line_labels::{has_end_label, needs_legend, starts_further_apart};
use super::palette::Marker;
use super::scale::Scale;
use super::shape::{Anchor, Mark, MarkKind, Pen, Picture, Shape, Step, Text, TextRole};
use super::text_size::{fitted, text_width};

/// The height below the horizontal axis, for its values and its name.
const FOOT: f64 = 44.0;

/// The largest share of the width that labels at the ends of lines may take.
pub const MAX_LABEL_SHARE: f64 = 0.34;

/// A chart with the positions of its parts.
pub struct Drawing<'a> {
    pub(super) chart: &'a Chart,
    pub(super) width: f64,
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// Whether lines are labelled at their left end, because they are further apart there.
    pub(super) labels_left: bool,
    /// Whether the ends of lines have labels; if not, a legend names the lines.
    pub(super) has_end_labels: bool,
    /// The picture drawn so far.
    pub(super) picture: Picture,
    /// The space that is free for labels.
    pub(super) space: LabelSpace,
}

/// Draws a chart in a picture of this width. The picture is higher than `height` if the title or the legend takes
/// several lines, or if there are many bars.
pub fn draw(chart: &Chart, width: f64, height: f64) -> Picture {
    draw_in(chart, width, height, false)
}

/// Draws a chart of a figure that may have one legend for all its charts.
pub fn draw_in(chart: &Chart, width: f64, height: f64, has_common_legend: bool) -> Picture {
    let mut drawing = Drawing::new(chart, width, height, has_common_legend);
    if let Some(heat_map) = &chart.heat_map {
        drawing.heat_map(heat_map);
    } else if !chart.bars.is_empty() {
        drawing.bars();
    } else {
        drawing.draw_axes();
        drawing.guides();
        for line in &chart.lines {
            drawing.draw_line(line);
        }
        drawing.labels();
    }
    drawing.picture
}

impl<'a> Drawing<'a> {
    /// Draws the title and the legend, and computes the layout of what is below.
    fn new(chart: &'a Chart, width: f64, height: f64, has_common_legend: bool) -> Self {
        let mut picture = Picture {
            width,
            ..Picture::default()
        };
        let has_end_labels = !needs_legend(chart, width, height);
        let has_legend = !has_common_legend && (!has_end_labels || !chart.bars.is_empty());
        let head = header(&mut picture, chart, has_legend);
        // A single line of title is part of the usual height.
        let height = match chart.bars.len() {
            0 => height + head - HEAD,
            bars => head + FOOT + super::bars::ROW_HEIGHT * bars as f64 + 6.0,
        };
        picture.height = height;
        let labels = chart
            .lines
            .iter()
            .filter(|line| has_end_labels && has_end_label(line));
        let widest = labels
            .map(|line| text_width(&line.label, TextRole::Label(line.colour)))
            .fold(0.0, f64::max);
        let ends = chart.extent().unwrap_or(((0.0, 1.0), (0.0, 1.0)));
        let (top, bottom) = (head, height - FOOT);
        let y = Scale::new(&chart.y, ends.1, bottom, top);
        let ticks = y.ticks(&chart.y.kind, tick_count(top, bottom));
        let ticks = ticks.iter();
        let ticks = ticks.map(|(_, text)| text_width(text, TextRole::Tick));
        let mut left = (ticks.fold(18.0, f64::max) + 12.0).min(0.34 * width);
        let row_labels: Vec<&str> = match &chart.heat_map {
            Some(heat_map) => heat_map.rows.iter().map(String::as_str).collect(),
            None => chart.bars.iter().map(|bar| bar.label.as_str()).collect(),
        };
        if !row_labels.is_empty() {
            let widths = row_labels
                .iter()
                .map(|label| text_width(label, TextRole::Tick));
            left = (widths.fold(0.0, f64::max) + 14.0).min(0.36 * width);
        }
        let labels_left = has_end_labels && starts_further_apart(chart);
        let room = match widest > 0.0 {
            true => (widest + 14.0).min(MAX_LABEL_SHARE * width),
            // The last value of the axis may be centred at the right end.
            false => 18.0,
        };
        let right = width - if labels_left { 18.0 } else { room };
        let from = if labels_left { left + room - 6.0 } else { left };
        let mut space = LabelSpace::new(Area {
            left: 0.0,
            top: 0.0,
            right: width,
            bottom: height,
        });
        for shape in &picture.shapes {
            if let Shape::Text(text) = shape {
                space.reserve(text.area());
            }
        }
        Self {
            x: Scale::new(&chart.x, ends.0, from, right),
            y,
            chart,
            width,
            left,
            right,
            top,
            bottom,
            labels_left,
            has_end_labels,
            picture,
            space,
        }
    }

    /// Adds a text if no other text is in its place.
    pub(super) fn text_if_free(
        &mut self,
        role: TextRole,
        anchor: Anchor,
        (x, y): (f64, f64),
        text: &str,
    ) {
        let text = Text {
            role,
            anchor,
            x,
            y,
            text: text.to_owned(),
        };
        // Numbers that nearly touch look like one.
        let room = if role == TextRole::Tick { 3.0 } else { 0.0 };
        if !text.text.is_empty() && self.space.reserve_if_free(text.area(), room) {
            self.picture.shapes.push(Shape::Text(text));
        }
    }

    /// Adds a path.
    pub(super) fn path(&mut self, pen: Pen, steps: Vec<Step>) {
        if !steps.is_empty() {
            self.picture.shapes.push(Shape::Path(pen, steps));
        }
    }

    /// Writes the name of the horizontal axis.
    pub(super) fn x_label(&mut self) {
        let label = fitted(&self.chart.x.label, TextRole::AxisLabel, self.width);
        let at = (self.right, self.bottom + 35.0);
        let at = (at.0.max(text_width(&label, TextRole::AxisLabel)), at.1);
        self.text_if_free(TextRole::AxisLabel, Anchor::End, at, &label);
    }

    /// Draws the grid, the axes and their labels.
    fn draw_axes(&mut self) {
        let chart = self.chart;
        let (left, right, top, bottom) = (self.left, self.right, self.top, self.bottom);
        let most = tick_count(top, bottom);
        let mut grid = Vec::new();
        let within = |at: f64, from: f64, to: f64| at >= from - 0.5 && at <= to + 0.5;
        for (value, label) in self.y.ticks(&chart.y.kind, most) {
            let y = self.y.position_of(value);
            if !within(y, top, bottom) {
                continue;
            }
            grid.extend([Step::Move(left, y), Step::Line(right, y)]);
            let label = fitted(&label, TextRole::Tick, left - 7.0);
            self.text_if_free(TextRole::Tick, Anchor::End, (left - 6.0, y + 4.0), &label);
        }
        let ticks = self
            .x
            .ticks(&chart.x.kind, ((right - left) / 50.0).max(2.0) as usize);
        let room = (right - left) / ticks.len().max(1) as f64;
        for (value, label) in &ticks {
            let x = self.x.position_of(*value);
            if !within(x, left, right) {
                continue;
            }
            grid.extend([Step::Move(x, bottom), Step::Line(x, bottom + 4.0)]);
            let label = match chart.x.kind {
                AxisKind::Categories(_) => fitted(label, TextRole::Tick, room - 4.0),
                _ => label.clone(),
            };
            self.text_if_free(TextRole::Tick, Anchor::Middle, (x, bottom + 16.0), &label);
        }
        self.path(Pen::Grid, grid);
        let axis = vec![Step::Move(left, bottom), Step::Line(right, bottom)];
        self.path(Pen::Axis, axis);
        self.x_label();
        self.space.end_at(bottom);
    }

    /// Draws reference lines and guides, cut at the edges of the chart.
    fn guides(&mut self) {
        for rule in &self.chart.reference_lines {
            let ends = match rule.is_vertical {
                true => {
                    let x = self.x.position_of(rule.at);
                    [(x, self.top - 4.0), (x, self.bottom)]
                }
                false => {
                    let y = self.y.position_of(rule.at);
                    [(self.left, y), (self.right, y)]
                }
            };
            self.space.avoid_line(ends[0], ends[1]);
            let steps = vec![
                Step::Move(ends[0].0, ends[0].1),
                Step::Line(ends[1].0, ends[1].1),
            ];
            self.path(Pen::Rule(rule.colour), steps);
        }
    }

    /// Whether a data point lies within the ends of both axes.
    pub(super) fn is_inside(&self, dot: &Dot) -> bool {
        let ((left, right), (low, high)) = (self.x.ends(), self.y.ends());
        (left..=right).contains(&dot.x) && (low..=high).contains(&dot.y)
    }

    /// The position of a data point.
    pub(super) fn position(&self, dot: &Dot) -> (f64, f64) {
        (self.x.position_of(dot.x), self.y.position_of(dot.y))
    }

    /// The path through some positions.
    pub(super) fn path_through(positions: impl IntoIterator<Item = (f64, f64)>) -> Vec<Step> {
        let steps = positions.into_iter().enumerate();
        let steps = steps.map(|(index, (x, y))| match index {
            0 => Step::Move(x, y),
            _ => Step::Line(x, y),
        });
        steps.collect()
    }

    /// Draws a line and its data points.
    fn draw_line(&mut self, line: &Line) {
        if line.style == LineStyle::Band {
            self.band(line);
        }
        let is_guide = line.style == LineStyle::Guide;
        let dots = line.dots.iter().filter(|dot| dot.is_drawable());
        let dots = dots.filter(|dot| !is_guide || self.is_inside(dot));
        let positions: Vec<(f64, f64)> = dots.map(|dot| self.position(dot)).collect();
        let has_points = matches!(
            line.style,
            LineStyle::PointsAndLine
                | LineStyle::Points
                | LineStyle::Markers
                | LineStyle::Published
        );
        let pen = match line.style {
            LineStyle::PointsAndLine => Some(Pen::Series(line.colour)),
            LineStyle::Line | LineStyle::Band if self.has_similar_lines(line) => {
                Some(Pen::DashedSeries(line.colour))
            }
            LineStyle::Line | LineStyle::Band => Some(Pen::Series(line.colour)),
            LineStyle::Guide | LineStyle::Level => Some(Pen::Guide(line.colour)),
            LineStyle::Points | LineStyle::Markers | LineStyle::Published => None,
        };
        if let Some(pen) = pen {
            // Labels need not know every bend of a line of many points.
            let every = positions.len().div_ceil(80).max(1);
            let coarse: Vec<(f64, f64)> = positions.iter().copied().step_by(every).collect();
            for pair in coarse.windows(2) {
                self.space.avoid_line(pair[0], pair[1]);
            }
            self.path(pen, Self::path_through(positions.iter().copied()));
        }
        if has_points {
            self.error_bars(line);
        }
        let (kind, radius) = match line.style {
            LineStyle::Line | LineStyle::Guide | LineStyle::Level | LineStyle::Band => {
                return self.hover_targets(line);
            }
            LineStyle::Markers => (MarkKind::Ringed, 6.0),
            LineStyle::Published => (MarkKind::Hollow, 4.2),
            _ if line.dots.len() > 60 => (MarkKind::Point, 2.0),
            _ => (MarkKind::Point, 3.0),
        };
        for dot in line.dots.iter().filter(|dot| dot.is_drawable()) {
            let (x, y) = self.position(dot);
            self.space.avoid_point(Spot { x, y, radius });
            if line.style == LineStyle::Markers {
                // No label may hide the reference or the choice.
                self.space.reserve(Area::around(x, y, 5.0));
            }
            self.mark(kind, line.colour, (x, y), radius, &dot.text);
        }
    }

    /// Whether another line of the same style has another colour, so that both need dashes to be told apart.
    fn has_similar_lines(&self, line: &Line) -> bool {
        let mut lines = self.chart.lines.iter();
        lines.any(|other| other.style == line.style && other.colour != line.colour)
    }

    /// Adds a data point.
    fn mark(&mut self, kind: MarkKind, colour: Colour, at: (f64, f64), radius: f64, hover: &str) {
        let marker = match kind {
            MarkKind::Ringed | MarkKind::HoverTarget => Marker(&[]),
            _ => colour.paint().marker,
        };
        self.picture.shapes.push(Shape::Mark(Mark {
            kind,
            marker,
            colour,
            x: at.0,
            y: at.1,
            radius,
            hover: hover.to_owned(),
        }));
    }

    /// Adds invisible points that show a text when the pointer is over them.
    fn hover_targets(&mut self, line: &Line) {
        let every = line.dots.len().div_ceil(60).max(1);
        let dots = line.dots.iter().step_by(every);
        for dot in dots.filter(|dot| !dot.text.is_empty() && dot.is_drawable()) {
            let at = self.position(dot);
            self.mark(MarkKind::HoverTarget, line.colour, at, 2.0, &dot.text);
        }
    }
}

/// The number of values to write beside a vertical axis.
fn tick_count(top: f64, bottom: f64) -> usize {
    ((bottom - top) / 36.0).max(3.0) as usize
}
