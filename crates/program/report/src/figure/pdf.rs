//! Writes figures as a PDF file, a page of exactly its size for each figure.
//!
//! The file is written from the same shapes as SVG. Texts are in Helvetica, one of the fonts that every reader of PDF has
//! (ISO 32000-1, 9.6.2.2), so that no font needs to be installed or embedded and texts can be selected. A figure's title
//! is its entry in the outline; its caption is not in the file, because a paper has its own.

use std::fmt::Write;

use super::chart::{Colour, Figure};
use super::layout::{FigureWidth, POINTS_PER_PIXEL, arranged};
use super::palette::{HEAT, components};
use super::pdf_text::{ENCODING, encoded, text_string};
use super::shape::{
    Anchor, Fill, Mark, MarkKind, Pen, Picture, Rectangle, Shape, Step, Text, TextRole,
};
use super::text_size::helvetica_width;

/// The ratio of the handles of a cubic curve to the radius, for a quarter of a circle.
const CIRCLE_HANDLE: f64 = 0.552_284_75;

/// The first objects of the file: the catalogue, the list of pages, two fonts, the outline, and its information.
const FIXED_OBJECTS: usize = 6;

/// Draws figures as a PDF file, on paper as wide as two columns if no width on paper is given.
pub fn figures_pdf(figures: &[Figure], width: FigureWidth) -> Vec<u8> {
    let width = match width {
        FigureWidth::Screen => FigureWidth::TWO_COLUMNS,
        FigureWidth::Paper(_) => width,
    };
    let count = figures.len();
    let page = |index: usize| FIXED_OBJECTS + 1 + 3 * index;
    let pages: Vec<String> = (0..count)
        .map(|index| format!("{} 0 R", page(index)))
        .collect();
    let font = |name: &str| {
        format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding {ENCODING} >>")
    };
    let outline = match count {
        0 => "<< /Type /Outlines /Count 0 >>".to_owned(),
        _ => format!(
            "<< /Type /Outlines /First {} 0 R /Last {} 0 R /Count {count} >>",
            page(0) + 2,
            page(count - 1) + 2
        ),
    };
    let title = figures.first().map_or("", |figure| &figure.title);
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R /Outlines 5 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {count} >>",
            pages.join(" ")
        ),
        font("Helvetica"),
        font("Helvetica-Bold"),
        outline,
        format!(
            "<< /Title {} /Creator (Sweetspot {}) >>",
            text_string(title),
            env!("CARGO_PKG_VERSION")
        ),
    ];
    for (index, figure) in figures.iter().enumerate() {
        let picture = arranged(figure, width);
        let (across, down) = (
            POINTS_PER_PIXEL * picture.width,
            POINTS_PER_PIXEL * picture.height,
        );
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {across:.2} {down:.2}] /Contents {} 0 R /Resources << /Font << /R 3 0 R /B 4 0 R >> /ExtGState << /Solid << /ca 1 /CA 1 >> /Pale << /ca 0.18 /CA 0.55 >> /Label << /ca 0.75 /CA 1 >> >> >> >>",
            page(index) + 1
        ));
        let content = page_content(&picture);
        objects.push(format!(
            "<< /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        ));
        let mut entry = format!(
            "<< /Title {} /Parent 5 0 R /Dest [{} 0 R /Fit]",
            text_string(&figure.title),
            page(index)
        );
        if index > 0 {
            let _ = write!(entry, " /Prev {} 0 R", page(index - 1) + 2);
        }
        if index + 1 < count {
            let _ = write!(entry, " /Next {} 0 R", page(index + 1) + 2);
        }
        objects.push(entry + " >>");
    }
    file_of(&objects)
}

/// Joins the objects of a file, with the table of their positions.
fn file_of(objects: &[String]) -> Vec<u8> {
    // The second line marks the file as binary for programs that transfer it.
    let mut file = b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (index, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", file.len());
        file.extend_from_slice(format!("{} 0 obj\n{object}\nendobj\n", index + 1).as_bytes());
    }
    let start = file.len();
    file.extend_from_slice(table.as_bytes());
    file.extend_from_slice(
        format!(
            "trailer\n<< /Size {} /Root 1 0 R /Info 6 0 R >>\nstartxref\n{start}\n%%EOF\n",
            objects.len() + 1
        )
        .as_bytes(),
    );
    file
}

