//! Clients that do not read, do not finish, or send much at once.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::test_server::{ALICE, HELLO, STRANGERS, TIME, TestServer};

#[test]
#[ignore = "needs root"]
fn unread_answers_do_not_keep_the_service_busy() {
    let server = TestServer::start();
    let mut client = server.connect_as(STRANGERS);
    client.send(HELLO);
    // The answers are as long as the requests, and more than a socket can hold.
    let name = "x".repeat(3000);
    for _ in 0..100 {
        client.send(&format!("{{\"settings\":{{\"device\":\"{name}\"}}}}\n"));
    }
    // After a malformed request the connection ends once all answers are read, which never happens. What the client
    // sends now is not read any more.
    client.send("malformed\n\"ping\"\n\"ping\"\n");
    client.stream.shutdown(Shutdown::Write).unwrap();
    let load = server.load();
    assert!(load < 0.5, "the service uses {load:.2} of a processor");
    assert!(server.connect_as(ALICE).ask(TIME).contains(" 200 OK"));
    // In the end the service gives up, so that the connection does not take a place forever.
    let begun = Instant::now();
    while !is_hung_up(&client.stream) {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the connection stays open"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Whether the other side has closed the connection.
fn is_hung_up(stream: &UnixStream) -> bool {
    let mut waits = [PollFd::new(stream, PollFlags::empty())];
    poll(&mut waits, Some(&Timespec::default())).unwrap() > 0
}

#[test]
#[ignore = "needs root"]
fn requests_that_arrive_together_are_all_answered() {
    let server = TestServer::start();
    let mut client = server.connect_as(STRANGERS);
    client.send(&TIME.repeat(100));
    let answers = client.receive_until("timestamp_ms", 100);
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 100);
    let mut client = server.connect_as(STRANGERS);
    client.send(HELLO);
    client.send(&"\"ping\"\n".repeat(100));
    let answers = client.receive_until("pong", 100);
    assert_eq!(answers.matches("pong").count(), 100);
}

#[test]
#[ignore = "needs root"]
fn a_client_that_has_said_everything_gets_its_answers() {
    let server = TestServer::start();
    let mut client = server.connect_as(STRANGERS);
    client.send(&TIME.repeat(100));
    client.stream.shutdown(Shutdown::Write).unwrap();
    let answers = client.receive_until("\0", 1);
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 100);
    // Neither does such a client keep the service busy, nor one that asked for a stream.
    let mut client = server.connect_as(STRANGERS);
    client.send("GET /gpu/stream_power HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.receive().contains("text/event-stream"));
    client.stream.shutdown(Shutdown::Write).unwrap();
    let load = server.load();
    assert!(load < 0.5, "the service uses {load:.2} of a processor");
}
