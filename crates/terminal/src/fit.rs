//! Tables that fit into a terminal.

use crate::{align, width as columns_of};

/// Formats rows for a terminal of `width` columns: leaves out `expendable` columns, in this order, until the other ones fit,
/// and puts the last column below its row if there is no room beside it.
pub fn fit<const N: usize>(rows: &[[String; N]], width: usize, expendable: &[usize]) -> String {
    let mut rows = rows.to_vec();
    for column in expendable {
        if total(&rows, N - 1) <= width {
            break;
        }
        for row in &mut rows {
            row[*column].clear();
        }
    }
    if total(&rows, N) <= width {
        return align(&rows);
    }
    let last: Vec<String> = rows
        .iter_mut()
        .map(|row| std::mem::take(&mut row[N - 1]))
        .collect();
    let mut text = String::new();
    for (index, (line, last)) in align(&rows).lines().zip(last).enumerate() {
        text.push_str(line);
        text.push('\n');
        // The heading of the last column would stand above nothing.
        if index > 0 && !last.is_empty() {
            text.push_str(&format!("    {last}\n"));
        }
    }
    text
}

/// The width of the first `columns` columns.
fn total<const N: usize>(rows: &[[String; N]], columns: usize) -> usize {
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| columns_of(&row[column]));
        cells.max().unwrap_or(0)
    };
    let filled = (0..columns).map(widest).filter(|width| *width > 0);
    filled
        .map(|width| width + 2)
        .sum::<usize>()
        .saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<[String; 4]> {
        [
            ["NAME", "READY", "SINCE", "MESSAGE"],
            ["Machine/a", "True", "5m", ""],
            [
                "Machine/b",
                "False",
                "10s",
                "quota of instances: 10 of 10 used",
            ],
        ]
        .map(|row| row.map(str::to_owned))
        .to_vec()
    }

    #[test]
    fn what_does_not_fit_is_left_out_or_below() {
        insta::assert_snapshot!(fit(&rows(), 60, &[2, 1]), @"
        NAME       READY  SINCE  MESSAGE
        Machine/a  True   5m
        Machine/b  False  10s    quota of instances: 10 of 10 used
        ");
        insta::assert_snapshot!(fit(&rows(), 40, &[2, 1]), @"
        NAME       READY  SINCE
        Machine/a  True   5m
        Machine/b  False  10s
            quota of instances: 10 of 10 used
        ");
        insta::assert_snapshot!(fit(&rows(), 20, &[2, 1]), @"
        NAME       READY
        Machine/a  True
        Machine/b  False
            quota of instances: 10 of 10 used
        ");
    }
}
