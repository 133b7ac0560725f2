//! The power cap of a package.

use sweetspot_backend_host::{HostPart, HostTree};
use sweetspot_device::{Actuator, Device, Knob, Settings, Shortfall, WriteError};
use sweetspot_quantity::Watts;

use crate::made_tree::MadeTree;

const LIMIT: &str = "powercap/intel-rapl:0/constraint_0_power_limit_uw";
const ENABLED: &str = "powercap/intel-rapl:0/enabled";

fn package(tree: &MadeTree) -> HostPart {
    HostTree::open(tree.root()).packages().unwrap().remove(0)
}

fn cap(watts: f64) -> Settings {
    Settings {
        power_cap: Some(Watts::new(watts)),
        ..Settings::default()
    }
}

#[test]
fn only_the_long_term_limit_is_written() {
    let tree = MadeTree::server();
    let mut package = package(&tree);
    let applied = package.apply(&cap(150.0)).unwrap().power_cap.unwrap();
    assert_eq!(
        (applied.requested, applied.shortfall),
        (Watts::new(150.0), None)
    );
    assert_eq!(tree.read(LIMIT), "150000000");
    let others = [
        ("constraint_0_time_window_us", "999424"),
        ("constraint_1_power_limit_uw", "246000000"),
        ("enabled", "1"),
    ];
    for (file, text) in others {
        assert_eq!(tree.read(&format!("powercap/intel-rapl:0/{file}")), text);
    }
    assert_eq!(
        tree.read("powercap/intel-rapl:1/constraint_0_power_limit_uw"),
        "205000000"
    );
    package.reset(Knob::PowerCap).unwrap();
    assert_eq!(tree.read(LIMIT), "205000000");
}

#[test]
fn a_cap_out_of_range_writes_nothing() {
    let tree = MadeTree::server();
    let mut package = package(&tree);
    for watts in [0.0, 20.4, 205.1, 1e9, f64::INFINITY, f64::NAN, -5.0] {
        let refused = package.apply(&cap(watts)).unwrap_err();
        assert!(refused.left_unchanged(), "{watts}: {refused}");
    }
    let refused = package.apply(&cap(300.0)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "power cap 300 W is not supported: choose 20.5 W to 205 W"
    );
    let mut clock = cap(150.0);
    clock.core_clock = Some(sweetspot_quantity::Megahertz::new(1000.0));
    assert_eq!(
        package.apply(&clock),
        Err(WriteError::Unsupported(Knob::CoreClock))
    );
    assert_eq!(tree.read(LIMIT), "205000000");
}

#[test]
fn a_limit_above_the_range_is_restored() {
    let tree = MadeTree::empty();
    tree.zone("intel-rapl:0", "package-0", 1);
    tree.cap("intel-rapl:0", 4095, 125);
    let mut first = package(&tree);
    let before = first.settings().unwrap();
    first.apply(&cap(60.0)).unwrap();
    // Another process opens the package while the cap is low.
    package(&tree).restore(&before).unwrap();
    assert_eq!(tree.read(LIMIT), "4095000000");
}

#[test]
fn a_limit_that_is_switched_off_is_switched_on() {
    let tree = MadeTree::server();
    tree.write(ENABLED, 0);
    let mut package = package(&tree);
    assert_eq!(package.cap_is_enabled(), Some(false));
    package.apply(&cap(100.0)).unwrap();
    assert_eq!(tree.read(ENABLED), "1");
    package.enable_cap(false).unwrap();
    assert_eq!(tree.read(ENABLED), "0");
}

#[test]
fn the_lower_of_two_registers_is_in_force() {
    let tree = MadeTree::server();
    tree.zone("intel-rapl-mmio:0", "package-0", 77);
    tree.cap("intel-rapl-mmio:0", 120, 205);
    let mut package = package(&tree);
    let applied = package.apply(&cap(150.0)).unwrap().power_cap.unwrap();
    assert_eq!(applied.enforced, Watts::new(120.0));
    assert_eq!(applied.shortfall, Some(Shortfall::BoardLimit));
    tree.write("powercap/intel-rapl-mmio:0/enabled", 0);
    assert_eq!(package.power_limits().unwrap().enforced, Watts::new(150.0));
}

#[test]
fn packages_without_a_stated_limit_have_no_knob() {
    let tree = MadeTree::empty();
    // Processors of AMD have counters and no limits.
    tree.zone("intel-rapl:0", "package-0", 1);
    tree.zone("intel-rapl:1", "package-1", 1);
    tree.cap("intel-rapl:1", 100, 0);
    let packages = HostTree::open(tree.root()).packages().unwrap();
    for mut package in packages {
        assert!(package.descriptor().knobs.is_empty());
        let refused = package.apply(&cap(50.0));
        assert_eq!(refused, Err(WriteError::Unsupported(Knob::PowerCap)));
    }
}
