//! Figures as PNG, drawn with the font that goes with the program, so that they look the same everywhere.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

/// A figure that cannot be a picture.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// Not to be read.
    #[error("the figure cannot be read: {0}")]
    Svg(#[from] resvg::usvg::Error),
    /// No area.
    #[error("the figure has no area")]
    Empty,
    /// Not to be written.
    #[error("the picture cannot be encoded: {0}")]
    Encode(String),
}

/// Dots for each unit of the figure: sharp on screens and on paper.
const SCALE: f32 = 2.0;

/// The bytes of a PNG file from those of an SVG file.
pub fn figure_png(svg: &str) -> Result<Vec<u8>, PngError> {
    let mut fonts = Database::new();
    fonts.load_font_data(include_bytes!("../../fonts/Inter-Regular.otf").to_vec());
    fonts.load_font_data(include_bytes!("../../fonts/Inter-SemiBold.otf").to_vec());
    let options = Options {
        font_family: "Inter".to_owned(),
        fontdb: Arc::new(fonts),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options)?;
    let size = tree.size().to_int_size();
    let (width, height) = (size.width() as f32 * SCALE, size.height() as f32 * SCALE);
    let mut picture = Pixmap::new(width as u32, height as u32).ok_or(PngError::Empty)?;
    resvg::render(
        &tree,
        Transform::from_scale(SCALE, SCALE),
        &mut picture.as_mut(),
    );
    picture
        .encode_png()
        .map_err(|problem| PngError::Encode(problem.to_string()))
}
