//! Serving a language model: energy and missed latency bounds of several policies, in virtual time.
//!
//! `cargo run --release -p sweetspot-benchmarks --bin serving [SEED]` serves three traces of an hour with bursts.
//! `cargo run --release -p sweetspot-benchmarks --bin serving fit` fits the language model to the measured table.
//! `cargo run --release -p sweetspot-benchmarks --bin serving scraping` measures what reading a metrics page costs.

mod fit;
mod policies;
mod scraping;

use sweetspot_quantity::Seconds;
use sweetspot_sim::{EngineLimits, LlmModel, LlmTrace, TraceShape, find_gpu};
use sweetspot_virtual_time::serving::{FixedClock, ServingOutcome, ServingScenario};

use policies::{LowestClock, Timed};

fn main() {
    let argument = std::env::args().nth(1);
    match argument.as_deref() {
        Some("fit") => return fit::print(),
        Some("scraping") => return scraping::print(),
        _ => {}
    }
    let seed = argument.map_or(1, |seed| seed.parse().expect("a seed is a number"));
    let hour = Seconds::new(3600.0);
    let bursts = |every: f64, length: f64, factor: f64| TraceShape::Bursts {
        every: Seconds::new(every),
        length: Seconds::new(length),
        factor,
    };
    let traces = [
        (
            "chat, bursts of 10 s",
            4.0,
            bursts(90.0, 10.0, 4.0),
            300.0,
            200.0,
        ),
        (
            "a day within the hour",
            8.0,
            TraceShape::Day { length: hour },
            500.0,
            150.0,
        ),
        (
            "long prompts, bursts of 5 s",
            1.5,
            bursts(60.0, 5.0, 5.0),
            1500.0,
            250.0,
        ),
    ];
    println!(
        "trace                        policy                    energy   vs highest  missed  more missed  changes  mean clock  us/decision"
    );
    for (index, (name, rate, shape, prompt, output)) in traces.into_iter().enumerate() {
        let trace = LlmTrace {
            rate,
            shape,
            prompt,
            output,
            spread: 0.6,
            time: hour,
            seed: seed * 10 + index as u64,
        };
        let scenario = ServingScenario {
            gpu: find_gpu("h200").expect("the profile").1,
            model: LlmModel::EIGHT_BILLION,
            limits: EngineLimits::default(),
            requests: trace.requests(),
            slos: ["ttft-p99=500ms", "itl-p95=40ms"]
                .map(|slo| slo.parse().expect("a bound"))
                .to_vec(),
            page_interval: Seconds::new(0.2),
            switch_time: Seconds::new(0.02),
        };
        compare(name, &scenario);
    }
}

/// Serves one trace with every policy.
fn compare(name: &str, scenario: &ServingScenario) {
    let highest = scenario.serve(None, &mut FixedClock);
    let show = |policy: &str, outcome: &ServingOutcome, decision: Option<f64>| {
        println!(
            "{name:<28} {policy:<22} {:>8.1} kJ {:>9.1} % {:>6.2} % {:>10.2} % {:>8} {:>8.0} MHz {:>10}",
            outcome.energy.get() / 1e3,
            100.0 * (outcome.energy / highest.energy - sweetspot_quantity::Ratio::new(1.0)).get(),
            100.0 * outcome.violation_share().get(),
            100.0 * (outcome.violation_share() - highest.violation_share()).get(),
            outcome.changes,
            outcome.mean_clock.get(),
            decision.map_or(String::new(), |us| format!("{us:.1}")),
        );
    };
    let is_allowed = |outcome: &ServingOutcome| {
        outcome.violation_share().get() <= highest.violation_share().get() + 0.01
    };
    let cheapest = |outcomes: Vec<(String, ServingOutcome)>| {
        let allowed = outcomes
            .into_iter()
            .filter(|(_, outcome)| is_allowed(outcome));
        allowed.min_by(|a, b| a.1.energy.get().total_cmp(&b.1.energy.get()))
    };
    show("highest clock", &highest, None);
    let fixed = scenario.clocks().into_iter().step_by(2).map(|clock| {
        let outcome = scenario.serve(Some(clock), &mut FixedClock);
        (format!("best fixed, {:.0} MHz", clock.get()), outcome)
    });
    let best_fixed = cheapest(fixed.collect());
    if let Some((policy, outcome)) = best_fixed.clone() {
        show(&policy, &outcome, None);
    }
    let mut voltana = LowestClock::voltana(scenario);
    show(
        "VoltanaLLM's rule",
        &scenario.serve(None, &mut voltana),
        None,
    );
    let mut ours = Timed::new(scenario.controller());
    let outcome = scenario.serve(None, &mut ours);
    show("hold --slo", &outcome, Some(ours.mean_us()));
    let oracles = LowestClock::oracles(scenario)
        .into_iter()
        .map(|mut oracle| {
            let outcome = scenario.serve(None, &mut oracle);
            ("oracle".to_owned(), outcome)
        });
    // A clock that never changes is among what an oracle may choose.
    let fixed = best_fixed.map(|(_, outcome)| ("oracle".to_owned(), outcome));
    if let Some((policy, oracle)) = cheapest(oracles.chain(fixed).collect()) {
        show(&policy, &oracle, None);
        println!(
            "{name:<28} hold --slo: {:+.1} % of the oracle, {:+.1} % of the highest clock\n",
            100.0 * (outcome.energy.get() / oracle.energy.get() - 1.0),
            100.0 * (outcome.energy.get() / highest.energy.get() - 1.0),
        );
    }
}
