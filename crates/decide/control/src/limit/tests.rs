//! Tables of loads with known limits, and inputs that cannot be true.

use proptest::prelude::*;
use sweetspot_device::UnitUse;
use sweetspot_quantity::{Ratio, Watts};

use super::{CapEffect, EffectiveKnob, Limit, LoadEvidence, LoadLimit};

/// A load with a mean power, the time throttled by a cap of 700 W, and the use of cores, tensor units and memory.
fn load(power: f64, capped: impl Into<Option<f64>>, units: Option<[f64; 3]>) -> LoadEvidence {
    let share = |index: usize| units.map(|units| Ratio::new(units[index]));
    LoadEvidence {
        power: Some(Watts::new(power)),
        power_cap: Some(Watts::new(700.0)),
        throttled_by_cap: capped.into().map(Ratio::new),
        units: UnitUse {
            cores: share(0),
            tensor: share(1),
            memory: share(2),
        },
        ..LoadEvidence::default()
    }
}

#[test]
fn loads_with_known_limits_are_recognised() {
    use EffectiveKnob::{BatchOrInput, CoreClock, None as NoKnob, PowerCap};
    let table = [
        (
            "matrix product",
            load(695.0, 0.98, Some([0.99, 0.9, 0.3])),
            Limit::PowerCap,
            PowerCap,
        ),
        (
            "the same without GPM",
            load(695.0, 0.98, None),
            Limit::PowerCap,
            PowerCap,
        ),
        (
            "the same without counters",
            load(695.0, None, None),
            Limit::PowerCap,
            PowerCap,
        ),
        (
            "a counter that stands still",
            load(699.0, 0.0, None),
            Limit::PowerCap,
            PowerCap,
        ),
        (
            "bursts at the cap",
            load(500.0, 0.4, Some([0.7, 0.5, 0.3])),
            Limit::PowerCap,
            PowerCap,
        ),
        (
            "copies",
            load(577.0, 0.0, Some([0.98, 0.0, 0.92])),
            Limit::Memory,
            CoreClock,
        ),
        (
            "text generation",
            load(250.0, 0.0, Some([0.6, 0.05, 0.45])),
            Limit::Memory,
            CoreClock,
        ),
        (
            "small tensors",
            load(420.0, 0.0, Some([0.9, 0.5, 0.3])),
            Limit::Compute,
            CoreClock,
        ),
        (
            "slow input",
            load(200.0, 0.0, Some([0.3, 0.1, 0.1])),
            Limit::Host,
            BatchOrInput,
        ),
        (
            "nothing runs",
            load(120.0, 0.0, Some([0.0, 0.0, 0.0])),
            Limit::Idle,
            NoKnob,
        ),
        (
            "below the cap, no GPM",
            load(412.0, 0.0, None),
            Limit::Unknown,
            CoreClock,
        ),
        (
            "below the cap, no counters",
            load(412.0, None, None),
            Limit::Unknown,
            CoreClock,
        ),
        (
            "near the cap, no counters",
            load(650.0, None, None),
            Limit::Unknown,
            NoKnob,
        ),
        (
            "nothing is known",
            LoadEvidence::default(),
            Limit::Unknown,
            NoKnob,
        ),
    ];
    for (name, evidence, limit, knob) in table {
        let decided = LoadLimit::decide(&evidence);
        assert_eq!(
            (decided.limit, decided.knob),
            (limit, knob),
            "{name}: {decided}"
        );
    }
}

/// Loads of 4 s each, one after the other, on an H200 with driver 580.159: bf16 matrix products of 8192, copies, products
/// with 8 columns as in text generation, sines, tiny products, and large ones with a wait of 10 ms after each. The copies
/// and the tiny products follow loads at the cap, and the counter still runs for 0.5 s.
#[test]
fn loads_measured_on_an_h200_are_recognised() {
    let measured = [
        (
            load(688.0, 0.973, Some([0.943, 0.915, 0.175])),
            Limit::PowerCap,
        ),
        (
            load(560.0, 0.108, Some([0.983, 0.007, 0.863])),
            Limit::Memory,
        ),
        (load(610.0, 0.0, Some([0.909, 0.133, 0.862])), Limit::Memory),
        (
            load(700.0, 0.816, Some([0.984, 0.002, 0.711])),
            Limit::PowerCap,
        ),
        (load(129.0, 0.119, Some([0.027, 0.0, 0.017])), Limit::Host),
        (load(228.0, 0.0, Some([0.094, 0.091, 0.025])), Limit::Host),
    ];
    for (evidence, limit) in measured {
        let decided = LoadLimit::decide(&evidence);
        assert_eq!(decided.limit, limit, "{decided}");
    }
}

#[test]
fn heat_comes_before_the_cap() {
    let hot = LoadEvidence {
        throttled_by_heat: Some(Ratio::new(0.3)),
        ..load(690.0, 0.5, None)
    };
    assert_eq!(LoadLimit::decide(&hot).limit, Limit::Temperature);
    let braked = LoadEvidence {
        throttled_by_brake: Some(Ratio::new(0.3)),
        ..load(300.0, 0.0, None)
    };
    let decided = LoadLimit::decide(&braked);
    assert_eq!(
        (decided.limit, decided.knob),
        (Limit::PowerBrake, EffectiveKnob::None)
    );
}

