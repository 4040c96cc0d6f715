//! The machines of a workload cluster: etcd members and the certificates of API servers, behind forwarded ports.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::kube::Client;
use apiserver::{Backend, Connection, Kubelet, Log};
use etcd::tls;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use simulator::etcd::{Etcd, Listed, MemberHost, PORT};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::served::{authority, certificate, expiring, serve};

/// The port of the API servers.
const API_SERVER: u16 = 6443;

/// The members; clones share them.
#[derive(Clone)]
pub(crate) struct Members {
    pub(crate) etcd: Arc<Etcd>,
    machines: Arc<Mutex<HashMap<String, Machine>>>,
    /// The validity in days of the certificates of API servers that are switched on from now on.
    validity: Arc<Mutex<u64>>,
    /// How often a certificate of an API server was asked for.
    handshakes: Arc<Mutex<usize>>,
    /// True if the ports of API servers are closed.
    refused: Arc<AtomicBool>,
    /// Referenced by each open connection.
    connections: Arc<()>,
}

struct Machine {
    power: CancellationToken,
    tls: TlsAcceptor,
    api_server: TlsAcceptor,
    /// Ends the forwarded connections; cancelled while the kubelet rejects port forwarding.
    forwarding: CancellationToken,
}

struct Behind(Arc<Etcd>);

impl Backend for Behind {
    fn takes_writes(&self) -> Result<(), String> {
        self.0.takes_writes()
    }
}

impl Members {
    /// Serves an API server without members, and returns a client that connects as to a real one.
    pub(crate) async fn serve(stop: CancellationToken) -> (Self, Client) {
        let etcd = Arc::new(Etcd::open(None).unwrap());
        let members = Self {
            etcd: Arc::clone(&etcd),
            machines: Arc::default(),
            validity: Arc::new(Mutex::new(365)),
            handshakes: Arc::default(),
            refused: Arc::default(),
            connections: Arc::default(),
        };
        let options = apiserver::Options {
            backend: Some(Arc::new(Behind(etcd))),
            kubelet: Some(Arc::new(members.clone())),
            ..apiserver::Options::default()
        };
        let client = serve(options, stop).await;
        (members, client)
    }

    /// The steps of `kubeadm init` for etcd.
    pub(crate) fn init(&self, name: &str, authority: &(String, String)) {
        let (place, power) = (place(name), self.switch_on(name, authority));
        self.etcd.found(&place);
        self.etcd.run(name, &power).unwrap();
    }

    /// A machine whose etcd is elsewhere.
    pub(crate) fn without_etcd(&self, name: &str) {
        self.switch_on(name, &authority());
    }

    /// One attempt of the steps of `kubeadm join` for etcd; returns whether it succeeded.
    pub(crate) fn join(&self, name: &str, authority: &(String, String)) -> bool {
        let place = place(name);
        if self.etcd.check().is_err() || self.etcd.add_learner(&place).is_err() {
            return false;
        }
        let power = self.switch_on(name, authority);
        self.etcd.run(name, &power).unwrap();
        self.etcd.start(&place);
        self.etcd.promote(name).is_ok()
    }

    pub(crate) fn switch_off(&self, name: &str) {
        if let Some(machine) = self.machines.lock().remove(name) {
            machine.power.cancel();
        }
    }

    /// Adds a leftover member of a deleted machine.
    pub(crate) fn add_stray(&self, name: &str) {
        let place = place(name);
        let power = CancellationToken::new();
        self.etcd.add_learner(&place).unwrap();
        self.etcd.run(name, &power).unwrap();
        self.etcd.start(&place);
        self.etcd.promote(name).unwrap();
        power.cancel();
    }

    /// Sets whether the kubelet of a machine forwards ports; etcd keeps running.
    pub(crate) fn answers(&self, name: &str, answers: bool) {
        if let Some(machine) = self.machines.lock().get_mut(name) {
            match answers {
                true => machine.forwarding = CancellationToken::new(),
                false => machine.forwarding.cancel(),
            }
        }
    }

