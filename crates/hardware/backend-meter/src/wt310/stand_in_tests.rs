//! The reader against the stand-in meter, which was written from the manual alone, on a simulated clock.

use std::sync::{Arc, Mutex};

use sweetspot_device::VirtualClock;
use sweetspot_sim_meters::{MeterFault, MeterProblem, NodeEnergy, PowerSteps, Wt310 as StandIn};
use sweetspot_stats::Seed;

use super::*;
use crate::channel::Log;
use crate::properties::properties;
use crate::{MeterSettings, Spec};

const MINUTES: f64 = 600.0;

/// A connection to the stand-in, whose answers come as late as the meter's own.
#[derive(Clone)]
struct Line {
    meter: Arc<Mutex<StandIn>>,
    node: Arc<PowerSteps>,
    clock: Arc<VirtualClock>,
    answer: Arc<Mutex<Option<String>>>,
}

impl Line {
    fn new(node: PowerSteps, faults: Vec<MeterFault>) -> Self {
        let clock = Arc::new(VirtualClock::default());
        clock.advance(Seconds::new(100.0));
        Self {
            meter: Arc::new(Mutex::new(StandIn::new(clock.now(), Seed::new(3), faults))),
            node: Arc::new(node),
            clock,
            answer: Arc::default(),
        }
    }

    /// Sends a message as another program would.
    fn ask(&self, message: &str) -> String {
        let mut line = self.clone();
        line.send(message).unwrap();
        match message.contains('?') {
            true => line.receive(Duration::ZERO).unwrap(),
            false => String::new(),
        }
    }

    fn connect(&self, purpose: Purpose) -> Wt310 {
        let period = Seconds::new(0.1);
        Wt310::start(Box::new(self.clone()), period, purpose)
            .unwrap()
            .0
    }
}

