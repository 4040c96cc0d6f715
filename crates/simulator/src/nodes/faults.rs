//! Faults on request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// How a container ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Exit status.
    pub status: i32,
    /// Log of the container.
    pub log: String,
}

#[derive(Debug, Default)]
struct Known {
    images: BTreeSet<String>,
    programs: BTreeMap<String, Ending>,
    nodes: BTreeSet<String>,
}

/// Faults of simulated nodes, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    known: Arc<Mutex<Known>>,
    pub(super) changed: Arc<Notify>,
}

impl Faults {
    /// Makes an image missing on all nodes, or available again. Running containers go on.
    pub fn image_is_missing(&self, image: &str, missing: bool) {
        let mut known = self.known.lock();
        match missing {
            true => known.images.insert(image.to_owned()),
            false => known.images.remove(image),
        };
        drop(known);
        self.changed.notify_one();
    }

    /// Makes the container of this name end in this way whenever it runs; `None` repairs it. A container with a status
    /// other than 0 crashes again and again, and such a task fails.
    pub fn container_ends(&self, name: &str, ending: Option<Ending>) {
        let mut known = self.known.lock();
        match ending {
            Some(ending) => known.programs.insert(name.to_owned(), ending),
            None => known.programs.remove(name),
        };
        drop(known);
        self.changed.notify_one();
    }

    /// True if the machine of a node is off.
    pub fn node_is_gone(&self, name: &str, gone: bool) {
        let mut known = self.known.lock();
        match gone {
            true => known.nodes.insert(name.to_owned()),
            false => known.nodes.remove(name),
        };
        drop(known);
        self.changed.notify_one();
    }

    pub(super) fn lacks(&self, image: &str) -> bool {
        self.known.lock().images.contains(image)
    }

    pub(super) fn ending(&self, container: &str) -> Option<Ending> {
        self.known.lock().programs.get(container).cloned()
    }

    pub(super) fn is_gone(&self, node: &str) -> bool {
        self.known.lock().nodes.contains(node)
    }
}
