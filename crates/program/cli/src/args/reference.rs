//! The pages `docs/reference/commands/*.md`, made from the definitions of commands and flags.
//!
//! `SNAPSHOTS=overwrite cargo test --release -p sweetspot-cli reference` renews them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory};

use super::Cli;
use super::groups::GROUPS;

/// The line by which a page says that it is generated.
const NOTICE: &str = "<!-- Made from the flags of the program by \
    `SNAPSHOTS=overwrite cargo test --release -p sweetspot-cli reference`; do not edit. -->\n\n";

/// Pages about a command that have another name than the command.
const PAGES: [(&str, &str); 12] = [
    ("budget", "reference/budget.md"),
    ("compare", "reference/report.md#compare-studies"),
    ("counter", "reference/metrics.md"),
    ("doctor", "reference/devices.md"),
    ("replay", "explanation/search.md"),
    (
        "calibrate",
        "reference/node.md#calibrating-a-sensor-against-a-meter",
    ),
    ("restore", "reference/run.md"),
    ("serve", "reference/service.md"),
    ("sim-workload", "how-to/simulate.md"),
    ("study", "reference/study-format.md"),
    ("task", "reference/sweep.md#studies"),
    ("top", "reference/metrics.md#live-page-and-top"),
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs")
}

/// The page that explains a command.
fn explained_in(name: &str) -> String {
    let other = PAGES.iter().find(|(command, _)| *command == name);
    let own = ["reference", "how-to"].map(|kind| format!("{kind}/{name}.md"));
    match other {
        Some((_, page)) => (*page).to_owned(),
        None => own
            .into_iter()
            .find(|page| docs().join(page).exists())
            .unwrap_or_else(|| panic!("no page explains `{name}`: add one, or its name to PAGES")),
    }
}

/// Help as Markdown: what is not code is escaped, and names of pages become links.
fn markdown(help: &str) -> String {
    let mut text = String::new();
    for (number, part) in help.split('`').enumerate() {
        if number % 2 == 1 {
            let _ = write!(text, "`{part}`");
            continue;
        }
        for word in part.split_inclusive([' ', '\n']) {
            let page = word.trim_matches(|c: char| "()[],;.\n ".contains(c));
            match page.strip_prefix("docs/").filter(|_| page.ends_with(".md")) {
                Some(target) => text += &word.replace(page, &format!("[{page}](../../{target})")),
                None => text += &escaped(word),
            }
        }
    }
    text
}

