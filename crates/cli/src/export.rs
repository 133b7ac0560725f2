//! Documents to files and to standard output.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sweetspot_decide::Question;
use sweetspot_report::{
    Made, Timeline, View, report_json, report_markdown, runs_to_show, study_csv, study_html,
    study_json, study_markdown,
};
use sweetspot_study::{Store, Study, read_samples};
use tempfile::NamedTempFile;

use crate::args::{ExportArgs, TextExportArgs};

/// A place for a document. It is tried before the work starts, so that a bad path is told at once, and a
/// file takes its name only when it is whole, so that an old one is never lost to half a new one.
#[derive(Debug)]
pub struct Document {
    path: PathBuf,
    target: Target,
}

#[derive(Debug, PartialEq)]
enum Target {
    Stdout,
    /// Something that is there and no plain file: a pipe, a device.
    Special(PathBuf),
    /// The file itself, by its folder's own name, however the path is spelt.
    File(PathBuf),
}

impl Document {
    pub fn open(path: &Path) -> Result<Self> {
        let target = if path == Path::new("-") {
            Target::Stdout
        } else if path.is_dir() {
            bail!("cannot write {}: it is a folder", path.display());
        } else if path.exists() && !path.is_file() {
            Target::Special(path.canonicalize().unwrap_or_else(|_| path.to_owned()))
        } else {
            let file = match path.canonicalize() {
                Ok(file) => file,
                Err(_) if path.is_symlink() => {
                    bail!("cannot write {}: it is a link to nowhere", path.display())
                }
                Err(_) => path.to_owned(),
            };
            if let Some(folder) = file.parent()
                && folder != Path::new("")
                && !folder.exists()
            {
                bail!("{}: there is no such folder", cannot_write(path));
            }
            beside(&file)
                .map_err(|error| plain(&error))
                .with_context(|| cannot_write(path))?;
            Target::File(in_its_folder(file))
        };
        Ok(Self {
            path: path.to_owned(),
            target,
        })
    }

    pub fn is_stdout(&self) -> bool {
        self.target == Target::Stdout
    }

    pub fn write(&self, text: &str) -> Result<()> {
        self.write_bytes(text.as_bytes())
    }

    pub fn write_bytes(&self, bytes: &[u8]) -> Result<()> {
        let written = match &self.target {
            Target::Stdout => return print_bytes(bytes),
            Target::Special(_) => File::options()
                .write(true)
                .open(&self.path)
                .and_then(|mut file| file.write_all(bytes)),
            Target::File(path) => replace(path, bytes),
        };
        written.with_context(|| cannot_write(&self.path))
    }
}

/// Two names of one place are the same document.
impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.target == other.target
    }
}

impl std::fmt::Display for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.target {
            Target::Stdout => f.write_str("standard output"),
            _ => write!(f, "{}", self.path.display()),
        }
    }
}

/// Documents of text.
pub struct TextDocuments {
    json: Option<Document>,
    csv: Option<Document>,
    markdown: Option<Document>,
}

impl TextDocuments {
    pub fn open(args: &TextExportArgs) -> Result<Self> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Document::open).transpose();
        let documents = Self {
            json: open(&args.export_json)?,
            csv: open(&args.export_csv)?,
            markdown: open(&args.export_md)?,
        };
        refuse_twins(&documents.all())?;
        Ok(documents)
    }

    pub fn all(&self) -> Vec<&Document> {
        let all = [&self.json, &self.csv, &self.markdown];
        all.into_iter().flatten().collect()
    }

    pub fn on_stdout(&self) -> bool {
        self.all().iter().any(|document| document.is_stdout())
    }

    /// Only what was asked for is made.
    pub fn write(
        &self,
        json: impl FnOnce() -> serde_json::Value,
        csv: impl FnOnce() -> Result<String>,
        markdown: impl FnOnce() -> String,
    ) -> Result<()> {
        if let Some(document) = &self.json {
            document.write(&(serde_json::to_string_pretty(&json())? + "\n"))?;
        }
        if let Some(document) = &self.csv {
            document.write(&csv()?)?;
        }
        if let Some(document) = &self.markdown {
            document.write(&markdown())?;
        }
        Ok(())
    }
}

/// The documents of a study.
pub struct StudyDocuments {
    text: TextDocuments,
    html: Option<Document>,
}

impl StudyDocuments {
    pub fn open(args: &ExportArgs) -> Result<Self> {
        let documents = Self {
            text: TextDocuments::open(&args.text)?,
            html: args
                .export_html
                .as_deref()
                .map(Document::open)
                .transpose()?,
        };
        refuse_twins(&documents.all())?;
        Ok(documents)
    }

