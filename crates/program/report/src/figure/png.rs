//! Figures as PNG, drawn with the embedded font, so that they look the same everywhere.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

/// Why a figure cannot be converted to PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The SVG of the figure cannot be parsed.
    #[error("the figure cannot be read: {0}")]
    Svg(#[from] resvg::usvg::Error),
    /// The figure has no width or no height.
    #[error("the figure has no area")]
    Empty,
    /// The image cannot be encoded; the text says why.
    #[error("the PNG image cannot be encoded: {0}")]
    Encode(String),
}

/// The number of pixels for each unit of the figure, which is sharp on screens and in print.
const SCALE: f32 = 2.0;

/// Draws an SVG file as a PNG file.
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
