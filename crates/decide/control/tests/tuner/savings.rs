//! The savings that the tuner reports, compared with the true ones.

use sweetspot_control::tune::{RatioInterval, TuneEvent};
use sweetspot_decide::Objective;

use crate::test_job::{TestJob, curve, test_config};

/// The true savings of energy and loss of time of a job compared with the same items at the reference.
fn true_savings(job: &TestJob, parts: &[(f64, (f64, f64))]) -> (f64, f64) {
    let time: f64 = parts.iter().map(|(items, (rate, _))| items / rate).sum();
    let energy: f64 = parts
        .iter()
        .map(|(items, (rate, power))| items * power / rate)
        .sum();
    (1.0 - job.energy / energy, job.now / time - 1.0)
}

#[test]
fn work_before_a_load_change_is_noticed_counts_for_the_new_load() {
    let mut covered = 0;
    for seed in 0..10 {
        let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
        job.seed = seed;
        job.run(150.3 + 0.4 * seed as f64);
        let before = job.items;
        let faster: Vec<(f64, f64)> = curve()
            .into_iter()
            .map(|(rate, power)| (rate * 7.0, 0.7 * power))
            .collect();
        job.points = faster.clone();
        job.run(45.0);
        let after = job.items - before;
        let (energy, time) = true_savings(&job, &[(before, curve()[0]), (after, faster[0])]);
        let whole = job.finish().total_savings.unwrap();
        let covers = |share: RatioInterval, truth: f64| {
            // Counted for the old load, the value would be off by ten points.
            assert!(
                (share.value.get() - truth).abs() < 0.03,
                "{truth} {share:?}"
            );
            share.low.get() <= truth && truth <= share.high.get()
        };
        covered += u32::from(covers(whole.energy_saved, energy));
        covered += u32::from(covers(whole.time_lost, time));
    }
    assert!(covered >= 17, "{covered} of 20");
}

#[test]
fn an_external_change_ends_the_savings_of_a_choice() {
    let mut job = TestJob::new(test_config(Objective::Edp.into()), curve());
    job.run(120.0);
    let choice = *job.sets.last().unwrap();
    job.tell(TuneEvent::ChangedExternally(
        "the cap is 150 W now".to_owned(),
    ));
    // The external cap saves as well, which must not count.
    job.points = vec![(100.0, 50.0); 11];
    job.run(200.0);
    let tuned = job.finish();
    assert_eq!(tuned.last_choice().unwrap().choice, Some(choice));
    let at = tuned.gave_up_at.unwrap();
    assert!((at.get() - 120.0).abs() < 1.0, "{at}");
    let saved = tuned.energy_saved.unwrap().get();
    assert!(saved < 120.0 * 280.0 * 0.4, "{saved}");
}
