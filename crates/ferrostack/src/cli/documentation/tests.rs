mod reference;

use clap::Parser;

use super::*;

/// Every command with its path, groups of commands too.
fn all(command: &Command, path: &str, into: &mut Vec<(String, Command)>) {
    into.push((path.to_owned(), command.clone()));
    for below in command.get_subcommands() {
        let path = format!("{path} {}", below.get_name());
        all(below, path.trim_start(), into);
    }
}

fn commands() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    all(&command(), "", &mut found);
    found
}

#[test]
fn every_help_has_examples_that_can_be_parsed_and_a_page() {
    for (path, mut command) in commands() {
        let entries = entries::all().filter(|entry| entry.command == path).count();
        assert_eq!(entries, 1, "`{path}`");
        let (short, long) = (
            command.render_help().to_string(),
            command.render_long_help().to_string(),
        );
        assert!(short.contains("Example: "), "{path}: {short}");
        assert!(long.contains("Examples:\n  # "), "{path}: {long}");
        assert!(
            long.contains("\nDocumentation: ferrostack docs "),
            "{path}: {long}"
        );
        for text in [&short, &long] {
            assert!(
                !text.contains("docs/adr") && !text.contains("(docs/"),
                "{text}"
            );
        }
    }
    let files = crate::commands::docs::tests::files();
    for entry in entries::all() {
        let (page, section) = entry.page.split_once('#').unwrap_or((entry.page, ""));
        let file = files.iter().find(|file| file.ends_with(page));
        let text = std::fs::read_to_string(file.expect(page)).unwrap();
        let heading = |line: &str| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            line.starts_with('#') && title.replace(' ', "-") == section
        };
        assert!(
            section.is_empty() || text.lines().any(heading),
            "{}",
            entry.page
        );
        for (_, line) in entry.examples {
            let plain = line.trim_start_matches("source <(").trim_end_matches(')');
            for part in plain.split('|').map(str::trim) {
                let part = part.split(" > ").next().unwrap();
                if part.starts_with("ferrostack ") {
                    let parsed = Cli::try_parse_from(part.split_whitespace());
                    parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
                }
            }
        }
    }
}

#[test]
fn options_stand_in_groups_and_the_short_help_is_shorter() {
    for (path, mut command) in commands() {
        if command.has_subcommands() && path != "simulate" {
            continue;
        }
        let headings: std::collections::BTreeSet<_> = command
            .get_arguments()
            .filter(|arg| !arg.is_positional() && !arg.is_hide_set())
            .filter_map(|arg| arg.get_help_heading())
            .collect();
        let ungrouped: Vec<_> = command
            .get_arguments()
            .filter(|arg| !arg.is_positional() && !arg.is_hide_set())
            .filter(|arg| arg.get_help_heading().is_none())
            .map(|arg| arg.get_id().to_string())
            .filter(|id| id != "help" && id != "version")
            .collect();
        assert!(ungrouped.len() < 4, "{path}: {ungrouped:?}");
        let options = command
            .get_arguments()
            .filter(|arg| !arg.is_hide_set())
            .count();
        assert!(options < 6 || headings.len() >= 2, "{path}: {headings:?}");
        let lines = |text: String| text.lines().count();
        let short = lines(command.render_help().to_string());
        let long = lines(command.render_long_help().to_string());
        assert!(
            short < long && short <= 60,
            "{path}: {short} of {long} lines"
        );
    }
}

#[test]
fn every_page_of_the_help_is_in_the_program() {
    let pages = crate::commands::docs::pages().unwrap();
    for (path, mut command) in commands() {
        let long = command.render_long_help().to_string();
        let named = long.rsplit("Documentation: ferrostack docs ").next();
        let name = named.unwrap().trim();
        crate::commands::docs::page(&pages, name)
            .unwrap_or_else(|error| panic!("`{path}`: {error}"));
    }
}

#[test]
fn a_word_for_a_number_is_named_with_its_option() {
    let options = [
        (
            ["up", "--worker-machine-count"],
            "--worker-machine-count <N>",
        ),
        (["simulate", "--seed"], "--seed <N>"),
    ];
    for ([command_, option], named) in options {
        for value in ["-1", "abc", "1.5"] {
            let words = ["ferrostack", command_, option, value];
            let error = command().try_get_matches_from(words).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(named) && text.contains(value), "{text}");
            let hint = number_hint(&error);
            let is_named = hint.as_ref().is_some_and(|hint| hint.starts_with(named));
            // The range in the message says as much.
            assert!(is_named || text.contains(" is not in 0..="), "{text}");
        }
    }
}

#[test]
fn whatever_reads_a_kubeconfig_takes_its_context_by_the_name_in_clusterctl_too() {
    let mut seen = 0;
    for (path, command) in commands() {
        let named = |id: &str| command.get_arguments().find(|arg| arg.get_id() == id);
        if named("kubeconfig").is_none() {
            continue;
        }
        let context = named("context").unwrap_or_else(|| panic!("{path} has no --context"));
        let aliases = context.get_all_aliases().unwrap_or_default();
        assert!(aliases.contains(&"kubeconfig-context"), "{path}");
        seen += 1;
    }
    assert!(seen > 15, "{seen}");
}

#[test]
fn the_flags_are_consistent() {
    command().debug_assert();
}
