//! Requests of clients: valid ones with random values, damaged ones, and random bytes.

use super::device::{GPUS, id_of};
use super::random::Random;

/// What a client speaks on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Lines,
    Http,
    /// Bytes without a form.
    Noise,
}

/// The greeting that the service expects first.
pub const HELLO: &[u8] = b"{\"hello\":{\"version\":1}}\n";

/// Numbers that parsers get wrong.
const NUMBERS: [&str; 18] = [
    "0",
    "-0",
    "-1",
    "1",
    "1e308",
    "1e309",
    "-1e309",
    "1e-400",
    "NaN",
    "Infinity",
    "4294967295",
    "4294967296",
    "9223372036854775808",
    "18446744073709551616",
    "0x10",
    "1.7976931348623157e308",
    "00000000000000000000150",
    "99999999999999999999999999999999999999999999999999999999999999",
];

/// Pieces that are inserted into requests.
const PIECES: [&str; 34] = [
    "\n",
    "\r\n",
    "\r\n\r\n",
    "\0",
    "\u{7f}",
    "ä",
    "\u{202e}",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "true",
    "%",
    "%00",
    "%0d%0a",
    "&gpu_ids=1",
    "?",
    "#",
    "\"device\":\"x\",",
    "\"settings\":{},",
    "{\"release\":null}",
    "\"release\"\n",
    "\"ping\"\n",
    "Content-Length: 7\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n",
    " HTTP/1.1\r\nHost: a\r\n\r\n",
];

/// A power cap, a clock or something else in the place of one.
fn value(random: &mut Random) -> String {
    match random.below(8) {
        0 => format!("\"{} W\"", random.pick(&NUMBERS)),
        1 => random.pick(&NUMBERS).to_owned(),
        2 => "null".to_owned(),
        3 => format!("\"{} kW\"", random.below(400) as f64 / 1000.0),
        4 => format!("\"{} MHz\"", 100 * random.below(16)),
        _ => format!("\"{} W\"", random.below(400)),
    }
}

fn device(random: &mut Random) -> String {
    match random.below(12) {
        0 => "GPU-unknown".to_owned(),
        1 => "../../../etc/passwd".to_owned(),
        2 => "x".repeat(random.below(3000)),
        _ => id_of(random.below(GPUS)).to_string(),
    }
}

/// The settings of a request, most of them in the form that is expected.
fn settings(random: &mut Random) -> String {
    let mut keys = Vec::new();
    for key in ["power_cap", "core_clock", "memory_clock"] {
        if random.once_in(2) {
            let value = match (random.once_in(8), key) {
                (true, _) => value(random),
                (false, "power_cap") => format!("\"{} W\"", 140 + random.below(130)),
                (false, "core_clock") => format!("\"{} MHz\"", 800 + 100 * random.below(7)),
                (false, _) => format!("\"{} MHz\"", random.pick(&["810", "877", "900"])),
            };
            keys.push(format!("\"{key}\":{value}"));
        }
    }
    if random.once_in(20) {
        keys.push("\"fan\":1".to_owned());
    }
    format!("{{{}}}", keys.join(","))
}

/// A request as a line of JSON, without its end.
fn line(random: &mut Random) -> String {
    let device = device(random);
    match random.below(16) {
        0 => format!(
            "{{\"hello\":{{\"version\":{}}}}}",
            random.pick(&["1", "1", "1", "1", "2", "0"])
        ),
        1 if random.once_in(4) => {
            "{\"hello\":{\"version\":1,\"job\":{\"name\":\"j\",\"uid\":0}}}".to_owned()
        }
        1..6 => {
            let count = 1 + random.below(2);
            let kind = random.pick(&["", "", ",\"kind\":\"setting\"", ",\"kind\":\"ceiling\""]);
            let devices: Vec<String> = (0..count).map(|_| format!("\"{device}\"")).collect();
            format!(
                "{{\"lease\":{{\"devices\":[{}]{kind}}}}}",
                devices.join(",")
            )
        }
        6..11 => format!(
            "{{\"apply\":{{\"device\":\"{device}\",\"settings\":{}}}}}",
            settings(random)
        ),
        11 | 12 => format!("{{\"restore\":{{\"device\":\"{device}\"}}}}"),
        13 => format!("{{\"settings\":{{\"device\":\"{device}\"}}}}"),
        14 => "\"release\"".to_owned(),
        _ => "\"ping\"".to_owned(),
    }
}

