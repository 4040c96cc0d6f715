//! Desired objects in the cluster: steps with their Kubernetes objects, ordered so that each step can start when
//! earlier steps are ready.

mod access;
mod credentials;
mod names;
mod pod;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use self::names::Names;
use crate::accounts::Accounts;
use crate::accounts::broker::{self, Broker};
use crate::accounts::identity::{self, Identity, Urls};
use crate::cloud::Cloud;
use crate::held::{Credentials, FERNET, GENERATED, SECRETS};
use crate::object::{Object, ObjectKind, Reference};
use crate::service::definition::{Address, Content, Definition, Run, Task, Volume, Workload};
use crate::service::{definitions, edge};

/// Label with the step of an object.
pub const STEP: &str = "ferrostack.dev/step";
/// Label of a configuration object, without the digest of its name.
pub const CONFIGURES: &str = "ferrostack.dev/configures";
/// Annotation of Pods with the digest of their keys.
pub(crate) const REVISION: &str = "ferrostack.dev/keys";
/// First step, with objects used by all others.
const HELD: &str = "secrets";
pub(crate) const CONFIGURATION: &str = "configuration";
/// Infrastructure of all services, which belongs to no service.
const INFRASTRUCTURE: [&str; 5] = ["mariadb", "rabbitmq", "memcached", "ovn", "edge"];
/// Programs of services, in the order of an upgrade, each waiting for the programs before. Databases, networks and
/// guests go on without these programs. Computes come after every program of Nova with connections to computes.
pub(crate) const ROLL: [&str; 14] = [
    "keystone-api",
    "placement-api",
    "glance-api",
    "neutron-api",
    "neutron-rpc-server",
    "neutron-periodic-workers",
    "neutron-ovn-maintenance-worker",
    "nova-conductor",
    "nova-scheduler",
    "nova-api",
    "nova-metadata",
    "nova-novncproxy",
    "nova-compute",
    "horizon",
];
/// Programs of Cinder, in a cloud with volumes; no upgrade adds or removes Cinder.
const VOLUMES: [&str; 4] = [
    "cinder-api",
    "cinder-scheduler",
    "cinder-volume",
    "cinder-backup",
];
/// Program of Octavia, in a cloud with load balancers; no upgrade adds or removes Octavia.
const BALANCERS: &str = "octavia-api";
/// Number of retries of a task.
const RETRIES: u32 = 6;
/// Part of steps that belong to no single service.
const CLOUD: &str = "cloud";
/// Steps without objects: writes to RabbitMQ and Keystone.
const BROKER: &str = "broker-accounts";
const IDENTITIES: &str = "identities";

/// [`Step`]s, each after the steps needed by it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Uid of the cloud.
    pub uid: String,
    /// Problems that prevent the deployment of the steps.
    pub problems: Vec<String>,
    /// Steps.
    pub steps: Vec<Step>,
}

/// Step of a deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Name.
    pub name: String,
    /// Name of the service of the step; `cloud` for a step of all services.
    pub part: &'static str,
    /// Steps that have to be ready before.
    pub needs: Vec<String>,
    /// [`Object`]s, in the order of their creation.
    pub objects: Vec<Object>,
    /// Descriptions of the writes to RabbitMQ or Keystone.
    pub writes: Vec<String>,
    /// [`Accounts`] in RabbitMQ or Keystone.
    pub accounts: Option<Accounts>,
}

impl Graph {
    /// Every [`Object`] with its [`Step`].
    pub fn objects(&self) -> impl Iterator<Item = (&Step, &Object)> {
        let steps = self.steps.iter();
        steps.flat_map(|step| step.objects.iter().map(move |it| (step, it)))
    }
}

