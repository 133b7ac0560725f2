//! Asks the kernel which user made a Unix socket with an abstract name: the socket diagnosis of sock_diag(7).
//!
//! A connection tells this too, but everybody can fill the queue of connections of a process that accepts none.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::process::Uid;

/// The length of the header of a netlink message, `struct nlmsghdr`.
const HEADER: usize = 16;

/// The length of what is said of each socket before its attributes, `struct unix_diag_msg`.
const DESCRIPTION: usize = 16;

/// The type of a request and of its answers: `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;

/// The types of a socket's attributes: `UNIX_DIAG_NAME` and `UNIX_DIAG_UID`.
const NAME: u16 = 0;
const USER: u16 = 7;

/// The user who made the socket that is bound to this abstract name; `None` if there is none, or if the kernel does not
/// say it (Linux says it since 5.3).
pub(crate) fn socket_owner(name: &[u8]) -> Option<Uid> {
    let flags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);
    let kernel = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        flags,
        Some(netlink::SOCK_DIAG),
    );
    let kernel = kernel.ok()?;
    send(&kernel, &request(), SendFlags::NOSIGNAL).ok()?;
    // The kernel sends at most 32 KiB at once.
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = match recv(&kernel, &mut buffer[..], RecvFlags::empty()) {
            Ok((length, _)) if length > 0 => length,
            Err(Errno::INTR) => continue,
            _ => return None,
        };
        match find_owner(&buffer[..length], name) {
            Search::Found(user) => return Some(user),
            Search::Over => return None,
            Search::Unfinished => {}
        }
    }
}

/// A request for the names and users of all Unix sockets, `struct nlmsghdr` and `struct unix_diag_req`.
fn request() -> Vec<u8> {
    const LENGTH: u32 = 40;
    const REQUEST_ALL: u16 = 0x301;
    const ALL_STATES: u32 = u32::MAX;
    const SHOW_NAME_AND_USER: u32 = 0x41;
    const UNIX: u32 = 1;
    let mut request = Vec::from(LENGTH.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(REQUEST_ALL.to_ne_bytes());
    // The message's number and its sender, which the kernel fills in; then the family, the first byte of its word.
    request.extend([0; 8]);
    request.extend(UNIX.to_le_bytes());
    request.extend(ALL_STATES.to_ne_bytes());
    request.extend([0; 4]);
    request.extend(SHOW_NAME_AND_USER.to_ne_bytes());
    request.extend([0; 8]);
    request
}

/// How far a search through the kernel's answers has come.
#[derive(Debug, PartialEq, Eq)]
enum Search {
    Found(Uid),
    /// The kernel has sent its last message, or an error.
    Over,
    /// More messages follow.
    Unfinished,
}

/// Searches the messages that arrived together for the socket with an abstract name.
fn find_owner(mut messages: &[u8], name: &[u8]) -> Search {
    while let Some(length) = number::<4>(messages, 0).map(u32::from_ne_bytes) {
        let length = length as usize;
        let kind = number::<2>(messages, 4).map(u16::from_ne_bytes);
        let Some(message) = messages.get(HEADER..length) else {
            return Search::Over;
        };
        if kind != Some(BY_FAMILY) {
            return Search::Over;
        }
        if let Some(user) = message.get(DESCRIPTION..).and_then(|it| owner(it, name)) {
            return Search::Found(user);
        }
        messages = messages.get(aligned(length)..).unwrap_or_default();
    }
    Search::Unfinished
}

/// The user in the attributes of a socket, if the socket has this abstract name.
fn owner(mut attributes: &[u8], name: &[u8]) -> Option<Uid> {
    let (mut is_named, mut user) = (false, None);
    while let Some(length) = number::<2>(attributes, 0).map(u16::from_ne_bytes) {
        let length = usize::from(length);
        let kind = number::<2>(attributes, 2).map(u16::from_ne_bytes)?;
        let value = attributes.get(4..length)?;
        match kind {
            // An abstract name begins with a byte of zero.
            NAME => is_named = value.split_first() == Some((&0, name)),
            USER => user = number::<4>(value, 0).map(u32::from_ne_bytes),
            _ => {}
        }
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    user.filter(|_| is_named).map(Uid::from_raw)
}

/// The bytes of a number in a message.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// The length that messages and attributes take up: a multiple of four.
const fn aligned(length: usize) -> usize {
    (length + 3) & !3
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

    #[test]
    fn the_user_of_a_bound_name_is_found() {
        let name = format!("sweetspot-test-owner/{}", std::process::id());
        assert_eq!(socket_owner(name.as_bytes()), None);
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let own = rustix::process::geteuid();
        assert_eq!(socket_owner(name.as_bytes()), Some(own));
        assert_eq!(socket_owner(&name.as_bytes()[1..]), None, "another name");
        drop(listener);
        // A name may be taken without listening.
        let _silent = UnixDatagram::bind_addr(&address).unwrap();
        assert_eq!(socket_owner(name.as_bytes()), Some(own));
    }

    #[test]
    fn damaged_answers_are_no_owner() {
        for length in [0_u32, 3, 16, 17, 40, u32::MAX] {
            for size in [0, 3, 4, 15, 16, 31, 33, 36, 64] {
                let mut message = vec![255; size];
                message
                    .iter_mut()
                    .zip(length.to_ne_bytes())
                    .for_each(|(to, from)| *to = from);
                if let Some(kind) = message.get_mut(4..6) {
                    kind.copy_from_slice(&BY_FAMILY.to_ne_bytes());
                }
                assert!(!matches!(find_owner(&message, b"a"), Search::Found(_)));
            }
        }
    }
}
