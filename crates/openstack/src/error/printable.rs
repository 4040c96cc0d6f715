//! Text of clouds, made fit for one line of a log, a condition or a terminal.

/// Returns `text` on one line of at most `limit` characters; longer text ends with an ellipsis. Characters that a
/// terminal interprets or does not show are escaped as in a Rust string literal.
pub(super) fn line(text: &str, limit: usize) -> String {
    // Cut first: the work for a text of any length is bounded.
    let text = cut(text.to_owned(), limit);
    if !text.contains(is_hidden) {
        return text;
    }
    let mut line = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_hidden(letter) {
            true => line.extend(letter.escape_default()),
            false => line.push(letter),
        }
    }
    cut(line, limit)
}

fn cut(mut text: String, limit: usize) -> String {
    if text.chars().nth(limit).is_none() {
        return text;
    }
    let last = text.char_indices().nth(limit.saturating_sub(1));
    text.truncate(last.map_or(0, |(end, _)| end));
    text.push('…');
    text
}

/// True for a character that a terminal interprets or does not show. The list equals the one in the vocabulary of
/// Kubernetes objects (`api::printable`), which this crate cannot import; a test of the provider compares the two.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'
                ..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}
