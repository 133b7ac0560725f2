//! The paths of the interface and their answers.

use serde_json::{Map, Value, json};
use sweetspot_device::Knob;
use sweetspot_quantity::{Megahertz, Watts};

use super::backend::{Backend, Failure, GpuSummary};
use super::quantities::{from_milliwatts, millijoules, milliwatts};
use super::query::{Parameters, gpus_to_read, gpus_to_set, gpus_to_stream};
use super::request::Request;
use super::response::{EventStream, Response};

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A response that ends.
    Once(Response),
    /// A stream of power readings, which lasts until the client or the service closes the connection.
    Stream {
        /// The GPUs to read, in ascending order. There may be none; the stream then has no events.
        gpus: Vec<u32>,
        /// How the events are written.
        stream: EventStream,
    },
}

/// What a path does.
#[derive(Clone, Copy, Debug)]
enum Route {
    /// Lists the GPUs and what the service offers.
    Discover,
    /// Returns the service's time.
    Time,
    /// Reads a value of each GPU.
    Read(Reading),
    /// Streams the power of GPUs.
    StreamPower,
    /// Changes a setting of each GPU.
    Set(Setting),
}

/// A value that can be read.
#[derive(Clone, Copy, Debug)]
enum Reading {
    Power,
    Energy,
    PowerLimit,
    PowerLimitRange,
    Persistence,
}

/// A setting that can be changed.
#[derive(Clone, Copy, Debug)]
enum Setting {
    PowerLimit,
    Persistence,
    LockClock(Knob),
    ResetClock(Knob),
    ResetAllClocks,
}

impl Setting {
    /// The names of the parameters that set it.
    const fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::PowerLimit => &["gpu_ids", "power_limit_mw", "block"],
            Self::Persistence => &["gpu_ids", "enabled", "block"],
            Self::LockClock(_) => &["gpu_ids", "min_clock_mhz", "max_clock_mhz", "block"],
            Self::ResetClock(_) | Self::ResetAllClocks => &["gpu_ids", "block"],
        }
    }
}

/// A change of a setting with its value.
#[derive(Clone, Copy, Debug)]
enum Change {
    PowerLimit(Watts),
    Persistence(bool),
    Clock(Knob, Option<Megahertz>),
    ResetAllClocks,
}

/// What a known path does and with which method.
fn find_route(path: &str) -> Option<(&'static str, Route)> {
    let route = match path {
        "/discover" => ("GET", Route::Discover),
        "/time" => ("GET", Route::Time),
        "/gpu/get_power" => ("GET", Route::Read(Reading::Power)),
        "/gpu/get_cumulative_energy" => ("GET", Route::Read(Reading::Energy)),
        "/gpu/get_power_limit" => ("GET", Route::Read(Reading::PowerLimit)),
        "/gpu/get_power_limit_constraints" => ("GET", Route::Read(Reading::PowerLimitRange)),
        "/gpu/get_persistence_mode" => ("GET", Route::Read(Reading::Persistence)),
        "/gpu/stream_power" => ("GET", Route::StreamPower),
        "/gpu/set_power_limit" => ("POST", Route::Set(Setting::PowerLimit)),
        "/gpu/set_persistence_mode" => ("POST", Route::Set(Setting::Persistence)),
        "/gpu/set_gpu_locked_clocks" => ("POST", Route::Set(Setting::LockClock(Knob::CoreClock))),
        "/gpu/set_mem_locked_clocks" => ("POST", Route::Set(Setting::LockClock(Knob::MemoryClock))),
        "/gpu/reset_gpu_locked_clocks" => {
            ("POST", Route::Set(Setting::ResetClock(Knob::CoreClock)))
        }
        "/gpu/reset_mem_locked_clocks" => {
            ("POST", Route::Set(Setting::ResetClock(Knob::MemoryClock)))
        }
        "/gpu/reset_locked_clocks" => ("POST", Route::Set(Setting::ResetAllClocks)),
        _ => return None,
    };
    Some(route)
}

