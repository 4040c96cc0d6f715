use super::*;

/// As kubeadm writes it, with a further server.
pub(crate) const COREFILE: &str = r#"# of the cluster
.:53 {
    errors
    health {
       lameduck 5s
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure # as before
       upstream
       fallthrough in-addr.arpa ip6.arpa
    }
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
}
example.org {
    template IN A {
       answer "{{ .Name }} 60 IN A 10.0.0.1"
       upstream
    }
    federation cluster.local {
       upstream
    }
    log
}
"#;

#[test]
fn a_corefile_is_written_as_it_was_read() {
    for text in [
        COREFILE,
        "",
        "import x\n",
        "(snippet) {\n\tlog\n}\n. {\n\timport snippet\n}\n",
    ] {
        assert_eq!(Corefile::read(text).unwrap().to_string(), text);
    }
}

#[test]
fn plugins_and_options_are_found_in_every_server() {
    let file = Corefile::read(COREFILE).unwrap();
    for (plugin, option, expected) in [
        ("errors", None, vec![2]),
        ("kubernetes", Some("upstream"), vec![8]),
        ("kubernetes", Some("answer"), vec![]),
        ("template", Some("upstream"), vec![19]),
        ("federation", None, vec![21]),
        ("upstream", None, vec![]),
        ("example.org", None, vec![]),
    ] {
        assert_eq!(file.find(plugin, option), expected, "{plugin} {option:?}");
    }
}

#[test]
fn a_line_is_removed_with_its_block_and_nothing_else() {
    let mut file = Corefile::read(COREFILE).unwrap();
    file.remove(21);
    file.remove(8);
    let expected = COREFILE.replacen("       upstream\n", "", 1).replace(
        "    federation cluster.local {\n       upstream\n    }\n",
        "",
    );
    assert_eq!(file.to_string(), expected);
}

#[test]
fn what_is_no_corefile_is_an_error_with_its_line() {
    for (text, expected) in [
        (". {\n", NotACorefile::Open(1)),
        (". {\nlog {\n}\n", NotACorefile::Open(1)),
        (". {\n}\n}\n", NotACorefile::Closed(3)),
        (". { log }\n", NotACorefile::Brace(1)),
        (". {\n} log\n", NotACorefile::Brace(2)),
        (". {\nanswer \"a\n}\n", NotACorefile::Quote(2)),
    ] {
        assert_eq!(Corefile::read(text), Err(expected), "{text}");
    }
    // Not braces of blocks.
    for text in [
        ". {\n a \"{\" \"}\"\n b {$X} # {\n}\n",
        ". {\n a \"x\n}\n\"\n}\n",
    ] {
        assert!(Corefile::read(text).is_ok(), "{text}");
    }
}
