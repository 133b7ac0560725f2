//! Charts as SVG. Colours are classes, so that a page can set them; a figure in its own file has its own style.

use std::fmt::Write;

use super::chart::{Chart, Figure};
use super::draw::Drawing;

/// The width and height of a chart in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u32, pub u32);

impl Size {
    /// The size of one of several charts side by side, or of a chart on a phone.
    pub const SMALL: Self = Self(360, 270);
    /// The size of a single chart on a large screen.
    pub const WIDE: Self = Self(860, 430);
    /// The size of an important single chart on a phone.
    pub const TALL: Self = Self(360, 340);
}

/// Escapes text for XML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // XML allows no control characters, not even escaped.
            letter if letter.is_control() && !matches!(letter, '\n' | '\t') => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// Draws a chart as an element of a page.
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

/// Draws a figure as an SVG file.
pub fn standalone(figure: &Figure) -> String {
    /// The space between charts, in pixels.
    const GAP: u32 = 16;
    /// The height of the title, in pixels.
    const HEAD: u32 = 44;
    let sizes: Vec<Size> = figure
        .charts
        .iter()
        .map(|chart| {
            sized(
                chart,
                if chart.is_wide {
                    Size::WIDE
                } else {
                    Size::SMALL
                },
            )
        })
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
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{top}\" viewBox=\"0 0 {width} {top}\" style=\"max-width:100%;height:auto\"><title>{title}</title><desc>{}</desc><style>{}</style><rect class=\"paper\" width=\"{width}\" height=\"{top}\"/><text class=\"head\" x=\"{GAP}\" y=\"28\">{title}</text>{body}</svg>\n",
        escape(&figure.caption),
        super::palette::standalone_style(),
        title = escape(&figure.title),
    )
}

/// The size of a chart with its height adapted to its bars.
fn sized(chart: &Chart, size: Size) -> Size {
    match chart.bars.len() as u32 {
        0 => size,
        bars => Size(size.0, 84 + 34 * bars),
    }
}

/// The approximate width of a letter in a label, in pixels.
pub const LETTER_WIDTH: f64 = 6.3;

/// Returns the approximate width of a text in pixels.
pub fn text_width(text: &str) -> f64 {
    LETTER_WIDTH * text.chars().count() as f64
}

/// Writes a text element.
pub fn text(out: &mut String, class: &str, anchor: &str, x: f64, y: f64, text: &str) {
    let _ = write!(
        out,
        "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
        escape(text)
    );
}

/// Cuts a text that is too long, with an ellipsis.
pub fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most.max(1) {
        true => text.chars().take(most.max(1) - 1).collect::<String>() + "…",
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::chart::{
        AxisKind, Bar, ChartAxis, Colour, Dot, Line, LineStyle, ReferenceLine,
    };
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        assert_eq!(
            escape("<a href=\"x\">&'\u{1}"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}"
        );
    }

    /// Draws every line style with every kind of axis and with values that arithmetic can produce.
    #[test]
    fn no_value_breaks_a_drawing() {
        let odd = [
            0.0,
            1.0,
            -1.0,
            1e-300,
            1e300,
            f64::MAX,
            f64::NAN,
            f64::INFINITY,
        ];
        let looks = [
            LineStyle::PointsAndLine,
            LineStyle::Line,
            LineStyle::Guide,
            LineStyle::Band,
            LineStyle::Points,
            LineStyle::Markers,
        ];
        let kinds = [
            AxisKind::Linear,
            AxisKind::Logarithmic(vec![1.0, 2.0]),
            AxisKind::Categories(vec!["a".into()]),
        ];
        for (first, second) in odd.iter().flat_map(|a| odd.map(|b| (*a, b))) {
            for (style, kind) in looks
                .iter()
                .flat_map(|style| kinds.clone().map(|kind| (*style, kind)))
            {
                let dot = |x: f64, y: f64| Dot {
                    x,
                    y,
                    span: Some((y - 1.0, y * 2.0)),
                    text: "<b>".to_owned(),
                };
                let chart = Chart {
                    title: "T".to_owned(),
                    x: ChartAxis {
                        kind: kind.clone(),
                        ..ChartAxis::default()
                    },
                    y: ChartAxis {
                        kind,
                        includes_zero: first > second,
                        ..ChartAxis::default()
                    },
                    lines: vec![Line {
                        label: "line".to_owned(),
                        colour: Colour(1),
                        dots: vec![dot(first, second), dot(second, first), dot(1.0, 2.0)],
                        style,
                    }],
                    ..Chart::default()
                };
                let drawn = inline(&chart, Size::SMALL, "");
                assert!(
                    !drawn.contains("NaN") && !drawn.contains("inf"),
                    "{first} {second} {style:?}: {drawn}"
                );
                assert!(!drawn.contains("<b>"));
            }
        }
    }

    #[test]
    fn an_empty_chart_is_a_chart() {
        let bars = Chart {
            bars: vec![Bar {
                label: "one".to_owned(),
                parts: vec![("p".to_owned(), 0.0, String::new())],
            }],
            ..Chart::default()
        };
        let reference_lines = Chart {
            reference_lines: vec![ReferenceLine {
                is_vertical: true,
                at: 3.0,
                label: "here".to_owned(),
                colour: Colour::GREY,
            }],
            ..Chart::default()
        };
        for chart in [Chart::default(), bars, reference_lines] {
            let drawn = inline(&chart, Size::SMALL, "");
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
    }
}