/// Whether a path belongs to this interface, be it known or not. All other paths are those of the measuring process.
pub fn is_zeusd_path(path: &str) -> bool {
    let folders = ["/gpu/", "/cpu/", "/auth/"];
    matches!(path, "/discover" | "/time") || folders.iter().any(|one| path.starts_with(one))
}

/// Answers a request. Settings are changed only after the whole request is found valid.
pub fn answer(request: &Request, backend: &mut dyn Backend) -> Answer {
    let outcome = match find_route(&request.path) {
        None => Err(unknown_path(&request.path)),
        Some((method, _)) if method != request.method => Err(wrong_method(request, method)),
        Some((_, Route::Discover)) => Ok(discover(&backend.gpus())),
        Some((_, Route::Time)) => Ok(Response::json(
            200,
            &json!({ "timestamp_ms": backend.unix_time_ms() }),
        )),
        Some((_, Route::Read(reading))) => read(reading, request, backend),
        Some((_, Route::Set(setting))) => set(setting, request, backend),
        Some((_, Route::StreamPower)) => match stream_gpus(request, backend) {
            Ok(gpus) => {
                let stream = match request.is_http_1_1 {
                    true => EventStream::Chunked,
                    false => EventStream::UntilClose,
                };
                return Answer::Stream { gpus, stream };
            }
            Err(response) => Err(response),
        },
    };
    let mut response = outcome.unwrap_or_else(|response| response);
    response.close |= request.close;
    if request.method == "HEAD" {
        // A client expects no body here and would read one as the next response.
        response.body.clear();
    }
    Answer::Once(response)
}

/// The response to a path that is not there. Processor readings are an API group that is disabled.
fn unknown_path(path: &str) -> Response {
    if path.starts_with("/cpu/") {
        Response::error(404, "API group 'cpu-read' is not enabled on this server.")
    } else if path.starts_with("/auth/") {
        Response::error(404, "Authentication is not enabled on this server.")
    } else {
        Response::empty(404)
    }
}

/// The response to a known path with a wrong method.
fn wrong_method(request: &Request, method: &'static str) -> Response {
    Response {
        allow: Some(method),
        ..Response::error(405, &format!("use {method} for {}", request.path))
    }
}

/// The GPUs and the API groups.
fn discover(gpus: &[GpuSummary]) -> Response {
    let gpus: Vec<Value> = gpus
        .iter()
        .map(|gpu| {
            json!({
                "id": gpu.id,
                "name": gpu.name,
                "pci_address": gpu.pci_address,
                "cumulative_energy_available": gpu.has_energy_counter,
            })
        })
        .collect();
    Response::json(
        200,
        &json!({
            "gpus": gpus,
            "cpus": [],
            "enabled_api_groups": ["gpu-control", "gpu-read"],
            "auth_required": false,
        }),
    )
}

/// The GPUs of a power stream.
fn stream_gpus(request: &Request, backend: &mut dyn Backend) -> Result<Vec<u32>, Response> {
    let ids = Parameters::new(&request.query, &["gpu_ids"])?.get("gpu_ids");
    gpus_to_stream(ids, &backend.gpus())
}

/// Reads a value of each requested GPU. One failure makes the whole request fail.
fn read(
    reading: Reading,
    request: &Request,
    backend: &mut dyn Backend,
) -> Result<Response, Response> {
    let ids = Parameters::new(&request.query, &["gpu_ids"])?.get("gpu_ids");
    let gpus = gpus_to_read(ids, &backend.gpus())?;
    let mut values = Map::new();
    let mut failures = Vec::new();
    for gpu in gpus {
        match read_value(reading, gpu, backend) {
            Ok(value) => {
                values.insert(gpu.to_string(), value);
            }
            Err(failure) => failures.push((gpu, failure)),
        }
    }
    if !failures.is_empty() {
        return Err(Response::failures(&failures));
    }
    let body = match reading {
        Reading::Power => json!({ "timestamp_ms": backend.unix_time_ms(), "power_mw": values }),
        _ => Value::Object(values),
    };
    Ok(Response::json(200, &body))
}

