//! `generate cluster` and `generate yaml`: render a template with its variables.

mod configuration;
mod fill;
mod managers;
mod namespace;
mod offer;
mod outdated;
mod question;
mod source;
mod text;
mod yaml;

use std::path::Path;

use anyhow::{bail, ensure};
use api::providers::Provider;
use openstack::config::CloudConfig;
use secrecy::ExposeSecret;

use crate::cli::{Generate, GenerateCluster, Output};
use crate::cloud;
use crate::commands::{client_keystone_auth, cloud_controller_manager, config, csi, keystone_auth};
use crate::connect::{self, quoted, quoted_text};
use crate::data_dir::holder;
use crate::endpoints;
use crate::environment::Environment;
use crate::output::{self, print_document, remark, say};
use crate::simulated;

pub(crate) use self::source::flavors;

pub(crate) use self::fill::{from_cloud, to_repeat};
pub(crate) use self::outdated::notes as outdated;
pub(crate) use self::source::{CLASS, Origin, Source, TOPOLOGY, check};
pub(crate) use self::text::{Text, read};
pub(crate) use self::yaml::yaml;

/// Runs the command.
pub(super) async fn execute(args: &Generate, environment: &Environment) -> anyhow::Result<()> {
    match args {
        Generate::Manager(args) => managers::manager(args, print_document, say),
        Generate::Chart(args) => managers::chart(args, say),
        Generate::Monitoring(args) => print_document(&managers::monitoring(args)?),
        Generate::CloudControllerManager(args) => {
            manifest::check_namespace(&args.namespace)?;
            let text = cloud_controller_manager::manifests::render(args, environment, remark)?;
            print_document(text.expose_secret())
        }
        Generate::CinderCsiPlugin(args) => {
            manifest::check_namespace(&args.namespace)?;
            let text = csi::manifests::render(args, environment, remark)?;
            print_document(text.expose_secret())
        }
        Generate::Kubeconfig(args) => {
            let text = client_keystone_auth::kubeconfig::render(args, environment)?;
            match &args.write_to {
                Some(file) => output::file::write_secret(environment, file, &text),
                None => print_document(&text),
            }
        }
        Generate::KeystoneAuth(args) => {
            manifest::check_namespace(&args.namespace)?;
            print_document(keystone_auth::manifests::render(args)?.expose_secret())
        }
        Generate::Yaml(args) => print_document(&yaml(args, environment, remark).await?),
        Generate::Cluster(args) => cluster(args, environment, print_document, remark).await,
        Generate::Provider(args) => config::generate(args, print_document),
        Generate::Repository(args) => config::write(args, say),
    }
}

/// Default counts of control plane machines and workers, as in clusterctl.
const COUNTS: (u32, u32) = (1, 0);

/// Prints the manifests of a cluster, or the variables of its template. `note` prints values filled in from a cloud.
pub(crate) async fn cluster(
    args: &GenerateCluster,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    note: impl Fn(&str),
) -> anyhow::Result<()> {
    check_name(&args.name)?;
    if let Some(provider) = &args.provider {
        check_provider(provider)?;
    }
    let text = template(args, environment).await?;
    let mut source = Source::new(&args.name, &args.options, text, environment, COUNTS)?;
    for sentence in source.notes() {
        note(&sentence);
    }
    if let Some(known) = known_cloud(args, &source, environment)? {
        known.fill(&mut source, args, environment, &note).await?;
    }
    let text = finish(args, &source)?;
    if !args.list_variables {
        for sentence in outdated::notes(&source.name, &text) {
            note(&sentence);
        }
    }
    match &args.write_to {
        Some(file) => output::file::write(environment, file, &text),
        None => print(&text),
    }
}

/// Template other than a built-in flavor.
async fn template(
    args: &GenerateCluster,
    environment: &Environment,
) -> anyhow::Result<Option<Text>> {
    if let Some(name) = &args.config_map.from_config_map {
        let client = connect::cluster(&args.server, environment).await?;
        return Ok(Some(
            text::of_config_map(&client, &args.config_map, name).await?,
        ));
    }
    match &args.options.from {
        Some(from) => Ok(Some(read(from).await?)),
        None => Ok(None),
    }
}

/// Output for a [`Source`] with all of its values.
fn finish(args: &GenerateCluster, source: &Source) -> anyhow::Result<String> {
    if args.list_variables {
        return variables(source, args.output);
    }
    let text = source.render()?;
    match &args.options.target_namespace {
        None => Ok(text),
        Some(namespace) => namespace::set(&source.name, &text, namespace),
    }
}

