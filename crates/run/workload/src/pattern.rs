//! Patterns that find progress in a program's output.

use regex_lite::Regex;

/// A pattern that finds progress in a line of output.
#[derive(Clone, Debug)]
pub struct ProgressPattern {
    pattern: Regex,
    meaning: Meaning,
    group: usize,
}

/// What the number in a matching line means.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meaning {
    Total,
    Rate,
    Added,
    Line,
}

/// The progress that a line of output reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OutputReport {
    /// The total number of items done so far.
    Total(f64),
    /// The current rate, in items per second.
    Rate(f64),
    /// The number of items done since the last matching line.
    Added(f64),
    /// A matching line without a number, which counts as one item.
    Line,
}

/// Why a pattern is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("invalid pattern `{pattern}`: {reason}")]
pub struct InvalidPattern {
    pattern: String,
    reason: String,
}

impl std::str::FromStr for ProgressPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |reason: String| InvalidPattern {
            pattern: text.to_owned(),
            reason,
        };
        let pattern = Regex::new(text).map_err(|error| bad(error.to_string()))?;
        let groups = pattern.captures_len() - 1;
        let named = pattern
            .capture_names()
            .enumerate()
            .find_map(|(group, name)| {
                let meaning = match name? {
                    "items" => Meaning::Total,
                    "rate" => Meaning::Rate,
                    "more" => Meaning::Added,
                    _ => return None,
                };
                Some((group, meaning))
            });
        let (group, meaning) = match (named, groups) {
            (Some(named), _) => named,
            (None, 0) => (0, Meaning::Line),
            (None, 1) if is_rate(text) => (1, Meaning::Rate),
            (None, 1) => (1, Meaning::Total),
            (None, _) => {
                return Err(bad(
                    "the pattern has several groups: name the group that contains the number: (?<items>...), (?<more>...) or (?<rate>...)"
                        .to_owned(),
                ));
            }
        };
        Ok(Self {
            pattern,
            meaning,
            group,
        })
    }
}

/// Whether the text around the pattern's number, such as `/s`, shows that the number is a rate.
fn is_rate(pattern: &str) -> bool {
    let text = pattern.to_lowercase().replace("\\/", "/");
    let is_end_of_word = |rest: &str| {
        let rest = rest.trim_start_matches("econd").trim_start_matches("ec");
        !rest.starts_with(|next: char| next.is_alphabetic())
    };
    let contains = |word: &str| {
        let mut matches = text.match_indices(word);
        matches.any(|(at, _)| is_end_of_word(&text[at + word.len()..]))
    };
    contains("/s") || contains("/ s") || contains("per s")
}

impl ProgressPattern {
    /// Finds a progress report in a line of output.
    pub fn find(&self, line: &str) -> Option<OutputReport> {
        let captures = self.pattern.captures(line)?;
        if self.meaning == Meaning::Line {
            return Some(OutputReport::Line);
        }
        let number = captures.get(self.group)?.as_str().replace([',', '_'], "");
        let number: f64 = number.trim().parse().ok()?;
        if !number.is_finite() || number < 0.0 {
            return None;
        }
        Some(match self.meaning {
            Meaning::Total => OutputReport::Total(number),
            Meaning::Rate => OutputReport::Rate(number),
            Meaning::Added => OutputReport::Added(number),
            Meaning::Line => OutputReport::Line,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pattern: &str, line: &str) -> Option<OutputReport> {
        pattern.parse::<ProgressPattern>().unwrap().find(line)
    }

    #[test]
    fn a_number_is_a_total_a_rate_or_an_addition() {
        let line = "step 5: 1,640 items, images/sec: 310.5";
        assert_eq!(
            find(r"([\d,]+) items", line),
            Some(OutputReport::Total(1640.0))
        );
        assert_eq!(
            find(r"images/sec: ([\d.]+)", line),
            Some(OutputReport::Rate(310.5))
        );
        assert_eq!(
            find(r"step (?<more>\d+)", line),
            Some(OutputReport::Added(5.0))
        );
        assert_eq!(find("^step", line), Some(OutputReport::Line));
        let line = "items per step 40, 3 it/s, 12 per second";
        assert_eq!(
            find(r"items per step (\d+)", line),
            Some(OutputReport::Total(40.0))
        );
        assert_eq!(find(r"(\d+) it/s", line), Some(OutputReport::Rate(3.0)));
        assert_eq!(
            find(r"(\d+) per second", line),
            Some(OutputReport::Rate(12.0))
        );
        assert_eq!(find("epoch", line), None);
    }

    #[test]
    fn errors_name_the_invalid_pattern() {
        let reason = |pattern: &str| pattern.parse::<ProgressPattern>().unwrap_err().to_string();
        assert!(reason("(").contains("`(`"));
        assert!(reason(r"(\d+) of (\d+)").contains("name the group that contains the number"));
    }
}
