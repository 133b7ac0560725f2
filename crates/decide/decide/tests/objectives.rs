//! Objectives against the arithmetic of the paper; costs and carbon against sums by hand.

mod common;

use common::{PHYSICAL, run};
use sweetspot_decide::{
    Basis, CarbonIntensity, Hour, NoValue, Objective, ObjectiveError, Outcome, Price, Tariff,
    TariffError, best,
};
use sweetspot_quantity::{Joules, Seconds};

#[test]
fn eds_follows_equation_4() {
    // V100 and Resnet50 of table 3: 300 W is the reference, 150 W the other setting.
    let (reference, capped) = (run(266.4, 69_886.0), run(339.0, 47_866.0));
    let k = 1.5;
    let alpha = (k - 1.0) / (k * 69_886.0);
    let beta = 1.0 / (k * 266.4);
    let by_hand = alpha * 47_866.0 + beta * 339.0;
    let value = Objective::Eds(k).value(&capped, &reference).unwrap();
    assert!((value - by_hand).abs() < 1e-12);
    let metric = |objective: Objective| objective.value(&capped, &reference).unwrap();
    assert_eq!(metric(Objective::Energy), 47_866.0);
    assert_eq!(metric(Objective::Edp), 47_866.0 * 339.0);
    assert_eq!(metric(Objective::Ed2p), 47_866.0 * 339.0 * 339.0);
    let gain = 22_020.0 / 69_886.0 - 72.6 / 266.4;
    assert!((metric(Objective::GainMinusLoss) - gain).abs() < 1e-12);
}

#[test]
fn names_are_parsed_as_they_are_printed() {
    for objective in PHYSICAL
        .into_iter()
        .chain([Objective::Cost, Objective::Carbon])
    {
        assert_eq!(objective.to_string().parse(), Ok(objective));
    }
    assert_eq!(Objective::Eds(2.0).to_string(), "eds:2.0");
    assert_eq!("eds:2".parse(), Ok(Objective::Eds(2.0)));
    for text in ["eds", "eds:", "eds:1", "eds:0.5", "eds:inf", "eds:NaN"] {
        let error = text.parse::<Objective>().unwrap_err();
        assert_eq!(error, ObjectiveError::Factor(text.to_owned()));
    }
    let unknown = "speed".parse::<Objective>().unwrap_err().to_string();
    assert!(unknown.contains("edp, ed2p, eds:K, gain-minus-loss") && unknown.contains("carbon"));
}

#[test]
fn a_missing_value_has_a_reason() {
    let full = run(10.0, 1000.0);
    let no_items = Outcome::new(Seconds::new(10.0), Joules::new(1000.0));
    let no_energy = Outcome::new(Seconds::new(10.0), None);
    let no_time = run(0.0, 1000.0);
    let value = |objective: Objective, outcome: &Outcome| objective.value(outcome, &full);
    for objective in [Objective::Throughput, Objective::EnergyPerItem] {
        assert_eq!(value(objective, &no_items), Err(NoValue::NoItems));
    }
    for objective in [Objective::Energy, Objective::Edp, Objective::Eds(2.0)] {
        assert_eq!(value(objective, &no_energy), Err(NoValue::NoEnergy));
        assert_eq!(value(objective, &run(1.0, 0.0)), Err(NoValue::ZeroEnergy));
    }
    assert_eq!(value(Objective::Time, &no_energy), Ok(10.0));
    for objective in [Objective::Time, Objective::Power, Objective::Throughput] {
        assert_eq!(value(objective, &no_time), Err(NoValue::ZeroTime));
    }
    assert_eq!(value(Objective::Cost, &full), Err(NoValue::NoPrice));
    assert_eq!(value(Objective::Carbon, &full), Err(NoValue::NoIntensity));
    let against_nothing = Objective::Eds(2.0).value(&full, &no_time);
    assert_eq!(
        against_nothing,
        Err(NoValue::Reference(Box::new(NoValue::ZeroTime)))
    );
    let basis = Basis {
        reference: None,
        tariff: &Tariff::NONE,
    };
    assert_eq!(Objective::Energy.value(&full, basis), Ok(1000.0));
    assert_eq!(
        Objective::GainMinusLoss.value(&full, basis),
        Err(NoValue::NoReference)
    );
    assert_eq!(best(&[no_items], &full, Objective::Throughput), None);
}

fn priced(outcome: &Outcome, objective: Objective, tariff: &Tariff) -> Result<f64, NoValue> {
    let basis = Basis {
        reference: None,
        tariff,
    };
    objective.value(outcome, basis)
}

