//! Long texts on a terminal, page by page.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::environment::Environment;

/// Default program for pages, without PAGER.
const PAGER: &str = "less";

/// Shows a text: in the program of PAGER on a terminal, and unchanged elsewhere, or without such a program.
pub(crate) fn show(environment: &Environment, text: &str) -> anyhow::Result<()> {
    let is_paged = environment.terminal && environment.interactive && paged(environment, text);
    match is_paged {
        true => Ok(()),
        false => super::print(text),
    }
}

/// True if a program has shown the text.
fn paged(environment: &Environment, text: &str) -> bool {
    let pager = environment.non_empty("PAGER").unwrap_or(PAGER);
    // As others do: PAGER may have arguments.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {pager}")]);
    if environment.variable("LESS").is_none() {
        // Ends by itself where everything fits, and leaves the text on the screen.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else {
        return false;
    };
    if let Some(mut input) = child.stdin.take() {
        // Who leaves the pager early has seen enough.
        let _ = input.write_all(api::printable::lines(text).as_bytes());
    }
    // 127: there is no such program.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}
