//! Clients that open too many connections, send too much or too little, do not read, or are not who they were.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use sweetspot_guard::SettingsReply;

use super::client::{Client, apply_cap, lease};
use super::refusals::MAX_LOGGED;
use super::served_host::{ALICE, Account, BOB, CAROL, ServedHost, wait_for};

const POLICY: &str = "[[allow]]\neveryone = true\npower-cap = true\n";

/// The most connections that one user may have.
const MAX_CONNECTIONS: usize = 64;

/// Checks that a user can lease and set a GPU, and that it is restored afterwards.
fn assert_served(served: &ServedHost, client: &mut Client) {
    let device = served.uuid(1);
    let connection = client.lease_and_cap(&device, 160);
    assert_eq!(served.cap(1), 160.0);
    let released = client.ask_allowed(connection, &"release".into());
    assert_eq!(released, SettingsReply::Released { problems: vec![] });
    assert_eq!(served.cap(1), 300.0);
    client.close(connection);
}

/// The processor time that the service has used.
fn processor_time(served: &ServedHost) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", served.service_pid())).unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let fields: Vec<u64> = after_name
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    // The fields 14 and 15 of proc_pid_stat(5), in clock ticks of 10 ms.
    Duration::from_millis(10 * (fields[11] + fields[12]))
}

#[test]
#[ignore = "needs root"]
fn too_many_connections_are_refused_and_logged() {
    let served = ServedHost::started("v100:2", POLICY);
    let mut alice = Client::start(&served, ALICE);
    let first = alice.greet();
    let others: Vec<_> = (0..MAX_CONNECTIONS - 1).map(|_| alice.open()).collect();
    for refused in 1..=5 {
        let connection = alice.open();
        let answer = alice.read_all(connection);
        assert!(answer.is_closed && answer.bytes.is_empty(), "{answer:?}");
        let lines = served.audited("refused");
        assert_eq!(lines.len(), refused);
        assert_eq!(lines[refused - 1]["request"], "connect");
        assert_eq!(lines[refused - 1]["uid"], ALICE.uid);
    }
    // The connections from before work, and so do those of others.
    assert_eq!(alice.ask(first, &"ping".into()), SettingsReply::Pong);
    let mut bob = Client::start(&served, BOB);
    assert_served(&served, &mut bob);
    others.into_iter().for_each(|one| alice.close(one));
    wait_for("free connections", || {
        let connection = alice.open();
        alice.send(connection, b"{\"hello\": {\"version\": 1}}\n");
        !alice.read_line(connection).is_closed
    });
}

#[test]
#[ignore = "needs root"]
fn with_all_connections_in_use_the_service_goes_on() {
    let mut served = ServedHost::new("v100:2", POLICY);
    let serve = served.serve();
    // The usual limit of a shell; a connection needs two files.
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", "ulimit -Sn 1024; exec \"$0\" \"$@\""])
        .arg(serve.get_program())
        .args(serve.get_args())
        .env("SWEETSPOT_SIM", served.host.folder());
    served.start_with(&mut limited);
    let mut first = Client::start(&served, BOB);
    let connection = first.greet();
    // Together with this connection there are as many as the service accepts.
    let accounts = (0..6).map(|number| Account {
        uid: 64_200 + number,
        groups: &[],
    });
    let mut others: Vec<Client> = accounts
        .map(|account| Client::start(&served, account))
        .collect();
    for (number, client) in others.iter_mut().enumerate() {
        let count = MAX_CONNECTIONS - usize::from(number == 0);
        for _ in 0..count {
            client.open();
        }
    }
    let mut late = Client::start(&served, ALICE);
    let mut is_served = || {
        let connection = late.open();
        late.send(connection, b"{\"hello\": {\"version\": 1}}\n");
        let answer = late.read_line(connection);
        late.close(connection);
        answer.bytes == b"{\"hello\":{\"version\":1}}"
    };
    assert!(!is_served());
    assert_eq!(first.ask(connection, &"ping".into()), SettingsReply::Pong);
    let before = processor_time(&served);
    std::thread::sleep(Duration::from_secs(1));
    let used = processor_time(&served) - before;
    assert!(used < Duration::from_millis(500), "{used:?} of 1 s");
    assert_eq!(served.messages(), "");
    // As soon as somebody leaves, the next client is served.
    drop(others);
    wait_for("a free connection", is_served);
    assert_served(&served, &mut late);
}

