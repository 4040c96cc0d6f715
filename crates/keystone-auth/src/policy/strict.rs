//! Keys of `resource_permissions` in strict mode: `NAMESPACE/[GROUP:]RESOURCE[/SUBRESOURCE]`.
//!
//! A missing group means any group, and a missing sub-resource means none; `*` for the resource stands for all
//! resources with all sub-resources, as in version 1 and in RBAC.

use super::definition::{self, lower};
use super::rule::Miss;
use crate::subject::ResourceAttributes;

/// Sub-resources that open a connection. For WebSockets, API servers before 1.35 ask for `get` alone.
const CONNECTIONS: [&str; 3] = ["exec", "attach", "portforward"];

/// True if the request does the same as `create` of the same sub-resource.
pub(super) fn also_creates(it: &ResourceAttributes) -> bool {
    it.verb == "get" && it.resource == "pods" && CONNECTIONS.contains(&it.subresource.as_str())
}

/// Resources and their sub-resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// All resources: with all sub-resources, unless one is named.
    All(Sub),
    /// Only the listed resources.
    Only(Vec<Named>),
    /// All resources except the listed ones.
    Not(Vec<Named>, Sub),
}

/// Resource, in one API group or in any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    group: Option<String>,
    /// `*` for all resources of the group.
    resource: String,
    sub: Sub,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sub {
    Absent,
    Any,
    Named(String),
}

impl Target {
    /// Parses the part after the namespace.
    ///
    /// # Errors
    /// Mistake in a key, with the valid forms.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let text = lower(text.trim());
        let (negated, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        let (names, sub) = halves(text)?;
        let mut named = Vec::new();
        for name in names {
            let one = Named::new(&name)?;
            match (&one.sub, &sub) {
                (Sub::Absent, _) => named.push(Named {
                    sub: sub.clone(),
                    ..one
                }),
                (_, Sub::Absent) if !negated => named.push(one),
                _ => return Err(format!("`{name}` has a sub-resource where none can be")),
            }
        }
        let all = named
            .iter()
            .find(|one| one.resource == "*" && one.group.is_none());
        match (all, negated) {
            (Some(_), true) => Err("`!*` admits nothing".to_owned()),
            (Some(all), false) if named.len() == 1 => Ok(Self::All(all.sub.clone())),
            (Some(_), false) => Err("a list with `*` has nothing besides".to_owned()),
            (None, true) => Ok(Self::Not(named, sub)),
            (None, false) => Ok(Self::Only(named)),
        }
    }

    pub(super) fn admits(&self, it: &ResourceAttributes) -> Result<(), Miss> {
        let (resource, sub) = match self {
            Self::All(sub) => (true, *sub == Sub::Absent || sub.is(it)),
            Self::Only(named) => {
                let mut same = named.iter().filter(|one| one.is(it)).peekable();
                (same.peek().is_some(), same.any(|one| one.sub.is(it)))
            }
            Self::Not(named, sub) => (!named.iter().any(|one| one.is(it)), sub.is(it)),
        };
        match (resource, sub) {
            (true, true) => Ok(()),
            (true, false) => Err(Miss("another sub-resource: strict mode wants it named")),
            (false, _) => Err(Miss("another resource")),
        }
    }

    /// Complete list of admitted resources; `None` if there is no such list.
    pub(super) fn names(&self) -> Option<Vec<&str>> {
        let Self::Only(named) = self else {
            return None;
        };
        let names: Vec<&str> = named.iter().map(|one| one.resource.as_str()).collect();
        (!names.contains(&"*")).then_some(names)
    }
}

impl Named {
    fn new(text: &str) -> Result<Self, String> {
        let (named, sub) = match text.split_once('/') {
            Some((named, sub)) => (named, Sub::new(sub)?),
            None => (text, Sub::Absent),
        };
        let (group, resource) = match named.split_once(':') {
            Some((group, resource)) => (Some(group.trim().to_owned()), resource.trim()),
            None => (None, named.trim()),
        };
        let plain = resource == "*" || is_name(resource) && !resource.is_empty();
        match plain && group.as_deref().is_none_or(is_name) {
            true => Ok(Self {
                group,
                resource: resource.to_owned(),
                sub,
            }),
            false => Err(format!(
                "`{text}` is no resource: write it as pods, apps:deployments, :pods for the core group, or pods/exec"
            )),
        }
    }

    fn is(&self, it: &ResourceAttributes) -> bool {
        (self.resource == "*" || self.resource == it.resource)
            && self.group.as_ref().is_none_or(|group| *group == it.group)
    }
}

impl Sub {
    fn new(text: &str) -> Result<Self, String> {
        match text.trim() {
            "*" => Ok(Self::Any),
            name if is_name(name) && !name.is_empty() => Ok(Self::Named(name.to_owned())),
            other => Err(format!("`{other}` is no sub-resource")),
        }
    }

    fn is(&self, it: &ResourceAttributes) -> bool {
        match self {
            Self::Absent => it.subresource.is_empty(),
            Self::Any => !it.subresource.is_empty(),
            Self::Named(name) => *name == it.subresource,
        }
    }
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '.' | '_'))
}

/// Resources, and their common sub-resource.
fn halves(text: &str) -> Result<(Vec<String>, Sub), String> {
    if !text.starts_with('[') {
        return Ok((vec![text.to_owned()], Sub::Absent));
    }
    let no_list = || format!("`{text}` is no list such as ['a', 'b']");
    let end = text.find(']').ok_or_else(no_list)?;
    let (names, rest) = text.split_at(end + 1);
    let names = definition::list(names).ok_or_else(no_list)?;
    if names.is_empty() {
        return Err(format!("`{text}` is empty"));
    }
    let sub = match rest.trim().strip_prefix('/') {
        Some(sub) => Sub::new(sub)?,
        None if rest.trim().is_empty() => Sub::Absent,
        None => return Err(no_list()),
    };
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort();
    Ok((names, sub))
}
