//! A process that has become an ordinary user has nothing left of root.

use std::process::{Command, Output};

use sweetspot_service::privileges::{PrivilegeError, User, become_user, user_behind_sudo};

/// Names the part of a child process that this program plays, if it is one.
const PART: &str = "TEST_PRIVILEGES_PART";

/// The user id of `nobody`, who exists on every Linux system.
const NOBODY: u32 = 65534;

/// Runs a part in a process of its own, with these variables of sudo. The process is started by `setpriv` with
/// `options`.
fn run(part: &str, sudo: &[(&str, &str)], options: &[&str]) -> Output {
    let mut command = Command::new("setpriv");
    command
        .args(options)
        .arg(std::env::current_exe().unwrap())
        .args(["child_process", "--exact", "--nocapture"])
        .env(PART, part)
        .env_remove("SUDO_UID")
        .env_remove("SUDO_GID")
        .envs(sudo.iter().copied());
    command.output().unwrap()
}

/// The standard output of a part that must succeed.
fn output(part: &str, sudo: &[(&str, &str)]) -> String {
    output_of(run(part, sudo, &["--keep-groups"]))
}

/// The standard output of a process that must succeed.
fn output_of(output: Output) -> String {
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

/// The values of a line such as `Uid: 0 0 0 0`.
fn values<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}"))
        .split_whitespace()
        .collect()
}

/// Prints what the kernel says about this process.
fn print_status() {
    println!("{}", std::fs::read_to_string("/proc/self/status").unwrap());
}

/// Prints whether this process can read a file of root, and whether a program that it starts can become root.
fn try_to_be_root(when: &str) {
    let reads = std::fs::read("/etc/shadow").is_ok();
    let child = Command::new("setpriv")
        .args(["--reuid", "0", "true"])
        .output();
    let becomes = child.unwrap().status.success();
    println!("{when}: {reads} {becomes}");
}

/// Plays a part if this process is a child of another test.
#[test]
fn child_process() {
    let Some(part) = std::env::var_os(PART) else {
        return;
    };
    let nobody = User::from_uid(NOBODY).unwrap();
    // The harness has begun a line.
    println!();
    match part.to_str().unwrap() {
        "sudo" => {
            let user = user_behind_sudo().unwrap().unwrap();
            become_user(&user).unwrap();
            print_status();
        }
        "threads" => {
            // Threads that are there before get the new ids, too.
            let (stop, wait) = std::sync::mpsc::channel::<()>();
            let thread = std::thread::spawn(move || {
                let _ = wait.recv();
                let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
                println!("{status}");
            });
            become_user(&nobody).unwrap();
            drop(stop);
            thread.join().unwrap();
        }
        "return" => {
            try_to_be_root("before");
            become_user(&nobody).unwrap();
            try_to_be_root("after");
            let again = become_user(&User { uid: 1, ..nobody });
            println!("again: {}", again.is_ok());
        }
        "traced" => {
            become_user(&nobody).unwrap();
            // The memory of this process belongs to root now, and that of a program it executes does not.
            println!("own: {}", std::fs::read("/proc/self/environ").is_ok());
            let child = Command::new("cat").arg("/proc/self/environ").output();
            println!("child: {}", child.unwrap().status.success());
        }
        "twice" => {
            become_user(&nobody).unwrap();
            println!("caller: {}", user_behind_sudo().unwrap().is_some());
        }
        "ambient" => {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            println!("given: {}", values(&status, "CapAmb")[0]);
            become_user(&nobody).unwrap();
            print_status();
        }
        "keep" => match become_user(&nobody) {
            Err(PrivilegeError::StillPrivileged { what }) => println!("kept: {what}"),
            other => panic!("{other:?}"),
        },
        part => panic!("{part}"),
    }
}

#[test]
#[ignore = "needs root"]
fn the_process_gets_the_ids_and_groups_of_the_caller_of_sudo() {
    let nobody = User::from_uid(NOBODY).unwrap();
    let (uid, gid) = (nobody.uid.to_string(), nobody.gid.to_string());
    let text = output("sudo", &[("SUDO_UID", &uid), ("SUDO_GID", &gid)]);
    assert_eq!(values(&text, "Uid"), [&uid; 4]);
    assert_eq!(values(&text, "Gid"), [&gid; 4]);
    assert!(!values(&text, "Groups").contains(&"0"), "{text}");
    for set in ["CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(values(&text, set), ["0000000000000000"], "{set}");
    }
}

#[test]
#[ignore = "needs root"]
fn threads_that_run_already_change_too() {
    let text = output("threads", &[]);
    assert_eq!(values(&text, "Uid"), ["65534"; 4]);
    assert_eq!(values(&text, "CapEff"), ["0000000000000000"]);
}

#[test]
#[ignore = "needs root"]
fn there_is_no_way_back() {
    let text = output("return", &[]);
    assert_eq!(values(&text, "before"), ["true", "true"]);
    assert_eq!(values(&text, "after"), ["false", "false"]);
    assert_eq!(values(&text, "again"), ["false"]);
}

#[test]
#[ignore = "needs root"]
fn the_process_cannot_be_traced_but_its_programs_can() {
    let text = output("traced", &[]);
    assert_eq!(values(&text, "own"), ["false"]);
    assert_eq!(values(&text, "child"), ["true"]);
}

#[test]
#[ignore = "needs root"]
fn an_ordinary_user_is_never_behind_sudo() {
    let text = output("twice", &[("SUDO_UID", "65534")]);
    assert_eq!(values(&text, "caller"), ["false"]);
}

#[test]
#[ignore = "needs root"]
fn variables_that_sudo_would_not_set_stop_the_program() {
    for (uid, gid) in [("x", "0"), ("-1", "0"), ("4294900000", "0"), ("65534", "0")] {
        let output = run(
            "sudo",
            &[("SUDO_UID", uid), ("SUDO_GID", gid)],
            &["--keep-groups"],
        );
        assert!(!output.status.success(), "{uid} {gid}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("CapEff"));
    }
}

#[test]
#[ignore = "needs root"]
fn inherited_capabilities_are_given_up() {
    let options = ["--inh-caps=+sys_admin", "--ambient-caps=+sys_admin"];
    let text = output_of(run("ambient", &[], &options));
    assert_eq!(values(&text, "given"), ["0000000000200000"]);
    assert_eq!(values(&text, "CapAmb"), ["0000000000000000"]);
    assert_eq!(values(&text, "CapPrm"), ["0000000000000000"]);
}

#[test]
#[ignore = "needs root"]
fn a_process_that_keeps_its_capabilities_is_told_so() {
    // With this bit the kernel leaves the capabilities as they are when the user changes.
    let text = output_of(run("keep", &[], &["--securebits=+no_setuid_fixup"]));
    assert!(!values(&text, "kept").is_empty());
}
