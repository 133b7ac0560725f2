//! Why a request over HTTP failed, and what to do.

use super::ANSWER_TIME;
use crate::error::{Problem, excerpt};

/// The longest part of the reason against a certificate that a message repeats: it has names in it.
const MAX_REASON: usize = 300;
/// What to write if a certificate cannot be put right.
const INSECURE: &str =
    "insecure = true in meters.toml accepts it without a check, if you trust the network";

/// Explains why a request failed.
pub(super) fn explain(error: &ureq::Error) -> Problem {
    let text = error.to_string();
    let lower = text.to_lowercase();
    // What `openssl req -x509` makes unless it is asked for a server's certificate.
    if lower.contains("causedasendentity") {
        return Problem::Refused(
            "its certificate is that of an authority (CA:TRUE), which a server must not use: make one with `openssl req -x509 -addext basicConstraints=critical,CA:FALSE ...` and name it as ca-file in meters.toml, or write insecure = true if you trust the network".to_owned(),
        );
    }
    if let Some(problem) = certificate_problem(&text, &lower) {
        return Problem::Refused(problem);
    }
    Problem::Failed(match error {
        ureq::Error::Timeout(_) => format!("it did not answer within {} s", ANSWER_TIME.as_secs()),
        ureq::Error::HostNotFound => "its address is unknown: check its name".to_owned(),
        _ if lower.contains("failed to lookup address") => {
            "its address is unknown: check its name".to_owned()
        }
        ureq::Error::BodyExceedsLimit(_) => "its answer is too large".to_owned(),
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            "it refuses the connection: check its address and port".to_owned()
        }
        _ => format!("it cannot be read ({})", excerpt(&text)),
    })
}

/// Explains what is wrong with a certificate; `None` if the problem is another one.
fn certificate_problem(text: &str, lower: &str) -> Option<String> {
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if !has(&["certificate", "unknownissuer", "unknown issuer"]) {
        return None;
    }
    let reason: String = text
        .chars()
        .filter(|letter| !letter.is_control())
        .take(MAX_REASON)
        .collect();
    let reason = reason
        .rsplit_once("invalid peer certificate: ")
        .map_or(reason.as_str(), |(_, reason)| reason);
    Some(if has(&["notvalidforname", "not valid for name"]) {
        format!(
            "its certificate has another name ({reason}): write the certificate's name in the address of the meter; {INSECURE}"
        )
    } else if has(&["expired"]) {
        format!(
            "its certificate has expired ({reason}): check the clock of this machine, and make a new certificate on the meter; {INSECURE}"
        )
    } else if has(&["notvalidyet", "not valid yet"]) {
        format!(
            "its certificate is not valid yet ({reason}): check the clocks of this machine and of the meter; {INSECURE}"
        )
    } else if has(&["unknownissuer", "unknown issuer"]) {
        format!(
            "its certificate is not signed by a known authority ({reason}): write ca-file = \"FILE\" in meters.toml, with the certificate that signed it; {INSECURE}"
        )
    } else {
        format!("its certificate is refused ({reason}): make a new one on the meter; {INSECURE}")
    })
}
