//! Power as it comes, for a controller: a thread of its own reads the device, for a read may block.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sweetspot_control::hold::PowerReading;
use sweetspot_device::{
    Amount, Clock, Descriptor, Moment, MonotonicClock, PowerLimits, ReadError, SensorKind,
};
use sweetspot_quantity::{Seconds, Watts};

use crate::host::Gpu;

/// The driver's buffer is drained so often: a drain takes a third of a millisecond on an H200.
const DRAIN_EVERY: Duration = Duration::from_millis(50);
/// A sensor that is looked at: two or three times in its period.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The device's own limit and why it is slow.
const LIMIT_EVERY: Seconds = Seconds::new(0.2);
/// A buffered sample covers the time since the one before it, and hardly more than this.
const SAMPLE: Seconds = Seconds::new(0.02);
const LONGEST_SAMPLE: Seconds = Seconds::new(0.06);
/// A sensor that fails is tried again after this.
const PATIENCE: Duration = Duration::from_millis(500);

/// For how long the last read is waited for.
const END_WITHIN: Duration = Duration::from_secs(1);

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Read {
    /// Power; `is_new` where the sensor told it anew.
    Power {
        /// When and how much.
        reading: PowerReading,
        /// A sensor without timestamps that sticks repeats its value for ever.
        is_new: bool,
    },
    /// What the device enforces, and whether its power is why it is no faster.
    Limit {
        /// As the driver tells it.
        limits: PowerLimits,
        /// Whether it slows down for it now.
        throttled: bool,
    },
    /// The device is gone.
    Lost,
}

/// Which sensor a controller is fed from: the finest there is.
pub fn best_sensor(device: &Descriptor) -> Option<SensorKind> {
    let preferred = [
        SensorKind::BufferedPower,
        SensorKind::InstantPower,
        SensorKind::AveragePower,
    ];
    let mut preferred = preferred.into_iter();
    preferred.find(|kind| device.sensor(*kind).is_some())
}

/// Reads until it is dropped.
pub struct Feed {
    reads: Receiver<Read>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Feed {
    /// Begins; times count from `begin`.
    pub fn start(gpu: Gpu, sensor: SensorKind, begin: Moment) -> std::io::Result<Self> {
        let (sender, reads) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let reader = Reader {
            sensor,
            begin,
            sender,
            stop: stop.clone(),
            last: None,
            limit_at: begin,
            gpu,
        };
        let thread = std::thread::Builder::new()
            .name("power".to_owned())
            .spawn(move || reader.run())?;
        Ok(Self {
            reads,
            stop,
            thread,
        })
    }

    /// What was read since the last look.
    pub fn reads(&self) -> impl Iterator<Item = Read> + '_ {
        self.reads.try_iter()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A read that blocks must not keep the hold from ending: its thread is left to itself.
        let until = Instant::now() + END_WITHIN;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

struct Reader {
    gpu: Gpu,
    sensor: SensorKind,
    begin: Moment,
    sender: Sender<Read>,
    stop: Arc<AtomicBool>,
    /// The last value and the moment it is of.
    last: Option<(Moment, Watts)>,
    limit_at: Moment,
}

impl Reader {
    fn run(mut self) {
        if self.sensor == SensorKind::BufferedPower {
            // What was gathered before is of no interest.
            let _ = self.gpu.drain();
        }
        while !self.stop.load(Ordering::Acquire) {
            let pause = match self.once() {
                Ok(()) if self.sensor == SensorKind::BufferedPower => DRAIN_EVERY,
                Ok(()) => LOOK_EVERY,
                Err(ReadError::Lost) => {
                    let _ = self.sender.send(Read::Lost);
                    return;
                }
                Err(_) => PATIENCE,
            };
            std::thread::sleep(pause);
        }
    }

    fn once(&mut self) -> Result<(), ReadError> {
        let now = MonotonicClock.now();
        if now >= self.limit_at {
            self.limit_at = now + LIMIT_EVERY;
            self.limit();
        }
        match self.sensor {
            SensorKind::BufferedPower => {
                for reading in self.gpu.drain()?.readings {
                    if let Amount::Power(power) = reading.amount {
                        let since = self.last.map_or(SAMPLE, |(at, _)| reading.at - at);
                        let span = if since > Seconds::ZERO && since < LONGEST_SAMPLE {
                            since
                        } else {
                            SAMPLE
                        };
                        self.tell(reading.at, span, power);
                    }
                }
            }
            sensor => {
                let reading = self.gpu.read(sensor)?;
                let Amount::Power(power) = reading.amount else {
                    return Err(ReadError::Unsupported(sensor));
                };
                let described = self.gpu.descriptor().sensor(sensor);
                let window = described.and_then(|sensor| sensor.window);
                let period = described.and_then(|sensor| sensor.update_period);
                let usual = match sensor {
                    SensorKind::AveragePower => Seconds::new(1.0),
                    _ => Seconds::new(0.025),
                };
                // A value is told when it changes, and again after a period in which it did not.
                let period = period.unwrap_or(Seconds::new(0.1));
                let is_due = self
                    .last
                    .is_none_or(|(at, value)| value != power || reading.at - at >= period * 1.1);
                if is_due {
                    self.tell(reading.at, window.unwrap_or(usual), power);
                }
            }
        }
        Ok(())
    }

    fn tell(&mut self, at: Moment, span: Seconds, power: Watts) {
        // The driver's samples have times of their own: the same power again is no silence.
        let is_new = self.sensor == SensorKind::BufferedPower
            || self.last.is_none_or(|(_, last)| last != power);
        self.last = Some((at, power));
        let to = at - self.begin;
        let reading = PowerReading {
            from: to - span,
            to,
            power,
        };
        let _ = self.sender.send(Read::Power { reading, is_new });
    }

    fn limit(&mut self) {
        let Ok(limits) = self.gpu.power_limits() else {
            return;
        };
        let throttle = self.gpu.read(SensorKind::ThrottleReasons);
        let throttled = throttle.is_ok_and(|reading| match reading.amount {
            Amount::Throttle(why) => why.power_cap || why.hardware,
            _ => false,
        });
        let _ = self.sender.send(Read::Limit { limits, throttled });
    }
}
