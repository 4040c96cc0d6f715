//! Simulated OpenStack cloud.
//!
//! A [`Cloud`] is a set of resources and a clock. [`Cloud::router`] serves the HTTP APIs of Keystone, Nova, Neutron,
//! Glance, Cinder, Octavia, Placement and Barbican, each under its own first path segment, and an operator's interface
//! under `/_simulator/`. The behaviour is that of a real OpenStack Zed; a request beyond the simulation gets the real
//! service's error instead of a pretended answer.
//!
//! Every request is one transaction: applied whole or not at all. With [`Options::store`] the change is in SQLite
//! before the reply leaves, so the process may be killed at any moment.

mod addresses;
mod attribute;
mod balancer;
mod base;
mod call;
mod clock;
mod collection;
mod compute;
mod control;
mod dispatch;
mod document;
mod fault;
mod guard;
mod identity;
mod image;
mod injection;
mod journal;
mod kind;
mod lag;
mod latency;
mod machines;
mod network;
mod newest;
mod placement;
mod query;
mod quota;
mod rendered;
mod route;
mod secrets;
mod seed;
mod service;
mod settings;
mod snapshot;
mod state;
mod store;
mod transition;
mod version;
mod volume;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use axum::extract::Request;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ipnet::Ipv4Net;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

pub use self::journal::RequestCount;
pub use self::latency::{Latency, LatencyError, RouteTiming, Timings};
pub use self::store::OpenError;

use self::base::Base;
use self::clock::Clock;
pub(crate) use self::compute::Host;
pub(crate) use self::identity::Bootstrap;
#[cfg(test)]
use self::identity::code as identity_code;
use self::identity::hashed as identity_hash;
use self::injection::Injections;
use self::journal::Journal;
use self::kind::Kind;
use self::route::Routes;
pub(crate) use self::service::Service;
use self::settings::{Changeable, ServerFault, Settings};
use self::state::State;
use self::store::Store;
use crate::data_plane::DataPlane;

/// Options of a cloud.
#[derive(Clone, Debug)]
pub struct Options {
    /// SQLite file with the whole content. `None`: memory only, gone with the last clone of the [`Cloud`].
    pub store: Option<PathBuf>,
    /// How long things take.
    pub latency: Latency,
    /// Seed of the ids, hardware addresses and tokens of the first content.
    pub seed: u64,
    /// Addresses of the external network `public`, inside 127.0.0.0/8 for guests that listen on them. Not 127.0.0.0/16,
    /// where services of the machine listen.
    pub external_cidr: Ipv4Net,
    /// Quotas other than the defaults, by their OpenStack name (`instances`, `cores`, `ram`, `port`, `floatingip`,
    /// `volumes`, `gigabytes`, `load_balancer`, ...); -1 is unlimited. `router_route` is the maximum number of routes
    /// of a router.
    pub quotas: BTreeMap<String, i64>,
    /// Availability zones of compute. The first is the default.
    pub zones: Vec<String>,
    /// Availability zones of volumes. The first is the default; if empty, the zones of compute.
    pub volume_zones: Vec<String>,
    /// Names of images to have, besides the ones every simulated cloud has.
    pub images: Vec<String>,
    /// How long a token is good for.
    pub token_lifetime: Duration,
    /// Further aliases in the list of Neutron's extensions, besides those of every simulated cloud.
    pub extensions: Vec<String>,
    /// True to begin empty, like a cloud right after the installation of its services: without users, catalog, flavors,
    /// images and networks.
    pub is_empty: bool,
    /// Passwords of a new cloud's users. In a cloud with a store, the stored passwords stay.
    pub passwords: Passwords,
}

/// Passwords of the two users of a new cloud.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Passwords {
    /// Password of `admin`, who administrates the cloud and the operator's interface.
    pub admin: String,
    /// Of `demo`, a member of a project.
    pub demo: String,
}

