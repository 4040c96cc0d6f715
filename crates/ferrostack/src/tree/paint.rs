//! Colors of the tree.

use api::printable;

use super::Branch;
use super::conditions::{Row, good};
use crate::environment::Environment;
use crate::output::{GREEN, RED, RESET, YELLOW};

/// Use of colors for states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colors {
    Off,
    On,
}

impl Colors {
    /// For a terminal, unless the variable NO_COLOR says otherwise.
    pub(crate) fn of(environment: &Environment) -> Self {
        match environment.terminal && environment.non_empty("NO_COLOR").is_none() {
            true => Colors::On,
            false => Colors::Off,
        }
    }

    /// The status of an object: green when it is ready, red when it fails.
    pub(super) fn state(self, node: &Branch) -> String {
        let color = match (node.status.ends_with("True"), node.failing) {
            (_, true) => RED,
            (true, false) => GREEN,
            (false, false) => YELLOW,
        };
        self.painted(color, &node.status)
    }

    /// The status of a condition: green when it is as it should be.
    pub(super) fn condition(self, row: &Row) -> String {
        let color = match row.status == good(&row.type_) {
            true => GREEN,
            false => YELLOW,
        };
        self.painted(color, &row.status)
    }

    fn painted(self, color: &str, text: &str) -> String {
        let text = printable::line(text);
        match self {
            Colors::On if !text.is_empty() => format!("{color}{text}{RESET}"),
            Colors::On | Colors::Off => text.into_owned(),
        }
    }
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
            Colors::Off.state(&node("Ready: True", false)),
            "Ready: True"
        );
        for (status, failing, expected) in [
            ("Ready: True", false, "\x1b[32mReady: True\x1b[0m"),
            ("Ready: False", false, "\x1b[33mReady: False\x1b[0m"),
            ("Ready: False", true, "\x1b[31mReady: False\x1b[0m"),
            ("", false, ""),
        ] {
            assert_eq!(Colors::On.state(&node(status, failing)), expected);
        }
    }

    #[test]
    fn only_a_terminal_has_colors_and_no_color_turns_them_off() {
        let mut environment = Environment::with(&[]);
        assert_eq!(Colors::of(&environment), Colors::Off);
        environment.terminal = true;
        assert_eq!(Colors::of(&environment), Colors::On);
        let mut environment = Environment::with(&[("NO_COLOR", "1")]);
        environment.terminal = true;
        assert_eq!(Colors::of(&environment), Colors::Off);
    }
}
