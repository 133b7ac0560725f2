//! Two containers that see the same GPU, each with a /run and a /var/lib of its own.

use super::{ATTACKER, SharedMachine, errors, output_within};

/// Runs two commands, the second while the first one's cap is set; returns their outputs.
fn run_two(machine: &SharedMachine, flags: &[&str]) -> [std::process::Output; 2] {
    let mark = machine.path("tmp/first-is-set");
    let program = machine.program();
    // When both have ended, the first one restores what they have left changed.
    let first = format!(
        "{program} run --power-cap 180W -- sh -c 'touch {0}; sleep 3'; code=$?; \
         for i in $(seq 100); do [ -e {0}.end ] && break; sleep 0.1; done; {program} doctor; {program} restore; exit $code",
        mark.display()
    );
    let second = format!(
        "{program} run --power-cap 150W -- sleep 5; code=$?; touch {}.end; exit $code",
        mark.display()
    );
    std::thread::scope(|scope| {
        let first =
            scope.spawn(move || output_within(machine.container(flags, &first), 30).unwrap());
        while !mark.exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let second = output_within(machine.container(flags, &second), 30).unwrap();
        [first.join().unwrap(), second]
    })
}

#[test]
#[ignore = "needs root"]
fn a_gpu_has_one_lease_whatever_folders_a_container_sees() {
    let machine = SharedMachine::new();
    let [first, second] = run_two(&machine, &[]);
    assert_eq!(first.status.code(), Some(0), "{}", errors(&first));
    assert_eq!(second.status.code(), Some(125), "{}", errors(&second));
    assert!(
        errors(&second).contains("is in use by process"),
        "{}",
        errors(&second)
    );
    assert_eq!(machine.cap(), 300.0);
}

#[test]
#[ignore = "needs root"]
fn writers_that_cannot_see_each_other_are_noticed() {
    let machine = SharedMachine::new();
    let [first, second] = run_two(&machine, &["--net"]);
    assert_eq!(first.status.code(), Some(1), "{}", errors(&first));
    // The second one cannot know what was there before the first.
    assert_eq!(second.status.code(), Some(0), "{}", errors(&second));
    let said = errors(&first);
    assert!(
        said.contains("another program changed the power cap from 180 W to 150 W; before this command it was 300 W"),
        "{said}"
    );
    let output = String::from_utf8_lossy(&first.stdout);
    assert!(
        output.contains("`sweetspot restore` restores them"),
        "{output}"
    );
    assert!(output.contains("now restored"), "{output} {said}");
    assert_eq!(machine.cap(), 300.0);
}

#[test]
#[ignore = "needs root"]
fn root_works_beside_another_users_lock_and_says_so() {
    let machine = SharedMachine::new();
    machine.give_gpus_to(ATTACKER);
    let program = machine.program();
    let script = format!(
        "setpriv --reuid {ATTACKER} --clear-groups -- {program} run --power-cap 180W -- sleep 3 & \
         sleep 1.5; {program} run --power-cap 150W -- sleep 4; echo root $?; wait $!; echo user $?"
    );
    let mut command = machine.container(&[], &script);
    command.env("HOME", machine.path(&ATTACKER.to_string()));
    let output = output_within(command, 40).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("root 1") && text.contains("user 1"),
        "{text} {}",
        errors(&output)
    );
    assert!(
        errors(&output).contains("was also leased by process"),
        "{}",
        errors(&output)
    );
}
