//! The choice of an earlier run.

use sweetspot_control::tune::{RememberedChoice, TuneNotice};
use sweetspot_decide::Objective;
use sweetspot_quantity::Ratio;

use super::was_notified;
use crate::test_job::{TestJob, curve, test_config};

#[test]
fn a_remembered_choice_is_confirmed_or_not() {
    let mut good = test_config(Objective::Edp.into());
    let best = TestJob::new(good.clone(), curve()).best(|time, energy| time * energy);
    let truth = {
        let value = |point: usize| curve()[point].0.powi(-2) * curve()[point].1;
        1.0 - value(best) / value(0)
    };
    good.remembered = Some(RememberedChoice {
        each: None,
        point: best,
        gain: Ratio::new(truth),
        expected_regret: Some(Ratio::new(0.002)),
    });
    let mut job = TestJob::new(good, curve());
    job.run(40.0);
    assert!(was_notified(&job, |notice| matches!(
        notice,
        TuneNotice::RememberedConfirmed(_)
    )));
    assert_eq!(job.sets, [0, best]);
    let mut bad = test_config(Objective::Edp.into());
    bad.remembered = Some(RememberedChoice {
        each: None,
        point: 10,
        gain: Ratio::new(0.2),
        expected_regret: None,
    });
    let mut job = TestJob::new(bad, curve());
    job.run(100.0);
    assert!(was_notified(&job, |notice| matches!(
        notice,
        TuneNotice::RememberedNotConfirmed(_)
    )));
    assert!(job.sets.len() > 3);
}
