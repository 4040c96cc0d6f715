//! Index of the rules that may permit a request, by each property of requests. A decision goes through the smallest
//! set.

use std::collections::HashMap;

use super::rule::{MatchKind, Matcher, Rule, What};
use crate::subject::{Attributes, Subject};

/// Positions of rules in the policy.
type Positions = Vec<u32>;

/// Rules by one property of requests.
#[derive(Debug, Default)]
struct Dimension {
    /// Rules independent of the resource.
    any: Positions,
    by_key: HashMap<String, Positions>,
}

/// Rules of one kind of request.
#[derive(Debug, Default)]
pub(super) struct Index {
    projects: Dimension,
    roles: Dimension,
    users: Dimension,
    groups: Dimension,
    namespaces: Dimension,
    /// Resources, or paths.
    names: Dimension,
}

impl Index {
    /// Adds a [`Rule`] at a position. The positions grow.
    pub(super) fn add(&mut self, position: u32, rule: &Rule) {
        let users = rule.who.users.as_ref();
        let matcher = |kind| {
            let mut matches = rule.who.matches.iter().filter(|_| rule.what.is_first());
            let found = matches.find(|one| one.kind == kind && one.values.is_some());
            found.and_then(keys_of)
        };
        let projects = users.map(|it| it.projects.iter().map(String::as_str).collect());
        let projects = projects.or_else(|| matcher(MatchKind::Project));
        // All roles of `users` are required, so one is enough to find the rule.
        let role = users.and_then(|it| it.roles.first());
        let roles = role.map(|role| vec![role.as_str()]);
        let roles = roles.or_else(|| matcher(MatchKind::Role));
        self.projects.add(position, projects);
        self.roles.add(position, roles);
        self.users.add(position, matcher(MatchKind::User));
        self.groups.add(position, matcher(MatchKind::Group));
        let (namespaces, names) = what(&rule.what);
        self.namespaces.add(position, namespaces);
        self.names.add(position, names);
    }

    /// Positions of all rules that may permit the request, and of others; unordered.
    pub(super) fn candidates<'a>(
        &'a self,
        subject: &'a Subject,
        attributes: &'a Attributes,
    ) -> impl Iterator<Item = usize> + 'a {
        let projects: Vec<&str> = subject.projects().collect();
        let roles: Vec<&str> = subject.roles().iter().map(String::as_str).collect();
        let groups: Vec<&str> = subject.groups.iter().map(String::as_str).collect();
        let users = [subject.name.as_str(), subject.uid.as_str()];
        let mut sets = vec![
            self.projects.of(&projects),
            self.roles.of(&roles),
            self.groups.of(&groups),
            self.users.of(&users),
        ];
        match attributes {
            Attributes::Path { path, .. } => sets.push(self.names.of(&[path])),
            Attributes::Resource(it) => {
                sets.push(self.namespaces.of(&[&it.namespace]));
                // Every definition admits an empty name.
                if !it.resource.is_empty() {
                    sets.push(self.names.of(&[&it.resource]));
                }
            }
        }
        let size = |set: &Vec<&Positions>| set.iter().map(|part| part.len()).sum::<usize>();
        let smallest = sets.into_iter().min_by_key(size).unwrap_or_default();
        smallest
            .into_iter()
            .flatten()
            .map(|position| *position as usize)
    }
}

impl Dimension {
    fn add(&mut self, position: u32, keys: Option<Vec<&str>>) {
        let Some(keys) = keys else {
            self.any.push(position);
            return;
        };
        for key in keys {
            let positions = self.by_key.entry(key.to_owned()).or_default();
            if positions.last() != Some(&position) {
                positions.push(position);
            }
        }
    }

    fn of(&self, keys: &[&str]) -> Vec<&Positions> {
        let found = keys.iter().filter_map(|key| self.by_key.get(*key));
        std::iter::once(&self.any).chain(found).collect()
    }
}

fn keys_of(matcher: &Matcher) -> Option<Vec<&str>> {
    let values = matcher.values.as_ref()?;
    Some(values.iter().map(String::as_str).collect())
}

/// Complete lists of permitted namespaces, and of permitted resources or paths.
fn what(what: &What) -> (Option<Vec<&str>>, Option<Vec<&str>>) {
    match what {
        What::First {
            namespace,
            resources,
            ..
        } => {
            let namespaces = (namespace != "*").then(|| vec![namespace.as_str()]);
            let names = || {
                resources
                    .iter()
                    .map(|it| it.split('/').next().unwrap_or_default())
            };
            let names = (!resources.contains("*")).then(|| names().collect());
            (namespaces, names)
        }
        What::Second {
            namespace,
            resource,
            ..
        } => (namespace.names(), resource.names()),
        What::Strict {
            namespace, target, ..
        } => (namespace.names(), target.names()),
        What::FirstPath { path, .. } => (None, (!path.ends_with('*')).then(|| vec![path.as_str()])),
        What::SecondPath { path, .. } => (None, Some(vec![path.as_str()])),
        What::Nothing(_) => (Some(Vec::new()), Some(Vec::new())),
    }
}