    /// Sets the validity of the certificates of API servers that are switched on from now on.
    pub(crate) fn certificates_last(&self, days: u64) {
        *self.validity.lock() = days;
    }

    /// Closes or opens the ports of all API servers.
    pub(crate) fn refuse_handshakes(&self, refuse: bool) {
        self.refused.store(refuse, Ordering::Relaxed);
    }

    /// How often a certificate of an API server was asked for.
    pub(crate) fn handshakes(&self) -> usize {
        *self.handshakes.lock()
    }

    /// The names of all members, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.etcd.members().into_iter().map(|it| it.name).collect();
        names.sort();
        names
    }

    /// The number of open connections to members.
    pub(crate) fn connections(&self) -> usize {
        // The members are cloned for the API server, too.
        let clones = Arc::strong_count(&self.machines);
        Arc::strong_count(&self.connections) - clones
    }

    pub(crate) fn leader(&self) -> Option<Listed> {
        self.etcd.members().into_iter().find(|member| member.leads)
    }

    fn switch_on(&self, name: &str, (ca, key): &(String, String)) -> CancellationToken {
        let (certificate, member_key) = certificate(ca, key, name);
        let (api_server, api_server_key) = expiring(ca, key, name, *self.validity.lock());
        let api_server = apiserver::server_config(&api_server, &api_server_key, None).unwrap();
        let power = CancellationToken::new();
        let machine = Machine {
            power: power.clone(),
            tls: tls::server(ca, &certificate, &member_key.into()).unwrap(),
            api_server: TlsAcceptor::from(api_server),
            forwarding: CancellationToken::new(),
        };
        self.machines.lock().insert(name.to_owned(), machine);
        power
    }

    fn port(&self, node: &Value, port: u16) -> Option<(TlsAcceptor, CancellationToken)> {
        let machines = self.machines.lock();
        let machine = machines.get(node["metadata"]["name"].as_str()?)?;
        let open = !machine.forwarding.is_cancelled();
        let tls = match port {
            PORT => &machine.tls,
            API_SERVER if !self.refused.load(Ordering::Relaxed) => &machine.api_server,
            _ => return None,
        };
        open.then(|| (tls.clone(), machine.forwarding.clone()))
    }
}

impl Kubelet for Members {
    fn is_reachable(&self, node: &Value) -> bool {
        self.port(node, PORT).is_some()
    }

    fn log<'a>(
        &'a self,
        _: &'a Value,
        _: &'a Value,
        _: &'a str,
        _: bool,
    ) -> BoxFuture<'a, Result<Log, String>> {
        async { Err("there are no logs".to_owned()) }.boxed()
    }

    fn connect<'a>(
        &'a self,
        node: &'a Value,
        _: &'a Value,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, String>> {
        let open = self.port(node, port);
        let name = node["metadata"]["name"].as_str().unwrap().to_owned();
        let (etcd, counted) = (Arc::clone(&self.etcd), Arc::clone(&self.connections));
        let handshakes = Arc::clone(&self.handshakes);
        async move {
            let (tls, forwarding) = open.ok_or("connection refused")?;
            let (here, there) = tokio::io::duplex(1 << 16);
            if port == API_SERVER {
                *handshakes.lock() += 1;
                tokio::spawn(async move { tls.accept(there).await.map(drop) });
                return Ok(Box::new(here) as Box<dyn Connection>);
            }
            tokio::spawn(forwarding.run_until_cancelled_owned(async move {
                etcd.serve(&name, tls, there).await;
                drop(counted);
            }));
            Ok(Box::new(here) as Box<dyn Connection>)
        }
        .boxed()
    }
}

fn place(name: &str) -> MemberHost {
    MemberHost {
        machine: name.to_owned(),
        name: name.to_owned(),
        host: address(name),
    }
}

/// The address of the machine `name`.
pub(crate) fn address(name: &str) -> String {
    let mut sum = DefaultHasher::new();
    name.hash(&mut sum);
    let [.., a, b, c] = sum.finish().to_be_bytes();
    format!("10.{a}.{b}.{c}")
}
