//! Tests of the division of a total power cap.

use proptest::prelude::*;

use super::*;

fn range(lowest: f64, highest: f64) -> CapRange {
    CapRange {
        lowest: Watts::new(lowest),
        highest: Watts::new(highest),
    }
}

fn new(ranges: &[CapRange], scope: SettingsScope, total: f64) -> CapDivision {
    let idle = vec![Some(Watts::new(30.0)); ranges.len()];
    CapDivision::new(ranges.to_vec(), &idle, scope, Watts::new(total))
}

fn caps(division: &CapDivision) -> Vec<f64> {
    division.caps().iter().map(|cap| cap.get()).collect()
}

#[test]
fn equal_gpus_get_the_same_and_unlike_ones_what_they_support() {
    let equal = new(&[range(100.0, 300.0); 4], SettingsScope::Each, 800.0);
    assert!(caps(&equal).iter().all(|cap| (cap - 200.0).abs() < 2e-3));
    let unlike = [range(100.0, 150.0), range(180.0, 300.0)];
    let expected = |total: f64, first: f64, second: f64| {
        let found = caps(&new(&unlike, SettingsScope::Same, total));
        assert!((found[0] - first).abs() < 2e-3, "{found:?}");
        assert!((found[1] - second).abs() < 2e-3, "{found:?}");
    };
    expected(400.0, 150.0, 250.0);
    expected(300.0, 120.0, 180.0);
    expected(200.0, 100.0, 180.0);
    expected(900.0, 150.0, 300.0);
}

/// Two GPUs of a synchronous job, of which the second is slower: what they draw at these caps.
fn observe(division: &mut CapDivision, now: f64, speeds: &[f64]) {
    let own = caps(division);
    let speed = |gpu: usize| speeds[gpu] * ((own[gpu] - 20.0) / 280.0).powf(0.5);
    let slowest = (0..own.len()).map(speed).fold(f64::INFINITY, f64::min);
    for (gpu, cap) in own.iter().enumerate() {
        let busy = slowest / speed(gpu);
        let reading = PowerReading {
            from: Seconds::new(now),
            to: Seconds::new(now + 3.0),
            power: Watts::new(cap * busy + 50.0 * (1.0 - busy)),
        };
        division.record_power(gpu, &reading);
        division.record_throttle(gpu, Seconds::new(now), true);
    }
}

#[test]
fn watts_move_to_the_slower_gpu_until_nobody_waits() {
    let speeds = [1.0, 0.9];
    let mut division = new(&[range(100.0, 300.0); 2], SettingsScope::Each, 400.0);
    let mut changes = 0;
    for step in 0..40 {
        let now = 10.0 * f64::from(step);
        observe(&mut division, now, &speeds);
        if division.rebalance(Seconds::new(now + 3.0), Watts::new(4000.0)) {
            changes += 1;
            let lowered: f64 = caps(&division).iter().sum();
            assert!(lowered < 399.0, "{lowered}");
            assert!(!division.rebalance(Seconds::new(now + 3.1), Watts::new(4000.0)));
            assert!(division.rebalance(Seconds::new(now + 3.6), Watts::new(4000.0)));
        }
    }
    let found = caps(&division);
    let speed = |gpu: usize| speeds[gpu] * (found[gpu] - 20.0).sqrt();
    assert!((speed(0) / speed(1) - 1.0).abs() < 0.02, "{found:?}");
    assert!((found[0] + found[1] - 400.0).abs() < 0.1, "{found:?}");
    assert!((2..12).contains(&changes), "{changes}");
    assert_eq!(division.take_balanced(), Some(true));
    assert_eq!(division.take_balanced(), None);
    // Nothing moves above the user's cap.
    let mut above = new(&[range(100.0, 300.0); 2], SettingsScope::Each, 400.0);
    observe(&mut above, 10.0, &speeds);
    assert!(!above.rebalance(Seconds::new(13.0), Watts::new(399.0)));
    // Another total keeps the ratio.
    division.set_total(Seconds::new(1000.0), Watts::new(300.0));
    let found = caps(&division);
    assert!(found[1] > found[0] + 10.0, "{found:?}");
    // With one setting for all, nothing moves.
    let mut same = new(&[range(100.0, 300.0); 2], SettingsScope::Same, 400.0);
    observe(&mut same, 10.0, &speeds);
    assert!(!same.rebalance(Seconds::new(13.0), Watts::new(4000.0)));
}

#[test]
fn nothing_moves_without_a_gpu_at_its_cap_or_without_readings_of_all() {
    let mut division = new(&[range(100.0, 300.0); 2], SettingsScope::Each, 400.0);
    let reading = |power: f64| PowerReading {
        from: Seconds::new(1.0),
        to: Seconds::new(4.0),
        power: Watts::new(power),
    };
    division.record_power(0, &reading(100.0));
    division.record_throttle(0, Seconds::new(2.0), true);
    assert!(!division.rebalance(Seconds::new(4.0), Watts::new(4000.0)));
    division.record_power(1, &reading(190.0));
    division.record_throttle(1, Seconds::new(2.0), true);
    let mut idle = division.clone();
    assert!(division.rebalance(Seconds::new(4.0), Watts::new(4000.0)));
    idle.observed.iter_mut().for_each(|one| one.limited = 0);
    assert!(!idle.rebalance(Seconds::new(4.0), Watts::new(4000.0)));
}

proptest! {
    /// Caps are within the ranges, and their sum is within the total.
    #[test]
    fn caps_are_within_ranges_and_total(
        gpus in prop::collection::vec((60.0..150.0f64, 0.0..300.0f64, 0.0..1.0f64), 1..9),
        share in 0.0..1.3f64,
    ) {
        let ranges: Vec<CapRange> = gpus.iter().map(|(low, room, _)| range(*low, low + room)).collect();
        let all = CapDivision::range(&ranges);
        let total = all.lowest.get() + share * (all.highest - all.lowest).get();
        let mut division = new(&ranges, SettingsScope::Each, total);
        for step in 0..4 {
            let now = 10.0 * f64::from(step);
            for (gpu, (.., load)) in gpus.iter().enumerate() {
                let power = Watts::new(caps(&division)[gpu] * (0.3 + 0.7 * load));
                let reading = PowerReading { from: Seconds::new(now), to: Seconds::new(now + 3.0), power };
                division.record_power(gpu, &reading);
                division.record_throttle(gpu, Seconds::new(now), true);
            }
            division.rebalance(Seconds::new(now + 3.0), Watts::new(4000.0));
            let found = caps(&division);
            prop_assert!(found.iter().sum::<f64>() <= total + 1e-6);
            for (cap, range) in found.iter().zip(&ranges) {
                prop_assert!(*cap >= range.lowest.get() - 1e-3 && *cap <= range.highest.get() + 1e-9);
            }
        }
    }
}
