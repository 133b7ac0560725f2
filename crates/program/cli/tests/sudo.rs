//! `--sudo`, and the program under sudo: only a process that changes settings runs as root.
//!
//! The real sudo runs in a mount namespace with accounts and rules of its own, so that the machine stays as it is.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use sweetspot_sim_host::Host;

use crate::common::text;
use crate::host::TestHost;

/// The accounts of the namespace: one may only start the process that changes settings, one may do everything.
const ACCOUNTS: [(&str, u32); 2] = [("sst-limited", 62_101), ("sst-admin", 62_102)];

/// A simulated host, and a folder of root with the program and the library.
struct SudoHost {
    host: TestHost,
    folder: PathBuf,
}

impl SudoHost {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(format!("/run/sweetspot-sudo-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        let host = TestHost::new("v100");
        let program = folder.join("sweetspot");
        std::fs::copy(env!("CARGO_BIN_EXE_sweetspot"), &program).unwrap();
        std::fs::copy(
            host.folder().join("lib/libnvidia-ml.so.1"),
            folder.join("libnvidia-ml.so.1"),
        )
        .unwrap();
        let (mut passwd, mut shadow, mut group) = (String::new(), String::new(), String::new());
        for (name, id) in ACCOUNTS {
            let home = folder.join(name);
            std::fs::create_dir(&home).unwrap();
            std::os::unix::fs::chown(&home, Some(id), Some(id)).unwrap();
            passwd += &format!("{name}:x:{id}:{id}::{}:/bin/sh\n", home.display());
            group += &format!("{name}:x:{id}:\n");
            shadow += &format!("{name}:*:19000:0:99999:7:::\n");
        }
        let rules = format!(
            "Defaults env_keep += \"SWEETSPOT_SIM SWEETSPOT_NVML\"\n\
             sst-limited ALL=(root) NOPASSWD: {0} root-guard *\n\
             sst-admin ALL=(root) NOPASSWD: ALL\n",
            program.display()
        );
        let machine = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        let write = |name: &str, text: String, mode: u32| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write("passwd", machine("/etc/passwd") + &passwd, 0o644);
        write("group", machine("/etc/group") + &group, 0o644);
        write("shadow", machine("/etc/shadow") + &shadow, 0o600);
        write("sudoers", rules, 0o440);
        std::fs::create_dir(folder.join("var")).unwrap();
        Self { host, folder }
    }

    /// Runs a shell script as one of the accounts; `$S` is the program.
    fn run_as(&self, account: &str, script: &str) -> Output {
        let folder = self.folder.display();
        let inner = format!(
            "cd {folder}/{account} && exec setpriv --reuid {account} --regid {account} --init-groups \
             env -i HOME={folder}/{account} PATH=/usr/sbin:/usr/bin:/sbin:/bin \
             SWEETSPOT_SIM={} SWEETSPOT_NVML={folder}/libnvidia-ml.so.1 sh -c \"$SCRIPT\"",
            self.host.folder().display()
        );
        let outer = format!(
            "set -e; mount --bind {folder}/passwd /etc/passwd; mount --bind {folder}/group /etc/group; \
             mount --bind {folder}/shadow /etc/shadow; mount --bind {folder}/sudoers /etc/sudoers; mount -t tmpfs none /var/lib; mount -t tmpfs none /var/log; \
             {inner}"
        );
        Command::new("unshare")
            .args(["--mount", "sh", "-c", &outer])
            .env(
                "SCRIPT",
                script.replace("$S", &format!("{folder}/sweetspot")),
            )
            .output()
            .unwrap()
    }

    fn cap(&self) -> f64 {
        let host = Host::open(self.host.folder()).unwrap();
        host.gpus()[0]
            .with_gpu(|gpu| gpu.power_cap().get())
            .unwrap()
    }
}

impl Drop for SudoHost {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What the child sees: its user, and the power cap.
const LOOK: &str = "sh -c 'id -un; $S devices | grep \"power cap:\"'";

fn shown(output: &Output) -> String {
    let error = text(&output.stderr);
    assert!(output.status.success(), "{error}");
    text(&output.stdout) + &error
}

#[test]
#[ignore = "needs root and sudo"]
fn only_the_process_that_changes_settings_runs_as_root() {
    let host = SudoHost::new("flag");
    let output = host.run_as(
        "sst-limited",
        &format!("$S run --sudo --power-cap 180W --export-json run.json -- {LOOK}"),
    );
    let shown = shown(&output);
    assert!(shown.contains("sst-limited\n"), "{shown}");
    assert!(shown.contains("180 W requested"), "{shown}");
    let document = host.folder.join("sst-limited/run.json");
    assert_eq!(document.metadata().unwrap().uid(), ACCOUNTS[0].1);
    assert_eq!(host.cap(), 300.0);
    // The rule of this account allows nothing else.
    let output = host.run_as("sst-limited", "sudo -n id");
    assert!(!output.status.success());
}

/// Waits for a process of root at a socket, and asks it for a GPU: this is logged.
const LISTENER: &str = r#"
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind("socket")
listener.listen(1)
stream = listener.accept()[0].makefile("rw")
for line in ['{"hello":{"version":1}}', '{"lease":{"devices":["%s"]}}' % sys.argv[1]]:
    print(line, file=stream, flush=True)
    stream.readline()
"#;

/// The log has the command line of the user's process. In a file such as /etc/ld.so.preload it would make root load a
/// library of the user.
#[test]
#[ignore = "needs root and sudo"]
fn an_account_that_may_only_change_settings_chooses_no_files() {
    let host = SudoHost::new("files");
    let gpu = Host::open(host.host.folder()).unwrap().gpus()[0].uuid();
    std::fs::write(host.folder.join("listen.py"), LISTENER).unwrap();
    let chosen = host.folder.join("chosen");
    for flag in ["--audit", "--journal"] {
        let script = format!(
            "rm -f socket; /usr/bin/python3 ../listen.py {gpu} & \
             while [ ! -S socket ]; do sleep 0.1; done; \
             sudo -n $S root-guard {flag} {} --nvml {}/libnvidia-ml.so.1 $PWD/socket; kill $!",
            chosen.display(),
            host.folder.display()
        );
        let output = host.run_as("sst-limited", &script);
        let error = text(&output.stderr);
        assert!(!chosen.exists(), "{flag}: {error}");
        assert!(error.contains("unexpected argument"), "{flag}: {error}");
    }
}

/// The file of root would be another one, and the process that stays root reads none.
#[test]
#[ignore = "needs root and sudo"]
fn under_sudo_the_configuration_file_of_the_calling_user_is_read() {
    let host = SudoHost::new("config");
    let script = "mkdir -p .config/sweetspot; echo 'objectiv = 1' >.config/sweetspot/config.toml; ";
    let run_as_admin = |line: &str| host.run_as("sst-admin", &format!("{script} {line}"));
    let output = run_as_admin("sudo $S tune --simulate v100 --network resnet50");
    let expected = format!(
        "sweetspot: {}/sst-admin/.config/sweetspot/config.toml, line 1: unknown key `objectiv`: write objective\n",
        host.folder.display()
    );
    assert_eq!(text(&output.stderr), expected);
    shown(&run_as_admin("sudo $S run --power-cap 190W -- true"));
    assert_eq!(host.cap(), 300.0);
}

#[test]
#[ignore = "needs root and sudo"]
fn under_sudo_the_program_becomes_the_calling_user() {
    let host = SudoHost::new("whole");
    let output = host.run_as(
        "sst-admin",
        &format!("sudo $S run --power-cap 190W --measure --export-json run.json -- sh -c 'id -un; id -G; echo $HOME $USER $LOGNAME; {}; cat /proc/self/status'", LOOK.replace('\'', "\"").replace("\"power cap:\"", "power.cap:")),
    );
    let shown = shown(&output);
    let home = host.folder.join("sst-admin").display().to_string();
    assert!(
        shown.contains(&format!("{home} sst-admin sst-admin\n")),
        "{shown}"
    );
    assert!(shown.contains("190 W requested"), "{shown}");
    let uid = ACCOUNTS[1].1;
    assert!(
        shown.contains(&format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n")),
        "{shown}"
    );
    assert!(
        shown.contains(&format!("Gid:\t{uid}\t{uid}\t{uid}\t{uid}\n")),
        "{shown}"
    );
    assert!(shown.contains("CapEff:\t0000000000000000\n"), "{shown}");
    let document = host.folder.join("sst-admin/run.json");
    assert_eq!(document.metadata().unwrap().uid(), uid);
    assert_eq!(host.cap(), 300.0);
    // Other commands become the user too; with --as-root everything stays root's.
    for (flags, user) in [("measure", "sst-admin"), ("measure --as-root", "root")] {
        let output = host.run_as("sst-admin", &format!("sudo $S {flags} -- id -un"));
        let shown = self::shown(&output);
        assert!(shown.starts_with(&format!("{user}\n")), "{flags}: {shown}");
    }
}

#[test]
#[ignore = "needs root and sudo"]
fn sweep_tune_and_hold_work_through_sudo() {
    let host = SudoHost::new("verbs");
    let work = "$S sim-workload --network resnet50 --seconds 0.3";
    let hold = "$S sim-workload --network alexnet@dvfs_2019 --infer --serve --seconds 3";
    for (account, command) in [
        (
            "sst-limited",
            format!("$S sweep --sudo --power-cap 200,250 --repeat 1 -- {work}"),
        ),
        (
            "sst-admin",
            format!("sudo $S sweep --power-cap 200,250 --repeat 1 -- {work}"),
        ),
        ("sst-limited", format!("$S tune --sudo -- {work}")),
        ("sst-admin", format!("sudo $S tune -- {work}")),
        (
            "sst-limited",
            format!("$S hold --sudo --knob power-cap --below 200W -- {hold}"),
        ),
        (
            "sst-admin",
            format!("sudo $S hold --knob power-cap --below 200W -- {hold}"),
        ),
    ] {
        let before = host.host.writes().lines().count();
        let output = host.run_as(account, &command);
        let all = text(&output.stdout) + &text(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{command}: {all}"
        );
        assert!(!all.contains("permission"), "{command}: {all}");
        let is_short_tune = command.contains("tune");
        assert!(
            is_short_tune || host.host.writes().lines().count() > before,
            "{command}: {all}"
        );
        assert_eq!(host.cap(), 300.0, "{command}");
    }
    let studies = host.folder.join("sst-limited/studies");
    assert_eq!(studies.metadata().unwrap().uid(), ACCOUNTS[0].1);
    let studies = host.folder.join("sst-admin/studies");
    assert_eq!(studies.metadata().unwrap().uid(), ACCOUNTS[1].1);
}

/// The process of this program that runs this subcommand.
fn find_process(program: &Path, subcommand: &str) -> Option<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_it = |entry: &std::fs::DirEntry| {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0);
        words.next() == Some(program.as_os_str().as_encoded_bytes())
            && words.next() == Some(subcommand.as_bytes())
    };
    let found = processes.into_iter().find(is_it)?;
    found.file_name().into_string().ok()
}

fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_true() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

/// Whichever process is killed, the cap is back.
#[test]
#[ignore = "needs root and sudo"]
fn settings_are_restored_after_kills() {
    let host = SudoHost::new("kills");
    let work = "-- sh -c 'touch ready; exec sleep 5'";
    for (account, command) in [
        (
            "sst-limited",
            format!("$S run --sudo --power-cap 180W {work}"),
        ),
        ("sst-admin", format!("sudo $S run --power-cap 180W {work}")),
    ] {
        for victim in ["run", "guard", "root-guard"] {
            let ready = host.folder.join(account).join("ready");
            let _ = std::fs::remove_file(&ready);
            let output = std::thread::scope(|scope| {
                let run = scope.spawn(|| host.run_as(account, &command));
                wait_until("the command runs", || ready.exists());
                assert_eq!(host.cap(), 180.0);
                let pid = find_process(&host.folder.join("sweetspot"), victim).unwrap();
                Command::new("kill").args(["-KILL", &pid]).status().unwrap();
                run.join().unwrap()
            });
            let shown = text(&output.stdout) + &text(&output.stderr);
            wait_until(&format!("{account} {victim}: {shown}"), || {
                host.cap() == 300.0
            });
        }
    }
}

#[test]
#[ignore = "needs root and sudo"]
fn the_ways_to_get_the_permission_are_named() {
    let host = SudoHost::new("ways");
    let output = host.run_as("sst-limited", "$S run --power-cap 180W -- true");
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(
        text(&output.stderr),
        "sweetspot: Tesla V100-SXM2-16GB: no permission to set power cap: it needs root: add --sudo, run `sudo sweetspot ...`, or ask your administrator for the service (`sudo sweetspot serve --install`)\n"
    );
    assert_eq!(host.host.writes(), "");
}
