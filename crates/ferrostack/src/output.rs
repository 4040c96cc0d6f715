//! Standard output and standard error: the only way to a user's eyes. No other module writes there.
//!
//! Output contains the words of clouds, nodes, containers and other tenants. A terminal obeys escape sequences in such
//! words, and a line break begins a line like one of this program. So letters interpreted by a terminal are escaped
//! here for any source, by functions of [`terminal`], and of each sentence only the first line begins at the margin.
//! Tables and pictures escape line breaks in their cells, too ([`terminal::cells`]).
//!
//! Documents for programs are printed unchanged, unless displayed on a terminal.

pub(crate) mod file;
mod log;
pub(crate) mod pager;
mod screen;

use std::borrow::Cow;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use api::printable;
use terminal::{CLEAR, Colors, Layout, displayed, painted, paragraph};

pub(crate) use self::log::Log;
pub(crate) use self::screen::Screen;
use crate::environment::Environment;

/// Destination of output.
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

/// Prints a result for people, and keeps its colors.
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
        true => displayed(text),
        false => Cow::Borrowed(text),
    };
    Ok(screen::beside(Stream::Output, displayed.as_bytes())?)
}

/// Prints a sentence on standard output. A closed pipe must not stop the work behind the sentence.
pub(crate) fn say(sentence: &str) {
    let _ = try_say(sentence);
}

/// As [`say`], for output that is the only work.
pub(crate) fn try_say(sentence: &str) -> io::Result<()> {
    screen::beside(Stream::Output, paragraph(sentence).as_bytes())
}

/// Prints a sentence on standard error, because standard output is the result.
pub(crate) fn remark(sentence: &str) {
    let _ = screen::beside(Stream::Errors, paragraph(sentence).as_bytes());
}

/// Warns on standard error.
pub(crate) fn warn(sentence: &str) {
    remark(&format!("warning: {sentence}"));
}

/// Prints the error of the program on standard error.
pub(crate) fn fail(sentence: &str) {
    remark(&format!("error: {sentence}"));
}

/// Asks on standard error, because standard output may be a file. The answer follows on the last line of `question`.
pub(crate) fn ask(question: &str) -> io::Result<()> {
    screen::beside(Stream::Errors, printable::lines(question).as_bytes())
}

/// Asks as [`ask`] does, and reads a line of standard input; `None` at the end. A separate thread reads, so the process
/// still ends at Ctrl-C.
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

/// [`Layout`] of tables for the terminal of the output, if any.
pub(crate) fn layout(environment: &Environment) -> Layout {
    let columns = environment.columns();
    columns.map_or(Layout::Full, Layout::Terminal)
}

/// A table in a layout. A terminal that is too narrow does without the `expendable` columns, in this order.
pub(crate) fn table<const N: usize>(
    rows: &[[String; N]],
    layout: Layout,
    expendable: &[usize],
) -> String {
    match layout {
        Layout::Terminal(width) => terminal::fit(rows, width, expendable),
        Layout::Full | Layout::Wide => terminal::align(rows),
    }
}

/// [`Colors`] for a terminal, unless the variable NO_COLOR is set.
pub(crate) fn colors(environment: &Environment) -> Colors {
    match environment.terminal && environment.non_empty("NO_COLOR").is_none() {
        true => Colors::On,
        false => Colors::Off,
    }
}

/// Hostile text, as a cloud, a node or a container may send.
#[cfg(test)]
pub(crate) const CANARY: &str = "a\u{1b}[2Jb\rc\nALL CLUSTERS READY\u{202e}d";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_has_colors_and_no_color_turns_them_off() {
        let mut environment = Environment::with(&[]);
        assert_eq!(colors(&environment), Colors::Off);
        environment.terminal = true;
        assert_eq!(colors(&environment), Colors::On);
        let mut environment = Environment::with(&[("NO_COLOR", "1")]);
        environment.terminal = true;
        assert_eq!(colors(&environment), Colors::Off);
    }
}
