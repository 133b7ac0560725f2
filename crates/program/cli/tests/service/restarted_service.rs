//! A service that is started again whenever it ends, as systemd does.

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::served_host::{ServedHost, wait_for};

/// The pause before a service that has ended is started again; the same as in the unit.
const RESTART_PAUSE: Duration = Duration::from_millis(100);

/// A host with a service that is started again whenever it ends.
pub struct RestartedService {
    pub served: ServedHost,
    running: Arc<Mutex<Running>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The service that runs, and when it was started.
struct Running {
    service: Child,
    since: Instant,
}

impl RestartedService {
    pub fn new(gpus: &str, policy: &str) -> Self {
        let served = ServedHost::new(gpus, policy);
        let template = served.serve();
        let (program, folder) = (served.program(), served.host.folder().to_owned());
        let args: Vec<_> = template.get_args().map(ToOwned::to_owned).collect();
        let start = move || Running {
            service: std::process::Command::new(&program)
                .args(&args)
                .env("SWEETSPOT_SIM", &folder)
                .spawn()
                .unwrap(),
            since: Instant::now(),
        };
        let running = Arc::new(Mutex::new(start()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (shared, end) = (running.clone(), is_over.clone());
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                let has_ended = shared.lock().unwrap().service.try_wait().unwrap().is_some();
                if has_ended {
                    std::thread::sleep(RESTART_PAUSE);
                    *shared.lock().unwrap() = start();
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        wait_for("the socket", || served.socket().exists());
        Self {
            served,
            running,
            is_over,
            thread: Some(thread),
        }
    }

    /// Kills the service.
    pub fn kill(&self) {
        self.running.lock().unwrap().service.kill().unwrap();
    }

    /// Waits until a service runs that was started after this moment, and returns when that was.
    pub fn wait_for_restart(&self, after: Instant) -> Instant {
        let since = || self.running.lock().unwrap().since;
        wait_for("the next service", || since() > after);
        since()
    }
}

impl Drop for RestartedService {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
        if let Ok(mut running) = self.running.lock() {
            let _ = running.service.kill();
            let _ = running.service.wait();
        }
    }
}
