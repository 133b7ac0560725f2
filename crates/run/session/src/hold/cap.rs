//! The power cap: given at the start, and later changed by a file, by `hold set`, or with the device's own limit.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sweetspot_quantity::{Watts, parse_bare};

/// Where the power cap comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CapSource {
    /// The cap is this fixed power.
    Power(Watts),
    /// The cap follows the limit that the device enforces.
    Device,
}

/// The text is not a valid power cap.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("invalid power cap `{0}`: give watts above 0, such as 150W")]
pub struct InvalidCap(String);

impl std::str::FromStr for CapSource {
    type Err = InvalidCap;

    fn from_str(text: &str) -> Result<Self, InvalidCap> {
        match text {
            "device" => Ok(Self::Device),
            _ => parse_cap(text).map(Self::Power),
        }
    }
}

/// Reads a power cap such as `150W`.
pub fn parse_cap(text: &str) -> Result<Watts, InvalidCap> {
    parse_bare::<Watts>(text.trim())
        .ok()
        .filter(|cap| cap.is_finite() && *cap > Watts::ZERO)
        .ok_or_else(|| InvalidCap(text.trim().chars().take(40).collect()))
}

/// The size of the largest cap file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 4096;

/// A file that another program writes the cap to.
#[derive(Debug)]
pub struct CapFile {
    path: PathBuf,
    /// The file's text at the last read, or the problem with it; `None` before the first read.
    last: Option<Result<String, String>>,
}

impl CapFile {
    /// Creates the reader of a cap file; nothing is read yet.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            last: None,
        }
    }

    /// Reads the file and returns its cap or the problem with it; `None` if nothing has changed since the
    /// last read.
    pub fn read_change(&mut self) -> Option<Result<Watts, String>> {
        let read = read(&self.path);
        if self.last.as_ref() == Some(&read) {
            return None;
        }
        let name = self.path.display();
        let cap = match &read {
            Ok(text) => parse_cap(text).map_err(|problem| format!("cap file {name}: {problem}")),
            Err(problem) => Err(format!("cap file {name}: {problem}")),
        };
        self.last = Some(read);
        Some(cap)
    }
}

/// Reads the text of a cap file; a file that is too large is an error.
fn read(path: &Path) -> Result<String, String> {
    let text = sweetspot_input::read_bytes(path, MAX_FILE_BYTES);
    let text = text.map_err(|problem| match problem.kind() {
        ErrorKind::InvalidInput | ErrorKind::FileTooLarge => {
            "the cap file must be a file of at most 4096 bytes with one power, such as 150W"
                .to_owned()
        }
        _ => problem.to_string(),
    })?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_are_watts_above_zero() {
        assert_eq!("device".parse(), Ok(CapSource::Device));
        assert_eq!("150W".parse(), Ok(CapSource::Power(Watts::new(150.0))));
        assert_eq!("0.2kW".parse(), Ok(CapSource::Power(Watts::new(200.0))));
        for bad in ["", "0W", "-3W", "fast", "10s", "nan", "inf"] {
            assert!(bad.parse::<CapSource>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_cap_file_is_reported_once_per_change() {
        let path = std::env::temp_dir().join(format!("cap-file-{}", std::process::id()));
        let mut file = CapFile::new(&path);
        assert!(
            file.read_change()
                .unwrap()
                .unwrap_err()
                .contains("No such file")
        );
        assert_eq!(file.read_change(), None);
        std::fs::write(&path, "150W\n").unwrap();
        assert_eq!(file.read_change(), Some(Ok(Watts::new(150.0))));
        assert_eq!(file.read_change(), None);
        std::fs::write(&path, "much").unwrap();
        let problem = file.read_change().unwrap().unwrap_err();
        assert!(problem.contains("invalid power cap `much`"), "{problem}");
        assert_eq!(file.read_change(), None);
        std::fs::write(&path, "140 W").unwrap();
        assert_eq!(file.read_change(), Some(Ok(Watts::new(140.0))));
        std::fs::remove_file(&path).unwrap();
        assert!(file.read_change().unwrap().is_err());
        assert_eq!(file.read_change(), None);
    }
}
