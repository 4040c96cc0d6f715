//! What users read has no debug forms of Rust, no error numbers of the operating system, and no escape sequences where
//! there is no terminal: in conditions, events and the log of a cluster that fails in several ways, and in the output
//! of every command, made to fail. (The output of all other commands of the suite is checked where they are run.)

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::json;
use simulator::guest;

use crate::cloud::TestCloud;
use crate::forms::{forms, is_for_developers, strings};
use crate::main_job::{kind, machines};
use crate::process::{KINDS, Up, eventually, run, texts};

/// The texts of the management API: the messages of events, and every string of a status.
async fn texts_of_objects(client: &kube::Client) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (group, version, kind) in KINDS {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        for object in api.list(&ListParams::default()).await.unwrap() {
            let name = object.metadata.name.unwrap_or_default();
            let read = match kind {
                "Event" if group.is_empty() => &object.data["message"],
                "Event" => &object.data["note"],
                _ => &object.data["status"],
            };
            strings(read, &mut |text| {
                texts.push((format!("{kind} {name}"), text.to_owned()));
            });
        }
    }
    texts
}

/// The lines of the log that are not for developers.
fn texts_of_log(home: &Path) -> Vec<(String, String)> {
    let log = std::fs::read_to_string(home.join("log")).unwrap();
    log.lines()
        .filter(|line| !is_for_developers(line))
        .map(|line| ("log".to_owned(), line.to_owned()))
        .collect()
}

