//! A meter on a serial line, which is a pseudo terminal.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::{Shared, lines};
use crate::Wt310;

/// A serial line with a meter at one end.
#[derive(Debug)]
pub(crate) struct SerialLine {
    meter_end: File,
    /// The client's end, kept open so that the line stays when a client closes it.
    _client_end: File,
    path: PathBuf,
}

impl SerialLine {
    /// Makes a serial line that passes all bytes unchanged.
    pub fn open() -> io::Result<Self> {
        let meter_end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&meter_end)?;
        unlockpt(&meter_end)?;
        let path = ptsname(&meter_end, Vec::new())?;
        let path = PathBuf::from(path.to_string_lossy().into_owned());
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let client_end = open(&path, flags, Mode::empty())?;
        let mut settings = tcgetattr(&client_end)?;
        settings.make_raw();
        tcsetattr(&client_end, OptionalActions::Now, &settings)?;
        Ok(Self {
            meter_end: File::from(meter_end),
            _client_end: File::from(client_end),
            path,
        })
    }

    /// The path that a client opens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers the lines of clients until the stand-ins end.
    pub fn serve(mut self, meter: &Mutex<Wt310>, shared: &Shared) {
        while !shared.has_ended() {
            // A serial line cannot be disconnected by the meter: the meter is only lost for a moment.
            let _ = lines::serve(&mut TimedReads(&mut self.meter_end), meter, shared);
        }
    }
}

/// A file whose reads return after some time even if nothing has come.
struct TimedReads<'a>(&'a mut File);

impl Read for TimedReads<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let limit = rustix::time::Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        let mut wait = [PollFd::new(&*self.0, PollFlags::IN)];
        if poll(&mut wait, Some(&limit))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.0.read(bytes)
    }
}

impl Write for TimedReads<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
