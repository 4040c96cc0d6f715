//! Limit on the length of reconcilers, so that each reads as a list of steps.

use std::collections::{BTreeMap, BTreeSet};

use crate::syntax::{self, Absolute, Argument, Function, Names, Source};

/// Maximum number of lines of a reconciler, from its signature to its closing brace.
const LONGEST: usize = 40;
/// Function that runs a controller, with the reconciler as second argument.
const RUNNER: &str = "operator::controller::run";
/// Crates with controllers.
const CONTROLLERS: [&str; 4] = ["ccm", "clusterapi", "provider", "rollout"];

/// Functions above the limit that are named `reconcile` or run by a controller; and crates in which no controller was
/// found.
pub(super) fn broken(sources: &[Source], names: &Names) -> Vec<String> {
    let mut problems = too_long(sources, names);
    let found = controllers(sources, names);
    let missing = CONTROLLERS.iter().filter(|krate| !found.contains(**krate));
    problems.extend(missing.map(|krate| {
        format!(
            "crate {krate}: no call of {RUNNER}: if its controllers run otherwise, say so in xtask/src/invariants/reconcilers.rs"
        )
    }));
    let unlisted = found.iter().filter(|krate| !CONTROLLERS.contains(krate));
    problems.extend(unlisted.map(|krate| {
        format!("crate {krate} has controllers: list it in xtask/src/invariants/reconcilers.rs")
    }));
    problems
}

/// Crates that run controllers.
fn controllers<'a>(sources: &'a [Source], names: &Names) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for (source, module) in syntax::production(sources) {
        let calls = source.content.calls.iter();
        if calls
            .clone()
            .any(|call| runs_controller(&call.module, &call.callee, names))
        {
            found.extend(module.first().map(String::as_str));
        }
    }
    found
}

fn runs_controller(module: &[String], callee: &syntax::Written, names: &Names) -> bool {
    let named = names.named(module, callee);
    // The crate of the runner has no controllers.
    module[0] != "operator" && named.iter().any(|name| syntax::joined(name) == RUNNER)
}

fn too_long(sources: &[Source], names: &Names) -> Vec<String> {
    let mut functions: BTreeMap<Absolute, (&Source, &Function)> = BTreeMap::new();
    for (source, _) in syntax::production(sources) {
        for function in &source.content.functions {
            let mut name = function.module.clone();
            name.push(function.name.clone());
            functions.insert(name, (source, function));
        }
    }
    let mut problems = BTreeSet::new();
    let mut check = |source: &Source, what: &str, line: usize, lines: usize| {
        if lines > LONGEST {
            problems.insert(format!(
                "{}:{line}: {what} has {lines} lines, and a reconciler at most {LONGEST}, which read as a list (ARCHITECTURE.md)",
                source.name
            ));
        }
    };
    let mut unread = Vec::new();
    for (source, _) in syntax::production(sources) {
        for function in &source.content.functions {
            if function.name == "reconcile" {
                check(source, "`reconcile`", function.line, function.lines);
            }
        }
        for call in &source.content.calls {
            if !runs_controller(&call.module, &call.callee, names) {
                continue;
            }
            match &call.second {
                Argument::Closure { line, lines } => check(source, "a reconciler", *line, *lines),
                Argument::Path(path) => {
                    let mut named = names.named(&call.module, path);
                    named.push([&call.module[..], &path.segments[..]].concat());
                    match named.iter().find_map(|name| functions.get(name)) {
                        Some((source, function)) => {
                            let what = format!("`{}`", function.name);
                            check(source, &what, function.line, function.lines);
                        }
                        None => unread.push(format!("{}:{}", source.name, call.line)),
                    }
                }
                Argument::Other => unread.push(format!("{}:{}", source.name, call.line)),
            }
        }
    }
    let unread = unread.into_iter().map(|place| {
        format!("{place}: pass the reconciler as a function or a closure, so that its length can be checked")
    });
    problems.into_iter().chain(unread).collect()
}

#[cfg(test)]
mod tests;
