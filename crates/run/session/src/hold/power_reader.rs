//! Reads a device's power for the control algorithm, in a separate thread because a read may block.

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

/// The interval between reads of the driver's buffer. A read takes a third of a millisecond on an H200.
const DRAIN_INTERVAL: Duration = Duration::from_millis(50);
/// The interval between reads of a sensor without a buffer: the sensor is read two or three times per update.
const READ_INTERVAL: Duration = Duration::from_millis(10);
/// The interval between reads of the device's own power limit and throttle reasons.
const LIMIT_INTERVAL: Seconds = Seconds::new(0.2);
/// The time that a buffered sample is assumed to cover if the sample before it is missing.
const DEFAULT_SAMPLE_SPAN: Seconds = Seconds::new(0.02);
/// An instantaneous sensor with at most this update period is as fast as the driver's buffer.
const FAST_UPDATE_PERIOD: Seconds = Seconds::new(0.025);
/// The longest time that a buffered sample can cover.
const MAX_SAMPLE_SPAN: Seconds = Seconds::new(0.06);
/// The pause before a sensor that failed is read again.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// How long to wait for the last read to finish when reading stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// A message of the reading thread: a value that it has read from the device, or the loss of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviceReading {
    /// A power reading.
    Power {
        /// The mean power, and the time span over which it is the mean.
        reading: PowerReading,
        /// Whether the sensor gave a new value; false if a sensor without timestamps repeats its last value.
        is_new: bool,
    },
    /// The device's own power limits.
    Limit {
        /// The limits that the driver reports.
        limits: PowerLimits,
        /// Whether the device now lowers its clocks because of its power limit.
        throttled: bool,
    },
    /// The device no longer responds.
    Lost,
}

/// The device's power sensor with the finest time resolution; `None` if the device has none.
pub fn best_sensor(device: &Descriptor) -> Option<SensorKind> {
    let preferred = [
        SensorKind::BufferedPower,
        SensorKind::InstantPower,
        SensorKind::AveragePower,
    ];
    let mut preferred = preferred.into_iter();
    preferred.find(|kind| device.sensor(*kind).is_some())
}

/// The device's power sensor that shows short spikes best; `None` if the device has none. An instantaneous sensor that
/// updates as often as the driver's buffer shows them better, because the buffer's samples follow power with a lag.
pub fn fastest_sensor(device: &Descriptor) -> Option<SensorKind> {
    let instant = device.sensor(SensorKind::InstantPower);
    let period = instant.and_then(|sensor| sensor.update_period);
    match period.is_some_and(|period| period <= FAST_UPDATE_PERIOD) {
        true => Some(SensorKind::InstantPower),
        false => best_sensor(device),
    }
}

/// Reads a device's power in a thread until this value is dropped.
pub struct PowerReader {
    readings: Receiver<DeviceReading>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl PowerReader {
    /// Starts a thread that reads the device's power; times count from `begin`.
    pub fn start(gpu: Gpu, sensor: SensorKind, begin: Moment) -> std::io::Result<Self> {
        let (sender, readings) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let reader = ReaderThread {
            sensor,
            begin,
            sender,
            stop: stop.clone(),
            last: None,
            next_limit_at: begin,
            gpu,
        };
        let thread = std::thread::Builder::new()
            .name("power".to_owned())
            .spawn(move || reader.run())?;
        Ok(Self {
            readings,
            stop,
            thread,
        })
    }

    /// The readings since the last call.
    pub fn take_readings(&self) -> impl Iterator<Item = DeviceReading> + '_ {
        self.readings.try_iter()
    }
}

impl Drop for PowerReader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A read that blocks must not delay the end of the hold: its thread is then left running.
        let until = Instant::now() + STOP_TIMEOUT;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The state of the thread that reads a device.
struct ReaderThread {
    gpu: Gpu,
    sensor: SensorKind,
    begin: Moment,
    sender: Sender<DeviceReading>,
    stop: Arc<AtomicBool>,
    /// The last power that was sent, and its time.
    last: Option<(Moment, Watts)>,
    next_limit_at: Moment,
}

