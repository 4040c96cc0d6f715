//! Two clients at once, of one replica or of one each, on the same volumes: whatever they ask for, no volume has two servers
//! unless its type allows that, and none is lost or doubled.
//!
//! Clients are as the sidecars: one at a time creates and deletes (their leader; a new one may begin while a request of
//! the former is still on its way), and nobody creates a volume again that is in use.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use csi::Driver;
use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::{
    CapacityRange, Controller, ControllerExpandVolumeRequest, ControllerPublishVolumeRequest,
    ControllerUnpublishVolumeRequest, CreateVolumeRequest, DeleteVolumeRequest,
};
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use grpc::{Code, Status};
use proptest::prelude::*;
use serde_json::Value;
use simulator::cloud::{Latency, Options as CloudOptions};
use tokio::sync::Mutex;

use crate::world::{GIB, World, capability, minutes, new_volume, options, pairs};

/// The volumes; the last one is of a type that several servers can have.
const NAMES: [&str; 3] = ["pvc-0", "pvc-1", "pvc-shared"];
const SERVERS: usize = 2;

/// One request of a client, about the volume of an index.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Create(usize),
    Delete(usize),
    Attach(usize, usize),
    Detach(usize, usize),
    DetachFromAll(usize),
    Expand(usize, i64),
}

/// A request, and what befalls it.
#[derive(Clone, Copy, Debug)]
struct Turn {
    ask: Ask,
    /// Its client gives up after so many milliseconds.
    patience: Option<u64>,
    /// The replica is a new process before.
    restart: bool,
    /// Milliseconds before the next request.
    pause: u64,
}

/// Expected state: answered by the driver, and not changed by a request since.
#[derive(Debug, Default)]
struct Model {
    /// The last id that was answered for a name: a client knows no other.
    ids: BTreeMap<usize, String>,
    /// Volumes that must be there, with their least size.
    there: BTreeMap<String, i64>,
    /// Attachments that must be there.
    attached: Vec<(String, String)>,
    /// Detachments that began, so that an answer about an attachment that is older is worth nothing.
    detachments: BTreeMap<String, usize>,
    /// Detachments that are under way: of an attachment that is asked for meanwhile nobody knows which of the two comes last.
    detaching: BTreeMap<String, usize>,
    /// Names whose volumes are in use: they are not created again.
    used: BTreeSet<usize>,
    /// Names of which a creation was given up: what was on its way can make a second volume.
    given_up: BTreeSet<usize>,
}

impl Model {
    fn detachments(&self, id: &str) -> usize {
        self.detachments.get(id).copied().unwrap_or_default()
    }

    fn is_detaching(&self, id: &str) -> bool {
        self.detaching.get(id).is_some_and(|count| *count > 0)
    }
}

struct Test {
    world: World,
    servers: Vec<String>,
    model: RefCell<Model>,
    /// Who creates and deletes the volume of a name.
    leader: [Mutex<()>; NAMES.len()],
}

/// A future of a boxed type: the requests of all kinds in one state would be a large one.
type Done<'a> = LocalBoxFuture<'a, ()>;

impl Test {
    async fn open(latency: Latency) -> Self {
        let cloud = CloudOptions {
            latency,
            ..CloudOptions::default()
        };
        let world = World::open_on(cloud, options()).await;
        let mut servers = Vec::new();
        for number in 0..SERVERS {
            servers.push(world.server(&format!("node-{number}")).await);
        }
        Self {
            world,
            servers,
            model: RefCell::default(),
            leader: Default::default(),
        }
    }

    /// Plays the requests of one client.
    async fn client(&self, mut driver: Arc<Driver>, turns: &[Turn]) {
        for turn in turns {
            if turn.restart {
                driver = self.world.replica();
            }
            let asked = self.ask(&driver, turn.ask);
            let patience = turn.patience.map_or(Duration::MAX, Duration::from_millis);
            // Given up: the answer, if there is one, is not known.
            let is_late = tokio::time::timeout(patience, asked).await.is_err();
            if let (true, Ask::Create(index)) = (is_late, turn.ask) {
                self.model.borrow_mut().given_up.insert(index);
            }
            self.look().await;
            tokio::time::sleep(Duration::from_millis(turn.pause)).await;
        }
    }

