//! Folders that another user has made first, and root's journal.

use std::os::unix::fs::PermissionsExt;

use super::{ATTACKER, SharedMachine, VICTIM, errors, output_within};

#[test]
#[ignore = "needs root"]
fn a_folder_that_another_user_made_first_is_not_used() {
    let machine = SharedMachine::new();
    machine.give_gpus_to(VICTIM);
    let trap = machine.path("tmp").join(format!("sweetspot-{VICTIM}"));
    let make = format!(
        "mkdir -m 777 {0} && mkfifo -m 666 {0}/a.journal",
        trap.display()
    );
    let mut attacker = machine.as_user(ATTACKER, "sh");
    assert!(attacker.args(["-c", &make]).status().unwrap().success());
    let mut victim = machine.as_user(VICTIM, &machine.program());
    victim.args(["run", "--power-cap", "200W", "--", "true"]);
    let output = output_within(victim, 20).expect("the command does not hang");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert_eq!(machine.host.writes().lines().count(), 2, "set and restored");
    assert_eq!(std::fs::read_dir(&trap).unwrap().count(), 1, "untouched");
    let own = machine
        .path(&VICTIM.to_string())
        .join(".local/state/sweetspot/guard");
    assert_eq!(own.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    // What is unknown because of the trap does not concern this user. Root may have a journal on this machine, but not in
    // the container.
    let script = format!(
        "HOME={} setpriv --reuid {VICTIM} --clear-groups -- {} restore",
        machine.path(&VICTIM.to_string()).display(),
        machine.program()
    );
    let output = output_within(machine.container(&[], &script), 20);
    let output = output.expect("the command does not hang");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
}

#[test]
#[ignore = "needs root"]
fn a_users_own_journal_in_the_temporary_directory_is_used_and_private() {
    let machine = SharedMachine::new();
    machine.give_gpus_to(VICTIM);
    let script = format!(
        "umask 0; {} run --power-cap 200W -- sh -c 'stat -c %a%F $TMPDIR/sweetspot-{VICTIM} $TMPDIR/sweetspot-{VICTIM}/*'",
        machine.program()
    );
    let mut victim = machine.as_user(VICTIM, "sh");
    victim.args(["-c", &script]);
    let output = output_within(victim, 20).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let modes = String::from_utf8_lossy(&output.stdout);
    let modes: Vec<&str> = modes.lines().collect();
    assert_eq!(
        modes,
        ["700directory", "600regular file", "600regular file"]
    );
}

#[test]
#[ignore = "needs root"]
fn a_shell_with_other_variables_finds_what_a_dead_guard_left_changed() {
    let machine = SharedMachine::new();
    machine.give_gpus_to(VICTIM);
    let program = machine.program();
    let runtime = machine.path(&VICTIM.to_string()).join("runtime");
    let script = format!(
        "mkdir -m 700 {0}; XDG_RUNTIME_DIR={0} {program} run --power-cap 200W -- \
         sh -c 'kill -STOP $PPID; kill -9 $(cut -d\" \" -f4 /proc/$PPID/stat); kill -9 $PPID'; \
         for i in $(seq 50); do {program} doctor >found; grep -q left.changed.*restores found && break; sleep 0.1; done; \
         cat found; TMPDIR={0} {program} restore; echo restore $?",
        runtime.display()
    );
    let mut victim = machine.as_user(VICTIM, "sh");
    victim.args(["-c", &script]);
    let output = output_within(victim, 40).expect("nothing hangs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("`sweetspot restore` restores them"), "{text}");
    assert!(text.contains("now restored"), "{text} {}", errors(&output));
    assert_eq!(machine.cap(), 300.0);
}

#[test]
#[ignore = "needs root"]
fn a_command_that_sets_nothing_makes_no_folder() {
    let machine = SharedMachine::new();
    for command in [
        vec!["doctor"],
        vec!["restore"],
        vec!["measure", "--", "true"],
    ] {
        let mut user = machine.as_user(VICTIM, &machine.program());
        user.args(&command);
        output_within(user, 20).expect("the command does not hang");
        let made = std::fs::read_dir(machine.path("tmp")).unwrap().count();
        assert_eq!(made, 0, "{command:?}");
    }
}

#[test]
#[ignore = "needs root"]
fn root_is_not_stopped_by_another_users_lock_and_unknown_is_no_all_clear() {
    let machine = SharedMachine::new();
    let program = machine.program();
    let setpriv = format!("setpriv --reuid {ATTACKER} --clear-groups --");
    let script = format!(
        "{program} run --power-cap 200W -- sh -c 'kill -STOP $PPID; kill -9 $(cut -d\" \" -f4 /proc/$PPID/stat); kill -9 $PPID'; sleep 0.3; \
         ls -ld /var/lib/sweetspot/journal >&2; \
         {setpriv} sh -c 'flock -n /var/lib/sweetspot/journal/*.lock true' 2>/dev/null && echo locked; \
         {setpriv} {program} restore; echo restore $?; \
         {setpriv} {program} doctor >/dev/null; echo doctor $?; \
         {program} restore; echo root $?"
    );
    let output = output_within(
        machine.container(&["--pid", "--fork", "--mount-proc"], &script),
        40,
    );
    let output = output.expect("nothing hangs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("locked"), "{text}");
    assert!(
        text.contains("restore 1") && text.contains("doctor 1"),
        "{text} {}",
        errors(&output)
    );
    assert!(
        text.contains("now restored") && text.contains("root 0"),
        "{text} {}",
        errors(&output)
    );
    assert!(
        errors(&output).contains("unknown whether root's guards"),
        "{}",
        errors(&output)
    );
    assert_eq!(machine.cap(), 300.0);
}

#[test]
#[ignore = "needs root"]
fn what_cannot_be_read_in_any_folder_is_no_all_clear() {
    let machine = SharedMachine::new();
    let program = machine.program();
    // A folder of an earlier version, of which nothing can be taken over.
    let script = format!(
        "mkdir -m 755 /run/sweetspot; echo half > /run/sweetspot/GPU-x.journal; \
         {program} restore; echo restore $?; {program} doctor >/dev/null; echo doctor $?"
    );
    let output = output_within(machine.container(&[], &script), 20).expect("nothing hangs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("restore 1") && text.contains("doctor 1"),
        "{text}"
    );
    assert!(!text.contains("nothing to restore"), "{text}");
    // Folders of the user: one that was closed by mistake, and one that others can write to.
    for mode in [0o000, 0o777] {
        let folder = machine.path("tmp").join(format!("sweetspot-{VICTIM}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::chown(&folder, Some(VICTIM), Some(VICTIM)).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        for verb in ["restore", "doctor"] {
            let mut user = machine.as_user(VICTIM, &program);
            user.arg(verb);
            let output = output_within(user, 20).expect("nothing hangs");
            let said = errors(&output) + &String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(1), "{mode:o} {verb}: {said}");
            assert!(said.contains("cannot use the journal"), "{mode:o}: {said}");
        }
    }
}
