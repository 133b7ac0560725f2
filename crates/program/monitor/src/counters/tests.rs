use super::*;

fn at(seconds: u64) -> Moment {
    Moment::from_nanos(seconds * 1_000_000_000)
}

fn gpus() -> Vec<GpuName> {
    let gpu = |index: u32| GpuName {
        index,
        uuid: format!("GPU-{index}"),
    };
    (0..2).map(gpu).collect()
}

/// The totals of two GPUs that draw 100 and 300 W.
fn totals(at: Moment) -> Vec<Total> {
    let seconds = at.nanos() as f64 * 1e-9;
    let total = |power: f64| {
        let mut total = Total::default();
        total.energy = sweetspot_quantity::Joules::new(power * seconds);
        total
    };
    vec![total(100.0), total(300.0)]
}

#[test]
fn a_counter_measures_between_start_and_stop() {
    let mut counters = Counters::default();
    counters.start(7, "a", vec![0, 1], at(10), 1e9).unwrap();
    fn read(counters: &Counters, now: Option<(Moment, &[Total])>) -> Document {
        counters.document(7, "a", &gpus(), now, None).unwrap()
    }
    assert_eq!(read(&counters, None).energy_j, None);
    counters.resolve(at(10), &totals(at(10)));
    let running = read(&counters, Some((at(12), &totals(at(12)))));
    assert_eq!(
        (running.state, running.energy_j),
        (CounterState::Running, Some(800.0))
    );
    counters.stop(7, "a", at(15)).unwrap();
    assert_eq!(read(&counters, None).energy_j, None);
    counters.resolve(at(15), &totals(at(15)));
    let stopped = read(&counters, Some((at(99), &totals(at(99)))));
    assert!((stopped.time_s.unwrap() - 5.0).abs() < 1e-9);
    assert!((stopped.energy_j.unwrap() - 2000.0).abs() < 1e-6);
    assert!((stopped.average_power_w.unwrap() - 400.0).abs() < 1e-6);
    assert!((stopped.devices[1].energy_j.unwrap() - 1500.0).abs() < 1e-6);
}

#[test]
fn a_counter_belongs_to_its_user() {
    let mut counters = Counters::default();
    counters.start(7, "a", vec![0], at(1), 0.0).unwrap();
    let unknown = CounterError::Unknown("a".to_owned());
    assert_eq!(counters.stop(8, "a", at(2)).unwrap_err(), unknown);
    assert_eq!(counters.delete(8, "a").unwrap_err(), unknown);
    assert_eq!(counters.names(8).count(), 0);
    counters.start(8, "a", vec![1], at(2), 0.0).unwrap();
    assert_eq!(counters.names(7).collect::<Vec<_>>(), [("a", true)]);
    assert_eq!(
        counters.start(7, "a", vec![0], at(3), 0.0),
        Err(CounterError::Running("a".to_owned()))
    );
    counters.stop(7, "a", at(4)).unwrap();
    assert_eq!(
        counters.stop(7, "a", at(5)),
        Err(CounterError::Stopped("a".to_owned()))
    );
    counters.start(7, "a", vec![0], at(6), 0.0).unwrap();
    counters.delete(7, "a").unwrap();
    assert_eq!(counters.len(), 1);
}

#[test]
fn names_and_numbers_are_limited() {
    let mut counters = Counters::default();
    for name in ["", "a b", "../x", "ä", "a/b", &"x".repeat(65)] {
        let refused = counters.start(7, name, vec![0], at(1), 0.0);
        assert!(matches!(refused, Err(CounterError::Name(_))), "{name}");
    }
    for number in 0..MAX_COUNTERS_OF_A_USER {
        counters
            .start(7, &number.to_string(), vec![0], at(1), 0.0)
            .unwrap();
    }
    assert_eq!(
        counters.start(7, "x", vec![0], at(1), 0.0),
        Err(CounterError::TooMany)
    );
    for uid in 8..11 {
        for number in 0..MAX_COUNTERS_OF_A_USER {
            counters
                .start(uid, &number.to_string(), vec![0], at(1), 0.0)
                .unwrap();
        }
    }
    assert_eq!(
        counters.start(20, "x", vec![0], at(1), 0.0),
        Err(CounterError::Full)
    );
    // Stopped counters are forgotten after an hour.
    counters.stop(8, "3", at(2)).unwrap();
    assert!(counters.start(20, "x", vec![0], at(3601), 0.0).is_err());
    counters.start(20, "x", vec![0], at(3603), 0.0).unwrap();
    assert!(counters.find(8, "3").is_err());
}

#[test]
fn processors_are_counted_for_those_who_may_read_them() {
    let mut processors = Processors::default();
    let mut read = |counters: &mut Counters, seconds: u64, joules: f64| {
        processors.add(sweetspot_service::monitor_link::ProcessorReading {
            at: at(seconds),
            parts: vec![sweetspot_service::monitor_link::ProcessorPart {
                name: "package-0".to_owned(),
                zone: "intel-rapl:0".to_owned(),
                energy: sweetspot_quantity::Joules::new(joules),
            }],
        });
        counters.resolve_processors(&processors);
    };
    let mut counters = Counters::default();
    read(&mut counters, 9, 900.0);
    read(&mut counters, 11, 1100.0);
    let start = at(10);
    counters.start(7, "a", vec![0], start, 0.0).unwrap();
    counters.resolve(start, &totals(start));
    for second in 12..40 {
        read(&mut counters, second, second as f64 * 100.0);
    }
    counters.stop(7, "a", at(39)).unwrap();
    counters.resolve(at(39), &totals(at(39)));
    read(&mut counters, 40, 4000.0);
    let document = |processors: Option<&Processors>| {
        counters
            .document(7, "a", &gpus(), None, processors)
            .unwrap()
    };
    assert!(document(None).processors.is_empty());
    let allowed = document(Some(&processors));
    assert!(allowed.notes.is_empty(), "{:?}", allowed.notes);
    let package = &allowed.processors[0];
    assert_eq!(
        (package.name.as_str(), package.energy_j),
        ("package-0", Some(2900.0))
    );
    let [low, high] = package.interval95_j.unwrap();
    assert!((low, high) == (2800.0, 3000.0), "{low} {high}");
    // On a machine without readings there is nothing to say.
    let none = document(Some(&Processors::default()));
    assert!(none.processors.is_empty() && none.notes.is_empty());
}