#[test]
fn older_gpus_are_judged_by_their_utilisation() {
    let waiting = LoadEvidence {
        utilisation: Some(Ratio::new(0.2)),
        ..load(100.0, 0.0, None)
    };
    assert_eq!(LoadLimit::decide(&waiting).limit, Limit::Host);
    let busy = LoadEvidence {
        utilisation: Some(Ratio::new(0.99)),
        ..waiting
    };
    assert_eq!(LoadLimit::decide(&busy).limit, Limit::Unknown);
}

#[test]
fn monitors_that_show_nothing_while_kernels_run_do_not_count() {
    let dead = LoadEvidence {
        utilisation: Some(Ratio::new(0.99)),
        ..load(412.0, 0.0, Some([0.0, 0.0, 0.0]))
    };
    let decided = LoadLimit::decide(&dead);
    assert_eq!(decided.limit, Limit::Unknown, "{decided}");
    let idle = LoadEvidence {
        utilisation: Some(Ratio::new(0.0)),
        ..dead
    };
    assert_eq!(LoadLimit::decide(&idle).limit, Limit::Idle);
}

#[test]
fn sentences_name_the_cap_the_draw_and_the_knob() {
    let text = |evidence| LoadLimit::decide(&evidence).to_string();
    assert_eq!(
        text(load(412.0, 0.0, Some([0.95, 0.1, 0.88]))),
        "the power cap of 700 W does not limit this load, which draws 412 W: it is limited by memory bandwidth (88 %); a lower core clock saves energy"
    );
    assert_eq!(
        text(load(695.0, 0.98, None)),
        "the power cap of 700 W limits this load, which draws 695 W: it was throttled for 98 % of the time; a lower cap saves energy"
    );
    assert_eq!(
        text(load(412.0, 0.0, None)),
        "the power cap of 700 W does not limit this load, which draws 412 W: what limits it is unknown; a lower core clock may save energy"
    );
    assert_eq!(
        text(load(70.0, 0.0, None)),
        "the power cap of 700 W does not limit this load, which draws 70 W: what limits it is unknown; perhaps no work ran on the GPU"
    );
    assert_eq!(
        text(LoadEvidence::default()),
        "what limits it is unknown; so no knob can be recommended"
    );
}

#[test]
fn findings_leave_out_what_is_unknown_and_recommend_nothing() {
    let finding = |evidence| LoadLimit::decide(&evidence).finding();
    assert_eq!(
        finding(load(412.0, 0.0, Some([0.95, 0.1, 0.88]))),
        "the power cap of 700 W does not limit this load, which draws 412 W: it is limited by memory bandwidth (88 %)"
    );
    assert_eq!(
        finding(load(412.0, 0.0, None)),
        "the power cap of 700 W does not limit this load, which draws 412 W"
    );
    assert_eq!(finding(load(650.0, None, None)), "");
}

#[test]
fn values_that_cannot_be_true_count_as_missing() {
    for wrong in [f64::NAN, f64::INFINITY, -0.5, 7.0] {
        let decided = LoadLimit::decide(&load(412.0, wrong, Some([wrong, wrong, wrong])));
        assert_eq!(decided.evidence, load(412.0, None, None), "{wrong}");
    }
    let decided = LoadLimit::decide(&load(f64::NAN, None, None));
    assert_eq!(
        (decided.cap, decided.limit),
        (CapEffect::Unknown, Limit::Unknown)
    );
    assert!(!decided.is_known());
}

proptest! {
    #[test]
    fn any_input_is_decided_and_a_cap_that_binds_is_the_knob(
        numbers in prop::collection::vec(
            prop::option::of(prop_oneof![Just(f64::NAN), Just(-1.0), Just(0.0), 0.0..1.2, 0.0..800.0]), 9)
    ) {
        let share = |index: usize| numbers[index].map(Ratio::new);
        let evidence = LoadEvidence {
            power: numbers[0].map(Watts::new),
            power_cap: numbers[1].map(Watts::new),
            throttled_by_cap: share(2),
            throttled_by_heat: share(3),
            throttled_by_brake: share(4),
            utilisation: share(5),
            units: UnitUse { cores: share(6), tensor: share(7), memory: share(8) },
        };
        let decided = LoadLimit::decide(&evidence);
        prop_assert!(!decided.to_string().contains("NaN"), "{decided}");
        // The decision about plausible values is the same as about all.
        prop_assert_eq!(LoadLimit::decide(&decided.evidence), decided);
        if decided.knob == EffectiveKnob::PowerCap {
            prop_assert_eq!(decided.cap, CapEffect::Binds);
        }
        if decided.limit == Limit::Unknown && decided.knob != EffectiveKnob::None {
            prop_assert_eq!(decided.cap, CapEffect::DoesNotBind);
        }
    }
}