fn check(texts: &[(String, String)]) {
    let wrong: Vec<String> = texts
        .iter()
        .filter(|(_, text)| !forms(text).is_empty())
        .map(|(place, text)| format!("{place}: {:?} in: {text}", forms(text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_fails_is_reported_in_words() {
    let home = tempfile::tempdir().unwrap();
    let quotas = BTreeMap::from([("instances".to_owned(), 2)]);
    let mut cloud = TestCloud::with(home.path(), quotas, guest::Options::default()).await;
    let args = [
        "--cloud",
        "simulated",
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ];
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    let client = up.client().await;

    // Two workers, of which the quota allows one.
    let deployments: Api<DynamicObject> = Api::default_namespaced_with(
        client.clone(),
        &kind("cluster.x-k8s.io", "MachineDeployment"),
    );
    let two = Patch::Merge(json!({"spec": {"replicas": 2}}));
    let params = PatchParams::default();
    let patched = deployments.patch("demo-md-0", &params, &two);
    patched.await.unwrap();
    let events: Api<DynamicObject> = Api::default_namespaced_with(
        client.clone(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Event")),
    );
    let event = async |word: &str| {
        eventually(&format!("an event with `{word}`"), || async {
            let found = events.list(&ListParams::default()).await.ok()?.items;
            let message = |event: &DynamicObject| {
                event.data["message"].as_str()?.contains(word).then_some(())
            };
            found.iter().find_map(message)
        })
        .await;
    };
    event("Quota exceeded").await;
    // A Pod that the management API does not run.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nginx"},
        "spec": {"containers": [{"name": "nginx", "image": "nginx"}]}});
    let pods: Api<DynamicObject> = Api::default_namespaced_with(
        client.clone(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod")),
    );
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&Default::default(), &pod).await.unwrap();
    event("has no nodes").await;
    let mut seen = texts_of_objects(&client).await;

    // The cloud and the workload cluster no longer answer.
    cloud.stop();
    let deleted = machines(&client)
        .list(&ListParams::default().labels("cluster.x-k8s.io/deployment-name=demo-md-0"))
        .await
        .unwrap()
        .items;
    for machine in deleted {
        let name = machine.metadata.name.unwrap();
        machines(&client)
            .delete(&name, &Default::default())
            .await
            .unwrap();
    }
    eventually(
        "the log has the problem of a request to the cloud",
        || async {
            let log = std::fs::read_to_string(home.path().join("log")).ok()?;
            log.lines()
                .any(|line| line.contains("ERROR") || line.contains("WARN"))
                .then_some(())
        },
    )
    .await;
    eventually("a condition has the problem of the cloud", || async {
        let seen = texts_of_objects(&client).await;
        let refused = |(_, text): &(String, String)| {
            text.contains("refused") || text.contains("does not answer")
        };
        seen.iter().any(refused).then_some(())
    })
    .await;
    seen.extend(texts_of_objects(&client).await);
    seen.extend(texts_of_log(home.path()));
    seen.push((
        "output".to_owned(),
        up.story()
            .split("--- log")
            .next()
            .unwrap()
            .replace("\\\"", ""),
    ));
    let data = home.path().join("data").display().to_string();
    for args in [
        &["describe", "cluster", "demo"][..],
        &["get", "clusters", "-A"],
        &["status"],
    ] {
        let args = [args, &["--data-dir", &data]].concat();
        let (out, err) = texts(&run(home.path(), &args).await);
        assert!(!out.is_empty(), "{args:?}: {err}");
        seen.push((args.join(" "), out));
        seen.push((args.join(" "), err));
    }
    check(&seen);
    up.kill().await;
}

/// What is wrong with what the commands of [`FAILING`] are given; `{file}`, `{good}` and `{refusing}` are files.
struct Inputs {
    /// No YAML.
    file: String,
    /// A manifest.
    good: String,
    /// A kubeconfig of an API server that does not answer.
    refusing: String,
}

impl Inputs {
    fn write(home: &Path) -> Self {
        let write = |name: &str, text: &str| {
            let path = home.join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        Self {
            file: write("file", "a: [\n"),
            good: write(
                "good.yaml",
                "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: a}\n",
            ),
            refusing: write(
                "kubeconfig",
                "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
                clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n\
                contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n",
            ),
        }
    }

    fn args(&self, command: &str) -> Vec<String> {
        let fill = |word: &str| {
            let word = word.replace("{file}", &self.file);
            let word = word.replace("{good}", &self.good);
            word.replace("{refusing}", &self.refusing)
        };
        command.split(' ').map(fill).collect()
    }
}

/// Commands that fail: each command of the program at least once.
const FAILING: &str = "\
up --from /nowhere
up -f /nowhere
up -f {file}
up --data-dir {file}
up --data-dir /proc/nowhere
up --cloud nowhere
up --guest-runner /nowhere
status --data-dir {file}
down --data-dir {file}
apply -f /nowhere
apply -f {file} --kubeconfig {refusing}
apply -f {good} --kubeconfig {refusing}
apply -f {good} --diff --kubeconfig {refusing}
apply -f http://127.0.0.1:1/a.yaml --kubeconfig {refusing}
init --kubeconfig /nowhere
init --kubeconfig {file}
init --kubeconfig {refusing}
init --infrastructure nowhere --kubeconfig {refusing}
init list-images -o nothing
manager --kubeconfig {refusing}
manager --kubeconfig /nowhere
cloud-controller-manager --cloud-config /nowhere
cinder-csi-plugin --endpoint unix:///nowhere/csi.sock --cloud-config /nowhere
csi check --cloud-config /nowhere --kubeconfig {refusing}
csi check --cloud-config {file} --kubeconfig /nowhere
csi orphans --cloud-config {file} --cluster a --kubeconfig {refusing}
csi orphans --cloud-config {file} --cluster a --yes
docs nowhere
docs --search nowhere-to-be-found
plan -f /nowhere --kubeconfig {refusing}
plan -f {file} --kubeconfig {refusing}
plan -f {good} --kubeconfig {refusing}
plan cluster a --kubeconfig {refusing}
plan cluster a --kubeconfig /nowhere
adopt cluster demo --kubeconfig {refusing}
adopt cluster demo --kubeconfig /nowhere
audit --cloud nowhere --kubeconfig {refusing}
audit --cloud nowhere --kubeconfig /nowhere
audit --cloud nowhere --yes
delete cluster demo --with everything --kubeconfig {refusing}
client-keystone-auth
client-keystone-auth --os-cloud nowhere
client-keystone-auth --keystone-url http://127.0.0.1:1 --user-name a --password b
k8s-keystone-auth --tls-cert-file /nowhere --tls-private-key-file /nowhere --keystone-url http://127.0.0.1:1
keystone-auth explain --policy /nowhere --verb get --resource pods
keystone-auth explain --policy {file} --verb get --resource pods
keystone-auth check --policy {file}
cloud-conf check /nowhere
cloud-conf check {file}
cloud-conf generate --cloud nowhere
cloud-conf generate --from-legacy /nowhere
env --cloud nowhere
generate cluster a --from /nowhere
generate cluster a --from http://127.0.0.1:1/a.yaml
generate cluster a --cloud nowhere
generate cluster a --config /nowhere
generate cluster a --from-config-map a --kubeconfig {refusing}
generate yaml --from /nowhere
generate manager -n NOT_A_NAMESPACE
generate manager --serve-versions v1alpha3
generate provider --core nowhere
generate repository /proc/nowhere
generate chart /proc/nowhere
generate monitoring -n NOT_A_NAMESPACE
generate cloud-controller-manager --cloud nowhere
generate cinder-csi-plugin --cloud nowhere
generate cinder-csi-plugin --values /nowhere
generate cinder-csi-plugin --values {file}
generate kubeconfig --keystone --server https://127.0.0.1:1 --certificate-authority /nowhere
generate keystone-auth --keystone-url nowhere
convert /nowhere
convert {file}
convert {good} -o /proc/nowhere/file
convert -f /nowhere --diff
convert http://127.0.0.1:1/a.yaml
describe cluster a --kubeconfig {refusing}
why a --kubeconfig {refusing}
why machine/a --kubeconfig /nowhere
get kubeconfig a
get clusters --kubeconfig {refusing}
get clusters --kubeconfig {file}
delete --all --kubeconfig {refusing}
delete cluster a --kubeconfig {refusing}
upgrade plan --kubeconfig {refusing}
upgrade plan --kubeconfig /nowhere
upgrade apply --kubeconfig {refusing}
config repositories -o nothing
rollout restart machinedeployment/a --kubeconfig {refusing}
rollout restart nothing/a --kubeconfig {refusing}
rollout pause machinedeployment/a --kubeconfig {refusing}
rollout resume machinedeployment/a --kubeconfig {refusing}
rollout undo machinedeployment/a --kubeconfig {refusing}
rollout undo kubeadmcontrolplane/a --kubeconfig {refusing}
rollout status machinedeployment/a --kubeconfig {refusing}
rollout history machinedeployment/a --kubeconfig {refusing}
wait cluster/a --for delete --kubeconfig {refusing}
wait nothing/a --for delete --kubeconfig {refusing}
events cluster/a --kubeconfig {refusing}
topology plan -f /nowhere
topology plan -f {file} --kubeconfig {refusing}
topology plan -f {good} --kubeconfig {refusing}
move --to-kubeconfig /nowhere --kubeconfig {refusing}
move --to-kubeconfig {refusing} --kubeconfig {refusing}
move --to-directory /proc/nowhere --kubeconfig {refusing}
move --from-directory /nowhere --kubeconfig {refusing}
admin backup /nowhere/a
admin restore {file}
admin restore /nowhere
simulate --listen 127.0.0.1:0 --clouds-file /proc/nowhere/clouds.yaml
simulate --listen 127.0.0.1:0 --guest-runner /nowhere --state-dir a
simulate guests --cloud nowhere
logs
logs machine/m --kubeconfig {refusing}
logs --kubeconfig {refusing}
openstack up -f /nowhere
openstack up -f {file}
openstack up -f {good}
openstack up --data-dir {file}
openstack up --kubeconfig {refusing} --exit-when-ready --timeout 5s
openstack up --set network.mtu=nothing
openstack up --detach --kubeconfig {refusing}
openstack fault
openstack fault node --data-dir {file} node-0
openstack fault image a --mend
openstack fault container a --status 300
openstack fault mend-all
openstack sample -f {file}
openstack status --kubeconfig {refusing}
openstack status --kubeconfig /nowhere
openstack status
openstack why --kubeconfig {refusing}
openstack why nova-api --data-dir {file}
openstack clouds-yaml --kubeconfig {refusing}
openstack delete --kubeconfig {refusing} --timeout 5s
openstack config -f /nowhere
openstack config -f {file}
openstack config nova --explain nothing
openstack plan -f /nowhere --empty
openstack plan -f {file} --empty
openstack plan -f {good} --kubeconfig {refusing}
openstack upgrade --to 2026.1 --kubeconfig {refusing}
openstack upgrade --to 2026.1 --kubeconfig /nowhere
openstack backup --kubeconfig {refusing}
openstack restore --backup first --kubeconfig {refusing}
openstack rotate --kubeconfig {refusing}
openstack apply --plan 3f2a0b1c9d8e7f60 -f /nowhere --kubeconfig {refusing}
openstack apply --plan 3f2a0b1c9d8e7f60 -f {file} --kubeconfig {refusing}
completion nothing
version -o nothing
man /proc/nowhere";

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_fail_say_why_in_words() {
    let home = tempfile::tempdir().unwrap();
    let inputs = Inputs::write(home.path());
    for command in FAILING.lines() {
        let args = inputs.args(command);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        // What it prints is checked.
        let output = run(home.path(), &args).await;
        let (out, err) = texts(&output);
        assert!(!output.status.success(), "{command}: {out}");
        assert!(err.starts_with("error: "), "{command} says why: {err}");
    }
    // It succeeds, and says why it does not know everything.
    let version = run(home.path(), &["version", "--kubeconfig", &inputs.refusing]).await;
    let (out, _) = texts(&version);
    assert!(out.contains("\nno API server answers at "), "{out}");
}

#[tokio::test]
async fn every_command_is_made_to_fail() {
    let home = tempfile::tempdir().unwrap();
    let pages = home.path().join("man");
    let written = run(home.path(), &["man", pages.to_str().unwrap()]).await;
    assert!(written.status.success(), "{:?}", texts(&written));
    let names = std::fs::read_dir(&pages).unwrap().map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.trim_end_matches(".1").to_owned()
    });
    let names: BTreeSet<String> = names.collect();
    let failing: Vec<String> = FAILING
        .lines()
        .map(|command| format!("ferrostack-{}-", command.replace(' ', "-")))
        .collect();
    let mut seen = 0;
    for name in &names {
        let below = format!("{name}-");
        if names.iter().any(|other| other.starts_with(&below)) {
            continue;
        }
        let is_tried = failing.iter().any(|command| command.starts_with(&below));
        assert!(is_tried, "{name} is not among the commands that fail");
        seen += 1;
    }
    assert!(seen > 40, "{seen} commands");
}
