//! Charts as SVG. Colours are classes, so that a page decides them; a picture of its own brings its style.

use std::fmt::Write;

use super::chart::{Chart, Dot, Figure, Hue, Kind, Line, Look};
use super::scale::Scale;

/// Width and height of a chart, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u32, pub u32);

impl Size {
    /// One of several side by side, or alone on a phone.
    pub const SMALL: Self = Self(360, 270);
    /// Alone on a desk.
    pub const WIDE: Self = Self(860, 430);
    /// Alone on a phone, and important.
    pub const TALL: Self = Self(360, 340);
}

/// Text that cannot break out of its place.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // Not allowed in XML, in no form.
            letter if letter.is_control() && !matches!(letter, '\n' | '\t') => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// A chart as an element that stands in a page.
pub fn inline(chart: &Chart, size: Size, class: &str) -> String {
    let Size(width, height) = sized(chart, size);
    let mut out = format!(
        "<svg class=\"chart {class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(&chart.alternative())
    );
    Drawing::new(chart, Size(width, height)).draw(&mut out);
    out += "</svg>";
    out
}

/// A figure as a file of its own.
pub fn alone(figure: &Figure) -> String {
    const GAP: u32 = 16;
    const HEAD: u32 = 44;
    let sizes: Vec<Size> = figure
        .charts
        .iter()
        .map(|chart| sized(chart, if chart.wide { Size::WIDE } else { Size::SMALL }))
        .collect();
    let most = if sizes.iter().any(|size| size.0 > 500) {
        1
    } else {
        3
    };
    let across = sizes.len().clamp(1, most);
    let column = sizes.iter().map(|size| size.0).max().unwrap_or(0);
    let mut body = String::new();
    let mut top = HEAD;
    for (row, charts) in sizes.chunks(across).enumerate() {
        for (place, size) in charts.iter().enumerate() {
            let left = GAP + place as u32 * (column + GAP);
            let _ = write!(
                body,
                "<svg x=\"{left}\" y=\"{top}\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">",
                size.0, size.1
            );
            Drawing::new(&figure.charts[row * across + place], *size).draw(&mut body);
            body += "</svg>";
        }
        top += charts.iter().map(|size| size.1).max().unwrap_or(0) + GAP;
    }
    let width = across as u32 * (column + GAP) + GAP;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{top}\" viewBox=\"0 0 {width} {top}\"><title>{title}</title><desc>{}</desc><style>{}</style><rect class=\"paper\" width=\"{width}\" height=\"{top}\"/><text class=\"head\" x=\"{GAP}\" y=\"28\">{title}</text>{body}</svg>\n",
        escape(&figure.caption),
        super::palette::alone_style(),
        title = escape(&figure.title),
    )
}

fn sized(chart: &Chart, size: Size) -> Size {
    match chart.bars.len() as u32 {
        0 => size,
        bars => Size(size.0, 84 + 34 * bars),
    }
}

struct Drawing<'a> {
    chart: &'a Chart,
    size: Size,
    x: Scale,
    y: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// Whether lines are named where they begin, because they lie further apart there.
    named_left: bool,
}

/// About what a letter takes at the size of labels.
const LETTER: f64 = 6.3;

fn text_width(text: &str) -> f64 {
    LETTER * text.chars().count() as f64
}

impl<'a> Drawing<'a> {
    fn new(chart: &'a Chart, size: Size) -> Self {
        let (width, height) = (f64::from(size.0), f64::from(size.1));
        let labels = chart
            .lines
            .iter()
            .filter(|line| at_end(line) && line.look != Look::Marks);
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
        let named_left = chart.bars.is_empty() && spread_at_start(chart);
        let room = if widest > 0.0 {
            (widest + 16.0).min(0.36 * width)
        } else {
            16.0
        };
        let right = width - if named_left { 16.0 } else { room };
        let from = if named_left { left + room - 8.0 } else { left };
        Self {
            x: Scale::new(&chart.x, ends.0, from, right),
            y,
            chart,
            size,
            left,
            right,
            top,
            bottom,
            named_left,
        }
    }

    fn draw(&self, out: &mut String) {
        let chart = self.chart;
        text(out, "ct", "start", 0.0, 14.0, &chart.title);
        if chart.bars.is_empty() {
            self.axes(out);
            self.guides(out);
            for line in chart.lines.iter().filter(|line| line.look != Look::Guide) {
                self.line(out, line);
            }
            self.labels(out);
        } else {
            self.bars(out);
        }
    }

