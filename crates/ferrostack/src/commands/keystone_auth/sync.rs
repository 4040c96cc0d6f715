//! Writes after a login: the namespace of the project and the RoleBindings of the user, written one login after the other.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject as Bound};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use keystone_auth::subject::Subject;
use keystone_auth::sync::{Binding, Bindings, Wanted, wanted};
use keystone_auth::webhook::Webhook;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};
use operator::client::Api;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config_maps::{Connection, connected};
use crate::cli::KeystoneWebhook;
use crate::environment::Environment;

/// Mark of objects made by this module.
pub(super) const MANAGED_BY: (&str, &str) =
    ("app.kubernetes.io/managed-by", "ferrostack-keystone-auth");
/// Annotations with the ids of the user and the project: these may be too long for a label.
const USER: &str = "ferrostack.dev/keystone-user";
pub(super) const PROJECT: &str = "ferrostack.dev/keystone-project";
/// The group of RBAC.
const RBAC: &str = "rbac.authorization.k8s.io";
/// Maximum of waiting logins.
pub(super) const WAITING: usize = 1000;
/// Time after a write without another look.
const REST: Duration = Duration::from_secs(60);
/// Maximum of remembered logins.
const REMEMBERED: usize = 10_000;

/// Writes the objects for logins until `stop`. An unreachable API server is tried again at the next login.
pub(super) fn follow(
    args: &KeystoneWebhook,
    environment: &Environment,
    webhook: &Arc<Webhook>,
    mut logins: mpsc::Receiver<Subject>,
    stop: &CancellationToken,
) {
    let (webhook, environment) = (Arc::clone(webhook), environment.clone());
    let connection = Connection::new(args);
    let following = async move {
        let (mut client, mut memory) = (None, Memory::default());
        while let Some(user) = logins.recv().await {
            let wanted = match wanted(&webhook.sync(), &user) {
                Ok(Some(wanted)) => wanted,
                Ok(None) => continue,
                Err(why) => {
                    tracing::warn!("nothing is written for a login: {why}");
                    continue;
                }
            };
            if memory.has(&wanted) {
                continue;
            }
            let written = async {
                if client.is_none() {
                    client = Some(connected(&connection, &environment).await?);
                }
                let client = client.as_ref().context("there is no API server")?;
                write(client, &wanted).await
            };
            match written.await {
                Ok(()) => memory.keep(wanted),
                Err(error) => {
                    let why = operator::words::chain(&*error);
                    tracing::error!(
                        "nothing more is written for a login until the next one: {why}"
                    );
                }
            }
        }
    };
    let stop = stop.clone();
    tokio::spawn(async move { stop.run_until_cancelled_owned(following).await });
}

/// Recent writes, by project and user.
#[derive(Default)]
struct Memory(HashMap<(String, String), (Wanted, Instant)>);

impl Memory {
    fn has(&self, wanted: &Wanted) -> bool {
        let known = self.0.get(&key(wanted));
        known.is_some_and(|(before, at)| before == wanted && at.elapsed() < REST)
    }

    fn keep(&mut self, wanted: Wanted) {
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.insert(key(&wanted), (wanted, Instant::now()));
    }
}

fn key(wanted: &Wanted) -> (String, String) {
    let user = wanted.bindings.as_ref().map(|it| it.user_id.clone());
    (wanted.project_id.clone(), user.unwrap_or_default())
}

/// Writes missing objects, and deletes unwanted ones; idempotent.
async fn write(client: &Client, wanted: &Wanted) -> anyhow::Result<()> {
    if wanted.create {
        let api: Api<Namespace> = Api::all(client.clone());
        let title = format!("namespace {}", wanted.namespace);
        let found = api.get_opt(&wanted.namespace).await;
        if found
            .with_context(|| format!("reading the {title}"))?
            .is_none()
        {
            let created = api.create(&PostParams::default(), &namespace(wanted)).await;
            accept_existing(created).with_context(|| format!("creating the {title}"))?;
        }
    }
    match &wanted.bindings {
        Some(bindings) => write_bindings(client, wanted, bindings).await,
        None => Ok(()),
    }
}

async fn write_bindings(
    client: &Client,
    wanted: &Wanted,
    bindings: &Bindings,
) -> anyhow::Result<()> {
    let api: Api<RoleBinding> = Api::namespaced(client.clone(), &wanted.namespace);
    let place = format!("in the namespace {}", wanted.namespace);
    let existing = api.list(&ListParams::default()).await;
    let existing = existing
        .with_context(|| format!("listing RoleBindings {place}"))?
        .items;
    let seen: Vec<Binding> = existing.iter().map(binding).collect();
    let changes = bindings.changes(&seen);
    for name in changes.taken {
        tracing::warn!("the RoleBinding {name} {place} is another one's: the role is not bound");
    }
    for name in changes.delete {
        let found = existing.iter().find(|it| it.name_any() == name);
        let uid = found.and_then(ResourceExt::uid);
        // What has been made anew since it was seen stays.
        let params = DeleteParams {
            preconditions: uid.map(|uid| Preconditions {
                uid: Some(uid),
                ..Preconditions::default()
            }),
            ..DeleteParams::default()
        };
        let deleted = api.delete(&name, &params).await;
        deleted.with_context(|| format!("deleting the RoleBinding {name} {place}"))?;
    }
    for (name, role) in changes.create {
        let object = role_binding(wanted, bindings, name.clone(), role);
        let created = api.create(&PostParams::default(), &object).await;
        accept_existing(created)
            .with_context(|| format!("creating the RoleBinding {name} {place}"))?;
    }
    Ok(())
}

/// Accepts an existing object, made by another replica of the webhook.
fn accept_existing<K>(created: kube::Result<K>) -> kube::Result<()> {
    match created {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        other => other.map(|_| ()),
    }
}