/// Reads a value of one GPU as JSON.
fn read_value(reading: Reading, gpu: u32, backend: &mut dyn Backend) -> Result<Value, Failure> {
    Ok(match reading {
        Reading::Power => json!(milliwatts(backend.power(gpu)?)?),
        Reading::Energy => json!({ "energy_mj": millijoules(backend.energy(gpu)?)? }),
        Reading::PowerLimit => {
            json!({ "power_limit_mw": milliwatts(backend.power_limit(gpu)?)? })
        }
        Reading::PowerLimitRange => {
            let (min, max) = backend.power_limit_range(gpu)?;
            json!({
                "min_power_limit_mw": milliwatts(min)?,
                "max_power_limit_mw": milliwatts(max)?,
            })
        }
        Reading::Persistence => json!({ "enabled": backend.persistence(gpu)? }),
    })
}

/// Changes a setting of each requested GPU. A failure of one GPU does not keep the others from being changed.
fn set(
    setting: Setting,
    request: &Request,
    backend: &mut dyn Backend,
) -> Result<Response, Response> {
    let parameters = Parameters::new(&request.query, setting.parameters())?;
    let ids = parameters.require("gpu_ids")?;
    let change = parse_change(setting, &parameters)?;
    // The value is checked but not used: every request waits until its setting is applied.
    parameters.require_bool("block")?;
    let gpus = gpus_to_set(ids, &backend.gpus())?;
    let failures: Vec<(u32, Failure)> = gpus
        .into_iter()
        .filter_map(|gpu| Some((gpu, apply(change, gpu, backend).err()?)))
        .collect();
    if failures.is_empty() {
        Ok(Response::empty(200))
    } else {
        Err(Response::failures(&failures))
    }
}

/// The change that a request asks for.
fn parse_change(setting: Setting, parameters: &Parameters<'_>) -> Result<Change, Response> {
    Ok(match setting {
        Setting::PowerLimit => {
            let limit = parameters.require_number("power_limit_mw")?;
            Change::PowerLimit(from_milliwatts(limit))
        }
        Setting::Persistence => Change::Persistence(parameters.require_bool("enabled")?),
        Setting::LockClock(clock) => {
            let min = parameters.require_number("min_clock_mhz")?;
            let max = parameters.require_number("max_clock_mhz")?;
            Change::Clock(clock, Some(locked_frequency(min, max)?))
        }
        Setting::ResetClock(clock) => Change::Clock(clock, None),
        Setting::ResetAllClocks => Change::ResetAllClocks,
    })
}

/// The frequency to which a clock is locked. NVML locks a range; Sweetspot's devices are locked to one frequency.
fn locked_frequency(min: u32, max: u32) -> Result<Megahertz, Response> {
    if min == max {
        return Ok(Megahertz::new(f64::from(min)));
    }
    Err(Response::error(
        400,
        &format!(
            "a clock is locked to one frequency, so min_clock_mhz ({min}) and max_clock_mhz ({max}) must be equal"
        ),
    ))
}

/// Changes a setting of one GPU.
fn apply(change: Change, gpu: u32, backend: &mut dyn Backend) -> Result<(), Failure> {
    match change {
        Change::PowerLimit(limit) => backend.set_power_limit(gpu, limit),
        Change::Persistence(enabled) => backend.set_persistence(gpu, enabled),
        Change::Clock(clock, frequency) => backend.set_clock(gpu, clock, frequency),
        Change::ResetAllClocks => {
            // Both are tried, so that a failure of one does not leave the other locked; the first failure is reported.
            let core = backend.set_clock(gpu, Knob::CoreClock, None);
            let memory = backend.set_clock(gpu, Knob::MemoryClock, None);
            core.and(memory)
        }
    }
}
