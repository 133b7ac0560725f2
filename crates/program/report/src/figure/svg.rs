//! Writes pictures as SVG. Colours are classes, so that a page can set them; a figure in its own file has its own style.

use std::fmt::Write;

use super::chart::{Chart, Colour, Figure};
use super::draw::draw;
use super::layout::{FigureWidth, Size, arranged};
use super::shape::{Anchor, Fill, Mark, MarkKind, Pen, Picture, Rectangle, Shape, Step, TextRole};

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
    let picture = draw(chart, size.width(), size.height());
    let mut out = format!(
        "<svg class=\"chart {class}\" viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" aria-label=\"{}\">",
        picture.width,
        picture.height,
        escape(&chart.alternative())
    );
    write_shapes(&mut out, &picture);
    out += "</svg>";
    out
}

/// Draws a figure as an SVG file.
pub fn standalone(figure: &Figure, width: FigureWidth) -> String {
    let picture = arranged(figure, width);
    let mut body = String::new();
    write_shapes(&mut body, &picture);
    let (across, down) = (picture.width, picture.height);
    // A figure for a paper has the size that it has there.
    let size = match width {
        FigureWidth::Screen => {
            format!(
                "width=\"{across:.0}\" height=\"{down:.0}\" style=\"max-width:100%;height:auto\""
            )
        }
        FigureWidth::Paper(_) => {
            let (across, down) = (width.millimetres_of(across), width.millimetres_of(down));
            format!("width=\"{across:.2}mm\" height=\"{down:.2}mm\"")
        }
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} viewBox=\"0 0 {across:.1} {down:.1}\"><title>{}</title><desc>{}</desc><style>{}</style><rect class=\"paper\" width=\"{across:.1}\" height=\"{down:.1}\"/>{body}</svg>\n",
        escape(&figure.title),
        escape(&figure.caption),
        super::palette::standalone_style(),
    )
}

/// Writes the shapes of a picture.
fn write_shapes(out: &mut String, picture: &Picture) {
    for shape in &picture.shapes {
        match shape {
            Shape::Path(pen, steps) => path(out, *pen, steps),
            Shape::Mark(one) => mark(out, one),
            Shape::Rect(one) => rectangle(out, one),
            Shape::Text(text) => {
                let class = match text.role {
                    TextRole::Head => "head".to_owned(),
                    TextRole::Title => "ct".to_owned(),
                    TextRole::Tick => "tk".to_owned(),
                    TextRole::AxisLabel => "al".to_owned(),
                    TextRole::Label(Colour(colour)) => format!("lb c{colour}"),
                    TextRole::Legend => "lg".to_owned(),
                    TextRole::OnBar => "in".to_owned(),
                    TextRole::OnDark => "iw".to_owned(),
                    TextRole::OnLight => "id".to_owned(),
                };
                let anchor = match text.anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let _ = write!(
                    out,
                    "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                    text.x,
                    text.y,
                    escape(&text.text)
                );
            }
        }
    }
}

/// Writes a path.
fn path(out: &mut String, pen: Pen, steps: &[Step]) {
    let mut data = String::with_capacity(12 * steps.len());
    for step in steps {
        let _ = match step {
            Step::Move(x, y) => write!(data, "M{x:.1} {y:.1}"),
            Step::Line(x, y) => write!(data, "L{x:.1} {y:.1}"),
            Step::Close => write!(data, "Z"),
        };
    }
    let (class, colour) = match pen {
        Pen::Grid => ("g", None),
        Pen::Axis => ("ax", None),
        Pen::Leader => ("ld", None),
        Pen::Series(colour) | Pen::DashedSeries(colour) => ("l", Some(colour)),
        Pen::Guide(colour) => ("gd", Some(colour)),
        Pen::Rule(colour) => ("r", Some(colour)),
        Pen::ErrorBar(colour) => ("e", Some(colour)),
        Pen::Band(colour) => ("b", Some(colour)),
    };
    let colour = colour.map_or_else(String::new, |Colour(index)| format!(" c{index}"));
    let _ = write!(out, "<path class=\"{class}{colour}\" d=\"{data}\"");
    let dashes: Vec<String> = pen.dashes().iter().map(f64::to_string).collect();
    if !dashes.is_empty() {
        let _ = write!(out, " stroke-dasharray=\"{}\"", dashes.join(" "));
    }
    *out += "/>";
}

impl Pen {
    /// The dashes and gaps of a series or a guide in pixels; empty for a solid line. A guide is always dashed.
    pub(super) fn dashes(self) -> &'static [f64] {
        match self {
            Self::DashedSeries(colour) => colour.paint().dashes,
            Self::Guide(colour) => match colour.paint().dashes {
                [] => &[5.0, 4.0],
                dashes => dashes,
            },
            _ => &[],
        }
    }
}

/// Writes a data point.
fn mark(out: &mut String, mark: &Mark) {
    let kind = match mark.kind {
        MarkKind::Point => "p",
        MarkKind::Ringed => "p m",
        MarkKind::Hollow => "p h",
        MarkKind::HoverTarget => "p q",
    };
    let class = format!("{kind} c{}", mark.colour.0);
    let (x, y, radius) = (mark.x, mark.y, mark.radius);
    let title = escape(&mark.hover);
    let _ = match mark.marker.0 {
        [] => write!(
            out,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"><title>{title}</title></circle>"
        ),
        corners => {
            let mut data = String::new();
            for (index, (right, down)) in corners.iter().enumerate() {
                let verb = if index == 0 { 'M' } else { 'L' };
                let _ = write!(
                    data,
                    "{verb}{:.1} {:.1}",
                    x + radius * right,
                    y + radius * down
                );
            }
            write!(
                out,
                "<path class=\"{class}\" d=\"{data}Z\"><title>{title}</title></path>"
            )
        }
    };
}

/// Writes a rectangle.
fn rectangle(out: &mut String, rectangle: &Rectangle) {
    let (area, hover) = (&rectangle.area, &rectangle.hover);
    let class = match rectangle.fill {
        Fill::Series(Colour(colour)) => format!("s c{colour}"),
        Fill::Heat(level) => format!("h{level}"),
        Fill::NoValue => "nv".to_owned(),
        Fill::ChoiceOutline => "o".to_owned(),
        Fill::ReferenceOutline => "or".to_owned(),
        Fill::OutlineHalo => "oh".to_owned(),
    };
    let class = if hover.is_empty() {
        class
    } else {
        format!("p {class}")
    };
    let _ = write!(
        out,
        "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"",
        area.left,
        area.top,
        area.right - area.left,
        area.bottom - area.top
    );
    match hover.is_empty() {
        true => *out += "/>",
        false => {
            let _ = write!(out, "><title>{}</title></rect>", escape(hover));
        }
    }
}
