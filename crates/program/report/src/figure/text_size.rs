//! How wide texts are. PDF files use Helvetica, whose widths are known; the fonts of browsers are somewhat wider.

use super::shape::TextRole;

/// How much wider than Helvetica a font of a browser may be.
const BROWSER_FONT_FACTOR: f64 = 1.16;

/// The widths of the printable ASCII characters in Helvetica, in thousandths of the font size (Adobe's font metrics).
const REGULAR: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// The widths of the printable ASCII characters in Helvetica-Bold.
const BOLD: [u16; 95] = [
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667,
    611, 778, 722, 278, 556, 722, 611, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556,
    278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584,
];

/// The width of a character in Helvetica, as a fraction of the font size.
fn letter_width(letter: char, is_bold: bool) -> f64 {
    let widths = if is_bold { &BOLD } else { &REGULAR };
    let place = (letter as usize).checked_sub(0x20);
    let known = place.and_then(|place| widths.get(place));
    let width = match (known, letter) {
        (Some(width), _) => *width,
        (None, '\u{2212}' | '±' | '×' | '÷' | '≤' | '≥') => 584,
        (None, '\u{202f}' | '\u{a0}' | '\u{2009}') => 278,
        (None, '°' | '·' | '²' | '³') => 400,
        (None, '\u{c0}'..='\u{24f}') => 667,
        (None, _) => 1000,
    };
    f64::from(width) / 1000.0
}

/// The width of a text in pixels, with room for fonts that are wider than Helvetica.
pub fn text_width(text: &str, role: TextRole) -> f64 {
    BROWSER_FONT_FACTOR * helvetica_width(text, role.is_bold()) * role.size()
}

/// The width of a text in Helvetica, as a multiple of the font size.
pub fn helvetica_width(text: &str, is_bold: bool) -> f64 {
    text.chars()
        .map(|letter| letter_width(letter, is_bold))
        .sum()
}

/// Cuts a text that has too many characters, with an ellipsis.
pub fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most.max(1) {
        true => text.chars().take(most.max(1) - 1).collect::<String>() + "…",
        false => text.to_owned(),
    }
}

/// Cuts a text that is too wide, with an ellipsis; it is empty if there is no room for a letter.
pub fn fitted(text: &str, role: TextRole, room: f64) -> String {
    if text_width(text, role) <= room {
        return text.to_owned();
    }
    let most = text.chars().count();
    let shorter = (2..most).rev().map(|letters| shortened(text, letters));
    let mut fitting = shorter.filter(|text| text_width(text, role) <= room);
    fitting.next().unwrap_or_default()
}

/// Breaks a text into lines between words; a word that is too wide for a line is cut.
pub fn wrapped(text: &str, role: TextRole, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut() {
            let longer = format!("{line} {word}");
            if text_width(&longer, role) <= room {
                *line = longer;
                continue;
            }
        }
        lines.push(fitted(word, role, room));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_helvetica() {
        assert!((helvetica_width("Energy", false) - 3.168).abs() < 1e-9);
        assert!((helvetica_width("EDP", true) - 2.056).abs() < 1e-9);
    }

    #[test]
    fn long_texts_are_cut_or_wrapped() {
        let role = TextRole::Tick;
        for room in [0.0, 5.0, 20.0, 60.0, 200.0] {
            let cut = fitted("a rather long name of a setting", role, room);
            assert!(text_width(&cut, role) <= room, "{cut}");
            for line in wrapped("batch 64, memory clock 5800 MHz", role, room) {
                assert!(text_width(&line, role) <= room, "{line}");
            }
        }
        assert_eq!(
            wrapped("batch 64, memory clock 5800 MHz", role, 120.0).join(" "),
            "batch 64, memory clock 5800 MHz"
        );
    }
}