impl Transport for Line {
    fn send(&mut self, line: &str) -> Result<(), std::io::Error> {
        let answer = self
            .meter
            .lock()
            .unwrap()
            .handle(line, self.clock.now(), self.node.as_ref());
        // A command that waits keeps the next one waiting.
        self.clock
            .advance((answer.ready_at - self.clock.now()).max(Seconds::ZERO));
        if answer.text.is_some() {
            *self.answer.lock().unwrap() = answer.text;
        }
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> Result<String, std::io::Error> {
        let answer = self.answer.lock().unwrap().take();
        answer.ok_or(std::io::ErrorKind::TimedOut.into())
    }
}

/// A power that changes every 50 ms, never at the same place of the meter's updates.
fn unsteady() -> PowerSteps {
    let mut node = PowerSteps::constant(Watts::new(800.0));
    for step in 0..14_000 {
        let power = 800.0 + 1200.0 * Seed::new(9).number(step).uniform();
        let at = Moment::default() + Seconds::new(100.0 + 0.0503 * step as f64);
        node = node.then(at, Watts::new(power));
    }
    node
}

#[test]
fn ten_minutes_at_ten_hertz_lose_and_double_no_sample() {
    let line = Line::new(unsteady(), Vec::new());
    let mut meter = line.connect(Purpose::Measure);
    let known = properties(
        &"wt310:/dev/usbtmc0".parse::<Spec>().unwrap(),
        &MeterSettings::default(),
    );
    let mut log = Log::new("wall", "WT310E", known, line.clock.now());
    let begin = line.clock.now();
    while line.clock.now() - begin < Seconds::new(MINUTES) {
        let reading = meter.read(line.clock.as_ref()).unwrap();
        log.add(reading, true, meter.invalid_reason());
    }
    let trace = log.snapshot(line.clock.now());
    assert_eq!(trace.gaps, Vec::new());
    let times: Vec<f64> = trace
        .readings
        .iter()
        .map(|one| (one.at - begin).get())
        .collect();
    let (first, last) = (times[0], times[times.len() - 1]);
    assert_eq!(times.len(), ((last - first) / 0.1).round() as usize + 1);
    assert!(
        times
            .windows(2)
            .all(|pair| (pair[1] - pair[0] - 0.1).abs() < 0.02)
    );
    // Lost or doubled samples would show in the sum, and so would a wrong unit of the counter.
    let inside = &trace.readings[1..];
    let sum: f64 = inside
        .iter()
        .filter_map(|one| one.power)
        .map(|power| power.get() * 0.1)
        .sum();
    let (from, to) = (
        trace.readings[0].at,
        trace.readings[trace.readings.len() - 1].at,
    );
    let truth = (line.node.energy_until(to) - line.node.energy_until(from)).get();
    assert!((sum / truth - 1.0).abs() < 0.002, "{sum} {truth}");
    let counted = inside[inside.len() - 1].energy.unwrap() - trace.readings[0].energy.unwrap();
    assert!(
        (counted.get() / truth - 1.0).abs() < 0.002,
        "{counted} {truth}"
    );
}

#[test]
fn samples_over_the_range_are_gaps() {
    let fault = MeterFault {
        after: 100,
        what: MeterProblem::OverRange,
    };
    let line = Line::new(unsteady(), vec![fault]);
    let mut meter = line.connect(Purpose::Measure);
    let readings: Vec<MeterReading> = (0..150)
        .map(|_| meter.read(line.clock.as_ref()).unwrap())
        .collect();
    let over = readings.iter().filter(|one| one.power.is_none()).count();
    // The fault lasts for ten answers, and each sample has two: its state and its values.
    assert!((5..=6).contains(&over), "{over}");
    assert!(readings[149].power.is_some());
}

#[test]
fn looking_at_a_meter_changes_nothing() {
    let line = Line::new(unsteady(), Vec::new());
    for command in [
        ":SAMP:RATE 0.5",
        ":NUM:NORM:NUM 3",
        ":NUM:NORM:ITEM1 U",
        ":NUM:NORM:ITEM2 P",
        ":NUM:NORM:ITEM3 WH",
        ":INTEG:STAR",
    ] {
        line.ask(command);
    }
    let settings = || {
        [
            ":SAMP:RATE?",
            ":NUM:NORM:NUM?",
            ":NUM:NORM:ITEM1?",
            ":NUM:NORM:ITEM2?",
            ":INTEG:STAT?",
        ]
        .map(|question| line.ask(question))
    };
    line.ask(":COMM:HEAD OFF");
    let before = settings();
    let mut meter = line.connect(Purpose::Observe);
    let readings: Vec<MeterReading> = (0..4)
        .map(|_| meter.read(line.clock.as_ref()).unwrap())
        .collect();
    assert!(
        readings[3].power.unwrap() > Watts::new(700.0),
        "{readings:?}"
    );
    // The integration was not begun anew.
    assert!(readings[3].energy.unwrap() > readings[0].energy.unwrap());
    assert!((readings[3].at - readings[2].at - Seconds::new(0.5)).abs() < Seconds::new(0.05));
    assert_eq!(settings(), before);
}

#[test]
fn an_integration_of_another_program_goes_on_in_a_measurement() {
    let line = Line::new(unsteady(), Vec::new());
    line.ask(":SAMP:RATE 0.5");
    line.ask(":INTEG:STAR");
    line.clock.advance(Seconds::new(60.0));
    let mut meter = line.connect(Purpose::Measure);
    let reading = meter.read(line.clock.as_ref()).unwrap();
    assert!(
        reading.energy.unwrap() > Joules::new(40_000.0),
        "{reading:?}"
    );
    let known = properties(
        &"wt310:/dev/usbtmc0".parse::<Spec>().unwrap(),
        &MeterSettings::default(),
    );
    assert_eq!(meter.properties(known, false).period, Seconds::new(0.5));
}

#[test]
fn fixed_ranges_give_the_error_and_automatic_ones_do_not() {
    let known = properties(
        &"wt310:/dev/usbtmc0".parse::<Spec>().unwrap(),
        &MeterSettings::default(),
    );
    let line = Line::new(unsteady(), Vec::new());
    let automatic = line.connect(Purpose::Measure).properties(known, false);
    assert_eq!(
        (automatic.accuracy, automatic.accuracy_offset),
        (Ratio::new(0.002), Watts::ZERO)
    );
    let line = Line::new(unsteady(), Vec::new());
    line.ask(":INP:VOLT:RANG 300");
    line.ask(":INP:CURR:RANG 20");
    let fixed = line.connect(Purpose::Measure);
    let found = fixed.properties(known, false);
    // 0.05 % of 6 kW.
    assert!(
        (found.accuracy_offset.get() - 3.0).abs() < 1e-9,
        "{found:?}"
    );
    assert_eq!(found.accuracy, Ratio::new(0.001));
    assert_eq!(fixed.properties(known, true).accuracy_offset, Watts::ZERO);
}
