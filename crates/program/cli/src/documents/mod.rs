//! Writes the documents of all commands.
//!
//! [`Documents`] are opened before the work starts, so a bad path is reported at once. After the work a command
//! describes its result as [`Content`], and [`Documents::write`] prints the text for the terminal and writes every
//! document. If one cannot be written, for example to a full disk, the others are still written.

mod content;
mod figures;
mod study;
mod target;

use std::path::Path;

use anyhow::{Context, Result};
use sweetspot_report::{FigureWidth, Text, figure_svg, figures_pdf};

use crate::args::FigureArgs;
use crate::messages::{print_error, print_warning};

pub use content::{Content, Format};
pub use study::{reproduction, study_content, timelines};
pub use target::{Document, WriteError, print, print_unchanged};

use content::Rendered;
use figures::FigureFolder;

/// The documents that the user requested, with their paths.
#[derive(Debug, Default)]
pub struct Documents {
    all: Vec<(Format, Document)>,
    figures: Option<FigureFolder>,
    figure_width: FigureWidth,
}

/// Why there is no figure of a study.
const NO_FIGURE: &str =
    "no figure was written: a figure needs at least two configurations with successful runs";

/// Whether all requested documents were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Written {
    /// All documents were written.
    Everything,
    /// At least one document was not written, and an error message says which.
    NotEverything,
}

impl Documents {
    /// Checks that every requested document can be written. Each format comes with the path that the user gave, if any.
    pub fn open<'a>(
        requested: impl IntoIterator<Item = (Format, Option<&'a Path>)>,
    ) -> Result<Self> {
        let mut all = Vec::new();
        for (format, path) in requested {
            if let Some(path) = path {
                all.push((format, Document::open(path)?));
            }
        }
        let places: Vec<&Document> = all.iter().map(|(_, document)| document).collect();
        target::reject_duplicate_targets(&places)?;
        Ok(Self {
            all,
            ..Self::default()
        })
    }

    /// Checks that every requested document and figure can be written.
    pub fn open_with_figures<'a>(
        requested: impl IntoIterator<Item = (Format, Option<&'a Path>)>,
        args: &'a FigureArgs,
    ) -> Result<Self> {
        args.check()?;
        let requested = requested.into_iter().chain([args.requested()]);
        Ok(Self {
            figures: FigureFolder::open(args)?,
            ..Self::open(requested)?
        }
        .with_figure_width(args.paper.figure_width))
    }

    /// Sets the width of figures, if the user gave one.
    pub fn with_figure_width(self, width: Option<FigureWidth>) -> Self {
        Self {
            figure_width: width.unwrap_or_default(),
            ..self
        }
    }

    /// Whether no document was requested.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a document of this format was requested.
    pub fn has(&self, format: Format) -> bool {
        self.all.iter().any(|(requested, _)| *requested == format)
    }

    /// Whether figures were requested, in a folder or as a document.
    pub fn has_figures(&self) -> bool {
        self.figures.is_some() || self.has(Format::Svg) || self.has(Format::Pdf)
    }

    /// Whether a document goes to standard output. If so, nothing else may be printed there.
    pub fn on_stdout(&self) -> bool {
        self.all.iter().any(|(_, document)| document.is_stdout())
    }

    /// Prints the text for the terminal, then renders and writes each requested document.
    pub fn write(&self, mut content: Content<'_>) -> Written {
        let mut results = WriteResults::default();
        if !self.on_stdout() {
            let text = content.text.take().map(|text| text());
            let next = content.next_step.take();
            let shown = match (text, next) {
                (Some(text), Some(step)) => text + Text::empty_line() + step,
                (Some(text), None) => text,
                (None, step) => step.map(Text::from).unwrap_or_default(),
            };
            results.add_stdout(print(shown).map_err(Into::into));
        }
        for note in &content.notes {
            print_warning(note);
        }
        if self.has_figures() {
            results.add_all(self.draw_figures(&mut content));
        }
        for (format, document) in &self.all {
            let written = write_one(&mut content, *format, document);
            match document.is_stdout() {
                true => results.add_stdout(written),
                false => results.add(written),
            }
        }
        results.written()
    }

