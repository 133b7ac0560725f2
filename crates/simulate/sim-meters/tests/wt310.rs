//! The stand-in WT310E on a simulated clock.

use sweetspot_device::Moment;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_sim_meters::{MeterFault, MeterProblem, NodeEnergy, PowerSteps, Wt310};
use sweetspot_stats::Seed;

fn at(seconds: f64) -> Moment {
    Moment::default() + Seconds::new(seconds)
}

/// A client that sends one message after another, with its own clock.
struct Client<'a> {
    meter: Wt310,
    node: &'a dyn NodeEnergy,
    now: Moment,
}

impl<'a> Client<'a> {
    fn new(node: &'a dyn NodeEnergy, faults: Vec<MeterFault>) -> Self {
        Self {
            meter: Wt310::new(at(100.0), Seed::new(3), faults),
            node,
            now: at(101.0),
        }
    }

    /// Sends a message and returns the answer, if there is one.
    fn send(&mut self, message: &str) -> Option<String> {
        let answer = self.meter.handle(message, self.now, self.node);
        self.now = answer.ready_at;
        answer.text
    }

    fn query(&mut self, message: &str) -> String {
        self.send(message).unwrap()
    }

    fn number(&mut self, message: &str) -> f64 {
        self.query(message).parse().unwrap()
    }

    /// Sets up one sample a tenth of a second, of power.
    fn start(&mut self) {
        for command in [
            "*CLS",
            ":COMM:HEAD OFF",
            ":SAMP:RATE 0.1",
            ":NUM:NORM:NUM 1",
            ":NUM:NORM:ITEM1 P",
            ":STAT:FILT1 FALL",
        ] {
            assert_eq!(self.send(command), None);
            assert_eq!(self.query(":STAT:ERR?"), "0,\"No error\"", "{command}");
        }
        self.query(":STAT:EESR?");
    }
}

/// A power that changes every 50 ms, never at the same place in the meter's interval.
fn unsteady() -> PowerSteps {
    let mut node = PowerSteps::constant(Watts::new(800.0));
    for step in 0..14_000 {
        let power = 800.0 + 1200.0 * Seed::new(9).number(step).uniform();
        node = node.then(at(100.0 + 0.0503 * step as f64), Watts::new(power));
    }
    node
}

#[test]
fn ten_minutes_at_ten_hertz_lose_and_repeat_no_sample() {
    let node = unsteady();
    let mut client = Client::new(&node, Vec::new());
    client.start();
    let mut times = Vec::new();
    let mut energy = 0.0;
    for _ in 0..6000 {
        client.send(":COMM:WAIT 1");
        assert_eq!(client.query(":STAT:EESR?"), "1");
        energy += client.number(":NUM:NORM:VAL?") * 0.1;
        times.push(client.now.nanos());
        // The client is busy for up to 90 ms.
        let pause = 0.09 * Seed::new(4).number(times.len() as u64).uniform();
        client.now = client.now + Seconds::new(pause);
    }
    assert!(
        times
            .windows(2)
            .all(|pair| pair[1] - pair[0] == 100_000_000)
    );
    // A sample is shown 30 ms after the end of its interval.
    let last = Moment::from_nanos(times[5999]) + Seconds::new(-0.03);
    let truth = node.energy_until(last) - node.energy_until(last + Seconds::new(-600.0));
    let error = energy / truth.get() - 1.0;
    assert!(error.abs() < 0.0011, "{error}");
}

#[test]
fn a_client_that_is_too_slow_loses_samples_and_can_tell() {
    let node = unsteady();
    let mut client = Client::new(&node, Vec::new());
    client.start();
    client.send(":COMM:WAIT 1");
    client.query(":STAT:EESR?");
    let before = client.now;
    client.now = client.now + Seconds::new(0.35);
    let late = client.now;
    // An update came meanwhile, so there is nothing to wait for.
    client.send(":COMM:WAIT 1");
    assert_eq!(client.now, late);
    client.query(":STAT:EESR?");
    client.send(":COMM:WAIT 1");
    assert!((client.now - before - Seconds::new(0.4)).abs() < Seconds::new(1e-9));
}

#[test]
fn different_meters_have_different_errors_within_the_data_sheet() {
    let node = PowerSteps::constant(Watts::new(1500.0));
    let errors: Vec<f64> = (0..40)
        .map(|seed| {
            let mut meter = Wt310::new(at(0.0), Seed::new(seed), Vec::new());
            let answer = meter
                .handle(":NUM:NORM:VAL? 3", at(2.0), &node)
                .text
                .unwrap();
            answer.parse::<f64>().unwrap() - 1500.0
        })
        .collect();
    // 0.1 % of the reading, 0.05 % of 300 V x 10 A, and the last digit.
    assert!(
        errors.iter().all(|error| error.abs() <= 1.5 + 1.5 + 0.05),
        "{errors:?}"
    );
    assert!(errors.iter().any(|error| *error > 0.5) && errors.iter().any(|error| *error < -0.5));
}