fn namespace(wanted: &Wanted) -> Namespace {
    Namespace {
        metadata: ObjectMeta {
            name: Some(wanted.namespace.clone()),
            ..marked(&[(PROJECT, &wanted.project_id)])
        },
        ..Namespace::default()
    }
}

fn role_binding(wanted: &Wanted, bindings: &Bindings, name: String, role: String) -> RoleBinding {
    RoleBinding {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(wanted.namespace.clone()),
            ..marked(&[(PROJECT, &wanted.project_id), (USER, &bindings.user_id)])
        },
        role_ref: RoleRef {
            api_group: Some(RBAC.to_owned()),
            kind: "ClusterRole".to_owned(),
            name: role,
        },
        subjects: Some(vec![Bound {
            api_group: Some(RBAC.to_owned()),
            kind: "User".to_owned(),
            name: bindings.user.clone(),
            namespace: None,
        }]),
    }
}

fn marked(annotations: &[(&str, &String)]) -> ObjectMeta {
    let (key, value) = MANAGED_BY;
    let annotations = annotations
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).clone()));
    ObjectMeta {
        labels: Some(BTreeMap::from([(key.to_owned(), value.to_owned())])),
        annotations: Some(annotations.collect()),
        ..ObjectMeta::default()
    }
}

fn binding(it: &RoleBinding) -> Binding {
    let is_ours = it
        .labels()
        .get(MANAGED_BY.0)
        .is_some_and(|by| by == MANAGED_BY.1);
    let user = match it.subjects.as_deref() {
        Some([one]) if one.kind == "User" => Some(one.name.clone()),
        _ => None,
    };
    Binding {
        name: it.name_any(),
        of_user: it.annotations().get(USER).filter(|_| is_ours).cloned(),
        role: (it.role_ref.kind == "ClusterRole").then(|| it.role_ref.name.clone()),
        user,
    }
}

#[cfg(test)]
mod tests {
    use apiserver::ApiServer;

    use super::*;

    async fn cluster() -> Client {
        let options = apiserver::Options {
            hooks: Arc::new(apiserver::NoHooks),
            ..apiserver::Options::default()
        };
        let server = ApiServer::open(options).await.unwrap();
        Client::new(server.in_process(), "default")
    }

    fn of_alice(roles: &[&str]) -> Wanted {
        Wanted {
            namespace: "p1".to_owned(),
            create: true,
            project_id: "p1".to_owned(),
            bindings: Some(Bindings {
                user_id: "u1".to_owned(),
                user: "alice".to_owned(),
                roles: roles.iter().map(|it| (*it).to_owned()).collect(),
            }),
        }
    }

    async fn names(client: &Client) -> Vec<(String, Option<String>)> {
        let api: Api<RoleBinding> = Api::namespaced(client.clone(), "p1");
        let all = api.list(&ListParams::default()).await.unwrap().items;
        all.iter()
            .map(|it| (it.name_any(), it.metadata.resource_version.clone()))
            .collect()
    }

    #[tokio::test]
    async fn a_login_makes_namespace_and_bindings_and_takes_those_of_lost_roles() {
        let client = cluster().await;
        write(&client, &of_alice(&["member", "reader"]))
            .await
            .unwrap();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = namespaces.get_opt("p1").await.unwrap().unwrap();
        assert_eq!(namespace.annotations()[PROJECT], "p1");
        let api: Api<RoleBinding> = Api::namespaced(client.clone(), "p1");
        let created = api.get_opt("u1_member").await.unwrap().unwrap();
        let subject = created.subjects.as_ref().unwrap()[0].clone();
        assert_eq!(
            (&*subject.kind, &*subject.name, &*created.role_ref.name),
            ("User", "alice", "member")
        );
        assert_eq!(created.labels()[MANAGED_BY.0], MANAGED_BY.1);
        // Again: nothing is written.
        let before = names(&client).await;
        write(&client, &of_alice(&["member", "reader"]))
            .await
            .unwrap();
        assert_eq!(names(&client).await, before);
        // Of another user, and of an administrator.
        let mut bob = of_alice(&["member"]);
        bob.bindings = Some(Bindings {
            user_id: "u2".to_owned(),
            user: "bob".to_owned(),
            roles: vec!["member".to_owned()],
        });
        write(&client, &bob).await.unwrap();
        let mut other = created;
        other.metadata = ObjectMeta {
            name: Some("operators".to_owned()),
            ..ObjectMeta::default()
        };
        api.create(&PostParams::default(), &other).await.unwrap();
        write(&client, &of_alice(&["reader"])).await.unwrap();
        let left: Vec<String> = names(&client)
            .await
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(left, ["operators", "u1_reader", "u2_member"]);
    }

    #[tokio::test]
    async fn without_projects_a_namespace_that_is_not_there_is_an_error_or_is_left_alone() {
        let client = cluster().await;
        let nothing = Wanted {
            create: false,
            bindings: None,
            ..of_alice(&[])
        };
        write(&client, &nothing).await.unwrap();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        assert!(namespaces.get_opt("p1").await.unwrap().is_none());
        let bindings = Wanted {
            create: false,
            ..of_alice(&["member"])
        };
        let error = write(&client, &bindings).await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("RoleBinding u1_member in the namespace p1"),
            "{error:#}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_been_written_is_not_looked_at_for_a_minute() {
        let mut memory = Memory::default();
        let member = of_alice(&["member"]);
        assert!(!memory.has(&member));
        memory.keep(member.clone());
        assert!(memory.has(&member));
        assert!(!memory.has(&of_alice(&["reader"])));
        tokio::time::advance(REST).await;
        assert!(!memory.has(&member));
    }
}
