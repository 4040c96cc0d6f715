//! Rules: the users of a permission, and the permitted requests.

use std::collections::HashSet;
use std::sync::Arc;

use super::definition::Definition;
use super::strict::Target;
use crate::document::Location;
use crate::subject::{Attributes, ResourceAttributes, Subject};

/// One permission of an entry.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// Entry, counted from 1.
    pub(super) entry: usize,
    pub(super) place: Location,
    /// Permission in words.
    pub(super) words: String,
    pub(super) who: Arc<Who>,
    pub(super) what: What,
}

/// Users of an entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Who {
    /// `users`: all of these roles, and one of these projects.
    pub(super) users: Option<Users>,
    /// `match`: all of these matchers; for permissions of version 1 only.
    pub(super) matches: Vec<Matcher>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    pub(super) roles: Vec<String>,
    pub(super) projects: HashSet<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Matcher {
    pub(super) kind: MatchKind,
    /// `None` for `*`.
    pub(super) values: Option<HashSet<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchKind {
    User,
    Group,
    Project,
    Role,
    /// Unknown type, which matches nobody.
    Unknown,
}

/// Permission of the rule.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// `resource` of version 1.
    First {
        group: String,
        namespace: String,
        resources: HashSet<String>,
        verbs: Verbs,
    },
    /// `nonresource` of version 1.
    FirstPath { path: String, verbs: Verbs },
    /// Key of `resource_permissions`, as interpreted by the Go program.
    Second {
        namespace: Definition,
        resource: Definition,
        verbs: Verbs,
    },
    /// Key of `resource_permissions` in strict mode.
    Strict {
        namespace: Definition,
        target: Target,
        verbs: Verbs,
    },
    /// A key of `nonresource_permissions`.
    SecondPath { path: String, verbs: Verbs },
    /// Nothing, for a reason.
    Nothing(&'static str),
}

/// Verbs of a permission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verbs(pub(super) HashSet<String>);

impl Verbs {
    pub(super) fn admit(&self, verb: &str) -> bool {
        self.0.contains(verb) || self.0.contains("*")
    }
}

/// Reason why a rule does not permit a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Miss(pub(super) &'static str);

impl Rule {
    /// `Ok` if the rule permits the request, or the [`Miss`].
    pub(super) fn permits(&self, subject: &Subject, attributes: &Attributes) -> Result<(), Miss> {
        self.what.permits(attributes)?;
        self.who.are(subject, self.what.is_first())
    }
}

impl What {
    pub(super) fn is_first(&self) -> bool {
        matches!(self, Self::First { .. } | Self::FirstPath { .. })
    }

    pub(super) fn is_about_paths(&self) -> bool {
        matches!(self, Self::FirstPath { .. } | Self::SecondPath { .. })
    }

    fn permits(&self, attributes: &Attributes) -> Result<(), Miss> {
        match (self, attributes) {
            (Self::Nothing(reason), _) => Err(Miss(reason)),
            (
                Self::First { .. } | Self::Second { .. } | Self::Strict { .. },
                Attributes::Resource(it),
            ) => self.permits_resource(it),
            (Self::FirstPath { .. } | Self::SecondPath { .. }, Attributes::Path { verb, path }) => {
                self.permits_path(verb, path)
            }
            (_, Attributes::Path { .. }) => Err(Miss("it is about resources, and this is a path")),
            (_, Attributes::Resource(_)) => Err(Miss("it is about paths, and this is a resource")),
        }
    }

    fn permits_resource(&self, it: &ResourceAttributes) -> Result<(), Miss> {
        let verbs = match self {
            Self::First {
                group,
                namespace,
                resources,
                verbs,
            } => {
                ensure(group == "*" || *group == it.group, "another API group")?;
                ensure(
                    namespace == "*" || *namespace == it.namespace,
                    "another namespace",
                )?;
                ensure(names(resources, it), "another resource")?;
                verbs
            }
            Self::Second {
                namespace,
                resource,
                verbs,
            } => {
                is_in(namespace, &it.namespace)?;
                ensure(resource.admits(&it.resource), "another resource")?;
                verbs
            }
            Self::Strict {
                namespace,
                target,
                verbs,
            } => {
                is_in(namespace, &it.namespace)?;
                target.admits(it)?;
                ensure(
                    !super::strict::also_creates(it) || verbs.admit("create"),
                    "`get` of this sub-resource opens a connection, for which `create` is needed, too",
                )?;
                verbs
            }
            _ => return Err(Miss("it is about paths")),
        };
        ensure(verbs.admit(&it.verb), "another verb")
    }

    fn permits_path(&self, verb: &str, asked: &str) -> Result<(), Miss> {
        let verbs = match self {
            Self::FirstPath { path, verbs } => {
                // As in Go, where all asterisks at the end go.
                let below = path.ends_with('*') && asked.starts_with(path.trim_end_matches('*'));
                ensure(path == asked || below, "another path")?;
                verbs
            }
            Self::SecondPath { path, verbs } => {
                ensure(path == asked, "another path")?;
                verbs
            }
            _ => return Err(Miss("it is about resources")),
        };
        ensure(verbs.admit(verb), "another verb")
    }
}

impl Who {
    /// `Ok` if the [`Subject`] is in the list. `first`: true for a permission of version 1.
    fn are(&self, subject: &Subject, first: bool) -> Result<(), Miss> {
        if let Some(users) = &self.users {
            let has = |role| subject.roles().contains(role);
            ensure(users.roles.iter().all(has), "the user lacks a role")?;
            let mut projects = subject.projects();
            ensure(
                projects.any(|it| users.projects.contains(it)),
                "another project",
            )?;
        }
        let mut matches = self.matches.iter().filter(|_| first);
        matches.try_for_each(|it| it.matches(subject))
    }
}

impl Matcher {
    fn matches(&self, subject: &Subject) -> Result<(), Miss> {
        if self.kind == MatchKind::Unknown {
            return Err(Miss("`match` has an unknown type"));
        }
        let Some(values) = &self.values else {
            return Ok(());
        };
        match self.kind {
            MatchKind::User => ensure(
                values.contains(&subject.name) || values.contains(&subject.uid),
                "another user",
            ),
            MatchKind::Group => ensure(
                subject.groups.iter().any(|group| values.contains(group)),
                "the user is in none of the groups",
            ),
            MatchKind::Project => ensure(
                subject.projects().any(|it| values.contains(it)),
                "another project",
            ),
            MatchKind::Role | MatchKind::Unknown => ensure(
                subject.roles().iter().any(|role| values.contains(role)),
                "the user has none of the roles",
            ),
        }
    }
}

fn ensure(holds: bool, otherwise: &'static str) -> Result<(), Miss> {
    match holds {
        true => Ok(()),
        false => Err(Miss(otherwise)),
    }
}

/// Checks the namespace: only `*` covers requests without a namespace.
fn is_in(definition: &Definition, namespace: &str) -> Result<(), Miss> {
    ensure(
        definition.is_star() || !namespace.is_empty() && definition.admits(namespace),
        "another namespace",
    )
}

/// True if the list of version 1 has the resource, or the sub-resource.
fn names(resources: &HashSet<String>, it: &ResourceAttributes) -> bool {
    if resources.contains("*") {
        return true;
    }
    match it.subresource.as_str() {
        "" => resources.contains(&it.resource),
        sub => {
            resources.contains(&format!("{}/*", it.resource))
                || resources.contains(&format!("{}/{sub}", it.resource))
        }
    }
}
