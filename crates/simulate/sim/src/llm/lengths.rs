//! How many tokens prompts and answers have.

use std::path::{Path, PathBuf};

use sweetspot_stats::Seed;

/// How many tokens the prompts and the answers of requests have.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenLengths {
    /// Log-normal random lengths.
    Random {
        /// The median number of tokens of a prompt.
        prompt: f64,
        /// The median number of tokens of an answer.
        output: f64,
        /// How much lengths differ: the standard deviation of their logarithm.
        spread: f64,
    },
    /// The lengths of a file, in order and again from its start: tokens of the prompt and of the answer.
    Listed(Vec<(u64, u64)>),
}

/// Why lengths cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthError {
    /// The text is neither numbers nor a file.
    #[error(
        "invalid lengths `{0}`: give the median tokens of prompt and answer and their spread, such as 300,200,0.6, or file:FILE"
    )]
    Invalid(String),
    /// The file cannot be read.
    #[error("cannot read the lengths in {}: {problem}", file.display())]
    File {
        /// The path of the file.
        file: PathBuf,
        /// What happened.
        problem: String,
    },
    /// A line of the file is not two numbers of tokens.
    #[error(
        "{} line {line}: `{text}` is not two lengths: give the tokens of the prompt and of the answer, such as 300,200, each from 1 to {MAX_TOKENS}",
        file.display()
    )]
    Line {
        /// The path of the file.
        file: PathBuf,
        /// The number of the line, counted from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// The file lists no lengths.
    #[error("{} lists no lengths: give the tokens of prompt and answer, such as 300,200, one request on each line", .0.display())]
    Empty(PathBuf),
}

/// The longest prompt and the longest answer, in tokens.
const MAX_TOKENS: u64 = 8192;
/// The largest spread of random lengths.
const MAX_SPREAD: f64 = 3.0;
/// The maximum size of a file with lengths, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

impl Default for TokenLengths {
    /// Those of a chat.
    fn default() -> Self {
        Self::Random {
            prompt: 300.0,
            output: 200.0,
            spread: 0.6,
        }
    }
}

impl TokenLengths {
    /// The tokens of the prompt and of the answer of a request; `seed` determines random lengths.
    pub fn of_request(&self, seed: Seed, id: u64) -> (u64, u64) {
        match self {
            Self::Random {
                prompt,
                output,
                spread,
            } => {
                let length = |median: f64, label: &str| {
                    let normal = seed.label(label).number(id).normal();
                    (median * (spread * normal).exp()).clamp(1.0, MAX_TOKENS as f64) as u64
                };
                (length(*prompt, "prompt"), length(*output, "output"))
            }
            Self::Listed(lengths) => {
                let at = id % (lengths.len() as u64).max(1);
                lengths.get(at as usize).copied().unwrap_or((1, 1))
            }
        }
    }
}

impl std::str::FromStr for TokenLengths {
    type Err = LengthError;

    fn from_str(text: &str) -> Result<Self, LengthError> {
        if let Some(file) = text.strip_prefix("file:") {
            return read(Path::new(file)).map(Self::Listed);
        }
        let number = |text: &&str| text.trim().parse::<f64>().ok();
        let numbers: Option<Vec<f64>> = text
            .split(',')
            .collect::<Vec<_>>()
            .iter()
            .map(number)
            .collect();
        let (prompt, output, spread) = match numbers.as_deref() {
            Some([prompt, output]) => (*prompt, *output, 0.0),
            Some([prompt, output, spread]) => (*prompt, *output, *spread),
            _ => return Err(LengthError::Invalid(text.to_owned())),
        };
        let is_length = |tokens: f64| (1.0..=MAX_TOKENS as f64).contains(&tokens);
        if !is_length(prompt) || !is_length(output) || !(0.0..=MAX_SPREAD).contains(&spread) {
            return Err(LengthError::Invalid(text.to_owned()));
        }
        Ok(Self::Random {
            prompt,
            output,
            spread,
        })
    }
}

/// Reads a file with the tokens of prompt and answer of a request on each line.
fn read(file: &Path) -> Result<Vec<(u64, u64)>, LengthError> {
    let text = sweetspot_input::read_text(file, MAX_FILE_BYTES);
    let text = text.map_err(|problem| LengthError::File {
        file: file.to_owned(),
        problem: problem.to_string(),
    })?;
    let mut lengths = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let tokens = |text: &str| {
            let tokens = text.trim().parse::<u64>().ok();
            tokens.filter(|tokens| (1..=MAX_TOKENS).contains(tokens))
        };
        let pair = line
            .split_once(',')
            .or_else(|| line.split_once(char::is_whitespace));
        match pair.and_then(|(prompt, output)| Some((tokens(prompt)?, tokens(output)?))) {
            Some(pair) => lengths.push(pair),
            None => {
                return Err(LengthError::Line {
                    file: file.to_owned(),
                    line: index + 1,
                    text: line.chars().take(40).collect(),
                });
            }
        }
    }
    if lengths.is_empty() {
        return Err(LengthError::Empty(file.to_owned()));
    }
    Ok(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_random_or_those_of_a_file() {
        let seed = Seed::new(3);
        let random: TokenLengths = "300,200,0.6".parse().unwrap();
        assert_eq!(random, TokenLengths::default());
        let mut prompts: Vec<u64> = (0..999).map(|id| random.of_request(seed, id).0).collect();
        prompts.sort_unstable();
        assert!((250..350).contains(&prompts[499]), "{}", prompts[499]);
        assert!(prompts[99] < 200 && prompts[899] > 500);
        let same: TokenLengths = "300,200".parse().unwrap();
        assert!((0..9).all(|id| same.of_request(seed, id) == (300, 200)));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lengths");
        let parse = || format!("file:{}", file.display()).parse::<TokenLengths>();
        std::fs::write(&file, "# prompt, answer\n10,20\n\n30 40\n").unwrap();
        let listed = parse().unwrap();
        let given: Vec<_> = (0..3).map(|id| listed.of_request(seed, id)).collect();
        assert_eq!(given, [(10, 20), (30, 40), (10, 20)]);
        for (text, why) in [
            ("10,20\n0,5\n", "line 2: `0,5` is not two lengths"),
            ("10\n", "line 1: `10` is not two lengths"),
            ("# none\n", "lists no lengths"),
        ] {
            std::fs::write(&file, text).unwrap();
            let problem = parse().unwrap_err().to_string();
            assert!(problem.contains(why), "{problem}");
        }
        for bad in [
            "",
            "300",
            "300,0",
            "300,200,9",
            "a,b",
            "1,2,3,4",
            "nan,5",
            "file:/nowhere",
        ] {
            assert!(bad.parse::<TokenLengths>().is_err(), "{bad}");
        }
    }
}
