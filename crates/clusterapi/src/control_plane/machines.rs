//! Creation and deletion of the Machines of a control plane.

use std::collections::BTreeMap;

use api::bootstrap::v1beta2::KubeadmConfig;
use api::core::v1beta2::{
    Bootstrap, ConditionGate, ContractReference, Machine, MachineDeletion, MachineSpec,
};
use api::kube::ResourceExt;
use api::kube::api::{
    DeleteParams, DynamicObject, ListParams, ObjectMeta, PostParams, Preconditions,
};
use api::names::{
    CLONED_FROM_NAME_ANNOTATION, CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, CONTROL_PLANE_NAME_LABEL,
};
use operator::client::Api;
use operator::decode::{self, NotDecoded};

use super::observe::{Observation, has_external_etcd};
use super::{
    ControlPlaneError, Scope, Subject, error, health, hooks, inplace, outdated, remediation,
};
use crate::duties::reported;
use crate::external::CloneRequest;
use crate::inplace::{CONTROL_PLANE_METADATA, Wanted};
use crate::news::{self, PendingEvent};
use crate::{naming, owners};

/// Creates a machine, with an event.
pub(super) async fn create(
    scope: &Scope,
    subject: &Subject,
    failure_domain: Option<&str>,
    init: bool,
) -> Result<(), ControlPlaneError> {
    let created = make(scope, subject, failure_domain, init).await;
    let news = match &created {
        Ok(name) => PendingEvent::of_creation::<ControlPlaneError>("Machine", name, Ok(())),
        Err(error) => {
            let (reason, which) = match init {
                true => ("FailedInitialization", "The first Machine"),
                false => ("FailedScaleUp", "A further Machine"),
            };
            // A write conflict is repeated at once.
            let note = reported(error).map(|why| format!("{which} cannot be created: {why}"));
            note.map(|note| PendingEvent::warning(reason, "Create", note))
        }
    };
    news::publish(&scope.context, subject.plane.as_ref(), news).await;
    created.map(drop)
}

/// Creates a machine: KubeadmConfig, infrastructure and Machine, all with the same name. Returns the name. An
/// incomplete machine is completed first.
async fn make(
    scope: &Scope,
    subject: &Subject,
    failure_domain: Option<&str>,
    init: bool,
) -> Result<String, ControlPlaneError> {
    let name = match unfinished(scope, subject, init).await? {
        Some(name) => name,
        None => {
            let name = new_name(subject)?;
            create_config(scope, subject, &name, init).await?;
            name
        }
    };
    let template = &subject.plane.spec.machine_template;
    let request = CloneRequest {
        template: &template.spec.infrastructure_ref,
        namespace: &subject.key.namespace,
        name: &name,
        cluster_name: &subject.key.name,
        owner: Some(owners::controller(subject.plane.as_ref())),
        metadata: metadata(subject),
        manager: &CONTROL_PLANE_METADATA,
    };
    let infrastructure = scope.context.external.clone_template(&request).await?;
    let mut machine = machine(subject, &name, infrastructure, failure_domain);
    let replaces = subject
        .plane
        .annotations()
        .get(remediation::IN_PROGRESS)
        .cloned();
    if let Some(record) = &replaces {
        machine
            .annotations_mut()
            .insert(remediation::FOR.to_owned(), record.clone());
    }
    let machines: Api<Machine> = scope.context.api(&subject.key.namespace);
    let action = format!("creating Machine {name}");
    let applied = inplace::apply(&machines, &machine).await;
    applied.map_err(error::doing(action))?;
    if replaces.is_some() {
        remediation::annotate(scope, subject, None).await?;
    }
    Ok(name)
}

/// Deletes a machine. Its etcd member is removed after the Machine controller has drained the Node.
pub(super) async fn delete(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
    name: &str,
) -> Result<(), ControlPlaneError> {
    let machines: Api<Machine> = scope.context.api(&subject.key.namespace);
    let Some(known) = seen
        .machines
        .iter()
        .find(|seen| seen.machine.name_any() == name)
    else {
        return Ok(());
    };
    let preconditions = Preconditions {
        uid: known.machine.uid(),
        resource_version: None,
    };
    let params = DeleteParams {
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    };
    let deleted = match machines.delete(name, &params).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        Err(source) => Err(error::doing(format!("deleting Machine {name}"))(source)),
        Ok(_) => Ok(()),
    };
    let news = PendingEvent::of_deletion("Machine", name, deleted.as_ref().copied());
    news::publish(&scope.context, subject.plane.as_ref(), news).await;
    deleted
}

