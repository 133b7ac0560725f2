//! The shapes that a picture consists of. SVG and PDF files are written from the same shapes.

use super::chart::Colour;
use super::labels::Area;
use super::palette::Marker;
use super::text_size::text_width;

/// A drawn chart or figure: its size in pixels, and its shapes from back to front.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The width in pixels.
    pub width: f64,
    /// The height in pixels.
    pub height: f64,
    /// The shapes, from back to front.
    pub shapes: Vec<Shape>,
}

/// A shape of a picture. Positions are in pixels from the top left corner.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A line or an area.
    Path(Pen, Vec<Step>),
    /// A data point.
    Mark(Mark),
    /// A rectangle.
    Rect(Rectangle),
    /// A text on one line.
    Text(Text),
}

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Begins a new part of the path.
    Move(f64, f64),
    /// Draws a straight line.
    Line(f64, f64),
    /// Closes the part of the path, which is filled.
    Close,
}

/// The purpose of a path, which determines how it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pen {
    /// A line of the grid.
    Grid,
    /// An axis.
    Axis,
    /// A line through data points.
    Series(Colour),
    /// A line through data points, with the dashes of its colour.
    DashedSeries(Colour),
    /// A thin line for comparison, with the dashes of its colour.
    Guide(Colour),
    /// A straight line that marks a setting or a level.
    Rule(Colour),
    /// Error bars.
    ErrorBar(Colour),
    /// The area between the lowest and highest values.
    Band(Colour),
    /// The line from a label to its point.
    Leader,
}

/// A data point.
#[derive(Clone, Debug)]
pub struct Mark {
    /// How the point is drawn.
    pub kind: MarkKind,
    /// The shape of the point.
    pub marker: Marker,
    /// The colour of the point.
    pub colour: Colour,
    /// The horizontal position of the middle.
    pub x: f64,
    /// The vertical position of the middle.
    pub y: f64,
    /// The radius in pixels.
    pub radius: f64,
    /// The text that is shown when the pointer is over the point.
    pub hover: String,
}

/// How a data point is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A filled point.
    Point,
    /// A large filled point with a ring.
    Ringed,
    /// A point that is not filled, for a published value.
    Hollow,
    /// An invisible point that only shows a text.
    HoverTarget,
}

/// A rectangle.
#[derive(Clone, Debug)]
pub struct Rectangle {
    /// How the rectangle is filled or outlined.
    pub fill: Fill,
    /// The position and size.
    pub area: Area,
    /// The text that is shown when the pointer is over the rectangle; empty for none.
    pub hover: String,
}

/// How a rectangle is filled or outlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The colour of a series.
    Series(Colour),
    /// A level of the heat map's colours.
    Heat(usize),
    /// A cell without a value.
    NoValue,
    /// A thick outline, for the chosen setting.
    ChoiceOutline,
    /// A dashed outline, for the reference.
    ReferenceOutline,
    /// A light outline behind another, so that it can be seen on dark cells.
    OutlineHalo,
}

/// A text on one line.
#[derive(Clone, Debug)]
pub struct Text {
    /// The purpose of the text, which determines its size and weight.
    pub role: TextRole,
    /// Which part of the text is at the position.
    pub anchor: Anchor,
    /// The horizontal position.
    pub x: f64,
    /// The vertical position of the baseline.
    pub y: f64,
    /// The text itself.
    pub text: String,
}

/// The purpose of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextRole {
    /// The title of a figure.
    Head,
    /// The title of a chart.
    Title,
    /// A value on an axis.
    Tick,
    /// The name of an axis.
    AxisLabel,
    /// The name of a line, a point or a level, in its colour.
    Label(Colour),
    /// An entry of a legend.
    Legend,
    /// A text on a bar.
    OnBar,
    /// A text on a dark cell.
    OnDark,
    /// A text on a light cell.
    OnLight,
}

impl TextRole {
    /// The font size in pixels.
    pub const fn size(self) -> f64 {
        match self {
            Self::Head => 17.0,
            Self::Title => 12.0,
            Self::Label(_) => 11.5,
            _ => 11.0,
        }
    }

    /// Whether the text is bold.
    pub const fn is_bold(self) -> bool {
        matches!(
            self,
            Self::Head | Self::Title | Self::Label(_) | Self::OnBar | Self::OnDark | Self::OnLight
        )
    }
}

/// Which part of a text is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The first letter.
    Start,
    /// The middle.
    Middle,
    /// The last letter.
    End,
}

impl Text {
    /// The area that the text covers.
    pub fn area(&self) -> Area {
        let width = text_width(&self.text, self.role);
        let left = match self.anchor {
            Anchor::Start => self.x,
            Anchor::Middle => self.x - 0.5 * width,
            Anchor::End => self.x - width,
        };
        let size = self.role.size();
        Area {
            left,
            top: self.y - 0.8 * size,
            right: left + width,
            bottom: self.y + 0.25 * size,
        }
    }
}

impl Picture {
    /// Adds a text.
    pub fn text(&mut self, role: TextRole, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        self.shapes.push(Shape::Text(Text {
            role,
            anchor,
            x,
            y,
            text: text.to_owned(),
        }));
    }

    /// Adds the shapes of another picture, moved to a position.
    pub fn add(&mut self, other: Self, left: f64, top: f64) {
        self.shapes
            .extend(other.shapes.into_iter().map(|mut shape| {
                shape.shift(left, top);
                shape
            }));
    }
}

impl Shape {
    /// Moves the shape.
    fn shift(&mut self, right: f64, down: f64) {
        match self {
            Self::Path(_, steps) => {
                for step in steps {
                    match step {
                        Step::Move(x, y) | Step::Line(x, y) => {
                            *x += right;
                            *y += down;
                        }
                        Step::Close => {}
                    }
                }
            }
            Self::Mark(mark) => {
                mark.x += right;
                mark.y += down;
            }
            Self::Rect(Rectangle { area, .. }) => {
                area.left += right;
                area.right += right;
                area.top += down;
                area.bottom += down;
            }
            Self::Text(text) => {
                text.x += right;
                text.y += down;
            }
        }
    }
}
