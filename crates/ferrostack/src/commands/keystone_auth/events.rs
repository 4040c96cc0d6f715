//! Events about the webhook's own pod: unusable files.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use operator::events::Recorder;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::config_maps::{Connection, connected};
use crate::cli::KeystoneWebhook;
use crate::environment::Environment;

/// The name in events and requests.
pub(super) const PROGRAM: &str = "ferrostack-keystone-auth";
/// Reason and action of events about input.
pub(super) const NOT_USABLE: &str = "NotUsable";
pub(super) const READING: &str = "Reading";
/// Variables with the pod's name, namespace and uid, set by a Deployment.
const POD: [&str; 3] = ["POD_NAME", "POD_NAMESPACE", "POD_UID"];
/// Maximum of waiting reports.
const WAITING: usize = 16;

/// Recorder of reports, which become events until `stop`: about the webhook's pod, if the variables are set and the
/// flags need an API server at all. Otherwise, and while the API server is unreachable, reports are only logged.
pub(super) fn follow(
    args: &KeystoneWebhook,
    environment: &Environment,
    stop: &CancellationToken,
) -> mpsc::Sender<String> {
    let (sender, reports) = mpsc::channel(WAITING);
    let pod = pod(environment).filter(|_| wants_an_api_server(args));
    let (connection, environment) = (Connection::new(args), environment.clone());
    let connection = Arc::new((connection, environment));
    let connect = move || {
        let connection = Arc::clone(&connection);
        async move { connected(&connection.0, &connection.1).await }.boxed()
    };
    let following = async move {
        let Some(pod) = pod else { return };
        record(pod, reports, connect).await;
    };
    let stop = stop.clone();
    tokio::spawn(async move { stop.run_until_cancelled_owned(following).await });
    sender
}

async fn record(
    pod: ObjectReference,
    mut reports: mpsc::Receiver<String>,
    connect: impl Fn() -> BoxFuture<'static, anyhow::Result<Client>>,
) {
    let mut recorder = None;
    while let Some(report) = reports.recv().await {
        if recorder.is_none() {
            let client = connect().await;
            recorder = client.ok().map(|client| Recorder::new(client, PROGRAM));
        }
        if let Some(recorder) = &recorder {
            let recorded = recorder.warning_about(&pod, NOT_USABLE, READING, report);
            recorded.await;
        }
    }
}

fn pod(environment: &Environment) -> Option<ObjectReference> {
    let [name, namespace, uid] = POD.map(|it| environment.non_empty(it).map(str::to_owned));
    Some(ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(name?),
        namespace: Some(namespace?),
        uid,
        ..ObjectReference::default()
    })
}

/// True if ConfigMaps are read, or objects are written: with files alone, no API server is contacted.
fn wants_an_api_server(args: &KeystoneWebhook) -> bool {
    let names = [&args.policy_configmap_name, &args.sync_configmap_name];
    let is_named = names.into_iter().flatten().any(|name| !name.is_empty());
    is_named || args.sync_config_file.is_some() || args.prune.is_some()
}

#[cfg(test)]
mod tests {
    use apiserver::ApiServer;
    use k8s_openapi::api::core::v1::Namespace;
    use k8s_openapi::api::events::v1::Event;
    use kube::ResourceExt;
    use kube::api::{ListParams, PostParams};
    use operator::client::Api;

    use super::*;
    use crate::commands::keystone_auth::tests::{args, eventually};

    const IN_A_POD: [(&str, &str); 3] = [
        ("POD_NAME", "k8s-keystone-auth-x"),
        ("POD_NAMESPACE", "auth"),
        ("POD_UID", "u1"),
    ];

    #[tokio::test]
    async fn a_file_that_cannot_be_used_is_an_event_about_the_pod() {
        let options = apiserver::Options {
            hooks: Arc::new(apiserver::NoHooks),
            ..apiserver::Options::default()
        };
        let server = ApiServer::open(options).await.unwrap();
        let client = Client::new(server.in_process(), "default");
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some("auth".to_owned());
        let params = PostParams::default();
        namespaces.create(&params, &namespace).await.unwrap();
        let (sender, reports) = mpsc::channel(WAITING);
        let pod = pod(&Environment::with(&IN_A_POD)).unwrap();
        let connected = client.clone();
        let connect = move || std::future::ready(Ok(connected.clone())).boxed();
        tokio::spawn(record(pod, reports, connect));
        let report = "the certificate is not replaced: it has no key";
        sender.send(report.to_owned()).await.unwrap();
        let api: Api<Event> = Api::namespaced(client, "auth");
        eventually("there is an event", async || {
            let events = api.list(&ListParams::default()).await.unwrap().items;
            let Some(event) = events.first() else {
                return false;
            };
            let about = event.regarding.clone().unwrap();
            assert_eq!(
                (
                    about.kind.as_deref(),
                    about.name.as_deref(),
                    about.uid.as_deref()
                ),
                (Some("Pod"), Some("k8s-keystone-auth-x"), Some("u1"))
            );
            assert!(event.name_any().starts_with("k8s-keystone-auth-x."));
            event.note.as_deref() == Some("The certificate is not replaced: it has no key")
        })
        .await;
    }

    #[tokio::test]
    async fn without_a_pod_or_an_api_server_reports_are_dropped() {
        assert_eq!(pod(&Environment::with(&IN_A_POD[1..])), None);
        for (flags, expected) in [
            (&[][..], false),
            (&["--policy-configmap-name="], false),
            (&["--policy-configmap-name=p"], true),
            (&["--sync-configmap-name=p"], true),
            (&["--sync-config-file=f"], true),
        ] {
            assert_eq!(wants_an_api_server(&args(flags)), expected, "{flags:?}");
        }
        let stop = CancellationToken::new();
        let reports = follow(&args(&[]), &Environment::with(&IN_A_POD), &stop);
        reports.closed().await;
        assert!(reports.try_send("nobody reads it".to_owned()).is_err());
    }
}
