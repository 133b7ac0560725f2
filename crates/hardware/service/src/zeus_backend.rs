//! Answers the requests of Zeus' clients: the first change of a GPU leases it for the calling process.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sweetspot_device::{
    Amount, DeviceId, Domain, Knob, KnobDescriptor, ReadError, SensorKind, Settings, WriteError,
};
use sweetspot_guard::{LeaseKind, Refusal};
use sweetspot_quantity::{Joules, Megahertz, Watts};

use crate::gpus::ServedGpu;
use crate::requests::{Asker, Service};
use crate::zeusd::{Answer, Backend, Failure, GpuSummary, Request, answer};

/// Answers a request. A request that is refused is logged, whether the policy or the interface is the reason.
pub fn answer_logged(service: &mut Service<'_>, asker: &Asker, request: &Request) -> Answer {
    let mut backend = ZeusBackend::new(service, asker);
    let answer = answer(request, &mut backend);
    if let Answer::Once(response) = &answer
        // A value that cannot be read is no refusal.
        && (matches!(response.status, 404 | 405) || response.status >= 400 && request.method != "GET")
        && !backend.has_logged
    {
        let (method, path, status) = (&request.method, &request.path, response.status);
        let text = format!("{method} {path}: {status} {}", response.body);
        service.log_refusal(&asker.owner, "http", &Refusal::Invalid(text));
    }
    answer
}

/// The age up to which a reading is sent to further streams.
const MAX_READING_AGE: Duration = Duration::from_millis(25);

/// The last reading of a GPU's power for streams.
#[derive(Debug)]
pub(crate) struct StreamedPower {
    gpu: u32,
    at: Instant,
    /// The wall-clock time in milliseconds since the Unix epoch, and the power.
    reading: Result<(u64, Watts), Failure>,
}

/// The GPUs as one caller may use them.
pub struct ZeusBackend<'s, 'a> {
    service: &'s mut Service<'a>,
    asker: &'s Asker,
    /// Whether a refusal was logged.
    has_logged: bool,
}

impl<'s, 'a> ZeusBackend<'s, 'a> {
    /// Creates the view of a caller.
    pub const fn new(service: &'s mut Service<'a>, asker: &'s Asker) -> Self {
        Self {
            service,
            asker,
            has_logged: false,
        }
    }

    /// Finds a GPU by its index.
    fn gpu(&mut self, index: u32) -> Result<&mut ServedGpu, Failure> {
        let gpus = &mut self.service.gpus;
        let found = gpus.iter_mut().find(|gpu| gpu.device.index() == index);
        found.ok_or_else(|| Failure::Invalid(format!("there is no GPU {index}")))
    }

    /// Leases a GPU for the caller, unless it has done so already, and changes it. A refusal is logged, and leaves no
    /// lease behind that the caller did not have before.
    fn change(
        &mut self,
        index: u32,
        request: &str,
        change: impl FnOnce(&mut Service<'_>, &Asker, &DeviceId) -> Result<(), Refusal>,
    ) -> Result<(), Failure> {
        let id = self.gpu(index)?.id().clone();
        let (service, asker) = (&mut *self.service, self.asker);
        let mut leases = service.leases.summaries().into_iter();
        let is_new = !leases.any(|one| one.device == id && one.owner.is_same(&asker.owner));
        let leased = match is_new {
            true => service.lease(asker, std::slice::from_ref(&id), LeaseKind::Setting),
            false => Ok(Vec::new()),
        };
        let changed = leased.and_then(|_| {
            let changed = change(service, asker, &id);
            if is_new && changed.is_err() {
                service.release_device(&asker.owner, &id);
            }
            changed
        });
        self.logged(request, changed)
    }

    /// Logs a refusal, and turns it into an answer to the client.
    fn logged(&mut self, request: &str, result: Result<(), Refusal>) -> Result<(), Failure> {
        result.map_err(|refusal| {
            self.has_logged = true;
            self.service
                .log_refusal(&self.asker.owner, request, &refusal);
            failure_of(refusal)
        })
    }

    /// The power of a GPU for a stream, with the time of the reading. All streams share their readings, so that many
    /// streams do not make the driver busy.
    pub fn streamed_power(&mut self, gpu: u32, now: Instant) -> Result<(u64, Watts), Failure> {
        let known = self.service.streamed.iter().find(|one| one.gpu == gpu);
        let is_new = |one: &&StreamedPower| now.saturating_duration_since(one.at) < MAX_READING_AGE;
        if let Some(known) = known.filter(is_new) {
            return known.reading.clone();
        }
        let time = self.unix_time_ms();
        let reading = self.power(gpu).map(|power| (time, power));
        self.service.streamed.retain(|one| one.gpu != gpu);
        self.service.streamed.push(StreamedPower {
            gpu,
            at: now,
            reading: reading.clone(),
        });
        reading
    }

    /// Reads a sensor of a GPU.
    fn read(&mut self, index: u32, sensors: &[SensorKind]) -> Result<Amount, Failure> {
        let gpu = self.gpu(index)?;
        let descriptor = gpu.device.descriptor();
        let sensor = sensors
            .iter()
            .find(|kind| descriptor.sensors.iter().any(|own| own.kind == **kind));
        let sensor = sensor
            .copied()
            .ok_or_else(|| Failure::Unsupported(format!("GPU {index} has no such sensor")))?;
        Ok(gpu.device.read(sensor).map_err(read_failure)?.amount)
    }
}

/// What a client is told about a reading that failed.
fn read_failure(error: ReadError) -> Failure {
    match error {
        ReadError::Unsupported(_) => Failure::Unsupported(error.to_string()),
        other => Failure::Failed(other.to_string()),
    }
}

/// What a client is told about a refused change.
fn failure_of(refusal: Refusal) -> Failure {
    let text = refusal.to_string();
    match refusal {
        Refusal::Write { error, .. } => match error {
            WriteError::OutOfRange { .. } => Failure::Invalid(text),
            WriteError::Unsupported(_) => Failure::Unsupported(text),
            _ => Failure::Failed(text),
        },
        Refusal::Read { .. } | Refusal::Open(_) | Refusal::Restore(_) => Failure::Failed(text),
        Refusal::Invalid(_) => Failure::Invalid(text),
        _ => Failure::Denied(text),
    }
}

impl Backend for ZeusBackend<'_, '_> {
    fn gpus(&mut self) -> Vec<GpuSummary> {
        let summary = |gpu: &ServedGpu| {
            let descriptor = gpu.device.descriptor();
            let mut sensors = descriptor.sensors.iter();
            GpuSummary {
                id: gpu.device.index(),
                name: descriptor.name.clone(),
                pci_address: gpu.device.pci_address(),
                has_energy_counter: sensors.any(|one| one.kind == SensorKind::EnergyCounter),
            }
        };
        self.service.gpus.iter().map(summary).collect()
    }