    fn ask<'a>(&'a self, driver: &'a Arc<Driver>, ask: Ask) -> Done<'a> {
        match ask {
            Ask::Create(index) => self.create(driver, index).boxed_local(),
            Ask::Delete(index) => self.delete(driver, index).boxed_local(),
            Ask::Attach(index, server) => self.attach(driver, index, server).boxed_local(),
            Ask::Detach(index, server) => {
                let server = &self.servers[server];
                self.detach(driver, index, server).boxed_local()
            }
            Ask::DetachFromAll(index) => self.detach(driver, index, "").boxed_local(),
            Ask::Expand(index, gib) => self.expand(driver, index, gib).boxed_local(),
        }
    }

    async fn create(&self, driver: &Driver, index: usize) {
        let _leader = self.leader[index].lock().await;
        if self.model.borrow().used.contains(&index) {
            return;
        }
        // Who asks again goes by the new answer.
        if let Some(former) = self.id(index) {
            self.model.borrow_mut().there.remove(&former);
        }
        let create = async || driver.create_volume(minutes(3), request(index)).await;
        let id = until_done(create).await.volume.unwrap().volume_id;
        let mut model = self.model.borrow_mut();
        model.there.insert(id.clone(), 1);
        model.ids.insert(index, id);
    }

    async fn delete(&self, driver: &Driver, index: usize) {
        let _leader = self.leader[index].lock().await;
        let Some(id) = self.id(index) else { return };
        {
            let mut model = self.model.borrow_mut();
            model.there.remove(&id);
            model.used.insert(index);
        }
        let request = DeleteVolumeRequest {
            volume_id: id.clone(),
            ..DeleteVolumeRequest::default()
        };
        if driver.delete_volume(minutes(3), request).await.is_ok() {
            let left = self.world.all("volumes").await;
            assert!(
                left.iter().all(|it| it["id"] != id.as_str()),
                "volume {id} is deleted, by its answer: {left:?}"
            );
            let mut model = self.model.borrow_mut();
            model.used.remove(&index);
            model.ids.remove(&index);
            model.attached.retain(|(of, _)| *of != id);
        }
    }

    async fn attach(&self, driver: &Driver, index: usize, server: usize) {
        let Some(id) = self.used(index) else { return };
        let server = &self.servers[server];
        let (before, overlaps) = {
            let model = self.model.borrow();
            (model.detachments(&id), model.is_detaching(&id))
        };
        let request = ControllerPublishVolumeRequest {
            volume_id: id.clone(),
            node_id: server.clone(),
            volume_capability: Some(capability(mode(index), index == 2)),
            ..ControllerPublishVolumeRequest::default()
        };
        let attached = driver.controller_publish_volume(minutes(3), request).await;
        let mut model = self.model.borrow_mut();
        let is_known = model.there.contains_key(&id);
        let is_last = !overlaps && model.detachments(&id) == before;
        if attached.is_ok() && is_known && is_last {
            model.attached.push((id, server.clone()));
        }
    }

    async fn detach(&self, driver: &Driver, index: usize, server: &str) {
        let Some(id) = self.id(index) else { return };
        {
            let mut model = self.model.borrow_mut();
            *model.detachments.entry(id.clone()).or_default() += 1;
            *model.detaching.entry(id.clone()).or_default() += 1;
            let is_kept =
                |(of, at): &(String, String)| *of != id || (!server.is_empty() && at != server);
            model.attached.retain(is_kept);
        }
        let request = ControllerUnpublishVolumeRequest {
            volume_id: id.clone(),
            node_id: server.to_owned(),
            ..ControllerUnpublishVolumeRequest::default()
        };
        let answer = driver
            .controller_unpublish_volume(minutes(3), request)
            .await;
        // One that was given up, or not answered with success, may still be going on.
        if answer.is_ok() {
            *self.model.borrow_mut().detaching.entry(id).or_default() -= 1;
        }
    }