impl Passwords {
    /// Returns random passwords.
    #[must_use]
    pub fn random() -> Self {
        // A letter first: as it is, the text is one in YAML, too.
        let password = || format!("s{}", URL_SAFE_NO_PAD.encode(rand::random::<[u8; 18]>()));
        Self {
            admin: password(),
            demo: password(),
        }
    }

    /// Creates passwords that are the same for both users.
    #[must_use]
    pub fn same(password: &str) -> Self {
        Self {
            admin: password.to_owned(),
            demo: password.to_owned(),
        }
    }
}

impl Default for Passwords {
    /// Returns `secret` for all users, for a cloud that only its own process reaches.
    fn default() -> Self {
        Self::same("secret")
    }
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passwords").finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            store: None,
            latency: Latency::None,
            seed: 1,
            external_cidr: Ipv4Net::new_assert(std::net::Ipv4Addr::new(127, 30, 0, 0), 16),
            quotas: BTreeMap::new(),
            zones: ["nova", "az1", "az2"].map(str::to_owned).to_vec(),
            volume_zones: Vec::new(),
            images: Vec::new(),
            token_lifetime: Duration::from_secs(24 * 3600),
            extensions: Vec::new(),
            is_empty: false,
            passwords: Passwords::default(),
        }
    }
}

/// Write on the OpenStack APIs as seen by a hook: any method but GET and HEAD; getting and revoking tokens is not
/// counted.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// 1 for the first write since the cloud was opened.
    pub number: u64,
    /// First path segment, such as `network`.
    pub service: &'a str,
    /// HTTP method.
    pub method: &'a str,
    /// Path pattern within the service, such as `/v2.0/ports/{id}`.
    pub route: &'a str,
    /// Status of the reply about to be sent; `None` before the write.
    pub status: Option<u16>,
}

