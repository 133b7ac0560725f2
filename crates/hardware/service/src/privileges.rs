//! Gives up root's permissions.
//!
//! `sudo sweetspot run` starts as root, starts the guard, and then becomes the user who called sudo, so that the
//! user's command and the tool itself do not run as root. This must not be undone: after [`become_user`] the process
//! cannot become root again, which is checked rather than assumed.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::process::{geteuid, getuid};
use uzers::os::unix::{GroupExt, UserExt};

mod error;
mod system_calls;
mod threads;

pub use error::PrivilegeError;

use system_calls::{
    clear_ambient_capabilities, group_ids, initialise_groups, set_group_ids, set_no_new_privileges,
    set_not_dumpable, set_user_ids, set_variables, supplementary_groups, user_ids,
};

/// The ids that mean "do not change" to setresuid and setresgid.
const NO_ID: u32 = u32::MAX;

/// A user of this machine, from its user database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user id.
    pub uid: u32,
    /// The group id with which the user's programs run.
    pub gid: u32,
    /// The login name.
    pub name: OsString,
    /// The home folder.
    pub home: PathBuf,
    /// The login shell.
    pub shell: PathBuf,
}

impl User {
    /// Looks a user up; `None` if no user has this id.
    pub fn from_uid(uid: u32) -> Option<Self> {
        let user = uzers::get_user_by_uid(uid)?;
        Some(Self {
            uid: user.uid(),
            gid: user.primary_group_id(),
            name: user.name().to_owned(),
            home: user.home_dir().to_owned(),
            shell: user.shell().to_owned(),
        })
    }

    /// Looks a user up by name; `None` if no user has this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::from_uid(uzers::get_user_by_name(name)?.uid())
    }

    /// The environment variables that describe the user. Under sudo they describe root.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("HOME", self.home.clone().into()),
            ("USER", self.name.clone()),
            ("LOGNAME", self.name.clone()),
            ("SHELL", self.shell.clone().into()),
        ]
    }

    /// Whether the user database says that the user is in this group.
    fn is_member(&self, gid: u32) -> bool {
        let primary = uzers::get_user_by_uid(self.uid).map(|user| user.primary_group_id());
        let is_listed = || {
            let group = uzers::get_group_by_gid(gid);
            group.is_some_and(|group| group.members().contains(&self.name))
        };
        primary == Some(gid) || is_listed()
    }
}

/// The user who started this process with sudo.
///
/// The result is `None` if this process does not run as root, if it was not started with sudo, or if root called sudo.
/// Sudo says who called it in `SUDO_UID` and `SUDO_GID`, and replaces what the caller set there.
pub fn user_behind_sudo() -> Result<Option<User>, PrivilegeError> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    // In a set-user-id program the caller chooses the environment, so it says nothing about the caller.
    if !getuid().is_root() {
        return Err(PrivilegeError::SetUserIdProgram);
    }
    sudo_user(std::env::var_os("SUDO_UID"), std::env::var_os("SUDO_GID"))
}

/// The user whom the values of `SUDO_UID` and `SUDO_GID` name.
fn sudo_user(uid: Option<OsString>, gid: Option<OsString>) -> Result<Option<User>, PrivilegeError> {
    let Some(uid) = uid else {
        return Ok(None);
    };
    let uid = parse_id("SUDO_UID", uid)?;
    if uid == 0 {
        return Ok(None);
    }
    let mut user = User::from_uid(uid).ok_or(PrivilegeError::UnknownUser { uid })?;
    if let Some(gid) = gid {
        user.gid = parse_id("SUDO_GID", gid)?;
    }
    match user.is_member(user.gid) {
        true => Ok(Some(user)),
        false => Err(PrivilegeError::NotAMember {
            user: user.name,
            gid: user.gid,
        }),
    }
}

/// Parses a user or group id: digits alone, and not the value that stands for no id.
fn parse_id(variable: &'static str, value: OsString) -> Result<u32, PrivilegeError> {
    let digits = value
        .to_str()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.and_then(|text| text.parse().ok()) {
        Some(id) if id != NO_ID => Ok(id),
        _ => Err(PrivilegeError::InvalidVariable { variable, value }),
    }
}

/// Makes this process, with all its threads, a process of `user`, and checks that it cannot become root again.
///
/// The process can no longer be traced, and its memory can no longer be read, by the user's other processes. It may
/// have a channel to a guard that runs as root, and whoever controls the process controls that channel. A program that
/// it executes can be traced again.
///
/// After an error the process may still have some of root's permissions: it must exit.
pub fn become_user(user: &User) -> Result<(), PrivilegeError> {
    if user.uid == 0 || user.uid == NO_ID || user.gid == NO_ID {
        return Err(PrivilegeError::NotAnOrdinaryUser { uid: user.uid });
    }
    let failed = |action: &'static str| {
        move |error: io::Error| PrivilegeError::Refused {
            action,
            uid: user.uid,
            error,
        }
    };
    let name = CString::new(user.name.as_bytes())
        .map_err(|error| failed("setting the groups")(error.into()))?;
    // Groups come first: only root can set them.
    initialise_groups(&name, user.gid).map_err(failed("setting the groups"))?;
    set_group_ids(user.gid).map_err(failed("setting the group id"))?;
    set_user_ids(user.uid).map_err(failed("setting the user id"))?;
    // The kernel clears these as well, unless a securebit keeps it from doing so.
    clear_ambient_capabilities().map_err(failed("clearing the capabilities"))?;
    // The kernel does this as well, unless fs.suid_dumpable is 1.
    set_not_dumpable().map_err(failed("forbidding other processes to trace it"))?;
    check_irreversible(user)
}

