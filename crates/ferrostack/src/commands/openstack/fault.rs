//! `openstack fault`: makes a part of a simulated cloud fail, and mends it.

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::ResourceExt as _;
use kube::api::{ListParams, ObjectMeta, PostParams};
use operator::client::Api;
use simulator::nodes::faults::{CONFIG_MAP, Ending, FaultSet, KEY, NAMESPACE};

use super::site;
use crate::cli::{FaultCommand, OpenStackFault, Output, PlaceArgs};
use crate::environment::Environment;

/// Maximum of attempts to write the faults, after changes by others.
const ATTEMPTS: usize = 5;

/// Makes or mends a fault, and returns all current faults, as a list or JSON.
///
/// # Errors
/// If no simulated cloud runs in the data directory, or if it has no such node.
pub(crate) async fn fault(
    args: &OpenStackFault,
    environment: &Environment,
) -> anyhow::Result<String> {
    let place = PlaceArgs {
        data_dir: args.data_dir.clone(),
        ..PlaceArgs::default()
    };
    let client = site::client(&place, environment).await?;
    if let Some(FaultCommand::Node { name, .. }) = &args.command {
        let nodes: Api<Node> = Api::all(client.clone());
        let nodes = nodes.list(&ListParams::default()).await;
        let nodes = nodes.context("cannot list the nodes")?;
        let names: Vec<String> = nodes.iter().map(|it| it.name_any()).collect();
        if !names.contains(name) {
            bail!("there is no node {name}: there is {}", names.join(", "));
        }
    }
    let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let known = changed(&maps, args.command.as_ref()).await?;
    match args.output {
        Output::Json => Ok(terminal::json(&serde_json::to_value(&known)?)?),
        Output::Text => Ok(text(&known)),
    }
}

/// [`FaultSet`] faults after the change.
async fn changed(maps: &Api<ConfigMap>, change: Option<&FaultCommand>) -> anyhow::Result<FaultSet> {
    for _ in 0..ATTEMPTS {
        let found = maps.get_opt(CONFIG_MAP).await;
        let found = found.context("cannot read the faults")?;
        let known = found
            .as_ref()
            .map_or_else(|| Ok(FaultSet::default()), FaultSet::read);
        let mut known = known.with_context(|| {
            format!("ConfigMap {NAMESPACE}/{CONFIG_MAP}, which somebody has changed")
        })?;
        let before = known.clone();
        if let Some(change) = change {
            apply(change, &mut known);
        }
        if known == before {
            return Ok(known);
        }
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(CONFIG_MAP.to_owned()),
                resource_version: found.as_ref().and_then(ConfigMap::resource_version),
                ..ObjectMeta::default()
            },
            data: Some([(KEY.to_owned(), serde_json::to_string(&known)?)].into()),
            ..ConfigMap::default()
        };
        let params = PostParams::default();
        let written = match found {
            Some(_) => maps.replace(CONFIG_MAP, &params, &map).await,
            None => maps.create(&params, &map).await,
        };
        match written {
            Ok(_) => return Ok(known),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error).context("cannot write the faults"),
        }
    }
    bail!("the faults are changed by others all the time")
}

/// Changes the faults.
fn apply(change: &FaultCommand, known: &mut FaultSet) {
    match change {
        FaultCommand::Node { name, mend: true } => {
            known.nodes.remove(name);
        }
        FaultCommand::Node { name, mend: false } => {
            known.nodes.insert(name.clone());
        }
        FaultCommand::Image { image, mend: true } => {
            known.images.remove(image);
        }
        FaultCommand::Image { image, mend: false } => {
            known.images.insert(image.clone());
        }
        FaultCommand::Container {
            name, mend: true, ..
        } => {
            known.containers.remove(name);
        }
        FaultCommand::Container {
            name, status, log, ..
        } => {
            let ending = Ending {
                status: i32::from(*status),
                log: log.clone().unwrap_or_default(),
            };
            known.containers.insert(name.clone(), ending);
        }
        FaultCommand::MendAll => *known = FaultSet::default(),
    }
}

/// One line for each fault.
fn text(known: &FaultSet) -> String {
    let nodes = known.nodes.iter().map(|it| format!("node {it} is off\n"));
    let images = known.images.iter();
    let images = images.map(|it| format!("image {it} is on no node\n"));
    let containers = known.containers.iter().map(|(name, ending)| {
        let log = match ending.log.is_empty() {
            true => String::new(),
            false => format!(": {}", ending.log),
        };
        format!("container {name} ends with {}{log}\n", ending.status)
    });
    let lines: String = nodes.chain(images).chain(containers).collect();
    match lines.is_empty() {
        true => "nothing is faulty\n".to_owned(),
        false => lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_listed_and_mended_one_by_one_and_all_at_once() {
        let mut known = FaultSet::default();
        assert_eq!(text(&known), "nothing is faulty\n");
        let container = |mend| FaultCommand::Container {
            name: "nova-api".to_owned(),
            status: 1,
            log: Some("no database".to_owned()),
            mend,
        };
        let node = |mend| FaultCommand::Node {
            name: "node-0".to_owned(),
            mend,
        };
        let image = |mend| FaultCommand::Image {
            image: "openstack:1".to_owned(),
            mend,
        };
        for change in [container(false), node(false), image(false)] {
            apply(&change, &mut known);
        }
        assert_eq!(
            text(&known),
            "node node-0 is off\nimage openstack:1 is on no node\ncontainer nova-api ends with 1: no database\n"
        );
        apply(&container(true), &mut known);
        apply(&image(true), &mut known);
        assert_eq!(text(&known), "node node-0 is off\n");
        apply(&node(true), &mut known);
        assert_eq!(known, FaultSet::default());
        apply(&container(false), &mut known);
        apply(&FaultCommand::MendAll, &mut known);
        assert_eq!(known, FaultSet::default());
    }
}
