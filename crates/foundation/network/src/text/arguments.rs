//! The words after an operation: positional values, `key=value` pairs and flags.

/// The arguments of an operation, taken one by one. Arguments that remain are an error.
pub struct Arguments<'a> {
    operation: &'a str,
    plain: Vec<&'a str>,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Arguments<'a> {
    /// Sorts the words after an operation into positional values, options and flags.
    pub fn new(words: &'a [String]) -> Self {
        let (operation, rest) = words
            .split_first()
            .map_or(("", words), |(first, rest)| (first, rest));
        let (pairs, plain): (Vec<_>, Vec<_>) = rest.iter().partition(|word| word.contains('='));
        Self {
            operation,
            plain: plain.into_iter().map(String::as_str).collect(),
            pairs: pairs
                .iter()
                .filter_map(|word| word.split_once('='))
                .collect(),
        }
    }

    /// Takes the next positional argument; `what` describes it in the error if it is missing.
    pub fn next(&mut self, what: &str) -> Result<&'a str, String> {
        if self.plain.is_empty() {
            return Err(format!("`{}` needs {what}", self.operation));
        }
        Ok(self.plain.remove(0))
    }

    /// Whether there is another positional argument.
    pub fn has_next(&self) -> bool {
        !self.plain.is_empty()
    }

    /// Takes the next positional argument as a whole number.
    pub fn number(&mut self, what: &str) -> Result<u64, String> {
        number(self.next(what)?)
    }

    /// Takes the value of `key=value`; `None` if it is absent.
    pub fn option(&mut self, key: &str) -> Option<&'a str> {
        let index = self.pairs.iter().position(|(known, _)| *known == key)?;
        Some(self.pairs.remove(index).1)
    }

    /// Takes the value of `key=value` as a whole number, or `otherwise` if it is absent.
    pub fn number_option(&mut self, key: &str, otherwise: u64) -> Result<u64, String> {
        self.option(key).map_or(Ok(otherwise), number)
    }

    /// Takes a flag, and returns whether it was present.
    pub fn flag(&mut self, name: &str) -> bool {
        let index = self.plain.iter().position(|word| *word == name);
        index.map(|index| self.plain.remove(index)).is_some()
    }

    /// Checks that every argument was taken.
    pub fn finish(self) -> Result<(), String> {
        let left = self.plain.first().copied();
        match left.or(self.pairs.first().map(|(key, _)| *key)) {
            Some(word) => Err(format!("`{}` does not take `{word}`", self.operation)),
            None => Ok(()),
        }
    }
}

/// Parses a whole number within the supported range.
pub fn number(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number <= 1 << 31);
    number.ok_or_else(|| format!("`{text}` is not a whole number"))
}

/// Parses one size per axis, such as `3x3`; a single number applies to every axis.
pub fn sizes(text: &str, axes: usize) -> Result<Vec<u64>, String> {
    let numbers: Vec<u64> = text.split('x').map(number).collect::<Result<_, _>>()?;
    match numbers.as_slice() {
        [one] => Ok(vec![*one; axes]),
        _ if numbers.len() == axes => Ok(numbers),
        _ => Err(format!(
            "`{text}` does not have one size for each of {axes} axes"
        )),
    }
}