    fn all(&self) -> Vec<&Document> {
        let mut all = self.text.all();
        all.extend(&self.html);
        all
    }

    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Whether a page is wanted, which shows runs over time.
    pub fn has_page(&self) -> bool {
        self.html.is_some()
    }

    pub fn on_stdout(&self) -> bool {
        self.all().iter().any(|document| document.is_stdout())
    }

    /// The results as they are at hand.
    pub fn write(&self, study: &Study, question: &Question) -> Result<()> {
        self.write_all(
            study,
            || study_json(study, question),
            || study_markdown(study, question),
        )?;
        self.write_page(study, question, &Made::default())
    }

    /// The results of a study that is kept, and its readings over time.
    pub fn write_kept(&self, store: &Store, study: &Study, question: &Question) -> Result<()> {
        self.write_all(
            study,
            || study_json(study, question),
            || study_markdown(study, question),
        )?;
        self.write_kept_page(store, study, question)
    }

    /// All that `report` says.
    pub fn write_report(&self, study: &Study, question: &Question, made: &Made<'_>) -> Result<()> {
        self.write_all(
            study,
            || report_json(study, question, made.grouped),
            || report_markdown(study, question, made.grouped),
        )?;
        self.write_page(study, question, made)
    }

    fn write_all(
        &self,
        study: &Study,
        as_json: impl FnOnce() -> serde_json::Value,
        as_markdown: impl FnOnce() -> String,
    ) -> Result<()> {
        let csv = || Ok(study_csv(study)?);
        self.text.write(as_json, csv, as_markdown)
    }

    fn write_kept_page(&self, store: &Store, study: &Study, question: &Question) -> Result<()> {
        if self.html.is_none() {
            return Ok(());
        }
        let outline = store.outline()?;
        let made = Made {
            outline: Some(&outline),
            timelines: &timelines(store, &View::new(study, question), &[]),
            grouped: None,
        };
        self.write_page(study, question, &made)
    }

    fn write_page(&self, study: &Study, question: &Question, made: &Made<'_>) -> Result<()> {
        match &self.html {
            Some(html) => html.write(&study_html(study, question, made)),
            None => Ok(()),
        }
    }
}

/// Readings larger than this would keep a reader waiting.
const MOST_BYTES: u64 = 64 << 20;

/// The readings of the runs that a page shows; what cannot be read is said and left out.
pub fn timelines(store: &Store, view: &View<'_>, asked: &[u64]) -> Vec<Timeline> {
    let mut found = Vec::new();
    for (label, run) in runs_to_show(view, asked) {
        let path = store.samples_file(run);
        let Ok(file) = File::open(&path) else {
            continue;
        };
        if file.metadata().is_ok_and(|about| about.len() > MOST_BYTES) {
            eprintln!("sweetspot: the readings of run {run} are too many to be drawn");
            continue;
        }
        match read_samples(file) {
            Ok(series) => found.push(Timeline { label, series }),
            Err(problem) => eprintln!("sweetspot: cannot read {}: {problem}", path.display()),
        }
    }
    found
}

/// Two documents in one place would be none.
pub fn refuse_twins(all: &[&Document]) -> Result<()> {
    match (1..all.len()).find(|index| all[..*index].contains(&all[*index])) {
        Some(twice) => bail!(
            "two documents cannot go to {}: give each its own file",
            all[twice]
        ),
        None => Ok(()),
    }
}

/// The same file by its folder's own name: it need not be there yet.
fn in_its_folder(file: PathBuf) -> PathBuf {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    match (folder.canonicalize(), file.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => file,
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = beside(path)?;
    file.write_all(bytes)?;
    if let Ok(old) = std::fs::metadata(path) {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// What the system says, without the name of the file beside.
fn plain(error: &io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.source());
    let inner = inner.and_then(|inner| inner.downcast_ref::<io::Error>());
    let code = inner.unwrap_or(error).raw_os_error();
    code.map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// A new file in the same folder, which goes away unless it takes another's place.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    tempfile::Builder::new()
        .prefix(".sweetspot-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

/// To standard output.
pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

/// Whether the reader of standard output went away, as `head` does.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .root_cause()
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_by_two_names_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("same.x");
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let open = |path: &Path| Document::open(path).unwrap();
        for other in [
            folder.path().join("./same.x"),
            inner.join("../same.x"),
            plain.clone(),
        ] {
            let all = [&open(&plain), &open(&other)];
            let problem = refuse_twins(&all).unwrap_err().to_string();
            assert!(problem.contains("two documents cannot go to"), "{problem}");
        }
        let other = folder.path().join("other.x");
        assert!(refuse_twins(&[&open(&plain), &open(&other)]).is_ok());
    }
}
