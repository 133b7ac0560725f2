//! Channels of hwmon.

use sweetspot_backend_host::HostTree;
use sweetspot_device::{Amount, Device, DeviceKind, SensorKind};
use sweetspot_quantity::{Joules, Seconds, Watts};

use crate::made_tree::MadeTree;

#[test]
fn power_and_energy_are_different_channels() {
    let tree = MadeTree::empty();
    tree.write("hwmon/hwmon0/name", "ina219");
    tree.write("hwmon/hwmon0/power1_input", 12_500_000);
    tree.write("hwmon/hwmon0/curr1_input", 1000);
    std::os::unix::fs::symlink("../../../0-0040", tree.path("hwmon/hwmon0/device")).unwrap();
    tree.write("hwmon/hwmon1/name", "power_meter");
    tree.write("hwmon/hwmon1/power1_average", 321_000_000);
    tree.write("hwmon/hwmon1/power1_average_interval", 1000);
    tree.write("hwmon/hwmon1/power1_cap", 500_000_000);
    tree.write("hwmon/hwmon10/name", "amd_energy");
    tree.write("hwmon/hwmon10/energy1_input", 7_000_000);
    tree.write("hwmon/hwmon10/energy1_label", "Esocket0");
    tree.write("hwmon/hwmon2/name", "coretemp");
    tree.write("hwmon/hwmon2/temp1_input", 40_000);
    let mut parts = HostTree::open(tree.root()).parts().unwrap();
    let ids: Vec<&str> = parts
        .iter()
        .filter_map(|part| part.descriptor().id.as_str().split('@').next())
        .collect();
    assert_eq!(
        ids,
        [
            "hwmon:ina219:0-0040:power1",
            "hwmon:power_meter:hwmon1:power1",
            "hwmon:amd_energy:hwmon10:energy1",
        ]
    );
    assert!(
        parts
            .iter()
            .all(|part| part.descriptor().kind == DeviceKind::Probe)
    );
    assert!(
        HostTree::open(tree.root())
            .host_energy_parts()
            .unwrap()
            .is_empty()
    );
    let mut read = |part: usize, kind| parts[part].read(kind).map(|reading| reading.amount);
    assert_eq!(
        read(0, SensorKind::InstantPower),
        Ok(Amount::Power(Watts::new(12.5)))
    );
    assert!(
        read(0, SensorKind::AveragePower).is_err() && read(0, SensorKind::EnergyCounter).is_err()
    );
    assert_eq!(
        read(1, SensorKind::AveragePower),
        Ok(Amount::Power(Watts::new(321.0)))
    );
    assert_eq!(
        read(2, SensorKind::EnergyCounter),
        Ok(Amount::Energy(Joules::new(7.0)))
    );
    let meter = parts[1].descriptor();
    let window = meter.sensor(SensorKind::AveragePower).unwrap().window;
    assert_eq!(window, Some(Seconds::new(1.0)));
    assert!(meter.knobs.is_empty());
    assert_eq!(parts[2].descriptor().name, "amd_energy Esocket0");
}
