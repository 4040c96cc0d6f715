//! Edits from schemas of v1beta2 to schemas of v1beta1.

use serde_json::{Value, json};

use crate::definition::edit::{
    conditions, duration, forget, old_conditions, property, relax, remove, set, text,
};

/// Schema of a KubeadmConfigSpec.
pub(crate) fn bootstrap(spec: &mut Value) {
    relax(spec);
    let cluster = property(spec, "clusterConfiguration");
    typed(cluster);
    set(
        cluster,
        "clusterName",
        text(1, 63, "The cluster's name; filled in from the Cluster."),
    );
    set(
        cluster,
        "kubernetesVersion",
        text(
            1,
            256,
            "The Kubernetes version; filled in from the Machine.",
        ),
    );
    set(cluster, "networking", networking());
    for path in [
        &["apiServer"][..],
        &["controllerManager"],
        &["scheduler"],
        &["etcd", "local"],
    ] {
        let component = path
            .iter()
            .fold(&mut *cluster, |at, name| property(at, name));
        set(component, "extraArgs", arguments());
    }
    set(
        property(cluster, "apiServer"),
        "timeoutForControlPlane",
        duration("Timeout of kubeadm for the API server."),
    );
    for name in ["initConfiguration", "joinConfiguration"] {
        let part = property(spec, name);
        typed(part);
        remove(part, "timeouts");
        set(
            property(part, "nodeRegistration"),
            "kubeletExtraArgs",
            arguments(),
        );
    }
    let tokens = &mut property(property(spec, "initConfiguration"), "bootstrapTokens")["items"];
    remove(tokens, "ttlSeconds");
    set(tokens, "ttl", duration("For how long the token is valid."));
    for limit in ["minLength", "maxLength"] {
        forget(property(tokens, "token"), limit);
    }
    set(
        property(property(spec, "joinConfiguration"), "discovery"),
        "timeout",
        duration("Timeout of kubeadm for the discovery of the cluster."),
    );
    let init = property(property(spec, "initConfiguration"), "localAPIEndpoint");
    forget(property(init, "bindPort"), "minimum");
    let join = property(property(spec, "joinConfiguration"), "controlPlane");
    forget(
        property(property(join, "localAPIEndpoint"), "bindPort"),
        "minimum",
    );
    forget(&mut property(spec, "mounts")["items"], "maxItems");
    let partition = &mut property(property(spec, "diskSetup"), "partitions")["items"];
    if let Some(required) = partition.get_mut("required").and_then(Value::as_array_mut) {
        required.push(json!("layout"));
    }
    property(partition, "diskLayout")["minItems"] = json!(1);
    let retry = "No longer has any effect.";
    set(
        spec,
        "useExperimentalRetryJoin",
        json!({"type": "boolean", "description": retry}),
    );
}

/// Schema of a KubeadmConfig's status.
pub(crate) fn config_status() -> Value {
    json!({
        "type": "object",
        "description": "The observed state of a KubeadmConfig.",
        "properties": {
            "ready": {"type": "boolean", "description": "The bootstrap data exists."},
            "dataSecretName": text(1, 253, "The Secret that holds the bootstrap data."),
            "failureReason": text(1, 256, "A word for a terminal failure."),
            "failureMessage": text(1, 10240, "A sentence for a terminal failure."),
            "observedGeneration": {"type": "integer", "format": "int64", "description": "The generation that this status is about."},
            "conditions": old_conditions(),
            "v1beta2": {
                "type": "object",
                "description": "Status in the words of v1beta2.",
                "properties": {"conditions": conditions()},
            },
        },
    })
}

fn typed(schema: &mut Value) {
    set(
        schema,
        "apiVersion",
        json!({"type": "string", "description": "Ignored."}),
    );
    set(
        schema,
        "kind",
        json!({"type": "string", "description": "Ignored."}),
    );
}

fn arguments() -> Value {
    json!({
        "type": "object",
        "description": "Command line arguments, without leading dashes.",
        "additionalProperties": {"type": "string"},
    })
}

fn networking() -> Value {
    json!({
        "type": "object",
        "description": "Addresses inside the cluster; filled in from the Cluster.",
        "properties": {
            "dnsDomain": text(1, 253, "The domain of Services."),
            "podSubnet": text(1, 1024, "Pod ranges, comma separated."),
            "serviceSubnet": text(1, 1024, "Service ranges, comma separated."),
        },
    })
}
