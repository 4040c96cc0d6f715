use std::sync::Arc;

use futures::FutureExt;
use openstack::View;
use openstack::compute::Server;
use openstack::inventory::Table;
use openstack::network::Network;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::cluster::prepare as of_cluster;
use crate::context::Error;
use crate::evidence::Verdict;
use crate::identity::Mark;
use crate::machine::prepare as of_machine;
use crate::names::Names;
use crate::{cluster, machine};

/// An object of a namespace: an original, or a copy of one.
#[derive(Clone, Debug)]
struct Thing {
    is_machine: bool,
    namespace: &'static str,
    name: String,
    /// The name of its Cluster, which is also that of its OpenStackCluster.
    cluster: String,
    uid: u32,
    mark: Mark,
    has_annotations: bool,
    /// Whether status and providerID name its resources.
    has_status: bool,
    has_finalizer: bool,
}

impl Thing {
    fn json(&self) -> Value {
        let mut annotations = json!({});
        if self.has_annotations {
            annotations[CLUSTER_ID] = json!(self.mark.cluster.to_string());
            if let Some(machine) = self.mark.machine {
                annotations[MACHINE_ID] = json!(machine.to_string());
            }
        }
        let finalizer = match self.is_machine {
            true => machine::FINALIZER,
            false => cluster::FINALIZER,
        };
        let finalizers: &[&str] = if self.has_finalizer {
            &[finalizer]
        } else {
            &[]
        };
        json!({"metadata": {"name": self.name, "namespace": self.namespace, "uid": self.uid.to_string(),
            "labels": {"cluster.x-k8s.io/cluster-name": self.cluster},
            "annotations": annotations, "finalizers": finalizers}})
    }

    fn cluster(&self) -> OpenStackCluster {
        let mut object = self.json();
        object["spec"] = json!({"identityRef": {"name": "s", "cloudName": "c"},
            "managedSubnets": [{"cidr": "10.0.0.0/24"}]});
        if self.has_status {
            object["status"] =
                json!({"network": {"name": "n", "id": self.mark.cluster.to_string()}});
        }
        serde_json::from_value(object).unwrap()
    }

    fn machine(&self) -> OpenStackMachine {
        let mut object = self.json();
        object["spec"] = json!({"flavor": {"id": "f"}, "image": {"id": "i"}});
        if let Some(id) = self.mark.machine.filter(|_| self.has_status) {
            object["spec"]["providerID"] = json!(format!("openstack:///{id}"));
        }
        serde_json::from_value(object).unwrap()
    }

    fn is_at(&self, other: &Self) -> bool {
        (self.is_machine, self.namespace, &self.name)
            == (other.is_machine, other.namespace, &other.name)
    }
}

fn partial<K>(thing: &Thing) -> PartialObjectMeta<K> {
    let metadata = serde_json::from_value(thing.json()["metadata"].clone()).unwrap();
    PartialObjectMeta {
        types: None,
        metadata,
        _phantom: std::marker::PhantomData,
    }
}

/// The registers after their first list of these objects.
fn listed(things: &[Thing]) -> Claims {
    let claims = Claims::default();
    claims.clusters.apply(Event::Init);
    claims.machines.apply(Event::Init);
    for thing in things {
        match thing.is_machine {
            true => claims.machines.apply(Event::InitApply(partial(thing))),
            false => claims.clusters.apply(Event::InitApply(partial(thing))),
        }
    }
    claims.clusters.apply(Event::InitDone);
    claims.machines.apply(Event::InitDone);
    claims
}

/// The mark with which an object may write, now or after it has restored its identity.
fn acts(thing: &Thing, things: &[Thing], claims: &Claims, view: &View) -> Option<Mark> {
    if !thing.is_machine {
        let object = thing.cluster();
        return match Identity::for_object(&object, CLUSTER_ID) {
            Some(id) => {
                let sole = claims.clusters.sole(&object, id);
                sole.ok().map(|()| Mark::cluster(id))
            }
            None => match of_cluster::restored(&object, &[], view) {
                Verdict::Known(mark) => {
                    let free = claims.clusters.free(&object, mark.cluster);
                    free.ok().map(|()| mark)
                }
                _ => None,
            },
        };
    }
    let object = thing.machine();
    let parent = things.iter().find(|other| {
        !other.is_machine && other.namespace == thing.namespace && other.name == thing.cluster
    });
    let parent = parent.map(Thing::cluster);
    let parent = parent
        .as_ref()
        .and_then(|parent| Some((parent, Identity::for_object(parent, CLUSTER_ID)?)));
    match of_machine::proven(claims, &object, parent).ok()? {
        Some(mark) => Some(mark),
        None => match of_machine::restored(&object, view) {
            Verdict::Known(mark) => {
                of_machine::may_restore(claims, &object, parent?, mark).ok()?;
                Some(mark)
            }
            _ => None,
        },
    }
}

