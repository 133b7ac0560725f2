//! The socket on which users reach the service.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use sweetspot_guard::connect_at_once;

/// Why the service cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another service uses the socket.
    #[error("another process already serves {0}: stop it first, or choose another socket")]
    InUse(PathBuf),
    /// Something else is in the place of the socket.
    #[error(
        "{path} is {found}, so the service does not replace it: remove it, or choose another socket"
    )]
    NotOurs {
        /// The path of the socket.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// The socket cannot be made.
    #[error("cannot make the socket {path}: {problem}")]
    System {
        /// The path of the socket.
        path: PathBuf,
        /// The operating system's error.
        problem: io::Error,
    },
}

/// Makes the socket, to which everyone may connect. A socket that a dead service has left is replaced; anything else in
/// its place is an error.
pub fn listen(path: &Path) -> Result<UnixListener, ListenError> {
    let system = |problem| ListenError::System {
        path: path.to_owned(),
        problem,
    };
    let not_ours = |found: String| ListenError::NotOurs {
        path: path.to_owned(),
        found,
    };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(system(error)),
        Ok(found) if !found.file_type().is_socket() => {
            let kind = match found.file_type().is_symlink() {
                true => "a symbolic link",
                false => "not a socket",
            };
            return Err(not_ours(kind.to_owned()));
        }
        Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
            return Err(not_ours(format!("a socket of user {}", found.uid())));
        }
        Ok(_) => match connect_at_once(path) {
            Ok(_) => return Err(ListenError::InUse(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(system)?;
            }
            // A service whose queue of connections is full.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(ListenError::InUse(path.to_owned()));
            }
            Err(error) => return Err(system(error)),
        },
    }
    let listener = UnixListener::bind(path).map_err(system)?;
    let everyone = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(path, everyone).map_err(system)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_a_dead_service_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.sock");
        let first = listen(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o666);
        assert!(matches!(listen(&path), Err(ListenError::InUse(_))));
        drop(first);
        drop(listen(&path).unwrap());
        // A file, a folder and a link stay as they are.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "mine").unwrap();
        assert!(matches!(listen(&path), Err(ListenError::NotOurs { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &path).unwrap();
        let error = listen(&path).unwrap_err().to_string();
        assert!(error.contains("a symbolic link"), "{error}");
        assert!(!folder.path().join("elsewhere").exists());
    }
}
