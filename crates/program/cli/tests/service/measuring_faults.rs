//! What the measuring process does with a GPU that is lost, and with clients that never read.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::measuring::{counter, measured, monitor_pid};
use super::measuring_tcp::{body, free_address, get};
use super::served_host::ALICE;

const V100: &str = include_str!("../../../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");

#[test]
#[ignore = "needs root"]
fn a_lost_gpu_ends_its_energy_and_not_that_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let faulty = folder.path().join("gpu.toml");
    let fault = "[[fault]]\nkind = \"lost\"\nafter = \"9 s\"\n";
    std::fs::write(&faulty, format!("{V100}\n{fault}")).unwrap();
    let address = free_address();
    let gpus = format!("v100,{}", faulty.display());
    let served = measured(&gpus, &["--listen", &address]);
    for (name, device) in [("good", "0"), ("bad", "1"), ("both", "0,1")] {
        let started = counter(&served, ALICE, &["start", name, "--device", device]);
        assert!(started.status.success(), "{started:?}");
    }
    let lost = || -> Value {
        let live: Value = serde_json::from_str(body(&get(&address, "/live"))).unwrap();
        live["gpus"][1]["lost"].clone()
    };
    super::served_host::wait_for("the loss", || lost() == true);
    let stop = |name: &str| {
        let output = counter(&served, ALICE, &["stop", name, "--export-json", "-"]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), document)
    };
    let (code, good) = stop("good");
    assert_eq!(code, Some(0), "{good}");
    assert!(good["notes"].is_null(), "{good}");
    let (code, bad) = stop("bad");
    assert_eq!(code, Some(1), "{bad}");
    assert!(
        bad["notes"].to_string().contains("GPU 1 no longer answers"),
        "{bad}"
    );
    let (code, both) = stop("both");
    assert_eq!(code, Some(1), "{both}");
    // Its energy ends with it, and the other's goes on.
    let energy = |document: &Value| document["energy_j"].as_f64().unwrap();
    assert!(
        energy(&bad) > 0.0 && energy(&bad) < energy(&good),
        "{bad} {good}"
    );
    let metrics = get(&address, "/metrics");
    assert!(
        metrics.contains("sweetspot_gpu_lost{gpu=\"1\""),
        "{metrics}"
    );
    assert!(
        !metrics.contains("sweetspot_gpu_power_watts{gpu=\"1\""),
        "{metrics}"
    );
    // A sum without one of its parts is unknown to a remote reader.
    let energies: Value = serde_json::from_str(body(&get(&address, "/energy"))).unwrap();
    assert_eq!(energies["gpus"][1]["lost"], true, "{energies}");
}

#[test]
#[ignore = "needs root"]
fn a_client_that_never_reads_is_dropped() {
    let address = free_address();
    let served = measured("v100", &["--listen", &address]);
    let pid = monitor_pid(&served);
    let mut deaf = TcpStream::connect(&address).unwrap();
    deaf.set_nonblocking(true).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
    // Until nothing more fits into the sockets on both sides.
    let mut sent = 0;
    for _ in 0..20_000 {
        match deaf.write(request.as_bytes()) {
            Ok(length) => sent += length,
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    assert!(sent > 0);
    // It is dropped after ten seconds, and others are answered meanwhile.
    let mut is_dropped = false;
    for _ in 0..150 {
        std::thread::sleep(Duration::from_millis(100));
        assert!(get(&address, "/clock").contains("unix_s"));
        match deaf.write(b"x") {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Ok(_) => {}
            Err(_) => {
                is_dropped = true;
                break;
            }
        }
    }
    assert!(is_dropped);
    assert_eq!(monitor_pid(&served), pid);
}
