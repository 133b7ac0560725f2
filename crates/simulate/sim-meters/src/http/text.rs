//! Text forms that the meters use.

use sweetspot_quantity::Seconds;

/// Decodes a value of a query: `%20` and `+` are spaces.
pub(super) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::new();
    let mut index = 0;
    while index < bytes.len() {
        let hex = (bytes[index] == b'%')
            .then(|| text.get(index + 1..index + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (hex, bytes[index]) {
            (Some(byte), _) => {
                decoded.push(byte);
                index += 2;
            }
            (None, b'+') => decoded.push(b' '),
            (None, byte) => decoded.push(byte),
        }
        index += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Encodes a text in Base64.
pub(super) fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            match digit <= chunk.len() {
                true => encoded.push(char::from(DIGITS[value as usize])),
                false => encoded.push('='),
            }
        }
    }
    encoded
}

/// A Unix time as `2026-03-01T12:00:00`, in UTC.
pub(super) fn iso_time(unix: Seconds) -> String {
    let seconds = unix.get().max(0.0) as u64;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // The days are counted from 0000-03-01, so that a leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded_and_encoded() {
        assert_eq!(decode("Status%2010"), "Status 10");
        assert_eq!(decode("Status+10%"), "Status 10%");
        assert_eq!(decode("%zz%C3%A4"), "%zz\u{e4}");
        let encoded = ["", "f", "fo", "foo", "foob"].map(base64);
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }

    #[test]
    fn times_are_dates() {
        let date = |unix| iso_time(Seconds::new(unix));
        assert_eq!(date(0.0), "1970-01-01T00:00:00");
        assert_eq!(date(951_782_400.0), "2000-02-29T00:00:00");
        assert_eq!(date(1_772_323_199.0), "2026-02-28T23:59:59");
        assert_eq!(date(1_798_761_600.0), "2027-01-01T00:00:00");
    }
}
