//! Words of bash, split at `@`, `=` and `:`, too.

use std::ffi::OsString;

use crate::environment::Environment;

/// Part of the current word before the cursor.
const WORD: &str = "FERROSTACK_COMPLETE_WORD";

/// Script for bash 4.4 and later.
pub(super) const SCRIPT: &str = r#"_ferrostack() {
    mapfile -t COMPREPLY < <(FERROSTACK_COMPLETE=bash FERROSTACK_COMPLETE_WORD="$2" ferrostack -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
    if [[ "${COMPREPLY-}" == *[=/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -o nosort -F _ferrostack ferrostack
"#;

/// Candidates, one in a line, without the part of the word that bash keeps.
pub(super) fn answer(words: &[OsString], environment: &Environment) -> Vec<u8> {
    let typed = environment.variable(WORD).unwrap_or_default();
    let (words, kept) = whole(words, typed);
    let mut text = String::new();
    for candidate in super::candidates(&words, environment) {
        if let Some(rest) = candidate.strip_prefix(&kept) {
            text.push_str(&escaped(rest));
            text.push('\n');
        }
    }
    text.into_bytes()
}

/// Words as for the program, the last one up to `typed`; and the beginning of the last one that bash keeps.
fn whole(words: &[OsString], typed: &str) -> (Vec<OsString>, String) {
    // Bash splits words at `@`, too, and yet counts it among what is completed (`rl_special_prefixes` of readline).
    match typed.strip_prefix('@') {
        Some(rest) => {
            let (words, mut kept) = joined(words, rest);
            kept.pop();
            (words, kept)
        }
        None => joined(words, typed),
    }
}

fn joined(words: &[OsString], typed: &str) -> (Vec<OsString>, String) {
    let mut whole: Vec<OsString> = Vec::new();
    let mut kept = String::new();
    let mut glued = false;
    let last = words.len().saturating_sub(1);
    for (index, word) in words.iter().enumerate() {
        let separates = is_separator(word);
        // At the end of `a@` the word is `@`, and what is typed of the next one is empty.
        let part: OsString = match index == last && !separates {
            true => typed.into(),
            false => word.clone(),
        };
        match whole.last_mut() {
            Some(before) if index > 1 && (separates || glued) => {
                kept = before.to_string_lossy().into_owned();
                before.push(&part);
            }
            _ => {
                kept.clear();
                whole.push(part);
            }
        }
        if index == last && separates {
            kept = whole
                .last()
                .map(|it| it.to_string_lossy().into_owned())
                .unwrap_or_default();
        }
        glued = separates;
    }
    (whole, kept)
}

fn is_separator(word: &OsString) -> bool {
    let text = word.to_str().unwrap_or_default();
    !text.is_empty() && text.chars().all(|c| matches!(c, '@' | '=' | ':'))
}

/// Word that bash takes literally.
fn escaped(word: &str) -> String {
    let mut text = String::new();
    for c in word.chars().filter(|c| !c.is_control()) {
        let is_plain = c.is_alphanumeric() || "-_./@:+,=%~".contains(c);
        if !is_plain {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str], typed: &str) -> (String, String) {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let (whole, kept) = whole(&words, typed);
        let whole: Vec<_> = whole.iter().map(|it| it.to_string_lossy()).collect();
        (whole.join(" "), kept)
    }

    #[test]
    fn words_that_bash_has_split_are_whole_again() {
        for (words, typed, expected, kept) in [
            (&["ferrostack", "up", ""][..], "", "ferrostack up ", ""),
            (
                &["ferrostack", "get", "clusters"],
                "cl",
                "ferrostack get cl",
                "",
            ),
            (
                &["ferrostack", "up", "--cloud", "=", "my"],
                "my",
                "ferrostack up --cloud=my",
                "--cloud=",
            ),
            (
                &["ferrostack", "up", "--cloud", "="],
                "",
                "ferrostack up --cloud=",
                "--cloud=",
            ),
            (
                &["ferrostack", "why", "--context", "admin", "@", "ku"],
                "@ku",
                "ferrostack why --context admin@ku",
                "admin",
            ),
            (
                &["ferrostack", "why", "--context", "admin", "@"],
                "@",
                "ferrostack why --context admin@",
                "admin",
            ),
        ] {
            let (expected, kept) = (expected.to_owned(), kept.to_owned());
            assert_eq!(of(words, typed), (expected, kept), "{words:?}");
        }
    }

    #[test]
    fn letters_that_bash_reads_are_escaped() {
        assert_eq!(escaped("md/demo-md-0"), "md/demo-md-0");
        assert_eq!(escaped("a b$(c)\u{1b}[1m\n"), r"a\ b\$\(c\)\[1m");
    }
}
