//! The energy of a machine whose meters measure all of a run, or a part of it.

use sweetspot_device::{MeterGap, MeterProperties, MeterReading, MeterTrace, Moment};
use sweetspot_measure::math::Span;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use super::node_energy;
use crate::measure::TotalEnergy;

fn at(seconds: f64) -> Moment {
    Moment::from_nanos((seconds * 1e9) as u64)
}

/// A meter that shows 400 W each second until it stops.
fn meter(name: &str, stops: f64) -> MeterTrace {
    let times = (0..30).map(f64::from).filter(|time| *time <= stops);
    let readings = times.map(|time| MeterReading {
        after: at(time),
        at: at(time),
        power: Some(Watts::new(400.0)),
        energy: None,
    });
    MeterTrace {
        name: name.to_owned(),
        model: "plug".to_owned(),
        properties: MeterProperties {
            period: Seconds::new(1.0),
            window: Some(Seconds::new(1.0)),
            max_window: Seconds::ZERO,
            max_delay: Seconds::ZERO,
            resolution: Watts::new(0.1),
            energy_resolution: None,
            accuracy: Ratio::new(0.01),
            accuracy_offset: Watts::ZERO,
        },
        readings: readings.collect(),
        gaps: match stops < 29.0 {
            true => vec![MeterGap {
                from: at(stops),
                to: at(30.0),
                reason: "it did not answer within 5 s".to_owned(),
            }],
            false => Vec::new(),
        },
    }
}

#[test]
fn a_part_of_the_energy_is_not_that_of_the_machine() {
    let gpus = TotalEnergy {
        value: Joules::new(2000.0),
        interval95: (Joules::new(1990.0), Joules::new(2010.0)),
    };
    let window = Span::new(at(5.0), at(25.0));
    let energy = |stops: f64| {
        let traces = [meter("left", 30.0), meter("right", stops)];
        node_energy(&traces, &[], Some(&gpus), &window).unwrap()
    };
    let whole = energy(30.0);
    assert!((whole.energy.unwrap().value.get() - 16_000.0).abs() < 1.0);
    assert!((whole.gpu_share.unwrap().get() - 0.125).abs() < 0.001);
    let part = energy(8.0);
    let problem = part.energy.clone().unwrap_err();
    assert!(
        problem.starts_with("meter right: its readings cover only"),
        "{problem}"
    );
    assert_eq!(part.gpu_share, None);
    let warnings = part.warnings(&window);
    assert_eq!(warnings[0], problem);
    assert!(
        warnings[1].ends_with("it did not answer within 5 s"),
        "{warnings:?}"
    );
    // What each meter measured is still listed.
    assert!((part.meters[0].value.get() - 8000.0).abs() < 1.0);
}
