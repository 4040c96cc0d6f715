//! Tables: cells, columns and ages.

use std::borrow::Cow;

use api::printable;
use jiff::Timestamp;

/// Layout of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As wide as the content.
    Full,
    /// The same with all columns, such as versions and Nodes.
    Wide,
    /// For a terminal of this many columns.
    Terminal(usize),
}

/// The cells of a row of a table, each on one line.
pub fn cells<const N: usize>(row: [String; N]) -> [String; N] {
    row.map(|cell| match printable::line(&cell) {
        Cow::Borrowed(_) => cell,
        Cow::Owned(escaped) => escaped,
    })
}

/// Pads columns to their widest cell and separates them by two blanks. Columns without any text are left out.
pub fn align<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (max, cell) in widths.iter_mut().zip(row) {
            *max = (*max).max(width(cell));
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, max) in row.iter().zip(widths).filter(|(_, max)| *max > 0) {
            line.push_str(cell);
            line.push_str(&" ".repeat(max - width(cell) + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The columns of a text: colors take none.
pub fn width(text: &str) -> usize {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().chars().count();
    let rest = parts.map(|part| match part.split_once('m') {
        Some((_, shown)) => shown.chars().count(),
        None => part.chars().count(),
    });
    first + rest.sum::<usize>()
}

/// The time since `since`, as kubectl prints ages: `45s`, `2m5s`, `3h20m`, `5d`.
pub fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else {
        return String::new();
    };
    // The clock of the writer may be ahead.
    apimachinery::time::human((now.as_second() - since.as_second()).max(0))
}