    fn axes(&self, out: &mut String) {
        let chart = self.chart;
        let (left, right, top, bottom) = (self.left, self.right, self.top, self.bottom);
        let most = ((bottom - top) / 42.0).max(3.0) as usize;
        let mut grid = String::new();
        for (value, label) in self.y.ticks(&chart.y.kind, most) {
            let y = self.y.at(value);
            let _ = write!(grid, "M{left:.1} {y:.1}H{right:.1}");
            text(out, "tk", "end", left - 7.0, y + 4.0, &label);
        }
        let ticks = self
            .x
            .ticks(&chart.x.kind, ((right - left) / 62.0).max(2.0) as usize);
        let room = (right - left) / ticks.len().max(1) as f64;
        for (value, label) in &ticks {
            let x = self.x.at(*value);
            let _ = write!(grid, "M{x:.1} {bottom:.1}v4");
            let most = (room / LETTER).max(3.0) as usize;
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

    /// What dots are held against; it ends where the chart ends.
    fn guides(&self, out: &mut String) {
        for rule in &self.chart.rules {
            let hue = rule.hue.0;
            if rule.upright {
                let x = self.x.at(rule.at);
                let _ = write!(
                    out,
                    "<path class=\"r c{hue}\" d=\"M{x:.1} {:.1}V{:.1}\"/>",
                    self.top - 4.0,
                    self.bottom
                );
                let near = x > 0.62 * self.right;
                let (anchor, shift) = if near { ("end", -5.0) } else { ("start", 5.0) };
                let class = format!("lb c{hue}");
                text(out, &class, anchor, x + shift, self.top + 4.0, &rule.label);
            } else {
                let y = self.y.at(rule.at);
                let _ = write!(
                    out,
                    "<path class=\"r c{hue}\" d=\"M{:.1} {y:.1}H{:.1}\"/>",
                    self.left, self.right
                );
                let class = format!("lb c{hue}");
                text(out, &class, "end", self.right, y - 5.0, &rule.label);
            }
        }
        for line in self
            .chart
            .lines
            .iter()
            .filter(|line| line.look == Look::Guide)
        {
            let path = self.path(line.dots.iter().filter(|dot| self.is_inside(dot)));
            let _ = write!(out, "<path class=\"gd c{}\" d=\"{path}\"/>", line.hue.0);
        }
    }

    fn is_inside(&self, dot: &Dot) -> bool {
        let ((left, right), (low, high)) = (self.x.ends(), self.y.ends());
        (left..=right).contains(&dot.x) && (low..=high).contains(&dot.y)
    }

    fn path<'d>(&self, dots: impl Iterator<Item = &'d Dot>) -> String {
        let mut path = String::new();
        for dot in dots.filter(|dot| dot.x.is_finite() && dot.y.is_finite()) {
            let verb = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(
                path,
                "{verb}{:.1} {:.1}",
                self.x.at(dot.x),
                self.y.at(dot.y)
            );
        }
        path
    }

    fn line(&self, out: &mut String, line: &Line) {
        let hue = line.hue.0;
        if line.look == Look::Band {
            self.band(out, line);
        }
        if !matches!(line.look, Look::Cloud | Look::Marks) {
            let path = self.path(line.dots.iter());
            let _ = write!(out, "<path class=\"l c{hue}\" d=\"{path}\"/>");
        }
        if matches!(line.look, Look::Dotted | Look::Cloud | Look::Marks) {
            self.spans(out, line);
        }
        let (class, radius) = match line.look {
            Look::Plain | Look::Guide | Look::Band => return self.silent_dots(out, line),
            Look::Marks => ("p m", 6.0),
            _ if line.dots.len() > 60 => ("p", 2.0),
            _ => ("p", 3.0),
        };
        for dot in line
            .dots
            .iter()
            .filter(|dot| dot.x.is_finite() && dot.y.is_finite())
        {
            let _ = write!(
                out,
                "<circle class=\"{class} c{hue}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\"><title>{}</title></circle>",
                self.x.at(dot.x),
                self.y.at(dot.y),
                escape(&dot.text)
            );
        }
    }

    /// Places to point at on a line that shows no dots.
    fn silent_dots(&self, out: &mut String, line: &Line) {
        let every = line.dots.len().div_ceil(60).max(1);
        for dot in line
            .dots
            .iter()
            .step_by(every)
            .filter(|dot| !dot.text.is_empty())
        {
            let _ = write!(
                out,
                "<circle class=\"p q c{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\"><title>{}</title></circle>",
                line.hue.0,
                self.x.at(dot.x),
                self.y.at(dot.y),
                escape(&dot.text)
            );
        }
    }

    /// Error bars, one path for all.
    fn spans(&self, out: &mut String, line: &Line) {
        let mut path = String::new();
        for dot in line.dots.iter().filter(|dot| dot.x.is_finite()) {
            let Some((low, high)) = dot
                .span
                .filter(|(low, high)| low.is_finite() && high.is_finite())
            else {
                continue;
            };
            let (x, low, high) = (self.x.at(dot.x), self.y.at(low), self.y.at(high));
            if low - high >= 1.5 {
                let _ = write!(
                    path,
                    "M{:.1} {low:.1}h5M{x:.1} {low:.1}V{high:.1}M{0:.1} {high:.1}h5",
                    x - 2.5
                );
            }
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"e c{}\" d=\"{path}\"/>", line.hue.0);
        }
    }

