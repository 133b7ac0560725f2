//! The status line never mixes with the output of the user's command.

use crate::host::TestHost;
use crate::pseudo_terminal::{Shown, run_on_terminal};

/// The lines that a terminal shows at the end, after carriage returns and erasures.
fn lines_of_terminal(written: &str) -> Vec<String> {
    let mut lines = vec![Vec::new()];
    let (mut column, mut letters) = (0, written.chars().peekable());
    while let Some(letter) = letters.next() {
        let line: &mut Vec<char> = lines.last_mut().unwrap();
        match letter {
            '\n' => {
                lines.push(Vec::new());
                column = 0;
            }
            '\r' => column = 0,
            '\u{1b}' => {
                let code: String = letters
                    .by_ref()
                    .skip(1)
                    .take_while(|letter| *letter != 'K')
                    .collect();
                assert_eq!(code, "", "only `erase to the end of the line` is expected");
                line.truncate(column);
            }
            letter => {
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                column += 1;
            }
        }
    }
    lines.into_iter().map(String::from_iter).collect()
}

/// A program that prints numbered lines, and one in two pieces, while the status line is shown.
const PRINTING: &str = "for n in 1 2 3 4 5 6; do echo line $n; sleep 0.3; done; printf 'begun '; sleep 0.7; echo and ended; echo error line >&2; sleep 0.3; printf last";

#[test]
fn status_line_and_output_stay_apart() {
    let host = TestHost::new("v100");
    for line in [
        "measure --",
        "measure --progress none --",
        "run --measure --power-cap 200W --",
    ] {
        let mut command = host.sweetspot();
        command
            .args(line.split(' '))
            .args(["sh", "-c", PRINTING])
            .env("NO_COLOR", "1")
            .env("TERM", "xterm");
        let (written, status) = run_on_terminal(command, 80, Shown::OutputAndErrors);
        assert!(status.success(), "{written}");
        assert!(written.contains(" s  "), "no status was shown: {written:?}");
        let lines = lines_of_terminal(&written);
        let mut expected: Vec<String> = (1..=6).map(|number| format!("line {number}")).collect();
        expected.extend(["begun and ended", "error line", "last"].map(str::to_owned));
        let found: Vec<&String> = lines
            .iter()
            .filter(|line| expected.contains(line))
            .collect();
        assert_eq!(
            found,
            expected.iter().collect::<Vec<_>>(),
            "{line}: {lines:#?}"
        );
    }
}
