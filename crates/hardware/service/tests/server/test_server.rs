//! A service in a thread of the test, with clients of several users.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use sweetspot_guard::{Journal, Leases};
use sweetspot_service::policy::{Policy, SystemAccounts};
use sweetspot_service::{Audit, ServedGpu, ServerOptions, Service, listen, serve};
use tempfile::TempDir;

use super::device::{GPUS, Gpus, id_of};

/// A user whom the policy allows everything, and another one.
pub const ALICE: u32 = 70_001;
pub const BOB: u32 = 70_002;

/// The first of many users whom the policy allows nothing.
pub const STRANGERS: u32 = 80_000;

/// A user who may set ceilings and nothing else.
pub const OPERATOR: u32 = 70_003;

const POLICY: &str = "
[[allow]]
users = [70001, 70002]
power-cap = true
core-clock = true

[[allow]]
users = [70003]
ceiling = true
";

/// The longest wait for something that should happen at once.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Only one service at a time: SIGTERM stops all of a process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A service that runs in a thread.
pub struct TestServer {
    pub gpus: Gpus,
    folder: TempDir,
    thread: Option<JoinHandle<()>>,
    /// The folder of the thread in /proc.
    status: PathBuf,
    _only: MutexGuard<'static, ()>,
}

impl TestServer {
    pub fn start() -> Self {
        let only = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        // Clients of all users must get to the socket.
        let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), everyone).unwrap();
        let gpus = Gpus::new();
        let (place, devices) = (folder.path().to_owned(), gpus.clone());
        let (sender, started) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let journal = Journal::open(&place.join("journal")).unwrap();
            let leases = Leases::new(journal, |id| Ok(devices.open(id)?));
            let served = (0..GPUS).map(|gpu| ServedGpu {
                device: devices.open(&id_of(gpu)).unwrap(),
            });
            let policy = Policy::from_text(POLICY, "policy.toml", &SystemAccounts).unwrap();
            let audit = Audit::open(&place.join("audit.jsonl")).unwrap();
            let mut service = Service::new(leases, served.collect(), Some(policy), audit);
            let options = ServerOptions {
                listener: Some(listen(&place.join("socket")).unwrap()),
                first: None,
                reload: &mut || Err("no".to_owned()),
            };
            sender
                .send(std::fs::read_link("/proc/thread-self").unwrap())
                .unwrap();
            serve(&mut service, options).unwrap();
        });
        let status = Path::new("/proc").join(started.recv().unwrap());
        let server = Self {
            gpus,
            folder,
            thread: Some(thread),
            status,
            _only: only,
        };
        // The signals are caught once the service answers.
        let mut first = server.connect_as(ALICE);
        assert!(first.ask(TIME).starts_with("HTTP/1.1 200"));
        server
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The lines of the audit log.
    pub fn audit(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.path("audit.jsonl")).unwrap();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }

    /// Connects as a user. To the kernel each thread has a user of its own.
    pub fn connect_as(&self, uid: u32) -> TestClient {
        let socket = self.path("socket");
        let connect = move || {
            become_user(uid);
            UnixStream::connect(socket).unwrap()
        };
        let stream = std::thread::spawn(connect).join().unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        TestClient { stream }
    }

    /// The share of a processor that the service uses within a second.
    pub fn load(&self) -> f64 {
        let begun = Instant::now();
        let before = self.processor_time();
        std::thread::sleep(Duration::from_secs(1));
        (self.processor_time() - before) / begun.elapsed().as_secs_f64()
    }

    /// The seconds for which the service's thread has run.
    fn processor_time(&self) -> f64 {
        let text = std::fs::read_to_string(self.status.join("schedstat")).unwrap();
        let nanoseconds: f64 = text.split(' ').next().unwrap().parse().unwrap();
        nanoseconds * 1e-9
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        kill_process(getpid(), Signal::TERM).unwrap();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// Makes the calling thread one of another user. The functions of the C library would change all threads.
#[allow(unsafe_code)]
fn become_user(uid: u32) {
    // SAFETY: these calls take numbers alone, and no list of groups.
    let results = unsafe {
        [
            libc::syscall(libc::SYS_setgroups, 0, 0),
            libc::syscall(libc::SYS_setresgid, uid, uid, uid),
            libc::syscall(libc::SYS_setresuid, uid, uid, uid),
        ]
    };
    assert_eq!(results, [0; 3], "the test needs root");
}

/// A request that everybody may make.
pub const TIME: &str = "GET /time HTTP/1.1\r\nHost: a\r\n\r\n";

/// The first line of a client that speaks JSON.
pub const HELLO: &str = "{\"hello\":{\"version\":1}}\n";

/// A connection of a client.
pub struct TestClient {
    pub stream: UnixStream,
}

impl TestClient {
    pub fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// The next bytes that arrive; empty if the service has closed the connection.
    pub fn receive(&mut self) -> String {
        let mut chunk = [0; 65536];
        let length = match self.stream.read(&mut chunk) {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            read => read.unwrap(),
        };
        String::from_utf8_lossy(&chunk[..length]).into_owned()
    }

    /// Everything that arrives until this text has arrived so often, or the connection is closed.
    pub fn receive_until(&mut self, text: &str, times: usize) -> String {
        let mut all = String::new();
        while all.matches(text).count() < times {
            match self.receive() {
                rest if rest.is_empty() => break,
                more => all.push_str(&more),
            }
        }
        all
    }

    /// Sends a request and reads the beginning of the answer.
    pub fn ask(&mut self, request: &str) -> String {
        self.send(request);
        self.receive()
    }
}

/// A line that leases a GPU.
pub fn lease(gpu: usize) -> String {
    format!("{{\"lease\":{{\"devices\":[\"{}\"]}}}}\n", id_of(gpu))
}

/// A line that sets the power cap of a GPU.
pub fn apply(gpu: usize, watts: usize) -> String {
    let id = id_of(gpu);
    format!("{{\"apply\":{{\"device\":\"{id}\",\"settings\":{{\"power_cap\":\"{watts} W\"}}}}}}\n")
}
