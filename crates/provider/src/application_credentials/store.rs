//! Two Secrets of a cluster: the record, and the manifests for the workload cluster, which a ClusterResourceSet applies.

use std::collections::BTreeMap;

use api::addons::v1beta2::{ClusterResourceSetBinding, ResourceKind};
use api::conditions::{Reason, Type};
use api::core::v1beta2::Cluster;
use api::infra::v1beta2::OpenStackCluster;
use api::k8s_openapi::ByteString;
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::jiff::Timestamp;
use cloud_conf::Program;
use kube::api::PostParams;
use kube::{Resource, ResourceExt};
use openstack::CloudConfig;
use openstack::config::{ApplicationCredentialRef, Credential};
use operator::client::Api;
use operator::patch;
use secrecy::ExposeSecret;
use serde_json::json;

use super::record::{Entry, Record};
use super::wanted::word;
use crate::context::{Context, Error, namespace};
use crate::machine::pooled::owned_by;
use crate::problem::Problem;

/// Key of the record.
const KEY: &str = "record";
/// Annotation of the manifests: time of the last change.
const WRITTEN: &str = "ferrostack.dev/written-at";
/// Prefix of annotations of the manifests: name of the credential of a program.
const NAME_OF: &str = "ferrostack.dev/application-credential-of-";
/// Directory of the Secret in the Pods of the programs.
const MOUNTED: &str = "/etc/config";

/// Name of the Secret with the record of a cluster.
pub(super) fn name_of_record(object: &OpenStackCluster) -> String {
    format!("{}-application-credentials", object.name_any())
}

/// Name of the Secret with the manifests for a workload cluster, given the name of the OpenStackCluster.
#[must_use]
pub fn name_of_manifests(object: &str) -> String {
    format!("{object}-cloud-configs")
}

/// Name of a program's Secret in the workload cluster.
#[must_use]
pub fn name_in_workload(program: Program) -> String {
    format!("{}-cloud-config", word(program))
}

/// A Secret of a cluster, as stored; absent before the first write.
pub(super) struct Kept {
    api: Api<Secret>,
    name: String,
    type_: &'static str,
    stored: Option<Secret>,
}

impl Kept {
    /// The Secret with the record.
    pub(super) async fn record(ctx: &Context, object: &OpenStackCluster) -> Result<Self, Error> {
        Self::read(ctx, object, name_of_record(object), "Opaque").await
    }

    /// The Secret with the manifests.
    pub(super) async fn manifests(ctx: &Context, object: &OpenStackCluster) -> Result<Self, Error> {
        let name = name_of_manifests(&object.name_any());
        Self::read(ctx, object, name, api::addons::SECRET_TYPE).await
    }

    async fn read(
        ctx: &Context,
        object: &OpenStackCluster,
        name: String,
        type_: &'static str,
    ) -> Result<Self, Error> {
        let api = Api::<Secret>::namespaced(ctx.client.clone(), &namespace(object));
        let stored = api.get_opt(&name).await;
        let stored = stored.map_err(Error::kubernetes("reading application credentials"))?;
        let uid = object.uid();
        let is_of_object = |it: &Secret| {
            let owners = it.owner_references().iter();
            let mut uids = owners.map(|owner| Some(&owner.uid));
            uids.any(|owner| owner == uid.as_ref())
        };
        if stored.as_ref().is_some_and(|it| !is_of_object(it)) {
            let text = format!(
                "Secret {name} is not owned by this OpenStackCluster, so that no application credential is stored in it: \
                 delete the Secret if nobody needs it"
            );
            let about = Type::ApplicationCredentialsReady;
            return Err(Problem::new(about, Reason::InvalidClusterSpec, text).into());
        }
        Ok(Self {
            api,
            name,
            type_,
            stored,
        })
    }

    /// Creates or changes the Secret. A Secret that changed since it was read is a conflict.
    async fn write(
        &mut self,
        object: &OpenStackCluster,
        data: BTreeMap<String, ByteString>,
        annotations: BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let mut after = self.stored.clone().unwrap_or_else(|| {
            let mut new = Secret::default();
            new.metadata.name = Some(self.name.clone());
            new.metadata.namespace = object.namespace();
            new.metadata.owner_references = Some(vec![owned_by(object)]);
            new.type_ = Some(self.type_.to_owned());
            new
        });
        after.data = Some(data);
        let kept = after.annotations_mut();
        kept.retain(|name, _| !name.starts_with(NAME_OF));
        kept.extend(annotations);
        let stored = match &self.stored {
            None => self
                .api
                .create(&PostParams::default(), &after)
                .await
                .map(Some),
            Some(before) => patch::object(&self.api, before, &after).await,
        };
        let stored = stored.map_err(Error::kubernetes("storing application credentials"))?;
        self.stored = Some(stored.unwrap_or(after));
        Ok(())
    }

    fn data(&self) -> Option<&BTreeMap<String, ByteString>> {
        self.stored.as_ref()?.data.as_ref()
    }

