//! Measures the sampler's processor time on simulated GPUs in real time, whose counter and buffer keep the
//! driver busy as long as a real one's. The simulation's own work is part of it.
//!
//! `cargo run --release -p sweetspot-measure --example overhead [SECONDS [GPUS [METHOD]]]`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use sweetspot_device::{
    Amount, Descriptor, Device, DeviceId, DeviceKind, DrainedSamples, Moment, MonotonicClock,
    PowerLimits, ReadError, Reading, Scope, SensorDescriptor, SensorKind,
};
use sweetspot_measure::math::{EnergyEstimator, Span};
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_sim_host::{Host, LiveGpu, ProfileText};

/// The time that an H200's driver takes for a read of the counter and of the buffer.
const COUNTER_READ_TIME: Duration = Duration::from_micros(2_800);
const DRAIN_TIME: Duration = Duration::from_micros(350);

struct SimulatedDevice {
    host: Host,
    index: usize,
    descriptor: Descriptor,
    drained: u64,
}

impl SimulatedDevice {
    fn with_gpu<R>(&self, work: impl FnOnce(&mut LiveGpu<'_>) -> R) -> Result<R, ReadError> {
        self.host.gpus()[self.index]
            .with_gpu(work)
            .map_err(|_| ReadError::Lost)
    }

    fn busy(&self, time: Duration) {
        let _ = self.host.gpus()[self.index].occupy_slow_path(time);
    }
}

impl Device for SimulatedDevice {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        if sensor == SensorKind::EnergyCounter {
            self.busy(COUNTER_READ_TIME);
        }
        let (at, amount) = self.with_gpu(|live| {
            let amount = match sensor {
                SensorKind::EnergyCounter => live.counter().map(Amount::Energy),
                SensorKind::InstantPower => Some(Amount::Power(live.instant_power())),
                SensorKind::AveragePower => Some(Amount::Power(live.average_power())),
                SensorKind::Temperature => Some(Amount::Temperature(live.temperature())),
                SensorKind::CoreClock => Some(Amount::Frequency(live.core_clock())),
                SensorKind::Utilisation => Some(Amount::Share(live.utilisation())),
                _ => None,
            };
            (Moment::from_nanos(live.now()), amount)
        })?;
        Ok(Reading {
            source: sensor,
            at,
            amount: amount.ok_or(ReadError::Unsupported(sensor))?,
        })
    }

    fn drain(&mut self) -> Result<DrainedSamples, ReadError> {
        self.busy(DRAIN_TIME);
        let after = self.drained;
        let samples = self.with_gpu(|live| live.samples())?;
        let fresh = samples.into_iter().filter(|sample| sample.at > after);
        let readings: Vec<Reading> = fresh
            .map(|sample| Reading {
                source: SensorKind::BufferedPower,
                at: Moment::from_nanos(sample.at),
                amount: Amount::Power(sweetspot_quantity::Watts::new(sample.watts)),
            })
            .collect();
        self.drained = readings.last().map_or(after, |reading| reading.at.nanos());
        Ok(DrainedSamples {
            readings,
            clock_stepped: false,
        })
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        let cap = self.with_gpu(|live| live.power_cap())?;
        Ok(PowerLimits {
            requested: cap,
            enforced: cap,
            default: cap,
        })
    }
}

fn open(folder: &Path, index: usize) -> Result<Box<dyn Device + Send>, Box<dyn std::error::Error>> {
    let host = Host::open(folder)?;
    let kinds = [
        SensorKind::EnergyCounter,
        SensorKind::BufferedPower,
        SensorKind::InstantPower,
        SensorKind::Temperature,
        SensorKind::CoreClock,
        SensorKind::Utilisation,
    ];
    let sensor = |kind| SensorDescriptor {
        kind,
        scope: Scope::Device,
        source: "simulated".to_owned(),
        update_period: None,
        window: None,
    };
    Ok(Box::new(SimulatedDevice {
        descriptor: Descriptor {
            id: DeviceId::new(host.gpus()[index].uuid()),
            name: host.gpus()[index].name().to_owned(),
            kind: DeviceKind::Gpu,
            backend: "simulated".to_owned(),
            parent: None,
            memory: None,
            sensors: kinds.into_iter().map(sensor).collect(),
            knobs: Vec::new(),
        },
        host,
        index,
        drained: 0,
    }))
}

fn processor_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 * 1e-9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(Ok(30), |text| text.parse())?;
    let gpus: usize = arguments.next().map_or(Ok(8), |text| text.parse())?;
    let choice: MethodChoice = arguments
        .next()
        .map_or(Ok(MethodChoice::Auto), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let (name, profile) = sweetspot_sim::gpu_text("v100")?;
    let spec = ProfileText { name, profile };
    Host::create(folder.path(), vec![spec; gpus], None, 1)?;
    let devices = (0..gpus).map(|index| open(folder.path(), index));
    let sampler = Sampler::start(
        devices.collect::<Result<_, _>>()?,
        choice,
        Arc::new(MonotonicClock),
    )?;
    // Learning the counter's schedule and beginning the window cost time only once.
    std::thread::sleep(Duration::from_secs(1));
    let begin = sampler.mark();
    std::thread::sleep(Duration::from_millis(500));
    let before = processor_seconds();
    std::thread::sleep(Duration::from_secs(seconds));
    let spent = processor_seconds() - before;
    let end = sampler.mark();
    let recorded = sampler.stop()?;
    println!(
        "{gpus} GPUs, {choice}, {seconds} s: {:.3} % of a core",
        100.0 * spent / seconds as f64
    );
    let window = Span::new(begin, end);
    for device in recorded.iter().take(1) {
        let energy = EnergyEstimator::new(&device.trace).energy(&window, choice)?;
        let reads = device.trace.counter.len();
        println!(
            "{} by {}, {reads} counter reads, {} samples",
            energy.value,
            energy.method,
            device.trace.buffer.len()
        );
    }
    Ok(())
}
