use super::super::corefile::tests::COREFILE;
use super::*;

#[test]
fn tables_are_in_order_and_name_known_releases() {
    assert!(RELEASES.is_sorted());
    assert!(OF_KUBERNETES.is_sorted());
    for (minor, release) in OF_KUBERNETES {
        assert!(RELEASES.contains(&release), "1.{minor}");
    }
    for removal in &REMOVALS {
        assert!(RELEASES.contains(&removal.since), "{}", name(removal));
    }
    assert_eq!(of_kubernetes(34), Some((1, 12, 1)));
    assert_eq!(of_kubernetes(99), None);
}

#[test]
fn what_has_no_effect_any_more_is_removed() {
    let expected = COREFILE.replacen("       upstream\n", "", 1).replace(
        "    federation cluster.local {\n       upstream\n    }\n",
        "",
    );
    assert_eq!(migrate(COREFILE, (1, 6, 7), (1, 13, 1)).unwrap(), expected);
    // Once more: nothing.
    assert_eq!(migrate(&expected, (1, 6, 7), (1, 13, 1)).unwrap(), expected);
    // Between releases without a change, everything stays.
    for (from, to) in [((1, 6, 5), (1, 6, 9)), ((1, 7, 0), (1, 13, 1))] {
        assert_eq!(migrate(COREFILE, from, to).unwrap(), COREFILE);
    }
}

#[test]
fn what_cannot_be_migrated_is_an_error_that_says_what_to_do() {
    let corefile =
        |option: &str| format!(". {{\n    kubernetes {{\n        {option}\n    }}\n}}\n");
    for (text, from, to, words) in [
        (
            corefile("transfer to *"),
            (1, 7, 1),
            (1, 8, 0),
            "needs a plugin transfer",
        ),
        (corefile("ttl 30"), (1, 8, 0), (1, 7, 1), "backwards"),
        (
            corefile("ttl 30"),
            (1, 8, 0),
            (1, 99, 0),
            "CoreDNS 1.99.0 is not known here",
        ),
        (
            corefile("ttl 30"),
            (1, 3, 1),
            (1, 8, 0),
            "CoreDNS 1.3.1 is not known here",
        ),
        (
            ". {\n".to_owned(),
            (1, 8, 0),
            (1, 13, 1),
            "line 1: the block does not end",
        ),
    ] {
        let error = migrate(&text, from, to).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    // The same release needs no migration, even an unknown one.
    assert_eq!(migrate("}", (9, 9, 9), (9, 9, 9)).unwrap(), "}");
}