/// A word that is no code. Two hyphens would become a dash.
fn escaped(word: &str) -> String {
    let mut text = String::new();
    for character in word.chars() {
        if "<>*_[]|\\#".contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text.replace("--", "\\-\\-")
}

/// The flag or argument as it is written on the command line.
fn written(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let values: Vec<String> = values.iter().map(|name| format!("<{name}>")).collect();
    let takes_value = argument.get_action().takes_values();
    let mut names: Vec<String> = argument
        .get_short()
        .map(|short| format!("-{short}"))
        .into_iter()
        .collect();
    names.extend(argument.get_long().map(|long| format!("--{long}")));
    match (names.is_empty(), takes_value) {
        (true, _) => values.join(" "),
        (false, true) => format!("{} {}", names.join(", "), values.join(" ")),
        (false, false) => names.join(", "),
    }
}

/// Help as one or more whole sentences.
fn sentence(help: &str) -> String {
    let text = markdown(help);
    match text.ends_with(['.', ':', '?']) || text.is_empty() {
        true => text,
        false => text + ".",
    }
}

/// The line of a flag or an argument.
fn write_argument(text: &mut String, argument: &Arg) {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let help = sentence(&help.map(ToString::to_string).unwrap_or_default());
    let _ = write!(
        text,
        "- `{}`: {}",
        written(argument).trim(),
        help.replace('\n', "\n  ")
    );
    let takes_value = argument.get_action().takes_values();
    if takes_value && !argument.is_hide_possible_values_set() {
        let values = argument.get_possible_values().into_iter().map(|value| {
            let help = value.get_help().map(ToString::to_string);
            let help = help.map(|help| format!(" ({})", markdown(&help)));
            format!("`{}`{}", value.get_name(), help.unwrap_or_default())
        });
        let values: Vec<String> = values.collect();
        if !values.is_empty() {
            let _ = write!(text, " One of {}.", values.join(", "));
        }
    }
    if takes_value && !argument.is_hide_default_value_set() {
        let defaults = argument.get_default_values().iter();
        let defaults: Vec<String> = defaults
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        if !defaults.is_empty() {
            let _ = write!(text, " Default: {}.", defaults.join(", "));
        }
    }
    text.push('\n');
}

/// The help of a command and its flags, and then of the commands below it.
fn write_command(text: &mut String, command: &mut Command, level: &str, name: &str) {
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").lines().map(str::trim);
    let usage: Vec<&str> = usage.collect();
    let _ = write!(
        text,
        "{}\n\n```text\n{}\n```\n",
        sentence(&about),
        usage.join("\n")
    );
    let mut shown: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| {
            !argument.is_hide_set() && !argument.is_global_set() && argument.get_id() != "help"
        })
        .collect();
    shown.sort_by_key(|argument| !argument.is_positional());
    let heading = |argument: &Arg| match (argument.get_help_heading(), argument.is_positional()) {
        (Some(heading), _) => heading.to_owned(),
        (None, true) => "Arguments".to_owned(),
        (None, false) => "Options".to_owned(),
    };
    let mut headings: Vec<String> = Vec::new();
    for argument in &shown {
        if !headings.contains(&heading(argument)) {
            headings.push(heading(argument));
        }
    }
    for one in headings {
        let _ = write!(text, "\n{level} {one}\n\n");
        for argument in shown.iter().filter(|argument| heading(argument) == one) {
            write_argument(text, argument);
        }
    }
    for below in command.get_subcommands_mut() {
        if below.is_hide_set() || below.get_name() == "help" {
            continue;
        }
        let name = format!("{name} {}", below.get_name());
        let _ = write!(text, "\n{level} {name}\n\n");
        write_command(text, below, &format!("{level}#"), &name);
    }
}

/// The page of a command.
fn page(command: &mut Command) -> String {
    let name = format!("sweetspot {}", command.get_name());
    let mut text = format!("# {name}\n\n{NOTICE}");
    let target = explained_in(command.get_name());
    let _ = write!(
        text,
        "[{target}](../../{target}) explains it with examples.\n\n"
    );
    write_command(&mut text, command, "##", &name);
    text
}

/// The page that lists all commands, with the flags that all have.
fn list(program: &Command) -> String {
    let mut text = format!("# Commands\n\n{NOTICE}");
    for (title, names) in GROUPS {
        let _ = write!(
            text,
            "## {title}\n\n| command | what it does |\n|---|---|\n"
        );
        for name in names {
            let about = program.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(
                text,
                "| [`sweetspot {name}`]({name}.md) | {} |",
                markdown(&about)
            );
        }
        text.push('\n');
    }
    text += "## Options of every command\n\n";
    for argument in program
        .get_arguments()
        .filter(|argument| argument.is_global_set())
    {
        write_argument(&mut text, argument);
    }
    text
}

#[test]
fn the_pages_of_commands_match_their_flags() {
    let mut program = Cli::command();
    program.build();
    let folder = docs().join("reference/commands");
    let mut pages = vec![("README.md".to_owned(), list(&program))];
    for command in program.get_subcommands_mut() {
        if !command.is_hide_set() && command.get_name() != "help" {
            pages.push((format!("{}.md", command.get_name()), page(command)));
        }
    }
    for (name, text) in &pages {
        snapbox::assert_data_eq!(
            text,
            snapbox::Data::read_from(&folder.join(name), None).raw()
        );
    }
    let names: BTreeSet<String> = pages.into_iter().map(|(name, _)| name).collect();
    let files = std::fs::read_dir(&folder).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.collect::<BTreeSet<_>>(), names);
}

#[test]
fn help_becomes_markdown() {
    let help =
        "A list of `a_b`: <N> or --all, x*y (docs/reference/link.md), docs/how-to/fit.md; all.";
    let expected = "A list of `a_b`: \\<N\\> or \\-\\-all, x\\*y ([docs/reference/link.md](../../reference/link.md)), \
         [docs/how-to/fit.md](../../how-to/fit.md); all.";
    assert_eq!(markdown(help), expected);
}