/// Two clusters in namespace `a` and one in `b`, each with two machines.
fn originals() -> Vec<Thing> {
    let mut things = Vec::new();
    for (namespace, cluster) in [("a", "one"), ("a", "two"), ("b", "one")] {
        let id = Identity::new();
        let thing = |name: &str, mark: Mark, uid| Thing {
            is_machine: mark.machine.is_some(),
            namespace,
            name: name.to_owned(),
            cluster: cluster.to_owned(),
            uid,
            mark,
            has_annotations: true,
            has_status: true,
            has_finalizer: true,
        };
        let count = things.len() as u32;
        things.push(thing(cluster, Mark::cluster(id), count));
        for index in 0..2 {
            let name = format!("{cluster}-{index}");
            let mark = Mark::machine(id, Identity::new());
            things.push(thing(&name, mark, count + 1 + index));
        }
    }
    things
}

/// The cloud with what the originals made.
fn cloud(originals: &[Thing]) -> View {
    let (machines, clusters): (Vec<_>, Vec<_>) =
        originals.iter().partition(|thing| thing.is_machine);
    let networks = clusters.iter().map(|thing| {
        let names = Names::new(thing.namespace, &thing.name);
        Network {
            id: thing.mark.cluster.to_string(),
            name: names.network(),
            description: thing.mark.description(&names.description()),
            ..Default::default()
        }
    });
    let servers = machines.iter().map(|thing| Server {
        id: thing.mark.machine.unwrap().to_string(),
        name: thing.name.clone(),
        tags: thing.mark.tags(),
        ..Default::default()
    });
    View {
        networks: Arc::new(Table::from_items(networks)),
        servers: Arc::new(Table::from_items(servers)),
        ..View::default()
    }
}

/// What happens to the objects.
#[derive(Clone, Debug)]
enum Deed {
    Copy {
        of: usize,
        namespace: &'static str,
        name: String,
        cluster: &'static str,
        keeps: (bool, bool, bool),
    },
    Lose {
        of: usize,
        keeps: (bool, bool, bool),
    },
    Remove(usize),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let place = prop::sample::select(vec!["a", "b", "c"]);
    let cluster = prop::sample::select(vec!["one", "two", "three"]);
    let name = prop::sample::select(vec!["one", "two", "three", "one-0", "two-1", "other"]);
    let keeps = || (any::<bool>(), any::<bool>(), any::<bool>());
    let copy = (0..9_usize, place, name, cluster, keeps()).prop_map(
        |(of, namespace, name, cluster, keeps)| Deed::Copy {
            of,
            namespace,
            name: name.to_owned(),
            cluster,
            keeps,
        },
    );
    let lose = (0..9_usize, keeps()).prop_map(|(of, keeps)| Deed::Lose { of, keeps });
    let deed = prop_oneof![4 => copy, 2 => lose, 1 => (0..9_usize).prop_map(Deed::Remove)];
    prop::collection::vec(deed, 0..8)
}

fn done(originals: &[Thing], deeds: &[Deed]) -> Vec<Thing> {
    let mut things = originals.to_vec();
    for (index, deed) in deeds.iter().enumerate() {
        match deed {
            Deed::Copy {
                of,
                namespace,
                name,
                cluster,
                keeps,
            } => {
                let mut copy = originals[*of].clone();
                (copy.namespace, copy.name) = (namespace, name.clone());
                copy.cluster = match copy.is_machine {
                    true => (*cluster).to_owned(),
                    false => name.clone(),
                };
                copy.uid = 100 + u32::try_from(index).unwrap();
                keep(&mut copy, *keeps);
                // A name is taken.
                if !things.iter().any(|thing| thing.is_at(&copy)) {
                    things.push(copy);
                }
            }
            Deed::Lose { of, keeps } => {
                let lost = things.iter_mut().find(|thing| thing.is_at(&originals[*of]));
                if let Some(thing) = lost {
                    keep(thing, *keeps);
                }
            }
            Deed::Remove(of) => things.retain(|thing| !thing.is_at(&originals[*of])),
        }
    }
    things
}