/// [`Step`]s of a cloud.
pub fn desired(cloud: &Cloud, held: &Credentials) -> Graph {
    let (definitions, mut problems) = definitions(cloud, held);
    problems.extend(held.problems());
    let names = Names { cloud, held };
    let mut steps = vec![secrets(&names), configuration(&names, &definitions)];
    for definition in &definitions {
        let part = definition.name;
        let tasks = definition
            .tasks
            .iter()
            .map(|it| names.task(part, it, RETRIES));
        let workloads = definition.workloads.iter();
        let workloads = workloads.map(|it| names.workload(part, it));
        steps.extend(tasks.chain(workloads).map(|step| Step {
            part: definition.name,
            ..step
        }));
    }
    steps.push(broker(held, &definitions));
    steps.push(identities(cloud, held, &definitions));
    steps.extend(credentials::certificate(&names));
    match credentials::step(&names) {
        Ok(step) => steps.push(step),
        Err(problem) => problems.push(problem),
    }
    Graph {
        uid: held.uid().to_owned(),
        problems,
        steps: ordered(steps),
    }
}

/// Tasks outside of the definitions, each with its part and the number of its retries, and policies for the addresses
/// in their configuration.
pub(crate) fn beside(
    cloud: &Cloud,
    held: &Credentials,
    tasks: &[(&'static str, Task, u32)],
) -> (Vec<Step>, Vec<Object>) {
    let names = Names { cloud, held };
    let (definitions, _) = definitions(cloud, held);
    let step = |(part, task, retries): &(&'static str, Task, u32)| Step {
        part,
        ..names.task(part, task, *retries)
    };
    let alone: Vec<&Task> = tasks.iter().map(|(_, task, _)| task).collect();
    let policies = access::policies_beside(&names, &definitions, &alone, "upgrade");
    (tasks.iter().map(step).collect(), policies)
}

/// Task of an operation, with its files and with policies of this prefix for the addresses in the command: no object of
/// the cloud refers to the policies.
pub(crate) fn operation(
    cloud: &Cloud,
    held: &Credentials,
    (part, task, retries): (&'static str, &Task, u32),
    prefix: &str,
) -> Step {
    let names = Names { cloud, held };
    let (definitions, _) = definitions(cloud, held);
    let mut step = Step {
        part,
        ..names.task(part, task, retries)
    };
    let mut objects = names.files(&task.run);
    // The cloud has the files of its own programs.
    let runs = definitions.iter().flat_map(runs);
    let files: Vec<Object> = runs.flat_map(|run| names.files(run)).collect();
    let files: BTreeSet<&Reference> = files.iter().map(Object::reference).collect();
    objects.retain(|it| !files.contains(it.reference()));
    objects.extend(access::policies_beside(
        &names,
        &definitions,
        &[task],
        prefix,
    ));
    objects.append(&mut step.objects);
    step.objects = objects;
    step
}

/// Databases of a cloud, by name.
pub(crate) fn databases(cloud: &Cloud, held: &Credentials) -> Vec<&'static str> {
    let (definitions, _) = definitions(cloud, held);
    let mut all: Vec<&str> = definitions
        .iter()
        .flat_map(|it| it.databases.iter().copied())
        .collect();
    all.sort_unstable();
    all
}

/// Labels and annotations of the [`SECRETS`], made once, by name.
pub(crate) fn secrets_metadata(cloud: &Cloud, held: &Credentials) -> Vec<(&'static str, Json)> {
    let names = Names { cloud, held };
    let metadata = |name: &'static str| {
        let mut metadata = names.metadata(HELD);
        metadata["name"] = name.into();
        metadata["annotations"] = json!({GENERATED: Credentials::generated(name)});
        (name, metadata)
    };
    SECRETS.iter().map(|(name, _)| metadata(name)).collect()
}

/// [`Task`] of this name in a cloud, with its part.
pub(crate) fn task_named(cloud: &Cloud, held: &Credentials, name: &str) -> Option<Task> {
    let (definitions, _) = definitions(cloud, held);
    let mut tasks = definitions.into_iter().flat_map(|it| it.tasks);
    tasks.find(|it| it.name == name)
}

/// True for the programs that read and write the databases.
pub(crate) fn is_program(name: &str) -> bool {
    ROLL.contains(&name) || VOLUMES.contains(&name) || name == BALANCERS
}

/// True if parts of this name belong to no service, and thus keep their image in an upgrade.
pub(crate) fn is_infrastructure(part: &str) -> bool {
    INFRASTRUCTURE.contains(&part)
}

/// Reason why no client can reach a cloud at this time, in seconds since 1970, whatever the state of the steps: an
/// expired certificate, or one not valid yet.
pub fn ended(cloud: &Cloud, held: &Credentials, now: i64) -> Option<String> {
    held.ended(edge::of(&cloud.parameters)?, now)
}

/// Replaces a given certificate by the last good one, if no client can connect with the given one at this time, in
/// seconds since 1970. Returns the problem of the given one. Without a good one nothing changes.
pub fn fall_back(cloud: &Cloud, held: &mut Credentials, now: i64) -> Option<String> {
    held.fall_back(edge::of(&cloud.parameters)?, now)
}

/// Sorts [`Step`]s so that each comes after the needed steps, and otherwise keeps the order.
pub(crate) fn ordered(mut steps: Vec<Step>) -> Vec<Step> {
    let mut sorted: Vec<Step> = Vec::with_capacity(steps.len());
    let mut done: BTreeSet<String> = BTreeSet::new();
    while !steps.is_empty() {
        let ready = steps
            .iter()
            .position(|step| step.needs.iter().all(|need| done.contains(need)));
        // A circle is not possible: a test sorts the steps of every release.
        let step = steps.remove(ready.unwrap_or(0));
        done.insert(step.name.clone());
        sorted.push(step);
    }
    sorted
}

/// Step of the Secrets that are made once and kept.
fn secrets(names: &Names<'_>) -> Step {
    let objects = SECRETS.iter().map(|(name, _)| {
        let mut metadata = names.metadata(HELD);
        metadata["annotations"] = json!({GENERATED: Credentials::generated(name)});
        let fields = json!({"type": "Opaque"});
        Object::new(ObjectKind::Secret, name, metadata, fields).with_secret(names.held.secret(name))
    });
    Step {
        name: HELD.to_owned(),
        part: CLOUD,
        objects: objects.collect(),
        ..Step::default()
    }
}

/// Configuration files, addresses with their policies, and volumes.
fn configuration(names: &Names<'_>, definitions: &[Definition]) -> Step {
    let mut objects = BTreeMap::new();
    let mut add = |object: Object| objects.insert(object.reference().clone(), object);
    for definition in definitions {
        for run in runs(definition) {
            for object in names.files(run) {
                add(object);
            }
        }
        for address in &definition.addresses {
            add(service(names, address, &definition.external));
        }
        for volume in &definition.volumes {
            add(claim(names, volume, &names.cloud.parameters.storage.class));
        }
    }
    for policy in access::policies(names, definitions) {
        add(policy);
    }
    Step {
        name: CONFIGURATION.to_owned(),
        part: CLOUD,
        needs: vec![HELD.to_owned()],
        objects: objects.into_values().collect(),
        ..Step::default()
    }
}

fn runs(definition: &Definition) -> impl Iterator<Item = &Run> {
    let tasks = definition.tasks.iter().map(|it| &it.run);
    tasks.chain(definition.workloads.iter().map(|it| &it.run))
}

impl Names<'_> {
    /// [`Object`]s of the configuration files of a program.
    fn files(&self, run: &Run) -> Vec<Object> {
        let object = |file: &crate::service::definition::File| {
            let name = self.file(file);
            let mut metadata = self.metadata(CONFIGURATION);
            metadata["labels"][CONFIGURES] = file.object.as_str().into();
            match &file.content {
                Content::Public(text) => {
                    let fields = json!({"immutable": true, "data": {file.key(): text}});
                    Object::new(ObjectKind::ConfigMap, &name, metadata, fields)
                }
                Content::Secret(text) => {
                    let fields = json!({"type": "Opaque", "immutable": true});
                    let data = BTreeMap::from([(file.key().to_owned(), text.clone())]);
                    Object::new(ObjectKind::Secret, &name, metadata, fields).with_secret(data)
                }
            }
        };
        run.files.iter().map(object).collect()
    }

    fn task(&self, part: &str, task: &Task, retries: u32) -> Step {
        let image = if task.repeat { self.image() } else { "" };
        let pod = self.pod(task.name, &task.run);
        // Where it runs and what it gets there is not what it does.
        let mut content = pod.clone();
        let pod = self.placed(part, task.name, &task.run, pod);
        content["containers"][0]["image"] = image.into();
        // A Job cannot be changed; another content is another Job.
        let digest = crate::held::digest(&[&content.to_string()]);
        let name = format!("{}-{digest}", task.name);
        let metadata = self.metadata(task.name);
        let fields = json!({"spec": {
            "backoffLimit": retries,
            "template": {
                "metadata": {"labels": self.labels(task.name)},
                "spec": pod::ending(pod),
            },
        }});
        let object = Object::new(ObjectKind::Job, &name, metadata, fields);
        self.step(task.name, &task.needs, object)
    }

    fn workload(&self, part: &str, workload: &Workload) -> Step {
        let name = workload.name;
        let metadata = self.metadata(name);
        let mut spec = json!({
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": self.selector(name)},
            "template": {
                "metadata": {"labels": self.labels(name)},
                "spec": self.placed(part, name, &workload.run, self.serving(workload)),
            },
        });
        let has_keys = workload.run.keys.iter().any(|(it, _)| it == FERNET);
        if let Some(revision) = self.held.revision().filter(|_| has_keys) {
            // A Pod with it was made when the keys were there: no kubelet has to be waited for.
            spec["template"]["metadata"]["annotations"] = json!({REVISION: revision});
        }
        if workload.run.host.is_none() {
            spec["replicas"] = workload.stateful.map_or(1, |it| it.replicas).into();
        }
        let kind = match workload.stateful {
            None if workload.run.host.is_some() => {
                // Guests are on the node: its administrator says when their programs restart.
                spec["updateStrategy"] = json!({"type": "OnDelete"});
                ObjectKind::DaemonSet
            }
            Some(stateful) => {
                spec["serviceName"] = stateful.address.into();
                if stateful.parallel {
                    spec["podManagementPolicy"] = "Parallel".into();
                }
                spec["updateStrategy"] = json!({"type": "RollingUpdate"});
                ObjectKind::StatefulSet
            }
            None => {
                // The old one ends when the new one answers.
                spec["strategy"] = json!({"type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
                ObjectKind::Deployment
            }
        };
        let object = Object::new(kind, name, metadata, json!({"spec": spec}));
        self.step(name, &workload.needs, object)
    }

    fn step(&self, name: &str, needs: &[&str], object: Object) -> Step {
        let needs: Vec<String> = match needs {
            [] => vec![CONFIGURATION.to_owned()],
            needs => needs.iter().map(|it| (*it).to_owned()).collect(),
        };
        Step {
            name: name.to_owned(),
            needs,
            objects: vec![object],
            ..Step::default()
        }
    }
}

fn service(names: &Names<'_>, address: &Address, external: &[String]) -> Object {
    let port = |(name, port): &(&str, u16)| json!({"name": name, "port": port, "targetPort": name, "protocol": "TCP"});
    let ports: Vec<_> = address.ports.iter().map(port).collect();
    let mut spec = json!({"selector": names.selector(address.workload), "ports": ports});
    if address.replicas {
        spec["clusterIP"] = "None".into();
        spec["publishNotReadyAddresses"] = true.into();
    }
    if !external.is_empty() {
        spec["externalIPs"] = external.into();
    }
    let fields = json!({"spec": spec});
    let metadata = names.metadata(CONFIGURATION);
    Object::new(ObjectKind::Service, address.name, metadata, fields)
}

fn claim(names: &Names<'_>, volume: &Volume, class: &str) -> Object {
    let mut fields = json!({"spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": volume.size}},
    }});
    if !class.is_empty() {
        fields["spec"]["storageClassName"] = class.into();
    }
    let metadata = names.metadata(CONFIGURATION);
    Object::new(
        ObjectKind::PersistentVolumeClaim,
        volume.name,
        metadata,
        fields,
    )
}

