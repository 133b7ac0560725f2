//! The zones of powercap: which there are, what each of them covers, and the limit of its power.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sweetspot_device::{
    Clock, Descriptor, DeviceId, DeviceKind, Domain, KnobDescriptor, KnobRange, Scope,
    SensorDescriptor, SensorKind,
};
use sweetspot_quantity::{Seconds, Watts};

use crate::counter::EnergyCounter;
use crate::part::{CapFiles, HostPart, SensorAccess, SensorFile};
use crate::sysfs::{entries, read_number, read_text};

/// How the identities of zones begin.
pub(crate) const PREFIX: &str = "powercap:";

/// The control type that shows packages a second time, by registers in memory instead of those of the processor.
const TWIN_TYPE: &str = "intel-rapl-mmio";

/// The time between two updates of RAPL's counters (Intel's Software Developer's Manual, volume 3, section 15.10.1).
const UPDATE_PERIOD: Seconds = Seconds::new(0.001);

/// The smallest cap, as a share of the largest, where the kernel states none: a package below it hardly works.
const SMALLEST_CAP_SHARE: f64 = 0.1;

/// A zone of powercap.
#[derive(Clone, Debug)]
struct Zone {
    /// The name of the folder, such as `intel-rapl:0:1`.
    folder: String,
    path: PathBuf,
    /// The content of the file `name`, such as `package-0` or `dram`.
    name: String,
}

impl Zone {
    /// The control type of the zone, such as `intel-rapl`.
    fn control_type(&self) -> &str {
        self.folder.split(':').next().unwrap_or_default()
    }

    /// The folder of the zone that this one is part of; `None` for one at the top.
    fn parent(&self) -> Option<&str> {
        let (parent, _) = self.folder.rsplit_once(':')?;
        parent.contains(':').then_some(parent)
    }

    /// What the zone covers. A zone with an unknown name may overlap with others.
    fn kind(&self) -> DeviceKind {
        match (self.parent(), self.name.as_str()) {
            (_, "dram") => DeviceKind::Dram,
            (None, "psys") => DeviceKind::Platform,
            (None, name) if name.starts_with("package") => DeviceKind::CpuPackage,
            _ => DeviceKind::CpuPart,
        }
    }
}

/// Lists the zones that have an energy counter.
pub(crate) fn list(root: &Path, clock: &Arc<dyn Clock>) -> io::Result<Vec<HostPart>> {
    let mut zones = Vec::new();
    for (folder, path) in entries(&root.join("class/powercap"))? {
        // A folder without a number is that of a control type.
        if !folder.contains(':') || path.join("energy_uj").symlink_metadata().is_err() {
            continue;
        }
        match read_text(&path.join("name")) {
            Ok(name) => zones.push(Zone { folder, path, name }),
            Err(error) => tracing::info!(zone = folder, %error, "zone without a name"),
        }
    }
    let (twins, zones) = split_twins(zones);
    let mut parts: Vec<HostPart> = Vec::new();
    for zone in &zones {
        let parent = zone.parent().and_then(|parent| {
            let mut zones = zones.iter();
            zones.find(|zone| zone.folder == parent)
        });
        let twin = twins
            .iter()
            .find(|twin| twin.name == zone.name && zone.parent().is_none());
        let mut part = part(zone, parent, twin, clock);
        // Two zones of one name are two devices.
        let is_taken = |part: &HostPart, parts: &[HostPart]| {
            let mut others = parts.iter();
            others.any(|other| other.descriptor.id == part.descriptor.id)
        };
        if is_taken(&part, &parts) {
            let id = format!("{}@{}", part.descriptor.id, zone.folder);
            part.descriptor.id = DeviceId::new(id);
        }
        part.index = parts.len() as u32;
        parts.push(part);
    }
    Ok(parts)
}

/// Separates zones that only repeat one of another control type.
fn split_twins(zones: Vec<Zone>) -> (Vec<Zone>, Vec<Zone>) {
    let names: Vec<String> = zones
        .iter()
        .filter(|zone| zone.control_type() != TWIN_TYPE && zone.parent().is_none())
        .map(|zone| zone.name.clone())
        .collect();
    let repeated: Vec<String> = zones
        .iter()
        .filter(|zone| zone.control_type() == TWIN_TYPE && zone.parent().is_none())
        .filter(|zone| names.contains(&zone.name))
        .map(|zone| zone.folder.clone())
        .collect();
    zones.into_iter().partition(|zone| {
        let top = zone.folder.split(':').take(2).collect::<Vec<_>>().join(":");
        repeated.contains(&top)
    })
}

