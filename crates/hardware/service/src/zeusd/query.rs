//! The query of a request: percent-decoding, and parameters with the checks and the error messages of zeusd.

use super::backend::GpuSummary;
use super::response::Response;

/// The most ids of unknown GPUs that an error message lists.
const MAX_LISTED: usize = 16;

/// Splits a query into decoded names and values. It fails with a message if an escape is malformed, or if the text is
/// not UTF-8 or contains control characters.
pub(super) fn decode_query(query: &str) -> Result<Vec<(String, String)>, String> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

/// Decodes one name or value: `%41` is a byte, `+` is a space.
fn decode(text: &str) -> Result<String, String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => match (hex(bytes.next()), hex(bytes.next())) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => return Err("malformed percent escape in the query".to_owned()),
            },
            other => other,
        });
    }
    match String::from_utf8(decoded) {
        Err(_) => Err("the query is not UTF-8".to_owned()),
        Ok(text) if text.chars().any(char::is_control) => {
            Err("control character in the query".to_owned())
        }
        Ok(text) => Ok(text),
    }
}

/// The value of a hexadecimal digit.
fn hex(digit: Option<u8>) -> Option<u8> {
    let value = char::from(digit?).to_digit(16)?;
    u8::try_from(value).ok()
}

/// The parameters of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters<'a>(&'a [(String, String)]);

impl<'a> Parameters<'a> {
    /// Checks that the query has only parameters with these names, and each at most once.
    pub(super) fn new(query: &'a [(String, String)], names: &[&str]) -> Result<Self, Response> {
        for (index, (name, _)) in query.iter().enumerate() {
            if !names.contains(&name.as_str()) {
                let expected = list_names(names);
                let reason = format!("unknown field `{name}`, expected {expected}");
                return Err(query_error(&reason));
            }
            // There are few names, so a repeated one is found after few steps.
            if query.iter().take(index).any(|(earlier, _)| earlier == name) {
                return Err(query_error(&format!("duplicate field `{name}`")));
            }
        }
        Ok(Self(query))
    }

    /// The value of a parameter, if it is there.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    /// The value of a parameter that must be there.
    pub(super) fn require(&self, name: &str) -> Result<&'a str, Response> {
        self.get(name)
            .ok_or_else(|| query_error(&format!("missing field `{name}`")))
    }

    /// The value of a parameter that must be a whole number.
    pub(super) fn require_number(&self, name: &str) -> Result<u32, Response> {
        self.require(name)?
            .parse()
            .map_err(|error: std::num::ParseIntError| query_error(&error.to_string()))
    }

    /// The value of a parameter that must be `true` or `false`.
    pub(super) fn require_bool(&self, name: &str) -> Result<bool, Response> {
        self.require(name)?
            .parse()
            .map_err(|error: std::str::ParseBoolError| query_error(&error.to_string()))
    }
}

/// The names in a sentence: `` `a` or `b` ``, or ``one of `a`, `b`, `c` ``.
fn list_names(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.len() {
        0..=2 => quoted.join(" or "),
        _ => format!("one of {}", quoted.join(", ")),
    }
}

/// The GPUs whose settings a request changes.
pub(super) fn gpus_to_set(ids: &str, available: &[GpuSummary]) -> Result<Vec<u32>, Response> {
    known_gpus(&parse_gpu_ids(ids)?, available).map_err(|unknown| {
        let id = unknown.first().copied().unwrap_or_default();
        Response::text(400, format!("GPU index {id} does not exist."))
    })
}

/// The GPUs that a request reads: all if it names none.
pub(super) fn gpus_to_read(
    ids: Option<&str>,
    available: &[GpuSummary],
) -> Result<Vec<u32>, Response> {
    let Some(ids) = ids else {
        return Ok(available.iter().map(|gpu| gpu.id).collect());
    };
    known_gpus(&parse_gpu_ids(ids)?, available).map_err(|unknown| {
        let id = unknown.first().copied().unwrap_or_default();
        Response::error(400, &format!("GPU {id} not found"))
    })
}

/// The GPUs whose power a request streams: all if it names none.
pub(super) fn gpus_to_stream(
    ids: Option<&str>,
    available: &[GpuSummary],
) -> Result<Vec<u32>, Response> {
    let all: Vec<u32> = available.iter().map(|gpu| gpu.id).collect();
    let Some(ids) = ids else {
        return Ok(all);
    };
    known_gpus(&parse_gpu_ids(ids)?, available).map_err(|mut unknown| {
        unknown.truncate(MAX_LISTED);
        Response::error(
            400,
            &format!("Unknown GPU indices: {unknown:?}. Available: {all:?}"),
        )
    })
}

/// A list of GPU ids such as `0,1`, sorted, each once. An empty list is an error.
fn parse_gpu_ids(text: &str) -> Result<Vec<u64>, Response> {
    if text.trim().is_empty() {
        return Err(Response::error(
            400,
            "gpu_ids must contain at least one GPU index",
        ));
    }
    let mut ids = Vec::new();
    for part in text.split(',').map(str::trim) {
        if part.is_empty() {
            return Err(Response::error(400, "gpu_ids contains an empty GPU index"));
        }
        let id = part
            .parse()
            .map_err(|_| Response::error(400, &format!("Invalid GPU index: {part}")))?;
        ids.push(id);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// The ids as those of available GPUs, or all ids that belong to none.
fn known_gpus(ids: &[u64], available: &[GpuSummary]) -> Result<Vec<u32>, Vec<u64>> {
    let find = |id: u64| available.iter().find(|gpu| u64::from(gpu.id) == id);
    let unknown: Vec<u64> = ids
        .iter()
        .copied()
        .filter(|id| find(*id).is_none())
        .collect();
    if unknown.is_empty() {
        Ok(ids.iter().filter_map(|id| Some(find(*id)?.id)).collect())
    } else {
        Err(unknown)
    }
}

/// The answer to a request whose parameters are missing, unknown or malformed.
fn query_error(reason: &str) -> Response {
    Response::text(400, format!("Query deserialize error: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_decoded() {
        let pairs = decode_query("gpu_ids=0%2C1&&a+b=%C3%a4&flag&x=1=2").unwrap();
        let expected = [("gpu_ids", "0,1"), ("a b", "ä"), ("flag", ""), ("x", "1=2")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(pairs, expected);
        assert_eq!(decode_query(""), Ok(Vec::new()));
    }

    #[test]
    fn malformed_text_is_rejected() {
        for query in [
            "a=%", "a=%4", "a=%4g", "a=%+1", "%zz=1", "a=%ff", "a=%00", "a=%0a", "%1b=1",
        ] {
            assert!(decode_query(query).is_err(), "{query}");
        }
    }
}
