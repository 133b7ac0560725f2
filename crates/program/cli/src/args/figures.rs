//! Flags that write figures to files.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use sweetspot_report::FigureWidth;

use crate::documents::Format;

/// Flags that write the figures of a result.
#[derive(Debug, Args)]
pub struct FigureArgs {
    /// Write each figure as a file to this folder.
    #[arg(long, value_name = "FOLDER")]
    pub export_figures: Option<PathBuf>,

    /// With --export-figures: the formats of the files, svg or pdf, or both separated by a comma.
    #[arg(
        long,
        value_name = "FORMAT,...",
        value_delimiter = ',',
        default_value = "svg",
        hide_possible_values = true,
        requires = "export_figures"
    )]
    pub figure_format: Vec<FigureFormat>,

    /// With --export-figures: also write PNG files (requires a build with the feature png).
    #[arg(long, requires = "export_figures")]
    pub png: bool,

    #[command(flatten)]
    pub paper: PaperArgs,
}

/// The format of a figure in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FigureFormat {
    Svg,
    Pdf,
}

/// Flags for figures that are printed.
#[derive(Debug, Default, Args)]
pub struct PaperArgs {
    /// Write the figures as a PDF file, a page of its size for each; `-` writes it to standard output.
    #[arg(long, value_name = "FILE")]
    pub export_pdf: Option<PathBuf>,

    /// Draw figures for a paper, with fonts of 7 to 8 points: one-column (85 mm wide), two-column (178 mm) or a number of
    /// millimetres [default: as on a screen; two-column for PDF].
    #[arg(long, value_name = "WIDTH", value_parser = parse_width)]
    pub figure_width: Option<FigureWidth>,
}

impl FigureArgs {
    /// The PDF file with its path, if the user gave one.
    pub fn requested(&self) -> (Format, Option<&Path>) {
        (Format::Pdf, self.paper.export_pdf.as_deref())
    }

    /// Rejects a width without a figure.
    pub fn check(&self) -> Result<()> {
        self.paper
            .check(self.export_figures.is_some(), "--export-figures")
    }
}

impl PaperArgs {
    /// Rejects a width without a figure; `flag` writes figures too, and `is_given` says whether it does.
    pub fn check(&self, is_given: bool, flag: &str) -> Result<()> {
        if self.figure_width.is_some() && self.export_pdf.is_none() && !is_given {
            bail!("--figure-width changes no figure: give --export-pdf or {flag} too");
        }
        if let Some(file) = &self.export_pdf
            && let Some(other) = ["svg", "png", "html"]
                .iter()
                .find(|other| file.extension().is_some_and(|found| found == **other))
        {
            bail!(
                "--export-pdf writes PDF, but `{}` ends in .{other}: name the file .pdf, or give {flag}",
                file.display()
            );
        }
        Ok(())
    }
}

/// The smallest and the largest width of a figure in millimetres.
const WIDTHS: (f64, f64) = (50.0, 1000.0);

/// Parses the width of a figure.
fn parse_width(text: &str) -> Result<FigureWidth, String> {
    match text {
        "one-column" => return Ok(FigureWidth::ONE_COLUMN),
        "two-column" => return Ok(FigureWidth::TWO_COLUMNS),
        _ => {}
    }
    let (least, most) = WIDTHS;
    let millimetres = text.trim_end_matches("mm").trim().parse::<f64>().ok();
    let millimetres = millimetres.filter(|width| (least..=most).contains(width));
    millimetres.map(FigureWidth::Paper).ok_or_else(|| {
        format!("expected one-column, two-column or {least:.0} to {most:.0} (millimetres)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_names_or_millimetres() {
        assert_eq!(parse_width("one-column"), Ok(FigureWidth::ONE_COLUMN));
        assert_eq!(parse_width("120"), Ok(FigureWidth::Paper(120.0)));
        assert_eq!(parse_width("120 mm"), Ok(FigureWidth::Paper(120.0)));
        for bad in ["", "wide", "0", "-5", "nan", "inf", "5000"] {
            assert!(parse_width(bad).is_err(), "{bad}");
        }
    }
}
