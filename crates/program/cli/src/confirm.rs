//! Asks the user for confirmation.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::Result;

/// Asks a yes-or-no question on the terminal. Returns `None` if there is no terminal.
pub fn ask_user(question: &str) -> Result<Option<bool>> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Ok(None);
    }
    eprint!("sweetspot: {question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(Some(matches!(answer.trim(), "y" | "Y" | "yes")))
}
