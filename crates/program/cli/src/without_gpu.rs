//! What a user can do on a machine without an NVIDIA GPU: the typed command, on a simulated one.

use std::ffi::OsString;

use crate::typed::shell_word;

/// The commands that use GPUs, each with its form in virtual time, if it has one.
const COMMANDS: [(&str, Option<&str>); 7] = [
    (
        "sweep",
        Some("sweetspot sweep --simulate v100 --network resnet50"),
    ),
    (
        "tune",
        Some("sweetspot tune --simulate v100 --network resnet50"),
    ),
    ("run", None),
    ("hold", None),
    ("budget", None),
    ("measure", None),
    ("devices", None),
];

/// The flags that only have a meaning on real GPUs.
const FLAGS_OF_ROOT: [&str; 2] = ["--sudo", "--as-root"];

/// The commands to type in place of the one of this process; `None` if it needs a GPU of this machine.
pub fn simulated_form() -> Option<String> {
    simulated_form_of(std::env::args_os().skip(1).collect())
}

/// The commands to type in place of `sweetspot WORDS`.
fn simulated_form_of(words: Vec<OsString>) -> Option<String> {
    let own = words.iter().take_while(|word| *word != "--");
    let mut known = own.filter_map(|word| COMMANDS.iter().find(|(name, _)| word == name));
    let (name, virtual_form) = known.next()?;
    let end = words.iter().position(|word| word == "--");
    let has_command = end.is_some() || ["devices", "budget"].contains(name);
    let words = words.iter().enumerate().filter(|(index, word)| {
        let is_own = end.is_none_or(|end| *index < end);
        !(is_own && FLAGS_OF_ROOT.iter().any(|flag| word == flag))
    });
    let words = words.map(|(_, word)| shell_word(&word.to_string_lossy()));
    let words = words.collect::<Vec<_>>().join(" ");
    let on_host = format!("`sweetspot simulate --gpu v100 -- sweetspot {words}`");
    Some(match (virtual_form, has_command) {
        (Some(form), true) => format!(
            "without a GPU, try `{form}`, or your command beside a simulated GPU: {on_host}"
        ),
        (Some(form), false) => format!("without a GPU, try `{form}`"),
        (None, _) => format!("without a GPU, use a simulated one: {on_host}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(line: &[&str]) -> Option<String> {
        simulated_form_of(line.iter().map(OsString::from).collect())
    }

    #[test]
    fn the_typed_command_is_offered_on_a_simulated_gpu() {
        let run = [
            "run",
            "--sudo",
            "--power-cap",
            "200W",
            "--",
            "sh",
            "-c",
            "sudo --sudo 'a'",
        ];
        assert_eq!(
            form(&run).unwrap(),
            r"without a GPU, use a simulated one: `sweetspot simulate --gpu v100 -- sweetspot run --power-cap 200W -- sh -c 'sudo --sudo '\''a'\'''`"
        );
        assert_eq!(
            form(&["--log", "info", "devices"]).unwrap(),
            "without a GPU, use a simulated one: `sweetspot simulate --gpu v100 -- sweetspot --log info devices`"
        );
        assert_eq!(
            form(&["tune", "--", "python", "train.py"]).unwrap(),
            "without a GPU, try `sweetspot tune --simulate v100 --network resnet50`, or your command beside a simulated GPU: `sweetspot simulate --gpu v100 -- sweetspot tune -- python train.py`"
        );
        assert_eq!(
            form(&["sweep", "--resume", "mine"]).unwrap(),
            "without a GPU, try `sweetspot sweep --simulate v100 --network resnet50`"
        );
        assert_eq!(form(&["restore"]), None);
    }
}
