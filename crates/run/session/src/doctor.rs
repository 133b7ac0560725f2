//! `doctor`: what works here, what does not, and how to mend it.

use std::path::Path;

use sweetspot_device::{Knob, SensorKind};
use sweetspot_hosts::LIBRARY;

use crate::host::{Gpu, left_changed, open_host};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Good.
    Pass,
    /// It works, but look at this.
    Warn,
    /// It does not work.
    Fail,
    /// There is nothing to check here.
    Skip,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Skip => "skip",
        })
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What.
    pub name: String,
    /// How it came out.
    pub verdict: Verdict,
    /// What was found, and what to do where that is needed.
    pub finding: String,
}

fn check(name: impl Into<String>, verdict: Verdict, finding: impl Into<String>) -> Check {
    Check {
        name: name.into(),
        verdict,
        finding: finding.into(),
    }
}

/// Looks at everything; changes nothing.
pub fn doctor() -> Vec<Check> {
    let mut checks = Vec::new();
    match open_host() {
        Err(error) => checks.push(check(LIBRARY, Verdict::Fail, error.to_string())),
        Ok(host) => {
            let version = host
                .driver_version()
                .unwrap_or_else(|error| error.to_string());
            checks.push(check(LIBRARY, Verdict::Pass, format!("driver {version}")));
            match host.list() {
                Err(error) => checks.push(check("GPUs", Verdict::Fail, error.to_string())),
                Ok(gpus) if gpus.is_empty() => {
                    checks.push(check("GPUs", Verdict::Fail, "the driver finds none"));
                }
                Ok(gpus) => {
                    checks.push(check(
                        "GPUs",
                        Verdict::Pass,
                        format!("{} found", gpus.len()),
                    ));
                    checks.extend(gpus.iter().flat_map(of_gpu));
                }
            }
        }
    }
    checks.push(permission());
    checks.push(rapl(Path::new("/sys/class/powercap")));
    checks.push(left());
    checks
}

fn of_gpu(gpu: &Gpu) -> Vec<Check> {
    let descriptor = gpu.descriptor();
    let name = |what: &str| format!("GPU {} {what}", gpu.index());
    if gpu.is_lost() {
        let finding =
            "it no longer answers; a reboot or `nvidia-smi --gpu-reset` may bring it back";
        return vec![check(name("is lost"), Verdict::Fail, finding)];
    }
    let has = |kind| descriptor.sensor(kind).is_some();
    let persistence = match gpu.persistence() {
        Some(true) => check(name("persistence"), Verdict::Pass, "on"),
        Some(false) => check(
            name("persistence"),
            Verdict::Warn,
            "off: settings are lost when the last program closes the GPU; `nvidia-smi -pm 1` turns it on",
        ),
        None => check(
            name("persistence"),
            Verdict::Skip,
            "not told by this driver",
        ),
    };
    let counter = if has(SensorKind::EnergyCounter) {
        check(
            name("energy counter"),
            Verdict::Pass,
            "there; a read can block for milliseconds, so it is read at edges only",
        )
    } else {
        check(
            name("energy counter"),
            Verdict::Warn,
            "none before Volta: energy is integrated from power",
        )
    };
    let buffer = if has(SensorKind::BufferedPower) {
        check(
            name("sample buffer"),
            Verdict::Pass,
            "there: the best trace of power",
        )
    } else {
        check(
            name("sample buffer"),
            Verdict::Warn,
            "none: power is polled",
        )
    };
    let power = match (gpu.power_is_averaged(), has(SensorKind::InstantPower)) {
        (true, true) => check(
            name("power reading"),
            Verdict::Warn,
            "a mean over 1 s: wait 1.2 s after a change; the instantaneous field is there beside it",
        ),
        (true, false) => check(
            name("power reading"),
            Verdict::Warn,
            "a mean over 1 s: wait 1.2 s after a change",
        ),
        (false, true) => check(name("power reading"), Verdict::Pass, "instantaneous"),
        (false, false) => check(
            name("power reading"),
            Verdict::Fail,
            "none: energy cannot be measured here",
        ),
    };
    let cap = match descriptor.knob(Knob::PowerCap) {
        Some(_) => check(
            name("power cap"),
            Verdict::Pass,
            "can be set, and read back",
        ),
        None => check(
            name("power cap"),
            Verdict::Fail,
            "cannot be set on this GPU",
        ),
    };
    let clocks = match descriptor.knob(Knob::CoreClock) {
        Some(_) => check(
            name("clocks"),
            Verdict::Warn,
            "can be locked, but no driver tells a lock back: undoing one is a reset",
        ),
        None => check(name("clocks"), Verdict::Skip, "not listed by this driver"),
    };
    vec![persistence, power, counter, buffer, cap, clocks]
}

fn permission() -> Check {
    if rustix::process::geteuid().is_root() {
        check("permission to set", Verdict::Pass, "root")
    } else {
        check(
            "permission to set",
            Verdict::Warn,
            "setting caps and clocks needs root: run with sudo; reading does not",
        )
    }
}

fn rapl(root: &Path) -> Check {
    const NAME: &str = "processor energy (RAPL)";
    let package = root.join("intel-rapl:0/energy_uj");
    if !package.exists() {
        return check(NAME, Verdict::Skip, "this machine has no powercap tree");
    }
    match std::fs::read_to_string(&package) {
        Ok(_) => check(NAME, Verdict::Pass, "readable"),
        Err(error) => check(
            NAME,
            Verdict::Warn,
            format!(
                "{}: {error}; root may read it, or `chmod a+r` on it",
                package.display()
            ),
        ),
    }
}

fn left() -> Check {
    const NAME: &str = "settings left changed";
    let (mut names, mut problems) = (Vec::new(), Vec::new());
    for left in left_changed() {
        match left {
            Ok(left) => names.push(left.name),
            Err(problem) => problems.push(problem.to_string()),
        }
    }
    if let Some(problem) = problems.first() {
        return check(NAME, Verdict::Fail, problem.clone());
    }
    if names.is_empty() {
        return check(NAME, Verdict::Pass, "none");
    }
    let finding = format!("{}: `sweetspot restore` puts them back", names.join(", "));
    check(NAME, Verdict::Warn, finding)
}
