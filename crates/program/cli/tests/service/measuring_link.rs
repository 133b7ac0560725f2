//! The measuring process as systemd starts it: it waits at a socket, and the service connects to it.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use rustix::process::Signal;

use super::client::Client;
use super::measuring::{counter, policy};
use super::measuring_tcp::{free_address, get};
use super::served_host::{ALICE, KilledAtEnd, ServedHost, wait_for};

#[test]
#[ignore = "needs root"]
fn both_processes_find_each_other_again() {
    let mut served = ServedHost::new("v100", &policy());
    let (link, address) = (served.path("monitor.link"), free_address());
    // As the socket unit does.
    let flags = SocketFlags::CLOEXEC;
    let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(&link).unwrap()).unwrap();
    std::fs::set_permissions(&link, std::fs::Permissions::from_mode(0o600)).unwrap();
    listen(&listener, 16).unwrap();
    let monitor = start_monitor(&served, &listener, &address);
    let mut serve = served.serve_and_measure();
    serve.arg("--monitor-link").arg(&link);
    served.start_with(&mut serve);
    let lists = |served: &ServedHost| counter(served, ALICE, &["list"]).status.success();
    wait_for("the measuring process", || lists(&served));
    assert!(counter(&served, ALICE, &["start", "a"]).status.success());
    let mut alice = Client::start(&served, ALICE);
    let _lease = alice.lease_and_cap(&served.uuid(0), 180);
    wait_for("the lease", || {
        get(&address, "/live").contains("power cap 180 W")
    });

    // The service starts again: counters go on, and leases are shown again.
    served.signal_service(Signal::KILL);
    served.wait_for_service();
    let mut serve = served.serve_and_measure();
    serve.arg("--monitor-link").arg(&link);
    served.start_with(&mut serve);
    wait_for("the measuring process again", || lists(&served));
    assert!(counter(&served, ALICE, &["stop", "a"]).status.success());

    // The measuring process starts again: leases stay.
    drop(monitor);
    assert!(!lists(&served));
    let _monitor = start_monitor(&served, &listener, &address);
    wait_for("another measuring process", || lists(&served));
}

/// Starts the measuring process at a socket, as systemd does.
fn start_monitor(
    served: &ServedHost,
    listener: &rustix::fd::OwnedFd,
    address: &str,
) -> KilledAtEnd {
    let mut monitor = Command::new("setpriv");
    monitor
        .args(["--clear-groups", "--reuid=65534", "--regid=65534", "--"])
        .arg(served.program())
        .arg("monitor")
        .arg("--nvml")
        .arg(served.path("libnvml.so"))
        .args(["--listen", address])
        .env("SWEETSPOT_SIM", served.host.folder())
        .stdin(Stdio::from(listener.try_clone().unwrap()));
    KilledAtEnd(monitor.spawn().unwrap())
}
