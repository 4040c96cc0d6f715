//! Rows of a tree as lines of a terminal: failures come first, and ready rows are left out first.

use api::printable;

/// Suffix of the first row of a simulated tree.
pub(crate) const SIMULATED: &str = " (simulated)";
/// Width of names below which messages are shortened instead.
const NARROWEST_NAME: usize = 22;

/// The state of a row's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    Failing,
    Waiting,
    Ready,
    /// Waits for the objects of other rows.
    Later,
    /// A row without a state.
    None,
}

/// A line of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) mark: Mark,
    pub(crate) text: String,
}

/// A row before its layout.
pub(crate) struct Row {
    pub(crate) mark: Mark,
    /// The branches of the tree before the name.
    pub(crate) branches: String,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) message: String,
    /// True for the first row of a cluster, never left out before other rows.
    pub(crate) head: bool,
}

/// [`Row`]s in at most `height` lines of `width` characters.
pub(crate) fn lines(mut rows: Vec<Row>, width: usize, height: usize) -> Vec<Line> {
    for row in &mut rows {
        for cell in [&mut row.name, &mut row.state, &mut row.message] {
            *cell = printable::line(cell).into_owned();
        }
    }
    let (width, height) = (width.max(20), height.max(2));
    let left_out = (rows.len() > height).then(|| leave_out(&mut rows, height - 1));
    let room = height - usize::from(left_out.is_some());
    let mut lines = lay_out(&rows, width, room.saturating_sub(rows.len()));
    if let Some(text) = left_out {
        lines.push(Line {
            mark: Mark::None,
            text: cut(&text, width),
        });
    }
    lines
}

/// Leaves out [`Row`]s until `height` rows are left: first ready ones, then rows that wait for others, then waiting
/// ones, then failing ones, each from the end. Returns a summary of the rows left out.
fn leave_out(rows: &mut Vec<Row>, height: usize) -> String {
    let mut counts = [0usize; 4];
    for (index, mark) in [Mark::Ready, Mark::Later, Mark::Waiting, Mark::Failing]
        .into_iter()
        .enumerate()
    {
        while rows.len() > height {
            let fits = |row: &Row| !row.head && (row.mark == mark || row.mark == Mark::None);
            let Some(at) = rows.iter().rposition(fits) else {
                break;
            };
            if rows.remove(at).mark == mark {
                counts[index] += 1;
            }
        }
    }
    // There are more clusters than lines.
    let heads = rows.len().saturating_sub(height);
    rows.truncate(height);
    let words = ["ready", "not begun", "waiting", "failing"];
    let parts: Vec<String> = counts
        .iter()
        .zip(words)
        .filter(|(count, _)| **count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .chain((heads > 0).then(|| format!("{heads} clusters")))
        .collect();
    format!(
        "… {} more: {}",
        counts.iter().sum::<usize>() + heads,
        parts.join(", ")
    )
}

/// [`Line`]s of `width` characters. Up to `spare` additional lines show text that does not fit beside a failing
/// cluster.
fn lay_out(rows: &[Row], width: usize, mut spare: usize) -> Vec<Line> {
    let len = |text: &str| text.chars().count();
    let widest = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let state = widest(&|row| len(&row.state));
    let message = widest(&|row| len(&row.message));
    let name = widest(&|row| len(&row.branches) + 2 + len(&row.name));
    // Names are shortened before messages are.
    let room = width.saturating_sub(state + message + 4);
    let name = name.min(room.max(NARROWEST_NAME).max(width / 3));
    let mut lines = Vec::new();
    for row in rows {
        let beside = name + state + 4;
        let below = if row.head && row.mark == Mark::Failing && beside + len(&row.message) > width {
            wrapped(&row.message, width.saturating_sub(2))
        } else {
            Vec::new()
        };
        let fits = below.len() <= spare;
        let message = if fits && !below.is_empty() {
            ""
        } else {
            row.message.as_str()
        };
        let sign = match row.mark {
            Mark::Failing => "✗ ",
            Mark::Waiting => "… ",
            Mark::Ready => "✔ ",
            Mark::Later | Mark::None => "",
        };
        let start = format!("{}{sign}", row.branches);
        let short = shorten(&row.name, name.saturating_sub(len(&start)));
        let text = format!("{start}{short}");
        let pad = " ".repeat(name.saturating_sub(len(&text)));
        let line = format!("{text}{pad}  {:<state$}  {message}", row.state);
        lines.push(Line {
            mark: row.mark,
            text: cut(line.trim_end(), width),
        });
        if fits {
            spare -= below.len();
            lines.extend(below.into_iter().map(|text| Line {
                mark: Mark::None,
                text: format!("│ {text}"),
            }));
        }
    }
    lines
}

/// `text` in lines of at most `width` characters, broken between words where possible.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word, width)),
        }
    }
    lines
}

/// `MachineDeployment/demo-md-0` in `width` characters: first without the kind, then without the middle.
fn shorten(name: &str, width: usize) -> String {
    let chars = |text: &str| text.chars().count();
    if chars(name) <= width {
        return name.to_owned();
    }
    let bare = match name.split_once('/') {
        // Its name is that of its cluster.
        Some(("OpenStackCluster", _)) => "Infrastructure",
        Some((_, bare)) => bare,
        None => name,
    };
    if chars(bare) <= width {
        return bare.to_owned();
    }
    let end: usize = width.saturating_sub(1) / 2;
    let start = width.saturating_sub(1) - end;
    let first: String = bare.chars().take(start).collect();
    let last: String = bare.chars().skip(chars(bare) - end).collect();
    format!("{first}…{last}")
}

/// `text` in `width` characters, with an ellipsis at a cut.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}