#[test]
#[ignore = "needs root"]
fn a_flood_of_requests_is_refused_and_does_not_fill_the_log() {
    let served = ServedHost::started("v100:2", POLICY);
    let mut alice = Client::start(&served, ALICE);
    let mut bob = Client::start(&served, BOB);
    let connection = alice.greet();
    const REQUESTS: usize = 3000;
    alice.send(connection, &"\"ping\"\n".repeat(REQUESTS).into_bytes());
    // Bob is served while Alice's requests wait.
    assert_served(&served, &mut bob);
    let mut refused = 0;
    for _ in 0..REQUESTS {
        let answer = alice.read_line(connection);
        match serde_json::from_slice(&answer.bytes).unwrap() {
            SettingsReply::Pong => {}
            SettingsReply::Refused(refusal) => {
                assert_eq!(refusal, sweetspot_guard::Refusal::TooMany);
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(refused > REQUESTS / 3, "only {refused} were refused");
    let logged = served.audited("refused");
    assert!(logged.iter().all(|line| line["uid"] == ALICE.uid));
    // One more is logged per second.
    let (least, most) = (MAX_LOGGED.min(refused), MAX_LOGGED + 200);
    assert!(
        (least..most).contains(&logged.len()),
        "{refused} refused, {} logged",
        logged.len()
    );
    println!("{refused} requests were refused, {} logged", logged.len());
    // After a while Alice is served again, and the log says how many refusals it left out.
    wait_for("requests to be allowed", || {
        alice.ask(connection, &"ping".into()) == SettingsReply::Pong
    });
    wait_for("a refusal that is logged", || {
        alice.ask_refused(connection, &apply_cap("no GPU", "160 W"));
        let logged = served.audited("refused");
        logged
            .iter()
            .any(|line| line["refusals_left_out"].as_u64() > Some(0))
    });
}

#[test]
#[ignore = "needs root"]
fn a_request_that_stays_incomplete_is_given_up() {
    let served = ServedHost::started("v100:2", POLICY);
    let halves = ["{\"hello\": {\"ver", "POST /gpu/set_power_limit?gpu_ids=0"];
    let mut clients: Vec<Client> = halves.map(|_| Client::start(&served, ALICE)).into();
    let begun = Instant::now();
    for (client, half) in clients.iter_mut().zip(halves) {
        let connection = client.open();
        client.send(connection, half.as_bytes());
        client.begin_read(connection);
    }
    let mut bob = Client::start(&served, BOB);
    while begun.elapsed() < Duration::from_secs(3) {
        assert_served(&served, &mut bob);
        std::thread::sleep(Duration::from_millis(100));
    }
    for client in &mut clients {
        let read = client.finish_read();
        assert_eq!(read, json!({"bytes": "", "closed": true}));
    }
    let refused = served.audited("refused");
    assert_eq!(refused.len(), clients.len(), "{refused:?}");
    for line in &refused {
        assert_eq!(line["uid"], ALICE.uid, "{line}");
        assert!(clients.iter().any(|one| line["pid"] == one.pid()), "{line}");
        assert!(
            line["reason"].as_str().unwrap().contains("in time"),
            "{line}"
        );
    }
    assert!(begun.elapsed() > Duration::from_secs(9));
    assert_served(&served, &mut bob);
}

#[test]
#[ignore = "needs root"]
fn a_client_that_does_not_read_disturbs_nobody() {
    let served = ServedHost::started("v100:2", POLICY);
    let open = || {
        let files = format!("/proc/{}/fd", served.service_pid());
        std::fs::read_dir(files).unwrap().count()
    };
    let mut bob = Client::start(&served, BOB);
    assert_served(&served, &mut bob);
    let files_before = open();
    // Replies to a good many requests, and then a line after which the connection is closed once they are read.
    let mut silent = Vec::new();
    for ending in [vec![], vec!["x\n"], vec!["x\n", "and more"]] {
        let mut alice = Client::start(&served, ALICE);
        let connection = alice.greet();
        for _ in 0..10 {
            alice.send(connection, &"\"ping\"\n".repeat(1000).into_bytes());
        }
        for line in ending {
            // The line is read alone, and some time after the requests, which were too many.
            std::thread::sleep(Duration::from_millis(500));
            alice.send(connection, line.as_bytes());
            assert_served(&served, &mut bob);
        }
        silent.push((alice, connection));
    }
    // Power readings without end, unread too.
    let mut alice = Client::start(&served, ALICE);
    let connection = alice.open();
    alice.send(
        connection,
        b"GET /gpu/stream_power HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_served(&served, &mut bob);
    // More replies than the service keeps: it closes the connection.
    let mut endless = Client::start(&served, CAROL);
    let connection = endless.greet();
    for _ in 0..30 {
        endless.send(connection, &"\"ping\"\n".repeat(1000).into_bytes());
    }
    assert!(endless.read_all(connection).is_closed);
    assert_served(&served, &mut bob);
    let before = processor_time(&served);
    std::thread::sleep(Duration::from_secs(2));
    let used = processor_time(&served) - before;
    assert!(used < Duration::from_secs(1), "{used:?} of 2 s");
    assert_served(&served, &mut bob);
    // The two connections that wait to be closed are given up; the other two may stay. The service has a
    // descriptor of the connection and one of its process.
    wait_for("connections to be given up", || open() <= files_before + 4);
    assert_served(&served, &mut bob);
}

#[test]
#[ignore = "needs root"]
fn requests_that_arrive_together_are_all_answered() {
    let served = ServedHost::started("v100:2", POLICY);
    let mut alice = Client::start(&served, ALICE);
    let get = "GET /time HTTP/1.1\r\nHost: a\r\n\r\n";
    let last = "GET /time HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let responses = alice.http(format!("{}{last}", get.repeat(59)).as_bytes());
    assert_eq!(responses.matches("timestamp_ms").count(), 60);
}

/// Makes requests over a connection whose opener has ended, and returns the replies. `is_greeted` is whether the opener
/// has used the connection; otherwise the service sees the connection only when the opener has ended.
fn ask_for_the_dead(served: &ServedHost, is_greeted: bool) -> String {
    let device = served.uuid(0);
    let hello = json!({"hello": {"version": 1}});
    let requests = [lease(&device), apply_cap(&device, "160 W")];
    let lines: Vec<String> = [hello]
        .iter()
        .filter(|_| !is_greeted)
        .chain(&requests)
        .map(|request| format!("{request}\n"))
        .collect();
    if !is_greeted {
        served.signal_service(Signal::STOP);
    }
    let mut opener = served
        .command_as(ALICE, "python3")
        .args(["-c", include_str!("forked.py")])
        .arg(served.socket())
        .arg(lines.concat())
        .arg(if is_greeted { "greet" } else { "" })
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(opener.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "forked\n");
    let mut input = opener.stdin.take().unwrap();
    assert!(opener.wait().unwrap().success());
    if !is_greeted {
        served.signal_service(Signal::CONT);
    }
    input.write_all(b"\n").unwrap();
    let mut replies = String::new();
    output.read_to_string(&mut replies).unwrap();
    replies
}

#[test]
#[ignore = "needs root"]
fn nothing_is_leased_for_a_process_that_has_ended() {
    let served = ServedHost::started("v100:2", POLICY);
    for is_greeted in [true, false] {
        let replies = ask_for_the_dead(&served, is_greeted);
        assert!(!replies.contains("{\"leased\""), "{replies}");
        assert!(!replies.contains("{\"applied\""), "{replies}");
    }
    assert_eq!(served.host.writes(), "");
    assert_eq!(served.audited("lease"), Vec::<serde_json::Value>::new());
    let refused = served.audited("refused");
    let has_ended = |line: &&serde_json::Value| {
        let reason = line["reason"].as_str().unwrap();
        reason.contains("has ended") && line["uid"] == ALICE.uid
    };
    assert_eq!(refused.iter().filter(has_ended).count(), 1, "{refused:?}");
    // The GPU is free.
    Client::start(&served, BOB).lease_and_cap(&served.uuid(0), 160);
}
