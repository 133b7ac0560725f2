//! The service does not start where others than root could influence it, and says why in one sentence.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

use super::client::Client;
use super::served_host::{ALICE, ServedHost, wait_for_exit};

const POLICY: &str = "[[allow]]\neveryone = true\npower-cap = true\n";

/// Starts the service, which must end at once with exit code 2 and one line, which is returned.
fn refused_start(mut serve: Command) -> String {
    let mut service = serve.stderr(Stdio::piped()).spawn().unwrap();
    let status = wait_for_exit(&mut service);
    let message = std::io::read_to_string(service.stderr.take().unwrap()).unwrap();
    assert_eq!(status.code(), Some(2), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.starts_with("sweetspot: "), "{message}");
    message
}

/// Checks that the service does not start, for this reason.
fn assert_refused(served: &ServedHost, reason: &str) {
    let message = refused_start(served.serve());
    assert!(message.contains(reason), "{message} does not say {reason}");
    assert_eq!(served.host.writes(), "");
}

/// Checks that the service starts after all.
fn assert_starts(served: &mut ServedHost) {
    served.start();
    Client::start(served, ALICE).lease_and_cap(&served.uuid(0), 160);
    assert!(served.stop().success());
    assert_eq!(served.cap(0), 300.0);
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
#[ignore = "needs root"]
fn only_root_can_serve() {
    let served = ServedHost::new("v100", POLICY);
    let serve = served.serve();
    let mut as_alice = served.command_as(ALICE, served.program());
    as_alice.args(serve.get_args());
    let message = refused_start(as_alice);
    assert!(message.contains("only root can set GPUs"), "{message}");
    assert!(!served.socket().exists());
}

#[test]
#[ignore = "needs root"]
fn a_policy_that_others_can_change_or_that_has_a_mistake_is_refused() {
    let mut served = ServedHost::new("v100", POLICY);
    let policy = served.path("policy.toml");
    chown(&policy, Some(ALICE.uid), None).unwrap();
    assert_refused(&served, "policy.toml belongs to user 64001");
    chown(&policy, Some(0), None).unwrap();
    for mode in [0o664, 0o646, 0o666] {
        set_mode(&policy, mode);
        assert_refused(&served, "policy.toml is writable");
    }
    set_mode(&policy, 0o644);
    // The folder counts too.
    set_mode(&served.folder, 0o777);
    assert_refused(&served, "is writable");
    set_mode(&served.folder, 0o755);
    // A link to a file of somebody else.
    let foreign = served.home_of(ALICE).join("policy.toml");
    std::fs::rename(&policy, &foreign).unwrap();
    symlink(&foreign, &policy).unwrap();
    assert_refused(&served, "belongs to user 64001");
    std::fs::remove_file(&policy).unwrap();
    std::fs::create_dir(&policy).unwrap();
    assert_refused(&served, "policy.toml");
    std::fs::remove_dir(&policy).unwrap();

    let mistakes = [
        (
            "[[allow]]\nusers = [\"no-such-user-64\"]\npower-cap = true\n",
            ":2: ",
            "no-such-user-64",
        ),
        (
            "[[allow]]\ngroups = [\"no-such-group-64\"]\npower-cap = true\n",
            ":2: ",
            "no-such-group-64",
        ),
        (
            "[[allow]]\neveryone = true\npower-cap = true\n\npower-caps = true\n",
            ":5: ",
            "power-caps",
        ),
        ("[[deny]]\neveryone = true\n", ":1: ", "deny"),
        (
            "[[allow]]\neveryone = true\npower-cap = \"250..150 W\"\n",
            ":3: ",
            "reversed",
        ),
        ("[[allow]]\neveryone = \n", ":2: ", ""),
        ("[[allow]]\npower-cap = true\n", ":1: ", ""),
    ];
    for (text, line, reason) in mistakes {
        served.write_policy(text);
        let message = refused_start(served.serve());
        let place = format!("policy.toml{line}");
        assert!(message.contains(&place), "{message}");
        assert!(message.contains(reason), "{message}");
    }
    std::fs::write(&policy, b"# \xff\n").unwrap();
    assert_refused(&served, "UTF-8");
    served.write_policy(POLICY);
    assert_starts(&mut served);
}

#[test]
#[ignore = "needs root"]
fn a_library_that_others_can_change_is_not_loaded() {
    let mut served = ServedHost::new("v100", POLICY);
    let library = served.path("libnvml.so");
    chown(&library, Some(ALICE.uid), None).unwrap();
    assert_refused(&served, "libnvml.so belongs to user 64001");
    chown(&library, Some(0), None).unwrap();
    set_mode(&library, 0o775);
    assert_refused(&served, "libnvml.so is writable");
    set_mode(&library, 0o644);
    // The original library is below a folder in which everyone may create files.
    let original = served.host.folder().join("lib/libnvidia-ml.so.1");
    let kept = served.path("kept.so");
    std::fs::rename(&library, &kept).unwrap();
    symlink(&original, &library).unwrap();
    assert_refused(&served, "is writable");
    std::fs::remove_file(&library).unwrap();
    assert_refused(&served, "libnvml.so");
    std::fs::write(&library, "not a library").unwrap();
    assert_refused(&served, "libnvml.so");
    std::fs::rename(&kept, &library).unwrap();
    assert!(!served.socket().exists());
    assert_starts(&mut served);
}

#[test]
#[ignore = "needs root"]
fn nothing_is_followed_or_replaced_in_place_of_the_service_s_files() {
    let mut served = ServedHost::new("v100", POLICY);
    let elsewhere = served.home_of(ALICE).join("elsewhere");
    for name in ["run", "journal", "log"] {
        let path = served.path(name);
        symlink(&elsewhere, &path).unwrap();
        assert_refused(&served, &format!("{name} is not a folder"));
        // The target may exist.
        std::fs::create_dir(&elsewhere).unwrap();
        assert_refused(&served, &format!("{name} is not a folder"));
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
        std::fs::remove_dir(&elsewhere).unwrap();
        std::fs::remove_file(&path).unwrap();
        // A folder of somebody else, and one to which others can write.
        std::fs::create_dir(&path).unwrap();
        chown(&path, Some(ALICE.uid), None).unwrap();
        assert_refused(&served, "belongs to user 64001");
        chown(&path, Some(0), None).unwrap();
        set_mode(&path, 0o777);
        assert_refused(&served, name);
        std::fs::remove_dir(&path).unwrap();
    }
    std::fs::create_dir_all(served.path("run")).unwrap();
    let socket = served.socket();
    symlink(&elsewhere, &socket).unwrap();
    assert_refused(&served, "is a symbolic link");
    assert!(!elsewhere.exists());
    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "mine").unwrap();
    assert_refused(&served, "is not a socket");
    assert_eq!(std::fs::read_to_string(&socket).unwrap(), "mine");
    std::fs::remove_file(&socket).unwrap();
    // A socket of somebody else, whether anybody listens or not.
    let listener = UnixListener::bind(&socket).unwrap();
    chown(&socket, Some(ALICE.uid), None).unwrap();
    assert_refused(&served, "a socket of user 64001");
    drop(listener);
    assert_refused(&served, "a socket of user 64001");
    std::fs::remove_file(&socket).unwrap();
    // The audit log.
    std::fs::create_dir_all(served.path("log")).unwrap();
    let audit = served.path("log/audit.jsonl");
    symlink(&elsewhere, &audit).unwrap();
    assert_refused(&served, "cannot write the audit log");
    assert!(!elsewhere.exists());
    std::fs::remove_file(&audit).unwrap();
    std::fs::create_dir(&audit).unwrap();
    assert_refused(&served, "cannot write the audit log");
    std::fs::remove_dir(&audit).unwrap();
    assert_starts(&mut served);
}

