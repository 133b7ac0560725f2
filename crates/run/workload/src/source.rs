//! Where the progress of a command is found in its output.

use std::str::FromStr;

use crate::pattern::{InvalidPattern, ProgressPattern};
use crate::recognition::Format;

/// Where the progress of a command is found in its output, if it does not report items over its shared-memory link.
#[derive(Clone, Debug, Default)]
pub enum ProgressSource {
    /// The output is not searched.
    #[default]
    Off,
    /// The format of progress is recognised.
    Automatic,
    /// Progress is printed in this format.
    Format(Format),
    /// A pattern finds progress.
    Pattern(ProgressPattern),
}

impl FromStr for ProgressSource {
    type Err = InvalidPattern;

    /// Parses `auto`, `none`, the name of a format, or a regular expression.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match (text, Format::by_name(text)) {
            ("auto", _) => Self::Automatic,
            ("none", _) => Self::Off,
            (_, Some(format)) => Self::Format(format),
            (_, None) => Self::Pattern(text.parse()?),
        })
    }
}

impl ProgressSource {
    /// Whether progress is recognised by its format.
    pub(crate) fn is_recognised(&self) -> bool {
        matches!(self, Self::Automatic | Self::Format(_))
    }

    /// Whether the output is searched at all.
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_format_and_anything_else_a_pattern() {
        let parse = |text: &str| text.parse::<ProgressSource>().unwrap();
        assert!(matches!(parse("auto"), ProgressSource::Automatic));
        assert!(matches!(parse("none"), ProgressSource::Off));
        assert!(matches!(
            parse("keras"),
            ProgressSource::Format(Format::Keras)
        ));
        assert!(matches!(parse(r"step (\d+)"), ProgressSource::Pattern(_)));
        assert!("(".parse::<ProgressSource>().is_err());
    }
}
