//! A folder to which figures are written, one file for each figure.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sweetspot_report::{Figure, FigureWidth, figure_svg, figures_pdf};

use crate::args::{FigureArgs, FigureFormat};

use super::Document;

/// The error for --png in a build without PNG support.
const NO_PNG: &str = "this program was built without PNG figures: build it with `cargo build --release --features png`, or remove --png and use the SVG files";

/// A folder for figures. It is created only with the first figure, so bad input leaves no empty folder behind.
#[derive(Debug)]
pub struct FigureFolder {
    folder: PathBuf,
    formats: Vec<FigureFormat>,
    is_png_wanted: bool,
}

impl FigureFolder {
    /// Checks that figures can be written to the requested folder; returns `None` if none was requested.
    pub fn open(args: &FigureArgs) -> Result<Option<Self>> {
        let Some(folder) = &args.export_figures else {
            return Ok(None);
        };
        if args.png && cfg!(not(feature = "png")) {
            bail!(NO_PNG);
        }
        let cannot = || format!("cannot write figures to {}", folder.display());
        let existing = folder.ancestors().find(|part| part.exists());
        let existing = match existing {
            Some(existing) => existing,
            None => Path::new("."),
        };
        if !existing.is_dir() {
            bail!("{}: {} is not a folder", cannot(), existing.display());
        }
        let probe = tempfile::Builder::new()
            .prefix(".sweetspot-")
            .tempfile_in(existing);
        probe
            .map_err(|error| std::io::Error::from(error.kind()))
            .with_context(cannot)?;
        Ok(Some(Self {
            folder: folder.clone(),
            formats: args.figure_format.clone(),
            is_png_wanted: args.png,
        }))
    }

    /// Writes each figure as a file of each requested format.
    pub fn write(&self, figures: &[Figure], width: FigureWidth) -> Vec<Result<()>> {
        let created = std::fs::create_dir_all(&self.folder);
        let created = created.with_context(|| {
            format!(
                "cannot create the folder {} for figures",
                self.folder.display()
            )
        });
        if created.is_err() {
            return vec![created];
        }
        let mut results = Vec::new();
        for figure in figures {
            let svg = figure_svg(figure, width);
            if self.formats.contains(&FigureFormat::Svg) {
                results.push(self.write_file(figure, "svg", svg.as_bytes()));
            }
            if self.formats.contains(&FigureFormat::Pdf) {
                let pdf = figures_pdf(std::slice::from_ref(figure), width);
                results.push(self.write_file(figure, "pdf", &pdf));
            }
            if self.is_png_wanted {
                let png = png(&svg, figure);
                results.push(png.and_then(|bytes| self.write_file(figure, "png", &bytes)));
            }
        }
        results
    }

    /// Writes one file of a figure.
    fn write_file(&self, figure: &Figure, extension: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(format!("{}.{extension}", figure.id));
        Ok(Document::open(&path)?.write(bytes)?)
    }
}

#[cfg(feature = "png")]
fn png(svg: &str, figure: &Figure) -> Result<Vec<u8>> {
    let drawn = sweetspot_report::figure_png(svg);
    drawn.with_context(|| format!("cannot draw {}.png", figure.id))
}

#[cfg(not(feature = "png"))]
fn png(_: &str, _: &Figure) -> Result<Vec<u8>> {
    bail!(NO_PNG)
}
