//! The content of a figure before it is drawn: axes, lines, bars, heat maps. Values are in the units of the axes.

use super::palette::{PAINTS, Paint};

/// Charts that belong together.
pub struct Figure {
    /// The name of the figure in file names and links.
    pub id: String,
    /// The title above the figure.
    pub title: String,
    /// The caption, which says what the figure shows and which settings are fixed.
    pub caption: String,
    /// The charts, drawn side by side.
    pub charts: Vec<Chart>,
}

/// A pair of axes with lines or bars.
#[derive(Default)]
pub struct Chart {
    /// The title above the chart, such as `Energy`.
    pub title: String,
    /// The horizontal axis.
    pub x: ChartAxis,
    /// The vertical axis.
    pub y: ChartAxis,
    /// The lines, in the order in which they are drawn.
    pub lines: Vec<Line>,
    /// Stacked horizontal bars, one in each row.
    pub bars: Vec<Bar>,
    /// Coloured cells; the axes are then the categories of its columns and rows.
    pub heat_map: Option<HeatMap>,
    /// Vertical and horizontal lines that mark settings and levels.
    pub reference_lines: Vec<ReferenceLine>,
    /// Whether the chart takes the whole width of the page.
    pub is_wide: bool,
    /// Whether lines are named in a legend although their ends have room for labels.
    pub has_legend: bool,
}

/// An axis of a chart.
#[derive(Default)]
pub struct ChartAxis {
    /// The label of the axis with its unit, such as `Energy [kJ]`.
    pub label: String,
    /// How the values of the axis map to positions.
    pub kind: AxisKind,
    /// Whether the axis includes zero.
    pub includes_zero: bool,
    /// The first and last value of the axis; `None` for those of the data.
    pub ends: Option<(f64, f64)>,
}

impl ChartAxis {
    /// Makes a linear axis that includes zero.
    pub fn from_zero(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            includes_zero: true,
            ..Self::default()
        }
    }
}

/// How the values of an axis map to positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AxisKind {
    /// Positions are proportional to values.
    #[default]
    Linear,
    /// Positions are proportional to the logarithms of values; the values in the list are labelled.
    Logarithmic(Vec<f64>),
    /// The values 0, 1, 2... are categories with these names.
    Categories(Vec<String>),
}

/// A colour, given by its index in the palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8);

impl Colour {
    /// The colour of secondary lines.
    pub const GREY: Self = Self(8);
    /// The colour of the chosen setting.
    pub const CHOICE: Self = Self(9);
    /// The colour of the Pareto front, and of settings that were tried.
    pub const FRONT: Self = Self(7);

    /// Returns the colour of the line with this index; colours repeat after eight.
    pub const fn of(index: usize) -> Self {
        Self((index % 8) as u8)
    }

    /// The colour's values on screens and paper, and its marker and dashes.
    pub const fn paint(self) -> &'static Paint {
        &PAINTS[self.0 as usize % PAINTS.len()]
    }
}

/// A series of values in a chart.
pub struct Line {
    /// The label at the end of the line; empty for none.
    pub label: String,
    /// The colour of the line.
    pub colour: Colour,
    /// The data points from left to right.
    pub dots: Vec<Dot>,
    /// How the line and its points are drawn.
    pub style: LineStyle,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// Points connected by a line.
    PointsAndLine,
    /// A line without points.
    Line,
    /// A thin dashed line for comparison; it does not extend the axes.
    Guide,
    /// A line with a band from the lowest to the highest values.
    Band,
    /// Points without a line.
    Points,
    /// Large points with a ring.
    Markers,
    /// Points that are not filled, for the values that a paper prints.
    Published,
    /// A thin dashed line for a level that a paper prints; it extends the axes.
    Level,
}

/// A data point of a line.
#[derive(Clone, Default)]
pub struct Dot {
    /// The horizontal value.
    pub x: f64,
    /// The vertical value.
    pub y: f64,
    /// The ends of the error bar or band at this point, if there is one.
    pub span: Option<(f64, f64)>,
    /// The text that is shown when the pointer is over the data point.
    pub text: String,
}

