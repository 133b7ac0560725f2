//! Draws a chart as the content of an SVG element: axes, lines, error bars, bands, bars.

use std::fmt::Write;

use super::chart::{AxisKind, Chart, Colour, Dot, Line, LineStyle, is_drawable};
use super::labels::{has_end_label, starts_further_apart};
use super::scale::Scale;
use super::svg::{LETTER_WIDTH, Size, escape, shortened, text, text_width};

/// A chart with the positions of its parts.
pub struct Drawing<'a> {
    pub(super) chart: &'a Chart,
    pub(super) size: Size,
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// Whether lines are labelled at their left end, because they are further apart there.
    pub(super) labels_left: bool,
}

impl<'a> Drawing<'a> {
    /// Computes the layout of a chart of this size.
    pub fn new(chart: &'a Chart, size: Size) -> Self {
        let (width, height) = (f64::from(size.0), f64::from(size.1));
        let labels = chart
            .lines
            .iter()
            .filter(|line| has_end_label(line) && line.style != LineStyle::Markers);
        let widest = labels
            .map(|line| text_width(&line.label))
            .fold(0.0, f64::max);
        let ends = chart.extent().unwrap_or(((0.0, 1.0), (0.0, 1.0)));
        let (top, bottom) = (34.0, height - 44.0);
        let y = Scale::new(&chart.y, ends.1, bottom, top);
        let ticks = y.ticks(&chart.y.kind, 6);
        let ticks = ticks.iter().map(|(_, text)| text_width(text));
        let mut left = ticks.fold(18.0, f64::max) + 14.0;
        if !chart.bars.is_empty() {
            let labels = chart.bars.iter().map(|bar| text_width(&bar.label));
            left = (labels.fold(0.0, f64::max) + 14.0).min(0.34 * width);
        }
        let labels_left = chart.bars.is_empty() && starts_further_apart(chart);
        let room = if widest > 0.0 {
            (widest + 16.0).min(0.36 * width)
        } else {
            16.0
        };
        let right = width - if labels_left { 16.0 } else { room };
        let from = if labels_left { left + room - 8.0 } else { left };
        Self {
            x: Scale::new(&chart.x, ends.0, from, right),
            y,
            chart,
            size,
            left,
            right,
            top,
            bottom,
            labels_left,
        }
    }

    /// Writes the content of the SVG element.
    pub fn draw(&self, out: &mut String) {
        let chart = self.chart;
        text(out, "ct", "start", 0.0, 14.0, &chart.title);
        if chart.bars.is_empty() {
            self.draw_axes(out);
            self.guides(out);
            for line in chart
                .lines
                .iter()
                .filter(|line| line.style != LineStyle::Guide)
            {
                self.draw_line(out, line);
            }
            self.labels(out);
        } else {
            self.bars(out);
        }
    }

    /// Draws the grid, the axes and their labels.
    fn draw_axes(&self, out: &mut String) {
        let chart = self.chart;
        let (left, right, top, bottom) = (self.left, self.right, self.top, self.bottom);
        let most = ((bottom - top) / 42.0).max(3.0) as usize;
        let mut grid = String::new();
        for (value, label) in self.y.ticks(&chart.y.kind, most) {
            let y = self.y.position_of(value);
            let _ = write!(grid, "M{left:.1} {y:.1}H{right:.1}");
            text(out, "tk", "end", left - 7.0, y + 4.0, &label);
        }
        let ticks = self
            .x
            .ticks(&chart.x.kind, ((right - left) / 62.0).max(2.0) as usize);
        let room = (right - left) / ticks.len().max(1) as f64;
        for (value, label) in &ticks {
            let x = self.x.position_of(*value);
            let _ = write!(grid, "M{x:.1} {bottom:.1}v4");
            let most = (room / LETTER_WIDTH).max(3.0) as usize;
            text(
                out,
                "tk",
                "middle",
                x,
                bottom + 17.0,
                &shortened(label, most),
            );
        }
        let _ = write!(out, "<path class=\"g\" d=\"{grid}\"/>");
        let _ = write!(
            out,
            "<path class=\"ax\" d=\"M{left:.1} {bottom:.1}H{right:.1}\"/>"
        );
        text(out, "al", "end", right, bottom + 36.0, &chart.x.label);
        if chart.y.label != chart.title {
            let far = f64::from(self.size.0);
            text(out, "al", "end", far, 14.0, &chart.y.label);
        }
    }

