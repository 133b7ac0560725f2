//! Users who may set ceilings, and nothing else.

use super::device::id_of;
use super::test_server::{ALICE, HELLO, OPERATOR, TestServer, apply, lease};

fn ceiling(gpu: usize) -> String {
    let id = id_of(gpu);
    format!("{{\"lease\":{{\"devices\":[\"{id}\"],\"kind\":\"ceiling\"}}}}\n")
}

#[test]
#[ignore = "needs root"]
fn a_ceiling_needs_its_own_right_and_no_other() {
    let server = TestServer::start();
    // It does not matter who uses the GPU.
    server.gpus.state(0).processes = vec![1];
    let mut operator = server.connect_as(OPERATOR);
    operator.ask(HELLO);
    let reply = operator.ask(&ceiling(0));
    assert!(reply.contains("leased"), "{reply}");
    let reply = operator.ask(&apply(0, 200));
    assert!(reply.contains("applied"), "{reply}");
    // It stays although it is checked every second.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(
        server.gpus.state(0).settings.power_cap.unwrap().get(),
        200.0
    );
    // A ceiling is a power cap.
    let clock = apply(0, 900).replace("power_cap", "core_clock");
    let reply = operator.ask(&clock.replace(" W", " MHz"));
    assert!(reply.contains("a ceiling is a power cap alone"), "{reply}");
    // The right to ceilings is not one to settings, and the other way round.
    let reply = operator.ask(&lease(1));
    assert!(reply.contains("refused"), "{reply}");
    let mut alice = server.connect_as(ALICE);
    alice.ask(HELLO);
    let reply = alice.ask(&ceiling(1));
    assert!(reply.contains("ceiling = true"), "{reply}");
}
