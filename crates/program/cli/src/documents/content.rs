//! The result of a command in all its formats, each rendered only if it was requested.

use anyhow::Result;
use serde::Serialize;
use sweetspot_report::{Figure, Line, Text};

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Csv,
    Markdown,
    Html,
    Svg,
    Pdf,
    /// Power samples as Parquet.
    Samples,
    /// A profile or a study file as TOML.
    Toml,
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::Csv => "CSV",
            Self::Markdown => "Markdown",
            Self::Html => "HTML page",
            Self::Svg => "SVG",
            Self::Pdf => "PDF",
            Self::Samples => "Parquet file",
            Self::Toml => "TOML",
        })
    }
}

/// A rendered document, or the reason why there is nothing to write, which is not an error.
pub enum Rendered {
    Bytes(Vec<u8>),
    Nothing(&'static str),
}

/// Renders a document when it is needed.
type Renderer<'a> = Box<dyn FnOnce() -> Result<Rendered> + 'a>;
/// Renders the text for the terminal when it is needed.
type TextRenderer<'a> = Box<dyn FnOnce() -> Text + 'a>;
/// Draws the figures when they are needed.
type FigureRenderer<'a> = Box<dyn FnOnce() -> Vec<Figure> + 'a>;

/// The result of a command: the text for the terminal, warnings, and a renderer for each document.
#[derive(Default)]
pub struct Content<'a> {
    pub(super) text: Option<TextRenderer<'a>>,
    pub(super) notes: Vec<String>,
    pub(super) next_step: Option<Line>,
    pub(super) figures: Option<FigureRenderer<'a>>,
    pub(super) without_figures: Option<&'static str>,
    renderers: Vec<(Format, Renderer<'a>)>,
}

impl<'a> Content<'a> {
    /// Sets the text for the terminal. It goes to standard output unless a document goes there.
    pub fn text<T: Into<Text>>(mut self, text: impl FnOnce() -> T + 'a) -> Self {
        self.text = Some(Box::new(|| text().into()));
        self
    }

    /// Sets what the user may do next, which follows the text.
    pub fn next_step(mut self, step: Option<Line>) -> Self {
        self.next_step = step;
        self
    }

    /// Adds messages about the result, which go to standard error after the text.
    pub fn notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// Sets the renderer of the JSON document.
    pub fn json<T: Serialize>(self, json: impl FnOnce() -> T + 'a) -> Self {
        self.with_renderer(Format::Json, || {
            Ok(serde_json::to_string_pretty(&json())? + "\n")
        })
    }

    /// Sets another JSON document in place of the one so far.
    pub fn replacing_json<T: Serialize>(mut self, json: impl FnOnce() -> T + 'a) -> Self {
        drop(self.renderer(Format::Json));
        self.json(json)
    }

    /// Sets another Markdown document in place of the one so far.
    pub fn replacing_markdown(mut self, markdown: impl FnOnce() -> String + 'a) -> Self {
        drop(self.renderer(Format::Markdown));
        self.markdown(markdown)
    }

    /// Sets the renderer of the CSV document.
    pub fn csv<E: Into<anyhow::Error>>(self, csv: impl FnOnce() -> Result<String, E> + 'a) -> Self {
        self.with_renderer(Format::Csv, || csv().map_err(Into::into))
    }

    /// Sets the renderer of the Markdown document.
    pub fn markdown(self, markdown: impl FnOnce() -> String + 'a) -> Self {
        self.with_renderer(Format::Markdown, || Ok(markdown()))
    }

    /// Sets the renderer of the HTML page.
    pub fn html(self, html: impl FnOnce() -> Result<String> + 'a) -> Self {
        self.with_renderer(Format::Html, html)
    }

    /// Sets the renderer of the TOML file.
    pub fn toml(self, toml: impl FnOnce() -> Result<String> + 'a) -> Self {
        self.with_renderer(Format::Toml, toml)
    }

    /// Sets the renderer of the Parquet file with power samples.
    pub fn samples(mut self, samples: impl FnOnce() -> Result<Vec<u8>> + 'a) -> Self {
        let render = || samples().map(Rendered::Bytes);
        self.renderers.push((Format::Samples, Box::new(render)));
        self
    }

    /// Sets what draws the figures, for a folder, an SVG file of the first, or a PDF file of all.
    pub fn figures(mut self, figures: impl FnOnce() -> Vec<Figure> + 'a) -> Self {
        self.figures = Some(Box::new(figures));
        self
    }

    /// Sets the reason why there may be no figure, if it is not the usual one.
    pub const fn without_figures(mut self, reason: &'static str) -> Self {
        self.without_figures = Some(reason);
        self
    }

    /// Sets a rendered document, or the reason why there is none.
    pub(super) fn rendered(&mut self, format: Format, rendered: Rendered) {
        self.renderers.push((format, Box::new(|| Ok(rendered))));
    }

    /// Sets the renderer of a document that is text.
    fn with_renderer(mut self, format: Format, text: impl FnOnce() -> Result<String> + 'a) -> Self {
        let render = || text().map(|text| Rendered::Bytes(text.into_bytes()));
        self.renderers.push((format, Box::new(render)));
        self
    }

    /// Takes the renderer of a format; `None` if the command has none.
    pub(super) fn renderer(&mut self, format: Format) -> Option<Renderer<'a>> {
        let place = self
            .renderers
            .iter()
            .position(|(offered, _)| *offered == format)?;
        Some(self.renderers.swap_remove(place).1)
    }
}
