//! `sweetspot sweep` in virtual time: criteria, exports, bad input, exit codes.

mod bad_input;
mod criteria;
mod exports;
mod multi_gpu;
mod recommendations;

use std::path::Path;

use crate::common::{sweetspot, text};
use serde_json::Value;

const SWEEP: [&str; 5] = ["sweep", "--simulate", "v100", "--network", "resnet50"];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Runs the sweep with more flags, expects to be rejected with one line, and returns it.
fn expect_rejection(more: &[&str], code: i32) -> String {
    let folder = folder();
    let args: Vec<&str> = SWEEP.iter().chain(more).copied().collect();
    expect_rejection_in(folder.path(), &args, code)
}

fn expect_rejection_in(folder: &Path, args: &[&str], code: i32) -> String {
    let output = sweetspot(folder, args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(message.lines().count(), 1, "{message}");
    for word in ["panicked", "backtrace", "RUST_BACKTRACE", "   0:"] {
        assert!(!message.contains(word), "{message}");
    }
    assert_eq!(
        std::fs::read_dir(folder).unwrap().count(),
        0,
        "nothing is left behind"
    );
    message
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