#[test]
fn cost_counts_energy_and_every_device() {
    // 2 kWh and 4 devices for half an hour.
    let outcome = Outcome {
        gpus: 4,
        ..run(1800.0, 7.2e6)
    };
    let tariff = |per_kwh, per_device_hour| Tariff {
        price: Some(Price::new(per_kwh, per_device_hour, "EUR").unwrap()),
        carbon: None,
    };
    let cost = |outcome: &Outcome, tariff: Tariff| priced(outcome, Objective::Cost, &tariff);
    assert_eq!(cost(&outcome, tariff(0.25, 0.0)), Ok(0.5));
    assert_eq!(cost(&outcome, tariff(0.0, 3.0)), Ok(6.0));
    assert_eq!(cost(&outcome, tariff(0.25, 3.0)), Ok(6.5));
    assert_eq!(Objective::Cost.unit(&tariff(0.25, 3.0)), "EUR");
    // A price for devices only needs no energy.
    let no_energy = Outcome::new(Seconds::new(3600.0), None);
    assert_eq!(cost(&no_energy, tariff(0.0, 3.0)), Ok(3.0));
    assert_eq!(cost(&no_energy, tariff(0.25, 3.0)), Err(NoValue::NoEnergy));
    for (energy, devices) in [
        (0.0, 0.0),
        (-1.0, 2.0),
        (f64::NAN, 1.0),
        (1.0, f64::INFINITY),
    ] {
        assert_eq!(Price::new(energy, devices, "EUR"), Err(TariffError::Price));
    }
}

#[test]
fn carbon_depends_on_the_hours_of_a_run() {
    let by_hour: Vec<f64> = (0..24).map(|hour| f64::from(hour) * 10.0).collect();
    let hourly = |start: Option<f64>| Tariff {
        price: None,
        carbon: Some(CarbonIntensity::new(&by_hour, start.and_then(Hour::new)).unwrap()),
    };
    let started = |hour: f64, hours: f64| Outcome {
        start: Hour::new(hour),
        ..run(hours * 3600.0, 3.6e6)
    };
    let grams = |hour, hours| priced(&started(hour, hours), Objective::Carbon, &hourly(None));
    let is = |value: Result<f64, NoValue>, wanted: f64| {
        assert!(
            (value.clone().unwrap() - wanted).abs() < 1e-9,
            "{value:?}, {wanted}"
        );
    };
    is(grams(3.0, 1.0), 30.0);
    is(grams(3.5, 1.0), 35.0);
    is(
        grams(3.25, 3.0),
        (0.75 * 30.0 + 40.0 + 50.0 + 0.25 * 60.0) / 3.0,
    );
    // Runs over midnight, of a whole day, and of several days.
    is(grams(23.0, 2.0), (230.0 + 0.0) / 2.0);
    is(grams(7.3, 24.0), 115.0);
    is(grams(3.0, 48.0 + 1.0), (2.0 * 2760.0 + 30.0) / 49.0);
    // The planned start takes precedence over the hour at which a run started.
    is(
        priced(&started(3.0, 1.0), Objective::Carbon, &hourly(Some(20.0))),
        200.0,
    );
    let unknown = priced(&run(10.0, 1.0), Objective::Carbon, &hourly(None));
    assert_eq!(unknown, Err(NoValue::NoStart));
    let flat = Tariff {
        carbon: Some("400".parse().unwrap()),
        ..Tariff::NONE
    };
    is(priced(&run(10.0, 3.6e6), Objective::Carbon, &flat), 400.0);
}

#[test]
fn tariffs_are_parsed_or_rejected() {
    let hours: Vec<String> = (0..24).map(|hour| hour.to_string()).collect();
    let hourly: CarbonIntensity = hours.join(",").parse().unwrap();
    assert_eq!(hourly.to_string().parse(), Ok(hourly));
    for text in ["", "green", "-3", "1,2", "NaN"] {
        let error = text.parse::<CarbonIntensity>().unwrap_err();
        assert_eq!(error, TariffError::Carbon(text.to_owned()));
    }
    assert_eq!("14:30".parse(), Ok(Hour::new(14.5).unwrap()));
    assert_eq!("24".parse(), Ok(Hour::new(0.0).unwrap()));
    for text in ["", "25", "-1", "12:60", "1.5:30", "noon", "inf"] {
        assert_eq!(
            text.parse::<Hour>(),
            Err(TariffError::Hour(text.to_owned()))
        );
    }
    assert!(Hour::new(-1e-20).unwrap().get() < 24.0);
}
