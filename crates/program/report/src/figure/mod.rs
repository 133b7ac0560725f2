//! Figures as in the papers, from any study that has the values they need.

mod bars;
mod chart;
mod draw;
mod energy_time;
mod header;
mod heat;
mod heat_map;
mod labels;
mod layout;
mod legend;
mod line_labels;
mod normalised;
mod overlay;
mod palette;
mod pdf;
mod pdf_text;
mod performance;
mod phases;
#[cfg(feature = "png")]
mod png;
mod scale;
mod scaling;
mod shape;
mod spans;
mod svg;
#[cfg(test)]
mod tests;
mod text_size;
mod timeline;

pub use chart::{AxisKind, Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle, ReferenceLine};
pub use layout::{FigureWidth, Size};
pub use overlay::overlays;
pub use palette::{colour_of, variables};
pub use pdf::figures_pdf;
#[cfg(feature = "png")]
pub use png::{PngError, figure_png};
pub use scale::number;
pub use svg::inline;
pub use text_size::shortened;
pub(crate) use timeline::downsample;
pub use timeline::{Timeline, runs_to_show};

use crate::analysis::view::StudyView;

/// Makes every figure for which the study has the values, the most important first.
pub fn figures(view: &StudyView<'_>, timelines: &[Timeline]) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    figures.extend(energy_time::energy_time_plane(view));
    figures.extend(heat_map::heat_maps(view));
    figures.extend(normalised::normalised_curves(view));
    figures.extend(performance::performance_figures(view));
    figures.extend(scaling::scaling(view));
    figures.extend(timeline::timeline(timelines));
    figures.extend(phases::phases(view));
    with_unique_ids(figures)
}

/// Makes the ids of figures unique and safe for file names and links, because an axis may have any name.
pub(crate) fn with_unique_ids(mut figures: Vec<Figure>) -> Vec<Figure> {
    let mut known: Vec<String> = Vec::new();
    for figure in &mut figures {
        let safe = |letter: char| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => letter,
            _ => '-',
        };
        let plain: String = figure.id.chars().map(safe).take(80).collect();
        let mut id = plain.clone();
        let mut count = 1;
        while known.contains(&id) {
            count += 1;
            id = format!("{plain}-{count}");
        }
        known.push(id.clone());
        figure.id = id;
    }
    figures
}

/// Draws a figure as an SVG file.
pub fn figure_svg(figure: &Figure, width: FigureWidth) -> String {
    svg::standalone(figure, width)
}

/// Makes a data point from a measured value and its interval.
fn dot(x: f64, estimate: &sweetspot_decide::Estimate, scale: f64, text: String) -> Dot {
    let span = estimate.interval95;
    Dot {
        x,
        y: estimate.value * scale,
        span: span.map(|span| (span.low * scale, span.high * scale)),
        text,
    }
}
