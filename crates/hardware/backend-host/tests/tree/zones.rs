//! Which zones there are, and which of them add up to the energy of the host.

use std::sync::Arc;

use sweetspot_backend_host::{HostPart, HostTree, SensorAccess};
use sweetspot_device::{
    Amount, Device, DeviceId, DeviceKind, Host, HostDevice, OpenError, ReadError, SensorKind,
    VirtualClock,
};
use sweetspot_quantity::{Joules, Seconds};

use crate::made_tree::{MadeTree, RANGE};

const ENERGY: SensorKind = SensorKind::EnergyCounter;

/// The identities, without the mark of a made tree.
fn ids(parts: &[HostPart]) -> Vec<&str> {
    let ids = parts.iter().map(|part| part.descriptor().id.as_str());
    ids.map(|id| id.split('@').next().unwrap()).collect()
}

fn energy(part: &mut HostPart) -> Result<Joules, ReadError> {
    match part.read(ENERGY)?.amount {
        Amount::Energy(energy) => Ok(energy),
        other => panic!("{other:?}"),
    }
}

fn sum(parts: &mut [HostPart]) -> f64 {
    parts
        .iter_mut()
        .map(|part| energy(part).unwrap().get())
        .sum()
}

#[test]
fn the_host_is_its_packages_and_their_memory() {
    let tree = MadeTree::server();
    tree.zone("intel-rapl:2", "psys", 9_000_000);
    let host = HostTree::open(tree.root());
    let parts = host.parts().unwrap();
    assert_eq!(
        ids(&parts),
        [
            "powercap:package-0",
            "powercap:package-0:core",
            "powercap:package-0:dram",
            "powercap:package-1",
            "powercap:package-1:core",
            "powercap:package-1:dram",
            "powercap:psys",
        ]
    );
    let kinds: Vec<DeviceKind> = parts.iter().map(|part| part.descriptor().kind).collect();
    assert_eq!(
        kinds[..3],
        [
            DeviceKind::CpuPackage,
            DeviceKind::CpuPart,
            DeviceKind::Dram
        ]
    );
    assert_eq!(kinds[6], DeviceKind::Platform);
    let core = parts[1].descriptor();
    assert_eq!(core.parent.as_ref(), Some(&parts[0].descriptor().id));
    assert_eq!(parts[2].descriptor().parent, None);
    let mut counted = host.host_energy_parts().unwrap();
    assert_eq!(counted.len(), 4);
    let before = sum(&mut counted);
    tree.energy("intel-rapl:0", 4_000_000);
    tree.energy("intel-rapl:0:0", 3_000_000);
    tree.energy("intel-rapl:1:1", 1_300_000);
    tree.energy("intel-rapl:2", 19_000_000);
    // 3 J of a package and 1 J of memory; the cores are within the package, and psys covers both.
    assert!((sum(&mut counted) - before - 4.0).abs() < 1e-9);
}

#[test]
fn a_package_shown_twice_is_counted_once() {
    let tree = MadeTree::server();
    tree.zone("intel-rapl-mmio:0", "package-0", 77);
    tree.zone("intel-rapl-mmio:0:0", "dram", 78);
    let host = HostTree::open(tree.root());
    assert_eq!(host.host_energy_parts().unwrap().len(), 4);
    let packages = host.packages().unwrap();
    assert_eq!(ids(&packages), ["powercap:package-0", "powercap:package-1"]);
    assert_eq!(packages[0].zone(), "intel-rapl:0");
    // Where only one control type shows it, that one counts.
    let alone = MadeTree::empty();
    alone.zone("intel-rapl-mmio:0", "package-0", 77);
    let packages = HostTree::open(alone.root()).packages().unwrap();
    assert_eq!(packages[0].zone(), "intel-rapl-mmio:0");
}

#[test]
fn dies_and_unknown_zones_are_told_apart() {
    let tree = MadeTree::empty();
    tree.zone("intel-rapl:0", "package-0-die-0", 1);
    tree.zone("intel-rapl:1", "package-0-die-1", 1);
    tree.zone("intel-rapl:2", "something", 1);
    tree.write("powercap/intel-rapl/enabled", 1);
    tree.write("powercap/dtpm:0/name", "package");
    let host = HostTree::open(tree.root());
    let counted = host.host_energy_parts().unwrap();
    assert_eq!(
        ids(&counted),
        ["powercap:package-0-die-0", "powercap:package-0-die-1"]
    );
    assert_eq!(counted[1].descriptor().name, "processor package 0 die 1");
    assert_eq!(host.parts().unwrap().len(), 3);
}

