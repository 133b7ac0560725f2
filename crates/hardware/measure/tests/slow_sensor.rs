//! A driver whose reads block for long must not keep the sampler from stopping.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sweetspot_device::{
    Amount, Clock, Descriptor, Device, DeviceId, DeviceKind, MonotonicClock, PowerLimits,
    ReadError, Reading, Scope, SensorDescriptor, SensorKind,
};
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_quantity::Joules;

/// A device whose energy counter answers a few times and then blocks.
struct BlockingCounter {
    descriptor: Descriptor,
    reads: Arc<AtomicUsize>,
}

const READS_BEFORE_BLOCKING: usize = 3;
const BLOCKED_FOR: Duration = Duration::from_secs(30);

impl Device for BlockingCounter {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        if sensor != SensorKind::EnergyCounter {
            return Err(ReadError::Unsupported(sensor));
        }
        if self.reads.fetch_add(1, Ordering::Relaxed) >= READS_BEFORE_BLOCKING {
            std::thread::sleep(BLOCKED_FOR);
        }
        let at = MonotonicClock.now();
        Ok(Reading {
            at,
            source: sensor,
            amount: Amount::Energy(Joules::new(at.nanos() as f64 * 1e-7)),
        })
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        Err(ReadError::Limits("none".to_owned()))
    }
}

fn sampler() -> (Sampler, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let device = BlockingCounter {
        descriptor: Descriptor {
            id: DeviceId::new("GPU-slow"),
            name: "slow".to_owned(),
            kind: DeviceKind::Gpu,
            backend: "test".to_owned(),
            parent: None,
            memory: None,
            sensors: vec![SensorDescriptor {
                kind: SensorKind::EnergyCounter,
                scope: Scope::Device,
                source: "a test".to_owned(),
                update_period: None,
                window: None,
            }],
            knobs: Vec::new(),
        },
        reads: reads.clone(),
    };
    let clock = Arc::new(MonotonicClock);
    let sampler = Sampler::start(vec![Box::new(device)], MethodChoice::Auto, clock);
    (sampler.unwrap(), reads)
}

fn wait_until_blocked(reads: &AtomicUsize) {
    let begun = Instant::now();
    while reads.load(Ordering::Relaxed) <= READS_BEFORE_BLOCKING {
        assert!(begun.elapsed() < BLOCKED_FOR, "the counter is not read");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_blocking_read_does_not_keep_the_sampler_from_stopping() {
    for stops in [true, false] {
        let (sampler, reads) = sampler();
        sampler.mark();
        wait_until_blocked(&reads);
        sampler.mark();
        let begun = Instant::now();
        let recorded = match stops {
            true => sampler.stop().unwrap(),
            false => sampler.collect().unwrap(),
        };
        assert!(
            begun.elapsed() < BLOCKED_FOR / 3,
            "stops: {stops}, {:?}",
            begun.elapsed()
        );
        // The readings before the block are kept.
        assert_eq!(recorded[0].trace.counter.len(), READS_BEFORE_BLOCKING);
    }
}
