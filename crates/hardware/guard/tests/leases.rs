//! Several leases of a device: the lower value applies, and what remains returns when one of them ends.

mod common;

use common::{TestMachine, cap, core, id, open};
use sweetspot_device::{Settings, Shortfall};
use sweetspot_guard::{JournalError, LeaseKind, LeaseTerms, Leases, Owner, Refusal};
use sweetspot_quantity::{Megahertz, Watts};

fn leases(machine: &TestMachine) -> Leases<'_> {
    Leases::new(machine.journal(), |id| open(machine.folder(), id))
}

/// The owner of a lease: a job of a user.
fn job(name: &str, uid: u32) -> Owner {
    Owner::job(name.to_owned(), uid)
}

fn terms(owner: &Owner, kind: LeaseKind) -> LeaseTerms {
    LeaseTerms {
        owner: owner.clone(),
        kind,
    }
}

fn ceiling(owner: &Owner) -> LeaseTerms {
    terms(owner, LeaseKind::Ceiling)
}

fn setting(owner: &Owner) -> LeaseTerms {
    terms(owner, LeaseKind::Setting)
}

fn is_held(result: Result<Vec<sweetspot_guard::RestoreOutcome>, Refusal>) -> bool {
    matches!(result, Err(Refusal::Journal(JournalError::Held { .. })))
}

#[test]
fn the_lower_cap_applies_and_the_outer_value_returns() {
    let machine = TestMachine::new(&["a"]);
    let (budget, user) = (job("budget", 0), job("training", 1000));
    let mut leases = leases(&machine);
    leases.lease(&[id("a")], &ceiling(&budget)).unwrap();
    leases.apply(&id("a"), &budget, &cap(200.0)).unwrap();
    leases.lease(&[id("a")], &setting(&user)).unwrap();
    // Above the ceiling: the ceiling applies, and the answer says so.
    let applied = leases.apply(&id("a"), &user, &cap(240.0)).unwrap();
    let applied = applied.power_cap.unwrap();
    assert_eq!(applied.requested, Watts::new(240.0));
    assert_eq!(applied.enforced, Watts::new(200.0));
    assert_eq!(applied.shortfall, Some(Shortfall::Ceiling));
    assert_eq!(machine.state("a").settings, cap(200.0));
    // Below it: the user's value applies.
    leases.apply(&id("a"), &user, &cap(150.0)).unwrap();
    assert_eq!(machine.state("a").settings, cap(150.0));
    leases.apply(&id("a"), &user, &core(900.0)).unwrap();
    // A lower ceiling takes effect below a lease, a higher one does not lift the lease's own value.
    leases.apply(&id("a"), &budget, &cap(120.0)).unwrap();
    assert_eq!(
        machine.state("a").settings.power_cap,
        Some(Watts::new(120.0))
    );
    leases.apply(&id("a"), &budget, &cap(210.0)).unwrap();
    assert_eq!(
        machine.state("a").settings.power_cap,
        Some(Watts::new(150.0))
    );
    // The inner lease ends: the ceiling's value returns and the clock is unlocked.
    leases.release(&id("a"), &user).unwrap();
    assert_eq!(machine.state("a").settings, cap(210.0));
    assert_eq!(machine.journals().len(), 1);
    leases.release(&id("a"), &budget).unwrap();
    assert_eq!(machine.state("a").settings, cap(250.0));
    assert!(machine.journals().is_empty());
}

#[test]
fn a_ceiling_that_ends_first_leaves_the_users_value() {
    let machine = TestMachine::new(&["a"]);
    let (budget, user) = (job("budget", 0), job("training", 1000));
    let mut leases = leases(&machine);
    leases.lease(&[id("a")], &setting(&user)).unwrap();
    leases.apply(&id("a"), &user, &cap(220.0)).unwrap();
    leases.lease(&[id("a")], &ceiling(&budget)).unwrap();
    leases.apply(&id("a"), &budget, &cap(180.0)).unwrap();
    assert_eq!(machine.state("a").settings, cap(180.0));
    leases.release(&id("a"), &budget).unwrap();
    assert_eq!(machine.state("a").settings, cap(220.0));
    // What the lease sets can be taken back while it continues.
    leases.restore(&id("a"), &user).unwrap();
    assert_eq!(machine.state("a").settings, cap(250.0));
    assert!(machine.journals().is_empty());
    leases.release_all();
    assert_eq!(machine.state("a").settings, cap(250.0));
}

