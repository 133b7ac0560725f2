//! The system calls behind a change of user, as safe functions.
//!
//! They are called through the C library, which applies a change of ids to all threads; the kernel alone would change
//! the calling thread only.

use std::ffi::{CStr, OsString};
use std::io;

/// The error of the last call if it returned something other than 0.
fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the supplementary groups to those of a user, and `gid`.
#[allow(unsafe_code)]
pub(super) fn initialise_groups(name: &CStr, gid: u32) -> io::Result<()> {
    // SAFETY: the name ends with a zero byte and outlives the call, which keeps no pointer to it.
    check(unsafe { libc::initgroups(name.as_ptr(), gid) })
}

/// Sets the real, effective and saved group id.
#[allow(unsafe_code)]
pub(super) fn set_group_ids(gid: u32) -> io::Result<()> {
    // SAFETY: the call takes numbers alone.
    check(unsafe { libc::setresgid(gid, gid, gid) })
}

/// Sets the real, effective and saved user id.
#[allow(unsafe_code)]
pub(super) fn set_user_ids(uid: u32) -> io::Result<()> {
    // SAFETY: the call takes numbers alone.
    check(unsafe { libc::setresuid(uid, uid, uid) })
}

/// The real, effective and saved user id.
#[allow(unsafe_code)]
pub(super) fn user_ids() -> [u32; 3] {
    let [mut real, mut effective, mut saved] = [0; 3];
    // SAFETY: the three pointers are valid for writes. The call fails for invalid pointers only.
    unsafe { libc::getresuid(&raw mut real, &raw mut effective, &raw mut saved) };
    [real, effective, saved]
}

/// The real, effective and saved group id.
#[allow(unsafe_code)]
pub(super) fn group_ids() -> [u32; 3] {
    let [mut real, mut effective, mut saved] = [0; 3];
    // SAFETY: the three pointers are valid for writes. The call fails for invalid pointers only.
    unsafe { libc::getresgid(&raw mut real, &raw mut effective, &raw mut saved) };
    [real, effective, saved]
}

/// The supplementary groups.
pub(super) fn supplementary_groups() -> io::Result<Vec<u32>> {
    let groups = rustix::process::getgroups()?;
    Ok(groups.into_iter().map(|group| group.as_raw()).collect())
}

/// Empties the set of capabilities that programs inherit from the calling thread.
#[allow(unsafe_code)]
pub(super) fn clear_ambient_capabilities() -> io::Result<()> {
    let none: libc::c_ulong = 0;
    // SAFETY: this operation takes numbers alone, and the kernel requires the unused ones to be 0.
    check(unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong,
            none,
            none,
            none,
        )
    })
}

/// Keeps other processes of the same user from tracing this one and from reading its memory and files.
#[allow(unsafe_code)]
pub(super) fn set_not_dumpable() -> io::Result<()> {
    let none: libc::c_ulong = 0;
    // SAFETY: this operation takes numbers alone.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, none, none, none, none) })
}

/// Keeps this process, and every program that it executes, from getting rights that it does not have.
#[allow(unsafe_code)]
pub(super) fn set_no_new_privileges() -> io::Result<()> {
    let (on, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: this operation takes numbers alone.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, on, none, none, none) })
}

/// Sets and removes environment variables. No other thread may run: the caller has checked this.
#[allow(unsafe_code)]
pub(super) fn set_variables(set: &[(&str, OsString)], removed: &[&str]) {
    for (name, value) in set {
        // SAFETY: this process has no other thread, so nothing reads the environment meanwhile.
        unsafe { std::env::set_var(name, value) };
    }
    for name in removed {
        // SAFETY: as above.
        unsafe { std::env::remove_var(name) };
    }
}
