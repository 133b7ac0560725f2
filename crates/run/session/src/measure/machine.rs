//! Where something was measured.

/// The machine and the versions on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Kernel and its release.
    pub kernel: String,
    /// The processor, where it is known.
    pub processor: Option<String>,
    /// Logical processors.
    pub processors: usize,
    /// Of the GPUs' driver, where it is known.
    pub driver: Option<String>,
    /// Of this program.
    pub version: &'static str,
    /// Whether the GPUs are simulated.
    pub simulated: bool,
}

impl Machine {
    /// This one.
    pub fn here(driver: Option<String>) -> Self {
        let system = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processors
            .lines()
            .find_map(|line| line.strip_prefix("model name"));
        Self {
            kernel: format!("{} {}", text(system.sysname()), text(system.release())),
            processor: model.map(|name| name.trim_start_matches([' ', '\t', ':']).to_owned()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            driver,
            version: env!("CARGO_PKG_VERSION"),
            simulated: std::env::var_os(sweetspot_sim_host::ENVIRONMENT).is_some(),
        }
    }
}
