//! Version documents of each service, and microversion negotiation.

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::call::{Answer, Call, Reply};
use super::fault::Fault;
use super::route::{Access, Routes};
use super::service::Service;

/// Returns lowest and highest minor version of the services with microversions.
fn range(service: Service) -> Option<(u32, u32, u32)> {
    match service {
        Service::Compute => Some((2, 1, 93)),
        Service::Volume => Some((3, 0, 70)),
        Service::Placement => Some((1, 0, 39)),
        _ => None,
    }
}

fn type_name(service: Service) -> &'static str {
    match service {
        Service::Compute => "compute",
        Service::Volume => "volume",
        _ => "placement",
    }
}

/// Returns the requested minor version, or the service's [`Fault`] (406).
pub(crate) fn negotiate(service: Service, headers: &HeaderMap) -> Result<u32, Fault> {
    let Some((major, low, high)) = range(service) else {
        return Ok(0);
    };
    let Some(wanted) = wanted(service, headers) else {
        return match is_for_others(service, headers) {
            true => Err(Fault::bad(
                "The server could not comply with the request since it is either malformed or otherwise incorrect.",
            )),
            false => Ok(low),
        };
    };
    if wanted == "latest" {
        return Ok(high);
    }
    let parsed = wanted
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)));
    match parsed {
        None => Err(Fault::bad(format!(
            "API Version String {wanted} is of invalid format. Must be of format MajorNum.MinorNum."
        ))),
        Some((asked, minor)) if asked == major && (low..=high).contains(&minor) => Ok(minor),
        Some(_) => Err(Fault::new(
            406,
            "HTTPNotAcceptable",
            format!(
                "Version {wanted} is not supported by the API. Minimum is {major}.{low} and maximum is {major}.{high}."
            ),
        )),
    }
}

/// Returns the version in an answer's headers: also an unsupported one, but not a malformed one.
pub(crate) fn answered(service: Service, headers: &HeaderMap) -> Option<String> {
    let (major, low, high) = range(service)?;
    match wanted(service, headers).as_deref() {
        None if is_for_others(service, headers) => None,
        None => Some(format!("{major}.{low}")),
        Some("latest") => Some(format!("{major}.{high}")),
        Some(text) => {
            let (major, minor) = text.split_once('.')?;
            (major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok()).then(|| text.to_owned())
        }
    }
}

/// Returns the version headers of an answer.
pub(crate) fn headers(service: Service, version: &str) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        (
            "openstack-api-version",
            format!("{} {version}", type_name(service)),
        ),
        ("vary", "OpenStack-API-Version".to_owned()),
    ];
    if service == Service::Compute {
        headers.push(("x-openstack-nova-api-version", version.to_owned()));
        headers.push(("vary", "X-OpenStack-Nova-API-Version".to_owned()));
    }
    headers
}

fn wanted(service: Service, headers: &HeaderMap) -> Option<String> {
    let name = type_name(service);
    for value in headers.get_all("openstack-api-version") {
        for part in value.to_str().unwrap_or_default().split(',') {
            let mut words = part.split_whitespace();
            if words.next().is_some_and(|word| word == name) {
                return words.next().map(str::to_owned);
            }
        }
    }
    let old = (service == Service::Compute).then(|| headers.get("x-openstack-nova-api-version"));
    old.flatten()
        .and_then(|value| value.to_str().ok())
        .map(|value| value.trim().to_owned())
}

/// True if the version header is for other services alone; Cinder refuses such a request.
fn is_for_others(service: Service, headers: &HeaderMap) -> bool {
    service == Service::Volume && headers.contains_key("openstack-api-version")
}

