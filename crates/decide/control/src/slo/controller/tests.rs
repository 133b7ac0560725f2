//! The clock of a server by made metrics pages.

use sweetspot_metrics::MetricsChange;

use super::*;

fn page(at: f64, tokens: f64, itl: f64, waiting: f64) -> ServingPage {
    let times = |value: f64, count: f64| {
        let bounds = [0.01, 0.025, 0.05, 0.1, 0.5, 1.0];
        let buckets = bounds.map(|bound| (bound, if value <= bound { count } else { 0.0 }));
        Histogram::new(buckets.to_vec(), Some(value * count), Some(count))
    };
    ServingPage {
        at: Seconds::new(at),
        interval: Seconds::new(0.2),
        change: MetricsChange {
            prompt_tokens: Some(100.0),
            generated_tokens: Some(tokens),
            running: Some(10.0),
            waiting: Some(waiting),
            first_token: Some(times(0.05, 1.0)),
            inter_token: Some(times(itl, tokens)),
            ..MetricsChange::default()
        },
        power: Some(Watts::new(300.0)),
    }
}

fn controller() -> SloController {
    SloController::new(SloConfig {
        slos: vec![
            "ttft-p99=500ms".parse().unwrap(),
            "itl-p95=40ms".parse().unwrap(),
        ],
        clocks: (4..=20)
            .map(|n| Megahertz::new(f64::from(n) * 100.0))
            .collect(),
        below: None,
        switch_time: Seconds::new(0.02),
    })
}

/// A server whose time between tokens is so many milliseconds at 2000 MHz, and grows as the clock falls.
fn run(controller: &mut SloController, pages: std::ops::Range<u32>, millis: f64) -> u32 {
    let mut changes = 0;
    for number in pages {
        let itl = millis * 1e-3 * 2000.0 / controller.clock().get();
        let action = controller.step(&page(f64::from(number) * 0.2, 200.0, itl, 0.0));
        changes += u32::from(action.clock.is_some());
    }
    changes
}

#[test]
fn the_clock_falls_to_what_the_bound_allows_and_stays_there() {
    let mut controller = controller();
    run(&mut controller, 0..3000, 12.0);
    let clock = controller.clock();
    assert!(
        clock >= Megahertz::new(600.0) && clock <= Megahertz::new(1000.0),
        "{clock}"
    );
    let changes = run(&mut controller, 3000..6000, 12.0);
    assert!(changes <= 8, "{changes} changes in ten minutes");
}

#[test]
fn waiting_requests_raise_the_clock_at_once() {
    let mut controller = controller();
    run(&mut controller, 0..3000, 12.0);
    let before = controller.clock();
    let action = controller.step(&page(700.0, 200.0, 0.02, 60.0));
    assert!(
        action.clock.is_some_and(|clock| clock > before),
        "{action:?}"
    );
}

#[test]
fn a_bound_that_cannot_be_kept_is_said_once_and_full_speed_is_held() {
    let mut controller = controller();
    let mut notices = 0;
    for number in 0..2000 {
        let action = controller.step(&page(f64::from(number) * 0.2, 200.0, 0.3, 0.0));
        notices += u32::from(action.notice.is_some());
    }
    assert_eq!((notices, controller.clock()), (1, Megahertz::new(2000.0)));
}