type WriteHook = Arc<dyn Fn(&Write<'_>) + Send + Sync>;

/// Running simulated cloud. Clones are the same cloud.
#[derive(Clone)]
pub struct Cloud {
    inner: Arc<Inner>,
}

struct Inner {
    core: Mutex<Core>,
    settings: Settings,
    passwords: Passwords,
    routes: Routes,
    clock: Clock,
    journal: Journal,
    injections: Injections,
    writes: AtomicU64,
    before_write: RwLock<Option<WriteHook>>,
    on_write: RwLock<Option<WriteHook>>,
    world: watch::Sender<Arc<DataPlane>>,
    world_is_stale: AtomicBool,
    /// Wakes the task for transitions and the [`DataPlane`].
    wake: Arc<Notify>,
}

struct Core {
    state: State,
    store: Option<Store>,
}

impl Cloud {
    /// Opens a cloud with the content of the store, or with the first content. Must be called within a Tokio runtime,
    /// which then runs the state transitions until the last clone is dropped.
    ///
    /// # Errors
    /// [`OpenError`]: the store cannot be read or written, is in use, or comes from a newer version.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let settings = Settings {
            latency: options.latency.clone(),
            quotas: options.quotas.clone(),
            zones: options.zones.clone(),
            volume_zones: match options.volume_zones.is_empty() {
                true => options.zones.clone(),
                false => options.volume_zones.clone(),
            },
            external_cidr: options.external_cidr,
            token_lifetime: options.token_lifetime,
            extensions: options.extensions.clone(),
            console: RwLock::new(None),
            server_faults: Mutex::new(Vec::new()),
            migration_faults: Mutex::new(Vec::new()),
            guest_faults: Mutex::new(Vec::new()),
            volume_faults: Mutex::new(Vec::new()),
            changeable: RwLock::new(match options.is_empty {
                true => Changeable::deployed(),
                false => Changeable::default(),
            }),
            oidc: Mutex::default(),
        };
        let clock = Clock::default();
        let mut state = State::new(options.seed);
        let store = match &options.store {
            Some(path) => Some(Store::open(path, &mut state)?),
            None => None,
        };
        let mut core = Core { state, store };
        if !options.is_empty && core.state.count(Kind::CatalogService) == 0 {
            core.state.begin(clock.now());
            match core.state.count(Kind::User) {
                0 => seed::fill(
                    &mut core.state,
                    &settings,
                    &options.images,
                    &options.passwords,
                ),
                // The store of an earlier version, whose catalog was no part of the content.
                _ => identity::seed_catalog(&mut core.state),
            }
            core.commit()?;
        }
        let inner = Arc::new(Inner {
            world: watch::Sender::new(Arc::new(snapshot::world(
                &core.state,
                &DataPlane::default(),
            ))),
            core: Mutex::new(core),
            settings,
            passwords: options.passwords,
            routes: dispatch::routes(),
            clock,
            journal: Journal::default(),
            injections: Injections::default(),
            writes: AtomicU64::new(0),
            before_write: RwLock::new(None),
            on_write: RwLock::new(None),
            world_is_stale: AtomicBool::new(false),
            wake: Arc::new(Notify::new()),
        });
        tokio::spawn(advance(Arc::downgrade(&inner), inner.wake.clone()));
        Ok(Self { inner })
    }

    /// Returns the routes of all services behind one base URL, such as `http://127.0.0.1:5000`. The catalog and every
    /// link have this URL.
    pub fn router(&self, base_url: &str) -> axum::Router {
        let base = Arc::new(Base::all(base_url));
        let cloud = self.clone();
        axum::Router::new().fallback(move |request: Request| {
            let (cloud, base) = (cloud.clone(), base.clone());
            async move { dispatch::answer(&cloud, &base, request).await }
        })
    }

    /// As [`router`](Self::router), for a socket, which any process of the machine and any page in a browser can reach:
    /// the operator's interface answers to names of this machine alone, and only its administrator may change anything.
    pub fn router_of_socket(&self, base_url: &str) -> axum::Router {
        let base = Arc::new(Base::all(base_url));
        let cloud = self.clone();
        axum::Router::new().fallback(move |request: Request| {
            let (cloud, base) = (cloud.clone(), base.clone());
            async move {
                match guard::check(&request, &cloud.inner.passwords.admin) {
                    Ok(()) => dispatch::answer(&cloud, &base, request).await,
                    Err(fault) => dispatch::refused(&fault),
                }
            }
        })
    }

    /// Answers a request as [`Cloud::router`] does.
    pub(crate) async fn answer(
        &self,
        base_url: &str,
        request: Request,
    ) -> axum::response::Response {
        dispatch::answer(self, &Base::all(base_url), request).await
    }

    /// Answers a request for one [`Service`], served alone at `base_url`.
    pub(crate) async fn answer_of(
        &self,
        service: Service,
        base_url: &str,
        request: Request,
    ) -> axum::response::Response {
        let path = request.uri().path().to_owned();
        dispatch::answer_of(self, &Base::one(base_url), service, &path, request).await
    }

    /// Bootstraps Keystone like `keystone-manage bootstrap`.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub(crate) fn bootstrap(&self, given: &Bootstrap) -> Result<(), OpenError> {
        let mut core = self.inner.core.lock();
        core.state.begin(self.inner.clock.now());
        identity::bootstrap(&mut core.state, given);
        core.commit().map(drop)
    }

    /// Records the hosts whose nova-compute has reported; others are down from now on.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub(crate) fn hosts(&self, hosts: &[Host]) -> Result<(), OpenError> {
        let mut core = self.inner.core.lock();
        core.state.begin(self.inner.clock.now());
        compute::register(&mut core.state, hosts);
        core.commit().map(drop)
    }

    /// Puts a running server on a host, without a flavor and an image that the cloud has. Returns its id.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub fn put_server(&self, name: &str, host: &str) -> Result<String, OpenError> {
        let mut core = self.inner.core.lock();
        core.state.begin(self.inner.clock.now());
        let id = compute::put_server(&mut core.state, name, host);
        core.commit()?;
        Ok(id)
    }

    /// Makes the next migrations of servers with this prefix of the name fail with this message.
    pub fn fail_migrations(&self, name_prefix: &str, message: &str, count: u64) {
        let fault = ServerFault {
            name_prefix: name_prefix.to_owned(),
            message: message.to_owned(),
            count,
        };
        self.inner.settings.migration_faults.lock().push(fault);
    }

    /// Sets the duration of live migrations.
    pub fn set_live_migration(&self, duration: Duration) {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let mut settings = self.inner.settings.changeable.write();
        settings.live_migration_milliseconds = milliseconds;
    }

    /// Sends a request to a service as Keystone's first administrator, without faults and hooks. Returns status and
    /// body; 401 before a bootstrap.
    pub(crate) fn asked(
        &self,
        service: Service,
        method: &http::Method,
        path: &str,
        body: &serde_json::Value,
    ) -> (u16, serde_json::Value) {
        dispatch::asked(self, service, method, path, body)
    }

    /// Returns a clouds.yaml with `simulated` (member of project demo) and `simulated-admin` (administrator).
    pub fn clouds_yaml(&self, base_url: &str) -> String {
        seed::clouds_yaml(base_url.trim_end_matches('/'), &self.inner.passwords)
    }

    /// Returns the guests' view of the cloud. Every change that matters to guests sends a new [`DataPlane`].
    pub fn world(&self) -> watch::Receiver<Arc<DataPlane>> {
        let receiver = self.inner.world.subscribe();
        // Without receivers the world is not kept up to date.
        self.inner.publish(&self.inner.core.lock().state);
        receiver
    }

    /// Returns the number of calls of each operation since the start or the last reset, by service, method and route.
    pub fn requests(&self) -> Vec<RequestCount> {
        self.inner.journal.counts()
    }

    /// Returns every operation: service, method and route, under the names of [`Cloud::requests`].
    pub fn operations(&self) -> Vec<(String, String, String)> {
        self.inner.routes.names()
    }

    /// Forgets the counts of [`Cloud::requests`].
    pub fn reset_requests(&self) {
        self.inner.journal.reset();
    }

    /// Returns the number of resources by project name (empty for resources of the cloud itself) and type. Tokens are
    /// not counted: two equal answers mean that nothing was left behind.
    pub fn resources(&self) -> BTreeMap<String, BTreeMap<String, usize>> {
        snapshot::resources(&self.inner.core.lock().state)
    }

    /// Calls `hook` in each write after the change is stored, and before the reply is sent.
    pub fn on_write(&self, hook: impl Fn(&Write<'_>) + Send + Sync + 'static) {
        *self.inner.on_write.write() = Some(Arc::new(hook));
    }

    /// Calls `hook` in each write before anything is changed.
    pub fn before_write(&self, hook: impl Fn(&Write<'_>) + Send + Sync + 'static) {
        *self.inner.before_write.write() = Some(Arc::new(hook));
    }

    /// Returns the number of writes since the cloud was opened.
    pub fn writes(&self) -> u64 {
        self.inner.writes.load(Ordering::SeqCst)
    }

    /// Sets the source of servers' console output.
    pub fn set_console(&self, console: impl Fn(&str) -> String + Send + Sync + 'static) {
        *self.inner.settings.console.write() = Some(Arc::new(console));
    }

    /// Puts a server into ERROR with Nova's fault message; returns false for an unknown one.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub fn fail_server(&self, id: &str, message: &str) -> Result<bool, OpenError> {
        let mut core = self.inner.core.lock();
        core.state.begin(self.inner.clock.now());
        let found = compute::fail(&mut core.state, id, 500, message);
        let changed = core.commit()?;
        drop(core);
        self.inner.note(changed);
        Ok(found)
    }

    /// Puts a load balancer into ERROR; returns false for an unknown one.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub fn fail_load_balancer(&self, id: &str) -> Result<bool, OpenError> {
        let mut core = self.inner.core.lock();
        core.state.begin(self.inner.clock.now());
        let found = balancer::fail(&mut core.state, id);
        let changed = core.commit()?;
        drop(core);
        self.inner.note(changed);
        Ok(found)
    }

    /// Sets the status of a volume, a snapshot or a backup; returns false for an unknown one.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub(crate) fn set_volume_status(
        &self,
        kind: Kind,
        id: &str,
        status: &str,
    ) -> Result<bool, OpenError> {
        let mut core = self.inner.core.lock();
        core.state.begin(self.inner.clock.now());
        let found = volume::fail(&mut core.state, kind, id, status);
        let changed = core.commit()?;
        drop(core);
        self.inner.note(changed);
        Ok(found)
    }

    /// Moves the cloud's clock ahead, and applies the transitions due by then.
    pub fn advance_clock(&self, by: Duration) {
        self.inner.clock.advance(by);
        self.inner.wake.notify_one();
    }
}

