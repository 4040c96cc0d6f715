//! Output that is drawn again on a terminal as often as it changes.

use std::io::{self, Write};

use crate::environment::Environment;
use crate::picture::{Line, Mark};

/// The last output on a terminal.
pub(crate) struct Screen {
    drawn: Vec<String>,
    /// The size of the window at that time.
    size: (usize, usize),
    colors: bool,
}

impl Screen {
    pub(crate) fn new(environment: &Environment) -> Self {
        Self {
            drawn: Vec::new(),
            size: (0, 0),
            colors: environment.non_empty("NO_COLOR").is_none(),
        }
    }

    /// Prints a sentence in place of the last output, which is to be drawn again below it.
    pub(crate) fn say(&mut self, sentence: &str) -> io::Result<()> {
        let (width, _) = size();
        let mut out = io::stdout().lock();
        erase(&mut out, self.rows(width))?;
        self.drawn.clear();
        writeln!(out, "{sentence}")?;
        out.flush()
    }

    /// Keeps the last output; later output is printed below it.
    pub(crate) fn leave(&mut self) {
        self.drawn.clear();
    }

    /// Whether the window has another size than at the last output.
    pub(crate) fn is_resized(&self) -> bool {
        self.size != size()
    }

    /// Whether the last output ends otherwise, or was for another size of the window.
    pub(crate) fn is_stale(&self, below: &[String]) -> bool {
        self.is_resized() || !self.drawn.ends_with(below)
    }

    /// Replaces the last output by `above`, a picture in the width and height that are left, and `below`.
    pub(crate) fn draw(
        &mut self,
        above: Vec<String>,
        picture: impl FnOnce(usize, usize) -> Vec<Line>,
        below: &[String],
    ) -> io::Result<()> {
        let (width, height) = size();
        let rows_below: usize = below.iter().map(|line| rows_on_screen(line, width)).sum();
        // Lines that scrolled off the screen could not be redrawn.
        let room = height.saturating_sub(1 + above.len() + rows_below);
        let mut lines = above;
        let picture = picture(width, room);
        lines.extend(picture.iter().map(|line| self.colored(line)));
        lines.extend(below.iter().cloned());
        // In one write, so that the terminal never shows a part of it.
        let mut frame = Vec::new();
        erase(&mut frame, self.rows(width))?;
        for line in &lines {
            writeln!(frame, "{line}")?;
        }
        self.drawn = lines;
        self.size = (width, height);
        let mut out = io::stdout().lock();
        out.write_all(&frame)?;
        out.flush()
    }

    /// The rows of the last output on the screen: a narrower window has wrapped its lines.
    fn rows(&self, width: usize) -> usize {
        let rows = self.drawn.iter().map(|line| rows_on_screen(line, width));
        rows.sum()
    }

    fn colored(&self, line: &Line) -> String {
        match (self.colors, line.mark) {
            (true, Mark::Failing) => line.text.replacen('✗', "\x1b[31m✗\x1b[0m", 1),
            (true, Mark::Ready) => line.text.replacen('✔', "\x1b[32m✔\x1b[0m", 1),
            _ => line.text.clone(),
        }
    }
}

fn size() -> (usize, usize) {
    match crossterm::terminal::size() {
        // A terminal without a size, such as a new pseudo-terminal, reports zeros.
        Ok((width, height)) if width > 0 && height > 0 => (usize::from(width), usize::from(height)),
        _ => (100, 40),
    }
}

/// The number of printed characters, without escape sequences.
fn visible(line: &str) -> usize {
    let mut count = 0;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => {
                let _ = chars.by_ref().find(|c| *c == 'm');
            }
            _ => count += 1,
        }
    }
    count
}

fn rows_on_screen(line: &str, width: usize) -> usize {
    visible(line).div_ceil(width.max(1)).max(1)
}

/// Moves the cursor to the start of the last output and clears it.
fn erase(out: &mut impl Write, lines: usize) -> io::Result<()> {
    if lines == 0 {
        Ok(())
    } else {
        write!(out, "\x1b[{lines}A\r\x1b[J")
    }
}
