//! Processes that the driver lists for a GPU.

use super::test_server::{ALICE, HELLO, TestServer, lease};

#[test]
#[ignore = "needs root"]
fn a_listed_process_that_has_ended_does_not_count() {
    let server = TestServer::start();
    let mut client = server.connect_as(ALICE);
    client.ask(HELLO);
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    server.gpus.state(0).processes = vec![child.id()];
    // The process is root's.
    let reply = client.ask(&lease(0));
    assert!(reply.contains("uses the GPU too"), "{reply}");
    child.kill().unwrap();
    child.wait().unwrap();
    let reply = client.ask(&lease(0));
    // In a container the driver may list processes that are not in it.
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap();
    match namespace.to_str() == Some("pid:[4026531836]") {
        true => assert!(reply.contains("leased"), "{reply}"),
        false => assert!(reply.contains("its user is unknown"), "{reply}"),
    }
}
