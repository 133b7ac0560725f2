//! The headers of the meter's commands, in their long and short forms.

/// A command of the meter, recognised by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    ClearStatus,
    Identify,
    Reset,
    OperationComplete,
    EventStatus,
    StatusByte,
    WaitToContinue,
    QueryMessages,
    Error,
    Filter(u32),
    ExtendedEvents,
    Condition,
    NamedAnswers,
    Verbose,
    Wait,
    Remote,
    CommandSet,
    Format,
    ItemCount,
    Item(u32),
    Values,
    SampleRate,
    VoltageRange,
    VoltageAuto,
    CurrentRange,
    CurrentAuto,
    IntegrationMode,
    IntegrationTimer,
    IntegrationStart,
    IntegrationStop,
    IntegrationReset,
    IntegrationState,
}

/// The headers in their long form, with the letters of the short form in capitals. `#` stands for a number.
const HEADERS: [(&str, Header); 36] = [
    ("*CLS", Header::ClearStatus),
    ("*IDN", Header::Identify),
    ("*RST", Header::Reset),
    ("*OPC", Header::OperationComplete),
    ("*ESR", Header::EventStatus),
    ("*STB", Header::StatusByte),
    ("*WAI", Header::WaitToContinue),
    ("STATus:QMESsage", Header::QueryMessages),
    ("STATus:ERRor", Header::Error),
    ("STATus:FILTer#", Header::Filter(0)),
    ("STATus:EESR", Header::ExtendedEvents),
    ("STATus:CONDition", Header::Condition),
    ("COMMunicate:HEADer", Header::NamedAnswers),
    ("COMMunicate:VERBose", Header::Verbose),
    ("COMMunicate:WAIT", Header::Wait),
    ("COMMunicate:REMote", Header::Remote),
    ("SYSTem:COMMunicate:COMMand", Header::CommandSet),
    ("NUMeric:FORMat", Header::Format),
    ("NUMeric:NORMal:NUMber", Header::ItemCount),
    ("NUMeric:NORMal:ITEM#", Header::Item(0)),
    ("NUMeric:NORMal:VALue", Header::Values),
    ("NUMeric:NUMber", Header::ItemCount),
    ("NUMeric:ITEM#", Header::Item(0)),
    ("NUMeric:VALue", Header::Values),
    ("SAMPle:RATE", Header::SampleRate),
    ("RATE", Header::SampleRate),
    ("INPut:VOLTage:RANGe", Header::VoltageRange),
    ("INPut:VOLTage:AUTO", Header::VoltageAuto),
    ("INPut:CURRent:RANGe", Header::CurrentRange),
    ("INPut:CURRent:AUTO", Header::CurrentAuto),
    ("INTEGrate:MODE", Header::IntegrationMode),
    ("INTEGrate:TIMer#", Header::IntegrationTimer),
    ("INTEGrate:STARt", Header::IntegrationStart),
    ("INTEGrate:STOP", Header::IntegrationStop),
    ("INTEGrate:RESet", Header::IntegrationReset),
    ("INTEGrate:STATe", Header::IntegrationState),
];

/// The header that a text names, and its long form in capitals; `None` if there is no such command.
pub(super) fn find(text: &str) -> Option<(Header, String)> {
    let text = text.strip_prefix(':').unwrap_or(text).to_ascii_uppercase();
    HEADERS.iter().find_map(|(pattern, header)| {
        let number = matches(pattern, &text)?;
        let header = match header {
            Header::Filter(_) => Header::Filter(number?),
            Header::Item(_) => Header::Item(number?),
            other => *other,
        };
        let long = pattern.to_ascii_uppercase();
        let number = number.map_or(String::new(), |number| number.to_string());
        Some((header, long.replace('#', &number)))
    })
}

/// Whether a text in capitals is a form of the pattern, and the number in it, if it has one.
fn matches(pattern: &str, text: &str) -> Option<Option<u32>> {
    let (mut patterns, mut words) = (pattern.split(':'), text.split(':'));
    let mut number = None;
    loop {
        match (patterns.next(), words.next()) {
            (None, None) => return Some(number),
            (Some(pattern), Some(word)) => match pattern.strip_suffix('#') {
                Some(pattern) => {
                    let digits = word.trim_start_matches(|c: char| !c.is_ascii_digit());
                    let name = &word[..word.len() - digits.len()];
                    if !is_form(pattern, name) {
                        return None;
                    }
                    if !digits.is_empty() {
                        number = Some(digits.parse().ok()?);
                    }
                }
                None if is_form(pattern, word) => {}
                None => return None,
            },
            _ => return None,
        }
    }
}

/// Whether a word is the long or the short form of a pattern. A word between the two is neither.
fn is_form(pattern: &str, word: &str) -> bool {
    let short = pattern.trim_end_matches(|c: char| c.is_ascii_lowercase());
    word == short || word == pattern.to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_short_forms_are_found() {
        let header = |text| find(text).map(|found| found.0);
        assert_eq!(header(":STAT:ERR"), Some(Header::Error));
        assert_eq!(header(":status:error"), Some(Header::Error));
        assert_eq!(header(":STATU:ERR"), None);
        assert_eq!(header(":STAT:FILT1"), Some(Header::Filter(1)));
        assert_eq!(header(":STAT:FILT"), None);
        assert_eq!(header(":NUM:NORM:ITEM10"), Some(Header::Item(10)));
        assert_eq!(header(":NUMERIC:ITEM2"), Some(Header::Item(2)));
        assert_eq!(header(":INTEG:TIM1"), Some(Header::IntegrationTimer));
        assert_eq!(header(":INTEGRATE:TIMER"), Some(Header::IntegrationTimer));
        assert_eq!(header("*IDN"), Some(Header::Identify));
        assert_eq!(header(":NUM:NORM"), None);
        assert_eq!(header(""), None);
        let long = find(":NUM:NORM:ITEM3").unwrap().1;
        assert_eq!(long, "NUMERIC:NORMAL:ITEM3");
    }
}
