//! Generator of the CustomResourceDefinitions from the types, for `cargo xtask codegen` and for tests. Programs read
//! [the generated file](crate::crds).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::conversion::Row;
use crate::{addons, bootstrap, controlplane, core, infra, ipam, openstack};

/// Every [`CustomResourceDefinition`] of the suite, in the order for `kubectl apply`.
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

/// Definitions of the same kinds in versions served only on request.
#[must_use]
pub fn older() -> Vec<CustomResourceDefinition> {
    infra::crd::older()
}

/// Moves from each version before v1beta1 to its successor, by kind.
#[must_use]
pub fn moves() -> Vec<Step> {
    let names = infra::convert::older::VERSIONS;
    let after = names.iter().skip(1).copied().chain(["v1beta1"]);
    let steps = names.iter().zip(after).enumerate();
    let step = |(at, (from, to)): (usize, (&&'static str, &'static str))| Step {
        from,
        to,
        kinds: infra::convert::older::documented(at),
    };
    steps.map(step).collect()
}

/// Moves from one version to the next.
#[derive(Clone, Debug)]
pub struct Step {
    /// Older version.
    pub from: &'static str,
    /// Newer version.
    pub to: &'static str,
    /// [`Row`]s of each kind.
    pub kinds: Vec<(&'static str, Vec<Row>)>,
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    };

    use super::*;

    /// Words with which a description without a noun begins.
    const CLAUSES: [&str; 14] = [
        "What", "Whether", "Those", "That", "How", "Where", "When", "Which", "Who", "Whose", "It",
        "Its", "They", "Their",
    ];

    /// The fields of a schema with their paths and descriptions.
    fn fields(schema: &JSONSchemaProps, at: &str, found: &mut Vec<(String, Option<String>)>) {
        if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
            fields(item, &format!("{at}[]"), found);
        }
        if let Some(JSONSchemaPropsOrBool::Schema(value)) = &schema.additional_properties {
            fields(value, &format!("{at}{{}}"), found);
        }
        for (name, property) in schema.properties.iter().flatten() {
            let path = format!("{at}.{name}");
            found.push((path.clone(), property.description.clone()));
            // The schema of a variable is that of OpenAPI.
            if name != "openAPIV3Schema" {
                fields(property, &path, found);
            }
        }
    }

    /// Fields of all kinds, each with its path and description.
    fn described() -> Vec<(String, Option<String>)> {
        let mut found = Vec::new();
        for crd in definitions() {
            for version in &crd.spec.versions {
                let schema = version.schema.as_ref().unwrap();
                let root = schema.open_api_v3_schema.as_ref().unwrap();
                let at = format!("{} {}", crd.spec.names.kind, version.name);
                fields(root, &at, &mut found);
            }
        }
        found
    }

    #[test]
    fn every_field_has_a_description() {
        let found = described();
        assert!(found.len() > 1_000, "{}", found.len());
        let is_known = |path: &str| path.ends_with(".metadata");
        let bare: Vec<&str> = found
            .iter()
            .filter(|(path, description)| description.is_none() && !is_known(path))
            .map(|(path, _)| path.as_str())
            .collect();
        assert!(bare.is_empty(), "{bare:#?}");
    }

    #[test]
    fn no_description_begins_without_a_noun() {
        let found = described();
        let clauses: Vec<String> = found
            .iter()
            .filter_map(|(path, description)| Some((path, description.as_deref()?)))
            .filter(|(_, description)| {
                let first = description.split_whitespace().next().unwrap_or_default();
                CLAUSES.contains(&first.trim_end_matches('.'))
            })
            .map(|(path, description)| format!("{path}: {description}"))
            .collect();
        assert!(clauses.is_empty(), "{clauses:#?}");
    }

    #[test]
    fn programs_read_what_the_types_say() {
        let read = crate::crds::known();
        let generated: Vec<_> = definitions().into_iter().chain(older()).collect();
        let name = |it: &CustomResourceDefinition| it.metadata.name.clone();
        let names = |all: &[CustomResourceDefinition]| all.iter().map(name).collect::<Vec<_>>();
        assert_eq!(names(&read), names(&generated), "`cargo xtask codegen`");
        for (read, generated) in read.iter().zip(&generated) {
            let name = name(read);
            assert!(read == generated, "{name:?}: run `cargo xtask codegen`");
        }
    }
}
