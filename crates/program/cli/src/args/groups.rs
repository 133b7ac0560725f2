//! The help of the program, which lists its commands in groups.

use std::fmt::Write;

use clap::{Command, CommandFactory, FromArgMatches};

use super::Cli;

/// The groups of commands in the help of the program, in the order in which they are shown. Every command that is not
/// hidden must be in one of them.
pub(super) const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["doctor", "devices", "top"]),
    ("Measure", &["measure", "counter", "calibrate", "network"]),
    ("Optimise", &["tune", "sweep", "run", "hold", "budget"]),
    ("Look at results", &["report", "compare", "study"]),
    (
        "Simulate",
        &["simulate", "sim-workload", "fit", "replay", "reproduce"],
    ),
    (
        "Administer",
        &["serve", "policy", "slurm", "restore", "task"],
    ),
];

/// The examples in the help of the program.
const EXAMPLES: &str = "  \
  sweetspot doctor                                    check this machine
  sweetspot tune -- python train.py                   save energy in a training
  sweetspot sweep --simulate v100 --network resnet50  try it without a GPU
";

/// The widest help of the program, in columns.
const MAX_COLUMNS: usize = 80;

/// Parses the command line of this process; `prepare` sets how the help looks.
pub fn parse(prepare: impl FnOnce(Command) -> Command) -> Result<Cli, clap::Error> {
    let mut program = program(prepare);
    let matches = program.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
}

/// The command line of the program. clap knows no groups of commands, so the help is a template that contains them.
fn program(prepare: impl FnOnce(Command) -> Command) -> Command {
    let program = prepare(Cli::command());
    let template = template(&program);
    program.help_template(template)
}

/// The template of the program's help, made from the definitions of its commands and flags.
fn template(program: &Command) -> String {
    let header = program.get_styles().get_header();
    let heading = |title: &str| format!("{header}{title}:{header:#}\n");
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n\n".to_owned();
    text += &heading("Examples");
    text += EXAMPLES;
    for (title, names) in GROUPS {
        let _ = write!(text, "\n{}", heading(title));
        let commands = names.iter().map(|name| program.find_subcommand(name));
        for command in commands.flatten() {
            text += &list_line(program, command);
        }
    }
    // The flags are rendered here, because a template cannot set their width.
    let flags = program
        .clone()
        .long_about(None)
        .max_term_width(MAX_COLUMNS)
        .help_template("{options}")
        .render_help();
    let _ = write!(text, "\n{}{}", heading("Options"), flags.ansi());
    text + "\n`sweetspot help COMMAND` explains a command and its flags.\n"
}

/// The line of a command in the list: its name and what it does.
fn list_line(program: &Command, command: &Command) -> String {
    let literal = program.get_styles().get_literal();
    let about = command.get_about().map(ToString::to_string);
    format!(
        "  {literal}{:<14}{literal:#}{}\n",
        command.get_name(),
        about.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The help of a new command must not be forgotten.
    #[test]
    fn every_visible_command_is_in_one_group() {
        let program = Cli::command();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        grouped.sort_unstable();
        let visible = program
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        visible.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn the_help_of_the_program_fits_80_columns() {
        let help = program(|program| program).render_long_help().to_string();
        for line in help.lines() {
            assert!(line.chars().count() <= MAX_COLUMNS, "{line}");
        }
    }
}