/// Virtual hosts and accounts in RabbitMQ.
fn broker(held: &Credentials, definitions: &[Definition]) -> Step {
    let users = definitions.iter().filter(|it| it.messaging);
    let accounts = users.clone().map(|it| {
        let logins = held.logins("messaging", it.name);
        (it.name.to_owned(), logins)
    });
    let accounts = Broker {
        uid: held.uid().to_owned(),
        admin: held.password(broker::ADMIN_PASSWORD),
        accounts: accounts.collect(),
    };
    let writes = users.flat_map(|it| {
        let name = it.name;
        let host = format!("RabbitMQ: virtual host {name}");
        let logins = held.logins("messaging", name).into_iter();
        let users =
            logins.map(move |it| format!("RabbitMQ: user {}, with all rights in {name}", it.user));
        std::iter::once(host).chain(users)
    });
    Step {
        name: BROKER.to_owned(),
        part: "rabbitmq",
        needs: vec![Broker::PROGRAM.to_owned()],
        objects: vec![],
        writes: writes.collect(),
        accounts: Some(Accounts::Broker(accounts)),
    }
}

/// Accounts and catalogue in Keystone, besides the objects made by bootstrap.
fn identities(cloud: &Cloud, held: &Credentials, definitions: &[Definition]) -> Step {
    let parameters = &cloud.parameters;
    let region = &parameters.region;
    let mut writes = vec![
        "Keystone: project service".to_owned(),
        "Keystone: role service".to_owned(),
    ];
    let mut accounts = Identity {
        uid: held.uid().to_owned(),
        admin: held.password(identity::ADMIN_PASSWORD),
        next: held.next_administrator(),
        region: region.clone(),
        users: BTreeMap::new(),
        catalogue: BTreeMap::new(),
        keystone: None,
    };
    for definition in definitions.iter().filter(|it| it.account) {
        let name = definition.name;
        for login in held.logins("identity", name) {
            writes.push(format!(
                "Keystone: user {}, with roles admin and service in project service",
                login.user
            ));
            accounts.users.insert(login.user, login.password);
        }
    }
    for entry in definitions.iter().flat_map(|it| &it.catalogue) {
        let (kind, name, url) = (entry.kind, entry.name, entry.url);
        let urls = Urls {
            public: edge::public(parameters, url),
            internal: url.to_owned(),
        };
        let inside = match urls.public == url {
            true => "public, internal, admin",
            false => "internal, admin",
        };
        let endpoint = |url: &str, interfaces: &str| {
            format!("Keystone: endpoints {url} of {kind} in {region}: {interfaces}")
        };
        let outside = (urls.public != url).then(|| endpoint(&urls.public, "public"));
        // The service of Keystone itself is made by its bootstrap, and so are its endpoints.
        if kind == "identity" {
            writes.extend(outside);
            accounts.keystone = Some(urls);
        } else {
            writes.push(format!("Keystone: service {kind} ({name})"));
            writes.push(endpoint(url, inside));
            writes.extend(outside);
            let service = (name.to_owned(), urls);
            accounts.catalogue.insert(kind.to_owned(), service);
        }
    }
    Step {
        name: IDENTITIES.to_owned(),
        part: "keystone",
        needs: vec![Identity::PROGRAM.to_owned()],
        writes,
        accounts: Some(Accounts::Identity(accounts)),
        ..Step::default()
    }
}

#[cfg(test)]
pub(crate) mod tests;
