//! Parses lines into nested statements.

use super::LineError;

/// A line and the lines indented under it.
#[derive(Debug, Default)]
pub struct Statement {
    pub line: usize,
    pub words: Vec<String>,
    pub children: Vec<Statement>,
}

impl Statement {
    /// Checks that only definitions, branches and repetitions have indented lines.
    pub fn check(&self) -> Result<(), String> {
        let word = self.words.first().map_or("", String::as_str);
        let holds = matches!(word, "def" | "branch") || word == "repeat" && self.words.len() == 2;
        match holds || self.children.is_empty() {
            true => Ok(()),
            false => Err(format!("`{word}` cannot have indented lines")),
        }
    }
}

/// The maximum depth of nested indentation.
const MAX_DEPTH: usize = 16;

/// Parses the text. Everything after `#` is a comment; blank lines are ignored.
pub fn tree(text: &str) -> Result<Vec<Statement>, LineError> {
    // The open statements, each with the indentation of its children once it is known.
    let mut open: Vec<(Option<usize>, Statement)> = vec![(Some(0), Statement::default())];
    for (index, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default().trim_end();
        let indent = content.len() - content.trim_start().len();
        if content.trim().is_empty() {
            continue;
        }
        let fault = |problem: &str| Err((index + 1, problem.to_owned()));
        if content[..indent].contains('\t') {
            return fault("indent with spaces, not with tabs");
        }
        while open.len() > 1 && open[open.len() - 1].0.is_some_and(|own| indent < own)
            || open.len() > 1
                && open[open.len() - 1].0.is_none()
                && indent <= innermost_indentation(&open)
        {
            close(&mut open);
        }
        let last = open.len() - 1;
        match open[last].0 {
            Some(own) if own != indent => return fault("the indentation matches no line above"),
            None => open[last].0 = Some(indent),
            Some(_) => {}
        }
        if open.len() > MAX_DEPTH {
            return fault("the lines are nested too deep");
        }
        let words = content.split_whitespace().map(str::to_owned).collect();
        open.push((
            None,
            Statement {
                line: index + 1,
                words,
                children: Vec::new(),
            },
        ));
    }
    while open.len() > 1 {
        close(&mut open);
    }
    Ok(open
        .pop()
        .map(|(_, root)| root.children)
        .unwrap_or_default())
}

/// The indentation of the innermost open statement.
fn innermost_indentation(open: &[(Option<usize>, Statement)]) -> usize {
    let parent = open.len().checked_sub(2).and_then(|parent| open[parent].0);
    parent.unwrap_or(0)
}

/// Ends the innermost open statement and adds it to the one around it.
fn close(open: &mut Vec<(Option<usize>, Statement)>) {
    if let Some((_, done)) = open.pop()
        && let Some((_, parent)) = open.last_mut()
    {
        parent.children.push(done);
    }
}
