//! Running the program as a user does.

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

#[allow(dead_code)]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text is UTF-8")
}

/// A command line's words.
#[allow(dead_code)]
pub fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}