    /// The record in the Secret; empty before the first write.
    ///
    /// # Errors
    /// [`Problem`] with a record that somebody changed.
    pub(super) fn entries(&self) -> Result<Record, Problem> {
        let Some(text) = self.data().and_then(|data| data.get(KEY)) else {
            return Ok(Record::new());
        };
        serde_json::from_slice(&text.0).map_err(|error| {
            let line = error.line();
            let text = format!(
                "Secret {}: line {line} of the key {KEY} is not as this provider writes it: delete the Secret, and its \
                 application credentials are revoked and made anew",
                self.name
            );
            let about = Type::ApplicationCredentialsReady;
            Problem::new(about, Reason::InvalidClusterSpec, text)
        })
    }

    /// Writes the record.
    pub(super) async fn save(
        &mut self,
        object: &OpenStackCluster,
        record: &Record,
    ) -> Result<(), Error> {
        let text = serde_json::to_vec(record).map_err(kube::Error::SerdeError);
        let text = text.map_err(Error::kubernetes("writing application credentials"))?;
        let data = [(KEY.to_owned(), ByteString(text))].into();
        self.write(object, data, BTreeMap::new()).await
    }

    /// Writes the manifests for these credentials, if they changed.
    pub(super) async fn deliver(
        &mut self,
        object: &OpenStackCluster,
        cloud: &CloudConfig,
        credentials: &[(Program, &Entry)],
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut data = BTreeMap::new();
        let mut annotations = BTreeMap::new();
        for (program, entry) in credentials {
            let text = manifest(*program, &with(cloud, entry))?;
            data.insert(format!("{}.yaml", word(*program)), ByteString(text));
            annotations.insert(format!("{NAME_OF}{}", word(*program)), entry.name.clone());
        }
        let is_new = self.stored.is_none() && !data.is_empty();
        let known = self.data().filter(|_| self.stored.is_some());
        let is_changed = known.is_some_and(|known| *known != data)
            || self.stored.is_some() && known.is_none() && !data.is_empty();
        if !is_new && !is_changed {
            return Ok(());
        }
        annotations.insert(WRITTEN.to_owned(), now.to_string());
        self.write(object, data, annotations).await
    }

    /// Name of the credential of `program` in the workload cluster, and the time since when a ClusterResourceSet has
    /// applied the manifests with it.
    pub(super) async fn in_use(
        &self,
        ctx: &Context,
        cluster: Option<&Cluster>,
    ) -> Result<Option<Timestamp>, Error> {
        let (Some(cluster), Some(stored)) = (cluster, &self.stored) else {
            return Ok(None);
        };
        let written = stored.annotations().get(WRITTEN);
        let Some(written) = written.and_then(|text| text.parse::<Timestamp>().ok()) else {
            return Ok(None);
        };
        let bindings =
            Api::<ClusterResourceSetBinding>::namespaced(ctx.client.clone(), &namespace(cluster));
        let binding = bindings.get_opt(&cluster.name_any()).await;
        let binding = binding.map_err(Error::kubernetes("reading a ClusterResourceSetBinding"))?;
        let sets = binding
            .iter()
            .flat_map(|it| it.spec.bindings.iter().flatten());
        let resources = sets.flat_map(|set| set.resources.iter().flatten());
        let applied = resources
            .filter(|it| it.kind == ResourceKind::Secret && it.name == self.name && it.applied)
            .filter_map(|it| Some(it.last_applied_time.as_ref()?.0));
        // The times of bindings have no fractions of a second.
        Ok(applied
            .filter(|at| at.as_second() > written.as_second())
            .max())
    }

    /// Name of the credential of `program` in the manifests.
    pub(super) fn name_for(&self, program: Program) -> Option<&str> {
        let annotations = self.stored.as_ref()?.annotations();
        let name = annotations.get(&format!("{NAME_OF}{}", word(program)));
        name.map(String::as_str)
    }
}

/// [`CloudConfig`] of a cloud with another credential.
pub(super) fn with(cloud: &CloudConfig, entry: &Entry) -> CloudConfig {
    CloudConfig {
        credential: Credential::ApplicationCredential {
            which: ApplicationCredentialRef::Id(entry.id.clone().unwrap_or_default()),
            secret: entry.secret().clone(),
        },
        ..cloud.clone()
    }
}

/// Manifest of a program's Secret in the workload cluster.
fn manifest(program: Program, cloud: &CloudConfig) -> Result<Vec<u8>, Problem> {
    let mut cloud = cloud.clone();
    if cloud.ca_pem.is_some() {
        cloud.cacert = Some(format!("{MOUNTED}/ca.pem"));
    }
    let unusable = |text: String| {
        let about = Type::ApplicationCredentialsReady;
        Problem::new(about, Reason::InvalidClusterSpec, text)
    };
    let conf = cloud_conf::from_cloud(&cloud).map_err(unusable)?;
    let mut files = json!({"cloud.conf": conf.text.expose_secret()});
    if let Some(pem) = &cloud.ca_pem {
        files["ca.pem"] = json!(String::from_utf8_lossy(pem));
    }
    let secret = json!({"apiVersion": Secret::api_version(&()), "kind": Secret::kind(&()), "type": "Opaque",
        "metadata": {"name": name_in_workload(program), "namespace": "kube-system"}, "stringData": files});
    Ok(secret.to_string().into_bytes())
}