fn keep(thing: &mut Thing, (annotations, status, finalizer): (bool, bool, bool)) {
    thing.has_annotations &= annotations;
    thing.has_status &= status;
    thing.has_finalizer &= finalizer;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_object_writes_to_what_belongs_to_another(deeds in deeds()) {
        let originals = originals();
        let view = cloud(&originals);
        let things = done(&originals, &deeds);
        let claims = listed(&things);
        let all: Vec<_> = things
            .iter()
            .filter_map(|thing| Some((thing, acts(thing, &things, &claims, &view)?)))
            .collect();
        for original in &originals {
            let actors = all.iter().filter(|(_, mark)| *mark == original.mark);
            let actors: Vec<_> = actors.map(|(thing, _)| *thing).collect();
            prop_assert!(actors.len() <= 1, "{actors:?} act for {original:?}");
            let stands = things.iter().find(|thing| thing.uid == original.uid);
            for actor in actors {
                // Nothing acts beside the original; where that lost its annotation, only its place tells what it is.
                if stands.is_some_and(|thing| thing.has_annotations) {
                    prop_assert_eq!(actor.uid, original.uid, "{:?}", actor);
                }
                prop_assert!(actor.has_annotations || actor.is_at(original), "{actor:?}");
            }
        }
    }

    #[test]
    fn an_object_that_nobody_copied_acts(deeds in deeds()) {
        let originals = originals();
        let view = cloud(&originals);
        let things = done(&originals, &deeds);
        let claims = listed(&things);
        let has_its = |thing: &Thing, original: &Thing| {
            thing.has_annotations && thing.is_machine == original.is_machine && thing.mark == original.mark
        };
        for original in &originals {
            let alone = |of: &Thing| {
                let holders = things.iter().filter(|thing| has_its(thing, of));
                let holders: Vec<_> = holders.map(|thing| thing.uid).collect();
                holders == [of.uid]
            };
            let parent = originals.iter().find(|thing| {
                !thing.is_machine && thing.mark.cluster == original.mark.cluster
            });
            if alone(original) && alone(parent.unwrap()) {
                let mark = acts(original, &things, &claims, &view);
                prop_assert_eq!(mark, Some(original.mark));
            }
        }
    }
}

#[test]
fn nothing_acts_before_the_watch_knows_it() {
    let things = originals();
    let object = things[0].cluster();
    let id = things[0].mark.cluster;
    let behind = |claims: &Claims| {
        let denied = claims.clusters.sole(&object, id);
        matches!(denied, Err(Denial::Behind))
    };
    let claims = Claims::default();
    assert!(behind(&claims));
    claims.clusters.apply(Event::Init);
    claims.clusters.apply(Event::InitApply(partial(&things[0])));
    assert!(behind(&claims), "the list is not complete");
    claims.clusters.apply(Event::InitDone);
    assert!(claims.clusters.sole(&object, id).is_ok());
    // An object that took the name of another one.
    let mut other = things[0].clone();
    other.uid = 99;
    let denied = claims.clusters.sole(&other.cluster(), id);
    assert!(matches!(denied, Err(Denial::Behind)));
    // A new identity is nobody else's.
    let new = claims.clusters.mint();
    assert!(claims.clusters.sole(&object, new).is_ok());
    claims.clusters.discard(new);
    assert!(claims.clusters.sole(&object, new).is_err());
}

#[test]
fn both_are_named_and_woken_when_a_copy_comes_and_the_original_when_it_goes() {
    let things = originals();
    let claims = listed(&things);
    let mut woken = claims.clusters.contested();
    let mut names = || {
        let mut names = Vec::new();
        while let Some(Some(object)) = woken.next().now_or_never() {
            names.push(format!("{}/{}", object.namespace.unwrap(), object.name));
        }
        names
    };
    let mut copy = things[0].clone();
    (copy.namespace, copy.name, copy.uid) = ("c", "copy".to_owned(), 50);
    claims.clusters.apply(Event::Apply(partial(&copy)));
    assert_eq!(names(), ["a/one", "c/copy"]);
    let says = |thing: &Thing| match claims.clusters.sole(&thing.cluster(), thing.mark.cluster) {
        Err(denial) => Error::from(denial).to_string(),
        Ok(()) => String::new(),
    };
    assert!(says(&things[0]).starts_with("OpenStackCluster c/copy has the same annotation"));
    assert!(says(&copy).starts_with("OpenStackCluster a/one has the same annotation"));
    assert!(says(&copy).contains(cluster::FINALIZER));
    claims.clusters.apply(Event::Delete(partial(&copy)));
    assert_eq!(names(), ["a/one"]);
    assert_eq!(says(&things[0]), "");
}

#[test]
fn the_youngest_is_named_where_ages_tell_them_apart() {
    let things = originals();
    let at = |thing: &Thing, second: u32| {
        let mut object = partial::<OpenStackCluster>(thing);
        let text = format!("2026-01-01T00:00:0{second}Z");
        object.metadata.creation_timestamp = serde_json::from_value(json!(text)).unwrap();
        object
    };
    let mut copy = things[0].clone();
    (copy.namespace, copy.name, copy.uid) = ("c", "copy".to_owned(), 50);
    for (second, hint) in [(2, true), (1, false)] {
        let claims = Claims::default();
        claims.clusters.apply(Event::Init);
        claims.clusters.apply(Event::InitApply(at(&things[0], 1)));
        claims.clusters.apply(Event::InitApply(at(&copy, second)));
        claims.clusters.apply(Event::InitDone);
        let denied = claims
            .clusters
            .sole(&things[0].cluster(), things[0].mark.cluster);
        let text = Error::from(denied.unwrap_err()).to_string();
        assert_eq!(text.contains("(c/copy is the youngest)"), hint, "{text}");
    }
}
