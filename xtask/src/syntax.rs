//! The sources of the workspace, reduced to what the rules ask about.
//!
//! ```text
//!   reader   a file → its modules, imports, paths, functions, and which lines are tests
//!   tokens   the paths in macros and attributes
//!   names    a path as it is written in a module → everything that it names, through imports and re-exports
//! ```

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

pub(crate) use names::Names;

mod names;
mod reader;
mod tokens;

/// A name from the crate down, such as `["simulator", "guest", "Outside"]`; the first of an external crate is its name.
pub(crate) type Absolute = Vec<String>;

/// A Rust file.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path of the file from the root of the workspace.
    pub(crate) name: String,
    pub(crate) text: String,
    /// The module of the file; `None` outside of a directory `src`.
    pub(crate) module: Option<Absolute>,
    /// What is in it; empty when `error` says why it cannot be read.
    pub(crate) content: Content,
    pub(crate) error: Option<String>,
}

/// What is in a file. Of test code there is nothing but its lines, and its modules.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// The lines of items and statements that are compiled for tests alone, counted from one.
    pub(crate) tests: Vec<RangeInclusive<usize>>,
    /// Modules that are declared in the file, inline or not.
    pub(crate) modules: Vec<Declared>,
    pub(crate) imports: Vec<Import>,
    /// Paths, with those in imports, macros and attributes.
    pub(crate) paths: Vec<Path>,
    pub(crate) functions: Vec<Function>,
    pub(crate) calls: Vec<Call>,
}

#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) line: usize,
    /// The whole name of the module.
    pub(crate) module: Absolute,
    /// Whether it is in a file of its own.
    pub(crate) is_file: bool,
    pub(crate) is_test: bool,
}

#[derive(Debug)]
pub(crate) struct Import {
    /// The module that imports.
    pub(crate) module: Absolute,
    /// The name that it gets there; `None` of a glob.
    pub(crate) name: Option<String>,
    pub(crate) path: Written,
}

/// A path in a module.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) line: usize,
    pub(crate) module: Absolute,
    pub(crate) path: Written,
    pub(crate) is_glob: bool,
}

/// A path as it is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Written {
    /// Whether it begins with `::`.
    pub(crate) is_external: bool,
    /// At least one, without arguments.
    pub(crate) segments: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) module: Absolute,
    pub(crate) name: String,
    pub(crate) line: usize,
    /// From the first line of the signature to the closing brace.
    pub(crate) lines: usize,
}

/// A call of a function by its path, with two arguments or more.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) line: usize,
    pub(crate) module: Absolute,
    pub(crate) callee: Written,
    /// The second argument.
    pub(crate) second: Argument,
}

#[derive(Debug)]
pub(crate) enum Argument {
    Path(Written),
    /// A closure, there or in a variable of the function.
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

    /// Whether a line, counted from one, is compiled for tests alone.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.content.tests.iter().any(|range| range.contains(&line))
    }

    /// Whether the whole file is tests or an example, by its name.
    pub(crate) fn is_test(&self) -> bool {
        is_test(&self.name)
    }
}

/// Whether a file is tests or an example, by its name. tidy rejects modules of tests with other names.
pub(crate) fn is_test(name: &str) -> bool {
    let dirs = ["/tests/", "/examples/"];
    name.ends_with("/tests.rs") || dirs.iter().any(|dir| name.contains(dir))
}

/// The module of a file.
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

/// The production code of the workspace: sources in `src` that are not tests.
pub(crate) fn production(sources: &[Source]) -> impl Iterator<Item = (&Source, &Absolute)> {
    let files = sources.iter().filter(|source| !source.is_test());
    files.filter_map(|source| Some((source, source.module.as_ref()?)))
}

/// The names of the crates of `sources`.
pub(crate) fn crates(sources: &[Source]) -> BTreeSet<&str> {
    production(sources)
        .filter_map(|(_, module)| Some(module.first()?.as_str()))
        .collect()
}

/// How a name is written in a rule and in a message.
pub(crate) fn joined(name: &[String]) -> String {
    name.join("::")
}

/// Whether a name is `start`, as a rule has it, or something in it.
pub(crate) fn begins_with(name: &[String], start: &str) -> bool {
    let mut segments = name.iter();
    start
        .split("::")
        .all(|part| segments.next().is_some_and(|segment| segment == part))
}

#[cfg(test)]
pub(crate) mod tests;
