//! A process that serves the one user who called sudo leaves the leases of others alone.

#[path = "fuzz/device.rs"]
#[allow(dead_code)]
mod device;

use std::os::unix::net::UnixStream;

use device::{GPUS, Gpus, id_of};
use sweetspot_device::Settings;
use sweetspot_guard::{Journal, LeaseKind, LeaseTerms, Leases, Owner};
use sweetspot_quantity::Watts;
use sweetspot_service::{Audit, ServedGpu, ServerOptions, Service, serve};

/// The service was killed, and is about to be started again.
#[test]
fn leases_of_a_service_that_is_being_restarted_stay() {
    let folder = tempfile::tempdir().unwrap();
    let gpus = Gpus::new();
    let journal = || Journal::open(&folder.path().join("journal")).unwrap();
    let new_leases = || Leases::new(journal(), |id| Ok(gpus.open(id)?));
    let settings = Settings {
        power_cap: Some(Watts::new(180.0)),
        ..Settings::default()
    };
    {
        let mut leases = new_leases();
        let terms = LeaseTerms {
            owner: Owner::job("training".to_owned(), 1000),
            kind: LeaseKind::Setting,
        };
        leases.lease(&[id_of(0)], &terms).unwrap();
        leases.apply(&id_of(0), &terms.owner, &settings).unwrap();
    }
    let served = (0..GPUS).map(|gpu| ServedGpu {
        device: gpus.open(&id_of(gpu)).unwrap(),
    });
    let audit = Audit::open(&folder.path().join("audit.jsonl")).unwrap();
    let mut service = Service::new(new_leases(), served.collect(), None, audit);
    let (client, first) = UnixStream::pair().unwrap();
    drop(client);
    let options = ServerOptions {
        listener: None,
        first: Some(first),
        reload: &mut || Err("no".to_owned()),
    };
    serve(&mut service, options).unwrap();
    assert_eq!(gpus.state(0).settings, settings);
    // The service itself takes the lease up.
    let mut leases = new_leases();
    assert!(leases.resume().unwrap().is_empty());
    assert_eq!(leases.summaries().len(), 1);
}