/// A horizontal bar of several stacked parts.
pub struct Bar {
    /// The label before the bar.
    pub label: String,
    /// The parts of the bar: name, amount, and the text that is shown when the pointer is over the part.
    pub parts: Vec<(String, f64, String)>,
}

/// A value for each combination of two settings, shown as colours.
pub struct HeatMap {
    /// The values of the horizontal axis.
    pub columns: Vec<String>,
    /// The values of the vertical axis, from bottom to top.
    pub rows: Vec<String>,
    /// The cells; a combination without a cell was not tried.
    pub cells: Vec<HeatCell>,
    /// Whether larger values are better.
    pub larger_is_better: bool,
}

/// A cell of a heat map.
pub struct HeatCell {
    /// The index of the column.
    pub column: usize,
    /// The index of the row.
    pub row: usize,
    /// The value; `None` if the setting failed or has no value.
    pub value: Option<f64>,
    /// The text that is shown when the pointer is over the cell.
    pub text: String,
    /// Whether the cell is the reference.
    pub is_reference: bool,
    /// Whether the cell is the choice.
    pub is_choice: bool,
}

/// A straight line across the chart, which marks a setting or a level.
pub struct ReferenceLine {
    /// Whether the line is vertical, at a value of x; if not, it is horizontal, at a value of y.
    pub is_vertical: bool,
    /// The value of x or y at which the line is drawn.
    pub at: f64,
    /// The label beside the line.
    pub label: String,
    /// The colour of the line.
    pub colour: Colour,
}

/// Whether a number is small enough to be drawn; arithmetic on larger numbers could overflow to infinity.
pub fn is_drawable(value: f64) -> bool {
    value.abs() < 1e100
}

impl Dot {
    /// Whether the point can be drawn.
    pub fn is_drawable(&self) -> bool {
        is_drawable(self.x) && is_drawable(self.y)
    }
}

impl Chart {
    /// Returns the smallest and largest x, and the smallest and largest y, of the data; `None` if there are no data.
    pub fn extent(&self) -> Option<((f64, f64), (f64, f64))> {
        let mut x: Option<(f64, f64)> = None;
        let mut y: Option<(f64, f64)> = None;
        let grow = |ends: &mut Option<(f64, f64)>, value: f64| {
            if is_drawable(value) {
                let (low, high) = ends.unwrap_or((value, value));
                *ends = Some((low.min(value), high.max(value)));
            }
        };
        for line in self
            .lines
            .iter()
            .filter(|line| line.style != LineStyle::Guide)
        {
            for dot in &line.dots {
                grow(&mut x, dot.x);
                grow(&mut y, dot.y);
                if let Some((low, high)) = dot.span {
                    grow(&mut y, low);
                    grow(&mut y, high);
                }
            }
        }
        for rule in &self.reference_lines {
            match rule.is_vertical {
                true => grow(&mut x, rule.at),
                false => grow(&mut y, rule.at),
            }
        }
        for bar in &self.bars {
            grow(&mut x, bar.parts.iter().map(|(_, amount, _)| amount).sum());
            grow(&mut x, 0.0);
            grow(&mut y, 0.0);
        }
        if let Some(heat_map) = &self.heat_map {
            grow(&mut x, heat_map.columns.len() as f64);
            grow(&mut y, heat_map.rows.len() as f64);
        }
        Some((x?, y?))
    }

    /// Describes the chart in one sentence, as alternative text for screen readers.
    pub fn alternative(&self) -> String {
        let names = |labels: Vec<&str>| match labels.len() {
            0 => String::new(),
            1..=8 => format!(": {}", labels.join(", ")),
            many => format!(": {many} of them"),
        };
        if !self.bars.is_empty() {
            let bars = self.bars.iter().map(|bar| bar.label.as_str()).collect();
            return format!("{}{}", self.title, names(bars));
        }
        if self.heat_map.is_some() {
            return format!("{} by {} and {}", self.title, self.x.label, self.y.label);
        }
        let mut labels: Vec<&str> = Vec::new();
        for line in &self.lines {
            if !line.label.is_empty() && !labels.contains(&line.label.as_str()) {
                labels.push(&line.label);
            }
        }
        let (up, right) = (&self.y.label, &self.x.label);
        let up = if up.is_empty() { &self.title } else { up };
        format!("{up} against {right}{}", names(labels))
    }
}
