//! The command that the user typed, and forms of it to type next.

use std::ffi::OsString;

/// The command of this process with more flags, which go before the user's own command.
pub fn typed_with(flags: &str) -> String {
    typed_with_flags(std::env::args_os().skip(1).collect(), flags)
}

/// The command `sweetspot WORDS` with more flags.
fn typed_with_flags(words: Vec<OsString>, flags: &str) -> String {
    let end = words.iter().position(|word| word == "--");
    let (own, rest) = words.split_at(end.unwrap_or(words.len()));
    let quoted = |words: &[OsString]| {
        let words = words.iter().map(|word| shell_word(&word.to_string_lossy()));
        words.collect::<Vec<_>>()
    };
    let mut all = vec!["sweetspot".to_owned()];
    all.extend(quoted(own));
    all.push(flags.to_owned());
    all.extend(quoted(rest));
    all.join(" ")
}

/// A command as it is typed in a shell, in full: it must be possible to copy it.
pub fn shell_line(command: &[String]) -> String {
    let words = command.iter().map(|word| shell_word(word));
    words.collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it.
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-+=:,./@%^".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_added_before_the_users_command() {
        let typed = |line: &[&str], flags: &str| {
            typed_with_flags(line.iter().map(OsString::from).collect(), flags)
        };
        assert_eq!(
            typed(
                &["run", "--power-cap", "200W", "--", "sh", "-c", "a b"],
                "--measure"
            ),
            "sweetspot run --power-cap 200W --measure -- sh -c 'a b'"
        );
        assert_eq!(
            typed(&["fit", "my study"], "--output profile.toml"),
            "sweetspot fit 'my study' --output profile.toml"
        );
    }
}
