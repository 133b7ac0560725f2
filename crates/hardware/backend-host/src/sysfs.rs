//! Reads and writes the small files of sysfs, each of which holds one number or one word.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes: sysfs shows at most one page.
const MAX_LENGTH: u64 = 4096;

/// Reads a file without the spaces around its text.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    Ok(sweetspot_input::read_text(path, MAX_LENGTH)?
        .trim()
        .to_owned())
}

/// Reads a whole number.
pub(crate) fn read_number(path: &Path) -> io::Result<u64> {
    let text = read_text(path)?;
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        let problem = format!(
            "`{}` has no number: `{}`",
            path.display(),
            shown.escape_debug()
        );
        io::Error::new(io::ErrorKind::InvalidData, problem)
    })
}

/// Writes a whole number to a file that exists.
pub(crate) fn write_number(path: &Path, number: u64) -> io::Result<()> {
    // The kernel takes one write as one value; a regular file of a made tree must not keep the end of a longer number.
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(format!("{number}\n").as_bytes())
}

/// The entries of a folder in the order of their names, numbers by value; none if the folder is missing.
pub(crate) fn entries(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let listed = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut entries = Vec::new();
    for entry in listed {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string() {
            entries.push((name, entry.path()));
        }
    }
    entries.sort_by_cached_key(|(name, _)| sort_key(name));
    Ok(entries)
}

/// A key that sorts `hwmon10` after `hwmon9`.
fn sort_key(name: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 0_u64)];
    let mut is_number = false;
    for letter in name.chars() {
        let digit = letter.to_digit(10);
        if digit.is_none() && is_number {
            parts.push((String::new(), 0));
        }
        is_number = digit.is_some();
        if let Some((text, number)) = parts.last_mut() {
            match digit {
                Some(digit) => *number = number.saturating_mul(10).saturating_add(digit.into()),
                None => text.push(letter),
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_sorted_by_value() {
        let mut names = [
            "hwmon10",
            "hwmon9",
            "intel-rapl:1",
            "intel-rapl:0:2",
            "intel-rapl:0",
        ];
        names.sort_by_cached_key(|name| sort_key(name));
        let sorted = [
            "hwmon9",
            "hwmon10",
            "intel-rapl:0",
            "intel-rapl:0:2",
            "intel-rapl:1",
        ];
        assert_eq!(names, sorted);
    }
}
