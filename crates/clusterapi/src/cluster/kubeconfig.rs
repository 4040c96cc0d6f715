//! Kubeconfig Secret of a Cluster without a control plane object, the usual creator of the Secret.

use api::bootstrap::v1beta2::EncryptionAlgorithm;
use api::core::v1beta2::Cluster;
use api::k8s_openapi::api::core::v1::Secret;
use api::kube::ResourceExt;

use crate::kubeadm::host_port;
use crate::kubeconfig::{self, Recipe};
use crate::pki::Purpose;
use crate::pki::store;
use crate::{Context, Error, owners};

/// Issues the kubeconfig from the CA `<cluster>-ca`, and rotates the client certificate. The Secret of the CA
/// triggers the [`Cluster`]. A kubeconfig supplied by a user stays unchanged, as does one without a CA key.
pub(super) async fn ensure(ctx: &Context, cluster: &Cluster) -> Result<(), Error> {
    let Some((host, port)) = cluster.endpoint() else {
        return Ok(());
    };
    if cluster.spec.control_plane_ref.is_some() {
        return Ok(());
    }
    let name = cluster.name_any();
    let secrets = ctx.api::<Secret>(&cluster.namespace().unwrap_or_default());
    let Some(ca) = store::read_one(&secrets, &name, Purpose::Cluster, ctx.now()).await? else {
        return Ok(());
    };
    if ca.private.is_none() {
        return Ok(());
    }
    let recipe = Recipe {
        server: format!("https://{}", host_port(host, port)),
        cluster: name,
        ca,
        algorithm: EncryptionAlgorithm::EcdsaP256,
        owner: owners::owner(cluster),
    };
    kubeconfig::ensure(&secrets, recipe, ctx.now()).await?;
    Ok(())
}
