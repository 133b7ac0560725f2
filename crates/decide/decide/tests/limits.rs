//! Limits: which texts are parsed or rejected, and which outcomes meet them.

mod common;

use common::{reporting, run};
use sweetspot_decide::{Limit, LimitError, NoValue, Outcome, Value};
use sweetspot_quantity::Seconds;

fn limit(text: &str) -> Limit {
    text.parse()
        .unwrap_or_else(|error: LimitError| panic!("{text}: {error}"))
}

fn meets(text: &str, outcome: &Outcome) -> bool {
    limit(text).check(outcome, &run(100.0, 10e3)).is_ok()
}

#[test]
fn a_value_at_the_bound_meets_the_limit() {
    for (text, kept, broken) in [
        ("time<=+5%", run(105.0, 1.0), run(105.1, 1.0)),
        ("time<=+0%", run(100.0, 1.0), run(100.1, 1.0)),
        ("time<=105s", run(105.0, 1.0), run(105.1, 1.0)),
        ("time<=2min", run(120.0, 1.0), run(120.1, 1.0)),
        ("energy<=-10%", run(1.0, 9e3), run(1.0, 9.01e3)),
        ("energy<=90kJ", run(1.0, 90e3), run(1.0, 90.1e3)),
        ("average_power<=200W", run(10.0, 2000.0), run(10.0, 2001.0)),
        ("power<=0.2kW", run(10.0, 2000.0), run(10.0, 2001.0)),
        ("items-per-s>=100", run(10.0, 1.0), run(10.1, 1.0)),
        ("throughput>=100/s", run(10.0, 1.0), run(10.1, 1.0)),
        ("energy_per_item<=5J", run(1.0, 5000.0), run(1.0, 5001.0)),
    ] {
        assert!(meets(text, &kept), "{text}");
        assert!(!meets(text, &broken), "{text}");
    }
}

#[test]
fn reported_values_have_the_unit_of_their_name() {
    let with = |name: &str, value| reporting(run(1.0, 1.0), name, value);
    assert!(meets("accuracy>=0.75", &with("accuracy", 0.75)));
    assert!(meets("accuracy>=75%", &with("accuracy", 0.75)));
    assert!(!meets("accuracy>=0.75", &with("accuracy", 0.749)));
    assert!(meets("latency_p99<=20ms", &with("latency_p99", 0.02)));
    assert!(!meets("latency_p99<=20ms", &with("latency_p99", 0.021)));
    assert!(meets("latency_ms<=20ms", &with("latency_ms", 20.0)));
    assert!(meets("latency_ms<=0.02s", &with("latency_ms", 20.0)));
    assert!(meets("latency_ms<=20", &with("latency_ms", 20.0)));
    assert!(!meets("latency_ms<=20ms", &with("latency_ms", 20.1)));
    assert!(meets("tokens_per_s>=900", &with("tokens_per_s", 900.0)));
    assert!(meets("power_cap>=200W", &with("power_cap", 200.0)));
    assert!(meets("loss<=-0.5", &with("loss", -0.6)));
    // A percentage is of the absolute value: five percent up from -2 is -1.9.
    let reference = with("score", -2.0);
    let up = limit("score>=+5%");
    assert!(up.check(&with("score", -1.9), &reference).is_ok());
    assert!(up.check(&with("score", -1.95), &reference).is_err());
}

#[test]
fn a_broken_limit_says_by_how_much() {
    let broken = |text: &str, outcome: &Outcome| {
        let broken = limit(text).check(outcome, &run(100.0, 10e3)).unwrap_err();
        (broken.to_string(), broken.excess)
    };
    let (text, by) = broken("time<=+5%", &run(126.0, 1.0));
    assert_eq!(text, "misses the limit `time<=+5%` by 20.0 %");
    assert!((by.unwrap().allowed - 105.0).abs() < 1e-9);
    let (text, by) = broken("accuracy>=0.75", &run(1.0, 1.0));
    assert_eq!(by, Err(NoValue::NotReported("accuracy".into())));
    assert_eq!(
        text,
        "cannot be checked against the limit `accuracy>=0.75`: the workload did not report `accuracy`"
    );
    let (_, by) = broken("energy<=1J", &Outcome::new(Seconds::new(1.0), None));
    assert_eq!(by, Err(NoValue::NoEnergy));
}

#[test]
fn limits_are_printed_as_they_are_written() {
    for text in [
        "time<=+5%",
        "energy<=-10%",
        "average_power<=200W",
        "energy<=90kJ",
        "accuracy>=0.75",
        "accuracy>=75%",
        "latency_p99<=20ms",
        "power_cap>=200W",
        "core_clock<=1200MHz",
        "time<=+0%",
    ] {
        assert_eq!(limit(text).to_string(), text);
    }
    assert_eq!(limit(" power <= 200 W ").to_string(), "average_power<=200W");
    assert_eq!(limit("throughput>=7").value(), &Value::ItemsPerSecond);
}

#[test]
fn invalid_limits_are_rejected_with_advice() {
    for (text, says) in [
        (
            "time<5",
            "write the name of a value, <= or >=, and a number",
        ),
        ("time", "write the name of a value, <= or >=, and a number"),
        ("", "write the name of a value, <= or >=, and a number"),
        (
            "time<=",
            "write the name of a value, <= or >=, and a number",
        ),
        ("<=5s", "write the name of a value, <= or >=, and a number"),
        (
            "time=5s",
            "write the name of a value, <= or >=, and a number",
        ),
        ("time<=5%", "needs a sign: write time<=+5% or time<=-5%"),
        ("time<=5", "is not a time: write a number and a unit"),
        ("time<=200W", "is not a time: write a number and a unit"),
        ("time<=5parsec", "is not a time"),
        ("energy<=90kW", "energy: write 90kWh"),
        ("time<=+5s", "only a percentage has a sign"),
        ("time<=-5s", "only a percentage has a sign"),
        ("energy<=-100%", "can never be met"),
        ("time<=+%", "is not a ratio"),
        ("time<=NaN", "is not a time"),
        ("accuracy>=inf", "write a number, and a unit"),
        ("accuracy>=0.75parsec", "write a number, and a unit"),
        ("a b<=5", "`a b` is not the name of a value"),
        ("5<=time", "`5` is not the name of a value"),
        ("edp<=5", "edp is an objective"),
        ("x<=1<=2", "write a number"),
    ] {
        let error = text.parse::<Limit>().unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}
