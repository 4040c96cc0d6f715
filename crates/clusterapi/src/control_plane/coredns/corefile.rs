//! Corefiles: the part of the syntax that a migration needs.
//!
//! A Corefile is read line by line. A block begins with the word `{` at the end of a line and ends with a line of the
//! word `}`. Lines outside of blocks name servers and snippets, lines in their blocks plugins, and lines in the
//! blocks of plugins options. Everything but removed lines stays as written, comments included.

/// Reason why a text is not a Corefile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotACorefile {
    /// A block ends without a start.
    #[error("line {0}: `}}` ends no block")]
    Closed(usize),
    /// A brace among other words.
    #[error(
        "line {0}: a brace must be the last word of a line that begins a block, or the only word of the one that ends it"
    )]
    Brace(usize),
    /// A block without an end.
    #[error("line {0}: the block does not end")]
    Open(usize),
    /// A quoted word without an end.
    #[error("line {0}: the quote does not end")]
    Quote(usize),
}

/// A Corefile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Corefile {
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    text: String,
    /// Words, without comments and braces.
    words: Vec<String>,
    /// Number of enclosing blocks.
    depth: usize,
    /// True if the line begins a block.
    opens: bool,
    /// True if the line ends a block.
    closes: bool,
}

impl Corefile {
    /// Reads a Corefile.
    pub(super) fn read(text: &str) -> Result<Self, NotACorefile> {
        let (mut lines, mut open, mut quote) = (Vec::new(), Vec::new(), None);
        for (at, text) in text.lines().enumerate() {
            let number = at + 1;
            let continued = quote.is_some();
            let mut words = words(text, &mut quote, number);
            let mut line = Line {
                text: text.to_owned(),
                words: Vec::new(),
                depth: open.len(),
                opens: false,
                closes: false,
            };
            if !continued {
                line.closes = words == ["}"];
                line.opens = words.last().is_some_and(|word| word == "{");
                if line.closes || line.opens {
                    words.pop();
                }
                if words.iter().any(|word| word == "{" || word == "}") {
                    return Err(NotACorefile::Brace(number));
                }
                line.words = words;
            }
            if line.closes {
                open.pop().ok_or(NotACorefile::Closed(number))?;
                line.depth = open.len();
            }
            if line.opens {
                open.push(number);
            }
            lines.push(line);
        }
        match (open.last(), quote) {
            (_, Some(number)) => Err(NotACorefile::Quote(number)),
            (Some(number), None) => Err(NotACorefile::Open(*number)),
            (None, None) => Ok(Self { lines }),
        }
    }

    /// Lines of a plugin, or of an option of a plugin, by their numbers from 0.
    pub(super) fn find(&self, plugin: &str, option: Option<&str>) -> Vec<usize> {
        let mut within = false;
        let mut found = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let first = line.words.first().map(String::as_str);
            match (line.depth, option) {
                (1, _) if first.is_some() => {
                    within = first == Some(plugin);
                    if within && option.is_none() {
                        found.push(at);
                    }
                }
                (2, Some(option)) if within && first == Some(option) => found.push(at),
                _ => {}
            }
        }
        found
    }

    /// Removes a line with its block.
    pub(super) fn remove(&mut self, at: usize) {
        let Some(line) = self.lines.get(at) else {
            return;
        };
        let depth = line.depth;
        let last = match line.opens {
            true => (at + 1..self.lines.len())
                .find(|it| self.lines[*it].closes && self.lines[*it].depth == depth),
            false => Some(at),
        };
        self.lines.drain(at..=last.unwrap_or(at));
    }
}

impl std::fmt::Display for Corefile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lines
            .iter()
            .try_for_each(|line| writeln!(f, "{}", line.text))
    }
}

/// Words of a line up to a comment. `quote` is the line number of an open quote.
fn words(line: &str, quote: &mut Option<usize>, number: usize) -> Vec<String> {
    let (mut words, mut word, mut escaped) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        if quote.is_some() {
            match c {
                '"' if !escaped => *quote = None,
                _ => word.get_or_insert_default().push(c),
            }
            escaped = c == '\\' && !escaped;
        } else if c.is_whitespace() {
            words.extend(word.take());
        } else if c == '#' && word.is_none() {
            break;
        } else if c == '"' && word.is_none() {
            *quote = Some(number);
            // An empty word, too, is a word. Braces in quotes do not begin blocks.
            word = Some("\"".to_owned());
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
pub(super) mod tests;