impl ReaderThread {
    /// Reads the device until it is lost or the reader is dropped.
    fn run(mut self) {
        if self.sensor == SensorKind::BufferedPower {
            // Samples from before the hold are discarded.
            let _ = self.gpu.drain();
        }
        while !self.stop.load(Ordering::Acquire) {
            let pause = match self.read_once() {
                Ok(()) if self.sensor == SensorKind::BufferedPower => DRAIN_INTERVAL,
                Ok(()) => READ_INTERVAL,
                Err(ReadError::Lost) => {
                    let _ = self.sender.send(DeviceReading::Lost);
                    return;
                }
                Err(_) => RETRY_DELAY,
            };
            std::thread::sleep(pause);
        }
    }

    /// Reads the power once, and the device's power limit if that is due.
    fn read_once(&mut self) -> Result<(), ReadError> {
        let now = MonotonicClock.now();
        if now >= self.next_limit_at {
            self.next_limit_at = now + LIMIT_INTERVAL;
            self.read_limit();
        }
        match self.sensor {
            SensorKind::BufferedPower => self.drain_buffer(),
            sensor => self.read_sensor(sensor),
        }
    }

    /// Reads and sends all new samples in the driver's buffer.
    fn drain_buffer(&mut self) -> Result<(), ReadError> {
        for reading in self.gpu.drain()?.readings {
            if let Amount::Power(power) = reading.amount {
                let before = self.last.map(|(at, _)| reading.at - at);
                let span = before
                    .filter(|span| *span > Seconds::ZERO && *span < MAX_SAMPLE_SPAN)
                    .unwrap_or(DEFAULT_SAMPLE_SPAN);
                self.send_power(reading.at, span, power);
            }
        }
        Ok(())
    }

    /// Reads and sends the value of a sensor without a buffer.
    fn read_sensor(&mut self, sensor: SensorKind) -> Result<(), ReadError> {
        let reading = self.gpu.read(sensor)?;
        let Amount::Power(power) = reading.amount else {
            return Err(ReadError::Unsupported(sensor));
        };
        let descriptor = self.gpu.descriptor().sensor(sensor);
        let window = descriptor.and_then(|sensor| sensor.window);
        let period = descriptor.and_then(|sensor| sensor.update_period);
        let default_window = match sensor {
            SensorKind::AveragePower => Seconds::new(1.0),
            _ => Seconds::new(0.025),
        };
        // A value is sent when it changes, and again after each update period without a change.
        let period = period.unwrap_or(Seconds::new(0.1));
        let is_due = self
            .last
            .is_none_or(|(at, value)| value != power || reading.at - at >= period * 1.1);
        if is_due {
            self.send_power(reading.at, window.unwrap_or(default_window), power);
        }
        Ok(())
    }

    /// Sends a mean power over the time `span`, which ends at `at`.
    fn send_power(&mut self, at: Moment, span: Seconds, power: Watts) {
        // Buffered samples carry timestamps, so a sample with an equal power is still new.
        let is_new = self.sensor == SensorKind::BufferedPower
            || self.last.is_none_or(|(_, last)| last != power);
        self.last = Some((at, power));
        let to = at - self.begin;
        let reading = PowerReading {
            from: to - span,
            to,
            power,
        };
        let _ = self.sender.send(DeviceReading::Power { reading, is_new });
    }

    /// Reads and sends the device's own power limit; errors are ignored.
    fn read_limit(&mut self) {
        let Ok(limits) = self.gpu.power_limits() else {
            return;
        };
        let throttle = self.gpu.read(SensorKind::ThrottleReasons);
        let throttled = throttle.is_ok_and(|reading| match reading.amount {
            Amount::Throttle(reasons) => reasons.power_cap || reasons.hardware,
            _ => false,
        });
        let _ = self.sender.send(DeviceReading::Limit { limits, throttled });
    }
}