/// Name of a KubeadmConfig without a Machine, left by an interrupted reconcile. A config with a different spec, or
/// with infrastructure from another template, is deleted together with the infrastructure.
async fn unfinished(
    scope: &Scope,
    subject: &Subject,
    init: bool,
) -> Result<Option<String>, ControlPlaneError> {
    let configs: Api<KubeadmConfig> = scope.context.api(&subject.key.namespace);
    let selector = format!(
        "{CLUSTER_NAME_LABEL}={},{CONTROL_PLANE_LABEL}",
        subject.key.name
    );
    let list = decode::list(&configs, &ListParams::default().labels(&selector)).await;
    let list = list.map_err(error::doing("listing KubeadmConfigs"))?;
    NotDecoded::check::<KubeadmConfig>(&list.undecodable, |config| {
        owners::is_controlled_by(config, subject.plane.as_ref())
    })?;
    let machines: Api<Machine> = scope.context.api(&subject.key.namespace);
    for config in list.objects {
        let ours = owners::is_controlled_by(&config.metadata, subject.plane.as_ref());
        if !ours || config.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let name = config.name_any();
        let machine = machines.get_metadata_opt(&name).await;
        if machine
            .map_err(error::doing(format!("reading Machine {name}")))?
            .is_some()
        {
            continue;
        }
        let infrastructure = left_infrastructure(scope, subject, &name).await?;
        let template = &subject.plane.spec.machine_template.spec.infrastructure_ref;
        let is_of_template = infrastructure.as_ref().is_none_or(|it| {
            let from = it.annotations().get(CLONED_FROM_NAME_ANNOTATION);
            it.metadata.deletion_timestamp.is_none() && from == Some(&template.name)
        });
        if is_of_template && config.spec == outdated::config_spec(&subject.plane, init) {
            return Ok(Some(name));
        }
        if infrastructure.is_some() {
            let reference = instance(template, &name);
            let external = &scope.context.external;
            external.delete(&reference, &subject.key.namespace).await?;
        }
        let removed = configs.delete(&name, &DeleteParams::default()).await;
        match removed {
            Err(source) if !crate::error::is_absent(&source) => {
                return Err(error::doing(format!("deleting KubeadmConfig {name}"))(
                    source,
                ));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Infrastructure for a machine of this name, left by an interrupted reconcile.
async fn left_infrastructure(
    scope: &Scope,
    subject: &Subject,
    name: &str,
) -> Result<Option<DynamicObject>, ControlPlaneError> {
    let template = &subject.plane.spec.machine_template.spec.infrastructure_ref;
    let external = &scope.context.external;
    let found = external
        .get_live(&instance(template, name), &subject.key.namespace)
        .await?;
    Ok(found.filter(|it| owners::is_controlled_by(&it.metadata, subject.plane.as_ref())))
}

/// Object with this name, cloned from a template.
fn instance(template: &ContractReference, name: &str) -> ContractReference {
    let kind = template.kind.strip_suffix("Template");
    ContractReference::new(&template.api_group, kind.unwrap_or(&template.kind), name)
}

async fn create_config(
    scope: &Scope,
    subject: &Subject,
    name: &str,
    init: bool,
) -> Result<(), ControlPlaneError> {
    let mut config = KubeadmConfig::new(name, outdated::config_spec(&subject.plane, init));
    // Removable labels and annotations are applied afterwards (`inplace::synchronize`).
    config.metadata = ObjectMeta {
        labels: Some(metadata(subject).permanent()),
        annotations: None,
        ..object_meta(subject, name)
    };
    let configs: Api<KubeadmConfig> = scope.context.api(&subject.key.namespace);
    let created = configs.create(&PostParams::default(), &config).await;
    created.map_err(error::doing(format!("creating KubeadmConfig {name}")))?;
    Ok(())
}

pub(super) fn machine(
    subject: &Subject,
    name: &str,
    infrastructure: ContractReference,
    failure_domain: Option<&str>,
) -> Machine {
    let plane = &subject.plane;
    let template = &plane.spec.machine_template.spec;
    let config = ContractReference::new(api::bootstrap::GROUP, "KubeadmConfig", name);
    let spec = MachineSpec {
        cluster_name: subject.key.name.clone(),
        bootstrap: Bootstrap {
            config_ref: Some(config),
            data_secret_name: None,
        },
        infrastructure_ref: infrastructure,
        version: Some(plane.spec.version.clone()),
        failure_domain: failure_domain.map(str::to_owned),
        readiness_gates: Some(readiness_gates(subject)),
        deletion: Some(deletion(subject)),
        taints: (!template.taints.is_empty()).then(|| template.taints.clone()),
        ..MachineSpec::default()
    };
    let mut machine = Machine::new(name, spec);
    machine.metadata = object_meta(subject, name);
    // Set before an etcd member exists that could be lost.
    machine
        .annotations_mut()
        .insert(hooks::PRE_TERMINATE.to_owned(), String::new());
    machine
}

pub(super) fn deletion(subject: &Subject) -> MachineDeletion {
    let mut deletion = subject
        .plane
        .spec
        .machine_template
        .spec
        .deletion
        .clone()
        .unwrap_or_default();
    // Default of Machines, so that the field is no difference.
    deletion.node_deletion_timeout_seconds.get_or_insert(10);
    deletion
}

pub(super) fn readiness_gates(subject: &Subject) -> Vec<ConditionGate> {
    let ours = health::gates(has_external_etcd(&subject.plane)).into_iter();
    let ours = ours.map(|type_| ConditionGate {
        condition_type: type_.to_string(),
        polarity: None,
    });
    let mut gates: Vec<_> = ours.collect();
    for gate in &subject.plane.spec.machine_template.spec.readiness_gates {
        if !gates
            .iter()
            .any(|known| known.condition_type == gate.condition_type)
        {
            gates.push(gate.clone());
        }
    }
    gates
}

fn object_meta(subject: &Subject, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(subject.key.namespace.clone()),
        labels: Some(labels(subject)),
        annotations: Some(annotations(subject)),
        owner_references: Some(vec![owners::controller(subject.plane.as_ref())]),
        ..ObjectMeta::default()
    }
}

/// Labels and annotations of the machines and of the objects in their references.
pub(super) fn metadata(subject: &Subject) -> Wanted {
    Wanted {
        labels: labels(subject),
        annotations: annotations(subject),
    }
}

fn labels(subject: &Subject) -> BTreeMap<String, String> {
    let template = subject
        .plane
        .spec
        .machine_template
        .metadata
        .clone()
        .unwrap_or_default();
    let mut labels = template.labels.unwrap_or_default();
    labels.extend([
        (CLUSTER_NAME_LABEL.to_owned(), subject.key.name.clone()),
        (CONTROL_PLANE_LABEL.to_owned(), String::new()),
        (
            CONTROL_PLANE_NAME_LABEL.to_owned(),
            naming::shortened(&subject.plane.name_any()),
        ),
    ]);
    labels
}

fn annotations(subject: &Subject) -> BTreeMap<String, String> {
    let template = subject
        .plane
        .spec
        .machine_template
        .metadata
        .clone()
        .unwrap_or_default();
    template.annotations.unwrap_or_default()
}

fn new_name(subject: &Subject) -> Result<String, ControlPlaneError> {
    let (plane, random) = (subject.plane.name_any(), naming::suffix());
    let template = subject.plane.spec.machine_naming.as_ref();
    let Some(template) = template.and_then(|naming| naming.template.as_deref()) else {
        return Ok(naming::with_suffix(&plane, &random));
    };
    let values = [
        (".cluster.name", subject.key.name.as_str()),
        (".kubeadmControlPlane.name", plane.as_str()),
        (".random", random.as_str()),
    ];
    naming::render(template, &values).ok_or_else(|| ControlPlaneError::Naming {
        template: template.to_owned(),
    })
}