#[test]
fn only_a_ceiling_of_root_or_of_the_same_user_may_be_shared() {
    let machine = TestMachine::new(&["a", "b"]);
    let mut leases = leases(&machine);
    let (one, two) = (job("one", 1000), job("two", 1001));
    leases.lease(&[id("a")], &ceiling(&one)).unwrap();
    assert!(is_held(leases.lease(&[id("a")], &setting(&two))));
    assert!(is_held(leases.lease(&[id("a")], &ceiling(&two))));
    assert!(
        is_held(leases.lease(&[id("a")], &setting(&one))),
        "one lease for each owner"
    );
    leases
        .lease(&[id("a")], &setting(&job("other", 1000)))
        .unwrap();
    assert!(is_held(
        leases.lease(&[id("a")], &setting(&job("third", 1000)))
    ));
    // All devices or none: `b` is free again after a refusal.
    assert!(is_held(leases.lease(&[id("b"), id("a")], &setting(&two))));
    leases.lease(&[id("b")], &setting(&one)).unwrap();
    // The same lease again changes nothing.
    leases.lease(&[id("b")], &setting(&one)).unwrap();
    assert_eq!(leases.summaries().len(), 3);
    // Nobody uses the lease of another.
    let refused = leases.apply(&id("b"), &two, &cap(200.0)).unwrap_err();
    assert_eq!(refused, Refusal::NotLeased(id("b")));
    assert!(machine.writes().is_empty());
}

#[test]
fn leases_of_living_owners_are_resumed() {
    let machine = TestMachine::new(&["a", "b"]);
    let lives = Owner::current_process();
    let mut dead = lives.clone();
    dead.start_time += 1;
    {
        let mut leases = leases(&machine);
        leases.lease(&[id("a"), id("b")], &setting(&lives)).unwrap();
        leases.apply(&id("a"), &lives, &cap(180.0)).unwrap();
        leases.release(&id("b"), &lives).unwrap();
        leases.lease(&[id("b")], &setting(&dead)).unwrap();
        leases.apply(&id("b"), &dead, &cap(170.0)).unwrap();
        // The process ends here without restoring anything.
    }
    let writes = machine.writes().len();
    let mut next = leases(&machine);
    let outcomes = next.resume().unwrap();
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    assert_eq!(machine.state("a").settings, cap(180.0));
    assert_eq!(machine.state("b").settings, cap(250.0));
    assert_eq!(machine.writes().len(), writes + 1);
    assert!(next.resume().unwrap().is_empty());
    // The resumed lease goes on as if nothing had happened.
    let both = Settings {
        core_clock: Some(Megahertz::new(900.0)),
        ..cap(190.0)
    };
    next.apply(&id("a"), &lives, &both).unwrap();
    assert!(next.release_owner(&lives).is_empty());
    assert_eq!(machine.state("a").settings, cap(250.0));
    assert!(machine.journals().is_empty());
}

/// A dead user below a living ceiling: the ceiling's value returns.
#[test]
fn only_the_living_of_two_leases_is_resumed() {
    let machine = TestMachine::new(&["a"]);
    let budget = job("budget", 0);
    let mut dead = Owner::current_process();
    dead.start_time += 1;
    {
        let mut leases = leases(&machine);
        leases.lease(&[id("a")], &ceiling(&budget)).unwrap();
        leases.apply(&id("a"), &budget, &cap(200.0)).unwrap();
        leases.lease(&[id("a")], &setting(&dead)).unwrap();
        leases.apply(&id("a"), &dead, &cap(150.0)).unwrap();
    }
    let mut next = leases(&machine);
    next.resume().unwrap();
    assert_eq!(machine.state("a").settings, cap(200.0));
    assert!(next.release_owner(&budget).is_empty());
    assert_eq!(machine.state("a").settings, cap(250.0));
}

/// A value that is already there is not written to the device, but it must not be forgotten.
#[test]
fn a_lease_that_changes_nothing_is_resumed_too() {
    let machine = TestMachine::new(&["a"]);
    let (user, budget) = (Owner::current_process(), job("budget", 0));
    {
        let mut leases = leases(&machine);
        leases.lease(&[id("a")], &setting(&user)).unwrap();
        leases.apply(&id("a"), &user, &cap(150.0)).unwrap();
        leases.lease(&[id("a")], &ceiling(&budget)).unwrap();
        let writes = machine.writes().len();
        leases.apply(&id("a"), &budget, &cap(200.0)).unwrap();
        assert_eq!(machine.writes().len(), writes);
    }
    let mut next = leases(&machine);
    next.resume().unwrap();
    assert_eq!(machine.state("a").settings, cap(150.0));
    next.release(&id("a"), &user).unwrap();
    assert_eq!(machine.state("a").settings, cap(200.0));
    next.release(&id("a"), &budget).unwrap();
    assert_eq!(machine.state("a").settings, cap(250.0));
}

/// A ceiling at the present value changes nothing; when it ends, the user's value applies.
#[test]
fn a_ceiling_that_changed_nothing_ends() {
    let machine = TestMachine::new(&["a"]);
    let (budget, user) = (job("budget", 0), job("training", 1000));
    let mut leases = leases(&machine);
    leases.lease(&[id("a")], &ceiling(&budget)).unwrap();
    leases.apply(&id("a"), &budget, &cap(250.0)).unwrap();
    leases.lease(&[id("a")], &setting(&user)).unwrap();
    leases.apply(&id("a"), &user, &cap(280.0)).unwrap();
    assert!(machine.writes().is_empty());
    leases.release(&id("a"), &budget).unwrap();
    assert_eq!(machine.state("a").settings, cap(280.0));
    assert_eq!(machine.journals().len(), 1);
    leases.release(&id("a"), &user).unwrap();
    assert_eq!(machine.state("a").settings, cap(250.0));
}
