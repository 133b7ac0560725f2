//! Whatever happens, in whatever order: no panic, no size that was not offered, none that does not fit; and
//! under a constant load it ends changing.

use proptest::prelude::*;
use sweetspot_control::hold::{
    Account, BatchDone, DeviceKnob, Event, Goal, Holder, Mode, PowerReading, Terms,
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

fn modes() -> impl Strategy<Value = (Mode, DeviceKnob)> {
    prop::sample::select(vec![
        (Mode::Paper, DeviceKnob::None),
        (Mode::Text, DeviceKnob::None),
        (Mode::Windowed, DeviceKnob::None),
        (Mode::Robust, DeviceKnob::None),
        (Mode::Dvfs, clocks()),
        (Mode::StepUp, clocks()),
        (Mode::Joint, clocks()),
        (Mode::Joint, caps()),
    ])
}

fn sizes() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::btree_set(1_u64..600, 1..14).prop_map(|set| set.into_iter().collect())
}

/// Any number, with those that break things.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 0.0..400.0_f64,
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300]),
    ]
}

fn batches() -> impl Strategy<Value = Event> {
    let parts = (
        any::<bool>(),
        1_u64..600,
        0_u64..600,
        number(),
        prop::option::of(number()),
    );
    parts.prop_map(|(obeys, size, items, duration, latency)| {
        Event::Batch(BatchDone {
            // 0 stands for the size that was asked for.
            size: if obeys { 0 } else { size },
            items,
            duration: Seconds::new(duration / 100.0),
            latency: latency.map(|latency| Seconds::new(latency / 100.0)),
        })
    })
}

/// Spans count from now.
fn readings() -> impl Strategy<Value = Event> {
    (number(), number(), number()).prop_map(|(back, span, power)| {
        Event::Power(PowerReading {
            from: Seconds::new(-back / 100.0 - span / 100.0),
            to: Seconds::new(-back / 100.0),
            power: Watts::new(power),
        })
    })
}

fn events() -> impl Strategy<Value = (f64, Event)> {
    let other = prop_oneof![
        number().prop_map(|cap| Event::Cap(Watts::new(cap))),
        (1_u64..600).prop_map(|size| Event::OutOfMemory { size }),
        Just(Event::Refused(Knob::CoreClock)),
        Just(Event::Tick),
        Just(Event::Asked),
        (number(), any::<bool>()).prop_map(|(enforced, throttled)| Event::Limit {
            enforced: Watts::new(enforced),
            throttled,
        }),
        (0_u64..5000, prop::option::of(number())).prop_map(|(length, arrivals_per_s)| {
            Event::Queue {
                length,
                arrivals_per_s,
            }
        }),
    ];
    let event = prop_oneof![6 => batches(), 6 => readings(), 1 => other];
    (0.0..0.5_f64, event)
}

/// With what depends on the holder and on the time put in.
fn at(event: Event, holder: &Holder, now: f64) -> Event {
    match event {
        Event::Batch(batch) if batch.size == 0 => Event::Batch(BatchDone {
            size: holder.setting().batch,
            ..batch
        }),
        Event::Power(reading) => Event::Power(PowerReading {
            from: reading.from + Seconds::new(now),
            to: reading.to + Seconds::new(now),
            ..reading
        }),
        other => other,
    }
}

/// A plant of two equations: power and time by batch size and clock.
#[derive(Clone, Copy, Debug)]
struct Plant {
    floor: f64,
    span: f64,
    half: f64,
    fixed: f64,
    each: f64,
}

fn plants() -> impl Strategy<Value = Plant> {
    let parts = (
        30.0..90.0_f64,
        10.0..200.0_f64,
        0.5..40.0_f64,
        0.002..0.05_f64,
        0.0002..0.01_f64,
    );
    parts.prop_map(|(floor, span, half, fixed, each)| Plant {
        floor,
        span,
        half,
        fixed,
        each,
    })
}

/// When a holder changed its setting.
fn changes(holder: &mut Holder, plant: &Plant, seed: u64, end: f64) -> Vec<f64> {
    let noise = sweetspot_stats::Seed::new(seed);
    let (mut now, mut number) = (0.0, 0_u64);
    let mut changes = Vec::new();
    // A mean of a second that follows the power of now as an averaging sensor does, read ten times.
    let (mut tenths, mut read_at) = ([plant.floor; 10], 0.0);
    while now < end {
        let setting = holder.setting();
        let batch = setting.batch as f64;
        let speed = setting
            .core_clock
            .map_or(1.0, |clock| clock.get() / CLOCKS[CLOCKS.len() - 1]);
        let duration = plant.fixed + plant.each * batch / speed;
        let power = plant.floor + plant.span * batch / (batch + plant.half) * speed * speed;
        now += duration;
        let done = BatchDone {
            size: setting.batch,
            items: setting.batch,
            duration: Seconds::new(duration),
            latency: None,
        };
        if holder.step(Seconds::new(now), Event::Batch(done)).changes() {
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
            let event = Event::Power(reading);
            if holder.step(Seconds::new(now), event).changes() {
                changes.push(now);
            }
        }
    }
    changes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_order_of_events_is_borne(
        (mode, knob) in modes(),
        sizes in sizes(),
        energy in any::<bool>(),
        bound in prop::option::of(0.001..2.0_f64),
        events in prop::collection::vec(events(), 1..400),
    ) {
        let terms = Terms {
            goal: if energy { Goal::EnergyPerItem } else { Goal::Throughput },
            latency_p99: bound.map(Seconds::new),
            ..Terms::of(mode, Watts::new(150.0), sizes.clone(), knob)
        };
        let offered = match mode {
            Mode::Dvfs | Mode::StepUp => vec![terms.fixed_batch],
            _ => sizes,
        };
        let mut holder = Holder::new(terms).unwrap();
        let mut account = Account::new(Watts::new(150.0), Seconds::new(1.0));
        let (mut now, mut failed) = (0.0, u64::MAX);
        for (later, event) in events {
            now += later;
            let event = at(event, &holder, now);
            if let Event::OutOfMemory { size } = event {
                failed = failed.min(size);
            }
            if let Event::Power(reading) = &event {
                account.power(reading);
            }
            let before = holder.setting();
            let actions = holder.step(Seconds::new(now), event);
            let after = holder.setting();
            prop_assert!(offered.contains(&after.batch));
            prop_assert_eq!(actions.batch.is_some(), before.batch != after.batch);
            // Where nothing fits, the smallest is all there is.
            let fits = after.batch < failed || after.batch == offered[0];
            prop_assert!(fits, "{} after {failed} failed", after.batch);
            account.windows(holder.windows());
            if actions.changes() {
                account.changed(Seconds::new(now));
            }
        }
        if let Some(share) = account.summary().violation_share {
            prop_assert!((0.0..=1.0).contains(&share.get()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn under_a_constant_load_it_ends_changing(
        joint in any::<bool>(),
        sizes in sizes(),
        cap in 40.0..260.0_f64,
        plant in plants(),
        seed in any::<u64>(),
    ) {
        let (mode, knob) = match joint {
            true => (Mode::Joint, clocks()),
            false => (Mode::Robust, DeviceKnob::None),
        };
        let terms = Terms::of(mode, Watts::new(cap), sizes, knob);
        let mut holder = Holder::new(terms).unwrap();
        let end = 1_000.0;
        let changes = changes(&mut holder, &plant, seed, end);
        // What failed is tried again after five minutes and then ever more rarely: at most a few at once.
        let late = changes.iter().filter(|at| **at > 0.5 * end).count();
        prop_assert!(late <= 12, "{late} late of {changes:?}");
    }
}