/// A request of HTTP.
fn http(random: &mut Random) -> String {
    let ids = match random.below(8) {
        0 => random
            .pick(&[
                "",
                "0,1,2",
                "0,,1",
                "7",
                "-1",
                "18446744073709551616",
                "%30",
            ])
            .to_owned(),
        1 => "0,".repeat(random.below(4000)),
        _ => random.below(GPUS).to_string(),
    };
    let number = |random: &mut Random, usual: usize| match random.once_in(4) {
        true => random.pick(&NUMBERS).to_owned(),
        false => usual.to_string(),
    };
    let clock = 800 + 100 * random.below(7);
    let clocks = match random.once_in(5) {
        true => format!(
            "min_clock_mhz={}&max_clock_mhz={clock}",
            number(random, clock)
        ),
        false => format!("min_clock_mhz={clock}&max_clock_mhz={clock}"),
    };
    let cap = 1000 * (140 + random.below(130));
    let cap = number(random, cap);
    let (method, target) = match random.below(18) {
        0 => ("GET", "/discover".to_owned()),
        1 => ("GET", "/time".to_owned()),
        2 => ("GET", format!("/gpu/get_power?gpu_ids={ids}")),
        3 => ("GET", "/gpu/get_cumulative_energy".to_owned()),
        4 => ("GET", format!("/gpu/get_power_limit?gpu_ids={ids}")),
        5 => ("GET", "/gpu/get_power_limit_constraints".to_owned()),
        6 => ("GET", format!("/gpu/get_persistence_mode?gpu_ids={ids}")),
        7 if random.once_in(20) => ("GET", format!("/gpu/stream_power?gpu_ids={ids}")),
        7..11 => (
            "POST",
            format!("/gpu/set_power_limit?gpu_ids={ids}&power_limit_mw={cap}&block=true"),
        ),
        11 | 12 => (
            "POST",
            format!(
                "/gpu/set_persistence_mode?gpu_ids={ids}&enabled={}&block=true",
                random.pick(&["true", "false", "1"])
            ),
        ),
        13 => (
            "POST",
            format!("/gpu/set_gpu_locked_clocks?gpu_ids={ids}&{clocks}&block=true"),
        ),
        14 => (
            "POST",
            format!("/gpu/set_mem_locked_clocks?gpu_ids={ids}&{clocks}&block=false"),
        ),
        15 => (
            "POST",
            format!("/gpu/reset_gpu_locked_clocks?gpu_ids={ids}&block=true"),
        ),
        16 => (
            "POST",
            format!("/gpu/reset_locked_clocks?gpu_ids={ids}&block=true"),
        ),
        _ => (
            random.pick(&["PUT", "HEAD", "get", "POST"]),
            "/cpu/get_power".to_owned(),
        ),
    };
    let body = match random.once_in(10) {
        true => "b".repeat(random.below(3000)),
        false => String::new(),
    };
    let version = random.pick(&["1.1", "1.1", "1.1", "1.0"]);
    let extra = random.pick(&[
        "",
        "",
        "Connection: close\r\n",
        "Connection: keep-alive\r\n",
    ]);
    format!(
        "{method} {target} HTTP/{version}\r\nHost: localhost\r\n{extra}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A valid request with random values, most of which the policy allows.
pub fn valid(language: Language, random: &mut Random) -> Vec<u8> {
    match language {
        Language::Lines => line(random).into_bytes(),
        Language::Http => http(random).into_bytes(),
        Language::Noise => random.bytes(600),
    }
}

/// Objects or lists in each other, deeper than any parser may follow.
fn nested(random: &mut Random) -> Vec<u8> {
    let depth = random.below(9000);
    match random.below(3) {
        0 => b"[".repeat(depth),
        1 => b"{\"apply\":".repeat(depth / 9),
        _ => [b"{\"lease\":{\"devices\":".as_slice(), &b"[".repeat(depth)].concat(),
    }
}

/// Replaces the first run of digits after a random place by a number that parsers get wrong.
fn replace_number(bytes: &mut Vec<u8>, random: &mut Random) {
    let start = random.below(bytes.len());
    let digit = |byte: &u8| byte.is_ascii_digit();
    let Some(first) = bytes[start..].iter().position(digit) else {
        return;
    };
    let first = start + first;
    let length = bytes[first..].iter().take_while(|byte| digit(byte)).count();
    let number = random.pick(&NUMBERS).bytes();
    bytes.splice(first..first + length, number);
}

/// Damages a request in one way.
fn damage(bytes: &mut Vec<u8>, language: Language, random: &mut Random) {
    let place = random.below(bytes.len());
    let end = bytes.len().min(place + 1 + random.below(40));
    match random.below(9) {
        0 if !bytes.is_empty() => bytes[place] ^= 1 << random.below(8),
        1 if !bytes.is_empty() => bytes[place] = random.next() as u8,
        2 => bytes.truncate(place),
        3 => drop(bytes.drain(place..end)),
        4 => {
            let repeated = bytes[place..end].to_vec();
            bytes.splice(place..place, repeated);
        }
        5 => {
            let other = valid(language, random);
            let from = random.below(other.len());
            bytes.truncate(place);
            bytes.extend(&other[from..]);
        }
        6 if !bytes.is_empty() => replace_number(bytes, random),
        7 if random.once_in(10) => drop(bytes.splice(place..place, nested(random))),
        _ => drop(bytes.splice(place..place, random.pick(&PIECES).bytes())),
    }
}

/// The next thing that a client sends. It is damaged once in `damaged` times.
pub fn next(language: Language, damaged: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = match random.below(30 * damaged) {
        0 => random.bytes(2000),
        1 => nested(random),
        // Too long for a line, for a head and for a body.
        2 if random.once_in(10) => b"{\"x".repeat(8000),
        _ => valid(language, random),
    };
    if random.once_in(damaged) {
        for _ in 0..1 + random.below(3) {
            damage(&mut bytes, language, random);
        }
    }
    if language == Language::Lines && !random.once_in(20 * damaged) {
        bytes.push(b'\n');
    }
    bytes
}
