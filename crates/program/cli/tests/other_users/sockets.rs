//! Sockets and pipes with which another user pretends to be somebody, or lets others wait.

use std::os::unix::net::UnixListener;

use super::{ATTACKER, SharedMachine, VICTIM, errors, output_within};

#[test]
#[ignore = "needs root"]
fn a_pipe_in_a_made_simulated_host_holds_nobody_up() {
    let machine = SharedMachine::new();
    let trap = format!("/dev/shm/sweetspot-sim-trap-{}", std::process::id());
    let make = format!("mkdir {trap} && mkfifo {trap}/owner");
    let mut attacker = machine.as_user(ATTACKER, "sh");
    assert!(attacker.args(["-c", &make]).status().unwrap().success());
    for user in [0, VICTIM] {
        let mut simulate = machine.as_user(user, &machine.program());
        simulate
            .current_dir("/")
            .args(["simulate", "--gpu", "v100", "--", "true"]);
        simulate
            .env_remove("SWEETSPOT_SIM")
            .env_remove("SWEETSPOT_NVML");
        let output = output_within(simulate, 10);
        let is_there = std::path::Path::new(&trap).exists();
        let output = output.expect("the command does not hang");
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
        assert!(is_there, "folders of other users are not removed");
    }
    std::fs::remove_dir_all(trap).unwrap();
}

#[test]
#[ignore = "needs root"]
fn root_talks_to_the_socket_of_its_owner_only_and_never_waits_for_it() {
    let machine = SharedMachine::new();
    let folder = machine.path("tmp").join(format!("sweetspot-hold-{VICTIM}"));
    std::fs::create_dir(&folder).unwrap();
    // Nobody accepts connections here, and it is not the socket of the process that its name says.
    let listener = UnixListener::bind(folder.join("hold-1.socket")).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let full: Vec<_> = (0..4)
        .map(|_| {
            let socket = rustix::net::socket_with(
                rustix::net::AddressFamily::UNIX,
                rustix::net::SocketType::STREAM,
                rustix::net::SocketFlags::NONBLOCK,
                None,
            );
            let socket = socket.unwrap();
            let address = rustix::net::SocketAddrUnix::new(folder.join("hold-1.socket")).unwrap();
            let _ = rustix::net::connect(&socket, &address);
            socket
        })
        .collect();
    let mut set = machine.as_user(0, &machine.program());
    set.current_dir("/")
        .args(["hold", "set", "300W", "--pid", "1"]);
    let output = output_within(set, 8).expect("a full socket is not waited for");
    assert_ne!(output.status.code(), Some(0), "{}", errors(&output));
    drop(full);
}

#[test]
#[ignore = "needs root"]
fn a_service_that_does_not_respond_is_no_all_clear_and_holds_nobody_up() {
    let machine = SharedMachine::new();
    let (program, user) = (
        machine.program(),
        format!("--reuid {VICTIM} --clear-groups"),
    );
    let listen = "import socket, time; s = socket.socket(socket.AF_UNIX); \
                  s.bind('/run/sweetspot/sweetspot.sock'); s.listen(0); time.sleep(30)";
    let script = format!(
        "chmod 755 /run /var/lib; mkdir -p -m 700 /var/lib/sweetspot/journal; mkdir -m 755 /run/sweetspot; \
         python3 -c \"{listen}\" & listener=$!; \
         until [ -S /run/sweetspot/sweetspot.sock ]; do sleep 0.05; done; chmod 666 /run/sweetspot/sweetspot.sock; \
         for attempt in 1 2 3; do setpriv {user} {program} restore; echo restore $?; done; \
         setpriv {user} {program} doctor > /dev/null; echo doctor $?; kill $listener"
    );
    let output = output_within(machine.container(&[], &script), 25);
    let output = output.expect("a full queue of connections is not waited for");
    let text = String::from_utf8_lossy(&output.stdout);
    let said = errors(&output);
    assert_eq!(text.matches("restore 1").count(), 3, "{text} {said}");
    assert!(text.contains("doctor 1"), "{text} {said}");
    assert!(said.contains("does not respond"), "{said}");
}
