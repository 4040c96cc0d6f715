//! Pods: without rights in the Kubernetes API, as users without privileges, on a read-only file system.

use serde_json::{Value as Json, json};

use super::is_infrastructure;
use super::names::Names;
use crate::held::ACCOUNTS;
use crate::image;
use crate::service::definition::{Content, File, Host, Probe, Rights, Run, Variable, Workload};
use crate::service::fake;

/// Mode of files readable by everybody in the container.
const READABLE: u32 = 0o444;
/// Mode of files readable by the user of the container, through its group.
const PRIVATE: u32 = 0o440;

impl Names<'_> {
    /// Pod of a program.
    pub(super) fn pod(&self, name: &str, run: &Run) -> Json {
        let mut volumes = Vec::new();
        let mut mounts = Vec::new();
        for file in &run.files {
            volumes.push(self.volume(file));
            mounts.push(json!({"name": file.object, "mountPath": file.path, "subPath": file.key(), "readOnly": true}));
        }
        for (secret, path) in &run.keys {
            volumes.push(
                json!({"name": secret, "secret": {"secretName": secret, "defaultMode": PRIVATE}}),
            );
            mounts.push(json!({"name": secret, "mountPath": path, "readOnly": true}));
        }
        for path in &run.scratch {
            let name = path.trim_matches('/').replace('/', "-");
            volumes.push(json!({"name": name, "emptyDir": {}}));
            mounts.push(json!({"name": name, "mountPath": path}));
        }
        for (claim, path) in &run.volumes {
            volumes.push(json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
            mounts.push(json!({"name": claim, "mountPath": path}));
        }
        for (claim, path) in &run.claims {
            volumes.push(json!({"name": "given", "persistentVolumeClaim": {"claimName": claim}}));
            mounts.push(json!({"name": "given", "mountPath": path}));
        }
        let mut container = json!({
            "name": name,
            "image": self.image(),
            "imagePullPolicy": "IfNotPresent",
            // The end of the log is in the status of a Pod whose program has failed.
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "command": run.command,
            "volumeMounts": mounts,
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
        });
        if !run.environment.is_empty() {
            let variables = run.environment.iter();
            container["env"] = variables
                .map(|(name, value)| variable(name, value))
                .collect();
        }
        let user = image::user(run.user);
        // Otherwise the kubelet gives a Pod no variables of the Services, which programs could take for theirs.
        let links = run
            .environment
            .iter()
            .any(|(_, value)| matches!(value, Variable::Database(..)));
        let mut pod = json!({
            "automountServiceAccountToken": false,
            "enableServiceLinks": links,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": user,
                "runAsGroup": user,
                "fsGroup": user,
                // A large volume would be walked at each start.
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": volumes,
        });
        if let Some(host) = &run.host {
            on_node(&mut pod, host);
        }
        pod
    }

    /// Adds the nodes of the Pod, and its resources.
    pub(super) fn placed(&self, part: &str, name: &str, run: &Run, mut pod: Json) -> Json {
        let parameters = &self.cloud.parameters;
        let labels = match name == fake::COMPUTE || run.host.is_some() {
            true => &parameters.nodes.compute,
            false => &parameters.nodes.control,
        };
        if !labels.is_empty() {
            pod["nodeSelector"] = json!(labels);
        }
        if run.host.is_none() && is_infrastructure(part) {
            let release = self.held.infrastructure(parameters.release);
            pod["containers"][0]["image"] = release.image().into();
        }
        if let Some(resources) = parameters.resources(part) {
            pod["containers"][0]["resources"] = json!(resources);
        }
        pod
    }

    fn volume(&self, file: &File) -> Json {
        let name = self.file(file);
        match file.content {
            Content::Public(_) => {
                json!({"name": file.object, "configMap": {"name": name, "defaultMode": READABLE}})
            }
            Content::Secret(_) => {
                json!({"name": file.object, "secret": {"secretName": name, "defaultMode": PRIVATE}})
            }
        }
    }

    /// Pod of a [`Workload`].
    pub(super) fn serving(&self, workload: &Workload) -> Json {
        let mut pod = self.pod(workload.name, &workload.run);
        pod["terminationGracePeriodSeconds"] = 60.into();
        if workload.stateful.is_none() && !workload.run.volumes.is_empty() {
            // The volume is on one node, and the new Pod starts before the old one ends.
            pod["affinity"] = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
                "labelSelector": {"matchLabels": self.selector(workload.name)},
                "topologyKey": "kubernetes.io/hostname",
            }]}});
        }
        let container = &mut pod["containers"][0];
        if !workload.ports.is_empty() {
            let port = |(name, port): &(&str, u16)| json!({"name": name, "containerPort": port, "protocol": "TCP"});
            container["ports"] = workload.ports.iter().map(port).collect();
            // Until every node has heard that the Pod ends, new connections come.
            container["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", "5"]}}});
        }
        if let Some(host) = workload
            .run
            .host
            .as_ref()
            .filter(|it| !it.ending.is_empty())
        {
            container["lifecycle"] = json!({"preStop": {"exec": {"command": host.ending}}});
        }
        let ready = probe(&workload.ready);
        // A program that is slow under load still answers better than none: an API is the only one behind its address, and without it
        // every request fails. One that has ended is not ready at once.
        let patience = match (&workload.ready, &workload.alive) {
            (Probe::Http(..) | Probe::Page(..) | Probe::Command(_), Some(Probe::Tcp(_))) => 60,
            _ => 6,
        };
        container["readinessProbe"] = with(
            ready.clone(),
            json!({"periodSeconds": 5, "timeoutSeconds": 10, "failureThreshold": patience}),
        );
        if let Some(alive) = &workload.alive {
            // Ten minutes to start: a database may have to recover.
            container["startupProbe"] = with(
                ready,
                json!({"periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 300}),
            );
            container["livenessProbe"] = with(
                probe(alive),
                json!({"periodSeconds": 20, "timeoutSeconds": 10, "failureThreshold": 6}),
            );
        }
        pod
    }
}

