//! Resources of an [`Adoption`], as a table or JSON. Pure.

use provider::cluster::adoption::{Adoption, Found, Write};
use serde_json::{Value, json};

use crate::cli::Output;

/// Resources of a cluster in the requested form; `is_done`: none is left to take over.
pub(super) fn text(
    form: Output,
    cluster: &str,
    adoption: &Adoption,
    is_done: bool,
) -> anyhow::Result<String> {
    match form {
        Output::Json => Ok(terminal::json(&document(cluster, adoption, is_done))?),
        Output::Text if is_done => Ok(format!(
            "cluster {cluster} is one of ferrostack's already: nothing is to be taken over\n"
        )),
        Output::Text => Ok(table(cluster, adoption)),
    }
}

fn document(cluster: &str, adoption: &Adoption, is_done: bool) -> Value {
    let resources: Vec<Value> = adoption.found.iter().map(of_found).collect();
    json!({
        "cluster": cluster,
        "adopted": is_done,
        "resources": resources,
        "conflicts": adoption.conflicts,
        "notes": adoption.notes,
    })
}

fn of_found(found: &Found) -> Value {
    let mut value = json!({
        "resource": found.what.to_string(),
        "id": found.id,
        "name": found.name,
        "object": found.object,
        "evidence": found.evidence,
    });
    match &found.write {
        None => {}
        Some(Write::Description(text)) => value["description"] = json!(text),
        Some(Write::Tags(tags)) => value["tags"] = json!(tags),
    }
    value
}

fn table(cluster: &str, adoption: &Adoption) -> String {
    let missing = adoption.found.iter().filter(|found| found.write.is_some());
    let mut text = format!(
        "cluster {cluster}: {} resources of cluster-api-provider-openstack, {} to be marked\n",
        adoption.found.len(),
        missing.count()
    );
    let mut rows = vec![["RESOURCE", "NAME", "ID", "OF", "WRITE", "EVIDENCE"].map(str::to_owned)];
    rows.extend(adoption.found.iter().map(|found| {
        let write = match &found.write {
            None => "none, it is marked",
            Some(Write::Description(_)) => "description",
            Some(Write::Tags(_)) => "tags",
        };
        terminal::cells([
            found.what.to_string(),
            found.name.clone(),
            found.id.clone(),
            found.object.clone(),
            write.to_owned(),
            found.evidence.join("; "),
        ])
    }));
    if !adoption.found.is_empty() {
        text.push_str(&terminal::align(&rows));
    }
    for note in &adoption.notes {
        text.push_str(&format!("\n{note}\n"));
    }
    for conflict in &adoption.conflicts {
        text.push_str(&format!("\nnot clear: {conflict}\n"));
    }
    text
}
