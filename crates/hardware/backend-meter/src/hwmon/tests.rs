//! Channels of hwmon from a made tree.

use std::path::Path;

use sweetspot_device::VirtualClock;
use sweetspot_quantity::{Joules, Ratio, Watts};

use super::*;

/// Makes the files of a chip with an address on a bus.
fn chip(root: &Path, number: u32, name: &str, address: &str, files: &[(&str, &str)]) {
    let device = root.join("devices").join(address);
    let folder = device.join(format!("hwmon/hwmon{number}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&device, folder.join("device")).unwrap();
    for (file, text) in [("name", name)].iter().chain(files) {
        std::fs::write(folder.join(file), format!("{text}\n")).unwrap();
    }
    let class = root.join("class/hwmon");
    std::fs::create_dir_all(&class).unwrap();
    std::os::unix::fs::symlink(&folder, class.join(format!("hwmon{number}"))).unwrap();
}

fn board() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let path = root.path();
    let meter = [
        ("power1_average", "412000000"),
        ("power1_average_interval", "1000"),
    ];
    chip(path, 0, "power_meter", "ACPI000D:00", &meter);
    let rail = [
        ("power1_input", "25000000"),
        ("power1_label", "GPU 0"),
        ("energy1_input", "7000000"),
    ];
    chip(path, 1, "ina228", "0-0040", &rail);
    chip(path, 2, "ina228", "0-0041", &rail[..1]);
    root
}

fn open(root: &Path, wanted: &str) -> Result<(HwmonMeter, String), String> {
    HwmonMeter::open_in(&HostTree::open(root), wanted, &MeterSettings::default())
        .map_err(|problem| problem.text().to_owned())
}

fn values(root: &Path, wanted: &str) -> (Option<Watts>, Option<Joules>) {
    let (mut meter, _) = open(root, wanted).unwrap();
    let reading = meter.read(&VirtualClock::default()).unwrap();
    (reading.power, reading.energy)
}

#[test]
fn channels_are_named_by_chip_address_number_and_label() {
    let root = board();
    let rail = (Some(Watts::new(25.0)), None);
    for wanted in [
        "ina228:0-0040/power1",
        "ina228:0-0040/GPU 0",
        "ina228:0-0041",
        // Its energy channel may be on another rail.
        "ina228:0-0040",
    ] {
        assert_eq!(values(root.path(), wanted), rail, "{wanted}");
    }
    let counter = values(root.path(), "ina228/energy1");
    assert!(counter.0.is_none() && counter.1.is_some(), "{counter:?}");
    assert_eq!(
        values(root.path(), "power_meter").0,
        Some(Watts::new(412.0))
    );
}

#[test]
fn an_unclear_channel_is_refused_with_those_that_there_are() {
    let root = board();
    let several = open(root.path(), "ina228/power1").err().unwrap();
    assert_eq!(
        several,
        "hwmon has several such channels: write one of hwmon:ina228:0-0040/power1, hwmon:ina228:0-0041/power1"
    );
    let none = open(root.path(), "ina219").err().unwrap();
    assert!(none.ends_with("hwmon:ina228:0-0041/power1"), "{none}");
    let empty = tempfile::tempdir().unwrap();
    let none = open(empty.path(), "ina219").err().unwrap();
    assert!(none.contains("its driver may not be loaded"), "{none}");
}

#[test]
fn the_stated_averaging_time_is_used() {
    let root = board();
    let known = MeterProperties {
        period: Seconds::new(0.1),
        window: None,
        max_window: Seconds::ZERO,
        max_delay: Seconds::new(0.3),
        resolution: Watts::new(0.001),
        energy_resolution: None,
        accuracy: Ratio::new(0.01),
        accuracy_offset: Watts::ZERO,
    };
    let (meter, name) = open(root.path(), "power_meter").unwrap();
    assert_eq!(name, "power_meter power1");
    let found = meter.properties(known, false);
    assert_eq!(found.window, Some(Seconds::new(1.0)));
    assert_eq!(found.period, Seconds::new(1.0));
    let (probe, name) = open(root.path(), "ina228:0-0040").unwrap();
    assert_eq!(name, "ina228 GPU 0");
    assert_eq!(probe.properties(known, false), known);
}
