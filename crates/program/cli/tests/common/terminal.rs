//! A pseudo-terminal on which a test runs the program.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::common::program;

/// Which streams of a command go to a terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Standard output; standard error is discarded.
    Output,
    /// Standard output and standard error.
    OutputAndErrors,
}

/// Runs a command on a terminal with this many columns, and returns everything that it wrote there.
pub fn run_on_terminal(mut command: Command, columns: u16, shown: Shown) -> (String, ExitStatus) {
    let reader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&reader).unwrap();
    unlockpt(&reader).unwrap();
    let size = Winsize {
        ws_row: 50,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&reader, size).unwrap();
    let path = ptsname(&reader, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let writer = open(path.as_c_str(), flags, Mode::empty()).unwrap();
    let errors = match shown {
        Shown::Output => Stdio::null(),
        Shown::OutputAndErrors => writer.try_clone().unwrap().into(),
    };
    command.stdin(Stdio::null()).stdout(writer).stderr(errors);
    let mut child = command.spawn().unwrap();
    // The command keeps its own copies of the terminal; reading ends when the last of them is closed.
    drop(command);
    let mut text = Vec::new();
    // After the last writer a terminal reports an error in place of an end.
    let _ = File::from(reader).read_to_end(&mut text);
    let status = child.wait().unwrap();
    (
        String::from_utf8(text).unwrap().replace("\r\n", "\n"),
        status,
    )
}

/// Checks that everything that the program prints fits terminals of several widths.
pub fn assert_fits(folder: &Path, args: &[&str]) {
    for columns in [60, 80, 200] {
        let mut command = program();
        command.args(args).current_dir(folder).env("TERM", "xterm");
        let (shown, _) = run_on_terminal(command, columns, Shown::Output);
        for line in without_escapes(&shown).lines() {
            let width = line.chars().count();
            assert!(width <= columns.into(), "{args:?}: {columns}: {line:?}");
        }
    }
}

/// The text without escape codes.
pub fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => {
                let _ = letters.by_ref().skip(1).find(char::is_ascii_alphabetic);
            }
            letter => plain.push(letter),
        }
    }
    plain
}
