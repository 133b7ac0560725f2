//! Running the program as a user does.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

pub fn sweetspot(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .args(args)
        .current_dir(folder)
        // A backtrace must not show even where the user's shell asks for them.
        .env("RUST_BACKTRACE", "1")
        .output()
        .expect("the program starts")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text is UTF-8")
}

/// A command line's words.
pub fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Puts a program that a test stops with SIGSTOP into a process group of its own. A group without a shell above
/// it, as tests have it in a service, is hung up by the kernel while one of its processes is stopped.
pub fn own_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}
