//! What users can take at most.

use super::device::id_of;
use super::test_server::{ALICE, HELLO, STRANGERS, TIME, TestServer, lease};

#[test]
#[ignore = "needs root"]
fn strangers_cannot_take_all_connections() {
    let server = TestServer::start();
    // A user who may run processes with many ids, as in containers, can use them all.
    let mut taken = Vec::new();
    for uid in 0..12 {
        taken.extend((0..64).map(|_| server.connect_as(STRANGERS + uid)));
    }
    for uid in [ALICE, 0] {
        let answer = server.connect_as(uid).ask(TIME);
        assert!(answer.contains(" 200 OK"), "user {uid}: {answer:?}");
    }
    // Some strangers are served too.
    let answered = taken.iter_mut().take(100).map(|client| client.ask(TIME));
    assert_eq!(answered.filter(|one| one.contains(" 200 OK")).count(), 100);
    let load = server.load();
    assert!(load < 0.5, "the service uses {load:.2} of a processor");
}

#[test]
#[ignore = "needs root"]
fn a_device_that_is_named_often_is_looked_at_once() {
    let server = TestServer::start();
    let mut client = server.connect_as(ALICE);
    client.ask(HELLO);
    let before = server.gpus.state(0).listings;
    let devices = vec![format!("\"{}\"", id_of(0)); 300].join(",");
    let reply = client.ask(&format!("{{\"lease\":{{\"devices\":[{devices}]}}}}\n"));
    assert!(reply.contains("leased"), "{reply}");
    // The check of every second may come in between.
    let listings = server.gpus.state(0).listings - before;
    assert!(listings < 10, "{listings}");
    assert!(client.ask(&lease(1)).contains("leased"));
}

#[test]
#[ignore = "needs root"]
fn long_requests_do_not_fill_the_audit_log() {
    let server = TestServer::start();
    let mut client = server.connect_as(STRANGERS);
    client.ask(HELLO);
    let name = "x".repeat(15_000);
    let reply = client.ask(&format!("{{\"lease\":{{\"devices\":[\"{name}\"]}}}}\n"));
    assert!(reply.contains("refused"), "{reply}");
    let lines = server.audit();
    let last = lines.last().unwrap();
    assert_eq!(last["event"], "refused");
    assert!(last.to_string().len() < 2000, "{}", last.to_string().len());
}
