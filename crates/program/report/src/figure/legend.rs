//! The legend of a chart, for bars and for lines whose ends have no room for labels.

use super::chart::{Chart, Colour, Line, LineStyle};
use super::labels::Area;
use super::shape::{Anchor, Fill, Mark, MarkKind, Pen, Picture, Rectangle, Shape, Step, TextRole};
use super::text_size::{fitted, text_width};

/// The height of a row of the legend, in pixels.
const ROW_HEIGHT: f64 = 16.0;
/// The width of the sample before a name.
const SAMPLE: f64 = 20.0;
/// The space between two entries.
const GAP: f64 = 12.0;

/// The names in a legend, each with its colour and how its line is drawn; `None` for a bar.
pub struct Legend {
    entries: Vec<(String, Colour, Option<LineStyle>)>,
}

impl Legend {
    /// The legend of some charts. A name that several lines have stands there once.
    pub fn of(charts: &[Chart]) -> Self {
        let mut entries: Vec<(String, Colour, Option<LineStyle>)> = Vec::new();
        for chart in charts {
            let parts = part_names(chart).into_iter().enumerate();
            let parts = parts.map(|(place, name)| (name, Colour::of(place), None));
            // Markers have their labels inside the chart.
            let is_named =
                |line: &&Line| !line.label.is_empty() && line.style != LineStyle::Markers;
            let lines = chart.lines.iter().filter(is_named);
            let lines = lines.map(|line| (line.label.clone(), line.colour, Some(line.style)));
            for entry in parts.chain(lines) {
                if !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
        }
        // What all charts have in common stands before the last entries, which only some have.
        let is_published = |style: &Option<LineStyle>| {
            matches!(style, Some(LineStyle::Published | LineStyle::Level))
        };
        entries.sort_by_key(|(_, _, style)| is_published(style));
        Self { entries }
    }

    /// Draws the legend in rows below `y` and returns the position of the last row.
    pub fn draw(&self, picture: &mut Picture, mut y: f64) -> f64 {
        let mut x = 0.0;
        for (index, (name, colour, style)) in self.entries.iter().enumerate() {
            let name = fitted(name, TextRole::Legend, picture.width - SAMPLE);
            let width = SAMPLE + text_width(&name, TextRole::Legend);
            if index == 0 || x + width > picture.width {
                (x, y) = (0.0, y + ROW_HEIGHT);
            }
            sample(picture, (x, y - 4.0), *colour, *style);
            picture.text(TextRole::Legend, Anchor::Start, (x + SAMPLE, y), &name);
            x += width + GAP;
        }
        y
    }
}

/// The names of the parts of all bars, in the order of their colours.
pub fn part_names(chart: &Chart) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _, _) in chart.bars.iter().flat_map(|bar| &bar.parts) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Draws how a line or a bar looks.
fn sample(picture: &mut Picture, (x, y): (f64, f64), colour: Colour, style: Option<LineStyle>) {
    let Some(style) = style else {
        return picture.shapes.push(Shape::Rect(Rectangle {
            fill: Fill::Series(colour),
            area: Area {
                left: x,
                top: y - 5.0,
                right: x + SAMPLE - 6.0,
                bottom: y + 5.0,
            },
            hover: String::new(),
        }));
    };
    let pen = match style {
        LineStyle::PointsAndLine => Some(Pen::Series(colour)),
        // A line without dashes beside others has its colour and its place.
        LineStyle::Line => Some(Pen::DashedSeries(colour)),
        LineStyle::Band => Some(Pen::Series(colour)),
        LineStyle::Guide | LineStyle::Level => Some(Pen::Guide(colour)),
        LineStyle::Points | LineStyle::Markers | LineStyle::Published => None,
    };
    if let Some(pen) = pen {
        let steps = vec![Step::Move(x, y), Step::Line(x + SAMPLE - 5.0, y)];
        picture.shapes.push(Shape::Path(pen, steps));
    }
    let (kind, marker, radius) = match style {
        LineStyle::PointsAndLine | LineStyle::Points => {
            (MarkKind::Point, colour.paint().marker, 3.0)
        }
        LineStyle::Published => (MarkKind::Hollow, colour.paint().marker, 4.2),
        _ => return,
    };
    picture.shapes.push(Shape::Mark(Mark {
        kind,
        marker,
        colour,
        x: x + 0.5 * (SAMPLE - 5.0),
        y,
        radius,
        hover: String::new(),
    }));
}
