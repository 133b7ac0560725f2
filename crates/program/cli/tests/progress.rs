//! All commands count the same items, however the program reports its progress.

use std::process::{Command, Stdio};

use crate::common::text;
use crate::host::TestHost;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// The number of items that a command of the program counts.
fn items(host: &TestHost, verb: &str, pattern: &str, command: &[&str]) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answer.json");
    let flags: &[&str] = match verb {
        // An earlier run must not influence this one.
        "tune" => &["--fresh"],
        "run" => &["--power-cap", "250W"],
        "sweep" => &["--power-cap", "300", "--repeat", "1", "--settle", "0s"],
        _ => &[],
    };
    let output = host
        .sweetspot()
        .arg(verb)
        .args(flags)
        .args(["--progress", pattern, "--export-json"])
        .arg(&file)
        .arg("--")
        .args(command)
        .env("XDG_STATE_HOME", folder.path())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = std::fs::read_to_string(&file);
    let text = text.unwrap_or_else(|error| panic!("{verb}: {error}: {output:?}"));
    let answer: Value = serde_json::from_str(&text).unwrap();
    let items = match verb {
        "sweep" => &answer["points"][0]["items"],
        _ => &answer["items"],
    };
    items
        .as_f64()
        .unwrap_or_else(|| panic!("{verb}: {answer}: {output:?}"))
}

fn assert_all_verbs_count(expected: f64, pattern: &str, command: &[&str]) {
    let host = TestHost::new("v100");
    for verb in ["measure", "run", "tune", "sweep"] {
        assert_eq!(items(&host, verb, pattern, command), expected, "{verb}");
    }
}

const EPOCHS: &str =
    "for epoch in 1 2 3; do for step in $(seq 40); do echo step $step; done; sleep 0.2; done";

#[test]
fn a_count_that_restarts_each_epoch_is_summed() {
    assert_all_verbs_count(120.0, r"step (\d+)", &["sh", "-c", EPOCHS]);
}

#[test]
fn a_line_without_a_number_is_one_item() {
    assert_all_verbs_count(120.0, "^step", &["sh", "-c", EPOCHS]);
}

#[test]
fn the_link_has_priority_over_the_output() {
    // The stand-in workload reports every batch over the link, and prints a rate too.
    let training = "sim-workload --network resnet50 --batch 100 --items 800";
    let mut command = vec![PROGRAM];
    command.extend(training.split(' '));
    assert_all_verbs_count(800.0, r"images/sec: ([\d.]+)", &command);
}

#[test]
fn a_rate_gives_the_same_count_everywhere() {
    let host = TestHost::new("v100");
    let script = "for second in 1 2 3; do sleep 0.5; echo images/sec: 100; done; sleep 0.5";
    let counted = |verb| items(&host, verb, r"images/sec: ([\d.]+)", &["sh", "-c", script]);
    for verb in ["measure", "run", "tune", "sweep"] {
        let items = counted(verb);
        assert!((200.0..235.0).contains(&items), "{verb}: {items}");
    }
}

#[test]
fn a_program_that_nobody_changed_is_counted_everywhere() {
    let script = "for epoch in 1 2 3; do for step in $(seq 40); do echo epoch $epoch step $step loss 0.5; done; done";
    assert_all_verbs_count(120.0, "auto", &["sh", "-c", script]);
    assert_all_verbs_count(120.0, "steps", &["sh", "-c", script]);
}

/// Runs `sweetspot` with these words on a terminal of 33 rows and 77 columns, types the given keys when the command has printed
/// `ready`, and returns what is on the terminal.
fn on_terminal(host: &TestHost, verb: &str, script: &str, keys: &str) -> String {
    const TERMINAL: &str = r#"
import fcntl, os, pty, struct, sys, termios
keys, command = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    os.execv(command[0], command)
shown = b""
while True:
    try:
        shown += os.read(terminal, 4096)
    except OSError:
        break
    if keys and b"ready" in shown:
        os.write(terminal, keys.encode())
        keys = ""
os.waitpid(child, 0)
sys.stdout.buffer.write(shown)
"#;
    let sweetspot = host.sweetspot();
    let mut command = Command::new("python3");
    command
        .args(["-c", TERMINAL, keys])
        .arg(sweetspot.get_program());
    command.args(sweetspot.get_args()).args(verb.split(' '));
    command.args(["--", "sh", "-c", script]);
    for (name, value) in sweetspot.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout).to_owned()
}

/// Says on which kind of stream it writes, and the size of the terminal.
const LOOK: &str = r"test -t 1 && test -t 2 && stty size <&1; printf 'a\033[1mb\tc\r'; echo ready";

#[test]
fn a_program_on_a_terminal_still_writes_to_one() {
    let host = TestHost::new("v100");
    // The second is started by the guard.
    for verb in ["measure", "run --power-cap 250W --measure"] {
        let shown = on_terminal(&host, verb, LOOK, "");
        let expected = "33 77\r\na\u{1b}[1mb\tc\rready\r\n";
        assert!(shown.contains(expected), "{verb}: {shown:?}");
    }
    // A pattern is searched in the output as it is without a terminal.
    let shown = on_terminal(&host, r"measure --progress step\s(\d+)", LOOK, "");
    assert!(shown.contains("ready"), "{shown:?}");
    assert!(!shown.contains("33 77"), "{shown:?}");
    let shown = on_terminal(&host, "measure --progress none", LOOK, "");
    assert!(shown.contains("33 77"), "{shown:?}");
}

#[test]
fn ctrl_c_reaches_a_program_on_a_terminal() {
    let host = TestHost::new("v100");
    let script =
        "trap 'echo interrupted; exit 3' INT; echo ready; for i in $(seq 200); do sleep 0.1; done";
    for verb in ["measure", "run --power-cap 250W --measure"] {
        let shown = on_terminal(&host, verb, script, "\u{3}");
        assert!(shown.contains("^Cinterrupted\r\n"), "{verb}: {shown:?}");
        assert!(shown.contains("exit code 3"), "{verb}: {shown:?}");
    }
}
