//! USB measurement devices through the kernel's driver `usbtmc`: a file, and two requests to its driver.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{Error, Read, Write};
use std::path::Path;
use std::time::Duration;

use rustix::ioctl::{NoArg, Setter, ioctl};

use super::{MAX_LINE, Transport};

/// The driver's request `USBTMC_IOCTL_CLEAR`: abandons transfers and empties the device's buffers.
const CLEAR: rustix::ioctl::Opcode = 0x5b02;
/// The driver's request `USBTMC_IOCTL_SET_TIMEOUT`: sets the timeout of transfers in milliseconds.
const SET_TIMEOUT: rustix::ioctl::Opcode = 0x4004_5b0a;

/// A USB measurement device.
pub(super) struct Usbtmc {
    file: File,
    timeout: Duration,
}

impl Usbtmc {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut device = Self {
            file,
            timeout: Duration::ZERO,
        };
        device.clear();
        Ok(device)
    }

    /// Sets the timeout of transfers.
    fn set_timeout(&mut self, timeout: Duration) -> Result<(), Error> {
        if self.timeout != timeout {
            let millis = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
            // SAFETY: the driver reads one u32 at the address that it gets, and keeps no pointer.
            unsafe { ioctl(&self.file, Setter::<SET_TIMEOUT, u32>::new(millis)) }?;
            self.timeout = timeout;
        }
        Ok(())
    }
}

impl Transport for Usbtmc {
    fn send(&mut self, line: &str) -> Result<(), Error> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    fn receive(&mut self, timeout: Duration) -> Result<String, Error> {
        self.set_timeout(timeout)?;
        let mut answer = [0; MAX_LINE];
        let count = self.file.read(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..count]).trim().to_owned())
    }

    fn clear(&mut self) {
        // SAFETY: the request has no argument. An older device that does not know it goes on without it.
        let _ = unsafe { ioctl(&self.file, NoArg::<CLEAR>::new()) };
    }
}
