//! `doctor`: checks what works on this computer, and says how to fix what does not.

use std::time::Duration;

use sweetspot_device::{Device, DeviceKind, Knob, SensorKind, UnitUse, UnitUseReading};
use sweetspot_hosts::{CAP_FIX, ENERGY_FIX, HostPart, LIBRARY, SensorAccess, open_host_tree};

use crate::host::{
    Gpu, HIDDEN_JOURNAL, SettingsAccess, open_host, root_journal_is_hidden, unrestored_devices,
};

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// The checked part works.
    Pass,
    /// The checked part works with a restriction.
    Warn,
    /// The checked part does not work.
    Fail,
    /// The check does not apply to this computer.
    Skip,
}

impl std::fmt::Display for CheckResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Skip => "skip",
        })
    }
}

/// One check of this computer, with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is checked, such as `energy counter`.
    pub name: String,
    /// Whether the checked part works.
    pub result: CheckResult,
    /// What was found, and how to fix it if it does not work.
    pub finding: String,
}

/// Creates the report of a check.
fn check(name: impl Into<String>, result: CheckResult, finding: impl Into<String>) -> Check {
    Check {
        name: name.into(),
        result,
        finding: finding.into(),
    }
}

/// Checks this computer without changing anything.
pub fn doctor() -> Vec<Check> {
    let mut checks = Vec::new();
    match open_host() {
        Err(error) => checks.push(check(LIBRARY, CheckResult::Fail, error.to_string())),
        Ok(host) => {
            let version = host
                .driver_version()
                .unwrap_or_else(|error| error.to_string());
            checks.push(check(
                LIBRARY,
                CheckResult::Pass,
                format!("driver {version}"),
            ));
            match host.list() {
                Err(error) => checks.push(check("GPUs", CheckResult::Fail, error.to_string())),
                Ok(gpus) if gpus.is_empty() => {
                    checks.push(check("GPUs", CheckResult::Fail, "the driver found no GPU"));
                }
                Ok(mut gpus) => {
                    checks.push(check(
                        "GPUs",
                        CheckResult::Pass,
                        format!("{} found", gpus.len()),
                    ));
                    checks.extend(gpus.iter_mut().flat_map(check_gpu));
                }
            }
        }
    }
    checks.push(check_permission());
    checks.extend(check_host());
    checks.push(check_unrestored());
    checks
}

/// Checks one GPU: whether it responds, its persistence, sensors and knobs.
fn check_gpu(gpu: &mut Gpu) -> Vec<Check> {
    if gpu.is_lost() {
        let name = format!("GPU {} is lost", gpu.index());
        let finding =
            "the GPU no longer responds; a reboot or `nvidia-smi --gpu-reset` may bring it back";
        return vec![check(name, CheckResult::Fail, finding)];
    }
    let mut checks = vec![check_persistence(gpu)];
    checks.extend(check_sensors(gpu));
    checks.push(check_limits(gpu));
    checks.extend(check_knobs(gpu));
    checks
}

/// Checks whether the GPU's persistence mode is on.
fn check_persistence(gpu: &Gpu) -> Check {
    let name = format!("GPU {} persistence", gpu.index());
    match gpu.persistence() {
        Some(true) => check(name, CheckResult::Pass, "on"),
        Some(false) => check(
            name,
            CheckResult::Warn,
            "off: settings are lost when the last program closes the GPU; `nvidia-smi -pm 1` turns it on",
        ),
        None => check(name, CheckResult::Skip, "not reported by this driver"),
    }
}

