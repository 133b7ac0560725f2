//! Changes that nobody asks for are in the audit log too: those after a crash of the service.

#[path = "fuzz/device.rs"]
#[allow(dead_code)]
mod device;

use std::path::Path;

use device::{GPUS, Gpus, id_of};
use serde_json::Value;
use sweetspot_device::Settings;
use sweetspot_guard::{Journal, LeaseKind, LeaseTerms, Leases, Owner};
use sweetspot_quantity::Watts;
use sweetspot_service::{Audit, ServedGpu, Service};

fn leases<'a>(folder: &Path, gpus: &'a Gpus) -> Leases<'a> {
    let journal = Journal::open(&folder.join("journal")).unwrap();
    Leases::new(journal, |id| Ok(gpus.open(id)?))
}

/// The lines of the log about this event.
fn logged(folder: &Path, event: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("audit.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Value| line["event"] == event)
        .collect()
}

#[test]
fn what_a_restarted_service_does_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let gpus = Gpus::new();
    let lives = Owner::current_process();
    let mut dead = lives.clone();
    dead.start_time += 1;
    {
        // The service is killed after it has set two GPUs for two processes, one of which ends.
        let mut leases = leases(folder.path(), &gpus);
        for (gpu, owner) in [(0, &lives), (1, &dead)] {
            let terms = LeaseTerms {
                owner: owner.clone(),
                kind: LeaseKind::Setting,
            };
            leases.lease(&[id_of(gpu)], &terms).unwrap();
            let settings = Settings {
                power_cap: Some(Watts::new(180.0)),
                ..Settings::default()
            };
            leases.apply(&id_of(gpu), owner, &settings).unwrap();
        }
    }
    let served = (0..GPUS).map(|gpu| ServedGpu {
        device: gpus.open(&id_of(gpu)).unwrap(),
    });
    let audit = Audit::open(&folder.path().join("audit.jsonl")).unwrap();
    let leases = leases(folder.path(), &gpus);
    let mut service = Service::new(leases, served.collect(), None, audit);
    service.resume();
    assert_eq!(gpus.state(1).settings, device::before());
    let restored = logged(folder.path(), "restored-left-changed");
    assert_eq!(restored.len(), 1, "{restored:?}");
    assert_eq!(restored[0]["device"], id_of(1).as_str());
    let resumed = logged(folder.path(), "lease-resumed");
    assert_eq!(resumed.len(), 1, "{resumed:?}");
    assert_eq!(resumed[0]["device"], id_of(0).as_str());
    assert_eq!(resumed[0]["settings"]["power_cap"], "180 W");
    assert_eq!(resumed[0]["pid"], std::process::id());
    // Nothing more happens, and nothing more is logged.
    service.resume();
    assert_eq!(logged(folder.path(), "lease-resumed").len(), 1);
    // The log says which GPU was restored, and to what.
    assert!(service.release(&lives, "owner-ended").is_empty());
    let ended = logged(folder.path(), "owner-ended");
    assert_eq!(ended.len(), 1, "{ended:?}");
    let device = &ended[0]["devices"][0];
    assert_eq!(device["device"], id_of(0).as_str());
    assert_eq!(device["after"]["power_cap"], "300 W");
}
