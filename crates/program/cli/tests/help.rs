//! The help texts, as they are printed. `SNAPSHOTS=overwrite` renews them.

use crate::common::{sweetspot, text};
use snapbox::{assert_data_eq, file};

fn help(args: &[&str]) -> String {
    let output = sweetspot(&std::env::temp_dir(), args);
    assert!(output.status.success());
    text(&output.stdout)
}

#[test]
fn of_the_program() {
    assert_data_eq!(help(&["--help"]), file!["snapshots/help.txt"].raw());
}

#[test]
fn of_sweep() {
    assert_data_eq!(
        help(&["sweep", "--help"]),
        file!["snapshots/help-sweep.txt"].raw()
    );
}

#[test]
fn of_simulate() {
    assert_data_eq!(
        help(&["simulate", "--help"]),
        file!["snapshots/help-simulate.txt"].raw()
    );
}

#[test]
fn of_network() {
    assert_data_eq!(
        help(&["network", "--help"]),
        file!["snapshots/help-network.txt"].raw()
    );
}

#[test]
fn of_hold() {
    assert_data_eq!(
        help(&["hold", "--help"]),
        file!["snapshots/help-hold.txt"].raw()
    );
}

#[test]
fn of_tune() {
    assert_data_eq!(
        help(&["tune", "--help"]),
        file!["snapshots/help-tune.txt"].raw()
    );
}

#[test]
fn of_fit() {
    assert_data_eq!(
        help(&["fit", "--help"]),
        file!["snapshots/help-fit.txt"].raw()
    );
}
