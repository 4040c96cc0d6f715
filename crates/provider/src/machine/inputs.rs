//! Inputs of a machine besides its spec: identity, credentials, bootstrap data.

use api::conditions::{Reason, Type};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine, OpenStackMachineSpec};
use api::k8s_openapi::api::core::v1::Secret;
use openstack::compute::UserData;
use openstack::{Cloud, Kind};
use operator::client::Api;

use super::facts::{has_trunk, ports};
use crate::context::{Context, Error, namespace};
use crate::credentials;
use crate::problem::Problem;

/// The limit of Nova for user data, in bytes after base64 encoding.
const USER_DATA_LIMIT: usize = api::infra::USER_DATA_ENCODED_LIMIT;

/// [`Cloud`] of a machine, by its own identityRef or else by the cluster's.
pub(super) async fn cloud(
    ctx: &Context,
    object: &OpenStackMachine,
    infra: Option<&OpenStackCluster>,
) -> Result<Cloud, Problem> {
    let of_machine = object.spec.identity_ref.as_ref();
    let Some(identity_ref) = of_machine.or_else(|| infra.map(|infra| &infra.spec.identity_ref))
    else {
        let text = "the OpenStackCluster is gone, and with it the credentials: give the machine an \
                    identityRef of its own";
        let reason = Reason::OpenStackAuthenticationFailed;
        return Err(Problem::new(
            Type::OpenStackAuthenticationSucceeded,
            reason,
            text,
        ));
    };
    credentials::cloud(ctx.access(), &namespace(object), identity_ref).await
}

/// The providerID of a server, with a region only if the identityRef of the machine sets one.
pub(super) fn provider_id(object: &OpenStackMachine, server: &str) -> String {
    let region = object
        .spec
        .identity_ref
        .as_ref()
        .and_then(|identity| identity.region.as_deref());
    format!("openstack://{}/{server}", region.unwrap_or_default())
}

/// The user data of the server: its bootstrap data.
pub(crate) async fn user_data(
    ctx: &Context,
    namespace: &str,
    secret: &str,
) -> Result<UserData, Error> {
    let secrets = Api::<Secret>::namespaced(ctx.client.clone(), namespace);
    let found = secrets.get_opt(secret).await;
    let found = found.map_err(Error::kubernetes("reading the bootstrap data"))?;
    let data = found
        .and_then(|found| found.data)
        .and_then(|mut data| data.remove("value"));
    let Some(data) = data else {
        let text = format!("Secret {secret} with the bootstrap data has no key value");
        let problem = Problem::new(Type::InstanceReady, Reason::WaitingForBootstrapData, text);
        return Err(problem.of_secret(namespace, secret).into());
    };
    let encoded = data.0.len().div_ceil(3) * 4;
    if encoded > USER_DATA_LIMIT {
        let text = format!(
            "the bootstrap data of Secret {secret} are {encoded} bytes in base64, and Nova takes \
             {USER_DATA_LIMIT}: move files of the KubeadmConfig into the image or fetch them at \
             boot"
        );
        return Err(Problem::new(Type::InstanceReady, Reason::InvalidMachineSpec, text).into());
    }
    Ok(UserData::new(data.0))
}

/// [`Kind`]s of resources used by a machine.
pub(crate) fn kinds(spec: &OpenStackMachineSpec, creating: bool, balanced: bool) -> Vec<Kind> {
    let mut kinds = vec![Kind::Servers, Kind::Ports];
    if spec.root_volume.is_some() || !spec.additional_block_devices.is_empty() {
        kinds.push(Kind::Volumes);
    }
    if ports(spec).iter().any(|port| has_trunk(port, spec)) {
        kinds.push(Kind::Trunks);
    }
    kinds.extend((spec.floating_ip_pool_ref.is_some()).then_some(Kind::FloatingIps));
    if creating {
        kinds.extend([Kind::Images, Kind::Flavors, Kind::Extensions]);
        kinds.extend(spec.server_group.is_some().then_some(Kind::ServerGroups));
        let custom = !spec.ports.is_empty();
        kinds.extend([Kind::Networks, Kind::Subnets]);
        if custom || !spec.security_groups.is_empty() {
            kinds.push(Kind::SecurityGroups);
        }
    }
    if balanced {
        kinds.extend([Kind::LoadBalancers, Kind::Pools, Kind::Members]);
    }
    kinds
}
