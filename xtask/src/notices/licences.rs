//! Licences granted by a text, and satisfaction of an SPDX expression.

use std::collections::BTreeSet;

/// Licences, with phrases unique to their texts, in lower case and with single spaces.
const LICENCES: [(&str, &[&str]); 11] = [
    (
        "0BSD",
        &["with or without fee is hereby granted. the software is provided"],
    ),
    (
        "Apache-2.0",
        &[
            "apache license",
            "terms and conditions for use, reproduction, and distribution",
        ],
    ),
    (
        "BSD-2-Clause",
        &["redistribution and use in source and binary forms"],
    ),
    (
        "BSD-3-Clause",
        &[
            "redistribution and use in source and binary forms",
            "neither the name",
        ],
    ),
    ("BSL-1.0", &["boost software license - version 1.0"]),
    (
        "ISC",
        &[
            "permission to use, copy, modify, and",
            "provided that the above copyright notice",
        ],
    ),
    (
        "LLVM-exception",
        &["llvm exceptions to the apache 2.0 license"],
    ),
    (
        "MIT",
        &[
            "permission is hereby granted, free of charge",
            "the software is provided \"as is\"",
        ],
    ),
    (
        "Unicode-3.0",
        &["unicode license v3", "permission is hereby granted"],
    ),
    (
        "Unlicense",
        &["this is free and unencumbered software released into the public domain"],
    ),
    (
        "Zlib",
        &[
            "this software is provided 'as-is'",
            "altered source versions must be plainly marked",
        ],
    ),
];

/// Licences that the texts grant together.
pub(super) fn granted<'a>(texts: impl Iterator<Item = &'a str>) -> BTreeSet<&'static str> {
    let mut granted = BTreeSet::new();
    for text in texts {
        // Without comment marks, and with plain quotes.
        let is_word = |word: &&str| word.contains(char::is_alphanumeric);
        let words: Vec<&str> = text.split_whitespace().filter(is_word).collect();
        let text = words.join(" ").to_lowercase().replace(['“', '”'], "\"");
        let has = |phrases: &[&str]| phrases.iter().all(|phrase| text.contains(phrase));
        let found = LICENCES.iter().filter(|(_, phrases)| has(phrases));
        granted.extend(found.map(|(name, _)| *name));
    }
    granted
}

/// True if the licences satisfy an SPDX expression. A licence outside the table is an error.
pub(super) fn satisfied(expression: &str, granted: &BTreeSet<&str>) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let answer = any(&mut rest, granted)?;
    match rest {
        [] => Ok(answer),
        [word, ..] => Err(format!("{expression}: {word} is not expected there")),
    }
}

fn any(rest: &mut &[&str], granted: &BTreeSet<&str>) -> Result<bool, String> {
    let mut answer = all(rest, granted)?;
    while take(rest, "OR") {
        answer |= all(rest, granted)?;
    }
    Ok(answer)
}

fn all(rest: &mut &[&str], granted: &BTreeSet<&str>) -> Result<bool, String> {
    let mut answer = one(rest, granted)?;
    // An exception has a text as well.
    while take(rest, "AND") || take(rest, "WITH") {
        answer &= one(rest, granted)?;
    }
    Ok(answer)
}

fn one(rest: &mut &[&str], granted: &BTreeSet<&str>) -> Result<bool, String> {
    if take(rest, "(") {
        let answer = any(rest, granted)?;
        return match take(rest, ")") {
            true => Ok(answer),
            false => Err("a parenthesis is not closed".to_owned()),
        };
    }
    let Some((word, behind)) = rest.split_first() else {
        return Err("the expression ends where a licence is expected".to_owned());
    };
    *rest = behind;
    match LICENCES.iter().any(|(name, _)| name == word) {
        true => Ok(granted.contains(word)),
        false => Err(format!(
            "{word}: this licence is not known: add it to xtask/src/notices/licences.rs, and to deny.toml"
        )),
    }
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, behind)) if *first == word => {
            *rest = behind;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_satisfied_by_the_texts_that_it_asks_for() {
        let mit = BTreeSet::from(["MIT"]);
        let both = BTreeSet::from(["MIT", "Unicode-3.0"]);
        for (expression, with_mit, with_both) in [
            ("MIT", true, true),
            ("MIT OR Apache-2.0", true, true),
            ("Apache-2.0", false, false),
            ("MIT AND Unicode-3.0", false, true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", false, true),
            ("Apache-2.0 AND ISC OR MIT", true, true),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true, true),
        ] {
            assert_eq!(satisfied(expression, &mit), Ok(with_mit), "{expression}");
            assert_eq!(satisfied(expression, &both), Ok(with_both), "{expression}");
        }
        for wrong in ["", "MIT OR", "(MIT", "MIT MIT", "GPL-3.0-only OR MIT"] {
            assert!(satisfied(wrong, &both).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_text_is_found_in_a_comment() {
        let text = "// Permission to use, copy, modify, and/or distribute this software for any\n\
            // purpose with or without fee is hereby granted, provided that the above\n\
            // copyright notice and this permission notice appear in all copies.\n";
        assert_eq!(granted([text].into_iter()), BTreeSet::from(["ISC"]));
    }

    #[test]
    fn a_reference_to_a_licence_grants_nothing() {
        let texts = [
            "Licensed under the Apache License, Version 2.0, or the MIT license, at your option.",
            "../LICENCE-MIT",
        ];
        assert_eq!(granted(texts.into_iter()), BTreeSet::new());
        let ours = include_str!("../../../LICENSE");
        assert_eq!(granted([ours].into_iter()), BTreeSet::from(["Apache-2.0"]));
    }
}
