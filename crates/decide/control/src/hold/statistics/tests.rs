use super::*;

fn settled_statistics() -> HoldStatistics {
    let mut statistics = HoldStatistics::new(Watts::new(200.0), CapOn::default());
    statistics.start(Seconds::ZERO);
    statistics.set_window_count(SETTLED_WINDOWS);
    statistics
}

fn read(statistics: &mut HoldStatistics, from: f64, to: f64, power: f64) {
    let (from, to) = (Seconds::new(from), Seconds::new(to));
    statistics.record_power(&PowerReading {
        from,
        to,
        power: Watts::new(power),
    });
}

#[test]
fn a_mean_after_a_gap_does_not_count_for_the_gap() {
    let mut statistics = settled_statistics();
    let fine = |statistics: &mut HoldStatistics, from: f64, count: u32, power: f64| {
        for index in 0..count {
            let from = from + f64::from(index) * 0.02;
            read(statistics, from, from + 0.02, power);
        }
    };
    fine(&mut statistics, 0.0, 3000, 150.0);
    // After 30 s without samples come two high samples and then the same power as before.
    fine(&mut statistics, 90.0, 2, 400.0);
    fine(&mut statistics, 90.04, 3000, 150.0);
    let share = statistics.summary().violation_share.unwrap();
    assert!(share < Ratio::new(0.02), "{share:?}");
}

#[test]
fn settling_is_counted_on_its_own() {
    let mut statistics = HoldStatistics::new(Watts::new(200.0), CapOn::default());
    statistics.start(Seconds::ZERO);
    let fine = |statistics: &mut HoldStatistics, from: f64, to: f64, power: f64| {
        for index in 0..((to - from) * 50.0).round() as u32 {
            let from = from + f64::from(index) * 0.02;
            read(statistics, from, from + 0.02, power);
        }
    };
    // Two seconds above the cap, then a change to a setting below it.
    fine(&mut statistics, 0.0, 3.0, 250.0);
    statistics.record_change(Seconds::new(3.0));
    fine(&mut statistics, 3.0, 10.0, 180.0);
    statistics.set_window_count(SETTLED_WINDOWS);
    fine(&mut statistics, 10.0, 20.0, 180.0);
    let summary = statistics.summary();
    assert_eq!(summary.violation_share, Some(Ratio::ZERO));
    assert_eq!(summary.largest_mean.unwrap().get().round(), 180.0);
    assert_eq!(summary.settled_power.unwrap().get().round(), 180.0);
    assert_eq!(summary.settling_largest.unwrap().get().round(), 250.0);
    // The means of the second after the change fall below the cap when a part of it is over.
    let excess = summary.settling_excess.get();
    assert!((2.2..2.9).contains(&excess), "{excess}");
    assert_eq!(summary.highest_sample, Some(Watts::new(250.0)));
}

#[test]
fn every_reading_counts_if_the_cap_binds_readings() {
    let mut statistics = HoldStatistics::new(Watts::new(200.0), CapOn::Reading);
    statistics.start(Seconds::ZERO);
    statistics.set_window_count(SETTLED_WINDOWS);
    for index in 0..1000_u32 {
        let from = f64::from(index) * 0.02;
        let power = if index % 100 == 50 { 210.0 } else { 150.0 };
        read(&mut statistics, from, from + 0.02, power);
    }
    let summary = statistics.summary();
    let share = summary.violation_share.unwrap().get();
    assert!((share - 0.01).abs() < 1e-4, "{share}");
    assert_eq!(summary.largest_mean, Some(Watts::new(210.0)));
}

/// The setting is changed while a batch of the earlier size runs; its spike is not one of the new setting.
#[test]
fn a_batch_that_runs_when_the_setting_changes_belongs_to_settling() {
    let mut statistics = HoldStatistics::new(Watts::new(200.0), CapOn::Reading);
    statistics.start(Seconds::ZERO);
    statistics.record_change(Seconds::new(1.0));
    for index in 0..20_u32 {
        let from = 1.0 + f64::from(index) * 0.02;
        let power = if index < 5 { 250.0 } else { 150.0 };
        read(&mut statistics, from, from + 0.02, power);
    }
    let done = CompletedBatch {
        size: 4,
        items: 4,
        duration: Seconds::new(0.3),
        latency: None,
    };
    statistics.record_batch(Seconds::new(1.4), &done);
    statistics.set_window_count(SETTLED_WINDOWS);
    let summary = statistics.summary();
    assert_eq!(summary.violation_share, Some(Ratio::ZERO));
    assert_eq!(summary.settling_largest, Some(Watts::new(250.0)));
}

#[test]
fn the_average_batch_counts_items_and_not_batch_sizes() {
    let mut statistics = settled_statistics();
    for items in [2, 4] {
        let done = CompletedBatch {
            size: 4096,
            items,
            duration: Seconds::new(0.01),
            latency: None,
        };
        statistics.record_batch(Seconds::new(1.0), &done);
    }
    assert_eq!(statistics.summary().average_batch, Some(3.0));
}
