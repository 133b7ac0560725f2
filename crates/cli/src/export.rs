//! Documents to files and to standard output.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::NamedTempFile;

/// A file that is opened before the work starts and takes its name when it is whole, so that a bad
/// path is told at once and an old file is never lost to half a new one.
pub struct Document {
    path: PathBuf,
    target: Target,
}

enum Target {
    Stdout,
    /// Something that is there and no plain file: a pipe, a device.
    Special(File),
    Replaced(NamedTempFile),
}

impl Document {
    pub fn open(path: &Path) -> Result<Self> {
        let target = if path == Path::new("-") {
            Target::Stdout
        } else if path.is_dir() {
            bail!("cannot write {}: it is a folder", path.display());
        } else if path.exists() && !path.is_file() {
            let file = File::options().write(true).open(path);
            Target::Special(file.with_context(|| cannot_write(path))?)
        } else {
            Target::Replaced(beside(path).with_context(|| cannot_write(path))?)
        };
        Ok(Self {
            path: path.to_owned(),
            target,
        })
    }

    pub fn is_stdout(&self) -> bool {
        matches!(self.target, Target::Stdout)
    }

    pub fn write(self, text: &str) -> Result<()> {
        let written = match self.target {
            Target::Stdout => return print(text),
            Target::Special(mut file) => file.write_all(text.as_bytes()),
            Target::Replaced(mut file) => file
                .write_all(text.as_bytes())
                .and_then(|()| file.as_file().sync_all())
                .and_then(|()| file.persist(&self.path).map_err(|error| error.error))
                .map(drop),
        };
        written.with_context(|| cannot_write(&self.path))
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// A new file in the same folder; links are followed, so that the file behind one is replaced.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    tempfile::Builder::new()
        .prefix(".sweetspot-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

/// To standard output.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Whether the reader of standard output went away, as `head` does.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
