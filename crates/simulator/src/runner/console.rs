//! Console logs of the machines, sanitized: lines of text, with limits of size.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The oldest lines of a longer log are dropped: Nova reads only the end of a log.
const LIMIT: usize = 100 << 10;
/// The rest of a longer line is dropped.
const LONGEST: usize = 4 << 10;

/// Consoles of all machines. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consoles {
    logs: Arc<Mutex<HashMap<String, Log>>>,
}

#[derive(Debug, Default)]
struct Log {
    text: String,
    /// Bytes of the incomplete last line.
    partial: Vec<u8>,
}

impl Consoles {
    /// Returns the text of the console.
    pub(crate) fn text(&self, instance: &str) -> String {
        let logs = self.logs.lock();
        logs.get(instance).map_or_else(String::new, |log| {
            let mut text = log.text.clone();
            text.push_str(&sanitized(&log.partial));
            text
        })
    }

    /// Returns the last line that is not empty.
    pub(crate) fn last_line(&self, instance: &str) -> Option<String> {
        let text = self.text(instance);
        let mut lines = text.lines().map(str::trim);
        lines.rfind(|line| !line.is_empty()).map(str::to_owned)
    }

    /// Appends the output of a machine.
    pub(crate) fn print(&self, instance: &str, bytes: &[u8]) {
        let mut logs = self.logs.lock();
        let log = logs.entry(instance.to_owned()).or_default();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST.saturating_sub(log.partial.len());
            let line = piece.strip_suffix(b"\n");
            let text = line.unwrap_or(piece);
            log.partial.extend_from_slice(&text[..text.len().min(room)]);
            if line.is_some() {
                let partial = std::mem::take(&mut log.partial);
                log.text.push_str(&sanitized(&partial));
                log.text.push('\n');
            }
        }
        if let Some(excess) = log.text.len().checked_sub(LIMIT) {
            let cut = log.text.bytes().skip(excess).position(|byte| byte == b'\n');
            log.text.drain(..cut.map_or(0, |at| excess + at + 1));
        }
    }

    /// Appends a message about the machine, on a new line.
    pub(crate) fn note(&self, instance: &str, line: &str) {
        let broken = self
            .logs
            .lock()
            .get(instance)
            .is_some_and(|log| !log.partial.is_empty());
        let start = if broken { "\n" } else { "" };
        self.print(instance, format!("{start}{line}\n").as_bytes());
    }

    /// Removes the console of a deleted instance.
    pub(crate) fn forget(&self, instance: &str) {
        self.logs.lock().remove(instance);
    }
}

/// Converts a line to text without control characters.
fn sanitized(line: &[u8]) -> String {
    String::from_utf8_lossy(line)
        .chars()
        .filter(|letter| *letter == '\t' || !letter.is_control())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_holds_lines_of_text_of_bounded_length_and_number() {
        let consoles = Consoles::default();
        consoles.print("a", b"first\r\n\x1b[31mred\xff\x00\tend\nhalf");
        assert_eq!(consoles.text("a"), "first\n[31mred\u{fffd}\tend\nhalf");
        consoles.note("a", "gone");
        assert!(consoles.text("a").ends_with("half\ngone\n"));
        consoles.print("a", &vec![b'x'; 1 << 20]);
        assert!(consoles.text("a").len() < LIMIT);
        for number in 0..100_000 {
            consoles.print("a", format!("line {number}\n").as_bytes());
        }
        let text = consoles.text("a");
        assert!(text.len() <= LIMIT);
        assert!(text.starts_with("line ") && text.ends_with("line 99999\n"));
        assert_eq!(consoles.last_line("a").as_deref(), Some("line 99999"));
        consoles.forget("a");
        assert_eq!(consoles.text("a"), "");
    }
}
