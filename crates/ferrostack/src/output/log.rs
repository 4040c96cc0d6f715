//! Log on standard error: one line for each event, for any content of fields.

use std::borrow::Cow;
use std::io;

use api::printable;
use tracing_subscriber::fmt::MakeWriter;

use super::{Stream, screen};

/// Writes the events of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Log {
    Text,
    /// Log with colors: the log escapes sequences in fields.
    Colored,
    Json,
}

impl Log {
    /// Printed form of an event, which the log ends with a line break.
    fn line(self, event: &str) -> String {
        let event = event.strip_suffix('\n').unwrap_or(event);
        let line = match self {
            Self::Text => printable::line(event),
            Self::Colored => colored(event),
            Self::Json => terminal::escaped_json(event),
        };
        format!("{line}\n")
    }
}

/// An event with its colors: `ESC [`, digits and semicolons, `m`.
fn colored(event: &str) -> Cow<'_, str> {
    let mut parts = event.split("\x1b[");
    let mut line = printable::line(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let numbers =
            part.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';');
        let is_color = numbers.starts_with('m');
        line.push_str(if is_color { "\x1b[" } else { "\\u{1b}[" });
        line.push_str(&printable::line(part));
    }
    Cow::Owned(line)
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Event;

    fn make_writer(&'a self) -> Event {
        Event(*self)
    }
}

/// One event, written at once.
#[derive(Debug)]
pub(crate) struct Event(Log);

impl io::Write for Event {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = self.0.line(&String::from_utf8_lossy(event));
        screen::beside(Stream::Errors, line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::CANARY;

    #[test]
    fn an_event_is_one_line_without_anything_that_a_terminal_obeys() {
        let event = format!("WARN machine: {CANARY}\n");
        for log in [Log::Text, Log::Colored] {
            let line = log.line(&event);
            assert_eq!(
                line, "WARN machine: a\\u{1b}[2Jb\\rc\\nALL CLUSTERS READY\\u{202e}d\n",
                "{log:?}"
            );
        }
        let event = serde_json::json!({"message": CANARY});
        let line = Log::Json.line(&format!("{event}\n"));
        assert!(!line.trim_end().contains(printable::is_hidden), "{line}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&line).unwrap(),
            event
        );
    }

    #[test]
    fn a_colored_log_has_its_own_colors() {
        let event = "\x1b[2m2026\x1b[0m \x1b[33m WARN\x1b[0m it\n";
        assert_eq!(Log::Colored.line(event), event);
        assert_eq!(Log::Text.line("\x1b[31m"), "\\u{1b}[31m\n");
    }
}
