//! The help texts match their snapshots. `SNAPSHOTS=overwrite` updates them.

use crate::common::{sweetspot, text};
use snapbox::{assert_data_eq, file};

fn help(args: &[&str]) -> String {
    let output = sweetspot(&std::env::temp_dir(), args);
    assert!(output.status.success());
    text(&output.stdout)
}

#[test]
fn program_help_matches_snapshot() {
    assert_data_eq!(help(&["--help"]), file!["snapshots/help.txt"].raw());
}

#[test]
fn sweep_help_matches_snapshot() {
    assert_data_eq!(
        help(&["sweep", "--help"]),
        file!["snapshots/help-sweep.txt"].raw()
    );
}

#[test]
fn simulate_help_matches_snapshot() {
    assert_data_eq!(
        help(&["simulate", "--help"]),
        file!["snapshots/help-simulate.txt"].raw()
    );
}

#[test]
fn network_help_matches_snapshot() {
    assert_data_eq!(
        help(&["network", "--help"]),
        file!["snapshots/help-network.txt"].raw()
    );
}

#[test]
fn hold_help_matches_snapshot() {
    assert_data_eq!(
        help(&["hold", "--help"]),
        file!["snapshots/help-hold.txt"].raw()
    );
}

#[test]
fn tune_help_matches_snapshot() {
    assert_data_eq!(
        help(&["tune", "--help"]),
        file!["snapshots/help-tune.txt"].raw()
    );
}

#[test]
fn fit_help_matches_snapshot() {
    assert_data_eq!(
        help(&["fit", "--help"]),
        file!["snapshots/help-fit.txt"].raw()
    );
}

#[test]
fn budget_help_matches_snapshot() {
    assert_data_eq!(
        help(&["budget", "--help"]),
        file!["snapshots/help-budget.txt"].raw()
    );
}
