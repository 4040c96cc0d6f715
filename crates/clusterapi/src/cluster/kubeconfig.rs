//! The kubeconfig Secret of a Cluster without a control plane object, which would make it.

use std::time::Duration;

use api::bootstrap::v1beta2::EncryptionAlgorithm;
use api::core::v1beta2::Cluster;
use api::k8s_openapi::api::core::v1::Secret;
use api::kube::ResourceExt;

use crate::kubeadm::host_port;
use crate::kubeconfig::{self, Recipe};
use crate::pki::Purpose;
use crate::pki::store;
use crate::{Context, Error, owners};

/// The interval at which the CA is looked for: users create its Secret, with any labels.
const AWAITED: Duration = Duration::from_secs(15);

/// Issues the kubeconfig from the CA `<cluster>-ca`, and rotates its client certificate. Returns when to look again if
/// the Secret of the CA does not exist yet. A kubeconfig that a user supplies stays, and so does one without a CA key.
pub(super) async fn ensure(ctx: &Context, cluster: &Cluster) -> Result<Option<Duration>, Error> {
    let Some((host, port)) = cluster.endpoint() else {
        return Ok(None);
    };
    if cluster.spec.control_plane_ref.is_some() {
        return Ok(None);
    }
    let name = cluster.name_any();
    let secrets = ctx.api::<Secret>(&cluster.namespace().unwrap_or_default());
    let Some(ca) = store::read_one(&secrets, &name, Purpose::Cluster, ctx.now()).await? else {
        return Ok(Some(AWAITED));
    };
    if ca.private.is_none() {
        return Ok(None);
    }
    let recipe = Recipe {
        server: format!("https://{}", host_port(host, port)),
        cluster: name,
        ca,
        algorithm: EncryptionAlgorithm::EcdsaP256,
        owner: owners::owner(cluster),
    };
    kubeconfig::ensure(&secrets, recipe, ctx.now()).await?;
    Ok(None)
}