#[test]
#[ignore = "needs root"]
fn a_second_service_does_not_replace_the_first() {
    let served = ServedHost::started("v100", POLICY);
    let mut client = Client::start(&served, ALICE);
    let connection = client.lease_and_cap(&served.uuid(0), 160);
    let message = refused_start(served.serve());
    assert!(
        message.contains("another process already serves"),
        "{message}"
    );
    client.ask_allowed(connection, &"ping".into());
    assert_eq!(served.cap(0), 160.0);
    assert!(UnixStream::connect(served.socket()).is_ok());
}

#[test]
#[ignore = "needs root"]
fn the_environment_does_not_change_the_service() {
    let mut served = ServedHost::new("v100:2", POLICY);
    let mut serve = served.serve();
    serve
        .env("SWEETSPOT_NVML", "/nonexistent/libnvml.so")
        .env("SWEETSPOT_READ_ONLY", "1")
        .env("SWEETSPOT_LOG", "trace")
        .env("SWEETSPOT_SOCKET", "/nonexistent/socket")
        .env("CUDA_VISIBLE_DEVICES", "1")
        .env("TMPDIR", "/nonexistent")
        .env("HOME", "/nonexistent")
        .env("XDG_RUNTIME_DIR", "/nonexistent")
        .env("SUDO_UID", ALICE.uid.to_string());
    served.start_with(&mut serve);
    let mut client = Client::start(&served, ALICE);
    client.lease_and_cap(&served.uuid(0), 160);
    assert_eq!(served.cap(0), 160.0);
    drop(client);
    served.wait_for_cap(0, 300.0);
    assert!(served.stop().success());
    assert_eq!(served.messages(), "");
}
