//! Sources of the workspace, reduced to the facts that rules need.
//!
//! - [`reader`]: a file as modules, imports, paths, functions, and lines of tests
//! - [`tokens`]: paths in macros and attributes
//! - [`names`]: a path in a module, resolved to all its targets through imports and re-exports

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

pub(crate) use names::Names;

mod names;
mod reader;
mod tokens;

/// Name from the crate down, such as `["simulator", "guest", "Outside"]`; for an external crate, beginning with its
/// name.
pub(crate) type Absolute = Vec<String>;

/// Rust file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path of the file from the root of the workspace.
    pub(crate) name: String,
    pub(crate) text: String,
    /// Module of the file; `None` outside of a directory `src`.
    pub(crate) module: Option<Absolute>,
    /// Content; empty if `error` is set.
    pub(crate) content: Content,
    pub(crate) error: Option<String>,
}

/// Content of a file. Test code counts only with its lines and modules.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Ranges of lines compiled for tests alone, counted from one.
    pub(crate) tests: Vec<RangeInclusive<usize>>,
    /// Modules declared in the file, inline or not.
    pub(crate) modules: Vec<Declared>,
    pub(crate) imports: Vec<Import>,
    /// Paths, including the ones in imports, macros and attributes.
    pub(crate) paths: Vec<Path>,
    pub(crate) functions: Vec<Function>,
    pub(crate) calls: Vec<Call>,
}

#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) line: usize,
    /// Absolute name of the module.
    pub(crate) module: Absolute,
    /// True for a module in a separate file.
    pub(crate) is_file: bool,
    pub(crate) is_test: bool,
}

#[derive(Debug)]
pub(crate) struct Import {
    /// Module with the import.
    pub(crate) module: Absolute,
    /// Imported name; `None` for a glob.
    pub(crate) name: Option<String>,
    pub(crate) path: Written,
}

/// Path in a module.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) line: usize,
    pub(crate) module: Absolute,
    pub(crate) path: Written,
    pub(crate) is_glob: bool,
}

/// Path as written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Written {
    /// True if the path begins with `::`.
    pub(crate) is_external: bool,
    /// Segments without generic arguments, at least one.
    pub(crate) segments: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) module: Absolute,
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Number of lines, from the signature to the closing brace.
    pub(crate) lines: usize,
}

/// Call of a function by its path, with at least two arguments.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) line: usize,
    pub(crate) module: Absolute,
    pub(crate) callee: Written,
    /// Second argument.
    pub(crate) second: Argument,
}

#[derive(Debug)]
pub(crate) enum Argument {
    Path(Written),
    /// Closure, in place or in a variable of the function.
    Closure {
        line: usize,
        lines: usize,
    },
    Other,
}

impl Source {
    pub(crate) fn new(name: &str, text: String) -> Self {
        let module = module_of(name);
        let (content, error) = match reader::read(&text, module.clone().unwrap_or_default()) {
            Ok(content) => (content, None),
            Err(error) => (Content::default(), Some(error.to_string())),
        };
        Self {
            name: name.to_owned(),
            text,
            module,
            content,
            error,
        }
    }

    /// True if the line, counted from one, is compiled for tests alone.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.content.tests.iter().any(|range| range.contains(&line))
    }

    /// True if the file is tests or an example, by its name.
    pub(crate) fn is_test(&self) -> bool {
        is_test(&self.name)
    }
}

/// True if a file is tests or an example, by its name. tidy rejects modules of tests with other names.
pub(crate) fn is_test(name: &str) -> bool {
    let dirs = ["/tests/", "/examples/"];
    name.ends_with("/tests.rs") || dirs.iter().any(|dir| name.contains(dir))
}

/// Module of a file, by its name.
fn module_of(name: &str) -> Option<Absolute> {
    let (krate, file) = name.split_once("/src/")?;
    let krate = krate.strip_prefix("crates/").unwrap_or(krate);
    let file = file.strip_suffix(".rs")?;
    let mut module = vec![krate.to_owned()];
    if !matches!(file, "lib" | "main") {
        module.extend(file.split('/').map(str::to_owned));
    }
    Some(module)
}

/// Production code of the workspace: [`Source`]s in `src` other than tests.
pub(crate) fn production(sources: &[Source]) -> impl Iterator<Item = (&Source, &Absolute)> {
    let files = sources.iter().filter(|source| !source.is_test());
    files.filter_map(|source| Some((source, source.module.as_ref()?)))
}

/// Names of the crates of `sources`.
pub(crate) fn crates(sources: &[Source]) -> BTreeSet<&str> {
    production(sources)
        .filter_map(|(_, module)| Some(module.first()?.as_str()))
        .collect()
}

/// Name in the form of rules and messages.
pub(crate) fn joined(name: &[String]) -> String {
    name.join("::")
}

/// True if a name is `start`, in the form of rules, or is inside it.
pub(crate) fn begins_with(name: &[String], start: &str) -> bool {
    let mut segments = name.iter();
    start
        .split("::")
        .all(|part| segments.next().is_some_and(|segment| segment == part))
}

#[cfg(test)]
pub(crate) mod tests;
