//! Compilation of entries to rules.

use std::collections::HashSet;
use std::sync::Arc;

use super::definition::{Definition, lower};
use super::entry::{Entry, Match, Path, Permissions, Resource};
use super::rule::{MatchKind, Matcher, Rule, Users, Verbs, What, Who};
use super::strict::Target;
use super::{Findings, Mode, PROJECTS, ROLES};
use crate::document::Location;

/// [`Rule`]s of entries, in order.
pub(super) fn rules(entries: &[Entry], mode: Mode, findings: &mut Findings<'_>) -> Vec<Rule> {
    let mut compiling = Compiling {
        mode,
        lines: Lines::new(findings.text),
        rules: Vec::new(),
        findings,
    };
    for (index, entry) in entries.iter().enumerate() {
        compiling.entry(index + 1, entry);
    }
    compiling.rules
}

struct Compiling<'a, 'text> {
    mode: Mode,
    lines: Lines,
    rules: Vec<Rule>,
    findings: &'a mut Findings<'text>,
}

impl Compiling<'_, '_> {
    fn entry(&mut self, number: usize, entry: &Entry) {
        let second = entry.resources.is_some() || entry.nonresources.is_some();
        let first = entry.resource.is_some() || entry.nonresource.is_some();
        match (second, first) {
            (false, false) => self.doubt(entry.offset, "this entry has no permissions"),
            (true, true) => self.doubt(
                entry.offset,
                "this entry is of both versions: write two, one of each",
            ),
            _ => {}
        }
        if entry.resource.is_some() && entry.nonresource.is_some() {
            self.doubt(
                entry.offset,
                "write `resource` and `nonresource` as two entries",
            );
        }
        let who = Arc::new(self.who(entry, first && !second));
        // Version 2 comes first, and hides permissions of version 1 of the same kind.
        if let Some(permissions) = &entry.resources {
            self.resources(number, permissions, &who);
        } else if let Some(resource) = &entry.resource {
            let what = self.first(resource);
            self.add(number, resource.offset, words_of(resource), what, &who);
        }
        if let Some(permissions) = &entry.nonresources {
            for (key, verbs) in permissions {
                let what = What::SecondPath {
                    path: key.name.clone(),
                    verbs: Verbs(verbs.iter().cloned().collect()),
                };
                self.verbs(key.offset, verbs);
                self.add(number, key.offset, words(&key.name, verbs), what, &who);
            }
        } else if let Some(path) = &entry.nonresource {
            let what = self.first_path(path);
            let words = words(path.path.as_deref().unwrap_or_default(), &path.verbs);
            self.add(number, path.offset, words, what, &who);
        }
    }

    /// Users of an entry. `first`: true for version 1, with the users in `match`.
    fn who(&mut self, entry: &Entry, first: bool) -> Who {
        if first && entry.matches.as_ref().is_none_or(Vec::is_empty) {
            self.doubt(entry.offset, "without `match` this entry is for everybody");
        }
        if !first && entry.users.is_none() {
            self.doubt(entry.offset, "without `users` this entry is for everybody");
        }
        let users = entry
            .users
            .as_ref()
            .map(|users| self.users(entry.offset, users));
        let matches = entry.matches.iter().flatten();
        let matches = matches.map(|it| self.matcher(it)).collect();
        Who { users, matches }
    }

    fn users(&mut self, offset: usize, users: &Permissions) -> Users {
        let values = |name: &str| {
            let found = users.iter().find(|(key, _)| key.name == name);
            found.map_or(&[][..], |(_, values)| values.as_slice())
        };
        for (key, values) in users {
            for value in values {
                if value.is_empty() || value.starts_with('$') || value == "*" {
                    let message = format!(
                        "`{value}` of `{}` is not filled in: no user has it",
                        key.name
                    );
                    self.doubt(key.offset, message);
                }
            }
        }
        if values(PROJECTS).is_empty() {
            self.doubt(
                offset,
                "without projects in `users` this entry is for nobody",
            );
        }
        Users {
            roles: values(ROLES).to_vec(),
            projects: values(PROJECTS).iter().cloned().collect(),
        }
    }

    fn matcher(&mut self, it: &Match) -> Matcher {
        let kind = match it.kind.as_str() {
            "user" => MatchKind::User,
            "group" => MatchKind::Group,
            "project" => MatchKind::Project,
            "role" => MatchKind::Role,
            other => {
                let message = format!(
                    "`{other}` is no type of `match`, so that this entry is for nobody: there are user, group, project and role"
                );
                self.doubt(it.offset, message);
                MatchKind::Unknown
            }
        };
        if it.values.is_empty() {
            self.doubt(it.offset, "without values this is for nobody");
        }
        let values: HashSet<String> = it.values.iter().cloned().collect();
        let values = (!values.contains("*")).then_some(values);
        Matcher { kind, values }
    }

