//! Properties of the holder. Whatever the events and their order, it does not panic, chooses only configured batch
//! sizes, and none that does not fit into memory. Under a constant load it stops changing the setting.

use proptest::prelude::*;
use sweetspot_control::hold::{
    CapOn, CompletedBatch, DeviceKnob, HoldConfig, HoldEvent, HoldGoal, HoldMode, HoldStatistics,
    Holder, PowerReading,
};
use sweetspot_device::Knob;
use sweetspot_quantity::{Megahertz, Seconds, Watts};

const CLOCKS: [f64; 5] = [600.0, 800.0, 1000.0, 1200.0, 1400.0];

fn clocks() -> DeviceKnob {
    DeviceKnob::CoreClock(CLOCKS.iter().map(|clock| Megahertz::new(*clock)).collect())
}

fn caps() -> DeviceKnob {
    let caps = (100..=250).step_by(10);
    DeviceKnob::PowerCap(caps.map(|cap| Watts::new(f64::from(cap))).collect())
}

fn modes() -> impl Strategy<Value = (HoldMode, DeviceKnob)> {
    prop::sample::select(vec![
        (HoldMode::Paper, DeviceKnob::None),
        (HoldMode::Text, DeviceKnob::None),
        (HoldMode::Windowed, DeviceKnob::None),
        (HoldMode::Robust, DeviceKnob::None),
        (HoldMode::Dvfs, clocks()),
        (HoldMode::StepUp, clocks()),
        (HoldMode::Joint, clocks()),
        (HoldMode::Joint, caps()),
    ])
}

fn sizes() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::btree_set(1_u64..600, 1..14).prop_map(|set| set.into_iter().collect())
}

/// A number, which is sometimes invalid or extreme.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 0.0..400.0_f64,
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300]),
    ]
}

fn batches() -> impl Strategy<Value = HoldEvent> {
    let parts = (
        any::<bool>(),
        1_u64..600,
        0_u64..600,
        number(),
        prop::option::of(number()),
    );
    parts.prop_map(|(is_requested, size, items, duration, latency)| {
        HoldEvent::BatchCompleted(CompletedBatch {
            // `resolve` replaces 0 with the requested size.
            size: if is_requested { 0 } else { size },
            items,
            duration: Seconds::new(duration / 100.0),
            latency: latency.map(|latency| Seconds::new(latency / 100.0)),
        })
    })
}

/// Readings whose times count from now.
fn readings() -> impl Strategy<Value = HoldEvent> {
    (number(), number(), number()).prop_map(|(back, span, power)| {
        HoldEvent::PowerRead(PowerReading {
            from: Seconds::new(-back / 100.0 - span / 100.0),
            to: Seconds::new(-back / 100.0),
            power: Watts::new(power),
        })
    })
}

fn events() -> impl Strategy<Value = (f64, HoldEvent)> {
    let other = prop_oneof![
        number().prop_map(|cap| HoldEvent::CapChanged(Watts::new(cap))),
        (1_u64..600).prop_map(|size| HoldEvent::OutOfMemory { size }),
        Just(HoldEvent::SettingRejected(Knob::CoreClock)),
        Just(HoldEvent::Tick),
        Just(HoldEvent::BatchSizeRequested),
        (number(), any::<bool>()).prop_map(|(enforced, throttled)| HoldEvent::DeviceLimit {
            enforced: Watts::new(enforced),
            throttled,
        }),
        (0_u64..5000, prop::option::of(number())).prop_map(|(length, arrivals_per_s)| {
            HoldEvent::Queue {
                length,
                arrivals_per_s,
            }
        }),
    ];
    let event = prop_oneof![6 => batches(), 6 => readings(), 1 => other];
    (0.0..0.5_f64, event)
}

/// Fills in the parts of an event that depend on the holder and on the time.
fn resolve(event: HoldEvent, holder: &Holder, now: f64) -> HoldEvent {
    match event {
        HoldEvent::BatchCompleted(batch) if batch.size == 0 => {
            HoldEvent::BatchCompleted(CompletedBatch {
                size: holder.setting().batch,
                ..batch
            })
        }
        HoldEvent::PowerRead(reading) => HoldEvent::PowerRead(PowerReading {
            from: reading.from + Seconds::new(now),
            to: reading.to + Seconds::new(now),
            ..reading
        }),
        other => other,
    }
}

/// A simulated GPU: power and time as functions of batch size and clock.
#[derive(Clone, Copy, Debug)]
struct SimulatedGpu {
    floor: f64,
    span: f64,
    half: f64,
    fixed: f64,
    each: f64,
}

