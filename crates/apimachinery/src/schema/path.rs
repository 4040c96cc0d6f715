//! The path of a value in an object or a schema, cheap to extend during a walk.

use std::fmt::Write as _;

/// Path as a chain of borrowed elements; allocates only when printed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    /// Returns the path of a declared field.
    pub(crate) fn field(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    /// Returns the path of a key of a map.
    pub(crate) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }

    /// Returns the path of an item of a list.
    pub(crate) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    /// Formats the path like `field.Path`: `spec.labels[app]`.
    pub(crate) fn bracketed(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, true);
        text
    }

    /// Formats the path like the OpenAPI validator and pruning: `spec.labels.app`.
    pub(crate) fn dotted(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, false);
        text
    }

    fn write(&self, text: &mut String, brackets: bool) {
        match self {
            Path::Root => {}
            Path::Key(parent, key) if brackets => {
                parent.write(text, brackets);
                let _ = write!(text, "[{key}]"); // writing to a String cannot fail
            }
            Path::Field(parent, name) | Path::Key(parent, name) => {
                parent.write(text, brackets);
                // The reference writes `.key` even at the root.
                if !text.is_empty() || matches!(self, Path::Key(..)) {
                    text.push('.');
                }
                text.push_str(name);
            }
            Path::Index(parent, index) => {
                parent.write(text, brackets);
                let _ = write!(text, "[{index}]");
            }
        }
    }
}