/// Checks the energy counter, the driver's sample buffer and the power sensor of a GPU.
fn check_sensors(gpu: &Gpu) -> [Check; 3] {
    let name = |what: &str| format!("GPU {} {what}", gpu.index());
    let has = |kind| gpu.descriptor().sensor(kind).is_some();
    let counter = if has(SensorKind::EnergyCounter) {
        check(
            name("energy counter"),
            CheckResult::Pass,
            "supported; a read can block for milliseconds, so it is read only at the start and end of a measurement",
        )
    } else {
        check(
            name("energy counter"),
            CheckResult::Warn,
            "not supported before Volta: energy is computed from power readings",
        )
    };
    let buffer = if has(SensorKind::BufferedPower) {
        check(
            name("sample buffer"),
            CheckResult::Pass,
            "supported: the best source of power over time",
        )
    } else {
        check(
            name("sample buffer"),
            CheckResult::Warn,
            "not supported: the power sensor is read repeatedly instead",
        )
    };
    let power = match (gpu.power_is_averaged(), has(SensorKind::InstantPower)) {
        (true, true) => check(
            name("power reading"),
            CheckResult::Warn,
            "a mean over 1 s: wait 1.2 s after a change; instantaneous power is supported too",
        ),
        (true, false) => check(
            name("power reading"),
            CheckResult::Warn,
            "a mean over 1 s: wait 1.2 s after a change",
        ),
        (false, true) => check(name("power reading"), CheckResult::Pass, "instantaneous"),
        (false, false) => check(
            name("power reading"),
            CheckResult::Fail,
            "none: energy cannot be measured here",
        ),
    };
    [power, counter, buffer]
}

/// The time between two readings of the use of a GPU's units.
const UNIT_USE_TIME: Duration = Duration::from_millis(150);

/// Reads the use of a GPU's units for a moment.
fn unit_use(gpu: &mut Gpu) -> UnitUseReading {
    match gpu.unit_use() {
        UnitUseReading::Started => {
            std::thread::sleep(UNIT_USE_TIME);
            gpu.unit_use()
        }
        other => other,
    }
}

/// Checks whether it can be told what limits a load on a GPU.
fn check_limits(gpu: &mut Gpu) -> Check {
    let name = format!("GPU {} what limits a load", gpu.index());
    let has_times = gpu.throttle_times().power_cap.is_some();
    let (result, finding) = match (has_times, unit_use(gpu)) {
        (true, UnitUseReading::Mean(mean)) if mean == UnitUse::default() => (
            CheckResult::Warn,
            "throttle times are supported; the use of cores and memory (GPM) has no values".to_owned(),
        ),
        (true, UnitUseReading::Started | UnitUseReading::Mean(_)) => (
            CheckResult::Pass,
            "throttle times and the use of cores and memory (GPM) are supported".to_owned(),
        ),
        (true, UnitUseReading::Failed(problem)) => (
            CheckResult::Warn,
            format!(
                "throttle times are supported; the use of cores and memory (GPM) cannot be read: {problem}; another program, such as a profiler, may use it"
            ),
        ),
        (true, UnitUseReading::Unsupported) => (
            CheckResult::Pass,
            "throttle times are supported: they tell whether a power cap has an effect; the use of cores and memory (GPM) needs Hopper or newer".to_owned(),
        ),
        (false, _) => (
            CheckResult::Warn,
            "no throttle times: whether a power cap has an effect is told from the power alone".to_owned(),
        ),
    };
    check(name, result, finding)
}

/// Checks whether power cap and core clock of a GPU can be set.
fn check_knobs(gpu: &Gpu) -> [Check; 2] {
    let name = |what: &str| format!("GPU {} {what}", gpu.index());
    let descriptor = gpu.descriptor();
    let cap = match descriptor.knob(Knob::PowerCap) {
        Some(_) => check(
            name("power cap"),
            CheckResult::Pass,
            "can be set and read back",
        ),
        None => check(
            name("power cap"),
            CheckResult::Fail,
            "cannot be set on this GPU",
        ),
    };
    let clocks = match descriptor.knob(Knob::CoreClock) {
        Some(_) => check(
            name("clocks"),
            CheckResult::Warn,
            "can be locked, but the driver cannot report a lock: restoring means resetting the clocks",
        ),
        None => check(
            name("clocks"),
            CheckResult::Skip,
            "not listed by this driver",
        ),
    };
    [cap, clocks]
}

/// Checks whether the user may change device settings.
fn check_permission() -> Check {
    const CHECK_NAME: &str = "permission to set";
    if rustix::process::geteuid().is_root() {
        return check(CHECK_NAME, CheckResult::Pass, "root");
    }
    match SettingsAccess::available() {
        SettingsAccess::Service(socket) => check(
            CHECK_NAME,
            CheckResult::Pass,
            format!(
                "through the service at {}; `sweetspot policy check` shows what you may change",
                socket.display()
            ),
        ),
        _ => check(
            CHECK_NAME,
            CheckResult::Warn,
            "changing power caps and clocks needs root: use sudo, or ask your administrator for the service (`sweetspot serve`); measuring needs neither",
        ),
    }
}

