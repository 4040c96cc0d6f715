//! Markdown for a terminal: paragraphs are wrapped, tables have columns or an entry for each row, and code stays unchanged.

/// The width above which paragraphs are hard to read.
const WIDEST: usize = 100;

/// `text` with paragraphs of at most `columns` characters; unchanged without a terminal.
pub(super) fn laid_out(text: &str, columns: Option<usize>) -> String {
    let Some(width) = columns.map(|columns| columns.clamp(20, WIDEST)) else {
        return text.to_owned();
    };
    let mut laid_out = String::with_capacity(text.len() + text.len() / 20);
    let mut in_code = false;
    // A paragraph goes on until another kind of line, and so does a table.
    let mut paragraph = String::new();
    let mut table: Vec<Vec<String>> = Vec::new();
    for line in text.lines() {
        let start = line.trim_start();
        let is_fence = start.starts_with("```");
        let is_text =
            !(in_code || is_fence || start.is_empty() || start.starts_with(['|', '#', '<']));
        let is_row = !in_code && start.starts_with('|');
        in_code ^= is_fence;
        if !is_row {
            tabulate(&mut laid_out, &std::mem::take(&mut table), width);
        }
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
            (false, _) if is_row => table.push(cells(line)),
            (false, _) => {
                laid_out.push_str(line);
                laid_out.push('\n');
            }
        }
    }
    wrap(&mut laid_out, &paragraph, width);
    tabulate(&mut laid_out, &table, width);
    laid_out
}

/// The cells of a row.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for letter in line.trim().trim_start_matches('|').chars() {
        let last = cells.len() - 1;
        match letter {
            '|' if is_escaped => {
                cells[last].pop();
                cells[last].push('|');
            }
            '|' => cells.push(String::new()),
            _ => cells[last].push(letter),
        }
        is_escaped = letter == '\\';
    }
    // The last bar ends the row.
    cells.pop();
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Adds a table: in columns if they fit, else with an entry for each row, whose first cell stands above the others.
fn tabulate(text: &mut String, rows: &[Vec<String>], width: usize) {
    let is_rule = |row: &Vec<String>| row.iter().all(|cell| cell.starts_with("--"));
    let rows: Vec<&Vec<String>> = rows.iter().filter(|row| !is_rule(row)).collect();
    let Some((header, below)) = rows.split_first() else {
        return;
    };
    let letters = |cell: &String| cell.chars().count();
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(letters).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(widest).collect();
    if widths.iter().map(|width| width + 2).sum::<usize>() <= width + 2 {
        for row in rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(width + 2 - letters(cell)));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        return;
    }
    let mut first = String::new();
    for row in below {
        // A cell that is left empty means the one above it.
        let name = row.first().filter(|name| !name.is_empty());
        if let Some(name) = name.filter(|name| **name != first) {
            first.clone_from(name);
            wrap(text, name, width);
        }
        for (cell, title) in row.iter().zip(header.iter()).skip(1) {
            let title = match (header.len(), title.as_str()) {
                (0..=2, _) | (_, "") => String::new(),
                (_, title) => format!("{title}: "),
            };
            if !cell.is_empty() {
                wrap(text, &format!("    {title}{cell}"), width);
            }
        }
    }
}

/// Adds a paragraph in lines of at most `width` characters; lines after the first are indented as an item's text.
pub(super) fn wrap(text: &mut String, paragraph: &str, width: usize) {
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
    fn paragraphs_are_wrapped_and_code_is_not() {
        let long = "word ".repeat(10);
        let text = format!("# {long}\n\n{long}\n{long}\n\n- {long}\n\n```\n{long}\n| a |\n```\n");
        let expected = "word word word word\nword word word word\nword word word word\nword word word word\nword word word word\n\n- word word word\n  word word word\n  word word word\n  word\n";
        let laid_out = laid_out(&text, Some(20));
        assert!(laid_out.contains(expected), "{laid_out}");
        assert!(
            laid_out.contains(&format!("```\n{long}\n| a |\n```\n")),
            "{laid_out}"
        );
        assert!(laid_out.starts_with(&format!("# {long}\n")), "{laid_out}");
    }

    #[test]
    fn a_table_has_columns_where_they_fit_and_else_entries() {
        let text = "a\n\n| to | use |\n|---|---|\n| stop | `down` |\n| a \\| b | |\n\nb\n";
        assert_eq!(
            laid_out(text, Some(20)),
            "a\n\nto     use\nstop   `down`\na | b\n\nb\n"
        );
        let text = "| part | state | tried with |\n|---|---|---|\n| the driver | CSI 1.13 | two real nodes |\n| | | csi-sanity |\n";
        let entries = "the driver\n    state: CSI 1.13\n    tried with: two\n    real nodes\n    tried with:\n    csi-sanity\n";
        assert_eq!(laid_out(text, Some(20)), entries);
        let text = "| to | use |\n|---|---|\n| stop a program | ferrostack down |\n";
        assert_eq!(
            laid_out(text, Some(20)),
            "stop a program\n    ferrostack down\n"
        );
    }

    #[test]
    fn a_pipe_gets_the_page_as_it_is() {
        let text = format!("{}\n", "word ".repeat(100));
        assert_eq!(laid_out(&text, None), text);
    }
}
