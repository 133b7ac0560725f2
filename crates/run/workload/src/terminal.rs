//! A pseudo-terminal for the output of a command, so that its progress bars look as they do without this program.
//!
//! Only the output is a pseudo-terminal. The command keeps this program's standard input, session and process group:
//! Ctrl-C and Ctrl-Z reach it from the real terminal as ever. The pseudo-terminal passes bytes on unchanged; the real
//! terminal alone converts line ends.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

/// A standard stream of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnStream {
    Output,
    Error,
}

impl OwnStream {
    /// Whether this stream is a terminal.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Output => io::stdout().is_terminal(),
            Self::Error => io::stderr().is_terminal(),
        }
    }

    /// Calls `use_it` with the file descriptor of the stream.
    fn with<T>(self, use_it: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        match self {
            Self::Output => use_it(io::stdout().as_fd()),
            Self::Error => use_it(io::stderr().as_fd()),
        }
    }

    /// Whether two streams are the same file, pipe or terminal.
    pub fn is_same(self, other: Self) -> bool {
        let file = |stream: Self| {
            let found = stream.with(|descriptor| fstat(descriptor)).ok()?;
            Some((found.st_dev, found.st_ino))
        };
        self == other || file(self).is_some() && file(self) == file(other)
    }
}

/// A pseudo-terminal: the command writes to it, and this program reads what the command has written.
pub(crate) struct PseudoTerminal {
    reader: OwnedFd,
    writer: OwnedFd,
    path: PathBuf,
    window: TerminalWindow,
}

/// Keeps the size of a pseudo-terminal the same as that of the real one.
pub(crate) struct TerminalWindow {
    terminal: OwnStream,
    reader: OwnedFd,
    /// The columns and rows of the pseudo-terminal.
    size: Option<(u16, u16)>,
}

impl PseudoTerminal {
    /// Creates a pseudo-terminal with the size of a real one. It fails where there are none, as in some containers.
    pub fn new(terminal: OwnStream) -> io::Result<Self> {
        let reader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&reader)?;
        unlockpt(&reader)?;
        let name = ptsname(&reader, Vec::new())?;
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(name.as_bytes()));
        // Only for writing: a program that reads its keyboard must not read here.
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        let writer = open(&path, flags, Mode::empty())?;
        let mut modes = tcgetattr(&writer)?;
        modes.make_raw();
        tcsetattr(&writer, OptionalActions::Now, &modes)?;
        let mut window = TerminalWindow {
            terminal,
            reader: reader.try_clone()?,
            size: None,
        };
        window.update();
        Ok(Self {
            reader,
            writer,
            path,
            window,
        })
    }

    /// The path by which another process of this user can open the pseudo-terminal for writing.
    pub fn path(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// The descriptor to which the command writes.
    pub fn writer(&self) -> io::Result<OwnedFd> {
        self.writer.try_clone()
    }

    /// Closes this program's end for writing. Reading then ends when the command closes its own.
    pub fn into_reader(self) -> (File, TerminalWindow) {
        (File::from(self.reader), self.window)
    }
}

impl TerminalWindow {
    /// Gives the pseudo-terminal the present size of the real one.
    pub fn update(&mut self) {
        let Ok(size) = self.terminal.with(|descriptor| tcgetwinsize(descriptor)) else {
            return;
        };
        let columns_and_rows = Some((size.ws_col, size.ws_row));
        if self.size != columns_and_rows && tcsetwinsize(&self.reader, size).is_ok() {
            self.size = columns_and_rows;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn bytes_pass_unchanged_and_the_output_ends_with_its_last_writer() {
        let terminal = PseudoTerminal::new(OwnStream::Error).unwrap();
        let mut writer = File::from(terminal.writer().unwrap());
        assert!(writer.is_terminal());
        let named = std::fs::OpenOptions::new()
            .write(true)
            .open(terminal.path())
            .unwrap();
        let (mut reader, _window) = terminal.into_reader();
        let bytes: Vec<u8> = (0..=255).chain(*b"a\r\nb\n").collect();
        writer.write_all(&bytes).unwrap();
        drop((writer, named));
        let mut read = Vec::new();
        // After the last writer a pseudo-terminal reports an error in place of an end.
        assert!(reader.read_to_end(&mut read).is_err());
        assert_eq!(read, bytes);
    }
}
