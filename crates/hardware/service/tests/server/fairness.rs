//! One user's requests do not hold up those of others.

use std::time::{Duration, Instant};

use super::test_server::{ALICE, BOB, HELLO, STRANGERS, TIME, TestServer, apply, lease};

/// Setting a GPU takes some milliseconds, and requests are carried out one after another.
#[test]
#[ignore = "needs root"]
fn slow_requests_of_one_user_take_turns_with_those_of_others() {
    let server = TestServer::start();
    server.gpus.state(0).write_time = Duration::from_millis(50);
    let mut busy: Vec<_> = (0..20).map(|_| server.connect_as(ALICE)).collect();
    let mut other = server.connect_as(BOB);
    for client in &mut busy {
        client.ask(HELLO);
    }
    assert!(busy[0].ask(&lease(0)).contains("leased"));
    other.ask(TIME);
    let before = server.gpus.state(0).writes.len();
    // 200 changes of one user, all at once.
    for (number, client) in busy.iter_mut().enumerate() {
        let requests = (0..10).map(|step| apply(0, 110 + number + 20 * (step % 2)));
        client.send(&requests.collect::<String>());
    }
    assert!(other.ask(TIME).contains(" 200 OK"));
    let writes = server.gpus.state(0).writes.len() - before;
    assert!(writes < 50, "{writes} changes came first");
    server.gpus.state(0).write_time = Duration::ZERO;
    for client in &mut busy {
        let replies = client.receive_until("applied", 10);
        assert_eq!(replies.matches("applied").count(), 10, "{replies}");
    }
}

#[test]
#[ignore = "needs root"]
fn streams_share_their_readings() {
    let server = TestServer::start();
    let mut streams: Vec<_> = (0..40).map(|_| server.connect_as(STRANGERS)).collect();
    for client in &mut streams {
        client.send("GET /gpu/stream_power?gpu_ids=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        client.receive_until("power_mw", 1);
    }
    let (begun, before) = (Instant::now(), server.gpus.state(1).readings);
    for client in &mut streams {
        let events = client.receive_until("power_mw", 20);
        assert!(events.matches("power_mw").count() >= 20);
    }
    let readings = server.gpus.state(1).readings - before;
    // 20 times a second for all streams together, with a margin; each stream for itself would need 800.
    let most = 10.0 + 60.0 * begun.elapsed().as_secs_f64();
    assert!((readings as f64) < most, "{readings} readings");
}