/// The drawing of a page.
struct Page {
    out: String,
    height: f64,
}

/// The operators that draw a picture.
fn page_content(picture: &Picture) -> String {
    let mut page = Page {
        out: "1 j 1 J\n".to_owned(),
        height: picture.height,
    };
    for shape in &picture.shapes {
        match shape {
            Shape::Path(pen, steps) => page.path(*pen, steps),
            Shape::Mark(mark) => page.mark(mark),
            Shape::Rect(rectangle) => page.rectangle(rectangle),
            Shape::Text(text) => page.text(text),
        }
    }
    page.out
}

impl Page {
    /// Adds an operator after its operands.
    fn operator(&mut self, operands: &[f64], name: &str) {
        for operand in operands {
            let _ = write!(self.out, "{operand:.2} ");
        }
        self.out += name;
        self.out.push('\n');
    }

    /// A position in points from the lower left corner.
    fn at(&self, x: f64, y: f64) -> [f64; 2] {
        [POINTS_PER_PIXEL * x, POINTS_PER_PIXEL * (self.height - y)]
    }

    /// Sets the colour of lines.
    fn stroke(&mut self, colour: &str) {
        self.operator_of_colour(colour, "RG");
    }

    /// Sets the colour of areas.
    fn fill(&mut self, colour: &str) {
        self.operator_of_colour(colour, "rg");
    }

    fn operator_of_colour(&mut self, colour: &str, name: &str) {
        let [red, green, blue] = components(colour);
        let _ = writeln!(self.out, "{red:.3} {green:.3} {blue:.3} {name}");
    }

    /// Sets the width and the dashes of lines, in pixels.
    fn pen(&mut self, width: f64, dashes: &[f64]) {
        self.operator(&[POINTS_PER_PIXEL * width], "w");
        let lengths = dashes
            .iter()
            .map(|dash| format!("{:.2}", POINTS_PER_PIXEL * dash));
        let lengths: Vec<String> = lengths.collect();
        let _ = writeln!(self.out, "[{}] 0 d", lengths.join(" "));
    }

    /// Uses one of the page's states of opacity.
    fn opacity(&mut self, name: &str) {
        let _ = writeln!(self.out, "/{name} gs");
    }

    /// Draws a path.
    fn path(&mut self, pen: Pen, steps: &[Step]) {
        let light = |colour: Colour| colour.paint().light;
        let (colour, width) = match pen {
            Pen::Grid => ("#e3e7ec", 0.8),
            Pen::Axis | Pen::Leader => ("#9aa4af", 0.8),
            Pen::Series(colour) | Pen::DashedSeries(colour) => (light(colour), 1.7),
            Pen::Guide(colour) | Pen::Rule(colour) => (light(colour), 1.1),
            Pen::ErrorBar(colour) => (light(colour), 0.9),
            Pen::Band(colour) => (light(colour), 0.0),
        };
        let is_pale = matches!(pen, Pen::Band(_));
        if is_pale {
            self.opacity("Pale");
        }
        self.stroke(colour);
        self.fill(colour);
        let dashes = match pen {
            Pen::Rule(_) => &[5.0, 4.0],
            pen => pen.dashes(),
        };
        self.pen(width, dashes);
        for step in steps {
            match step {
                Step::Move(x, y) => self.operator(&self.at(*x, *y), "m"),
                Step::Line(x, y) => self.operator(&self.at(*x, *y), "l"),
                Step::Close => self.operator(&[], "h"),
            }
        }
        self.operator(
            &[],
            if matches!(pen, Pen::Band(_)) {
                "f"
            } else {
                "S"
            },
        );
        if is_pale {
            self.opacity("Solid");
        }
    }