/// Registers the routes of the version documents.
pub(crate) fn routes(routes: &mut Routes) {
    // Lists of versions need no token; documents of one version do, except with Keystone, Nova and Glance.
    let mut open = |service, pattern: &'static str, document: fn(&Call<'_>) -> Answer| {
        let closed = matches!(
            service,
            Service::Network | Service::Volume | Service::LoadBalancer
        ) && pattern != "/";
        let access = if closed { Access::Token } else { Access::Open };
        routes
            .of(service)
            .on(Method::GET, pattern, access, move |call| document(call));
    };
    open(Service::Identity, "/", |call| {
        let values = json!([identity(call)]);
        Ok(Reply::with(300, json!({"versions": {"values": values}}))
            .header("location", format!("{}/v3/", call.root())))
    });
    open(Service::Identity, "/v3", |call| {
        Ok(Reply::ok(json!({"version": identity(call)})))
    });
    open(Service::Compute, "/", |call| {
        let old = entry(
            call,
            "v2.0",
            "SUPPORTED",
            "",
            "",
            "/v2/",
            "2011-01-21T11:33:21Z",
        );
        Ok(Reply::ok(json!({"versions": [old, compute(call)]})))
    });
    open(Service::Compute, "/v2.1", |call| {
        let mut version = compute(call);
        described(&mut version, "https://docs.openstack.org/");
        version["media-types"] = json!([{"base": "application/json",
            "type": "application/vnd.openstack.compute+json;version=2.1"}]);
        Ok(Reply::ok(json!({"version": version})))
    });
    open(Service::Network, "/", |call| {
        let link = json!([{"rel": "self", "href": format!("{}/v2.0/", call.root())}]);
        Ok(Reply::ok(
            json!({"versions": [{"id": "v2.0", "status": "CURRENT", "links": link}]}),
        ))
    });
    open(Service::Network, "/v2.0", |call| {
        let resources: Vec<Value> = ["network", "subnet", "port"]
            .iter()
            .map(|one| {
                let href = format!("{}/v2.0/{one}s", call.root());
                json!({"links": [{"rel": "self", "href": href}], "name": one, "collection": format!("{one}s")})
            })
            .collect();
        Ok(Reply::ok(json!({"resources": resources})))
    });
    open(Service::Image, "/", |call| {
        Ok(Reply::with(300, image(call)))
    });
    open(Service::Image, "/versions", |call| {
        Ok(Reply::ok(image(call)))
    });
    open(Service::Volume, "/", |call| {
        Ok(Reply::with(300, json!({"versions": [volume(call)]})))
    });
    open(Service::Volume, "/v3", |call| {
        Ok(Reply::ok(json!({"versions": [volume(call)]})))
    });
    open(Service::LoadBalancer, "/", |call| {
        Ok(Reply::ok(load_balancer(call)))
    });
    // Octavia returns these fields only.
    open(Service::LoadBalancer, "/v2.0", |_| {
        Ok(Reply::ok(json!("v2")))
    });
    open(Service::LoadBalancer, "/v2", |_| Ok(Reply::ok(json!("v2"))));
    open(Service::Secrets, "/", |call| {
        let link = json!([{"rel": "self", "href": format!("{}/v1/", call.root())},
            {"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/"}]);
        Ok(Reply::with(
            300,
            json!({"versions": [{"id": "v1", "status": "stable", "updated": "2015-04-28T00:00:00Z",
            "links": link, "media-types": [{"base": "application/json",
            "type": "application/vnd.openstack.key-manager-v1+json"}]}]}),
        ))
    });
    open(Service::Placement, "/", |_| {
        Ok(Reply::ok(
            json!({"versions": [{"id": "v1.0", "max_version": "1.39", "min_version": "1.0",
            "status": "CURRENT", "links": [{"rel": "self", "href": ""}]}]}),
        ))
    });
}

fn identity(call: &Call<'_>) -> Value {
    json!({"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": format!("{}/v3/", call.root())}],
        "media-types": [{"base": "application/json",
            "type": "application/vnd.openstack.identity-v3+json"}]})
}

fn compute(call: &Call<'_>) -> Value {
    entry(
        call,
        "v2.1",
        "CURRENT",
        "2.93",
        "2.1",
        "/v2.1/",
        "2013-07-23T11:33:21Z",
    )
}

fn volume(call: &Call<'_>) -> Value {
    let mut version = entry(
        call,
        "v3.0",
        "CURRENT",
        "3.70",
        "3.0",
        "/v3/",
        "2022-08-02T00:00:00Z",
    );
    described(&mut version, "https://docs.openstack.org/");
    version["media-types"] = json!([{"base": "application/json",
        "type": "application/vnd.openstack.volume+json;version=3"}]);
    version
}

/// Adds the link to the documentation.
fn described(version: &mut Value, href: &str) {
    if let Some(links) = version["links"].as_array_mut() {
        links.push(json!({"rel": "describedby", "type": "text/html", "href": href}));
    }
}

fn image(call: &Call<'_>) -> Value {
    let versions: Vec<Value> = (0..=16)
        .rev()
        .filter(|minor| ![8, 10, 11, 12, 14].contains(minor))
        .map(|minor| {
            let status = if minor == 16 { "CURRENT" } else { "SUPPORTED" };
            json!({"id": format!("v2.{minor}"), "status": status,
                "links": [{"rel": "self", "href": format!("{}/v2/", call.root())}]})
        })
        .collect();
    json!({"versions": versions})
}

fn load_balancer(call: &Call<'_>) -> Value {
    let newest = call.settings.changeable.read().octavia_minor_version;
    let versions: Vec<Value> = (0..=newest)
        .map(|minor| {
            let status = if minor == newest {
                "CURRENT"
            } else {
                "SUPPORTED"
            };
            json!({"id": format!("v2.{minor}"), "status": status, "updated": "2022-08-29T00:00:00Z",
                "links": [{"rel": "self", "href": format!("{}/v2", call.root())}]})
        })
        .collect();
    json!({"versions": versions})
}

fn entry(
    call: &Call<'_>,
    id: &str,
    status: &str,
    version: &str,
    minimum: &str,
    path: &str,
    updated: &str,
) -> Value {
    json!({"id": id, "status": status, "version": version, "min_version": minimum,
        "updated": updated, "links": [{"rel": "self", "href": format!("{}{path}", call.root())}]})
}