    async fn expand(&self, driver: &Driver, index: usize, gib: i64) {
        let Some(id) = self.used(index) else { return };
        let request = ControllerExpandVolumeRequest {
            volume_id: id.clone(),
            capacity_range: Some(CapacityRange {
                required_bytes: gib * GIB,
                limit_bytes: 0,
            }),
            ..ControllerExpandVolumeRequest::default()
        };
        if let Ok(expanded) = driver.controller_expand_volume(minutes(3), request).await {
            assert!(expanded.capacity_bytes >= gib * GIB);
            if let Some(least) = self.model.borrow_mut().there.get_mut(&id) {
                *least = gib.max(*least);
            }
        }
    }

    fn id(&self, index: usize) -> Option<String> {
        self.model.borrow().ids.get(&index).cloned()
    }

    /// The volume of a name, which is used from now on.
    fn used(&self, index: usize) -> Option<String> {
        let id = self.id(index)?;
        self.model.borrow_mut().used.insert(index);
        Some(id)
    }

    /// Invariants of every moment.
    async fn look(&self) -> Vec<Value> {
        let volumes = self.world.all("volumes").await;
        for volume in &volumes {
            let servers = volume["attachments"].as_array().unwrap().len();
            assert!(
                servers <= 1 || volume["name"] == NAMES[2],
                "two servers: {volume}"
            );
        }
        volumes
    }

    /// Invariants while nothing is in progress.
    async fn judge(&self) {
        let volumes = self.look().await;
        let model = self.model.borrow();
        let find = |id: &String| volumes.iter().find(|it| it["id"] == id.as_str());
        for (id, least) in &model.there {
            let volume = find(id).unwrap_or_else(|| panic!("volume {id} is lost: {volumes:?}"));
            assert!(volume["size"].as_i64().unwrap() >= *least, "{volume}");
        }
        for (id, server) in &model.attached {
            let volume = find(id).unwrap_or_else(|| panic!("volume {id} is lost: {volumes:?}"));
            let mut attachments = volume["attachments"].as_array().unwrap().iter();
            assert!(
                attachments.any(|it| it["server_id"] == server.as_str()),
                "not attached to {server}: {volume}"
            );
        }
    }

    /// Goes on until each volume that nobody uses is there, once, and then until all are gone.
    async fn settle(&self) {
        let driver = self.world.replica();
        for index in 0..NAMES.len() {
            if !self.model.borrow().used.contains(&index) {
                self.create(&driver, index).await;
            }
        }
        self.judge().await;
        let volumes = self.world.all("volumes").await;
        for (index, name) in NAMES.iter().enumerate() {
            let named = volumes.iter().filter(|it| it["name"] == *name);
            // A second volume may be on its way out.
            let named = named.filter(|it| it["status"] != "deleting").count();
            let model = self.model.borrow();
            // A deletion may have been given up, and nobody looks for a second one of a volume in use.
            match (model.used.contains(&index), model.given_up.contains(&index)) {
                (false, _) => assert_eq!(named, 1, "{name}: {volumes:?}"),
                (true, false) => assert!(named <= 1, "{name}: {volumes:?}"),
                (true, true) => {}
            }
        }
        for volume in &volumes {
            self.remove(&driver, volume["id"].as_str().unwrap()).await;
        }
        let left = self.world.all("volumes").await;
        assert!(left.is_empty(), "left: {left:?}");
    }

    async fn remove(&self, driver: &Driver, id: &str) {
        let detach = ControllerUnpublishVolumeRequest {
            volume_id: id.to_owned(),
            ..ControllerUnpublishVolumeRequest::default()
        };
        let delete = DeleteVolumeRequest {
            volume_id: id.to_owned(),
            ..DeleteVolumeRequest::default()
        };
        let detached = async || {
            let detach = detach.clone();
            driver.controller_unpublish_volume(minutes(3), detach).await
        };
        until_done(detached).await;
        until_done(async || driver.delete_volume(minutes(3), delete.clone()).await).await;
    }
}

