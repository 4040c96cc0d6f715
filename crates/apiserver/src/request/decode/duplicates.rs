//! Detection of duplicate fields while a body is decoded.
//!
//! The cost of decoding is linear in the length of the body: a path is a chain of borrowed elements, and is printed
//! only for the rare report.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use apimachinery::schema::MAX_REPORTED;

/// Duplicate fields, each once.
#[derive(Debug, Default)]
pub(super) struct Duplicates {
    found: Vec<String>,
    seen: HashSet<u64>,
}

impl Duplicates {
    pub(super) fn note(&mut self, path: &Path<'_>) {
        if self.found.len() < MAX_REPORTED && self.seen.insert(path.hash()) {
            let text = path.to_string();
            count(text.len());
            self.found.push(text);
        }
    }

    pub(super) fn into_paths(self) -> Vec<String> {
        self.found
    }
}

/// Path of a value: a chain of elements up to the root.
#[derive(Debug)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
    /// Computed once, so that each element is hashed once, however many fields are below.
    hash: OnceCell<u64>,
}

#[derive(Debug, Hash)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Item(usize),
}

impl<'a> Path<'a> {
    pub(super) fn root() -> Self {
        Self::new(None, Step::Root)
    }

    pub(super) fn field(&'a self, name: &'a str) -> Path<'a> {
        Self::new(Some(self), Step::Field(name))
    }

    pub(super) fn item(&'a self, index: usize) -> Path<'a> {
        Self::new(Some(self), Step::Item(index))
    }

    fn new(parent: Option<&'a Path<'a>>, step: Step<'a>) -> Self {
        Self {
            parent,
            step,
            hash: OnceCell::new(),
        }
    }

    fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| {
            if let Step::Field(name) = self.step {
                count(name.len());
            }
            let mut hasher = DefaultHasher::new();
            self.parent.map(Path::hash).hash(&mut hasher);
            self.step.hash(&mut hasher);
            hasher.finish()
        })
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) => {
                if self.parent.is_some_and(|parent| parent.parent.is_some()) {
                    f.write_char('.')?;
                }
                f.write_str(name)
            }
            Step::Item(index) => write!(f, "[{index}]"),
        }
    }
}

/// Counts bytes copied or hashed in addition to reading the body.
fn count(_bytes: usize) {
    #[cfg(test)]
    tests::STEPS.with(|steps| steps.set(steps.get() + _bytes));
}

#[cfg(test)]
mod tests;
