//! References to resources of the cloud, by id or filter, and to credentials.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::given;
use crate::infra::schema;

/// A reference to the credentials for a cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(!has(self.region) && !has(oldSelf.region)) || self.region == oldSelf.region",
    "message": "region is immutable",
}]))]
#[serde(rename_all = "camelCase")]
pub struct IdentityRef {
    /// Kind of `name`: `Secret` in the same namespace, or `ClusterIdentity` for an OpenStackClusterIdentity;
    /// `Secret` when absent.
    #[serde(rename = "type", default)]
    pub type_: IdentityType,
    /// The name of the Secret or OpenStackClusterIdentity.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub name: String,
    /// The entry of clouds.yaml to use.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub cloud_name: String,
    /// Overrides the region of the clouds.yaml entry. Immutable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub region: Option<String>,
}

/// Kind of object in an [`IdentityRef`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum IdentityType {
    /// A Secret in the namespace of the referring object, with the keys `clouds.yaml` and, optionally, `cacert`.
    #[default]
    Secret,
    /// A cluster-scoped OpenStackClusterIdentity, with a Secret and a selector of permitted namespaces.
    ClusterIdentity,
}

/// Resource of the cloud, by id or by a filter with exactly one match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    from = "ByIdOrFilter<F>",
    bound(deserialize = "F: Default + Deserialize<'de>")
)]
pub enum Param<F> {
    /// The resource's id.
    Id(String),
    /// A filter that selects the resource.
    Filter(F),
}

/// [`Param`] as stored: the Go types leave out an empty filter.
#[derive(Deserialize)]
struct ByIdOrFilter<F> {
    #[serde(default, deserialize_with = "given::text")]
    id: Option<String>,
    filter: Option<F>,
}

impl<F: Default> From<ByIdOrFilter<F>> for Param<F> {
    fn from(given: ByIdOrFilter<F>) -> Self {
        match given.id {
            Some(id) => Param::Id(id),
            None => Param::Filter(given.filter.unwrap_or_default()),
        }
    }
}

impl<F: Default> Default for Param<F> {
    fn default() -> Self {
        Param::Filter(F::default())
    }
}

impl<F> Param<F> {
    /// Id, unless a filter.
    pub fn id(&self) -> Option<&str> {
        match self {
            Param::Id(id) => Some(id),
            Param::Filter(_) => None,
        }
    }

    /// Filter, unless an id.
    pub fn filter(&self) -> Option<&F> {
        match self {
            Param::Id(_) => None,
            Param::Filter(filter) => Some(filter),
        }
    }
}

impl<F: JsonSchema> JsonSchema for Param<F> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("ParamBy{}", F::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let id = schema::uuid("The id of the resource.");
        schema::one_of(
            json!({"id": id, "filter": F::json_schema(generator)}),
            "A resource of the cloud: either its id or a filter that exactly one resource matches.",
        )
    }
}

/// Reference to a network.
pub type NetworkParam = Param<NetworkFilter>;
/// Reference to a router.
pub type RouterParam = Param<NetworkFilter>;
/// Reference to a security group.
pub type SecurityGroupParam = Param<NetworkFilter>;
/// A subnet.
pub type SubnetParam = Param<SubnetFilter>;
/// Reference to a subnet pool.
pub type SubnetPoolParam = Param<NetworkFilter>;
/// Reference to a server group.
pub type ServerGroupParam = Param<ServerGroupFilter>;

/// Selects networks, routers or security groups; every given member must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
#[serde(rename_all = "camelCase")]
pub struct NetworkFilter {
    /// The exact name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub name: Option<String>,
    /// The exact description.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub description: Option<String>,
    /// The owning project.
    #[serde(rename = "projectID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub project_id: Option<String>,
    /// All of these tags are set.
    #[schemars(schema_with = "schema::tag_filter")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// At least one of these tags is set.
    #[schemars(schema_with = "schema::tag_filter")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags_any: Vec<String>,
    /// Not all of these tags are set.
    #[schemars(schema_with = "schema::tag_filter")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tags: Vec<String>,
    /// None of these tags is set.
    #[schemars(schema_with = "schema::tag_filter")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tags_any: Vec<String>,
}

