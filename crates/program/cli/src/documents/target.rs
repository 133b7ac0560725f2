//! Where a document is written: a file, a pipe, a device, or standard output.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sweetspot_report::Text;
use tempfile::NamedTempFile;

use crate::terminal::stdout_layout;

/// A document that is to be written. The path is checked before the work starts, and a bad path is reported at once. A
/// file is replaced only when the new one is complete, so a failed write never destroys the old one.
#[derive(Debug)]
pub struct Document {
    path: PathBuf,
    target: Target,
}

/// The place to which a document is written.
#[derive(Debug, PartialEq)]
enum Target {
    Stdout,
    /// An existing pipe, device or other special file.
    Special(PathBuf),
    /// A regular file with its canonical path, so two spellings of a path are equal.
    File(PathBuf),
}

impl Document {
    /// Checks that a document can be written to this path; `-` is standard output.
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
                    bail!(
                        "cannot write {}: it is a broken symbolic link",
                        path.display()
                    )
                }
                Err(_) => path.to_owned(),
            };
            if let Some(folder) = file.parent()
                && folder != Path::new("")
                && !folder.exists()
            {
                bail!("{}: the folder does not exist", cannot_write(path));
            }
            temporary_file(&file)
                .map_err(|error| system_error(&error))
                .with_context(|| cannot_write(path))?;
            Target::File(canonical_path(file))
        };
        Ok(Self {
            path: path.to_owned(),
            target,
        })
    }

    /// Whether the document goes to standard output.
    pub fn is_stdout(&self) -> bool {
        self.target == Target::Stdout
    }

    /// Writes the whole document.
    pub fn write(&self, bytes: &[u8]) -> Result<(), WriteError> {
        let written = match &self.target {
            Target::Stdout => return print_bytes(bytes),
            Target::Special(_) => File::options()
                .write(true)
                .open(&self.path)
                .and_then(|mut file| file.write_all(bytes)),
            Target::File(path) => replace_file(path, bytes),
        };
        written.map_err(|problem| WriteError {
            destination: self.path.display().to_string(),
            problem,
        })
    }
}

/// Documents are equal if they are written to the same target.
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

/// Rejects two documents with the same target, which would overwrite each other.
pub fn reject_duplicate_targets(all: &[&Document]) -> Result<()> {
    match (1..all.len()).find(|index| all[..*index].contains(&all[*index])) {
        Some(duplicate) => bail!(
            "two documents cannot be written to {}: give each its own file",
            all[duplicate]
        ),
        None => Ok(()),
    }
}

/// The canonical path of a file that need not exist yet.
fn canonical_path(file: PathBuf) -> PathBuf {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    match (folder.canonicalize(), file.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => file,
    }
}

/// The beginning of messages about a document that cannot be written.
fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Writes a temporary file, and replaces the file at `path` with it.
fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temporary_file(path).map_err(|error| system_error(&error))?;
    file.write_all(bytes)?;
    if let Ok(old) = std::fs::metadata(path) {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The error of the operating system alone, without the name of the temporary file.
fn system_error(error: &io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.source());
    let inner = inner.and_then(|inner| inner.downcast_ref::<io::Error>());
    let code = inner.unwrap_or(error).raw_os_error();
    code.map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Creates a temporary file in the same folder, which is deleted unless it replaces the document.
fn temporary_file(path: &Path) -> io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    tempfile::Builder::new()
        .prefix(".sweetspot-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

/// The error of a document or text that could not be written. The work itself is done by then.
#[derive(Debug)]
pub struct WriteError {
    destination: String,
    problem: io::Error,
}

impl WriteError {
    /// Whether the reader closed the pipe, as `head` does.
    pub fn is_closed_pipe(&self) -> bool {
        self.problem.kind() == io::ErrorKind::BrokenPipe
    }
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write {}", self.destination)
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.problem)
    }
}

/// Writes text to standard output, laid out for the terminal if there is one.
pub fn print(text: impl Into<Text>) -> Result<(), WriteError> {
    let text = text.into().render(&stdout_layout());
    print_bytes(text.as_bytes())
}

/// Writes text to standard output as it is, because a program reads it.
pub fn print_unchanged(text: &str) -> Result<(), WriteError> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output.
fn print_bytes(bytes: &[u8]) -> Result<(), WriteError> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|problem| WriteError {
        destination: "to standard output".to_owned(),
        problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_paths_of_one_file_are_rejected() {
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
            let problem = reject_duplicate_targets(&all).unwrap_err().to_string();
            assert!(
                problem.contains("two documents cannot be written to"),
                "{problem}"
            );
        }
        let other = folder.path().join("other.x");
        assert!(reject_duplicate_targets(&[&open(&plain), &open(&other)]).is_ok());
    }
}
