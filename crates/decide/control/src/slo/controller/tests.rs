//! The clock of a server by made metrics pages.

use sweetspot_metrics::{Histogram, MetricsChange};
use sweetspot_quantity::Watts;

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

#[test]
fn a_latency_that_appears_with_its_first_observation_is_waited_for() {
    // SGLang adds a histogram to its page once a request was observed.
    let mut controller = controller();
    for number in 0..10 {
        let mut first = page(f64::from(number) * 0.2, 200.0, 0.012, 0.0);
        first.change.first_token = None;
        let action = controller.step(&first);
        assert_eq!((action.notice, action.clock), (None, None));
    }
    run(&mut controller, 10..3000, 12.0);
    assert!(controller.clock() <= Megahertz::new(1000.0));
}

#[test]
fn a_latency_that_is_never_reported_is_said_once_and_taken_back() {
    let mut controller = controller();
    let mut notices = Vec::new();
    for number in 0..400 {
        let mut without = page(f64::from(number) * 0.2, 200.0, 0.012, 0.0);
        without.change.inter_token = None;
        notices.extend(controller.step(&without).notice);
        assert_eq!(controller.clock(), Megahertz::new(2000.0));
    }
    let slo = "itl-p95=40ms".parse().unwrap();
    assert_eq!(notices, [SloNotice::NotMeasured(slo)]);
    let action = controller.step(&page(80.0, 200.0, 0.012, 0.0));
    assert_eq!(action.notice, Some(SloNotice::NowMeasured(slo)));
    run(&mut controller, 401..3000, 12.0);
    assert!(controller.clock() <= Megahertz::new(1000.0));
}

#[test]
fn full_speed_ends_when_the_load_falls() {
    let mut controller = controller();
    let mut notices = 0;
    for number in 0..300 {
        let action = controller.step(&page(f64::from(number) * 0.2, 2000.0, 0.3, 0.0));
        notices += u32::from(action.notice.is_some());
    }
    assert_eq!((notices, controller.clock()), (1, Megahertz::new(2000.0)));
    run(&mut controller, 300..3300, 12.0);
    assert!(
        controller.clock() <= Megahertz::new(1000.0),
        "{}",
        controller.clock()
    );
}

#[test]
fn a_server_that_stops_answering_gets_the_highest_clock() {
    let mut controller = controller();
    run(&mut controller, 0..3000, 12.0);
    let low = controller.clock();
    let last = 2999.0 * 0.2;
    assert_eq!(
        controller.without_page(Seconds::new(last + 0.9)).clock,
        None
    );
    let action = controller.without_page(Seconds::new(last + 1.1));
    assert_eq!(action.clock, Some(Megahertz::new(2000.0)));
    // A page that took longer than a second says what was, not what is.
    let mut late = page(last + 2.0, 2000.0, 0.012, 0.0);
    late.interval = Seconds::new(2.0);
    assert_eq!(controller.step(&late).clock, None);
    assert_eq!(controller.clock(), Megahertz::new(2000.0));
    let action = controller.step(&page(last + 2.2, 200.0, 0.012, 0.0));
    assert_eq!(action.clock, Some(low));
}

#[test]
fn one_late_request_does_not_raise_the_clock() {
    let mut controller = controller();
    run(&mut controller, 0..3000, 12.0);
    let before = controller.clock();
    let mut late = page(600.0, 200.0, 12e-3 * 2000.0 / before.get(), 0.0);
    let buckets = [0.01, 0.025, 0.05, 0.1, 0.5].map(|bound| (bound, 0.0));
    let buckets = buckets.into_iter().chain([(1.0, 1.0)]).collect();
    late.change.first_token = Some(Histogram::new(buckets, Some(0.7), Some(1.0)));
    controller.step(&late);
    assert!(controller.clock() <= before, "{}", controller.clock());
}

#[test]
fn prompts_that_take_much_of_the_time_raise_the_clock_without_a_queue() {
    let mut controller = controller();
    run(&mut controller, 0..3000, 12.0);
    let before = controller.clock();
    let mut burst = page(600.0, 200.0, 0.02, 0.0);
    // Four times as many tokens take four times as long.
    burst.change.prompt_tokens = Some(400.0);
    let buckets = [0.01, 0.025, 0.05, 0.1].map(|bound| (bound, 0.0));
    let buckets = buckets
        .into_iter()
        .chain([(0.5, 1.0), (1.0, 1.0)])
        .collect();
    burst.change.first_token = Some(Histogram::new(buckets, Some(0.2), Some(1.0)));
    let action = controller.step(&burst);
    assert!(
        action.clock.is_some_and(|clock| clock > before),
        "{action:?} after {before}"
    );
}

#[test]
fn power_is_kept_before_latency_and_the_user_is_told_once() {
    let mut controller = SloController::new(SloConfig {
        below: Some(Watts::new(200.0)),
        ..controller().config.clone()
    });
    let mut notices = Vec::new();
    let mut changes = 0;
    for number in 0..1000 {
        let mut next = page(f64::from(number) * 0.2, 200.0, 0.045, 0.0);
        next.power = Some(Watts::new(0.15 * controller.clock().get()));
        let action = controller.step(&next);
        notices.extend(action.notice);
        changes += u32::from(action.clock.is_some());
    }
    let below = Watts::new(200.0);
    assert!(
        notices.contains(&SloNotice::PowerLimitsClock(below)),
        "{notices:?}"
    );
    assert!(controller.clock() < Megahertz::new(1334.0));
    assert!(changes <= 20, "{changes} changes in 200 s");
}

#[test]
fn requests_of_our_own_stand_in_for_a_latency_that_is_not_reported() {
    let mut controller = controller();
    for number in 0..3000 {
        let at = f64::from(number) * 0.2;
        let mut without = page(at, 200.0, 0.012, 0.0);
        without.change.inter_token = None;
        let action = controller.step(&without);
        assert_eq!(action.notice, None);
        if number % 25 == 5 {
            let slower = 2000.0 / controller.clock().get();
            controller.add_probe(&ProbeObservation {
                sent: Seconds::new(at),
                first_token: Seconds::new(0.02),
                inter_token: vec![Seconds::new(0.012 * slower); 31],
            });
        }
    }
    let clock = controller.clock();
    assert!(
        clock >= Megahertz::new(600.0) && clock <= Megahertz::new(1200.0),
        "{clock}"
    );
}
