//! Difference of two texts: removed and added lines.

/// Unchanged lines that [`unified`] prints around a change.
const AROUND: usize = 3;
/// Largest table of lines for [`compared`]; above this size, all lines are removed and added.
const LARGEST: usize = 4_000_000;

/// Changed lines with [`AROUND`] unchanged ones, after a head with the name and a word for the second text, such as
/// `converted`; empty if nothing has changed.
pub fn unified(name: &str, state: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let lines = compared(&old, &new);
    let changed = |at: usize| lines.get(at).is_some_and(|(mark, _)| *mark != ' ');
    let mut text = format!("--- {name}\n+++ {name}, {state}\n");
    let (mut from, mut to) = (1, 1);
    let mut in_part = false;
    for (at, (mark, line)) in lines.iter().enumerate() {
        let near = (at.saturating_sub(AROUND)..=at + AROUND).any(changed);
        if near && !in_part {
            text.push_str(&format!("@@ -{from} +{to} @@\n"));
        }
        in_part = near;
        if near {
            text.push_str(&format!("{mark}{line}\n"));
        }
        from += usize::from(*mark != '+');
        to += usize::from(*mark != '-');
    }
    text
}

/// All lines, marked by `-`, `+`, or a blank for lines of both texts: the longest common sequence.
fn compared<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (head, old, new) = (&old[..same], &old[same..], &new[same..]);
    let mut lines: Vec<_> = head.iter().map(|line| (' ', *line)).collect();
    if old.len() * new.len() > LARGEST {
        lines.extend(old.iter().map(|line| ('-', *line)));
        lines.extend(new.iter().map(|line| ('+', *line)));
        return lines;
    }
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            common[i * width + j] = match a == b {
                true => common[(i + 1) * width + j + 1] + 1,
                false => common[(i + 1) * width + j].max(common[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]
        {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_near_a_change_are_shown() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let after = "a\nb\nc\nd\nE\nnew\nf\ng\nh\n";
        assert_eq!(
            unified("x", "converted", before, after),
            "--- x\n+++ x, converted\n@@ -2 +2 @@\n b\n c\n d\n-e\n+E\n+new\n f\n g\n h\n"
        );
        assert_eq!(unified("x", "converted", before, before), "");
        assert_eq!(
            unified("x", "converted", "", "a\n"),
            "--- x\n+++ x, converted\n@@ -1 +1 @@\n+a\n"
        );
        let long = "line\n".repeat(3000);
        let other = "other\n".repeat(3000);
        assert_eq!(
            unified("x", "converted", &long, &other).lines().count(),
            6003
        );
    }
}
