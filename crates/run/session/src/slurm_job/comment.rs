//! Reads what a job asks for in its comment. The comment is a user's text, and the program that reads it runs as root: it
//! is parsed and never executed, and a comment that is not exactly of the expected form is refused as a whole.

use sweetspot_device::Settings;
use sweetspot_quantity::{Megahertz, Watts};

/// What begins a request in a comment.
const PREFIX: &str = "sweetspot:";

/// The longest comment that is read, in bytes.
const MAX_COMMENT: usize = 1024;

/// What a job asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum JobRequest {
    /// These settings.
    Settings(Settings),
    /// The settings that an earlier run of `tune` chose for this objective.
    Objective {
        /// The objective, such as `edp`.
        objective: String,
        /// A part of the workload's name, where choices for several are stored.
        workload: Option<String>,
    },
}

/// Why a comment is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommentError {
    /// The comment is too long to be a request.
    #[error("the comment has {0} bytes, and a request has {MAX_COMMENT} at most")]
    TooLong(usize),
    /// The comment has characters that no request has.
    #[error(
        "the comment has the character {0}: a request has letters, digits, spaces and ._-+:=,@/ only"
    )]
    Character(String),
    /// The comment has several requests.
    #[error(
        "the comment has several requests: write one, such as sweetspot:power-cap=200,core-clock=1200"
    )]
    Several,
    /// A part of the request is not understood.
    #[error(
        "`{0}` is not understood: write power-cap=WATTS, core-clock=MHZ, memory-clock=MHZ or objective=NAME"
    )]
    Part(String),
    /// A key is given twice.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// Settings and an objective are given together.
    #[error("an objective chooses the settings: give either an objective or settings")]
    Both,
}

/// Reads what a job asks for in its comment; `None` if it asks for nothing.
pub fn parse_comment(comment: &str) -> Result<Option<JobRequest>, CommentError> {
    if !comment.contains(PREFIX) {
        return Ok(None);
    }
    if comment.len() > MAX_COMMENT {
        return Err(CommentError::TooLong(comment.len()));
    }
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " ._-+:=,@/".contains(letter);
    if let Some(letter) = comment.chars().find(|letter| !is_plain(*letter)) {
        return Err(CommentError::Character(letter.escape_default().to_string()));
    }
    let mut requests = comment.split(' ').filter(|word| word.contains(PREFIX));
    let (Some(request), None) = (requests.next(), requests.next()) else {
        return Err(CommentError::Several);
    };
    let parts = request.strip_prefix(PREFIX);
    let parts = parts.ok_or_else(|| CommentError::Part(request.to_owned()))?;
    parse_parts(parts).map(Some)
}

/// Reads the parts of a request, which are separated by commas.
fn parse_parts(parts: &str) -> Result<JobRequest, CommentError> {
    let (mut settings, mut objective, mut workload) = (Settings::default(), None, None);
    let mut seen: Vec<&str> = Vec::new();
    for part in parts.split(',') {
        let wrong = || CommentError::Part(part.to_owned());
        let (key, value) = part.split_once('=').ok_or_else(wrong)?;
        if seen.contains(&key) {
            return Err(CommentError::Twice(key.to_owned()));
        }
        seen.push(key);
        match key {
            "power-cap" => {
                settings.power_cap = Some(Watts::new(number(value, "W").ok_or_else(wrong)?))
            }
            "core-clock" => {
                settings.core_clock = Some(Megahertz::new(number(value, "MHz").ok_or_else(wrong)?))
            }
            "memory-clock" => {
                settings.memory_clock =
                    Some(Megahertz::new(number(value, "MHz").ok_or_else(wrong)?))
            }
            "objective" if !value.is_empty() => objective = Some(value.to_owned()),
            "workload" if !value.is_empty() => workload = Some(value.to_owned()),
            _ => return Err(wrong()),
        }
    }
    match (objective, settings == Settings::default()) {
        (Some(objective), true) => Ok(JobRequest::Objective {
            objective,
            workload,
        }),
        (Some(_), false) => Err(CommentError::Both),
        (None, false) if workload.is_none() => Ok(JobRequest::Settings(settings)),
        (None, _) => Err(CommentError::Part(parts.to_owned())),
    }
}

/// Reads a positive number with at most one decimal point and, if the user likes, its unit.
fn number(text: &str, unit: &str) -> Option<f64> {
    let text = text.strip_suffix(unit).unwrap_or(text);
    // `parse` also reads inf, nan and 1e9.
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = text.parse().ok().filter(|_| is_plain)?;
    (number > 0.0 && number < 1e6).then_some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settings(cap: Option<f64>, core: Option<f64>) -> JobRequest {
        JobRequest::Settings(Settings {
            power_cap: cap.map(Watts::new),
            core_clock: core.map(Megahertz::new),
            memory_clock: None,
        })
    }

    #[test]
    fn requests_are_read() {
        for (comment, expected) in [
            ("sweetspot:power-cap=200", settings(Some(200.0), None)),
            (
                "my run sweetspot:power-cap=187.5W,core-clock=1200MHz v2",
                settings(Some(187.5), Some(1200.0)),
            ),
            ("sweetspot:core-clock=1200", settings(None, Some(1200.0))),
        ] {
            assert_eq!(parse_comment(comment), Ok(Some(expected)), "{comment}");
        }
        let objective = parse_comment("sweetspot:objective=edp,workload=train.py").unwrap();
        let expected = JobRequest::Objective {
            objective: "edp".to_owned(),
            workload: Some("train.py".to_owned()),
        };
        assert_eq!(objective, Some(expected));
        for nothing in ["", "my comment; rm -rf /", "sweet spot"] {
            assert_eq!(parse_comment(nothing), Ok(None));
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let long = format!("sweetspot:power-cap=200 {}", "x".repeat(10_000));
        for (comment, expected) in [
            ("sweetspot:power-cap=200; rm -rf /", "the character ;"),
            ("sweetspot:power-cap=200\n", "the character \\n"),
            ("sweetspot:power-cap=$(id)", "the character $"),
            ("sweetspot:power-cap=`id`", "the character `"),
            (long.as_str(), "bytes"),
            ("sweetspot:power-cap=", "not understood"),
            ("sweetspot:power-cap=nan", "not understood"),
            ("sweetspot:power-cap=1e3", "not understood"),
            ("sweetspot:power-cap=-5", "not understood"),
            ("sweetspot:power-cap=0", "not understood"),
            ("sweetspot:fan=0", "not understood"),
            ("sweetspot:", "not understood"),
            ("xsweetspot:power-cap=200", "not understood"),
            ("sweetspot:workload=a", "not understood"),
            ("sweetspot:power-cap=1,power-cap=2", "given twice"),
            ("sweetspot:power-cap=1 sweetspot:power-cap=2", "several"),
            ("sweetspot:objective=edp,power-cap=2", "either"),
        ] {
            let problem = parse_comment(comment).unwrap_err().to_string();
            assert!(problem.contains(expected), "{comment}: {problem}");
            assert!(problem.len() < 1300 && !problem.contains('\n'));
        }
    }

    proptest! {
        #[test]
        fn no_comment_panics_and_no_refusal_spans_lines(comment in ".{0,40}sweetspot:.{0,40}") {
            if let Err(problem) = parse_comment(&comment) {
                prop_assert!(!problem.to_string().contains('\n'));
            }
        }
    }
}