    /// Draws reference lines and guides, cut at the edges of the chart.
    fn guides(&self, out: &mut String) {
        for rule in &self.chart.reference_lines {
            let colour = rule.colour.0;
            if rule.is_vertical {
                let x = self.x.position_of(rule.at);
                let _ = write!(
                    out,
                    "<path class=\"r c{colour}\" d=\"M{x:.1} {:.1}V{:.1}\"/>",
                    self.top - 4.0,
                    self.bottom
                );
                let near = x > 0.62 * self.right;
                let (anchor, shift) = if near { ("end", -5.0) } else { ("start", 5.0) };
                let class = format!("lb c{colour}");
                text(out, &class, anchor, x + shift, self.top + 4.0, &rule.label);
            } else {
                let y = self.y.position_of(rule.at);
                let _ = write!(
                    out,
                    "<path class=\"r c{colour}\" d=\"M{:.1} {y:.1}H{:.1}\"/>",
                    self.left, self.right
                );
                let class = format!("lb c{colour}");
                text(out, &class, "end", self.right, y - 5.0, &rule.label);
            }
        }
        for line in self
            .chart
            .lines
            .iter()
            .filter(|line| line.style == LineStyle::Guide)
        {
            let path = self.path(line.dots.iter().filter(|dot| self.is_inside(dot)));
            let _ = write!(out, "<path class=\"gd c{}\" d=\"{path}\"/>", line.colour.0);
        }
    }

    /// Whether a data point lies within the ends of both axes.
    pub(super) fn is_inside(&self, dot: &Dot) -> bool {
        let ((left, right), (low, high)) = (self.x.ends(), self.y.ends());
        (left..=right).contains(&dot.x) && (low..=high).contains(&dot.y)
    }

