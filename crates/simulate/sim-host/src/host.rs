//! A simulated host: a folder with the profiles and the present states of its GPUs.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytemuck::Zeroable;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use sweetspot_sim::{Chip, GpuProfile, NodeProfile, parse_gpu, parse_node};
use sweetspot_stats::Seed;

use crate::error::HostError;
use crate::live::{LiveGpu, Record};
use crate::sensors::Sensors;
use crate::store::{Store, lock};

/// The environment variable with the path of the simulated host's folder.
pub const ENVIRONMENT: &str = "SWEETSPOT_SIM";
/// The version of the files in a host's folder.
const VERSION: u32 = 3;
/// The name of the file that describes the host.
const DESCRIPTION: &str = "host.json";

/// The name and the text of a GPU's or node's profile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProfileText {
    /// The name of the GPU's profile.
    pub name: String,
    /// The content of the profile's TOML file.
    pub profile: String,
}

/// The content of a host's description file.
#[derive(Serialize, Deserialize)]
struct Description {
    version: u32,
    seed: u64,
    /// The difference between the wall clock and the monotonic clock when the host was created, in microseconds. It is
    /// fixed because later changes of the wall clock must not change the timestamps of samples.
    wall_offset: i64,
    gpus: Vec<ProfileText>,
    #[serde(default)]
    node: Option<ProfileText>,
}

/// A simulated host: a folder with the profiles and the states of its GPUs.
#[derive(Debug)]
pub struct Host {
    folder: PathBuf,
    node: Option<(String, NodeProfile)>,
    wall_offset: i64,
    gpus: Vec<SharedGpu>,
}

/// A GPU of a simulated host, whose state all processes share.
#[derive(Debug)]
pub struct SharedGpu {
    name: String,
    index: usize,
    profile: GpuProfile,
    chip: Chip,
    store: Store,
    folder: PathBuf,
}

impl Host {
    /// Creates a simulated host with these GPUs in an empty folder. `node` is the profile of the node that contains the
    /// GPUs, if it is known.
    pub fn create(
        folder: &Path,
        gpus: Vec<ProfileText>,
        node: Option<ProfileText>,
        seed: u64,
    ) -> Result<Self, HostError> {
        for (index, spec) in gpus.iter().enumerate() {
            let profile = parse_gpu(&spec.name, &spec.profile)?;
            let chip = Chip::new(&profile);
            let path = state_path(folder, index);
            let seed = Seed::new(seed).number(index as u64);
            let record = initial_record(&profile, &chip, monotonic_nanos(), seed);
            Store::create(path.clone(), &record).map_err(|problem| file_error(&path, problem))?;
            let slow = slow_path_file(folder, index);
            File::create(&slow).map_err(|problem| file_error(&slow, problem))?;
            allow_everyone(&path).map_err(|problem| file_error(&path, problem))?;
        }
        let description = Description {
            version: VERSION,
            seed,
            wall_offset: wall_micros() - (monotonic_nanos() / 1000) as i64,
            gpus,
            node,
        };
        let path = folder.join(DESCRIPTION);
        let text = serde_json::to_string_pretty(&description).map_err(std::io::Error::other);
        text.and_then(|text| std::fs::write(&path, text))
            .map_err(|problem| file_error(&path, problem))?;
        Self::open(folder)
    }

    /// Opens the simulated host in a folder.
    pub fn open(folder: &Path) -> Result<Self, HostError> {
        let path = folder.join(DESCRIPTION);
        let text = std::fs::read_to_string(&path).map_err(|problem| file_error(&path, problem))?;
        let format = |reason: String| HostError::Format {
            path: folder.to_owned(),
            reason,
        };
        let description: Description =
            serde_json::from_str(&text).map_err(|error| format(error.to_string()))?;
        if description.version != VERSION {
            return Err(format(format!("version {}", description.version)));
        }
        let gpus = description
            .gpus
            .into_iter()
            .enumerate()
            .map(|(index, spec)| {
                let profile = parse_gpu(&spec.name, &spec.profile)?;
                Ok(SharedGpu {
                    name: spec.name,
                    index,
                    chip: Chip::new(&profile),
                    profile,
                    store: Store::from_path(state_path(folder, index)),
                    folder: folder.to_owned(),
                })
            })
            .collect::<Result<_, HostError>>()?;
        let node = description.node.map(|spec| {
            let profile = parse_node(&spec.name, &spec.profile)?;
            Ok::<_, HostError>((spec.name, profile))
        });
        Ok(Self {
            folder: folder.to_owned(),
            node: node.transpose()?,
            wall_offset: description.wall_offset,
            gpus,
        })
    }