    fn band(&self, out: &mut String, line: &Line) {
        let mut path = String::new();
        let spans = || line.dots.iter().filter_map(|dot| Some((dot.x, dot.span?)));
        for (x, (_, high)) in spans() {
            let verb = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{verb}{:.1} {:.1}", self.x.at(x), self.y.at(high));
        }
        for (x, (low, _)) in spans().collect::<Vec<_>>().into_iter().rev() {
            let _ = write!(path, "L{:.1} {:.1}", self.x.at(x), self.y.at(low));
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"b c{}\" d=\"{path}Z\"/>", line.hue.0);
        }
    }

    /// At the ends of lines, moved apart where they would meet.
    fn labels(&self, out: &mut String) {
        const APART: f64 = 14.0;
        let mut ends: Vec<(f64, &Line)> = Vec::new();
        for line in self.chart.lines.iter().filter(|line| at_end(line)) {
            match line.look {
                Look::Marks => self.beside(out, line),
                Look::Guide => {
                    let seen = line.dots.iter().filter(|dot| self.is_inside(dot));
                    let Some(last) = seen.last() else { continue };
                    let (x, y) = (self.x.at(last.x), self.y.at(last.y));
                    match x < self.right - 30.0 {
                        true => {
                            let class = format!("lb c{}", line.hue.0);
                            text(out, &class, "start", x + 6.0, y, &line.label);
                        }
                        false => ends.push((y, line)),
                    }
                }
                _ => {
                    let end = match self.named_left {
                        true => line.dots.first(),
                        false => line.dots.last(),
                    };
                    ends.extend(end.map(|dot| (self.y.at(dot.y), line)));
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
        let from = self.x.at(self.x.ends().0);
        let room = match self.named_left {
            true => from - self.left - 4.0,
            false => f64::from(self.size.0) - self.right - 8.0,
        };
        let most = (room / LETTER).max(3.0) as usize;
        for ((_, line), y) in ends.iter().zip(places) {
            let class = format!("lb c{}", line.hue.0);
            let label = shortened(&line.label, most);
            match self.named_left {
                true => text(out, &class, "end", from, y + 4.0, &label),
                false => text(out, &class, "start", self.right + 8.0, y + 4.0, &label),
            }
        }
    }

    /// The name of a mark, where the chart has room.
    fn beside(&self, out: &mut String, line: &Line) {
        let Some(dot) = line
            .dots
            .last()
            .filter(|dot| dot.x.is_finite() && dot.y.is_finite())
        else {
            return;
        };
        let (x, y) = (self.x.at(dot.x), self.y.at(dot.y));
        let class = format!("lb c{}", line.hue.0);
        match x + 12.0 + text_width(&line.label) > f64::from(self.size.0) {
            true => text(out, &class, "end", x - 10.0, y + 18.0, &line.label),
            false => text(out, &class, "start", x + 10.0, y - 9.0, &line.label),
        }
    }

    fn bars(&self, out: &mut String) {
        let chart = self.chart;
        let most = (self.left / LETTER) as usize;
        let ticks = self.x.ticks(
            &Kind::Linear,
            ((self.right - self.left) / 62.0).max(2.0) as usize,
        );
        let mut grid = String::new();
        for (value, label) in ticks {
            let x = self.x.at(value);
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
                let (x, end) = (self.x.at(from), self.x.at(from + amount));
                let hue = Hue::of(place).0;
                let _ = write!(
                    out,
                    "<rect class=\"p s c{hue}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"22\"><title>{}</title></rect>",
                    (end - x).max(0.5),
                    escape(shown)
                );
                if row == 0 && end - x > text_width(name) + 8.0 {
                    text(out, "in", "start", x + 6.0, y + 15.0, name);
                }
                from += amount;
            }
        }
    }
}

/// Whether the lines lie further apart where they begin than where they end.
fn spread_at_start(chart: &Chart) -> bool {
    let lines = || {
        let drawn = |line: &&Line| matches!(line.look, Look::Dotted | Look::Plain) && at_end(line);
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

fn at_end(line: &Line) -> bool {
    !line.label.is_empty() && !matches!(line.look, Look::Cloud)
}

fn text(out: &mut String, class: &str, anchor: &str, x: f64, y: f64, text: &str) {
    let _ = write!(
        out,
        "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
        escape(text)
    );
}

/// With a dot of omission where it is too long.
pub fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most.max(1) {
        true => text.chars().take(most.max(1) - 1).collect::<String>() + "…",
        false => text.to_owned(),
    }
}
