//! The C client, read by the Rust reader.

mod common;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{describe_marks, drain_until, ended, faults, folder, lost, program};
use sweetspot_link::{Event, LINK_VARIABLE, Reader, pair_phases};

/// Compiles the client with the strictest warnings that its header supports.
fn compile_client(into: &Path) -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let client = into.join("client");
    let output = program("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-I"])
        .arg(crate_folder.join("include"))
        .arg(crate_folder.join("tests/client.c"))
        .arg("-o")
        .arg(&client)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    client
}

fn run(client: &Path, link: Option<&Path>) -> Output {
    let mut command = Command::new(client);
    command.env_remove(LINK_VARIABLE).env("RANK", "2");
    if let Some(link) = link {
        command.env(LINK_VARIABLE, link);
    }
    command.output().unwrap()
}

#[test]
fn all_records_of_the_c_client_are_read() {
    let parent = folder();
    let client = compile_client(parent.path());
    let mut reader = Reader::create_in(parent.path()).unwrap();
    reader.control().set_batch_size(NonZeroU64::new(48));
    let output = run(&client, Some(reader.folder()));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "opened 0\n");
    let events = reader.drain();
    assert!(matches!(events[0], Event::Appeared(ring) if ring.rank == Some(2)));
    let long = "é".repeat(63);
    let expected = [
        "+forward",
        "-forward",
        "batch_size:48",
        "48",
        "batch_s:0.25",
        "48",
        "latency_s:0.5",
        "queue_length:3",
        "arrivals_per_s:20",
        "out_of_memory:64",
        "accuracy:0.76",
        "=gpu",
        &format!("+{long}"),
        &format!("-{long}"),
        "+(other names)",
        "+n0",
    ];
    let describe_marks = describe_marks(&events);
    assert_eq!(describe_marks[..16], expected);
    assert_eq!(describe_marks[15 + 244..][..2], ["+n244", "+(other names)"]);
    assert_eq!((describe_marks.len(), ended(&events)), (15 + 300, 1));
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::NamesRefused { count: 55, .. }))
    );
    assert_eq!(
        (faults(&events).len(), pair_phases(&events).0.len()),
        (0, 3)
    );
}

#[test]
fn a_c_program_runs_without_a_link_or_a_tool() {
    let parent = folder();
    let client = compile_client(parent.path());
    let output = run(&client, None);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "opened 1\n");
    let output = run(&client, Some(parent.path()));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "opened -1\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("No such file"));
}

#[test]
fn a_killed_c_program_leaves_complete_records() {
    let parent = folder();
    let client = compile_client(parent.path());
    let mut reader = Reader::open_with_capacity(&parent.path().join("link"), 64).unwrap();
    for _ in 0..20 {
        let mut child = Command::new(&client)
            .arg("forever")
            .env(LINK_VARIABLE, reader.folder())
            .spawn()
            .unwrap();
        let mut events = drain_until(&mut reader, |events| lost(events) > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        events.extend(drain_until(&mut reader, |events| ended(events) == 1));
        assert_eq!(faults(&events), [""; 0]);
        assert!(
            describe_marks(&events)
                .iter()
                .all(|it| it.ends_with("forever"))
        );
    }
}