/// Makes sure that this process, which started without rights, never gets any: programs that it executes have no more,
/// and other processes of its user can neither trace it nor read its memory. It is an error if the process runs as root.
pub fn renounce() -> Result<(), PrivilegeError> {
    let uid = geteuid().as_raw();
    let refused = |action: &'static str| {
        move |error: io::Error| PrivilegeError::Refused { action, uid, error }
    };
    if user_ids().contains(&0) || group_ids().contains(&0) {
        let what = "the measuring process must not run as root".to_owned();
        return Err(PrivilegeError::StillPrivileged { what });
    }
    clear_ambient_capabilities().map_err(refused("clearing the capabilities"))?;
    set_no_new_privileges().map_err(refused("giving up further rights"))?;
    set_not_dumpable().map_err(refused("forbidding other processes to trace it"))
}

/// Checks that nothing is left of root.
fn check_irreversible(user: &User) -> Result<(), PrivilegeError> {
    let remains = |what: String| Err(PrivilegeError::StillPrivileged { what });
    if set_user_ids(0).is_ok() {
        return remains("the process could become root again".to_owned());
    }
    if user.gid != 0 && set_group_ids(0).is_ok() {
        return remains("the process could enter the group of root again".to_owned());
    }
    if user_ids() != [user.uid; 3] || group_ids() != [user.gid; 3] {
        return remains(format!(
            "the user ids are {:?} and the group ids {:?}",
            user_ids(),
            group_ids()
        ));
    }
    let groups = supplementary_groups().map_err(|error| PrivilegeError::Refused {
        action: "reading the groups",
        uid: user.uid,
        error,
    })?;
    if groups.contains(&0) && !user.is_member(0) {
        return remains("the process is still in the group of root".to_owned());
    }
    match threads::privileged_thread(user) {
        Some(what) => remains(what),
        None => Ok(()),
    }
}

/// Sets the environment variables that describe the user, and removes `MAIL`, which names the mailbox of root.
///
/// This is an error once the process has a second thread, because another thread may read the environment meanwhile.
///
/// ```standalone_crate
/// use sweetspot_service::privileges::{User, set_environment};
///
/// let nobody = User::from_uid(65534).ok_or("this machine has no such user")?;
/// set_environment(&nobody)?;
/// assert_eq!(std::env::var("USER")?, "nobody");
/// assert_eq!(std::env::var_os("HOME"), Some(nobody.home.into()));
/// assert_eq!(std::env::var_os("MAIL"), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_environment(user: &User) -> Result<(), PrivilegeError> {
    match threads::count() {
        Some(1) => {
            set_variables(&user.environment(), &["MAIL"]);
            Ok(())
        }
        threads => Err(PrivilegeError::ThreadsRunning { threads }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(uid: &str, gid: Option<&str>) -> Result<Option<User>, PrivilegeError> {
        sudo_user(Some(uid.into()), gid.map(OsString::from))
    }

    /// A user of this machine other than root.
    fn nobody() -> User {
        User::from_uid(65534).unwrap()
    }

    #[test]
    fn the_caller_of_sudo_is_looked_up() {
        let nobody = nobody();
        let gid = nobody.gid.to_string();
        assert_eq!(named("65534", Some(&gid)).unwrap(), Some(nobody.clone()));
        assert_eq!(named("65534", None).unwrap(), Some(nobody));
    }

    #[test]
    fn without_sudo_or_from_root_there_is_no_caller() {
        assert_eq!(sudo_user(None, Some("7".into())).unwrap(), None);
        assert_eq!(named("0", Some("0")).unwrap(), None);
    }

    #[test]
    fn values_that_are_no_ids_are_rejected() {
        for text in [
            "",
            "-1",
            "+5",
            " 5",
            "5 ",
            "0x5",
            "root",
            "4294967295",
            "4294967296",
            "99999999999",
        ] {
            let error = named(text, None).unwrap_err();
            assert!(
                matches!(&error, PrivilegeError::InvalidVariable { variable: "SUDO_UID", value } if value == text),
                "{text}: {error}"
            );
            let error = named("65534", Some(text)).unwrap_err();
            assert!(
                matches!(&error, PrivilegeError::InvalidVariable { variable: "SUDO_GID", value } if value == text),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn an_unknown_user_is_rejected() {
        let uid = 4_294_900_000;
        assert!(uzers::get_user_by_uid(uid).is_none());
        let error = named(&uid.to_string(), None).unwrap_err();
        assert!(matches!(error, PrivilegeError::UnknownUser { uid: found } if found == uid));
    }

    #[test]
    fn a_group_that_is_not_the_callers_is_rejected() {
        let error = named("65534", Some("0")).unwrap_err();
        assert!(
            matches!(error, PrivilegeError::NotAMember { gid: 0, .. }),
            "{error}"
        );
    }

    #[test]
    fn nobody_becomes_root_or_no_user_at_all() {
        for (uid, gid) in [(0, 5), (NO_ID, 5), (5, NO_ID)] {
            let user = User {
                uid,
                gid,
                ..nobody()
            };
            let error = become_user(&user).unwrap_err();
            assert!(
                matches!(error, PrivilegeError::NotAnOrdinaryUser { .. }),
                "{error}"
            );
        }
    }

    #[test]
    fn the_environment_is_not_changed_while_threads_run() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv());
        let error = set_environment(&nobody()).unwrap_err();
        assert!(
            matches!(error, PrivilegeError::ThreadsRunning { threads: Some(2..) }),
            "{error}"
        );
        drop(stop);
        let _ = thread.join();
    }
}