#[test]
fn integration_starts_stops_continues_and_resets() {
    let node = PowerSteps::constant(Watts::new(3600.0));
    let mut client = Client::new(&node, Vec::new());
    client.start();
    client.send(":NUM:NORM:NUM 2;ITEM1 WH;ITEM2 TIME");
    assert_eq!(client.query(":STAT:ERR?"), "0,\"No error\"");
    assert_eq!(client.query(":NUM:NORM:VAL?"), "NAN,NAN");
    assert_eq!(client.query(":INTEG:STAT?"), "RESET");
    client.send(":INTEG:STAR");
    client.now = client.now + Seconds::new(10.05);
    assert_eq!(client.query(":STAT:EESR?"), "3");
    client.send(":SAMP:RATE 1");
    assert!(client.query(":STAT:ERR?").starts_with("813,"));
    client.send(":INTEG:STOP");
    client.now = client.now + Seconds::new(5.0);
    let values = client.query(":NUM:NORM:VAL?");
    let (energy, time) = values.split_once(',').unwrap();
    // 3600 W are 1 Wh in a second.
    let energy: f64 = energy.parse().unwrap();
    assert!((energy / 10.05 - 1.0).abs() < 0.0011, "{energy}");
    assert_eq!(time, "10");
    client.send(":INTEG:STAR");
    client.now = client.now + Seconds::new(10.05);
    client.send(":INTEG:STOP");
    let twice = client.number(":NUM:NORM:VAL? 1");
    assert!((twice / energy - 2.0).abs() < 1e-4);
    client.send(":INTEG:RES");
    assert_eq!(client.query(":NUM:NORM:VAL?"), "NAN,NAN");
}

#[test]
fn an_integration_ends_with_its_timer() {
    let node = PowerSteps::constant(Watts::new(3600.0));
    let mut client = Client::new(&node, Vec::new());
    client.start();
    client.send(":NUM:NORM:ITEM1 WH");
    client.send(":INTEG:MODE NORMAL;TIM 0,0,7;STAR");
    assert_eq!(client.query(":STAT:ERR?"), "0,\"No error\"");
    client.now = client.now + Seconds::new(60.0);
    assert_eq!(client.query(":INTEG:STAT?"), "TIMEUP");
    assert!((client.number(":NUM:NORM:VAL?") / 7.0 - 1.0).abs() < 0.0011);
    client.send(":INTEG:STAR");
    assert!(client.query(":STAT:ERR?").starts_with("842,"));
}

#[test]
fn a_current_above_its_range_is_reported_and_not_shown() {
    let node = PowerSteps::constant(Watts::new(2000.0));
    let mut client = Client::new(&node, Vec::new());
    client.start();
    client.send(":INP:CURR:RANG 5");
    client.send(":COMM:WAIT 1");
    assert_eq!(client.query(":STAT:EESR?"), (1 | 8 | 64).to_string());
    assert_eq!(client.query(":NUM:NORM:VAL?"), "INF");
    client.send(":INP:CURR:RANG 1");
    assert_eq!(client.query(":STAT:COND?"), (8 | 64 | 256).to_string());
    client.send(":INP:CURR:AUTO ON");
    assert_eq!(client.query(":STAT:COND?"), "0");
    assert!((client.number(":NUM:NORM:VAL?") - 2000.0).abs() < 4.0);
}

#[test]
fn wrong_commands_fill_the_error_queue_and_change_nothing() {
    let node = PowerSteps::constant(Watts::new(100.0));
    let mut client = Client::new(&node, Vec::new());
    client.start();
    let wrong = [
        (":BAD 1", 113),
        (":SAMP:RATE 0.3", 222),
        (":SAMP:RATE x", 141),
        (":NUM:NORM:NUM 11", 222),
        (":NUM:NORM:ITEM11 P", 222),
        (":NUM:NORM:ITEM1 X", 141),
        (":INTEG:STOP", 843),
        (":INTEG:TIM 1,2", 109),
        (":COMM:WAIT", 109),
        ("\u{0}\u{fffd}", 113),
    ];
    for (command, code) in wrong {
        assert_eq!(client.send(command), None);
        let error = client.query(":STAT:ERR?");
        assert!(error.starts_with(&format!("{code},")), "{command}: {error}");
    }
    assert_eq!(client.query(":SAMP:RATE?"), "100.0E-03");
    for _ in 0..30 {
        client.send(":BAD");
    }
    client.send("*CLS");
    assert_eq!(client.query(":STAT:ERR?"), "0,\"No error\"");
    client.send(":STAT:QMES OFF;:COMM:HEAD ON");
    assert_eq!(client.query(":STAT:ERR?"), "0");
    assert_eq!(
        client.query(":NUM:NORM:ITEM1?"),
        ":NUMERIC:NORMAL:ITEM1 P,1"
    );
}

#[test]
fn faults_begin_after_their_answers() {
    let node = PowerSteps::constant(Watts::new(100.0));
    let fault = |what| vec![MeterFault { after: 1, what }];
    let mut after_one = |what| {
        let mut client = Client::new(&node, fault(what));
        assert!(client.query("*IDN?").contains("WT310E"));
        let before = client.now;
        let answer = client.meter.handle("*IDN?", before, &node);
        (
            answer.text,
            answer.ready_at - before,
            answer.ends_connection,
        )
    };
    assert_eq!(after_one(MeterProblem::Silent).0, None);
    assert!(after_one(MeterProblem::Disconnect).2);
    let slow = after_one(MeterProblem::Slow(Seconds::new(2.0)));
    assert_eq!(slow.1, Seconds::new(2.0));
    let model = after_one(MeterProblem::Model("WT500".to_owned()));
    assert!(model.0.unwrap().starts_with("YOKOGAWA,WT500,"));
    assert!(!after_one(MeterProblem::Rubbish).0.unwrap().contains("WT"));
}
