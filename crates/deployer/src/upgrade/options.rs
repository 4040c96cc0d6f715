//! Options of the user in two releases.

use serde_json::{Value as Json, json};

use crate::check::check;
use crate::finding::Severity;
use crate::parameters::Parameters;
use crate::project::Service;
use crate::release::Release;

/// Option with another name in the new release. The old name still works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// Field, as a path in the spec.
    pub path: String,
    /// New name: `[ml2] project_network_types`.
    pub name: String,
    /// Merge patch of the spec with the new name in place of the old one.
    pub patch: Json,
}

/// Options in parameters of the new release with another name than in the old one.
pub fn renamed(parameters: &Parameters, from: Release) -> Vec<Renamed> {
    let mut all = Vec::new();
    for service in Service::ALL {
        let tables = (from.table(service), parameters.release.table(service));
        let (Some(old), Some(new)) = tables else {
            continue;
        };
        let sections = &parameters.service(service).config;
        let options = sections
            .iter()
            .flat_map(|(section, options)| options.iter().map(move |it| (section, it)));
        for (section, (option, value)) in options {
            let was_current = old.find(section, option).is_some_and(|it| !it.renamed);
            let Some(found) = new
                .find(section, option)
                .filter(|it| was_current && it.renamed)
            else {
                continue;
            };
            let mut config = json!({section: {option: null}});
            config[found.section][found.name] = value.clone();
            all.push(Renamed {
                path: format!("services.{service}.config.{section}.{option}"),
                name: format!("[{}] {}", found.section, found.name),
                patch: json!({"services": {service.name(): {"config": config}}}),
            });
        }
    }
    all
}

/// Reasons why a cloud of `from` cannot have the parameters of a document that are valid in the new release: an upgrade
/// changes nothing but the release.
pub fn unknown_before(document: &Json, from: Release) -> Vec<String> {
    let mut before = document.clone();
    let prefix = Parameters::prefix(document);
    let spec = match prefix {
        "" => Some(&mut before),
        prefix => before.get_mut(prefix),
    };
    if let Some(spec) = spec.and_then(Json::as_object_mut) {
        spec.insert("release".to_owned(), from.name().into());
    }
    let later = |text: String| {
        format!("{text}. The cloud is of {from} until its upgrade is over: set this afterwards")
    };
    match Parameters::read(&before) {
        Err(error) => vec![later(error.to_string())],
        Ok((parameters, _)) => {
            let errors = check(&parameters).into_iter();
            let errors = errors.filter(|it| it.severity == Severity::Error);
            errors.map(|it| later(format!("spec.{it}"))).collect()
        }
    }
}
