//! Clients that are slow, huge, half-closed or very many change nothing for others.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::measuring::{counter, measured, monitor_pid};
use super::measuring_tcp::{free_address, get};
use super::served_host::ALICE;

/// The memory of a process in kB.
fn memory_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "needs root"]
fn hostile_clients_change_nothing_for_others() {
    let address = free_address();
    let served = measured("v100", &["--listen", &address]);
    let pid = monitor_pid(&served);
    let before = memory_kb(pid);
    // A thousand connections that say nothing, or half of a request, over both sockets.
    let mut silent: Vec<TcpStream> = Vec::new();
    let mut local: Vec<UnixStream> = Vec::new();
    for number in 0..1000 {
        let mut stream = TcpStream::connect(&address).unwrap();
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x");
        }
        silent.push(stream);
        if number % 4 == 0 {
            // The tests run as root, whose connections are counted apart from those of Alice.
            let mut stream = UnixStream::connect(served.socket()).unwrap();
            let _ = stream.write_all(b"GET /counters HTTP/1.1\r\n");
            local.push(stream);
        }
    }
    // A head without an end, a body without an end, and a client that closes its half and never reads.
    let mut huge = TcpStream::connect(&address).unwrap();
    let _ = huge.write_all(&vec![b'x'; 1 << 20]);
    let mut many = TcpStream::connect(&address).unwrap();
    many.set_nonblocking(true).unwrap();
    let request = format!("GET /live HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(64);
    for _ in 0..64 {
        let _ = many.write(request.as_bytes());
    }
    let half = TcpStream::connect(&address).unwrap();
    let _ = (&half).write_all(b"GET / HTTP/1.1\r\n");
    half.shutdown(Shutdown::Write).unwrap();
    // Others are answered as before.
    let begun = Instant::now();
    assert!(counter(&served, ALICE, &["start", "a"]).status.success());
    assert!(get(&address, "/metrics").contains("sweetspot_gpu_power_watts"));
    assert!(counter(&served, ALICE, &["stop", "a"]).status.success());
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(monitor_pid(&served), pid);
    let after = memory_kb(pid);
    assert!(after < before + 20_000, "{before} kB, then {after} kB");
}
