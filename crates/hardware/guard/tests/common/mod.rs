//! A guard over devices that are stored in files, which the test can read and change.
#![allow(dead_code)]

mod device;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use device::{DeviceState, FakeDevice};
use sweetspot_device::{ControllableDevice, DeviceId, OpenError, Settings};
use sweetspot_guard::{ClientConnection, Guard, Journal, Leases, LocalWriter, serve, start_guard};
use sweetspot_quantity::{Megahertz, Watts};

const FOLDER: &str = "SWEETSPOT_TEST_GUARD";

/// Serves as a guard if this test program was started as one; the test `guard_process` of every file calls it.
pub fn serve_if_guard_process() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let machine = Path::new(&folder);
    std::fs::write(machine.join("guard.pid"), std::process::id().to_string()).unwrap();
    let client = ClientConnection::from_standard_input().unwrap();
    let journal = Journal::open(&machine.join("journal")).unwrap();
    let leases = Leases::new(journal, |id| open(machine, id));
    serve(client, &mut LocalWriter::new(leases)).unwrap();
}

/// Opens a device as the guard does.
pub fn open(folder: &Path, id: &DeviceId) -> Result<Box<dyn ControllableDevice>, OpenError> {
    Ok(Box::new(FakeDevice::open(folder, id)?))
}

/// A folder with devices and a journal.
pub struct TestMachine {
    folder: tempfile::TempDir,
}

pub fn id(name: &str) -> DeviceId {
    DeviceId::new(name)
}

pub fn cap(watts: f64) -> Settings {
    Settings {
        power_cap: Some(Watts::new(watts)),
        ..Settings::default()
    }
}

pub fn core(megahertz: f64) -> Settings {
    Settings {
        core_clock: Some(Megahertz::new(megahertz)),
        ..Settings::default()
    }
}

impl TestMachine {
    /// Creates devices at 250 W with unlocked clocks.
    pub fn new(devices: &[&str]) -> Self {
        let machine = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        Journal::open(&machine.journal_folder()).unwrap();
        for device in devices {
            DeviceState::default().write(machine.folder(), &id(device));
        }
        machine
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn journal_folder(&self) -> PathBuf {
        self.folder().join("journal")
    }

    pub fn journal(&self) -> Journal {
        Journal::open(&self.journal_folder()).unwrap()
    }

    pub fn state(&self, device: &str) -> DeviceState {
        DeviceState::read(self.folder(), &id(device))
    }

    /// Changes a device without the guard, faults included.
    pub fn change(&self, device: &str, change: impl FnOnce(&mut DeviceState)) {
        let mut state = self.state(device);
        change(&mut state);
        state.write(self.folder(), &id(device));
    }

    /// All writes to devices, in order.
    pub fn writes(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.folder().join("writes")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// The journals on disk.
    pub fn journals(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.journal_folder()).unwrap().flatten();
        files
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "journal"))
            .collect()
    }

    pub fn program(&self) -> Command {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program
            .args(["guard_process", "--exact", "--test-threads=1"])
            .env(FOLDER, self.folder())
            .stdout(Stdio::null());
        program
    }

    pub fn guard(&self) -> Guard {
        Guard::start(self.program()).unwrap()
    }

    /// The process id of the guard that was started last.
    pub fn guard_pid(&self) -> u32 {
        let text = std::fs::read_to_string(self.folder().join("guard.pid")).unwrap();
        text.parse().unwrap()
    }

    /// A guard without a client.
    pub fn raw_guard(&self) -> RawGuard {
        let (stream, child) = start_guard(self.program()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut guard = RawGuard {
            replies: BufReader::new(stream.try_clone().unwrap()),
            stream,
            child,
        };
        assert!(
            guard.receive().contains("pong"),
            "the guard says that it has started"
        );
        guard
    }
}

/// A guard process that the test talks to directly, without a client.
pub struct RawGuard {
    pub stream: UnixStream,
    replies: BufReader<UnixStream>,
    child: Child,
}

impl RawGuard {
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next line that the guard sends.
    pub fn receive(&mut self) -> String {
        let mut line = String::new();
        self.replies.read_line(&mut line).unwrap();
        line
    }

    pub fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\n").as_bytes());
        self.receive()
    }

    /// Closes the connection and returns whether the guard exited with success.
    pub fn disconnect(mut self) -> bool {
        drop((self.stream, self.replies));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        false
    }
}

/// Whether a process runs whose command line contains this text.
pub fn is_running(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(marker)
    })
}

/// Waits until a condition is true.
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to a process.
pub fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Stops a process, and waits until all of its threads have stopped: `kill` returns while some of them still run.
pub fn stop(pid: u32) {
    kill("-STOP", pid);
    let is_stopped = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let state = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        state.is_none_or(|state| state == 'T')
    };
    loop {
        let mut tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
            .unwrap()
            .flatten();
        if tasks.all(is_stopped) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