fn gpus() -> impl Strategy<Value = SimulatedGpu> {
    let parts = (
        30.0..90.0_f64,
        10.0..200.0_f64,
        0.5..40.0_f64,
        0.002..0.05_f64,
        0.0002..0.01_f64,
    );
    parts.prop_map(|(floor, span, half, fixed, each)| SimulatedGpu {
        floor,
        span,
        half,
        fixed,
        each,
    })
}

/// The times at which a holder changed its setting.
fn change_times(holder: &mut Holder, gpu: &SimulatedGpu, seed: u64, end: f64) -> Vec<f64> {
    let noise = sweetspot_stats::Seed::new(seed);
    let (mut now, mut number) = (0.0, 0_u64);
    let mut changes = Vec::new();
    // An averaging sensor: the mean of the last second, read ten times a second.
    let (mut tenths, mut read_at) = ([gpu.floor; 10], 0.0);
    while now < end {
        let setting = holder.setting();
        let batch = setting.batch as f64;
        let speed = setting
            .core_clock
            .map_or(1.0, |clock| clock.get() / CLOCKS[CLOCKS.len() - 1]);
        let duration = gpu.fixed + gpu.each * batch / speed;
        let power = gpu.floor + gpu.span * batch / (batch + gpu.half) * speed * speed;
        now += duration;
        let done = CompletedBatch {
            size: setting.batch,
            items: setting.batch,
            duration: Seconds::new(duration),
            latency: None,
        };
        if holder
            .step(Seconds::new(now), HoldEvent::BatchCompleted(done))
            .has_changes()
        {
            changes.push(now);
        }
        while read_at + 0.1 <= now {
            read_at += 0.1;
            number += 1;
            tenths[number as usize % 10] = power * (1.0 + 0.002 * noise.number(number).normal());
            let reading = PowerReading {
                from: Seconds::new(read_at - 1.0),
                to: Seconds::new(read_at),
                power: Watts::new(tenths.iter().sum::<f64>() / 10.0),
            };
            let event = HoldEvent::PowerRead(reading);
            if holder.step(Seconds::new(now), event).has_changes() {
                changes.push(now);
            }
        }
    }
    changes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_order_of_events_keeps_the_settings_valid(
        (mode, knob) in modes(),
        sizes in sizes(),
        energy in any::<bool>(),
        bound in prop::option::of(0.001..2.0_f64),
        events in prop::collection::vec(events(), 1..400),
    ) {
        let config = HoldConfig {
            goal: if energy { HoldGoal::EnergyPerItem } else { HoldGoal::Throughput },
            latency_p99: bound.map(Seconds::new),
            ..HoldConfig::new(mode, Watts::new(150.0), sizes.clone(), knob)
        };
        let offered = match mode {
            HoldMode::Dvfs | HoldMode::StepUp => vec![config.fixed_batch],
            _ => sizes,
        };
        let mut holder = Holder::new(config).unwrap();
        let mut statistics = HoldStatistics::new(Watts::new(150.0), CapOn::default());
        let (mut now, mut failed) = (0.0, u64::MAX);
        for (later, event) in events {
            now += later;
            let event = resolve(event, &holder, now);
            if let HoldEvent::OutOfMemory { size } = event {
                failed = failed.min(size);
            }
            if let HoldEvent::PowerRead(reading) = &event {
                statistics.record_power(reading);
            }
            let before = holder.setting();
            let actions = holder.step(Seconds::new(now), event);
            let after = holder.setting();
            prop_assert!(offered.contains(&after.batch));
            prop_assert_eq!(actions.batch.is_some(), before.batch != after.batch);
            // Where no size fits, the smallest one remains.
            let fits = after.batch < failed || after.batch == offered[0];
            prop_assert!(fits, "{} after {failed} failed", after.batch);
            statistics.set_window_count(holder.window_count());
            if actions.has_changes() {
                statistics.record_change(Seconds::new(now));
            }
        }
        if let Some(share) = statistics.summary().violation_share {
            prop_assert!((0.0..=1.0).contains(&share.get()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_constant_load_ends_the_changes(
        joint in any::<bool>(),
        sizes in sizes(),
        cap in 40.0..260.0_f64,
        gpu in gpus(),
        seed in any::<u64>(),
    ) {
        let (mode, knob) = match joint {
            true => (HoldMode::Joint, clocks()),
            false => (HoldMode::Robust, DeviceKnob::None),
        };
        let config = HoldConfig::new(mode, Watts::new(cap), sizes, knob);
        let mut holder = Holder::new(config).unwrap();
        let end = 1_000.0;
        let changes = change_times(&mut holder, &gpu, seed, end);
        // Failed settings are tried again after five minutes and then ever more rarely, a few at a time.
        let late = changes.iter().filter(|at| **at > 0.5 * end).count();
        prop_assert!(late <= 12, "{late} late of {changes:?}");
    }
}
