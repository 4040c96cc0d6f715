//! Desired objects of each cloud, kept until the inputs change: another look renders no file again, and signs no
//! certificate.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use deployer::upgrade::Stages;
use deployer::{Cloud, Credentials, Graph, Release};
use parking_lot::Mutex;

/// Steps of clouds, by namespace. Clones share them.
#[derive(Clone, Default)]
pub struct Rendered {
    known: Arc<Mutex<HashMap<String, Entry>>>,
    upgrades: Arc<Mutex<HashMap<String, Upgrade>>>,
}

impl fmt::Debug for Rendered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The steps have the passwords of their clouds.
        formatter.debug_struct("Rendered").finish_non_exhaustive()
    }
}

struct Upgrade {
    cloud: Cloud,
    held: Credentials,
    from: Release,
    stages: Arc<Stages>,
}

struct Entry {
    cloud: Cloud,
    held: Credentials,
    graph: Arc<Graph>,
}

impl Rendered {
    /// Steps of a [`Cloud`] at rest in its release; forgets the stages of an earlier upgrade.
    pub(crate) fn of(&self, cloud: &Cloud, held: &Credentials) -> Arc<Graph> {
        self.upgrades.lock().remove(&cloud.namespace);
        let known =
            self.known.lock().get(&cloud.namespace).and_then(|it| {
                (it.cloud == *cloud && it.held == *held).then(|| Arc::clone(&it.graph))
            });
        if let Some(graph) = known {
            return graph;
        }
        let graph = Arc::new(deployer::desired(cloud, held));
        let entry = Entry {
            cloud: cloud.clone(),
            held: held.clone(),
            graph: Arc::clone(&graph),
        };
        self.known.lock().insert(cloud.namespace.clone(), entry);
        graph
    }

    /// [`Stages`] of the upgrade of a cloud, from a release.
    pub(crate) fn upgrade(&self, cloud: &Cloud, from: Release, held: &Credentials) -> Arc<Stages> {
        let is_same = |it: &&Upgrade| it.cloud == *cloud && it.held == *held && it.from == from;
        // The lock ends here, because the code below takes the lock again.
        let known = {
            let upgrades = self.upgrades.lock();
            let found = upgrades.get(&cloud.namespace).filter(is_same);
            found.map(|it| Arc::clone(&it.stages))
        };
        if let Some(stages) = known {
            return stages;
        }
        let stages = Arc::new(Stages::new(cloud, from, held));
        let entry = Upgrade {
            cloud: cloud.clone(),
            held: held.clone(),
            from,
            stages: Arc::clone(&stages),
        };
        self.upgrades.lock().insert(cloud.namespace.clone(), entry);
        stages
    }

    /// Forgets a deleted cloud.
    pub(crate) fn forget(&self, namespace: &str) {
        self.upgrades.lock().remove(namespace);
        self.known.lock().remove(namespace);
    }
}

#[cfg(test)]
mod tests {
    use deployer::{Parameters, Release};
    use serde_json::json;

    use super::*;

    fn cloud(release: Release) -> Cloud {
        Cloud::new(&json!({}), Parameters::from_release(release)).unwrap()
    }

    #[test]
    fn a_cloud_is_rendered_again_when_its_parameters_or_what_is_held_change() {
        let rendered = Rendered::default();
        let (zed, held) = (
            cloud(Release::Zed),
            Credentials::complete("cloud", &[], || 7),
        );
        let first = rendered.of(&zed, &held);
        assert_eq!(*first, deployer::desired(&zed, &held));
        assert!(Arc::ptr_eq(&first, &rendered.of(&zed, &held)));
        let epoxy = cloud(Release::Epoxy);
        assert_eq!(
            *rendered.of(&epoxy, &held),
            deployer::desired(&epoxy, &held)
        );
        let other = Credentials::complete("cloud", &[], || 8);
        assert_eq!(
            *rendered.of(&epoxy, &other),
            deployer::desired(&epoxy, &other)
        );
        rendered.forget(&zed.namespace);
        let again = rendered.of(&zed, &held);
        assert!(!Arc::ptr_eq(&first, &again) && first == again);
    }

    #[test]
    fn the_stages_of_an_upgrade_are_rendered_once() {
        let rendered = Rendered::default();
        let (cloud, held) = (
            cloud(Release::Gazpacho),
            Credentials::complete("cloud", &[], || 7),
        );
        let first = rendered.upgrade(&cloud, Release::Epoxy, &held);
        assert!(Arc::ptr_eq(
            &first,
            &rendered.upgrade(&cloud, Release::Epoxy, &held)
        ));
        let other = Credentials::complete("cloud", &[], || 8);
        assert!(!Arc::ptr_eq(
            &first,
            &rendered.upgrade(&cloud, Release::Epoxy, &other)
        ));
        rendered.forget(&cloud.namespace);
        let again = rendered.upgrade(&cloud, Release::Epoxy, &held);
        assert!(!Arc::ptr_eq(&first, &again) && first == again);
    }
}
