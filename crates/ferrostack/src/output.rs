//! Standard output and standard error: the one way to a user's eyes. Nothing else in the program writes to them.
//!
//! Output contains the words of clouds, nodes, containers and other tenants. A terminal obeys the escape
//! sequences in them, and a line break begins a line that looks like one of ours. So letters that a terminal would interpret are
//! escaped here whatever its source, and of what is told in sentences only the first line begins at the margin. Tables
//! and pictures escape line breaks in their cells, too ([`cells`]).
//!
//! Documents for programs are printed as they are, unless a terminal is to display them.

pub(crate) mod file;
mod log;
pub(crate) mod pager;
mod screen;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use api::printable::{self, is_hidden};
use serde::Serialize;

pub(crate) use self::log::Log;
pub(crate) use self::screen::Screen;

/// Colors, and their end: the only escape sequences that texts contain.
pub(crate) const RED: &str = "\x1b[31m";
pub(crate) const GREEN: &str = "\x1b[32m";
pub(crate) const YELLOW: &str = "\x1b[33m";
pub(crate) const RESET: &str = "\x1b[0m";

/// The beginning of a text that replaces all that the terminal shows.
pub(crate) const CLEAR: &str = "\x1b[H\x1b[2J";

/// Where something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Output,
    Errors,
}

impl Stream {
    fn write(self, bytes: &[u8]) -> io::Result<()> {
        let mut stream: Box<dyn io::Write> = match self {
            Self::Output => Box::new(io::stdout().lock()),
            Self::Errors => Box::new(io::stderr().lock()),
        };
        stream.write_all(bytes)?;
        stream.flush()
    }

    fn is_terminal(self) -> bool {
        match self {
            Self::Output => io::stdout().is_terminal(),
            Self::Errors => io::stderr().is_terminal(),
        }
    }
}

/// Prints a result for people.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    Ok(screen::beside(
        Stream::Output,
        printable::lines(text).as_bytes(),
    )?)
}

/// Prints a result for people, whose colors are kept.
pub(crate) fn print_painted(text: &str) -> anyhow::Result<()> {
    let (clear, rest) = match text.strip_prefix(CLEAR) {
        Some(rest) => (CLEAR, rest),
        None => ("", text),
    };
    let text = format!("{clear}{}", painted(rest));
    Ok(screen::beside(Stream::Output, text.as_bytes())?)
}

/// Prints a document for programs.
pub(crate) fn print_document(text: &str) -> anyhow::Result<()> {
    let displayed = match Stream::Output.is_terminal() {
        true => document(text),
        false => Cow::Borrowed(text),
    };
    Ok(screen::beside(Stream::Output, displayed.as_bytes())?)
}

/// Tells something on standard output. A closed pipe must not stop the work that the sentence reports.
pub(crate) fn say(sentence: &str) {
    let _ = try_say(sentence);
}

/// As [`say`], for output that is all that there is to do.
pub(crate) fn try_say(sentence: &str) -> io::Result<()> {
    screen::beside(Stream::Output, paragraph(sentence).as_bytes())
}

/// Tells something on standard error, because standard output is the result.
pub(crate) fn remark(sentence: &str) {
    let _ = screen::beside(Stream::Errors, paragraph(sentence).as_bytes());
}

/// Warns on standard error.
pub(crate) fn warn(sentence: &str) {
    remark(&format!("warning: {sentence}"));
}

/// Tells on standard error why the program fails.
pub(crate) fn fail(sentence: &str) {
    remark(&format!("error: {sentence}"));
}

/// Asks on standard error, because standard output may be a file. The answer is read on the last line of `question`.
pub(crate) fn ask(question: &str) -> io::Result<()> {
    screen::beside(Stream::Errors, printable::lines(question).as_bytes())
}

