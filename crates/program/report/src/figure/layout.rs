//! The sizes of charts, and how the charts of a figure are arranged on a screen or in the columns of a paper.

use super::chart::Figure;
use super::draw::draw_in;
use super::legend::Legend;
use super::shape::{Anchor, Picture, TextRole};
use super::text_size::wrapped;

/// The width and height of a chart in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(u32, u32);

impl Size {
    /// The size of one of several charts side by side, or of a chart on a phone.
    pub const SMALL: Self = Self(360, 270);
    /// The size of a single chart on a large screen.
    pub const WIDE: Self = Self(860, 430);
    /// The size of an important single chart on a phone.
    pub const TALL: Self = Self(360, 340);

    /// The width in pixels.
    pub fn width(self) -> f64 {
        f64::from(self.0)
    }

    /// The height in pixels.
    pub fn height(self) -> f64 {
        f64::from(self.1)
    }
}

/// How wide a figure is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FigureWidth {
    /// As wide as its charts are on a screen, with its title.
    #[default]
    Screen,
    /// As wide as on paper, in millimetres, with fonts of 7 to 8 points. A paper has the title in the caption.
    Paper(f64),
}

/// The number of points in a pixel of a figure on paper: fonts of 11 and 12 pixels become 7.3 and 8 points.
pub const POINTS_PER_PIXEL: f64 = 2.0 / 3.0;

/// The number of points in a millimetre.
const POINTS_PER_MILLIMETRE: f64 = 72.0 / 25.4;

/// The smallest width of each of two charts side by side on paper, in pixels.
const MIN_WIDTH_OF_TWO: f64 = 300.0;
/// The smallest width of each of three charts side by side on paper, in pixels.
const MIN_WIDTH_OF_THREE: f64 = 235.0;

impl FigureWidth {
    /// The width of a column of a paper with two columns, in millimetres.
    pub const ONE_COLUMN: Self = Self::Paper(85.0);
    /// The width of both columns of a paper, in millimetres.
    pub const TWO_COLUMNS: Self = Self::Paper(178.0);

    /// The length on paper of a number of pixels, in millimetres.
    pub const fn millimetres_of(self, pixels: f64) -> f64 {
        pixels * POINTS_PER_PIXEL / POINTS_PER_MILLIMETRE
    }
}

/// Draws the charts of a figure in rows.
pub fn arranged(figure: &Figure, width: FigureWidth) -> Picture {
    match width {
        FigureWidth::Screen => on_screen(figure),
        FigureWidth::Paper(millimetres) => {
            let width = millimetres * POINTS_PER_MILLIMETRE / POINTS_PER_PIXEL;
            on_paper(figure, width)
        }
    }
}

/// Draws a figure with its title and margins.
fn on_screen(figure: &Figure) -> Picture {
    const GAP: f64 = 16.0;
    let is_wide = figure.charts.iter().any(|chart| chart.is_wide);
    let most = if is_wide { 1 } else { 3 };
    let across = match figure.charts.len() {
        // Three and one would look like an oversight.
        4 => most.min(2),
        count => count.clamp(1, most),
    };
    let column = if is_wide { Size::WIDE } else { Size::SMALL }.width();
    let width = across as f64 * (column + GAP) + GAP;
    let mut picture = Picture {
        width,
        ..Picture::default()
    };
    let mut top = 12.0;
    for line in wrapped(&figure.title, TextRole::Head, width - 2.0 * GAP) {
        picture.text(TextRole::Head, Anchor::Start, (GAP, top + 16.0), &line);
        top += 24.0;
    }
    top += 8.0;
    let has_common_legend = has_common_legend(figure);
    if has_common_legend {
        let (legend, height) = common_legend(figure, width - 2.0 * GAP);
        picture.add(legend, GAP, top);
        top += height;
    }
    for row in figure.charts.chunks(across) {
        let drawn = row.iter().map(|chart| {
            let size = if chart.is_wide {
                Size::WIDE
            } else {
                Size::SMALL
            };
            draw_in(chart, size.width(), size.height(), has_common_legend)
        });
        top += add_row(&mut picture, drawn.collect(), GAP, column + GAP, top) + GAP;
    }
    picture.height = top;
    picture
}

/// Draws a figure without a title, in as many charts side by side as have room.
fn on_paper(figure: &Figure, width: f64) -> Picture {
    const GAP: f64 = 18.0;
    const MARGIN: f64 = 3.0;
    let mut picture = Picture {
        width,
        ..Picture::default()
    };
    let column_of =
        |across: usize| (width - 2.0 * MARGIN - GAP * (across - 1) as f64) / across as f64;
    let is_wide = figure.charts.iter().any(|chart| chart.is_wide);
    let across = match figure.charts.len() {
        0 | 1 => 1,
        _ if is_wide => 1,
        count if count % 3 == 0 && column_of(3) >= MIN_WIDTH_OF_THREE => 3,
        _ if column_of(2) >= MIN_WIDTH_OF_TWO => 2,
        _ => 1,
    };
    let column = column_of(across);
    // A chart on the width of a page is flatter than one in a column.
    let height = match column < 500.0 {
        true => 0.55 * column + 95.0,
        false => 0.42 * column + 105.0,
    };
    let mut top = MARGIN;
    let has_common_legend = has_common_legend(figure);
    if has_common_legend {
        let (legend, height) = common_legend(figure, width - 2.0 * MARGIN);
        picture.add(legend, MARGIN, top);
        top += height;
    }
    for (index, row) in figure.charts.chunks(across).enumerate() {
        if index > 0 {
            top += 12.0;
        }
        let drawn = row
            .iter()
            .map(|chart| draw_in(chart, column, height, has_common_legend));
        top += add_row(&mut picture, drawn.collect(), MARGIN, column + GAP, top);
    }
    picture.height = top + MARGIN;
    picture
}

/// Whether all charts of a figure are named in one legend above them.
fn has_common_legend(figure: &Figure) -> bool {
    figure.charts.len() > 1 && figure.charts.iter().all(|chart| chart.has_legend)
}

/// Draws the legend of all charts of a figure; returns it with its height.
fn common_legend(figure: &Figure, width: f64) -> (Picture, f64) {
    let mut picture = Picture {
        width,
        ..Picture::default()
    };
    // The first row is drawn one row below this.
    let last = Legend::of(&figure.charts).draw(&mut picture, -4.0);
    (picture, last + 12.0)
}

/// Adds charts side by side and returns the height of the highest.
fn add_row(picture: &mut Picture, charts: Vec<Picture>, left: f64, step: f64, top: f64) -> f64 {
    let mut height: f64 = 0.0;
    for (place, chart) in charts.into_iter().enumerate() {
        height = height.max(chart.height);
        picture.add(chart, left + place as f64 * step, top);
    }
    height
}