/// Checks whether the energy of the host can be read, and whether the power caps of its packages can be set.
fn check_host() -> Vec<Check> {
    const ENERGY: &str = "processor energy (RAPL)";
    let tree = open_host_tree();
    let parts = match tree.host_energy_parts() {
        Ok(parts) => parts,
        Err(error) => return vec![check(ENERGY, CheckResult::Warn, error.to_string())],
    };
    if parts.is_empty() {
        let finding = format!(
            "the kernel shows none below `{}/class/powercap`: virtual machines and containers often have none, else try `modprobe intel_rapl_msr`",
            tree.root().display()
        );
        return vec![check(ENERGY, CheckResult::Skip, finding)];
    }
    let names = |parts: &[&HostPart]| {
        let names = parts.iter().map(|part| part.descriptor().name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let unreadable =
        |part: &&HostPart| part.access(SensorKind::EnergyCounter) != Some(&SensorAccess::Readable);
    let (bad, good): (Vec<&HostPart>, Vec<&HostPart>) = parts.iter().partition(unreadable);
    let energy = match bad
        .first()
        .map(|part| part.access(SensorKind::EnergyCounter))
    {
        None => check(
            ENERGY,
            CheckResult::Pass,
            format!("readable: {}", names(&good)),
        ),
        Some(Some(SensorAccess::Denied)) => {
            let finding = format!("this user may not read {}: {ENERGY_FIX}", names(&bad));
            check(ENERGY, CheckResult::Warn, finding)
        }
        Some(Some(SensorAccess::Failed(reason))) => {
            let finding = format!("{} cannot be read: {reason}", names(&bad));
            check(ENERGY, CheckResult::Fail, finding)
        }
        Some(_) => check(ENERGY, CheckResult::Warn, "there is no energy counter"),
    };
    let packages = parts.iter();
    let packages = packages.filter(|part| part.descriptor().kind == DeviceKind::CpuPackage);
    let mut checks = vec![energy];
    checks.extend(packages.map(check_package_cap));
    checks
}

/// Checks whether the power cap of a processor package can be set.
fn check_package_cap(package: &HostPart) -> Check {
    let device = package.descriptor();
    let name = format!("{} power cap", device.name);
    match (device.knob(Knob::PowerCap), package.may_set_cap()) {
        (Some(_), Some(true)) if package.cap_is_enabled() == Some(false) => check(
            name,
            CheckResult::Pass,
            "can be set and read back; it is switched off now, and is switched on while it is set",
        ),
        (Some(_), Some(true)) => check(name, CheckResult::Pass, "can be set and read back"),
        (Some(_), _) => check(
            name,
            CheckResult::Warn,
            format!("this user may not set it: {CAP_FIX}"),
        ),
        (None, _) => check(
            name,
            CheckResult::Skip,
            "the kernel states no power cap for this processor (those of AMD have none)",
        ),
    }
}

/// Checks whether a dead guard has left device settings changed.
fn check_unrestored() -> Check {
    const CHECK_NAME: &str = "settings left changed";
    let (mut names, mut problems) = (Vec::new(), Vec::new());
    for device in unrestored_devices() {
        match device {
            Ok(device) => names.push(device.name),
            Err(problem) => problems.push(problem.to_string()),
        }
    }
    if root_journal_is_hidden() {
        problems.push(HIDDEN_JOURNAL.to_owned());
    }
    let result = match (names.is_empty(), problems.is_empty()) {
        (_, false) => CheckResult::Fail,
        (false, true) => CheckResult::Warn,
        (true, true) => return check(CHECK_NAME, CheckResult::Pass, "none"),
    };
    if !names.is_empty() {
        let names = names.join(", ");
        problems.insert(0, format!("{names}: `sweetspot restore` restores them"));
    }
    check(CHECK_NAME, result, problems.join("; "))
}
