//! Servers in the order of Nova's lists, newest first, updated incrementally: a page of a large project is found
//! without a scan.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::document::{Doc, Fields};

/// Moment of creation, then the id; both descending.
type Rank = (Reverse<i64>, Reverse<String>);

/// Servers by project and age.
#[derive(Clone, Default)]
pub(crate) struct Newest {
    everyone: BTreeMap<Rank, Arc<Doc>>,
    projects: HashMap<String, BTreeMap<Rank, Arc<Doc>>>,
}

impl Newest {
    /// Returns the servers of a project, or of all projects, from `first` on if given.
    pub(crate) fn from(
        &self,
        project: Option<&str>,
        first: Option<&Doc>,
    ) -> impl Iterator<Item = &Arc<Doc>> {
        let servers = match project {
            Some(project) => self.projects.get(project),
            None => Some(&self.everyone),
        };
        let start = first.map_or(Bound::Unbounded, |doc| Bound::Included(rank(doc)));
        servers
            .into_iter()
            .flat_map(move |servers| servers.range((start.clone(), Bound::Unbounded)))
            .map(|(_, doc)| doc)
    }

    /// Updates the order for a changed server.
    pub(crate) fn replace(&mut self, old: Option<&Doc>, new: Option<&Arc<Doc>>) {
        if let Some(old) = old {
            let rank = rank(old);
            self.everyone.remove(&rank);
            if let Some(servers) = self.projects.get_mut(old.text("project_id")) {
                servers.remove(&rank);
            }
        }
        if let Some(new) = new {
            let rank = rank(new);
            self.everyone.insert(rank.clone(), new.clone());
            self.projects
                .entry(new.text("project_id").to_owned())
                .or_default()
                .insert(rank, new.clone());
        }
    }
}

fn rank(doc: &Doc) -> Rank {
    (
        Reverse(doc.number("_created_ms")),
        Reverse(doc.text("id").to_owned()),
    )
}