    fn resources(&mut self, number: usize, permissions: &Permissions, who: &Arc<Who>) {
        for (key, verbs) in permissions {
            let what = match self.mode {
                Mode::Compatible => self.second(key.offset, &key.name, verbs),
                Mode::Strict => self.strict(key.offset, &key.name, verbs),
            };
            self.verbs(key.offset, verbs);
            self.add(number, key.offset, words(&key.name, verbs), what, who);
        }
    }

    fn second(&mut self, offset: usize, key: &str, verbs: &[String]) -> What {
        let halves: Vec<&str> = key.split('/').collect();
        let &[namespace, resource] = halves.as_slice() else {
            let message = format!(
                "`{key}` permits nothing: write NAMESPACE/RESOURCE (a sub-resource can be named in strict mode)"
            );
            self.doubt(offset, message);
            return What::Nothing("it is not NAMESPACE/RESOURCE");
        };
        let (namespace, resource) = (Definition::new(namespace), Definition::new(resource));
        for half in [&namespace, &resource] {
            if let Some(doubt) = half.doubt() {
                self.doubt(offset, doubt);
            }
        }
        What::Second {
            namespace,
            resource,
            verbs: small(verbs),
        }
    }

    fn strict(&mut self, offset: usize, key: &str, verbs: &[String]) -> What {
        let Some((namespace, target)) = key.split_once('/') else {
            let message = format!(
                "`{key}` has no namespace: write NAMESPACE/RESOURCE, or */RESOURCE for all"
            );
            self.findings.error(offset, message);
            return What::Nothing("it has no namespace");
        };
        let namespace = Definition::new(namespace);
        if let Some(doubt) = namespace.doubt() {
            self.findings.error(offset, doubt);
        }
        match Target::new(target) {
            Ok(target) => What::Strict {
                namespace,
                target,
                verbs: small(verbs),
            },
            Err(message) => {
                self.findings.error(offset, message);
                What::Nothing("it cannot be read")
            }
        }
    }

    fn first(&mut self, it: &Resource) -> What {
        self.verbs(it.offset, &it.verbs);
        if it.resources.is_empty() {
            self.doubt(it.offset, "without resources this permits nothing");
        }
        let (Some(group), Some(namespace)) = (&it.version, &it.namespace) else {
            let message = "`resource` permits nothing without `version`, which is the API group, and `namespace`: write \"*\" for all";
            self.doubt(it.offset, message);
            return What::Nothing("`version` or `namespace` is missing");
        };
        What::First {
            group: group.clone(),
            namespace: namespace.clone(),
            resources: it.resources.iter().cloned().collect(),
            verbs: Verbs(it.verbs.iter().cloned().collect()),
        }
    }

    fn first_path(&mut self, it: &Path) -> What {
        self.verbs(it.offset, &it.verbs);
        let Some(path) = &it.path else {
            self.doubt(it.offset, "`nonresource` permits nothing without `path`");
            return What::Nothing("`path` is missing");
        };
        if it.verbs.iter().any(String::is_empty) {
            return What::Nothing("a verb is empty");
        }
        What::FirstPath {
            path: path.clone(),
            verbs: Verbs(it.verbs.iter().cloned().collect()),
        }
    }

    fn verbs(&mut self, offset: usize, verbs: &[String]) {
        if verbs.is_empty() || verbs.iter().any(String::is_empty) {
            self.doubt(offset, "a verb is missing: this permits nothing by it");
        }
    }

    fn add(&mut self, entry: usize, offset: usize, words: String, what: What, who: &Arc<Who>) {
        self.rules.push(Rule {
            entry,
            place: self.lines.place(offset),
            words,
            who: Arc::clone(who),
            what,
        });
    }

    fn doubt(&mut self, offset: usize, message: impl Into<String>) {
        self.findings.doubt(offset, message);
    }
}

/// Verbs of `resource_permissions`, compared in lower case.
fn small(verbs: &[String]) -> Verbs {
    Verbs(verbs.iter().map(|verb| lower(verb)).collect())
}

fn words(key: &str, verbs: &[String]) -> String {
    format!("{key}: {}", verbs.join(", "))
}

fn words_of(it: &Resource) -> String {
    let namespace = it.namespace.as_deref().unwrap_or_default();
    words(
        &format!("{namespace}/{}", it.resources.join(",")),
        &it.verbs,
    )
}

/// Lines and columns of offsets, without a search from the start for each.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn new(text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(offset, _)| offset + 1);
        Self {
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    fn place(&self, offset: usize) -> Location {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        Location {
            line,
            column: offset - start + 1,
        }
    }
}