    fn power(&mut self, gpu: u32) -> Result<Watts, Failure> {
        match self.read(gpu, &[SensorKind::InstantPower, SensorKind::AveragePower])? {
            Amount::Power(power) => Ok(power),
            _ => Err(Failure::Failed("the sensor reports no power".to_owned())),
        }
    }

    fn energy(&mut self, gpu: u32) -> Result<Joules, Failure> {
        match self.read(gpu, &[SensorKind::EnergyCounter])? {
            Amount::Energy(energy) => Ok(energy),
            _ => Err(Failure::Failed("the sensor reports no energy".to_owned())),
        }
    }

    fn power_limit(&mut self, gpu: u32) -> Result<Watts, Failure> {
        let limits = self.gpu(gpu)?.device.power_limits();
        Ok(limits.map_err(read_failure)?.requested)
    }

    fn power_limit_range(&mut self, gpu: u32) -> Result<(Watts, Watts), Failure> {
        let gpu = self.gpu(gpu)?;
        match gpu.device.descriptor().knob(Knob::PowerCap) {
            Some(KnobDescriptor::PowerCap(cap)) => match &cap.domain {
                Domain::Range { min, max } => Ok((*min, *max)),
                Domain::Levels(levels) => match (levels.first(), levels.last()) {
                    (Some(min), Some(max)) => Ok((*min, *max)),
                    _ => Err(Failure::Unsupported(
                        "the power cap has no values".to_owned(),
                    )),
                },
            },
            _ => Err(Failure::Unsupported(
                "this GPU has no power cap that can be set".to_owned(),
            )),
        }
    }

    fn persistence(&mut self, gpu: u32) -> Result<bool, Failure> {
        let mode = self.gpu(gpu)?.device.persistence();
        mode.ok_or_else(|| Failure::Unsupported("this GPU reports no persistence mode".to_owned()))
    }

    fn set_power_limit(&mut self, gpu: u32, limit: Watts) -> Result<(), Failure> {
        let settings = Settings {
            power_cap: Some(limit),
            ..Settings::default()
        };
        self.change(gpu, "set_power_limit", |service, asker, id| {
            service.apply(asker, id, &settings).map(drop)
        })
    }

    fn set_clock(
        &mut self,
        gpu: u32,
        clock: Knob,
        frequency: Option<Megahertz>,
    ) -> Result<(), Failure> {
        let Some(frequency) = frequency else {
            let id = self.gpu(gpu)?.id().clone();
            let reset = self.service.unlock_clock(self.asker, &id, clock);
            return self.logged("reset_locked_clocks", reset);
        };
        let mut settings = Settings::default();
        match clock {
            Knob::MemoryClock => settings.memory_clock = Some(frequency),
            _ => settings.core_clock = Some(frequency),
        }
        self.change(gpu, "set_locked_clocks", |service, asker, id| {
            service.apply(asker, id, &settings).map(drop)
        })
    }

    fn set_persistence(&mut self, gpu: u32, enabled: bool) -> Result<(), Failure> {
        if self.gpu(gpu)?.device.persistence() == Some(enabled) {
            return Ok(());
        }
        self.change(gpu, "set_persistence_mode", |service, asker, id| {
            service.set_persistence(asker, id, enabled)
        })
    }

    fn unix_time_ms(&mut self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |now| now.as_millis() as u64)
    }
}
