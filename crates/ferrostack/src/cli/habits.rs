//! Words of clusterctl with other names here.

use std::ffi::OsString;

/// Replacement for a word of clusterctl, in rejected arguments.
pub(super) fn hint(arguments: &[OsString]) -> Option<String> {
    let words: Vec<String> = arguments
        .iter()
        .skip(1)
        .map(|it| it.to_string_lossy().into_owned())
        .collect();
    let first = words.iter().find(|it| !it.starts_with('-'));
    if first.is_some_and(|it| it == "alpha") {
        let after = words.iter().skip_while(|it| *it != "alpha").nth(1);
        return Some(match after.map(String::as_str) {
            Some(known @ ("rollout" | "topology")) => format!(
                "`clusterctl alpha {known}` is `ferrostack {known}` here: leave the word alpha out"
            ),
            _ => "the commands of `clusterctl alpha` are `ferrostack rollout` and `ferrostack topology` here"
                .to_owned(),
        });
    }
    let is_verbosity = |word: &str| {
        let level = ["--v", "-v"].iter().find_map(|it| word.strip_prefix(it));
        level.is_some_and(|it| {
            it.trim_start_matches('=')
                .chars()
                .all(|letter| letter.is_ascii_digit())
        })
    };
    if words.iter().any(|it| is_verbosity(it)) {
        return Some(
            "the verbosity `-v N` of clusterctl is `--log FILTER` here, such as --log debug"
                .to_owned(),
        );
    }
    let is_short = |pair: &[String]| matches!(pair, [flag, value] if ["-o", "--output"].contains(&flag.as_str()) && value == "short");
    let joined = ["-oshort", "-o=short", "--output=short"];
    if words.windows(2).any(is_short) || words.iter().any(|it| joined.contains(&it.as_str())) {
        return Some(
            "what clusterctl prints with `-o short` is printed without the flag here".to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_clusterctl_get_a_hint() {
        for (command, expected) in [
            ("alpha rollout restart x/y", Some("`ferrostack rollout`")),
            ("alpha topology plan -f x", Some("`ferrostack topology`")),
            ("alpha", Some("`ferrostack topology`")),
            ("describe cluster a -v 5", Some("--log")),
            ("describe cluster a -v5", Some("--log")),
            ("describe cluster a --v=5", Some("--log")),
            ("version -o short", Some("without the flag")),
            ("version --output=short", Some("without the flag")),
            ("describe cluster --versions", None),
            ("get kubeconfig alpha", None),
        ] {
            let words = std::iter::once("ferrostack").chain(command.split(' '));
            let words: Vec<OsString> = words.map(OsString::from).collect();
            let found = hint(&words);
            match expected {
                Some(expected) => assert!(found.unwrap().contains(expected), "{command}"),
                None => assert_eq!(found, None, "{command}"),
            }
        }
    }
}
