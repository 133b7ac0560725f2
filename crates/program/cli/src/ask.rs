//! A question to whoever sits at the terminal.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::Result;

/// Whether the user says yes; nothing where nobody can be asked.
pub fn ask(question: &str) -> Result<Option<bool>> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Ok(None);
    }
    eprint!("sweetspot: {question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(Some(matches!(answer.trim(), "y" | "Y" | "yes")))
}
