//! Texts in PDF files: the encoding of the fonts, and strings outside of pages.

use std::fmt::Write;

/// The characters of the fonts that WinAnsiEncoding does not have, at codes that it does not use, with their names in
/// Adobe's font metrics.
const MORE: [(char, u8, &str); 12] = [
    ('\u{2212}', 1, "minus"),
    ('≤', 2, "lessequal"),
    ('≥', 3, "greaterequal"),
    ('ł', 4, "lslash"),
    ('Ł', 5, "Lslash"),
    ('ą', 6, "aogonek"),
    ('ę', 7, "eogonek"),
    ('ć', 8, "cacute"),
    ('ń', 11, "nacute"),
    ('ś', 14, "sacute"),
    ('ż', 15, "zdotaccent"),
    ('ő', 16, "ohungarumlaut"),
];

/// The encoding of the fonts: WinAnsiEncoding with the characters of [`MORE`].
pub const ENCODING: &str = "<< /Type /Encoding /BaseEncoding /WinAnsiEncoding /Differences [1 /minus /lessequal /greaterequal /lslash /Lslash /aogonek /eogonek /cacute 11 /nacute 14 /sacute /zdotaccent /ohungarumlaut] >>";

/// The characters of WinAnsiEncoding from 0x80 to 0x9f; the others are as in Unicode.
const WINDOWS: [(char, u8); 15] = [
    ('€', 0x80),
    ('…', 0x85),
    ('‰', 0x89),
    ('Š', 0x8a),
    ('Œ', 0x8c),
    ('Ž', 0x8e),
    ('‘', 0x91),
    ('’', 0x92),
    ('“', 0x93),
    ('”', 0x94),
    ('–', 0x96),
    ('—', 0x97),
    ('š', 0x9a),
    ('œ', 0x9c),
    ('ž', 0x9e),
];

/// The code of a character; a question mark if the fonts do not have it.
fn code(letter: char) -> u8 {
    let more = MORE.iter().find(|(known, _, _)| *known == letter);
    let windows = WINDOWS.iter().find(|(known, _)| *known == letter);
    match (more, windows, letter) {
        (Some((_, code, _)), ..) => *code,
        (_, Some((_, code)), _) => *code,
        (_, _, '\u{202f}' | '\u{2009}' | '\u{a0}') => b' ',
        (_, _, ' '..='~' | '\u{a1}'..='\u{ff}') => u8::try_from(u32::from(letter)).unwrap_or(b'?'),
        _ => b'?',
    }
}

/// A text as the content of a string between brackets; characters outside ASCII are octal numbers.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match code(letter) {
            code @ (b'(' | b')' | b'\\') => {
                out.push('\\');
                out.push(char::from(code));
            }
            code @ b' '..=b'~' => out.push(char::from(code)),
            code => {
                let _ = write!(out, "\\{code:03o}");
            }
        }
    }
    out
}

/// A text outside of pages, such as a title: UTF-16 with a mark of its byte order.
pub fn text_string(text: &str) -> String {
    let mut out = String::from("<FEFF");
    for unit in text.encode_utf16() {
        let _ = write!(out, "{unit:04X}");
    }
    out + ">"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_break_out_of_their_string() {
        assert_eq!(encoded("a(b)\\"), "a\\(b\\)\\\\");
        assert_eq!(encoded("\u{2212}5 °C"), "\\0015 \\260C");
        assert_eq!(encoded("\n\u{1F600}"), "??");
        assert_eq!(text_string("é)"), "<FEFF00E90029>");
    }

    #[test]
    fn the_encoding_names_every_added_character() {
        let mut expected = String::new();
        let mut last = 0;
        for (_, code, name) in MORE {
            if code != last + 1 || last == 0 {
                expected += &format!(" {code}");
            }
            expected += &format!(" /{name}");
            last = code;
        }
        assert!(
            ENCODING.contains(&format!("[{}]", expected.trim())),
            "{expected}"
        );
    }
}
