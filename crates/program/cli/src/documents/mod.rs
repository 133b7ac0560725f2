//! The one way in which a command writes its documents.
//!
//! [`Documents`] are opened before the work starts, so that a bad path is reported at once. After the work a command
//! describes what it has to say as [`Content`], and [`Documents::write`] shows the text for people and tries every
//! document, whatever became of the others: a full disk or a closed pipe loses nothing else.

mod content;
mod figures;
mod study;
mod target;

use std::path::Path;

use anyhow::{Context, Result};

use crate::say;

pub use content::{Content, Format};
pub use figures::FigureFolder;
pub use study::{study_content, timelines};
pub use target::{Document, WriteError, print};

use content::Rendered;

/// The documents that were asked for, each in its place.
#[derive(Debug, Default)]
pub struct Documents {
    all: Vec<(Format, Document)>,
    figures: Option<FigureFolder>,
}

/// Whether all that was asked for could be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Written {
    /// All documents are in their places.
    Everything,
    /// At least one is missing, and standard error says which.
    NotEverything,
}

impl Documents {
    /// Tries every place that was named; each format comes with its path, where one was given.
    pub fn open<'a>(asked: impl IntoIterator<Item = (Format, Option<&'a Path>)>) -> Result<Self> {
        let mut all = Vec::new();
        for (format, path) in asked {
            if let Some(path) = path {
                all.push((format, Document::open(path)?));
            }
        }
        let places: Vec<&Document> = all.iter().map(|(_, document)| document).collect();
        target::reject_duplicate_places(&places)?;
        Ok(Self { all, figures: None })
    }

    /// The same documents, and figures in a folder where one was named.
    pub fn with_figures(self, figures: Option<FigureFolder>) -> Self {
        Self { figures, ..self }
    }

    /// Whether no document was asked for.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a document of this format was asked for.
    pub fn has(&self, format: Format) -> bool {
        self.all.iter().any(|(asked, _)| *asked == format)
    }

    /// Whether figures were asked for.
    pub fn has_figures(&self) -> bool {
        self.figures.is_some()
    }

    /// Whether standard output carries a document, and therefore nothing else.
    pub fn on_stdout(&self) -> bool {
        self.all.iter().any(|(_, document)| document.is_stdout())
    }

    /// Shows the text for people, then makes and writes each document that was asked for.
    pub fn write(&self, mut content: Content<'_>) -> Written {
        let mut attempts = Attempts::default();
        if let Some(text) = content.text.take()
            && !self.on_stdout()
        {
            attempts.note_stdout(print(&text()).map_err(Into::into));
        }
        for note in &content.notes {
            say(&format!("sweetspot: {note}"));
        }
        for (format, document) in &self.all {
            let written = write_one(&mut content, *format, document);
            match document.is_stdout() {
                true => attempts.note_stdout(written),
                false => attempts.note(written),
            }
        }
        if let (Some(folder), Some(figures)) = (&self.figures, content.figures.take()) {
            attempts.note_all(folder.write(&figures()));
        }
        attempts.written()
    }
}

fn write_one(content: &mut Content<'_>, format: Format, document: &Document) -> Result<()> {
    let render = content.renderer(format);
    let render = render.with_context(|| format!("this command makes no {format}"))?;
    match render().with_context(|| format!("cannot make the {format} for {document}"))? {
        Rendered::Bytes(bytes) => {
            let written = document.write(&bytes);
            let (bytes, ok) = (bytes.len(), written.is_ok());
            tracing::debug!(%format, to = %document, bytes, ok, "document written");
            Ok(written?)
        }
        Rendered::Nothing(reason) => {
            say(&format!("sweetspot: {reason}"));
            Ok(())
        }
    }
}

/// Whether the reader of standard output went away, as `head` does.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let write = error.downcast_ref::<WriteError>();
    write.is_some_and(WriteError::is_closed_pipe)
}

/// Counts what failed, and says it.
#[derive(Default)]
struct Attempts {
    has_failed: bool,
}

impl Attempts {
    fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            say(&format!("sweetspot: {error:#}"));
            self.has_failed = true;
        }
    }

    /// A reader of standard output that goes away, as `head` does, has what it wants.
    fn note_stdout(&mut self, result: Result<()>) {
        match result {
            Err(error) if is_closed_pipe(&error) => {}
            result => self.note(result),
        }
    }

    fn note_all(&mut self, results: Vec<Result<()>>) {
        results.into_iter().for_each(|result| self.note(result));
    }

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
    fn only_what_was_asked_for_is_made_and_every_document_is_tried() {
        let folder = tempfile::tempdir().unwrap();
        let markdown = folder.path().join("a.md");
        let documents = Documents::open([
            (Format::Json, Some(Path::new("/dev/full"))),
            (Format::Csv, None),
            (Format::Markdown, Some(markdown.as_path())),
        ])
        .unwrap();
        let is_csv_made = Cell::new(false);
        let content = Content::default()
            .json(|| serde_json::json!({"a": 1}))
            .csv(|| {
                is_csv_made.set(true);
                anyhow::Ok("a\n".to_owned())
            })
            .markdown(|| "# a\n".to_owned());
        assert_eq!(documents.write(content), Written::NotEverything);
        assert_eq!(std::fs::read_to_string(&markdown).unwrap(), "# a\n");
        assert!(!is_csv_made.get());
    }

    #[test]
    fn a_document_that_cannot_be_made_keeps_no_other_from_being_written() {
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
