//! What the service has written to its audit log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sweetspot_device::DeviceId;

/// A reader of the log that knows where it has stopped.
pub struct AuditLog {
    path: PathBuf,
    /// The length of the log when it was last looked at.
    length: u64,
}

impl AuditLog {
    pub fn new(path: &Path) -> Self {
        let mut log = Self {
            path: path.to_owned(),
            length: 0,
        };
        log.forget();
        log
    }

    /// Forgets everything that is in the log.
    pub fn forget(&mut self) {
        self.length = self.path.metadata().unwrap().len();
    }

    /// Checks that a line about this device has been written since [`AuditLog::forget`].
    pub fn check_device(&self, device: &DeviceId) {
        let mut file = File::open(&self.path).unwrap();
        if file.metadata().unwrap().len() < self.length {
            // A new log was begun meanwhile.
            return;
        }
        let mut new = String::new();
        file.seek(SeekFrom::Start(self.length)).unwrap();
        file.read_to_string(&mut new).unwrap();
        let is_named = new.lines().any(|line| {
            let is_change = !line.contains("\"event\":\"refused\"");
            is_change && line.contains(device.as_str())
        });
        assert!(is_named, "{device} was changed, and the log says {new:?}");
    }
}
