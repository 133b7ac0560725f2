//! A simulated host and its NVML library, which the tests of a file share.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use sweetspot_backend_nvml::Nvml;
use sweetspot_device::{Host, HostDevice};
use sweetspot_sim::gpu_text;
use sweetspot_sim_host::{ENVIRONMENT, Host as SimulatedHost, ProfileText};

/// The host and its library. A process has one host, so only one test runs at a time.
pub struct Fixture {
    pub nvml: Nvml,
    pub host: SimulatedHost,
}

pub fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
    let library = profile.join("examples/libsimulated_nvml.so");
    assert!(
        library.exists(),
        "{} is missing: build it with `cargo build --examples -p sweetspot-backend-nvml` in the profile of the tests",
        library.display()
    );
    library
}

/// The host of this file's tests, which has these GPUs, each with the text of its faults.
pub fn shared_host(gpus: &[(&str, &str)]) -> MutexGuard<'static, Fixture> {
    static FIXTURE: OnceLock<Mutex<Fixture>> = OnceLock::new();
    let fixture = FIXTURE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap().keep();
        let specs = gpus.iter().map(|(name, faults)| {
            let (name, profile) = gpu_text(name).unwrap();
            let profile = format!("{profile}\n{faults}");
            ProfileText { name, profile }
        });
        let host = SimulatedHost::create(&folder, specs.collect(), None, 1).unwrap();
        // SAFETY: every test calls this before anything else.
        unsafe { std::env::set_var(ENVIRONMENT, &folder) };
        let nvml = Nvml::open(Some(library().as_os_str())).unwrap();
        Mutex::new(Fixture { nvml, host })
    });
    fixture.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fixture {
    pub fn gpu(&self, index: usize) -> Box<dyn HostDevice> {
        self.nvml.list().unwrap().swap_remove(index)
    }
}