/// Selects subnets; every given member must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
#[serde(rename_all = "camelCase")]
pub struct SubnetFilter {
    /// The exact name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub name: Option<String>,
    /// The exact description.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub description: Option<String>,
    /// The owning project.
    #[serde(rename = "projectID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub project_id: Option<String>,
    /// 4 or 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::number")]
    pub ip_version: Option<i32>,
    /// The gateway's address.
    #[serde(rename = "gatewayIP")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub gateway_ip: Option<String>,
    /// The CIDR.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub cidr: Option<String>,
    /// Mode in which servers obtain IPv6 addresses: `slaac`, `dhcpv6-stateful` or `dhcpv6-stateless`.
    #[serde(rename = "ipv6AddressMode")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub ipv6_address_mode: Option<String>,
    /// The source of IPv6 router advertisements.
    #[serde(rename = "ipv6RAMode")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub ipv6_ra_mode: Option<String>,
    /// All of these tags are set.
    #[schemars(schema_with = "schema::tag_filter")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// At least one of these tags is set.
    #[schemars(schema_with = "schema::tag_filter")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags_any: Vec<String>,
    /// Not all of these tags are set.
    #[schemars(schema_with = "schema::tag_filter")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tags: Vec<String>,
    /// None of these tags is set.
    #[schemars(schema_with = "schema::tag_filter")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tags_any: Vec<String>,
}

/// Selects server groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
#[serde(rename_all = "camelCase")]
pub struct ServerGroupFilter {
    /// The exact name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub name: Option<String>,
}

/// Image: by id, by a filter with exactly one match, or as an ORC `Image` in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "ImageAsStored")]
pub enum ImageParam {
    /// Id of the image.
    Id(String),
    /// Filter for exactly one image.
    Filter(ImageFilter),
    /// Image of the OpenStack Resource Controller.
    ImageRef(ImageRef),
}

/// [`ImageParam`] as stored: the Go types leave out an empty filter.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageAsStored {
    #[serde(default, deserialize_with = "given::text")]
    id: Option<String>,
    filter: Option<ImageFilter>,
    image_ref: Option<ImageRef>,
}

impl From<ImageAsStored> for ImageParam {
    fn from(given: ImageAsStored) -> Self {
        match (given.id, given.image_ref) {
            (Some(id), _) => ImageParam::Id(id),
            (None, Some(image)) => ImageParam::ImageRef(image),
            (None, None) => ImageParam::Filter(given.filter.unwrap_or_default()),
        }
    }
}

impl Default for ImageParam {
    fn default() -> Self {
        ImageParam::Filter(ImageFilter::default())
    }
}

impl JsonSchema for ImageParam {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ImageParam".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::one_of(
            json!({
                "id": schema::uuid("The id of the image."),
                "filter": ImageFilter::json_schema(generator),
                "imageRef": ImageRef::json_schema(generator),
            }),
            "An image: its id, a filter that exactly one image matches, or an ORC Image.",
        )
    }
}

/// Selects images; every given member must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
#[serde(rename_all = "camelCase")]
pub struct ImageFilter {
    /// The exact name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub name: Option<String>,
    /// All of these tags are set.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// An Image of the OpenStack Resource Controller in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageRef {
    /// The Image's name.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(!default, !skip_serializing_if)]
    pub name: String,
}

/// Flavor: by id, with any text, or by filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "ByIdOrFilter<FlavorFilter>")]
pub enum FlavorParam {
    /// Id of the flavor.
    Id(String),
    /// Filter for exactly one flavor.
    Filter(FlavorFilter),
}

impl From<ByIdOrFilter<FlavorFilter>> for FlavorParam {
    fn from(given: ByIdOrFilter<FlavorFilter>) -> Self {
        match given.id {
            Some(id) => FlavorParam::Id(id),
            None => FlavorParam::Filter(given.filter.unwrap_or_default()),
        }
    }
}

impl Default for FlavorParam {
    fn default() -> Self {
        FlavorParam::Filter(FlavorFilter::default())
    }
}

impl JsonSchema for FlavorParam {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "FlavorParam".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::one_of(
            json!({
                "id": {"type": "string", "description": "The id of the flavor."},
                "filter": FlavorFilter::json_schema(generator),
            }),
            "A flavor: either its id or a filter.",
        )
    }
}

/// Selects flavors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
#[serde(rename_all = "camelCase")]
pub struct FlavorFilter {
    /// The exact name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "given::text")]
    pub name: Option<String>,
}
