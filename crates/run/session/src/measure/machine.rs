//! The computer that a measurement was made on.

/// The computer on which a measurement was made: processor, kernel, driver and program version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The name and release of the operating system's kernel.
    pub kernel: String,
    /// The processor's model, if it is known.
    pub processor: Option<String>,
    /// The number of logical CPU cores.
    pub processors: usize,
    /// The version of the GPUs' driver, if it is known.
    pub driver: Option<String>,
    /// The version of this program.
    pub version: &'static str,
    /// Whether the GPUs are simulated.
    pub simulated: bool,
}

impl Machine {
    /// Describes this computer; `driver` is the version of the GPUs' driver, if it is known.
    pub fn detect(driver: Option<String>) -> Self {
        let system = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo
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
