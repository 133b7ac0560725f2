//! Properties of the tuner for any order of events and any job.

use proptest::prelude::*;
use sweetspot_control::tune::{TuneAction, TuneEvent, Tuner};
use sweetspot_decide::Objective;
use sweetspot_quantity::{Joules, Seconds};

use crate::test_job::{TestJob, test_config};

fn events() -> impl Strategy<Value = TuneEvent> {
    prop_oneof![
        (any::<f64>(), any::<f64>()).prop_map(|(at, total)| TuneEvent::Energy {
            at: Seconds::new(at),
            total: Joules::new(total)
        }),
        (0.0..300.0, 0.0..1e5).prop_map(|(at, total)| TuneEvent::Progress {
            at: Seconds::new(at),
            total
        }),
        (0.0..300.0, 0.0..1e5).prop_map(|(at, total)| TuneEvent::Energy {
            at: Seconds::new(at),
            total: Joules::new(total)
        }),
        prop_oneof![Just(None), Just(Some("a".to_owned()))].prop_map(TuneEvent::Phase),
        (0..12_usize).prop_map(TuneEvent::Applied),
        (0..12_usize).prop_map(|point| TuneEvent::Rejected {
            point,
            reason: "no".to_owned()
        }),
        Just(TuneEvent::Tick),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_order_of_events_keeps_the_places_valid(
        events in prop::collection::vec((0.0..2.0, events()), 0..200),
        end in 0..200_usize,
    ) {
        let mut tuner = Tuner::new(test_config(Objective::Edp.into()));
        let mut now = 0.0;
        for (index, (passed, event)) in events.into_iter().enumerate() {
            now += passed;
            let event = if index == end { TuneEvent::Ended } else { event };
            for action in tuner.step(Seconds::new(now), event) {
                if let TuneAction::Set(point) = action {
                    prop_assert!(point < 11);
                }
            }
        }
        let tuned = tuner.finish();
        prop_assert!(tuned.loads.iter().all(|load| load.choice.is_none_or(|choice| choice < 11)));
    }

    #[test]
    fn every_search_ends(rates in prop::collection::vec((1.0..200.0, 50.0..300.0), 11), seed in 0..50_u64) {
        let mut job = TestJob::new(test_config(Objective::Edp.into()), rates);
        job.seed = seed;
        job.run(140.0);
        prop_assert!(job.sets.len() < 25, "{:?}", job.sets);
        let tuned = job.finish();
        prop_assert!(tuned.gave_up.is_some() || tuned.loads[0].choice.is_some());
    }
}