/// Gives a Pod the access of its program to the node.
fn on_node(pod: &mut Json, host: &Host) {
    for (index, (directory, path)) in host.directories.iter().enumerate() {
        let name = format!("node-{index}");
        let kind = match directory.split('/').nth(1) {
            Some("sys") => "Directory",
            Some("dev") => "CharDevice",
            _ => "DirectoryOrCreate",
        };
        let volume = json!({"name": name, "hostPath": {"path": directory, "type": kind}});
        let mount = json!({"name": name, "mountPath": path});
        for (list, item) in [("/volumes", volume), ("/containers/0/volumeMounts", mount)] {
            if let Some(Json::Array(list)) = pod.pointer_mut(list) {
                list.push(item);
            }
        }
    }
    // Directories of the node are root's.
    let profile = match host.rights {
        Rights::Capabilities(_) => "RuntimeDefault",
        Rights::All => "Unconfined",
    };
    pod["securityContext"] =
        json!({"runAsUser": 0, "runAsGroup": 0, "seccompProfile": {"type": profile}});
    let container = &mut pod["containers"][0]["securityContext"];
    match host.rights {
        Rights::Capabilities([]) => {}
        Rights::Capabilities(capabilities) => {
            container["capabilities"]["add"] = json!(capabilities);
        }
        Rights::All => *container = json!({"privileged": true, "readOnlyRootFilesystem": true}),
    }
    if host.network {
        pod["hostNetwork"] = true.into();
        pod["dnsPolicy"] = "ClusterFirstWithHostNet".into();
    }
    if host.processes {
        pod["hostPID"] = true.into();
    }
}

/// Pod of a program that ends.
pub(super) fn ending(mut pod: Json) -> Json {
    // A Pod that has failed stays, and with it its exit status and the end of its log.
    pod["restartPolicy"] = "Never".into();
    pod
}

fn probe(probe: &Probe) -> Json {
    match probe {
        Probe::Http(port, path) => json!({"httpGet": {"port": port, "path": path}}),
        Probe::Page(port, path, host) => json!({"httpGet": {"port": port, "path": path,
            "httpHeaders": [{"name": "Host", "value": host}]}}),
        Probe::Https(port, path) => {
            json!({"httpGet": {"port": port, "path": path, "scheme": "HTTPS"}})
        }
        Probe::Tcp(port) => json!({"tcpSocket": {"port": port}}),
        Probe::Answers(port, question, answer) => json!({"exec": {"command":
            ["python3", "-c", ASKED, port.to_string(), question, answer]}}),
        Probe::Command(words) => json!({"exec": {"command": words}}),
        Probe::Connected(ports) => script(&connected(ports)),
        Probe::Announced(file, ports) => {
            script(&format!("test -e {file} || exit 1; {}", connected(ports)))
        }
    }
}

fn script(script: &str) -> Json {
    json!({"exec": {"command": ["/bin/sh", "-c", script]}})
}

/// Script that sends a request, since a hanging program still accepts connections.
const ASKED: &str = "import socket, sys
port, question, answer = sys.argv[1:]
with socket.create_connection(('127.0.0.1', int(port)), 5) as it:
    it.sendall(bytes.fromhex(question))
    sys.exit(not it.recv(64).startswith(bytes.fromhex(answer)))";

/// Script with exit status 1 while no connection to one of the ports exists.
fn connected(ports: &[u16]) -> String {
    // In /proc/net/tcp a port is in hexadecimal, and 01 is the state of an established connection.
    let ports: Vec<String> = ports.iter().map(|it| format!("{it:04X}")).collect();
    format!(
        "for port in {}; do grep -Eqs \":$port 01 \" /proc/net/tcp /proc/net/tcp6 || exit 1; done",
        ports.join(" ")
    )
}

fn with(mut probe: Json, times: Json) -> Json {
    if let (Some(into), Json::Object(times)) = (probe.as_object_mut(), times) {
        into.extend(times);
    }
    probe
}

fn variable(name: &str, value: &Variable) -> Json {
    match value {
        Variable::Text(text) => json!({"name": name, "value": text}),
        Variable::Database(service, port) => {
            let host = service.replace('-', "_").to_uppercase();
            json!({"name": name, "value": format!("tcp:$({host}_SERVICE_HOST):{port}")})
        }
        Variable::Field(path) => {
            json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
        }
        Variable::Account(key) => {
            json!({"name": name, "valueFrom": {"secretKeyRef": {"name": ACCOUNTS, "key": key}}})
        }
    }
}
