//! The reader of the WT310 against a scripted meter on a virtual clock.

use std::sync::{Arc, Mutex};

use super::*;
use crate::channel::Log;
use sweetspot_device::{MeterProperties, VirtualClock};
use sweetspot_quantity::Ratio;

/// A meter whose n-th update shows n watts. Each answer takes some time, of which some are long.
struct Scripted {
    clock: Arc<VirtualClock>,
    /// The faults to show: an over-range sample or a lost connection at an update's number.
    faults: Arc<Mutex<Vec<(u64, &'static str)>>>,
    model: &'static str,
    question: String,
    seen: u64,
    answers: u64,
}

const PERIOD: f64 = 0.1;

impl Scripted {
    fn updates(&self) -> u64 {
        ((self.clock.now() - Moment::default()).get() / PERIOD + 1e-9) as u64
    }

    fn fault(&self, wanted: &str) -> bool {
        let mut faults = self.faults.lock().unwrap();
        let now = self.updates();
        let place = faults
            .iter()
            .position(|(at, kind)| *kind == wanted && *at <= now);
        place.map(|place| faults.remove(place)).is_some()
    }
}

impl Transport for Scripted {
    fn send(&mut self, line: &str) -> Result<(), std::io::Error> {
        if line == ":COMM:WAIT 1" {
            // The register keeps an update that came meanwhile.
            if self.updates() == self.seen {
                let next = (self.seen + 1) as f64 * PERIOD + 1e-6;
                let now = (self.clock.now() - Moment::default()).get();
                self.clock.advance(Seconds::new(next - now));
            }
        } else {
            self.question = line.to_owned();
        }
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> Result<String, std::io::Error> {
        // Answers take 1 to 9 ms.
        self.answers += 1;
        self.clock
            .advance(Seconds::new(0.001 * (1 + self.answers * 7 % 9) as f64));
        if self.fault("disconnect") {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(match self.question.as_str() {
            "*IDN?" => format!("YOKOGAWA,{},C2123,F1.01", self.model),
            ":STAT:ERR?" => "0,\"No error\"".to_owned(),
            ":INP:VOLT:AUTO?" => "1".to_owned(),
            ":INTEG:STAT?" => "RES".to_owned(),
            ":STAT:EESR?" => {
                self.seen = self.updates();
                if self.fault("over-range") {
                    "73".to_owned()
                } else {
                    "1".to_owned()
                }
            }
            ":NUM:NORM:VAL?" if self.fault("rubbish") => "\u{0}\u{1}garbage".to_owned(),
            ":NUM:NORM:VAL?" => format!("{:.2}E+00,0.0{}", self.updates() as f64, self.updates()),
            other => panic!("unexpected question {other}"),
        })
    }
}

fn connect(
    clock: &Arc<VirtualClock>,
    faults: &Arc<Mutex<Vec<(u64, &'static str)>>>,
    model: &'static str,
) -> Result<Wt310, Problem> {
    let transport = Scripted {
        clock: Arc::clone(clock),
        faults: Arc::clone(faults),
        model,
        question: String::new(),
        seen: 0,
        answers: 0,
    };
    let period = Seconds::new(PERIOD);
    Wt310::start(Box::new(transport), period, Purpose::Measure).map(|(meter, _)| meter)
}

/// Reads for ten minutes of virtual time and returns the log.
fn read_ten_minutes(faults: Vec<(u64, &'static str)>) -> sweetspot_device::MeterTrace {
    let clock = Arc::new(VirtualClock::default());
    let faults = Arc::new(Mutex::new(faults));
    let properties = MeterProperties {
        period: Seconds::new(PERIOD),
        window: None,
        max_window: Seconds::ZERO,
        max_delay: Seconds::new(0.05),
        resolution: Watts::new(0.01),
        energy_resolution: None,
        accuracy: Ratio::new(0.001),
        accuracy_offset: Watts::ZERO,
    };
    let mut log = Log::new("wall", "WT310E", properties, clock.now());
    let mut meter = Some(connect(&clock, &faults, "WT310E").unwrap());
    while clock.now() < Moment::from_nanos(600_000_000_000) {
        match &mut meter {
            Some(connected) => match connected.read(clock.as_ref()) {
                Ok(reading) => {
                    let invalid = connected.invalid_reason();
                    log.add(reading, true, invalid);
                }
                Err(problem) => {
                    log.fail(problem.text().to_owned());
                    meter = None;
                }
            },
            None => {
                clock.advance(Seconds::new(0.5));
                meter = connect(&clock, &faults, "WT310E").ok();
            }
        }
    }
    log.snapshot(clock.now())
}

#[test]
fn ten_minutes_at_ten_hertz_lose_and_double_no_sample() {
    let trace = read_ten_minutes(Vec::new());
    let watts: Vec<u64> = trace
        .readings
        .iter()
        .filter_map(|one| Some(one.power?.get() as u64))
        .collect();
    assert!(watts.len() > 5990, "{}", watts.len());
    assert!(watts.windows(2).all(|pair| pair[1] == pair[0] + 1));
    assert_eq!(trace.gaps, Vec::new());
}

#[test]
fn over_range_samples_are_gaps_and_lost_connections_are_made_again() {
    let trace = read_ten_minutes(vec![
        (100, "over-range"),
        (101, "over-range"),
        (2000, "disconnect"),
        (4000, "rubbish"),
    ]);
    let at =
        |gap: &sweetspot_device::MeterGap| ((gap.from - Moment::default()).get() * 10.0) as u64;
    let gaps: Vec<(u64, &str)> = trace
        .gaps
        .iter()
        .map(|gap| (at(gap), gap.reason.as_str()))
        .collect();
    assert_eq!(gaps.len(), 3, "{gaps:?}");
    assert!(
        (99..=101).contains(&gaps[0].0) && gaps[0].1.contains("range"),
        "{gaps:?}"
    );
    assert!((1999..=2001).contains(&gaps[1].0), "{gaps:?}");
    assert!(gaps[2].1.contains("which is not in its format"), "{gaps:?}");
    let valid = trace
        .readings
        .iter()
        .filter(|one| one.power.is_some())
        .count();
    assert!(valid > 5970, "{valid}");
    let over: Vec<_> = trace
        .readings
        .iter()
        .filter(|one| one.power.is_none())
        .collect();
    assert_eq!(over.len(), 2);
}

#[test]
fn another_model_is_refused() {
    let clock = Arc::new(VirtualClock::default());
    let problem = connect(&clock, &Arc::default(), "WT500").err().unwrap();
    assert_eq!(
        problem,
        Problem::Refused(
            "it is a Yokogawa WT500, not a WT310 or WT310E, the models that wt310: reads"
                .to_owned()
        )
    );
}

#[test]
fn values_are_parsed_or_refused() {
    let (power, energy) = parse_values("1.0345E+02,2.5E-01", MEASURED_ITEMS).unwrap();
    assert_eq!(
        (power, energy),
        (Some(Watts::new(103.45)), Some(Joules::new(900.0)))
    );
    for (answer, power) in [
        ("INF,1", None),
        ("NAN,1", None),
        ("9.91E+37,1", None),
        ("---,1", None),
    ] {
        assert_eq!(
            parse_values(answer, MEASURED_ITEMS).unwrap().0,
            power,
            "{answer}"
        );
    }
    for answer in ["", "12", "a,b", "1,2,3"] {
        assert!(parse_values(answer, MEASURED_ITEMS).is_err(), "{answer}");
    }
    assert_eq!(update_period(Some(Seconds::new(0.3))), Seconds::new(0.25));
}
