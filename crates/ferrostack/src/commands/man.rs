//! `man`: manual pages, generated from the command line.

use anyhow::Context;

use crate::cli::{self, Man};
use crate::output::print;

/// Runs the command.
pub(super) fn execute(args: &Man) -> anyhow::Result<()> {
    print(&write(args)?)
}

/// Writes a page for every command; returns a message with the directory.
pub(crate) fn write(args: &Man) -> anyhow::Result<String> {
    let directory = args.directory.display();
    std::fs::create_dir_all(&args.directory)
        .with_context(|| format!("cannot create {directory}"))?;
    clap_mangen::generate_to(cli::command(), &args.directory)
        .with_context(|| format!("cannot write in {directory}"))?;
    Ok(format!("wrote the manual pages to {directory}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_examples() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("man1");
        write(&Man {
            directory: directory.clone(),
        })
        .unwrap();
        for page in ["ferrostack", "ferrostack-up", "ferrostack-get-clusters"] {
            let text = std::fs::read_to_string(directory.join(format!("{page}.1"))).unwrap();
            assert!(text.contains("Examples:"), "{page}: {text}");
            assert!(
                text.contains("Documentation: ferrostack docs"),
                "{page}: {text}"
            );
        }
    }
}
