//! Markdown for a terminal: paragraphs are wrapped, code and tables stay unchanged.

/// The width above which paragraphs are hard to read.
const WIDEST: usize = 100;

/// `text` with paragraphs of at most `columns` characters; unchanged without a terminal.
pub(super) fn laid_out(text: &str, columns: Option<usize>) -> String {
    let Some(width) = columns.map(|columns| columns.clamp(20, WIDEST)) else {
        return text.to_owned();
    };
    let mut laid_out = String::with_capacity(text.len() + text.len() / 20);
    let mut in_code = false;
    // A paragraph goes on until another kind of line.
    let mut paragraph = String::new();
    for line in text.lines() {
        let start = line.trim_start();
        let is_fence = start.starts_with("```");
        let is_text =
            !(in_code || is_fence || start.is_empty() || start.starts_with(['|', '#', '<']));
        in_code ^= is_fence;
        let begins_item =
            start.starts_with("- ") || start.starts_with(|c: char| c.is_ascii_digit());
        if !is_text || begins_item {
            wrap(&mut laid_out, &paragraph, width);
            paragraph.clear();
        }
        match (is_text, paragraph.is_empty()) {
            (true, true) => paragraph.push_str(line.trim_end()),
            (true, false) => {
                paragraph.push(' ');
                paragraph.push_str(line.trim());
            }
            (false, _) => {
                laid_out.push_str(line);
                laid_out.push('\n');
            }
        }
    }
    wrap(&mut laid_out, &paragraph, width);
    laid_out
}

/// Adds a paragraph in lines of at most `width` characters; lines after the first are indented as an item's text.
fn wrap(text: &mut String, paragraph: &str, width: usize) {
    if paragraph.is_empty() {
        return;
    }
    let start = paragraph.trim_start();
    let indent = paragraph.len() - start.len();
    let hang = indent + if start.starts_with("- ") { 2 } else { 0 };
    let mut line = " ".repeat(indent);
    let mut is_first = true;
    for word in start.split(' ') {
        let length = line.chars().count() + 1 + word.chars().count();
        if !is_first && length > width {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(hang);
            is_first = true;
        }
        if !is_first {
            line.push(' ');
        }
        line.push_str(word);
        is_first = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_and_code_and_tables_are_not() {
        let long = "word ".repeat(10);
        let text =
            format!("# {long}\n\n{long}\n{long}\n\n- {long}\n\n```\n{long}\n```\n| {long} |\n");
        let expected = "word word word word\nword word word word\nword word word word\nword word word word\nword word word word\n\n- word word word\n  word word word\n  word word word\n  word\n";
        let laid_out = laid_out(&text, Some(20));
        assert!(laid_out.contains(expected), "{laid_out}");
        assert!(
            laid_out.contains(&format!("```\n{long}\n```\n| {long} |")),
            "{laid_out}"
        );
        assert!(laid_out.starts_with(&format!("# {long}\n")), "{laid_out}");
    }

    #[test]
    fn a_pipe_gets_the_page_as_it_is() {
        let text = format!("{}\n", "word ".repeat(100));
        assert_eq!(laid_out(&text, None), text);
    }
}
