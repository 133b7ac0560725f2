//! Asks the user for confirmation.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Asks a yes-or-no question on the terminal. Returns `None` if there is no terminal.
pub fn ask_user(question: &str) -> Result<Option<bool>> {
    ask_user_unless(question, &|| false)
}

/// Asks a yes-or-no question on the terminal. Returns `None` if there is no terminal, or as soon as `is_interrupted`
/// returns true: caught signals do not end a read from the terminal.
pub fn ask_user_unless(question: &str, is_interrupted: &dyn Fn() -> bool) -> Result<Option<bool>> {
    /// The time between two calls of `is_interrupted`.
    const CHECK_PERIOD: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };

    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Ok(None);
    }
    let mut terminal = std::io::stderr();
    write!(terminal, "sweetspot: {question} [y/N] ")?;
    terminal.flush()?;
    let stdin = std::io::stdin();
    loop {
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut ready, Some(&CHECK_PERIOD)) {
            _ if is_interrupted() => {
                let _ = writeln!(terminal);
                return Ok(None);
            }
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(Some(matches!(answer.trim(), "y" | "Y" | "yes")))
}
