//! What a figure shows, before it is drawn: rulers, lines, bars. Values are as they are read off the axes.

/// Charts that belong together, under one title.
pub struct Figure {
    /// A name for files and links.
    pub id: String,
    /// In a few words.
    pub title: String,
    /// What is to be seen, and what was held fixed.
    pub caption: String,
    /// Side by side.
    pub charts: Vec<Chart>,
}

/// One pair of axes and what is drawn between them.
#[derive(Default)]
pub struct Chart {
    /// What is up: `Energy`.
    pub title: String,
    /// To the right.
    pub x: ChartAxis,
    /// Upwards.
    pub y: ChartAxis,
    /// In the order in which they are drawn.
    pub lines: Vec<Line>,
    /// Stacked from left to right, a row each.
    pub bars: Vec<Bar>,
    /// Settings and levels to be pointed out.
    pub reference_lines: Vec<ReferenceLine>,
    /// Whether it takes the whole width of the page.
    pub wide: bool,
}

/// An axis of a chart.
#[derive(Default)]
pub struct ChartAxis {
    /// With the unit: `Energy [kJ]`.
    pub label: String,
    /// How values become distances.
    pub kind: AxisKind,
    /// Whether it begins at zero.
    pub from_zero: bool,
    /// The ends, where they are not those of the values.
    pub ends: Option<(f64, f64)>,
}

impl ChartAxis {
    /// In proportion, from zero on.
    pub fn from_zero(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            from_zero: true,
            ..Self::default()
        }
    }
}

/// How values become distances.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AxisKind {
    /// In proportion.
    #[default]
    Linear,
    /// A doubling is always as far; these are the values to name.
    Logarithmic(Vec<f64>),
    /// The values 0, 1, 2... have names.
    Categories(Vec<String>),
}

/// A colour, by its place in the palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8);

impl Colour {
    /// Of what stands back.
    pub const GREY: Self = Self(8);
    /// Of what was chosen.
    pub const CHOICE: Self = Self(9);

    /// One for each of several lines.
    pub const fn of(index: usize) -> Self {
        Self((index % 8) as u8)
    }
}

/// Values that belong together.
pub struct Line {
    /// At its end, where there is room.
    pub label: String,
    /// Its colour.
    pub colour: Colour,
    /// From left to right.
    pub dots: Vec<Dot>,
    /// How it is drawn.
    pub style: LineStyle,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// Dots with a line through them.
    PointsAndLine,
    /// A line alone.
    Line,
    /// A thin broken line that dots are held against.
    Guide,
    /// A line with a band from the lows to the highs.
    Band,
    /// Dots alone.
    Points,
    /// Large dots with a ring.
    Markers,
}

/// A value at its place.
#[derive(Clone, Default)]
pub struct Dot {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// The interval it lies in, or the span it stands for.
    pub span: Option<(f64, f64)>,
    /// What is shown when it is pointed at.
    pub text: String,
}

/// Parts that add up.
pub struct Bar {
    /// Before it.
    pub label: String,
    /// Name, amount, what is shown when it is pointed at.
    pub parts: Vec<(String, f64, String)>,
}

/// A line across the chart.
pub struct ReferenceLine {
    /// Whether it is at a value of x; else of y.
    pub is_vertical: bool,
    /// Where.
    pub at: f64,
    /// Beside it.
    pub label: String,
    /// Its colour.
    pub colour: Colour,
}

/// Whether a number has a place on paper; arithmetic on larger ones ends in infinity.
pub fn is_drawable(value: f64) -> bool {
    value.abs() < 1e100
}

impl Dot {
    /// Whether it has a place on paper.
    pub fn is_drawable(&self) -> bool {
        is_drawable(self.x) && is_drawable(self.y)
    }
}

impl Chart {
    /// Every place that must be seen: x and y.
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
        Some((x?, y?))
    }

    /// What it shows, in one sentence, for those who do not see it.
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
        let labels = self.lines.iter().map(|line| line.label.as_str());
        let labels: Vec<&str> = labels.filter(|label| !label.is_empty()).collect();
        let (up, right) = (&self.y.label, &self.x.label);
        let up = if up.is_empty() { &self.title } else { up };
        format!("{up} against {right}{}", names(labels))
    }
}
