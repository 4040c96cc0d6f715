//! Colors: the only escape sequences of our own texts, but for [`CLEAR`](crate::CLEAR).

use api::printable;

/// Sequence before red text.
pub const RED: &str = "\x1b[31m";
/// Sequence before green text.
pub const GREEN: &str = "\x1b[32m";
/// Sequence before yellow text.
pub const YELLOW: &str = "\x1b[33m";
/// Sequence after colored text.
pub const RESET: &str = "\x1b[0m";

/// Use of colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colors {
    /// Plain text.
    Off,
    /// Text with the sequences of a terminal.
    On,
}

impl Colors {
    /// One line in `color`, such as [`RED`], if colors are on.
    pub fn painted(self, color: &str, text: &str) -> String {
        let text = printable::line(text);
        match self {
            Colors::On if !text.is_empty() => format!("{color}{text}{RESET}"),
            Colors::On | Colors::Off => text.into_owned(),
        }
    }
}

/// Several lines with our colors ([`RED`], [`GREEN`], [`YELLOW`], [`RESET`]), and no other sequence.
pub fn painted(text: &str) -> String {
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