    /// Draws a data point.
    fn mark(&mut self, mark: &Mark) {
        let colour = mark.colour.paint().light;
        let (fill, stroke, width) = match mark.kind {
            MarkKind::HoverTarget => return,
            MarkKind::Point => (colour, colour, 0.0),
            MarkKind::Ringed => (colour, "#ffffff", 2.0),
            MarkKind::Hollow => ("#ffffff", colour, 1.4),
        };
        self.fill(fill);
        self.stroke(stroke);
        self.pen(width, &[]);
        let point = |right: f64, down: f64| {
            let (x, y) = (mark.x + mark.radius * right, mark.y + mark.radius * down);
            self.at(x, y)
        };
        let mut operators: Vec<(Vec<f64>, &str)> = Vec::new();
        match mark.marker.0 {
            [] => {
                let handle = CIRCLE_HANDLE;
                operators.push((point(1.0, 0.0).to_vec(), "m"));
                for (x, y) in [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)] {
                    let (next_x, next_y): (f64, f64) = (-y, x);
                    let curve = [
                        point(x + handle * next_x, y + handle * next_y),
                        point(next_x + handle * x, next_y + handle * y),
                        point(next_x, next_y),
                    ];
                    operators.push((curve.concat(), "c"));
                }
            }
            corners => {
                for (index, (right, down)) in corners.iter().enumerate() {
                    let name = if index == 0 { "m" } else { "l" };
                    operators.push((point(*right, *down).to_vec(), name));
                }
            }
        }
        for (operands, name) in operators {
            self.operator(&operands, name);
        }
        let is_outlined = mark.kind != MarkKind::Point;
        self.operator(&[], if is_outlined { "h B" } else { "h f" });
    }

    /// Draws a rectangle.
    fn rectangle(&mut self, rectangle: &Rectangle) {
        let area = &rectangle.area;
        let (colour, outline): (&str, Option<(f64, &[f64])>) = match rectangle.fill {
            Fill::Series(colour) => (colour.paint().light, None),
            Fill::Heat(level) => (HEAT[level.min(HEAT.len() - 1)], None),
            Fill::NoValue => ("#eef0f3", None),
            Fill::ChoiceOutline => ("#111827", Some((2.5, &[]))),
            Fill::OutlineHalo => ("#ffffff", Some((5.0, &[]))),
            Fill::ReferenceOutline => ("#111827", Some((1.6, &[4.0, 3.0]))),
        };
        self.stroke(colour);
        self.fill(colour);
        if let Some((width, dashes)) = outline {
            self.pen(width, dashes);
        }
        let [left, bottom] = self.at(area.left, area.bottom);
        let size = [area.right - area.left, area.bottom - area.top];
        let [width, height] = size.map(|length| POINTS_PER_PIXEL * length);
        self.operator(&[left, bottom, width, height], "re");
        self.operator(&[], if outline.is_some() { "S" } else { "f" });
    }

    /// Writes a text. A label covers what is behind it a little, as its outline does on a screen.
    fn text(&mut self, text: &Text) {
        let (size, is_bold) = (POINTS_PER_PIXEL * text.role.size(), text.role.is_bold());
        let width = size * helvetica_width(&text.text, is_bold);
        let [x, y] = self.at(text.x, text.y);
        let left = match text.anchor {
            Anchor::Start => x,
            Anchor::Middle => x - 0.5 * width,
            Anchor::End => x - width,
        };
        let colour = match text.role {
            TextRole::Head | TextRole::Title | TextRole::OnLight => "#111827",
            TextRole::Tick | TextRole::AxisLabel => "#4a545f",
            TextRole::Legend => "#3b4652",
            TextRole::Label(colour) => colour.paint().light,
            TextRole::OnBar | TextRole::OnDark => "#ffffff",
        };
        if matches!(text.role, TextRole::Label(_)) {
            self.opacity("Label");
            self.fill("#ffffff");
            self.operator(&[left - 1.0, y - 0.2 * size, width + 2.0, size], "re");
            self.operator(&[], "f");
            self.opacity("Solid");
        }
        self.fill(colour);
        let font = if is_bold { "B" } else { "R" };
        let shown = encoded(&text.text);
        let _ = writeln!(
            self.out,
            "BT /{font} {size:.2} Tf {left:.2} {y:.2} Td ({shown}) Tj ET"
        );
    }
}
