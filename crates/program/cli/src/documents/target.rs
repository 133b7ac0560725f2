//! One place that a document goes to: a file, a pipe, a device, or standard output.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::NamedTempFile;

/// A place for a document. It is tried before the work starts, so that a bad path is reported at once, and a
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

    pub fn write(&self, bytes: &[u8]) -> Result<(), WriteError> {
        let written = match &self.target {
            Target::Stdout => return print_bytes(bytes),
            Target::Special(_) => File::options()
                .write(true)
                .open(&self.path)
                .and_then(|mut file| file.write_all(bytes)),
            Target::File(path) => replace(path, bytes),
        };
        written.map_err(|problem| WriteError {
            place: self.path.display().to_string(),
            problem,
        })
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

/// Two documents in one place would overwrite each other.
pub fn reject_duplicate_places(all: &[&Document]) -> Result<()> {
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
    let mut file = beside(path).map_err(|error| plain(&error))?;
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

/// A document, or the text for people, that could not be written. The work is done by then.
#[derive(Debug)]
pub struct WriteError {
    place: String,
    problem: io::Error,
}

impl WriteError {
    /// Whether the reader went away, as `head` does.
    pub fn is_closed_pipe(&self) -> bool {
        self.problem.kind() == io::ErrorKind::BrokenPipe
    }
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write {}", self.place)
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.problem)
    }
}

/// Writes text to standard output.
pub fn print(text: &str) -> Result<(), WriteError> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<(), WriteError> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|problem| WriteError {
        place: "to standard output".to_owned(),
        problem,
    })
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
            let problem = reject_duplicate_places(&all).unwrap_err().to_string();
            assert!(problem.contains("two documents cannot go to"), "{problem}");
        }
        let other = folder.path().join("other.x");
        assert!(reject_duplicate_places(&[&open(&plain), &open(&other)]).is_ok());
    }
}
