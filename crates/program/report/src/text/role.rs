//! What a piece of text means, which decides its colour.

use anstyle::{AnsiColor, Style};

/// What a piece of text means. Colours only repeat what the words say, because not everyone sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Most text.
    #[default]
    Plain,
    /// A heading, or the word that introduces a result.
    Heading,
    /// The recommended setting, or a saving.
    Good,
    /// A loss, or something to be careful about.
    Warning,
    /// A failure.
    Bad,
    /// Text that few readers need, such as lines of a table.
    Secondary,
}

impl Role {
    /// The style of the role on a terminal.
    pub const fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Heading => Style::new().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Secondary => Style::new().dimmed(),
        }
    }
}

/// The role of a relative change of time or energy, such as `-24.0`: less is good. A change in brackets is not
/// significant, and one without a sign is none.
pub fn change_role(cell: &str) -> Role {
    let signed = cell.starts_with(['-', '+']);
    match cell.parse::<f64>() {
        Ok(change) if signed && change < 0.0 => Role::Good,
        Ok(change) if signed && change > 0.0 => Role::Warning,
        _ => Role::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_roles() {
        assert_eq!(change_role("-24.0"), Role::Good);
        assert_eq!(change_role("+14.4"), Role::Warning);
        for neither in ["-", "0.0", "+0.0", "-0.0", "(+1.0)", ""] {
            assert_eq!(change_role(neither), Role::Plain);
        }
    }
}
