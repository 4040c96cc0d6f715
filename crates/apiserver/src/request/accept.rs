//! Negotiation of the form and the encoding of an answer.

use crate::error::ApiError;

/// Form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object itself.
    #[default]
    Whole,
    /// `as=Table`: rows and columns, as printed by kubectl.
    Table,
    /// `as=PartialObjectMetadata`, `as=PartialObjectMetadataList`.
    Metadata,
}

/// Encoding of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Yaml,
    /// Protobuf of Kubernetes, for kinds with known Go types.
    Protobuf,
}

/// Form and encoding of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) form: Form,
    pub(crate) encoding: Encoding,
}

pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Media types in a 406 and a 415 of kube-apiserver.
pub(crate) const ACCEPTED: &str =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// Additional media types of watchable resources.
const STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// 406 for a request that [`negotiate`] cannot answer. kube-apiserver has two sources of a 406: the routes of
/// built-in kinds check the media types; the encoder checks the parameters of media types, too. `streams`: true if
/// the route can be watched.
pub(crate) fn refused(header: Option<&str>, built_in: bool, streams: bool) -> ApiError {
    let mut named = header
        .unwrap_or_default()
        .split(',')
        .map(|clause| clause.split(';').next().unwrap_or_default().trim());
    if !built_in || named.any(|media| ACCEPTED.split(", ").any(|known| known == media)) {
        return ApiError::not_acceptable(ACCEPTED);
    }
    let more = if streams {
        format!(", {STREAMS}")
    } else {
        String::new()
    };
    ApiError::no_representation(&format!("{ACCEPTED}{more}"))
}

/// First supported form in the client's order of preference; `None` if there is none. `built_in`: true for built-in
/// kinds, with a form in protobuf; other kinds have only the metadata form in protobuf.
pub(crate) fn negotiate(header: Option<&str>, built_in: bool) -> Option<Accept> {
    let Some(header) = header.filter(|text| !text.trim().is_empty()) else {
        return Some(Accept::default());
    };
    // Kubernetes clients list the preferred type first and do not use weights.
    header
        .split(',')
        .filter_map(clause)
        .find(|accept| match (accept.encoding, accept.form) {
            (Encoding::Protobuf, Form::Whole) => built_in,
            (Encoding::Protobuf, Form::Table) => false,
            _ => true,
        })
}

fn clause(text: &str) -> Option<Accept> {
    let mut parts = text.split(';').map(str::trim);
    let encoding = match parts.next()? {
        "application/json" | "*/*" | "application/*" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        PROTOBUF => Encoding::Protobuf,
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
            Some(("q", "0")) if encoding == Encoding::Protobuf => return None,
            Some(("g", group)) => known &= group == "meta.k8s.io",
            _ => {}
        }
    }
    (known || form == Form::Whole && !text.contains("as=")).then_some(Accept { form, encoding })
}

/// True if a client prefers protobuf for the OpenAPI v2 document. `None`: the client accepts neither protobuf nor
/// JSON.
pub(crate) fn open_api_v2_in_protobuf(header: Option<&str>) -> Option<bool> {
    let clauses = header
        .filter(|text| !text.trim().is_empty())
        .unwrap_or("*/*");
    clauses.split(',').find_map(|clause| {
        let media = clause.split(';').next().unwrap_or_default().trim();
        match media {
            "*/*" | "application/*" | "application/json" => Some(false),
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf" | OPENAPI_V2_PROTOBUF => {
                Some(true)
            }
            _ => None,
        }
    })
}

/// Content type of the answer for both names of the encoding.
pub(crate) const OPENAPI_V2_PROTOBUF: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// True if a client requests aggregated discovery in the supported version.
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
