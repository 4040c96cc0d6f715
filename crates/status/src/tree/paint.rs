//! Colors of the tree.

use terminal::{Colors, GREEN, RED, YELLOW};

use super::Branch;
use super::conditions::{Row, good};

/// Status of a [`Branch`]: green when ready, red when failing.
pub(super) fn state(colors: Colors, node: &Branch) -> String {
    let color = match (node.status.ends_with("True"), node.failing) {
        (_, true) => RED,
        (true, false) => GREEN,
        (false, false) => YELLOW,
    };
    colors.painted(color, &node.status)
}

/// Status of a condition [`Row`]: green in the good state.
pub(super) fn condition(colors: Colors, row: &Row) -> String {
    let color = match row.status == good(&row.type_) {
        true => GREEN,
        false => YELLOW,
    };
    colors.painted(color, &row.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_painted_only_when_asked_for() {
        let node = |status: &str, failing: bool| Branch {
            status: status.to_owned(),
            failing,
            ..Branch::default()
        };
        assert_eq!(
            state(Colors::Off, &node("Ready: True", false)),
            "Ready: True"
        );
        for (status, failing, expected) in [
            ("Ready: True", false, "\x1b[32mReady: True\x1b[0m"),
            ("Ready: False", false, "\x1b[33mReady: False\x1b[0m"),
            ("Ready: False", true, "\x1b[31mReady: False\x1b[0m"),
            ("", false, ""),
        ] {
            assert_eq!(state(Colors::On, &node(status, failing)), expected);
        }
    }
}