/// The output of --list-variables.
fn variables(source: &Source, output: Output) -> anyhow::Result<String> {
    match output {
        Output::Text => Ok(source.list_variables()),
        Output::Json => Ok(terminal::json(&source.variables())?),
    }
}

/// Cloud from which values are taken.
struct SourceCloud {
    config: CloudConfig,
    /// Name in messages.
    label: String,
    /// Flag with the cloud.
    flag: String,
    /// True for the simulated cloud of an `up`.
    simulated: bool,
}

/// [`SourceCloud`] cloud: of --cloud, or of a running `up` if a variable lacks a value.
fn known_cloud(
    args: &GenerateCluster,
    source: &Source,
    environment: &Environment,
) -> anyhow::Result<Option<SourceCloud>> {
    if let Some(name) = &args.cloud {
        let (file, _) = cloud::clouds_file(environment)?;
        return Ok(Some(SourceCloud {
            config: cloud::find(name, environment)?,
            label: format!("cloud {name} of {}", file.display()),
            flag: format!(" --cloud {}", quoted_text(name)),
            simulated: false,
        }));
    }
    if !source.is_incomplete() {
        return Ok(None);
    }
    // Who has no home directory has no `up` there.
    let Ok(data) = connect::data_dir(&args.server.data_dir, environment) else {
        return Ok(None);
    };
    if holder(&data)?.is_none() {
        if args.server.data_dir.data_dir.is_some() {
            bail!(
                "--data-dir {path}: `up` does not run there. Start it with: {} up --detach --data-dir {path}",
                environment.program,
                path = quoted(&data)
            );
        }
        return Ok(None);
    }
    of_running(&data, environment).map(Some)
}

/// Cloud of the `up` on a data directory.
fn of_running(data: &Path, environment: &Environment) -> anyhow::Result<SourceCloud> {
    let openstack = endpoints::openstack(data)?;
    let config = match &openstack {
        Some(name) => cloud::find(name, environment)?,
        None => {
            let file = data.join("clouds.yaml");
            let text = crate::source::read_text(&file)
                .map_err(|problem| anyhow::anyhow!("cannot read {}: {problem}", file.display()))?;
            CloudConfig::parse(&text, simulated::CLOUD)?
        }
    };
    let flag = connect::data_dir_flag(environment, data);
    Ok(SourceCloud {
        label: format!(
            "cloud {} of the `up` that runs on {}",
            config.name,
            data.display()
        ),
        config,
        flag,
        simulated: openstack.is_none(),
    })
}

impl SourceCloud {
    async fn fill(
        &self,
        source: &mut Source,
        args: &GenerateCluster,
        environment: &Environment,
        note: impl Fn(&str),
    ) -> anyhow::Result<()> {
        let mut lines = vec!["  the credentials, from clouds.yaml".to_owned()];
        if self.simulated {
            for (variable, value) in simulated::variables() {
                if source.lacks(&variable) {
                    let value = quoted_text(&value);
                    lines.push(format!("  {variable}={value}  (as `up` sets it)"));
                }
                let origin = Origin::Cloud(self.config.name.clone());
                source.set_missing(&variable, &value, origin);
            }
        }
        let asks = environment.interactive && !args.list_variables;
        let filled = from_cloud(source, &self.config, asks).await?;
        // The list itself names what is not set.
        if args.list_variables {
            return Ok(());
        }
        filled.ensure_decided()?;
        note(&format!("filled in from {}:", self.label));
        for line in lines.into_iter().chain(filled.report) {
            note(&line);
        }
        let command = format!("{} generate cluster {}", environment.program, args.name);
        let command = format!("{command}{}", args.config_map.flags());
        let command = to_repeat(source, &args.options, &command, &self.flag);
        note(&format!("to get the same again:\n  {command}"));
        Ok(())
    }
}

/// Checks the provider: the embedded templates are for one infrastructure provider, in the version of this program.
fn check_provider(given: &str) -> anyhow::Result<()> {
    let (name, _) = given.split_once(':').unwrap_or((given, ""));
    ensure!(
        name == Provider::Infrastructure.name(),
        "--infrastructure {given}: there are templates for the provider {} alone, in the flavors {}; a template for another provider is read with --from FILE",
        Provider::Infrastructure.name(),
        flavors()
    );
    Ok(())
}

/// Checks the name: Cluster API uses the cluster's name in labels, as a DNS-1123 subdomain of at most 63 characters.
pub(crate) fn check_name(name: &str) -> anyhow::Result<()> {
    let part_is_right = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    if name.len() > 63 || !name.split('.').all(part_is_right) {
        bail!(
            "`{name}` is not a cluster name: use at most 63 lower-case letters, digits, `-` and `.`, beginning and ending with a letter or digit"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
