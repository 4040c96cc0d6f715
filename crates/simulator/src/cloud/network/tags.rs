//! Tags of networks, subnets, subnet pools, ports, routers, security groups, floating IPs and trunks (extension standard-attr-tag).

use http::Method;
use serde_json::{Value, json};

use super::resource::{Resource, bump};
use super::{floating, networks, ports, routers, security, subnet_pools, subnets, trunks};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::Fields;
use crate::cloud::fault::Fault;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    let all: [(&'static str, &'static str, &'static Resource); 8] = [
        (
            "/v2.0/networks/{id}/tags",
            "/v2.0/networks/{id}/tags/{tag}",
            &networks::NETWORK,
        ),
        (
            "/v2.0/subnets/{id}/tags",
            "/v2.0/subnets/{id}/tags/{tag}",
            &subnets::SUBNET,
        ),
        (
            "/v2.0/subnetpools/{id}/tags",
            "/v2.0/subnetpools/{id}/tags/{tag}",
            &subnet_pools::SUBNET_POOL,
        ),
        (
            "/v2.0/ports/{id}/tags",
            "/v2.0/ports/{id}/tags/{tag}",
            &ports::PORT,
        ),
        (
            "/v2.0/routers/{id}/tags",
            "/v2.0/routers/{id}/tags/{tag}",
            &routers::ROUTER,
        ),
        (
            "/v2.0/security-groups/{id}/tags",
            "/v2.0/security-groups/{id}/tags/{tag}",
            &security::GROUP,
        ),
        (
            "/v2.0/floatingips/{id}/tags",
            "/v2.0/floatingips/{id}/tags/{tag}",
            &floating::FLOATING_IP,
        ),
        (
            "/v2.0/trunks/{id}/tags",
            "/v2.0/trunks/{id}/tags/{tag}",
            &trunks::TRUNK,
        ),
    ];
    for (many, one, what) in all {
        table.on(Method::GET, many, Access::Reader, move |call| {
            list(call, what)
        });
        table.on(Method::PUT, many, Access::Member, move |call| {
            replace(call, what)
        });
        table.on(Method::DELETE, many, Access::Member, move |call| {
            clear(call, what)
        });
        table.on(Method::GET, one, Access::Reader, move |call| {
            has(call, what)
        });
        table.on(Method::PUT, one, Access::Member, move |call| {
            add(call, what)
        });
        table.on(Method::DELETE, one, Access::Member, move |call| {
            remove(call, what)
        });
    }
}

fn list(call: &mut Call<'_>, what: &Resource) -> Answer {
    let doc = what.collection.find(call, call.parameter("id"))?;
    Ok(Reply::ok(json!({"tags": doc.list("tags")})))
}

fn replace(call: &mut Call<'_>, what: &Resource) -> Answer {
    let Some(Value::Array(given)) = call.body.get("tags") else {
        return Err(invalid("Invalid tags body"));
    };
    let mut tags: Vec<String> = Vec::new();
    for tag in given {
        let tag = tag
            .as_str()
            .ok_or_else(|| invalid(&format!("'{tag}' is not a valid string")))?;
        check(tag)?;
        if !tags.iter().any(|existing| existing == tag) {
            tags.push(tag.to_owned());
        }
    }
    tags.sort();
    set(call, what, |_| Ok(tags.clone()))?;
    Ok(Reply::ok(json!({"tags": tags})))
}

fn clear(call: &mut Call<'_>, what: &Resource) -> Answer {
    set(call, what, |_| Ok(Vec::new()))?;
    Ok(Reply::empty(204))
}

fn has(call: &mut Call<'_>, what: &Resource) -> Answer {
    let doc = what.collection.find(call, call.parameter("id"))?;
    let tag = call.parameter("tag");
    if doc.texts("tags").any(|existing| existing == tag) {
        Ok(Reply::empty(204))
    } else {
        Err(missing(tag))
    }
}

fn add(call: &mut Call<'_>, what: &Resource) -> Answer {
    let tag = call.parameter("tag").to_owned();
    check(&tag)?;
    set(call, what, |mut tags| {
        if !tags.contains(&tag) {
            tags.push(tag.clone());
            tags.sort();
        }
        Ok(tags)
    })?;
    Ok(Reply::with(201, Value::Null))
}

fn remove(call: &mut Call<'_>, what: &Resource) -> Answer {
    let tag = call.parameter("tag").to_owned();
    set(call, what, |mut tags| {
        if !tags.contains(&tag) {
            return Err(missing(&tag));
        }
        tags.retain(|existing| *existing != tag);
        Ok(tags)
    })?;
    Ok(Reply::empty(204))
}

fn set(
    call: &mut Call<'_>,
    what: &Resource,
    change: impl FnOnce(Vec<String>) -> Result<Vec<String>, Fault>,
) -> Result<(), Fault> {
    let doc = what.collection.find_writable(call, call.parameter("id"))?;
    let old: Vec<String> = doc.texts("tags").map(str::to_owned).collect();
    let new = change(old.clone())?;
    if new != old {
        let kind = what.collection.kind;
        call.state
            .edit(kind, doc.text("id"), |doc| doc.set("tags", new));
        bump(call.state, kind, doc.text("id"));
    }
    Ok(())
}

fn check(tag: &str) -> Result<(), Fault> {
    if tag.is_empty() || tag.chars().count() > 60 {
        return Err(invalid(&format!("'{tag}' exceeds maximum length of 60")));
    }
    Ok(())
}

fn invalid(why: &str) -> Fault {
    let message = format!("Invalid input for operation: {why}.");
    Fault::new(400, "InvalidInput", message)
}

fn missing(tag: &str) -> Fault {
    Fault::new(404, "TagNotFound", format!("Tag {tag} could not be found."))
}