    /// Draws the figures once, writes them to the folder, and adds the documents that consist of them.
    fn draw_figures(&self, content: &mut Content<'_>) -> Vec<Result<()>> {
        let Some(figures) = content.figures.take() else {
            return Vec::new();
        };
        let (figures, width) = (figures(), self.figure_width);
        let missing = content.without_figures.unwrap_or(NO_FIGURE);
        for format in [Format::Svg, Format::Pdf] {
            let drawn = match (figures.first(), format) {
                (None, _) => Rendered::Nothing(missing),
                (Some(first), Format::Svg) => Rendered::Bytes(figure_svg(first, width).into()),
                (Some(_), _) => Rendered::Bytes(figures_pdf(&figures, width)),
            };
            content.rendered(format, drawn);
        }
        let Some(folder) = &self.figures else {
            return Vec::new();
        };
        if figures.is_empty() {
            print_warning(missing);
        }
        folder.write(&figures, width)
    }
}

/// Renders one document and writes it.
fn write_one(content: &mut Content<'_>, format: Format, document: &Document) -> Result<()> {
    let render = content.renderer(format);
    let render = render.with_context(|| format!("this command cannot write {format}"))?;
    match render().with_context(|| format!("cannot create the {format} for {document}"))? {
        Rendered::Bytes(bytes) => {
            let written = document.write(&bytes);
            let (bytes, ok) = (bytes.len(), written.is_ok());
            tracing::debug!(%format, to = %document, bytes, ok, "document written");
            Ok(written?)
        }
        Rendered::Nothing(reason) => {
            print_warning(reason);
            Ok(())
        }
    }
}

/// Whether the reader of standard output closed it, as `head` does.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let write = error.downcast_ref::<WriteError>();
    write.is_some_and(WriteError::is_closed_pipe)
}

/// Reports failures to write, and remembers whether there were any.
#[derive(Default)]
struct WriteResults {
    has_failed: bool,
}

impl WriteResults {
    /// Adds the result of one write, and prints its error.
    fn add(&mut self, result: Result<()>) {
        if let Err(error) = result {
            print_error(&format!("{error:#}"));
            self.has_failed = true;
        }
    }

    /// Adds the result of writing to standard output, where a closed pipe is not an error.
    fn add_stdout(&mut self, result: Result<()>) {
        match result {
            Err(error) if is_closed_pipe(&error) => {}
            result => self.add(result),
        }
    }

    /// Adds the results of several writes.
    fn add_all(&mut self, results: Vec<Result<()>>) {
        results.into_iter().for_each(|result| self.add(result));
    }

    /// Whether every write so far succeeded.
    fn written(&self) -> Written {
        match self.has_failed {
            true => Written::NotEverything,
            false => Written::Everything,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn only_requested_documents_are_rendered_and_all_of_them_are_tried() {
        let folder = tempfile::tempdir().unwrap();
        let markdown = folder.path().join("a.md");
        let documents = Documents::open([
            (Format::Json, Some(Path::new("/dev/full"))),
            (Format::Csv, None),
            (Format::Markdown, Some(markdown.as_path())),
        ])
        .unwrap();
        let is_csv_rendered = Cell::new(false);
        let content = Content::default()
            .json(|| serde_json::json!({"a": 1}))
            .csv(|| {
                is_csv_rendered.set(true);
                anyhow::Ok("a\n".to_owned())
            })
            .markdown(|| "# a\n".to_owned());
        assert_eq!(documents.write(content), Written::NotEverything);
        assert_eq!(std::fs::read_to_string(&markdown).unwrap(), "# a\n");
        assert!(!is_csv_rendered.get());
    }

    #[test]
    fn other_documents_are_written_if_one_cannot_be_rendered() {
        let folder = tempfile::tempdir().unwrap();
        let (csv, markdown) = (folder.path().join("a.csv"), folder.path().join("a.md"));
        let documents = Documents::open([
            (Format::Csv, Some(csv.as_path())),
            (Format::Markdown, Some(markdown.as_path())),
        ])
        .unwrap();
        let content = Content::default()
            .csv(|| anyhow::bail!("no numbers"))
            .markdown(|| "# a\n".to_owned());
        assert_eq!(documents.write(content), Written::NotEverything);
        assert!(!csv.exists() && markdown.exists());
        let content = Content::default()
            .csv(|| anyhow::Ok("a\n".to_owned()))
            .markdown(|| "# b\n".to_owned());
        assert_eq!(documents.write(content), Written::Everything);
        assert!(csv.exists());
    }
}
