//! Line numbers of the fields of a YAML document.

use std::collections::BTreeMap;

use serde_saphyr::granit_parser::{Event, Parser};

/// Line of every field path, such as `spec.subnets[0].cidr`, in a [`Document`](crate::Document).
#[derive(Clone, Debug, Default)]
pub struct Lines {
    by_path: BTreeMap<String, usize>,
    first: usize,
    prefix: String,
}

impl Lines {
    /// Lines of `text`, with `first` as the number of the first line. A malformed document has the lines before its
    /// error.
    pub fn new(text: &str, first: usize) -> Self {
        let mut walk = Walk::default();
        for step in Parser::new_from_str(text) {
            let Ok((event, span)) = step else { break };
            walk.take(&event, first + span.start.line().saturating_sub(1));
        }
        let first = walk.by_path.get("").copied().unwrap_or(first);
        Self {
            by_path: walk.by_path,
            first,
            prefix: String::new(),
        }
    }

    /// Line of `path`, or of the nearest existing parent.
    pub fn of(&self, path: &str) -> usize {
        let mut path = match (self.prefix.is_empty(), path.is_empty()) {
            (true, _) => path.to_owned(),
            (false, true) => self.prefix.clone(),
            (false, false) => format!("{}.{path}", self.prefix),
        };
        loop {
            if let Some(line) = self.by_path.get(&path) {
                return *line;
            }
            match path.rfind(['.', '[']) {
                Some(cut) => path.truncate(cut),
                None => return self.first,
            }
        }
    }

    /// The same lines, with paths relative to the field at `path`.
    pub fn below(&self, path: &str) -> Self {
        let prefix = if self.prefix.is_empty() {
            path.to_owned()
        } else {
            format!("{}.{path}", self.prefix)
        };
        Self {
            prefix,
            ..self.clone()
        }
    }
}

/// State of the iteration through the [`Event`]s of a document.
#[derive(Default)]
struct Walk {
    open: Vec<Open>,
    by_path: BTreeMap<String, usize>,
}

enum Open {
    Mapping { path: String, key: Option<String> },
    Sequence { path: String, next: usize },
}

impl Walk {
    fn take(&mut self, event: &Event<'_>, line: usize) {
        match event {
            Event::Scalar(text, ..) => self.scalar(text, line),
            Event::Alias(..) => self.scalar("", line),
            Event::MappingStart(..) => {
                let path = self.value(line);
                self.open.push(Open::Mapping { path, key: None });
            }
            Event::SequenceStart(..) => {
                let path = self.value(line);
                self.open.push(Open::Sequence { path, next: 0 });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                self.open.pop();
            }
            _ => {}
        }
    }

    fn scalar(&mut self, text: &str, line: usize) {
        if let Some(Open::Mapping {
            path,
            key: key @ None,
        }) = self.open.last_mut()
        {
            let full = if path.is_empty() {
                text.to_owned()
            } else {
                format!("{path}.{text}")
            };
            self.by_path.entry(full).or_insert(line);
            *key = Some(text.to_owned());
        } else {
            self.value(line);
        }
    }

    /// Records the begin of a value; returns the path.
    fn value(&mut self, line: usize) -> String {
        let path = match self.open.last_mut() {
            None => String::new(),
            Some(Open::Mapping { path, key }) => {
                let key = key.take().unwrap_or_default();
                if path.is_empty() {
                    key
                } else {
                    format!("{path}.{key}")
                }
            }
            Some(Open::Sequence { path, next }) => {
                *next += 1;
                format!("{path}[{}]", *next - 1)
            }
        };
        self.by_path.entry(path.clone()).or_insert(line);
        path
    }
}