    /// The simulated host that the environment variable `SWEETSPOT_SIM` names; `None` if it is not set.
    pub fn from_environment() -> Option<Result<Self, HostError>> {
        let folder = std::env::var_os(ENVIRONMENT)?;
        Some(Self::open(Path::new(&folder)))
    }

    /// The folder of the simulated host.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The user id of the folder's owner, if it can be read.
    pub fn owner(&self) -> Option<u32> {
        let metadata = std::fs::metadata(&self.folder).ok()?;
        Some(std::os::unix::fs::MetadataExt::uid(&metadata))
    }

    /// Converts monotonic nanoseconds to wall-clock microseconds.
    pub fn wall_micros(&self, nanos: u64) -> u64 {
        ((nanos / 1000) as i64 + self.wall_offset).max(0) as u64
    }

    /// The name and the profile of the node that contains the GPUs; `None` if it is unknown.
    pub fn node(&self) -> Option<&(String, NodeProfile)> {
        self.node.as_ref()
    }

    /// The GPUs of the simulated host, in the order of their indices.
    pub fn gpus(&self) -> &[SharedGpu] {
        &self.gpus
    }
}

impl SharedGpu {
    /// The name of the GPU's profile.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The index of the GPU on the simulated host.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The profile of the GPU.
    pub fn profile(&self) -> &GpuProfile {
        &self.profile
    }

    /// The UUID of the GPU, which is the same in every process and on every simulated host with the same GPUs.
    pub fn uuid(&self) -> String {
        sweetspot_sim::uuid(&self.profile.name, self.index as u64).to_string()
    }

    /// Advances the GPU to the present moment and passes it to a closure. A lock excludes all other processes
    /// meanwhile.
    pub fn with_gpu<R>(&self, access: impl FnOnce(&mut LiveGpu<'_>) -> R) -> Result<R, HostError> {
        let result = self.store.update(|record: &mut Record| {
            let mut live = LiveGpu {
                profile: &self.profile,
                chip: &self.chip,
                record,
            };
            let now = monotonic_nanos();
            live.advance(now.max(live.now()));
            access(&mut live)
        });
        result.map_err(|problem| file_error(self.store.path(), problem))
    }

    /// Adds a line about a change of a device setting to the host's log file, for tests and debugging.
    pub fn log_write(&self, what: &str) {
        let line = format!("gpu{} {what}\n", self.index);
        let log = File::options()
            .append(true)
            .create(true)
            .open(self.folder.join("writes.log"));
        if let Ok(mut log) = log {
            let _ = log.write_all(line.as_bytes());
        }
    }

    /// Simulates a slow read of the driver. It waits until no other slow read of this GPU is in progress, and
    /// then keeps a CPU core busy for the time `busy`.
    pub fn occupy_slow_path(&self, busy: Duration) -> Result<(), HostError> {
        let path = slow_path_file(&self.folder, self.index);
        let file = File::open(&path).map_err(|problem| file_error(&path, problem))?;
        lock(&file).map_err(|problem| file_error(&path, problem))?;
        let start = Instant::now();
        while start.elapsed() < busy {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

/// The path of the file whose lock serialises slow reads of a GPU.
fn slow_path_file(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("gpu{index}.slow"))
}

/// The path of the file with a GPU's state.
fn state_path(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("gpu{index}.state"))
}

/// The error that a file of the simulated host cannot be used.
fn file_error(path: &Path, problem: std::io::Error) -> HostError {
    HostError::Files {
        path: path.to_owned(),
        problem,
    }
}

/// The stored state of an idle, cool GPU with default settings.
pub(crate) fn initial_record(profile: &GpuProfile, chip: &Chip, now: u64, seed: Seed) -> Record {
    let state = chip.rest_state();
    Record {
        now,
        created_at: now,
        physics: state.to_array(),
        cap: profile.cap.default.get(),
        host_speed: 1.0,
        sensors: Sensors::new(now, state.power().get(), seed),
        ..Record::zeroed()
    }
}

/// The present wall-clock time, in microseconds.
fn wall_micros() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

/// Makes a file writable for everyone: any user may read the host's GPUs, and a read updates the stored state.
fn allow_everyone(path: &Path) -> std::io::Result<()> {
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(path, all)
}

/// The present time of the monotonic clock, which all processes of a machine share, in nanoseconds.
fn monotonic_nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