fn request(index: usize) -> CreateVolumeRequest {
    let mut request = new_volume(NAMES[index], 1);
    if index == 2 {
        request.parameters.extend(pairs(&[("type", "shared")]));
        request.volume_capabilities = vec![capability(mode(index), true)];
    }
    // One that has grown is the same volume.
    request
}

fn mode(index: usize) -> Mode {
    match index {
        2 => Mode::MultiNodeMultiWriter,
        _ => Mode::SingleNodeWriter,
    }
}

/// Calls until the call succeeds, as long as its refusals are not final.
async fn until_done<T>(call: impl AsyncFn() -> Result<T, Status>) -> T {
    for _ in 0..50 {
        match call().await {
            Ok(answer) => return answer,
            Err(status) => assert!(
                matches!(status.code, Code::Aborted | Code::Unavailable),
                "{}: {}",
                status.code.name(),
                status.message
            ),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("the call does not end");
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_another_replica_has_just_made_is_not_made_again() {
    let test = Test::open(Latency::None).await;
    let (one, two) = (test.world.replica(), test.world.replica());
    // The list of the second replica is recent enough for a write, and older than the volume.
    test.create(&two, 1).await;
    test.create(&one, 0).await;
    let first = test.id(0).unwrap();
    test.create(&two, 0).await;
    assert_eq!(test.id(0).unwrap(), first);
    let volumes = test.look().await;
    let named = volumes.iter().filter(|it| it["name"] == NAMES[0]);
    assert_eq!(named.count(), 1, "{volumes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_has_grown_since_is_not_made_again() {
    let test = Test::open(Latency::None).await;
    let (one, two) = (test.world.replica(), test.world.replica());
    // The list of the second replica is older than the volume.
    test.create(&two, 1).await;
    test.create(&one, 0).await;
    test.expand(&one, 0, 2).await;
    let create = async || two.create_volume(minutes(3), request(0)).await;
    let again = until_done(create).await.volume.unwrap();
    assert_eq!(Some(again.volume_id), test.id(0));
    let volumes = test.look().await;
    let named = volumes.iter().filter(|it| it["name"] == NAMES[0]);
    assert_eq!(named.count(), 1, "{volumes:?}");
}

fn ask() -> impl Strategy<Value = Ask> {
    let index = 0..NAMES.len();
    prop_oneof![
        4 => index.clone().prop_map(Ask::Create),
        1 => index.clone().prop_map(Ask::Delete),
        4 => (index.clone(), 0..SERVERS).prop_map(|(index, server)| Ask::Attach(index, server)),
        2 => (index.clone(), 0..SERVERS).prop_map(|(index, server)| Ask::Detach(index, server)),
        1 => index.clone().prop_map(Ask::DetachFromAll),
        1 => (index, 2..4i64).prop_map(|(index, gib)| Ask::Expand(index, gib)),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let patience = prop_oneof![4 => Just(None), 1 => (0..3000u64).prop_map(Some)];
    let pause = prop_oneof![2 => Just(0), 1 => 0..4000u64];
    (ask(), patience, prop::bool::weighted(0.1), pause).prop_map(
        |(ask, patience, restart, pause)| Turn {
            ask,
            patience,
            restart,
            pause,
        },
    )
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    prop::collection::vec(turn(), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_clients_lose_and_double_nothing(one in turns(), two in turns(), slow in any::<bool>(), replicas in 1..3) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().unwrap();
        let latency = if slow { Latency::Real } else { Latency::None };
        runtime.block_on(async {
            let test = Test::open(latency).await;
            let first = test.world.replica();
            let second = match replicas {
                1 => Arc::clone(&first),
                _ => test.world.replica(),
            };
            futures::join!(test.client(first, &one), test.client(second, &two));
            // A write whose caller has gone may still be in progress.
            tokio::time::sleep(Duration::from_secs(120)).await;
            test.judge().await;
            test.settle().await;
        });
    }
}
