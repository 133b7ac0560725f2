//! `hold --knob auto` next to fixed combinations of batch size and device setting.
//! `cargo run --release -p sweetspot-benchmarks --bin hold best` does the same with all combinations.

use sweetspot_control::hold::{DeviceKnob, HoldConfig, HoldMode, fine_batches};
use sweetspot_quantity::{Megahertz, Ratio, Seconds, Watts};
use sweetspot_sim::{Mode, Variant, find_gpu};
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{Conditions, HoldOutcome};

const TIME: Seconds = Seconds::new(300.0);
/// The GPU may be above the cap for this share of the time.
const EXCESS: f64 = 0.01;

struct Case {
    gpu: &'static str,
    network: &'static str,
    cap: f64,
    may_set: bool,
    /// The bound on the 99th percentile of the latency, in seconds.
    bound: Option<f64>,
}

const fn case(
    gpu: &'static str,
    network: &'static str,
    cap: f64,
    may_set: bool,
    bound: Option<f64>,
) -> Case {
    Case {
        gpu,
        network,
        cap,
        may_set,
        bound,
    }
}

/// Loads that the device slows down at its cap, one that becomes warmer at the cap, and some with pauses.
const CASES: [Case; 7] = [
    case("nvidia_h200", "inception_v3@h200", 350.0, true, None),
    case("nvidia_h200", "inception_v3@h200", 350.0, true, Some(0.011)),
    case("nvidia_h200", "resnet50@h200", 400.0, false, None),
    case("tesla_p100", "alexnet", 200.0, false, None),
    case("tesla_p40", "resnet152", 128.0, true, None),
    case("tesla_p40", "resnet152", 130.0, false, None),
    case("tesla_p40", "resnet152", 150.0, true, Some(0.43)),
];

/// The items per second from the end of the first batch after settling to the end of the last.
fn rate(outcome: &HoldOutcome) -> f64 {
    let from = outcome.summary.settle_time.unwrap_or(TIME);
    let mut after = outcome.latencies.iter().filter(|(at, ..)| *at > from);
    let (Some((begun, ..)), Some((end, ..))) = (after.next(), outcome.latencies.last()) else {
        return 0.0;
    };
    let items: u64 = after.map(|(_, _, items)| items).sum();
    items as f64 / (*end - *begun).get().max(1e-9)
}

fn excess(outcome: &HoldOutcome) -> f64 {
    outcome.summary.violation_share.map_or(0.0, Ratio::get)
}

fn is_quick(outcome: &HoldOutcome, bound: Option<f64>) -> bool {
    let from = outcome.summary.settle_time.unwrap_or(TIME / 2.0);
    let p99 = outcome.latency_p99(from);
    bound.is_none_or(|bound| p99.is_some_and(|p99| p99.get() <= bound))
}

/// The highest rate of a fixed combination that keeps cap and bound: every fifth size with the device as it is, below
/// its own cap and at three clocks.
fn best_fixed(server: &SimulatedServer, case: &Case, clocks: [f64; 3]) -> f64 {
    let cap = Watts::new(case.cap);
    let mut knobs = vec![(HoldMode::Robust, DeviceKnob::None)];
    if case.may_set {
        let caps = [1.0, 0.995].map(|share| DeviceKnob::PowerCap(vec![cap * share]));
        let clocks = clocks.map(|clock| DeviceKnob::CoreClock(vec![Megahertz::new(clock)]));
        let knobs_of_joint = caps.into_iter().chain(clocks);
        knobs.extend(knobs_of_joint.map(|knob| (HoldMode::Joint, knob)));
    }
    let sizes = fine_batches(256);
    let sizes = sizes.iter().skip(7).step_by(5).chain(&[256]);
    let mut best = 0.0;
    for (size, (mode, knob)) in
        sizes.flat_map(|size| knobs.iter().map(move |(mode, knob)| (size, (mode, knob))))
    {
        let config = HoldConfig::new(*mode, cap, vec![*size], knob.clone());
        let fixed = server.hold(config, &Conditions::steady(TIME, 5)).unwrap();
        if excess(&fixed) < EXCESS && is_quick(&fixed, case.bound) {
            best = f64::max(best, rate(&fixed));
        }
    }
    best
}

#[test]
fn auto_reaches_the_best_fixed_combination_in_twenty_windows() {
    for case in &CASES {
        let variant = Variant {
            mode: Some(Mode::Infer),
            ..Variant::default()
        };
        let server = SimulatedServer::new(case.gpu, case.network, &variant).unwrap();
        let (_, profile) = find_gpu(case.gpu).unwrap();
        let cap = Watts::new(case.cap);
        let config = match case.may_set {
            true => {
                let range = (profile.cap.min, profile.cap.max);
                HoldConfig::with_device_cap(cap, fine_batches(256), range)
            }
            false => HoldConfig::robust(cap, fine_batches(256)),
        };
        let config = HoldConfig {
            latency_p99: case.bound.map(Seconds::new),
            ..config
        };
        let held = server.hold(config, &Conditions::steady(TIME, 5)).unwrap();
        let highest = profile.core.max.get();
        let best = best_fixed(&server, case, [highest, 0.94 * highest, 0.8 * highest]);
        let label = format!(
            "{} {} {} W, sets the GPU: {}, bound {:?}: {:.1} of {best:.1}/s, {:#?}",
            case.gpu,
            case.network,
            case.cap,
            case.may_set,
            case.bound,
            rate(&held),
            held.summary
        );
        assert!(best > 0.0, "{label}");
        assert!(rate(&held) >= 0.99 * best, "{label}");
        assert!(excess(&held) < EXCESS, "{label}");
        assert!(held.summary.settle_windows.unwrap() <= 20, "{label}");
        assert!(is_quick(&held, case.bound), "{label}");
    }
}