/// Asks as [`ask`] does, and reads a line of standard input; `None` at its end. That is
/// done in a thread of its own, which does not keep the process from ending at Ctrl-C.
pub(crate) async fn answer_to(question: String) -> anyhow::Result<Option<String>> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let read = || -> io::Result<Option<String>> {
            ask(&question)?;
            let mut line = String::new();
            let count = io::stdin().lock().read_line(&mut line)?;
            Ok((count > 0).then_some(line))
        };
        let _ = sender.send(read());
    });
    Ok(receiver.await??)
}

/// True if colors are displayed in the log.
pub(crate) fn has_colored_log() -> bool {
    Stream::Errors.is_terminal()
}

/// The value as JSON of several lines. All that a terminal would interpret is escaped as JSON does.
pub(crate) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(format!("{}\n", of_json(&text)))
}

/// The value as YAML; as JSON, which is YAML, where a terminal would interpret something that YAML does not escape.
pub(crate) fn yaml(value: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_saphyr::to_string(value)?;
    match text.contains(|letter| letter != '\n' && is_hidden(letter)) {
        true => Ok(json(value)?),
        false => Ok(text),
    }
}

/// A document as JSON of several lines, as [`json`].
pub(crate) fn json_document(document: &serde_json::Value) -> String {
    of_json(&format!("{document:#}\n")).into_owned()
}

/// The value as JSON on one line, without its end.
pub(crate) fn json_line(value: &serde_json::Value) -> String {
    of_json(&value.to_string()).into_owned()
}

/// The text of JSON, with more escaped than JSON requires. Only strings have such characters.
fn of_json(text: &str) -> Cow<'_, str> {
    let is_escaped = |letter: char| letter != '\n' && is_hidden(letter);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_escaped(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(letter);
        }
    }
    Cow::Owned(escaped)
}

/// The cells of a row of a table, each on one line.
pub(crate) fn cells<const N: usize>(row: [String; N]) -> [String; N] {
    row.map(|cell| match printable::line(&cell) {
        Cow::Borrowed(_) => cell,
        Cow::Owned(escaped) => escaped,
    })
}

/// A sentence with the end of its line. Further lines are indented, so that none of them looks like a sentence of its own.
fn paragraph(sentence: &str) -> String {
    let mut lines = String::with_capacity(sentence.len() + 1);
    for (index, line) in printable::lines(sentence).split('\n').enumerate() {
        if index > 0 {
            lines.push('\n');
            if !line.is_empty() && !line.starts_with("  ") {
                lines.push_str("  ");
            }
        }
        lines.push_str(line);
    }
    lines.push('\n');
    lines
}

/// `text` of several lines, with our colors.
fn painted(text: &str) -> String {
    let mut painted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        let (before, sequence) = rest.split_at(at);
        painted.push_str(&printable::lines(before));
        let mut colors = [RED, GREEN, YELLOW, RESET].into_iter();
        let known = colors.find(|color| sequence.starts_with(color));
        let length = match known {
            Some(color) => {
                painted.push_str(color);
                color.len()
            }
            None => {
                painted.push_str(&printable::line("\x1b"));
                1
            }
        };
        rest = sequence.get(length..).unwrap_or_default();
    }
    painted.push_str(&printable::lines(rest));
    painted
}

/// A document as a terminal displays it.
fn document(text: &str) -> Cow<'_, str> {
    if !text.contains(|letter| !matches!(letter, '\n' | '\t') && is_hidden(letter)) {
        return Cow::Borrowed(text);
    }
    let parts: Vec<Cow<'_, str>> = text.split('\t').map(printable::lines).collect();
    Cow::Owned(parts.join("\t"))
}

/// The columns that a text takes: colors take none.
pub(crate) fn width(text: &str) -> usize {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().chars().count();
    let rest = parts.map(|part| match part.split_once('m') {
        Some((_, shown)) => shown.chars().count(),
        None => part.chars().count(),
    });
    first + rest.sum::<usize>()
}

#[cfg(test)]
mod tests;