#[test]
fn counters_wrap_around_at_the_stated_range() {
    let tree = MadeTree::server();
    let clock = Arc::new(VirtualClock::default());
    let host = HostTree::with_clock(tree.root(), clock.clone());
    let mut package = host.packages().unwrap().remove(0);
    tree.energy("intel-rapl:0", RANGE - 1_000_000);
    let begin = energy(&mut package).unwrap();
    for turn in 1..=3 {
        clock.advance(Seconds::new(600.0));
        tree.energy("intel-rapl:0", 100_000_000_000);
        energy(&mut package).unwrap();
        clock.advance(Seconds::new(600.0));
        tree.energy("intel-rapl:0", RANGE - 1_000_000);
        let spent = energy(&mut package).unwrap() - begin;
        assert!((spent.get() - f64::from(turn) * RANGE as f64 / 1e6).abs() < 1e-3);
    }
    // 262 kJ / (2 x 205 W) = 639 s: afterwards it is unknown how often the counter wrapped around.
    clock.advance(Seconds::new(640.0));
    let late = energy(&mut package).unwrap_err();
    assert!(late.to_string().contains("more than once"), "{late}");
    assert!(energy(&mut package).unwrap() < begin + Joules::new(RANGE as f64 / 1e6));
}

#[test]
fn garbage_and_vanished_zones_are_errors() {
    let tree = MadeTree::server();
    let mut packages = HostTree::open(tree.root()).packages().unwrap();
    for garbage in [
        "",
        "abc",
        "-1",
        "1e6",
        "99999999999999999999999",
        "1 2",
        "\u{0}",
    ] {
        tree.write("powercap/intel-rapl:0/energy_uj", garbage);
        let found = energy(&mut packages[0]).unwrap_err();
        assert!(
            matches!(found, ReadError::Failed { .. }),
            "{garbage}: {found}"
        );
        let listed = HostTree::open(tree.root()).packages().unwrap();
        let access = listed[0].access(ENERGY).unwrap();
        assert!(matches!(access, SensorAccess::Failed(_)), "{access:?}");
    }
    tree.energy("intel-rapl:0", RANGE + 1);
    let above = energy(&mut packages[0]).unwrap_err().to_string();
    assert!(above.contains("above the largest"), "{above}");
    std::fs::remove_dir_all(tree.path("powercap/intel-rapl:0")).unwrap();
    assert_eq!(energy(&mut packages[0]), Err(ReadError::Lost));
    assert!(packages[0].is_lost() && packages[0].reopen().is_err());
    let gone = HostTree::open(tree.root()).open(&DeviceId::new("powercap:package-0"));
    assert!(matches!(gone.map(drop), Err(OpenError::NotFound { .. })));
}

#[test]
fn devices_of_made_trees_are_not_those_of_this_machine() {
    let (one, other) = (MadeTree::server(), MadeTree::server());
    let id = |tree: &MadeTree| {
        let packages = HostTree::open(tree.root()).packages().unwrap();
        packages[0].descriptor().id.clone()
    };
    assert!(id(&one) == id(&one) && id(&one) != id(&other));
    assert!(id(&one) != DeviceId::new("powercap:package-0"));
    let found = HostTree::open(one.root()).open(&id(&one));
    assert_eq!(found.map(|part| part.descriptor().id.clone()), Ok(id(&one)));
    assert!(HostTree::open(other.root()).open(&id(&one)).is_err());
}

#[test]
fn a_machine_without_powercap_has_no_parts() {
    let tree = MadeTree::empty();
    assert!(HostTree::open(tree.root()).parts().unwrap().is_empty());
    let missing = tree.root().join("nothing");
    assert!(HostTree::open(&missing).parts().unwrap().is_empty());
    let file = tree.root().join("class");
    std::fs::write(&file, "").unwrap();
    let error = HostTree::open(tree.root())
        .parts()
        .map(|parts| parts.len())
        .unwrap_err();
    assert!(
        error.to_string().contains("cannot list the zones"),
        "{error}"
    );
}
