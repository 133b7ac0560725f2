//! Runs the program as a user does.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

/// The folder of configuration files in all tests. It does not exist, so that a developer's own file is never read.
pub const NO_CONFIG: &str = "/nonexistent";

/// The program as a user without a configuration file runs it.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.env("XDG_CONFIG_HOME", NO_CONFIG);
    command
}

/// The program with a limit on its resources, in the words of `prlimit`.
pub fn limited(limit: &str) -> Command {
    let mut command = Command::new("prlimit");
    command.args([limit, "--", env!("CARGO_BIN_EXE_sweetspot")]);
    command.env("XDG_CONFIG_HOME", NO_CONFIG);
    command
}

pub fn sweetspot(folder: &Path, args: &[&str]) -> Output {
    program()
        .args(args)
        .current_dir(folder)
        // Even then no backtrace may be printed.
        .env("RUST_BACKTRACE", "1")
        .output()
        .expect("the program starts")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text is UTF-8")
}

/// Splits a command line into words.
pub fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Puts a program that a test stops with SIGSTOP into its own process group. The kernel sends SIGHUP to an orphaned
/// process group, such as that of tests in a service, while one of its processes is stopped.
pub fn own_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}
