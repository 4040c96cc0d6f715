use super::*;
use crate::syntax::tests::sources;

/// A function of so many lines.
fn function(name: &str, lines: usize) -> String {
    format!(
        "async fn {name}() {{\n{}}}\n",
        "    g();\n".repeat(lines - 2)
    )
}

fn long(text: &str) -> Vec<String> {
    let sources = sources(&[
        ("crates/a/src/lib.rs", "mod b;\nmod c;"),
        ("crates/a/src/b.rs", text),
        ("crates/a/src/c.rs", &function("step", 41)),
    ]);
    too_long(&sources, &Names::from_sources(&sources))
}

#[test]
fn a_long_reconciler_is_found_however_it_is_passed() {
    let step = function("step", 41);
    let closure = format!("|object, ctx| {{\n{}}}", "    g();\n".repeat(39));
    for text in [
        function("reconcile", 41),
        format!("impl A {{\n{}}}", function("reconcile", 41)),
        format!("use operator::controller;\nfn f() {{ controller::run(c, step, x, y); }}\n{step}"),
        format!(
            "use operator::controller::run as start;\nfn f() {{ start(c, self::step, x, y); }}\n{step}"
        ),
        format!(
            "use operator::{{controller as runner}};\nfn f() {{ runner::run(c, step, x, y); }}\n{step}"
        ),
        "fn f() { operator::controller::run(c, crate::c::step, x, y); }".to_owned(),
        "use crate::c;\nfn f() { operator::controller::run(a, c::step, x, y); }".to_owned(),
        format!("fn f() {{ operator::controller::run(c, {closure}, x, y); }}"),
        format!("fn f() {{ let step = {closure};\noperator::controller::run(c, step, x, y); }}"),
    ] {
        let found = long(&text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].contains("41 lines"), "{found:?}");
    }
}

#[test]
fn short_reconcilers_and_other_functions_are_not_found() {
    for text in [
        function("reconcile", 40),
        function("reconciled", 41),
        format!(
            "/// Long.\n/// Documentation.\n#[tracing::instrument]\n{}",
            function("reconcile", 40)
        ),
        format!(
            "fn f() {{ controller::run(c, step, x, y); }}\n{}",
            function("step", 41)
        ),
        format!("#[cfg(test)]\n{}", function("reconcile", 41)),
        format!(
            "fn f() {{ operator::controller::run(c, step, x, y); }}\n{}",
            function("step", 40)
        ),
    ] {
        assert_eq!(long(&text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_reconciler_that_cannot_be_measured_is_found() {
    for argument in ["steps.first()", "elsewhere::step", "step"] {
        let found = long(&format!(
            "fn f() {{ operator::controller::run(c, {argument}, x, y); }}"
        ));
        assert_eq!(found.len(), 1, "{argument}: {found:?}");
        assert!(found[0].contains("as a function or a closure"), "{found:?}");
    }
}

#[test]
fn a_crate_whose_controllers_are_not_found_is_found() {
    let run = "fn f() { operator::controller::run(c, |x| x, x, y); }";
    let files: Vec<String> = CONTROLLERS
        .iter()
        .map(|krate| format!("crates/{krate}/src/lib.rs"))
        .collect();
    let mut all: Vec<(&str, &str)> = files.iter().map(|name| (name.as_str(), run)).collect();
    let broken_by = |files: &[(&str, &str)]| {
        let sources = sources(files);
        broken(&sources, &Names::from_sources(&sources))
    };
    assert_eq!(broken_by(&all), Vec::<String>::new());
    all.push(("crates/new/src/lib.rs", run));
    assert_eq!(broken_by(&all).len(), 1);
    all.pop();
    all.pop();
    assert_eq!(broken_by(&all).len(), 1);
}
