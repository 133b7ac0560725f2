//! A folder that figures go to, a file for each.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sweetspot_report::{Figure, figure_svg};

use crate::args::FigureArgs;
use crate::say;

use super::Document;

const NO_PNG: &str = "this program was built without PNG figures: build it with `cargo build --release --features png`, or remove --png and use the SVG files";

/// A folder for figures. It is made when there is something to write, so that nothing is left where the input is bad.
#[derive(Debug)]
pub struct FigureFolder {
    folder: PathBuf,
    is_png_wanted: bool,
}

impl FigureFolder {
    /// Checks that figures can be written there, where any are asked for.
    pub fn open(args: &FigureArgs) -> Result<Option<Self>> {
        let Some(folder) = &args.export_figures else {
            return Ok(None);
        };
        if args.png && cfg!(not(feature = "png")) {
            bail!(NO_PNG);
        }
        let cannot = || format!("cannot write figures to {}", folder.display());
        let there = folder.ancestors().find(|part| part.exists());
        let there = match there {
            Some(there) => there,
            None => Path::new("."),
        };
        if !there.is_dir() {
            bail!("{}: {} is not a folder", cannot(), there.display());
        }
        let probe = tempfile::Builder::new()
            .prefix(".sweetspot-")
            .tempfile_in(there);
        probe
            .map_err(|error| std::io::Error::from(error.kind()))
            .with_context(cannot)?;
        Ok(Some(Self {
            folder: folder.clone(),
            is_png_wanted: args.png,
        }))
    }

    /// Writes each figure as an SVG file, and as a PNG file where that is wanted.
    pub fn write(&self, figures: &[Figure]) -> Vec<Result<()>> {
        let made = std::fs::create_dir_all(&self.folder);
        let made = made.with_context(|| {
            format!(
                "cannot make the folder {} for figures",
                self.folder.display()
            )
        });
        if made.is_err() {
            return vec![made];
        }
        if figures.is_empty() {
            say(
                "sweetspot: the study has nothing to draw: a figure needs two configurations that ran well",
            );
        }
        let mut results = Vec::new();
        for figure in figures {
            let svg = figure_svg(figure);
            results.push(self.write_file(figure, "svg", svg.as_bytes()));
            if self.is_png_wanted {
                let png = png(&svg, figure);
                results.push(png.and_then(|bytes| self.write_file(figure, "png", &bytes)));
            }
        }
        results
    }

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
