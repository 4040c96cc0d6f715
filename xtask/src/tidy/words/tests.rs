//! The words of doc comments are counted, and the list can only become stricter.

use super::*;

fn source(text: &str) -> Source {
    Source::new("crates/a/src/b.rs", text.to_owned())
}

fn counts_of(text: &str) -> Counts {
    counts(&[source(text)])["a"]
}

fn list(limits: Limits) -> BTreeMap<String, Limits> {
    BTreeMap::from([("a".to_owned(), limits)])
}

/// Problems of a source, with limits for its crate.
fn problems(text: &str, limits: Limits) -> Vec<String> {
    differences(&counts(&[source(text)]), &list(limits))
}

/// Eleven words, two pronouns, one link, one line with a relative clause for a subject.
const TEXT: &str = "/// What a [`Pod`] runs on the first boot of its node.\nstruct A;\n";
const OF_TEXT: Limits = Limits {
    pronouns: 182,
    links: 909,
    openings: 1,
};

#[test]
fn words_pronouns_links_and_openings_are_counted_in_doc_comments_alone() {
    let counts = Counts {
        words: 11,
        pronouns: 2,
        links: 1,
        openings: 1,
    };
    assert_eq!(counts_of(TEXT), counts);
    assert_eq!(counts.limits(), OF_TEXT);
    for more in [
        "// What it is.\n",
        "//// What it is.\n",
        "/// ```\n/// What it is.\n/// ```\n",
        "#[cfg(test)]\nmod tests {\n    /// What it is.\n    fn f() {}\n}\n",
    ] {
        assert_eq!(counts_of(&format!("{more}{TEXT}")), counts, "{more}");
    }
    // A name in backticks is a word and no pronoun.
    assert_eq!(counts_of("//! `that this`\n").words, 1);
    assert_eq!(counts_of("//! `that this`\n").pronouns, 0);
    assert_eq!(counts_of("/// Whatever is left.\nfn f() {}\n").openings, 0);
}

#[test]
fn tests_and_generated_sources_do_not_count() {
    for name in [
        "crates/a/src/b/tests.rs",
        "crates/a/tests/b.rs",
        "crates/a/src/generated/b.rs",
    ] {
        let source = Source::new(name, TEXT.to_owned());
        assert_eq!(counts(&[source]), BTreeMap::new(), "{name}");
    }
}

#[test]
fn a_crate_as_listed_is_accepted() {
    assert_eq!(problems(TEXT, OF_TEXT), Vec::<String>::new());
}

#[test]
fn each_count_that_is_worse_than_listed_is_found() {
    for (limits, words) in [
        (
            Limits {
                pronouns: OF_TEXT.pronouns - 4,
                ..OF_TEXT
            },
            "18.2 pronouns in 100 words of doc comments, and 17.8 at most",
        ),
        (
            Limits {
                links: OF_TEXT.links + 6,
                ..OF_TEXT
            },
            "90.9 links in 1,000 words of doc comments, and 91.5 at least",
        ),
        (
            Limits {
                openings: 0,
                ..OF_TEXT
            },
            "1 lines of doc comments begin with What, Whether, Those, That, and 0 at most",
        ),
    ] {
        let problems = problems(TEXT, limits);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(words), "{problems:?}");
    }
}

#[test]
fn a_ratio_may_move_a_little_with_words_of_other_kinds() {
    let limits = Limits {
        pronouns: OF_TEXT.pronouns - 3,
        links: OF_TEXT.links + 5,
        ..OF_TEXT
    };
    assert_eq!(problems(TEXT, limits), Vec::<String>::new());
}

#[test]
fn a_crate_that_is_not_listed_has_to_reach_the_target() {
    let found = differences(&counts(&[source(TEXT)]), &BTreeMap::new());
    assert_eq!(found.len(), 2, "{found:?}");
    let good = "/// Containers of a [`Pod`].\nstruct A;\n";
    let found = differences(&counts(&[source(good)]), &BTreeMap::new());
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn an_entry_follows_a_crate_that_has_become_better() {
    for limits in [
        Limits {
            pronouns: OF_TEXT.pronouns + SLACK.pronouns,
            ..OF_TEXT
        },
        Limits {
            links: OF_TEXT.links - SLACK.links,
            ..OF_TEXT
        },
        Limits {
            openings: OF_TEXT.openings + SLACK.openings,
            ..OF_TEXT
        },
    ] {
        let problems = problems(TEXT, limits);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("--lower"), "{problems:?}");
        let lowered = lowered(&counts(&[source(TEXT)]), &list(limits));
        assert_eq!(lowered, list(OF_TEXT));
    }
    // A crate that has reached the target, and one that is gone.
    let good = "/// Containers of a [`Pod`].\nstruct A;\n";
    assert_eq!(problems(good, TARGET).len(), 1);
    assert_eq!(differences(&BTreeMap::new(), &list(OF_TEXT)).len(), 1);
}

#[test]
fn lowering_raises_no_entry() {
    let strict = Limits {
        pronouns: 10,
        links: 2_000,
        openings: 0,
    };
    let crates = counts(&[source(TEXT)]);
    assert_eq!(lowered(&crates, &list(strict)), list(strict));
    assert_eq!(lowered(&crates, &BTreeMap::new()), BTreeMap::new());
}

#[test]
fn the_list_is_read_as_it_is_written() {
    let text = written(&list(OF_TEXT));
    assert_eq!(parsed(&text).unwrap(), list(OF_TEXT));
    for wrong in [
        "a",
        "a 1.5 2.0",
        "a 1.5 2.0 3 4",
        "a 1 2.0 3",
        "a 1.15 2.0 3",
        "a x.1 2.0 3",
    ] {
        assert!(parsed(wrong).is_err(), "{wrong}");
    }
}