    /// The SVG path through some data points.
    fn path<'d>(&self, dots: impl Iterator<Item = &'d Dot>) -> String {
        let mut path = String::new();
        for dot in dots.filter(|dot| dot.is_drawable()) {
            let verb = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(
                path,
                "{verb}{:.1} {:.1}",
                self.x.position_of(dot.x),
                self.y.position_of(dot.y)
            );
        }
        path
    }

    /// Draws a line and its data points.
    fn draw_line(&self, out: &mut String, line: &Line) {
        let colour = line.colour.0;
        if line.style == LineStyle::Band {
            self.band(out, line);
        }
        if !matches!(line.style, LineStyle::Points | LineStyle::Markers) {
            let path = self.path(line.dots.iter());
            let _ = write!(out, "<path class=\"l c{colour}\" d=\"{path}\"/>");
        }
        if matches!(
            line.style,
            LineStyle::PointsAndLine | LineStyle::Points | LineStyle::Markers
        ) {
            self.error_bars(out, line);
        }
        let (class, radius) = match line.style {
            LineStyle::Line | LineStyle::Guide | LineStyle::Band => {
                return self.hover_targets(out, line);
            }
            LineStyle::Markers => ("p m", 6.0),
            _ if line.dots.len() > 60 => ("p", 2.0),
            _ => ("p", 3.0),
        };
        for dot in line.dots.iter().filter(|dot| dot.is_drawable()) {
            let _ = write!(
                out,
                "<circle class=\"{class} c{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\"><title>{}</title></circle>",
                self.x.position_of(dot.x),
                self.y.position_of(dot.y),
                escape(&dot.text)
            );
        }
    }

    /// Adds invisible points that show a text when the pointer is over them.
    fn hover_targets(&self, out: &mut String, line: &Line) {
        let every = line.dots.len().div_ceil(60).max(1);
        for dot in line
            .dots
            .iter()
            .step_by(every)
            .filter(|dot| !dot.text.is_empty() && dot.is_drawable())
        {
            let _ = write!(
                out,
                "<circle class=\"p q c{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\"><title>{}</title></circle>",
                line.colour.0,
                self.x.position_of(dot.x),
                self.y.position_of(dot.y),
                escape(&dot.text)
            );
        }
    }

    /// Draws the error bars of a line in one path.
    fn error_bars(&self, out: &mut String, line: &Line) {
        let mut path = String::new();
        for dot in line.dots.iter().filter(|dot| dot.is_drawable()) {
            let Some((low, high)) = dot
                .span
                .filter(|(low, high)| is_drawable(*low) && is_drawable(*high))
            else {
                continue;
            };
            let (x, low, high) = (
                self.x.position_of(dot.x),
                self.y.position_of(low),
                self.y.position_of(high),
            );
            if low - high >= 1.5 {
                let _ = write!(
                    path,
                    "M{:.1} {low:.1}h5M{x:.1} {low:.1}V{high:.1}M{0:.1} {high:.1}h5",
                    x - 2.5
                );
            }
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"e c{}\" d=\"{path}\"/>", line.colour.0);
        }
    }

    /// Draws the band between the lowest and the highest values of a line.
    fn band(&self, out: &mut String, line: &Line) {
        let mut path = String::new();
        let drawable = |dot: &&Dot| {
            let span = dot
                .span
                .is_some_and(|(low, high)| is_drawable(low) && is_drawable(high));
            dot.is_drawable() && span
        };
        let drawn = || line.dots.iter().filter(drawable);
        let spans = || drawn().filter_map(|dot| Some((dot.x, dot.span?)));
        for (x, (_, high)) in spans() {
            let verb = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(
                path,
                "{verb}{:.1} {:.1}",
                self.x.position_of(x),
                self.y.position_of(high)
            );
        }
        for (x, (low, _)) in spans().collect::<Vec<_>>().into_iter().rev() {
            let _ = write!(
                path,
                "L{:.1} {:.1}",
                self.x.position_of(x),
                self.y.position_of(low)
            );
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"b c{}\" d=\"{path}Z\"/>", line.colour.0);
        }
    }

    /// Draws stacked bars.
    fn bars(&self, out: &mut String) {
        let chart = self.chart;
        let most = (self.left / LETTER_WIDTH) as usize;
        let ticks = self.x.ticks(
            &AxisKind::Linear,
            ((self.right - self.left) / 62.0).max(2.0) as usize,
        );
        let mut grid = String::new();
        for (value, label) in ticks {
            let x = self.x.position_of(value);
            let _ = write!(grid, "M{x:.1} {:.1}V{:.1}", self.top - 6.0, self.bottom);
            text(out, "tk", "middle", x, self.bottom + 17.0, &label);
        }
        let _ = write!(out, "<path class=\"g\" d=\"{grid}\"/>");
        text(
            out,
            "al",
            "end",
            self.right,
            self.bottom + 36.0,
            &chart.x.label,
        );
        let mut names: Vec<&str> = Vec::new();
        for (row, bar) in chart.bars.iter().enumerate() {
            let y = self.top + 34.0 * row as f64;
            text(
                out,
                "tk",
                "end",
                self.left - 8.0,
                y + 15.0,
                &shortened(&bar.label, most),
            );
            let mut from = 0.0;
            for (name, amount, shown) in &bar.parts {
                let place = names
                    .iter()
                    .position(|known| known == name)
                    .unwrap_or_else(|| {
                        names.push(name);
                        names.len() - 1
                    });
                let (x, end) = (self.x.position_of(from), self.x.position_of(from + amount));
                let colour = Colour::of(place).0;
                let _ = write!(
                    out,
                    "<rect class=\"p s c{colour}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"22\"><title>{}</title></rect>",
                    (end - x).max(0.5),
                    escape(shown)
                );
                if row == 0 && end - x > text_width(name) + 8.0 {
                    text(out, "in", "start", x + 6.0, y + 15.0, name);
                }
                from += amount;
            }
        }
        self.legend(out, &names);
    }

    /// Writes the names of a bar's parts in their colours, at the top right.
    fn legend(&self, out: &mut String, names: &[&str]) {
        let mut right = f64::from(self.size.0);
        for (place, name) in names.iter().enumerate().rev() {
            let name = shortened(name, 14);
            if right - text_width(&name) < text_width(&self.chart.title) + 12.0 {
                break;
            }
            let class = format!("lb c{}", Colour::of(place).0);
            text(out, &class, "end", right, 14.0, &name);
            right -= text_width(&name) + 12.0;
        }
    }
}
