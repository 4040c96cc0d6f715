//! Output redrawn on a terminal after each change. All other output appears above.

use std::io;

use api::printable;
use parking_lot::Mutex;
use terminal::{GREEN, RED, RESET};

use super::Stream;
use crate::environment::Environment;
use crate::picture::{Line, Mark};

/// Lines drawn at the end of the terminal: there is one terminal.
static DRAWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Writes to a [`Stream`]: on the terminal of the picture, above the picture.
pub(super) fn beside(stream: Stream, bytes: &[u8]) -> io::Result<()> {
    let drawn = DRAWN.lock();
    if drawn.is_empty() || !stream.is_terminal() {
        return stream.write(bytes);
    }
    let (width, _) = size();
    Stream::Output.write(erased(&drawn, width).as_bytes())?;
    stream.write(bytes)?;
    Stream::Output.write(ended(&drawn).as_bytes())
}

/// The picture on a terminal.
pub(crate) struct Screen {
    /// Size of the window at the last picture.
    size: (usize, usize),
    colors: bool,
}

impl Screen {
    pub(crate) fn new(environment: &Environment) -> Self {
        Self {
            size: (0, 0),
            colors: environment.non_empty("NO_COLOR").is_none(),
        }
    }

    /// Keeps the picture; later output is printed below.
    pub(crate) fn leave(&mut self) {
        DRAWN.lock().clear();
    }

    /// True if the window has another size than at the last picture.
    pub(crate) fn is_resized(&self) -> bool {
        self.size != size()
    }

    /// True if the last picture ends otherwise, or was drawn for another size of the window.
    pub(crate) fn is_stale(&self, below: &[String]) -> bool {
        self.is_resized() || !DRAWN.lock().ends_with(&escaped(below))
    }

    /// Replaces the picture by `above`, a picture in the remaining width and height, and `below`.
    pub(crate) fn draw(
        &mut self,
        above: &[String],
        picture: impl FnOnce(usize, usize) -> Vec<Line>,
        below: &[String],
    ) -> io::Result<()> {
        let (width, height) = size();
        let below = escaped(below);
        let rows_below: usize = below.iter().map(|line| rows_on_screen(line, width)).sum();
        // Lines that scrolled off the screen could not be redrawn.
        let room = height.saturating_sub(1 + above.len() + rows_below);
        let mut lines = escaped(above);
        let picture = picture(width, room);
        lines.extend(picture.iter().map(|line| self.colored(line)));
        lines.extend(below);
        let mut drawn = DRAWN.lock();
        // In one write, so that the terminal never shows a part of it.
        let frame = format!("{}{}", erased(&drawn, width), ended(&lines));
        *drawn = lines;
        self.size = (width, height);
        Stream::Output.write(frame.as_bytes())
    }

    fn colored(&self, line: &Line) -> String {
        let text = printable::line(&line.text);
        match (self.colors, line.mark) {
            (true, Mark::Failing) => text.replacen('✗', &format!("{RED}✗{RESET}"), 1),
            (true, Mark::Ready) => text.replacen('✔', &format!("{GREEN}✔{RESET}"), 1),
            _ => text.into_owned(),
        }
    }
}

fn escaped(lines: &[String]) -> Vec<String> {
    let lines = lines.iter().map(|line| printable::line(line).into_owned());
    lines.collect()
}

fn ended(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn size() -> (usize, usize) {
    match crossterm::terminal::size() {
        // A terminal without a size, such as a new pseudo-terminal, reports zeros.
        Ok((width, height)) if width > 0 && height > 0 => (usize::from(width), usize::from(height)),
        _ => (100, 40),
    }
}

/// Rows of a line on the screen, including wraps by a window that became narrower.
fn rows_on_screen(line: &str, width: usize) -> usize {
    terminal::width(line).div_ceil(width.max(1)).max(1)
}

/// Sequence to move the cursor to the start of the drawn lines and clear the rest.
fn erased(drawn: &[String], width: usize) -> String {
    let rows: usize = drawn.iter().map(|line| rows_on_screen(line, width)).sum();
    match rows {
        0 => String::new(),
        rows => format!("\x1b[{rows}A\r\x1b[J"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_cleared_with_the_rows_that_its_lines_are_wrapped_to() {
        let drawn = [format!("{GREEN}✔{RESET} ab"), "abcde".to_owned()];
        assert_eq!(erased(&drawn, 4), "\x1b[3A\r\x1b[J");
        assert_eq!(erased(&[], 4), "");
    }

    #[test]
    fn a_line_of_a_picture_has_no_colors_but_that_of_its_mark() {
        let screen = Screen::new(&Environment::with(&[]));
        let line = Line {
            mark: Mark::Failing,
            text: format!("✗ {}", crate::output::CANARY),
        };
        assert_eq!(
            screen.colored(&line),
            format!("{RED}✗{RESET} a\\u{{1b}}[2Jb\\rc\\nALL CLUSTERS READY\\u{{202e}}d")
        );
    }
}