impl Core {
    /// Stores the changes of the transaction and ends it; rolls back if the store refuses.
    fn commit(&mut self) -> Result<bool, OpenError> {
        let changes = self.state.changes();
        if let Some(store) = &mut self.store
            && !changes.is_empty()
            && let Err(error) = store.write(&changes, self.state.counter())
        {
            self.state.roll_back();
            return Err(error);
        }
        self.state.commit();
        Ok(changes.iter().any(|change| change.kind.visible_to_guests()))
    }

    /// Applies the due transitions (see [`transition`]) in one transaction.
    fn settle(&mut self, settings: &Settings, now: jiff::Timestamp) -> bool {
        if !transition::any_due(&self.state, now) {
            return false;
        }
        self.state.begin(now);
        transition::run_due(&mut self.state, settings);
        self.commit().unwrap_or_else(|error| {
            tracing::error!(%error, "a state transition of the simulated cloud was not stored");
            false
        })
    }
}

impl Inner {
    fn note(&self, world_changed: bool) {
        if world_changed {
            self.world_is_stale.store(true, Ordering::SeqCst);
        }
        self.wake.notify_one();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

/// Applies transitions when due, and publishes the [`DataPlane`] after a change.
async fn advance(cloud: Weak<Inner>, wake: Arc<Notify>) {
    loop {
        let Some(inner) = cloud.upgrade() else { return };
        let started = Instant::now();
        let pause = inner.tick();
        drop(inner);
        // A large world takes a while to describe; describing it again for each of many changes in a row would keep
        // requests from getting through, and grow with the square of the number of servers.
        let rest = started.elapsed().saturating_sub(QUICK) * REST;
        tokio::time::sleep(rest.min(LONGEST_REST)).await;
        match pause {
            Some(pause) => {
                tokio::select! {
                    () = wake.notified() => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
            None => wake.notified().await,
        }
    }
}

/// Duration of a tick up to which no rest follows.
const QUICK: Duration = Duration::from_micros(500);
/// Rest after a longer tick, as a multiple of its duration.
const REST: u32 = 19;
/// Longest rest.
const LONGEST_REST: Duration = Duration::from_millis(500);

impl Inner {
    /// Applies the due transitions; returns the time until the next one.
    fn tick(&self) -> Option<Duration> {
        let mut core = self.core.lock();
        let now = self.clock.now();
        let changed = core.settle(&self.settings, now);
        if changed {
            self.world_is_stale.store(true, Ordering::SeqCst);
        }
        if self.world.receiver_count() > 0 && self.world_is_stale.load(Ordering::SeqCst) {
            self.publish(&core.state);
        }
        transition::next_due(&core.state).map(|at| {
            let pause = at.saturating_sub(now.as_millisecond()).clamp(0, 60_000);
            Duration::from_millis(pause.unsigned_abs())
        })
    }

    fn publish(&self, state: &State) {
        self.world_is_stale.store(false, Ordering::SeqCst);
        self.world.send_if_modified(|current| {
            let world = snapshot::world(state, current);
            let differs = **current != world;
            if differs {
                *current = Arc::new(world);
            }
            differs
        });
    }
}

#[cfg(test)]
mod tests;
