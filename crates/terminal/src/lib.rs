//! Text for terminals, as functions: documents ([`json`], [`yaml`]), sentences ([`paragraph`]), and tables ([`cells`],
//! [`align`], [`fit`]). Printing is left to the caller.
//!
//! Output contains the words of clouds, nodes, containers and other tenants. A terminal obeys escape sequences, and a line
//! break begins a line like one of ours: both are escaped here, whatever the source.

mod color;
mod document;
mod fit;
mod table;

pub use color::{Colors, GREEN, RED, RESET, YELLOW, painted};
pub use document::{
    UnwritableError, displayed, escaped_json, json, json_document, json_line, yaml,
};
pub use fit::fit;
pub use table::{Layout, age, align, cells, width};

use api::printable;

/// Sequence before a text for an empty screen.
pub const CLEAR: &str = "\x1b[H\x1b[2J";

/// A number of objects: `1 Machine`, `2 Machines`, `2 NetworkPolicies`.
pub fn counted(count: usize, kind: &str) -> String {
    let plural = match (count, kind.strip_suffix('y')) {
        (1, _) => kind.to_owned(),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        // `Endpoints` has the form of a plural already.
        _ if kind.ends_with("ss") => format!("{kind}es"),
        _ if kind.ends_with('s') => kind.to_owned(),
        _ => format!("{kind}s"),
    };
    format!("{count} {plural}")
}

/// A sentence with a line break at the end. Further lines are indented, and none looks like another sentence.
pub fn paragraph(sentence: &str) -> String {
    let mut lines = String::with_capacity(sentence.len() + 1);
    for (index, line) in printable::lines(sentence).split('\n').enumerate() {
        if index > 0 {
            lines.push('\n');
            if !line.is_empty() && !line.starts_with("  ") {
                lines.push_str("  ");
            }
        }
        lines.push_str(line);
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests;
