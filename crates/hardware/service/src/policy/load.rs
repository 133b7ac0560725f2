//! Reads the policy file from the disk.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::error::MAX_FILE_SIZE;
use super::file::line_at;
use super::{Accounts, Policy, PolicyError};

impl Policy {
    /// Reads the policy file. If there is none, the default policy holds.
    ///
    /// `check` returns an error if users other than root could change a path. It is called for the file before the
    /// file is opened. If there is no file, it is called for the nearest folder that exists: a user who can write
    /// there could have removed the file.
    pub fn load(
        path: &Path,
        accounts: &dyn Accounts,
        check: impl Fn(&Path) -> Result<(), String>,
    ) -> Result<Self, PolicyError> {
        let name = path.display().to_string();
        let require_root = |path: &Path| {
            check(path).map_err(|reason| PolicyError::NotOnlyRoot {
                file: name.clone(),
                reason,
            })
        };
        let unreadable = |error: io::Error| PolicyError::Unreadable {
            file: name.clone(),
            reason: error.to_string(),
        };
        match path.symlink_metadata() {
            // A symbolic link to nothing is not an absent file, so it leads to an error below.
            Ok(_) => {
                require_root(path)?;
                let text = read_text(path, &name)?;
                Self::from_text(&text, &name, accounts)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                require_root(nearest_folder(path).map_err(unreadable)?)?;
                Ok(Self::default_policy(&name, accounts))
            }
            Err(error) => Err(unreadable(error)),
        }
    }
}

/// The innermost folder of a path that exists.
fn nearest_folder(path: &Path) -> io::Result<&Path> {
    for folder in path.ancestors().skip(1) {
        match folder.symlink_metadata() {
            Ok(_) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    // A relative path begins in the working directory.
    Ok(Path::new("."))
}

/// Reads a text file; `name` is its name in messages.
fn read_text(path: &Path, name: &str) -> Result<String, PolicyError> {
    let unreadable = |reason: String| PolicyError::Unreadable {
        file: name.to_owned(),
        reason,
    };
    // Without O_NONBLOCK, the service would wait forever for the writer of a named pipe.
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| unreadable(error.to_string()))?;
    let metadata = file.metadata();
    if !metadata.is_ok_and(|metadata| metadata.is_file()) {
        return Err(unreadable("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_SIZE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > MAX_FILE_SIZE {
        return Err(PolicyError::TooLarge {
            file: name.to_owned(),
        });
    }
    String::from_utf8(bytes).map_err(|error| PolicyError::Invalid {
        file: name.to_owned(),
        line: line_at(error.as_bytes(), error.utf8_error().valid_up_to()),
        key: None,
        message: "not UTF-8 text: save the file with this encoding".to_owned(),
    })
}