/// Makes the device of a zone.
fn part(
    zone: &Zone,
    parent: Option<&Zone>,
    twin: Option<&Zone>,
    clock: &Arc<dyn Clock>,
) -> HostPart {
    let energy = zone.path.join("energy_uj");
    let access = SensorAccess::of(&energy);
    let file = SensorFile {
        descriptor: SensorDescriptor {
            kind: SensorKind::EnergyCounter,
            scope: match zone.kind() {
                DeviceKind::Platform => Scope::Module,
                _ => Scope::Device,
            },
            source: format!("{}/energy_uj", zone.folder),
            update_period: Some(UPDATE_PERIOD),
            window: None,
        },
        path: energy,
        access,
    };
    let cap = cap_files(zone, twin);
    let knob = cap.as_ref().and_then(cap_range);
    let max_power = knob.as_ref().map(|knob| knob.default);
    let kind = zone.kind();
    let range = read_number(&zone.path.join("max_energy_range_uj")).ok();
    HostPart {
        descriptor: Descriptor {
            id: identity(zone, parent),
            name: describe(zone, parent),
            kind,
            backend: "powercap".to_owned(),
            parent: parent
                .filter(|_| kind != DeviceKind::Dram)
                .map(|parent| identity(parent, None)),
            memory: None,
            sensors: match file.access {
                SensorAccess::Readable => vec![file.descriptor.clone()],
                _ => Vec::new(),
            },
            knobs: knob
                .filter(|_| kind == DeviceKind::CpuPackage)
                .map(KnobDescriptor::PowerCap)
                .into_iter()
                .collect(),
        },
        files: vec![file],
        cap: cap.filter(|_| kind == DeviceKind::CpuPackage),
        counter: EnergyCounter::new(range, max_power),
        clock: Arc::clone(clock),
        driver: zone.control_type().to_owned(),
        index: 0,
        zone: zone.folder.clone(),
    }
}

/// The identity of a zone: its name and that of the zone that it is part of, which stay the same after a reboot.
fn identity(zone: &Zone, parent: Option<&Zone>) -> DeviceId {
    DeviceId::new(match parent {
        Some(parent) => format!("{PREFIX}{}:{}", parent.name, zone.name),
        None => format!("{PREFIX}{}", zone.name),
    })
}

/// The name of a zone for people.
fn describe(zone: &Zone, parent: Option<&Zone>) -> String {
    let spoken = |name: &str| format!("processor {}", name.replace('-', " "));
    match (zone.kind(), parent) {
        (DeviceKind::CpuPackage, _) => spoken(&zone.name),
        (DeviceKind::Dram, Some(parent)) => format!("memory of {}", spoken(&parent.name)),
        (DeviceKind::Dram, None) => "memory".to_owned(),
        (DeviceKind::Platform, _) => "platform (psys)".to_owned(),
        (_, Some(parent)) => format!("{} of {}", zone.name, spoken(&parent.name)),
        (_, None) => zone.name.clone(),
    }
}

/// Finds the files of a zone's long-term limit; `None` if it has no limit.
fn cap_files(zone: &Zone, twin: Option<&Zone>) -> Option<CapFiles> {
    let named = |number: &u32| {
        let name = read_text(&zone.path.join(format!("constraint_{number}_name")));
        name.is_ok_and(|name| name == "long_term")
    };
    let number = (0..4).find(named)?;
    let enabled = zone.path.join("enabled");
    Some(CapFiles {
        limit: zone
            .path
            .join(format!("constraint_{number}_power_limit_uw")),
        enabled: enabled.exists().then_some(enabled),
        twin: twin.and_then(|twin| cap_files(twin, None)).map(Box::new),
    })
}

/// The values that a limit supports; `None` if the kernel states no largest one.
fn cap_range(cap: &CapFiles) -> Option<KnobRange<Watts>> {
    let stated = |what: &str| {
        let name = cap.limit.file_name()?.to_str()?;
        let path = cap
            .limit
            .with_file_name(name.replace("power_limit_uw", what));
        let number = read_number(&path).ok().filter(|number| *number > 0)?;
        Some(Watts::new(number as f64 / 1e6))
    };
    let max = stated("max_power_uw")?;
    let min = stated("min_power_uw").unwrap_or(Watts::new(max.get() * SMALLEST_CAP_SHARE));
    (min <= max).then_some(KnobRange {
        domain: Domain::Range { min, max },
        default: max,
        readable: true,
    })
}
