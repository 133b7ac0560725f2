//! The cap is somebody else's: given at the start, changed by a file, over a socket, or by the device's owner.

use std::path::{Path, PathBuf};

use sweetspot_quantity::{Watts, parse_bare};

/// What is to be held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Below {
    /// This power.
    Power(Watts),
    /// Whatever the device enforces.
    Device,
}

/// A cap that is none.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("invalid power cap `{0}`: give watts above 0, such as 150W")]
pub struct BadCap(String);

impl std::str::FromStr for Below {
    type Err = BadCap;

    fn from_str(text: &str) -> Result<Self, BadCap> {
        match text {
            "device" => Ok(Self::Device),
            _ => parse_cap(text).map(Self::Power),
        }
    }
}

/// Watts that can be held.
pub fn parse_cap(text: &str) -> Result<Watts, BadCap> {
    parse_bare::<Watts>(text.trim())
        .ok()
        .filter(|cap| cap.is_finite() && *cap > Watts::ZERO)
        .ok_or_else(|| BadCap(text.trim().chars().take(40).collect()))
}

/// A longer file is no cap.
const LONGEST: u64 = 4096;

/// A file that somebody writes the cap to.
#[derive(Debug)]
pub struct CapFile {
    path: PathBuf,
    /// What it said last, or why it said nothing.
    last: Option<Result<String, String>>,
}

impl CapFile {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            last: None,
        }
    }

    /// What it says, where that differs from the last time: a cap, or what is wrong.
    pub fn look(&mut self) -> Option<Result<Watts, String>> {
        let read = read(&self.path);
        if self.last.as_ref() == Some(&read) {
            return None;
        }
        let name = self.path.display();
        let told = match &read {
            Ok(text) => parse_cap(text).map_err(|problem| format!("cap file {name}: {problem}")),
            Err(problem) => Err(format!("cap file {name}: {problem}")),
        };
        self.last = Some(read);
        Some(told)
    }
}

fn read(path: &Path) -> Result<String, String> {
    let about = std::fs::metadata(path).map_err(|problem| problem.to_string())?;
    if !about.is_file() || about.len() > LONGEST {
        return Err("it is not a small file with one power such as 150W".to_owned());
    }
    let text = std::fs::read(path).map_err(|problem| problem.to_string())?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_are_watts_above_zero() {
        assert_eq!("device".parse(), Ok(Below::Device));
        assert_eq!("150W".parse(), Ok(Below::Power(Watts::new(150.0))));
        assert_eq!("0.2kW".parse(), Ok(Below::Power(Watts::new(200.0))));
        for bad in ["", "0W", "-3W", "fast", "10s", "nan", "inf"] {
            assert!(bad.parse::<Below>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_is_told_of_once_for_each_change() {
        let path = std::env::temp_dir().join(format!("cap-file-{}", std::process::id()));
        let mut file = CapFile::new(&path);
        assert!(file.look().unwrap().unwrap_err().contains("No such file"));
        assert_eq!(file.look(), None);
        std::fs::write(&path, "150W\n").unwrap();
        assert_eq!(file.look(), Some(Ok(Watts::new(150.0))));
        assert_eq!(file.look(), None);
        std::fs::write(&path, "much").unwrap();
        let problem = file.look().unwrap().unwrap_err();
        assert!(problem.contains("invalid power cap `much`"), "{problem}");
        assert_eq!(file.look(), None);
        std::fs::write(&path, "140 W").unwrap();
        assert_eq!(file.look(), Some(Ok(Watts::new(140.0))));
        std::fs::remove_file(&path).unwrap();
        assert!(file.look().unwrap().is_err());
        assert_eq!(file.look(), None);
    }
}
