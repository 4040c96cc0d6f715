//! Text from outside (clouds, nodes, other tenants), made safe for conditions, events, logs and terminals.
//!
//! A terminal obeys escape sequences, a line break forges a log line, and a bidirectional override displays another
//! text. Such characters are escaped as in a Rust string literal, never removed: the reader sees every one.

use std::borrow::Cow;

/// Maximum length of a condition's message, in characters. The schemas of Cluster API allow 10240,
/// [`metav1.Condition`](https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.34/#condition-v1-meta) 32768.
pub const MESSAGE_LIMIT: usize = 10_240;

/// `text` on one line: line breaks are escaped, too.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// `text` of several lines.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter != '\n' && is_hidden(letter))
}

/// `text`, cut to `limit` characters; the last one is then an ellipsis.
pub fn bounded(text: &str, limit: usize) -> Cow<'_, str> {
    // No character takes less than one byte.
    if text.len() <= limit || text.chars().count() <= limit {
        return Cow::Borrowed(text);
    }
    let kept = text.chars().take(limit.saturating_sub(1));
    Cow::Owned(kept.chain(['…'].into_iter().take(limit)).collect())
}

/// `text` as the message of a condition: several lines, within [`MESSAGE_LIMIT`].
pub fn message(text: &str) -> String {
    // Cut first, to bound the work for a long text.
    bounded(&lines(&bounded(text, MESSAGE_LIMIT)), MESSAGE_LIMIT).into_owned()
}

/// True if a terminal interprets `letter`, or displays nothing.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'
                ..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_escaped(letter) {
            escaped.extend(letter.escape_default());
        } else {
            escaped.push(letter);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests;
