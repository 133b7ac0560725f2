use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::process::geteuid;
use tempfile::TempDir;

use super::*;

/// The user who runs the tests, and who stands for root in them.
fn own_uid() -> u32 {
    geteuid().as_raw()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A folder that takes the place of `/`, with the file usr/lib/library and nothing that others can change.
fn machine() -> TempDir {
    let machine = tempfile::tempdir().unwrap();
    set_mode(machine.path(), 0o755);
    for folder in ["usr", "usr/lib", "opt"] {
        fs::create_dir(machine.path().join(folder)).unwrap();
        set_mode(&machine.path().join(folder), 0o755);
    }
    let library = machine.path().join("usr/lib/library");
    fs::write(&library, "").unwrap();
    set_mode(&library, 0o644);
    machine
}

fn check(machine: &TempDir, path: &str) -> Result<(), OwnershipError> {
    require_owned(machine.path(), Path::new(path), own_uid())
}

/// The last component of the path at which a check failed because others can write there.
fn writable_at(result: Result<(), OwnershipError>) -> String {
    match result {
        Err(OwnershipError::Writable { path, .. }) => {
            path.file_name().unwrap().to_str().unwrap().to_owned()
        }
        other => panic!("not rejected as writable: {other:?}"),
    }
}

#[test]
fn a_file_that_only_its_owner_can_change_is_accepted() {
    let machine = machine();
    check(&machine, "/usr/lib/library").unwrap();
    check(&machine, "/usr/lib").unwrap();
    check(&machine, "/opt/../usr/./lib/library").unwrap();
}

#[test]
fn a_file_or_any_folder_above_it_that_others_can_write_is_rejected() {
    for (place, mode) in [
        ("usr/lib/library", 0o664),
        ("usr/lib/library", 0o646),
        ("usr/lib", 0o775),
        ("usr", 0o757),
        ("usr", 0o1777),
    ] {
        let machine = machine();
        set_mode(&machine.path().join(place), mode);
        let name = place.rsplit('/').next().unwrap();
        assert_eq!(writable_at(check(&machine, "/usr/lib/library")), name);
    }
    let machine = machine();
    set_mode(machine.path(), 0o1777);
    assert!(check(&machine, "/usr/lib/library").is_err());
}

#[test]
fn another_owner_is_rejected_and_named() {
    let machine = machine();
    let other = own_uid() + 1;
    let error = require_owned(machine.path(), Path::new("/usr/lib/library"), other).unwrap_err();
    match error {
        OwnershipError::ForeignOwner {
            found, expected, ..
        } => assert_eq!((found, expected), (own_uid(), other)),
        other => panic!("{other}"),
    }
}

#[test]
fn links_are_followed_through_folders_that_are_checked_too() {
    let machine = machine();
    let base = machine.path();
    symlink("/usr/lib", base.join("lib")).unwrap();
    symlink("../lib/library", base.join("opt/relative")).unwrap();
    check(&machine, "/lib/library").unwrap();
    check(&machine, "/opt/relative").unwrap();
    // The link itself is safe, but it leads through a folder that others can write to.
    fs::create_dir(base.join("shared")).unwrap();
    set_mode(&base.join("shared"), 0o777);
    symlink("/usr/lib/library", base.join("shared/link")).unwrap();
    symlink("/shared/link", base.join("opt/chain")).unwrap();
    assert_eq!(writable_at(check(&machine, "/opt/chain")), "shared");
    // A link in a shared folder is rejected although its target is safe.
    assert_eq!(writable_at(check(&machine, "/shared/link")), "shared");
    // Leaving a shared folder by `..` does not make it safe.
    assert_eq!(
        writable_at(check(&machine, "/shared/../usr/lib/library")),
        "shared"
    );
}

#[test]
fn a_loop_of_links_and_missing_files_are_errors() {
    let machine = machine();
    symlink("b", machine.path().join("a")).unwrap();
    symlink("a", machine.path().join("b")).unwrap();
    for path in [
        "/a",
        "/usr/absent",
        "/usr/lib/library/more",
        "/usr/lib/library/..",
    ] {
        let error = check(&machine, path).unwrap_err();
        assert!(
            matches!(error, OwnershipError::Unreadable { .. }),
            "{path}: {error}"
        );
    }
}

#[test]
fn messages_say_what_to_do() {
    let machine = machine();
    let usr = machine.path().join("usr");
    set_mode(&usr, 0o2775);
    let text = check(&machine, "/usr/lib/library").unwrap_err().to_string();
    let expected = format!(
        "{usr} is writable by its group (mode 2775), who can replace /usr/lib/library: run `chmod go-w {usr}`, or use a copy below folders that only root can change",
        usr = usr.display()
    );
    assert_eq!(text, expected);
    // Nobody should be told to change the mode of /tmp.
    set_mode(&usr, 0o1777);
    let text = check(&machine, "/usr/lib/library").unwrap_err().to_string();
    assert!(
        !text.contains("chmod") && text.contains("everybody"),
        "{text}"
    );
}

#[test]
fn the_temporary_folder_is_never_safe() {
    let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let error = require_root_owned(file.path()).unwrap_err();
    let path = match error {
        OwnershipError::Writable { path, .. } | OwnershipError::ForeignOwner { path, .. } => path,
        other => panic!("{other}"),
    };
    assert_eq!(path, Path::new("/tmp"));
}

#[test]
fn a_missing_folder_is_made_with_its_mode_whatever_the_parent() {
    let parent = tempfile::tempdir().unwrap();
    // New folders inherit this bit, which is not part of the wanted mode.
    set_mode(parent.path(), 0o2755);
    for mode in [0o700, 0o755] {
        let path = parent.path().join(format!("{mode:o}"));
        private_folder_of(&path, mode, own_uid()).unwrap();
        let made = fs::symlink_metadata(&path).unwrap();
        assert!(made.is_dir());
        assert_eq!(made.permissions().mode() & 0o7777, mode);
        // The second time it is there.
        private_folder_of(&path, mode, own_uid()).unwrap();
    }
}

#[test]
fn a_narrower_folder_is_accepted_and_a_wider_one_is_not() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("state");
    fs::create_dir(&path).unwrap();
    set_mode(&path, 0o700);
    private_folder_of(&path, 0o755, own_uid()).unwrap();
    for mode in [0o710, 0o701, 0o1700] {
        set_mode(&path, mode);
        let error = private_folder_of(&path, 0o700, own_uid()).unwrap_err();
        match error {
            OwnershipError::WiderMode { found, allowed, .. } => {
                assert_eq!((found, allowed), (mode, 0o700))
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_link_a_file_or_another_owner_in_place_of_a_folder_is_rejected() {
    let parent = tempfile::tempdir().unwrap();
    let real = parent.path().join("real");
    fs::create_dir(&real).unwrap();
    set_mode(&real, 0o700);
    let link = parent.path().join("link");
    symlink(&real, &link).unwrap();
    let dangling = parent.path().join("dangling");
    symlink(parent.path().join("absent"), &dangling).unwrap();
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [&link, &dangling, &file] {
        let error = private_folder_of(path, 0o700, own_uid()).unwrap_err();
        assert!(
            matches!(error, OwnershipError::NotAFolder { .. }),
            "{error}"
        );
    }
    assert!(!parent.path().join("absent").exists());
    // The parent must belong to root or to the expected user, so only root can try this one.
    if own_uid() == 0 {
        let error = private_folder_of(&real, 0o700, 1).unwrap_err();
        assert!(
            matches!(error, OwnershipError::ForeignFolder { .. }),
            "{error}"
        );
    } else {
        let error = private_folder_of(&real, 0o700, own_uid() + 1).unwrap_err();
        assert!(
            matches!(error, OwnershipError::ForeignOwner { .. }),
            "{error}"
        );
    }
}

#[test]
fn a_folder_that_everybody_can_exchange_is_rejected() {
    let parent = tempfile::tempdir().unwrap();
    let shared = parent.path().join("shared");
    fs::create_dir(&shared).unwrap();
    set_mode(&shared, 0o777);
    let path = shared.join("state");
    let error = private_folder_of(&path, 0o700, own_uid()).unwrap_err();
    assert!(matches!(error, OwnershipError::Writable { .. }), "{error}");
    assert!(!path.exists());
    // The sticky bit keeps others from renaming a folder that is not theirs.
    set_mode(&shared, 0o1777);
    private_folder_of(&path, 0o700, own_uid()).unwrap();
}
