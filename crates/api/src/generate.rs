//! The CustomResourceDefinitions from the types, for `cargo xtask codegen` and for tests. Programs read
//! [what it has written](crate::crds).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::{addons, bootstrap, controlplane, core, infra, ipam, openstack};

/// Every CustomResourceDefinition of the suite, in the order for `kubectl apply`.
#[must_use]
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let groups = [
        core::crd::all(),
        addons::crd::all(),
        ipam::crd::all(),
        bootstrap::crd::all(),
        controlplane::crd::all(),
        infra::crd::crds(),
        openstack::crd::all(),
    ];
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_what_the_types_say() {
        let (read, generated) = (crate::crds::all(), definitions());
        let name = |it: &CustomResourceDefinition| it.metadata.name.clone();
        let names = |all: &[CustomResourceDefinition]| all.iter().map(name).collect::<Vec<_>>();
        assert_eq!(names(&read), names(&generated), "`cargo xtask codegen`");
        for (read, generated) in read.iter().zip(&generated) {
            let name = name(read);
            assert!(read == generated, "{name:?}: run `cargo xtask codegen`");
        }
    }
}
