//! In which form and encoding a client wants its answer.

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object itself.
    #[default]
    Whole,
    /// `as=Table`: rows and columns, as kubectl prints them.
    Table,
    /// `as=PartialObjectMetadata`, `as=PartialObjectMetadataList`.
    Metadata,
}

/// The form and the encoding of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) form: Form,
    pub(crate) yaml: bool,
}

/// What kube-apiserver names in a 406.
pub(crate) const ACCEPTED: &str = "application/json, application/yaml";

/// The first form that we have, in the client's order of preference. None: nothing fits.
pub(crate) fn negotiate(header: Option<&str>) -> Option<Accept> {
    let Some(header) = header.filter(|text| !text.trim().is_empty()) else {
        return Some(Accept::default());
    };
    // Clients list what they prefer first; weights are not used by any Kubernetes client.
    header.split(',').find_map(clause)
}

fn clause(text: &str) -> Option<Accept> {
    let mut parts = text.split(';').map(str::trim);
    let yaml = match parts.next()? {
        "application/json" | "*/*" | "application/*" => false,
        "application/yaml" => true,
        _ => return None,
    };
    let mut form = Form::Whole;
    let mut known = true;
    for parameter in parts {
        match parameter.split_once('=') {
            Some(("as", "Table")) => form = Form::Table,
            Some(("as", "PartialObjectMetadata" | "PartialObjectMetadataList")) => {
                form = Form::Metadata;
            }
            Some(("as", _)) => known = false,
            Some(("v", version)) => known &= matches!(version, "v1" | "v1beta1"),
            Some(("g", group)) => known &= group == "meta.k8s.io",
            _ => {}
        }
    }
    (known || form == Form::Whole && !text.contains("as=")).then_some(Accept { form, yaml })
}

/// Whether a client asks for aggregated discovery, in the version that we have.
pub(crate) fn aggregated_discovery(header: Option<&str>) -> bool {
    header.is_some_and(|header| {
        header.split(',').any(|clause| {
            clause.contains("g=apidiscovery.k8s.io")
                && clause.contains("as=APIGroupDiscoveryList")
                && clause
                    .split(';')
                    .any(|parameter| parameter.trim() == "v=v2")
        })
    })
}
