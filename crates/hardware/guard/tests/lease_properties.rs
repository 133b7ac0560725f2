//! Arbitrary sequences of requests by several owners: the device always has the lowest value that a lease asks for, also
//! after a crash, and in the end the settings from before.

mod common;

use common::{TestMachine, cap, core, id, open};
use proptest::prelude::*;
use sweetspot_device::{Knob, Settings};
use sweetspot_guard::{LeaseKind, LeaseTerms, Leases, Owner, Refusal};
use sweetspot_quantity::{Megahertz, Watts};

/// The settings of the device before the first lease.
const BEFORE: f64 = 250.0;

/// What happens next. Owners are numbers.
#[derive(Clone, Debug)]
enum Step {
    Lease(usize, LeaseKind),
    Cap(usize, f64),
    Clock(usize, f64),
    Restore(usize),
    Unlock(usize),
    Release(usize),
    /// The process that gives leases is killed, and another one takes them up.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let owner = || 0..OWNERS;
    let kind = prop_oneof![Just(LeaseKind::Setting), Just(LeaseKind::Ceiling)];
    // The value from before is among them.
    let watts = prop::sample::select(vec![120.0, 180.0, 200.0, 220.0, BEFORE, 280.0]);
    let clock = prop::sample::select(vec![900.0, 1200.0]);
    prop_oneof![
        3 => (owner(), kind).prop_map(|(owner, kind)| Step::Lease(owner, kind)),
        4 => (owner(), watts).prop_map(|(owner, watts)| Step::Cap(owner, watts)),
        2 => (owner(), clock).prop_map(|(owner, clock)| Step::Clock(owner, clock)),
        1 => owner().prop_map(Step::Restore),
        1 => owner().prop_map(Step::Unlock),
        2 => owner().prop_map(Step::Release),
        1 => Just(Step::Crash),
    ]
}

/// The number of owners: two jobs of a user, one of another user, and one of root.
const OWNERS: usize = 4;

fn owner(number: usize) -> Owner {
    let uid = [1000, 1000, 1001, 0][number];
    Owner::job(format!("job {number}"), uid)
}

/// What the leases ask for, without those that ask for nothing.
fn asked(leases: &Leases<'_>) -> Vec<(Option<String>, Settings)> {
    let leases = leases.summaries().into_iter();
    let leases = leases.filter(|lease| lease.settings != Settings::default());
    leases
        .map(|lease| (lease.owner.job, lease.settings))
        .collect()
}

/// What the device must be set to, by what the leases say.
fn expected(leases: &Leases<'_>) -> Settings {
    let leases = leases.summaries();
    let lowest = |values: Vec<f64>| values.into_iter().reduce(f64::min);
    let caps = leases.iter().filter_map(|lease| lease.settings.power_cap);
    let clocks = leases.iter().filter_map(|lease| lease.settings.core_clock);
    let cap = lowest(caps.map(Watts::get).collect());
    Settings {
        power_cap: Some(Watts::new(cap.unwrap_or(BEFORE))),
        core_clock: lowest(clocks.map(Megahertz::get).collect()).map(Megahertz::new),
        memory_clock: None,
    }
}

fn new_leases(machine: &TestMachine) -> Leases<'_> {
    Leases::new(machine.journal(), |id| open(machine.folder(), id))
}

/// Makes a request. The only refusals are those for leases that the owner does not have or cannot get.
fn request(leases: &mut Leases<'_>, step: &Step) {
    let device = id("a");
    let outcome = match *step {
        Step::Lease(number, kind) => {
            let owner = owner(number);
            let terms = LeaseTerms { owner, kind };
            leases.lease(&[device], &terms).map(drop)
        }
        Step::Cap(number, watts) => leases.apply(&device, &owner(number), &cap(watts)).map(drop),
        Step::Clock(number, clock) => leases
            .apply(&device, &owner(number), &core(clock))
            .map(drop),
        Step::Restore(number) => leases.restore(&device, &owner(number)),
        Step::Unlock(number) => leases.restore_knob(&device, &owner(number), Knob::CoreClock),
        Step::Release(number) => leases
            .release(&device, &owner(number))
            .map_err(Refusal::from),
        Step::Crash => Ok(()),
    };
    match outcome {
        Ok(()) | Err(Refusal::NotLeased(_) | Refusal::Journal(_)) => {}
        Err(other) => panic!("{step:?}: {other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_lowest_value_applies_and_the_first_returns(steps in prop::collection::vec(step(), 1..25)) {
        let machine = TestMachine::new(&["a"]);
        let mut leases = new_leases(&machine);
        for step in &steps {
            request(&mut leases, step);
            if let Step::Crash = step {
                let before = (machine.state("a").settings, asked(&leases));
                let has_changed = !machine.journals().is_empty();
                drop(leases);
                leases = new_leases(&machine);
                leases.resume().unwrap();
                // Jobs outlive the crash, and so does what they ask for. Where nothing has changed, there is nothing to
                // restore, and so nothing is stored.
                let after = match has_changed {
                    true => (machine.state("a").settings, asked(&leases)),
                    false => (machine.state("a").settings, before.1.clone()),
                };
                prop_assert_eq!(after, before);
            }
            prop_assert_eq!(machine.state("a").settings, expected(&leases), "{:?}", step);
        }
        prop_assert!(leases.release_all().is_empty());
        prop_assert_eq!(machine.state("a").settings, cap(BEFORE));
        prop_assert!(machine.journals().is_empty());
    }
}
