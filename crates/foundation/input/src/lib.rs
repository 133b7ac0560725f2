//! Reads files that a user names: profiles, networks, studies, tables.
//!
//! Promises: only regular files are read, and of these at most the given number of bytes. A pipe or a device, which could
//! block without end or have no end, is an error.
//! Left to others: what the content means.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a file for reading; it must be a regular file.
pub fn open(path: impl AsRef<Path>) -> Result<File, Error> {
    // Without `NONBLOCK`, opening a named pipe waits for a program that writes to it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path.as_ref(), flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::new(ErrorKind::InvalidInput, "it is not a file")),
    }
}

/// Reads the bytes of a file; it must be a regular file of at most `max_bytes`.
pub fn read_bytes(path: impl AsRef<Path>, max_bytes: u64) -> Result<Vec<u8>, Error> {
    let file = open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(size.min(max_bytes) as usize);
    // The file may grow meanwhile, and files of the kernel have no size.
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let size = match max_bytes >> 20 {
            0 => format!("{} KiB", max_bytes >> 10),
            mebibytes => format!("{mebibytes} MiB"),
        };
        let problem = format!("it is larger than {size}");
        return Err(Error::new(ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

/// Reads the text of a file; it must be a regular file of at most `max_bytes` in UTF-8.
pub fn read_text(path: impl AsRef<Path>, max_bytes: u64) -> Result<String, Error> {
    let bytes = read_bytes(path, max_bytes)?;
    String::from_utf8(bytes)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "it is not valid UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "text");
        let problem = read_text(&path, 3).unwrap_err();
        assert_eq!(problem.to_string(), "it is larger than 0 KiB");
        std::fs::write(&path, [0xff]).unwrap();
        let problem = read_text(&path, 4).unwrap_err();
        assert_eq!(problem.to_string(), "it is not valid UTF-8 text");
        let missing = read_bytes(folder.path().join("none"), 4).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn pipes_devices_and_folders_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        for path in [&pipe, folder.path(), Path::new("/dev/zero")] {
            let problem = read_bytes(path, 4).unwrap_err();
            assert_eq!(problem.to_string(), "it is not a file", "{path:?}");
        }
    }
}
