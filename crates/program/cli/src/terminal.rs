//! The terminal: its width, and whether its text has colours.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use clap::ValueEnum;
use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use sweetspot_report::TextLayout;

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set or TERM is `dumb`.
    #[default]
    Auto,
    /// Always, also in files and pipes.
    Always,
    /// Never.
    Never,
}

impl ColorWhen {
    /// Whether a stream has colours.
    fn applies_to(self, is_terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => is_terminal && environment_allows_colours(),
        }
    }
}

/// Whether the environment has nothing against colours: NO_COLOR (<https://no-color.org>) is empty or not set, and TERM
/// names a terminal that has colours.
fn environment_allows_colours() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_colours =
        std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    !is_set("NO_COLOR") && has_colours
}

/// What the user chose with --color.
static CHOICE: OnceLock<ColorWhen> = OnceLock::new();

/// Finds --color among the arguments, before they are parsed: help and errors about flags have colours too. An invalid
/// value is reported when the arguments are parsed.
pub fn find_choice(arguments: impl Iterator<Item = std::ffi::OsString>) -> ColorWhen {
    let own = arguments.take_while(|argument| argument != "--");
    let own: Vec<String> = own
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let values = own.iter().enumerate().filter_map(|(index, argument)| {
        match argument.strip_prefix("--color")? {
            "" => own.get(index + 1).map(String::as_str),
            rest => rest.strip_prefix('='),
        }
    });
    let mut chosen = values.filter_map(|value| ColorWhen::from_str(value, false).ok());
    chosen.next_back().unwrap_or_default()
}

/// Remembers when to use colours, for the rest of the program.
pub fn set_choice(choice: ColorWhen) {
    let _ = CHOICE.set(choice);
}

/// What the user chose with --color.
fn choice() -> ColorWhen {
    CHOICE.get().copied().unwrap_or_default()
}

/// Whether clap shows help and errors in colours.
pub fn colours_of_help(choice: ColorWhen) -> clap::ColorChoice {
    match choice.applies_to(io::stdout().is_terminal()) {
        true => clap::ColorChoice::Always,
        false => clap::ColorChoice::Never,
    }
}

/// The styles of help texts: headings are bold as in all other texts, and what to type is green.
pub const HELP_STYLES: Styles = Styles::styled()
    .header(clap::builder::styling::Style::new().bold())
    .usage(clap::builder::styling::Style::new().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(clap::builder::styling::Style::new());

/// The layout of texts on standard output.
pub fn stdout_layout() -> TextLayout {
    layout(&io::stdout())
}

/// The layout of texts on standard error.
pub fn stderr_layout() -> TextLayout {
    layout(&io::stderr())
}

/// Whether standard output has colours.
pub fn stdout_has_colours() -> bool {
    choice().applies_to(io::stdout().is_terminal())
}

/// Whether standard error has colours.
pub fn stderr_has_colours() -> bool {
    choice().applies_to(io::stderr().is_terminal())
}

/// The layout of texts on a stream: fitted into a terminal, and independent of the machine elsewhere.
fn layout<S: AsFd + IsTerminal>(stream: &S) -> TextLayout {
    let has_colours = choice().applies_to(stream.is_terminal());
    match stream.is_terminal() {
        true => {
            let columns = columns_of(stream).unwrap_or(TextLayout::PLAIN.table_columns);
            TextLayout::terminal(columns, has_colours)
        }
        false => TextLayout {
            has_colours,
            ..TextLayout::PLAIN
        },
    }
}

/// The number of columns of a terminal; `None` if it is unknown. The variable COLUMNS is no help: shells do not export
/// it.
pub fn columns_of(stream: &impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_is_found_before_the_users_command() {
        let find = |line: &str| find_choice(line.split(' ').map(Into::into));
        assert_eq!(find("sweep --color always --help"), ColorWhen::Always);
        assert_eq!(find("sweep --color=never"), ColorWhen::Never);
        assert_eq!(find("--color never --color always"), ColorWhen::Always);
        assert_eq!(find("measure -- ls --color=always"), ColorWhen::Auto);
        assert_eq!(find("sweep --color sometimes"), ColorWhen::Auto);
    }
}
