use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use tempfile::TempDir;

use super::*;

/// A folder to install into, with a program to install and tools that write down how they are called.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for folder in ["root", "tools"] {
            fs::create_dir(machine.path(folder)).unwrap();
            set_mode(&machine.path(folder), 0o755);
        }
        machine.set_program("first");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The place of an absolute path of the machine.
    fn installed(&self, path: &str) -> PathBuf {
        self.options().place(path)
    }

    fn set_program(&self, content: &str) {
        fs::write(self.path("program"), content).unwrap();
    }

    fn options(&self) -> Installation {
        Installation {
            root: self.path("root"),
            program: self.path("program"),
            nvml: None,
            start: true,
        }
    }

    /// Adds a tool that succeeds, or prints a message and fails.
    fn add_tool(&self, name: &str, failure: Option<&str>) {
        let end = failure.map_or("exit 0".to_owned(), |text| {
            format!("echo '{text}' >&2; exit 3")
        });
        let script = format!(
            "#!/bin/sh\necho \"{name} $*\" >> {calls}\nenv >> {environment}\n{end}\n",
            calls = self.path("calls").display(),
            environment = self.path("environment").display(),
        );
        // A file cannot be executed while any process has it open for writing, and a process that another test starts
        // meanwhile would inherit the file from this one. So another process writes it.
        let written = Command::new("sh")
            .args(["-c", "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(self.path("tools").join(name))
            .arg(script)
            .status();
        assert!(written.unwrap().success());
    }

    /// A running system with systemd and the tools of this machine.
    fn host(&self, has_group: bool) -> Host {
        Host {
            tools: Some(vec![self.path("absent"), self.path("tools")]),
            has_systemd: true,
            has_group,
        }
    }

    /// The calls of tools since the last time.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("calls")).unwrap_or_default();
        let _ = fs::remove_file(self.path("calls"));
        text.lines().map(str::to_owned).collect()
    }

    /// All files and folders below the root, with their modes.
    fn tree(&self) -> Vec<(String, u32)> {
        let root = self.path("root");
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let metadata = entry.metadata().unwrap();
                let path = entry.path();
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                found.push((name, metadata.permissions().mode() & 0o7777));
                if metadata.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn files_and_folders_have_their_place_and_mode() {
    let machine = Machine::new();
    let done = install(&machine.options()).unwrap();
    let expected = [
        ("etc", 0o755),
        ("etc/sweetspot", 0o755),
        ("etc/sweetspot/policy.toml", 0o644),
        ("etc/systemd", 0o755),
        ("etc/systemd/system", 0o755),
        ("etc/systemd/system/sweetspot-monitor.service", 0o644),
        ("etc/systemd/system/sweetspot-monitor.socket", 0o644),
        ("etc/systemd/system/sweetspot.service", 0o644),
        ("usr", 0o755),
        ("usr/local", 0o755),
        ("usr/local/libexec", 0o755),
        ("usr/local/libexec/sweetspot", 0o755),
        ("usr/local/libexec/sweetspot/sweetspot", 0o755),
        ("var", 0o755),
        ("var/lib", 0o755),
        ("var/lib/sweetspot", 0o700),
        ("var/lib/sweetspot/journal", 0o700),
        ("var/log", 0o755),
        ("var/log/sweetspot", 0o700),
    ];
    assert_eq!(
        machine.tree(),
        expected.map(|(name, mode)| (name.to_owned(), mode))
    );
    assert_eq!(read(&machine.installed(PROGRAM)), "first");
    assert_eq!(done.len(), 4, "{done:#?}");
    assert!(done[3].contains("left to you"), "{done:#?}");
}

#[test]
fn a_second_installation_upgrades_and_keeps_the_policy() {
    let machine = Machine::new();
    install(&machine.options()).unwrap();
    let tree = machine.tree();
    let done = install(&machine.options()).unwrap();
    assert!(
        done[0].contains("up to date") && done[2].contains("up to date"),
        "{done:#?}"
    );

    fs::write(machine.installed(POLICY), "mine").unwrap();
    fs::write(machine.installed(UNIT), "old").unwrap();
    machine.set_program("second, longer");
    // An interrupted installation left this.
    let left = machine.installed("/usr/local/libexec/sweetspot/.sweetspot.new");
    fs::write(&left, "half").unwrap();
    let done = install(&machine.options()).unwrap();
    assert_eq!(read(&machine.installed(PROGRAM)), "second, longer");
    assert_eq!(read(&machine.installed(POLICY)), "mine");
    assert!(read(&machine.installed(UNIT)).contains("CapabilityBoundingSet"));
    assert!(
        done[0].contains("is installed") && done[1].contains("kept"),
        "{done:#?}"
    );
    assert_eq!(machine.tree(), tree);
}

#[test]
fn a_program_with_another_mode_or_a_link_is_replaced() {
    let machine = Machine::new();
    install(&machine.options()).unwrap();
    let program = machine.installed(PROGRAM);
    set_mode(&program, 0o777);
    install(&machine.options()).unwrap();
    assert_eq!(
        fs::metadata(&program).unwrap().permissions().mode() & 0o7777,
        0o755
    );

    fs::remove_file(&program).unwrap();
    symlink(machine.path("program"), &program).unwrap();
    install(&machine.options()).unwrap();
    assert!(fs::symlink_metadata(&program).unwrap().is_file());
    // What the link led to is as it was.
    assert_eq!(read(&machine.path("program")), "first");
}

#[test]
fn nothing_is_installed_below_a_folder_that_others_can_change() {
    let machine = Machine::new();
    let local = machine.installed("/usr/local");
    fs::create_dir_all(&local).unwrap();
    set_mode(&local, 0o775);
    set_mode(&machine.installed("/usr"), 0o755);
    let error = install(&machine.options()).unwrap_err();
    assert!(matches!(error, InstallError::Ownership(_)), "{error}");
    assert!(error.to_string().contains("chmod go-w"), "{error}");
    assert!(!machine.installed(PROGRAM).exists() && !machine.installed(UNIT).exists());
}

#[test]
fn the_group_is_made_and_the_service_started() {
    let machine = Machine::new();
    machine.add_tool("groupadd", None);
    machine.add_tool("systemctl", None);
    install_on(&machine.options(), &machine.host(false)).unwrap();
    let expected = [
        "groupadd --system sweetspot",
        "systemctl daemon-reload",
        "systemctl enable sweetspot.service",
        "systemctl restart sweetspot.service",
    ];
    assert_eq!(machine.calls(), expected);
    // Nothing of the caller's environment reaches the tools.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let environment = read(&machine.path("environment"));
    assert!(!environment.contains("CARGO_MANIFEST_DIR"), "{environment}");

    // A restart would end all leases, so there is none without a change.
    install_on(&machine.options(), &machine.host(true)).unwrap();
    let expected = [
        "systemctl daemon-reload",
        "systemctl enable sweetspot.service",
        "systemctl start sweetspot.service",
    ];
    assert_eq!(machine.calls(), expected);

    machine.set_program("second");
    let options = Installation {
        start: false,
        ..machine.options()
    };
    install_on(&options, &machine.host(true)).unwrap();
    assert_eq!(machine.calls(), ["systemctl daemon-reload"]);
}

#[test]
fn without_systemd_the_service_is_installed_and_not_started() {
    let machine = Machine::new();
    machine.add_tool("addgroup", None);
    let host = Host {
        has_systemd: false,
        ..machine.host(false)
    };
    let done = install_on(&machine.options(), &host).unwrap();
    // This is the option of BusyBox, on systems without groupadd.
    assert_eq!(machine.calls(), ["addgroup -S sweetspot"]);
    assert!(
        done.last().unwrap().contains("sweetspot serve"),
        "{done:#?}"
    );
}

#[test]
fn missing_and_failing_tools_are_named() {
    let machine = Machine::new();
    let error = install_on(&machine.options(), &machine.host(false)).unwrap_err();
    assert!(matches!(error, InstallError::MissingTool { .. }), "{error}");
    assert!(machine.tree().is_empty());

    machine.add_tool("systemctl", Some("Unit is masked."));
    let error = install_on(&machine.options(), &machine.host(true)).unwrap_err();
    let expected = format!(
        "`{} daemon-reload` failed: Unit is masked.; see `systemctl status sweetspot` and `journalctl -u sweetspot`",
        machine.path("tools").join("systemctl").display()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn only_root_installs_on_this_machine() {
    let is_allowed = Installation::default()
        .require_permission("install")
        .is_ok();
    assert_eq!(is_allowed, geteuid().is_root());
}

#[test]
fn the_unit_names_a_library_that_only_root_can_change() {
    let machine = Machine::new();
    let with_library = |path: &Path| {
        install(&Installation {
            nvml: Some(path.to_owned()),
            ..machine.options()
        })
    };
    // Any file of root serves as a library here.
    with_library(Path::new("/etc/passwd")).unwrap();
    let unit = read(&machine.installed(UNIT));
    assert!(unit.contains("\nExecStart=/usr/local/libexec/sweetspot/sweetspot serve --monitor-link /run/sweetspot-monitor.link --nvml /etc/passwd\nExecPaths=-/etc/passwd\n"), "{unit}");
    let monitor = read(&machine.installed(MONITOR_UNIT));
    assert!(
        monitor.contains(" --listen 127.0.0.1:9440 --nvml /etc/passwd\nExecPaths=-/etc/passwd\n"),
        "{monitor}"
    );

    let mine = machine.path("libnvidia-ml.so.1");
    fs::write(&mine, "").unwrap();
    let error = with_library(&mine).unwrap_err();
    assert!(matches!(error, InstallError::Ownership(_)), "{error}");
    for path in [
        "/etc/pass wd",
        "/etc/%n",
        "/etc/$HOME",
        "etc/passwd",
        "/etc/../etc/passwd",
        "/etc",
    ] {
        let error = with_library(Path::new(path)).unwrap_err();
        assert!(
            matches!(error, InstallError::UnusableLibrary { .. }),
            "{path}: {error}"
        );
    }
    assert_eq!(read(&machine.installed(UNIT)), unit);
}

#[test]
fn uninstalling_stops_the_service_and_keeps_policy_journal_and_log() {
    let machine = Machine::new();
    machine.add_tool("systemctl", None);
    install_on(&machine.options(), &machine.host(true)).unwrap();
    machine.calls();
    let done = uninstall_on(&machine.options(), &machine.host(true)).unwrap();
    let expected = [
        "systemctl disable --now sweetspot.service",
        "systemctl daemon-reload",
    ];
    assert_eq!(machine.calls(), expected);
    for path in [
        PROGRAM,
        UNIT,
        MONITOR_UNIT,
        MONITOR_SOCKET_UNIT,
        "/usr/local/libexec/sweetspot",
    ] {
        assert!(!machine.installed(path).exists(), "{path}");
    }
    for path in [POLICY, JOURNAL_FOLDER, LOG_FOLDER, "/usr/local/libexec"] {
        assert!(machine.installed(path).exists(), "{path}");
    }
    assert_eq!(done.len(), 3, "{done:#?}");

    // The second time there is nothing to do.
    let done = uninstall_on(&machine.options(), &machine.host(true)).unwrap();
    assert_eq!(machine.calls(), Vec::<String>::new());
    assert!(done[0].contains("not installed"), "{done:#?}");
}

#[test]
fn a_service_that_cannot_be_stopped_is_not_removed() {
    let machine = Machine::new();
    install(&machine.options()).unwrap();
    machine.add_tool("systemctl", Some("timeout"));
    uninstall_on(&machine.options(), &machine.host(true)).unwrap_err();
    assert!(machine.installed(PROGRAM).exists() && machine.installed(UNIT).exists());
}

#[test]
fn settings_that_are_not_restored_are_reported() {
    let machine = Machine::new();
    install(&machine.options()).unwrap();
    let journal = machine.installed(JOURNAL_FOLDER).join("GPU-1.journal");
    fs::write(&journal, "damaged").unwrap();
    let done = uninstall(&machine.options()).unwrap();
    let warned = done
        .iter()
        .any(|text| text.starts_with("Warning") && text.contains("GPU-1.journal"));
    assert!(warned, "{done:#?}");
    assert!(journal.exists());
}

#[test]
fn the_example_policy_is_valid_toml() {
    let policy: toml::Table = EXAMPLE_POLICY.parse().unwrap();
    let rules = policy["allow"].as_array().unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0]["groups"], toml::Value::from(vec![GROUP]));
}
