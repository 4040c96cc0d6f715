//! Names for arguments: of the API server, of clouds.yaml, of kubeconfig files, and of this program.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use api::conditions::Type;
use clap_complete::engine::CompletionCandidate;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use operator::client::Api;
use status::snapshot::Kind;

use crate::cli::{ConnectArgs, DataDirArg, ServerArgs};
use crate::cloud::clouds_file;
use crate::commands::{docs, generate};
use crate::connect;
use crate::environment::Environment;

/// Timeout for all responses of an API server: a user waits in the middle of a line.
const TIME: Duration = Duration::from_secs(2);
/// Objects of one page of a list, and the maximum of pages.
const PAGE: u32 = 500;
const PAGES: usize = 10;
/// Maximum of candidates.
const CANDIDATES: usize = 500;
/// Maximum length of a name.
const LETTERS: usize = 253;
/// [`Kind`]s of `rollout`, each with its short name.
const ROLLOUTS: [(Kind, &str); 2] = [
    (Kind::MachineDeployment, "md"),
    (Kind::KubeadmControlPlane, "kcp"),
];

/// Source of the names for an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Clusters of a namespace.
    Clusters,
    /// Clusters, and objects of the other kinds as `kind/name`.
    Objects,
    /// Objects with a rollout, as `kind/name`.
    Rollouts,
    /// MachineDeployments, as `machinedeployment/name`.
    Deployments,
    /// Namespaces of the API server.
    Namespaces,
    /// Contexts of the kubeconfig.
    Contexts,
    /// Contexts of `--to-kubeconfig`.
    TargetContexts,
    /// Entries of clouds.yaml.
    Clouds,
    /// Cluster templates of this program.
    Templates,
    /// Pages of the documentation.
    Pages,
    /// States of `wait`: `create`, `delete`, and `condition=` with each [`Type`] of a condition.
    States,
    /// Options of a service of OpenStack, as `section.option`.
    Options,
    /// No names are known.
    Nothing,
}

/// Words before the cursor, and the [`Environment`] for reading them.
#[derive(Clone, Debug)]
pub(super) struct Names {
    words: Arc<Vec<String>>,
    environment: Arc<Environment>,
}

impl Names {
    pub(super) fn new(words: &[OsString], environment: &Environment) -> Self {
        let words = words.iter().map(|it| it.to_string_lossy().into_owned());
        Self {
            words: Arc::new(words.collect()),
            environment: Arc::new(environment.clone()),
        }
    }

    /// Names of `source` with the prefix `current`; none after an error.
    pub(super) fn candidates(&self, source: Source, current: &OsStr) -> Vec<CompletionCandidate> {
        let current = current.to_str().unwrap_or_default();
        let mut names = self.names(source, current).unwrap_or_default();
        names.retain(|name| name.starts_with(current) && is_plain(name));
        names.sort();
        names.dedup();
        names.truncate(CANDIDATES);
        names.into_iter().map(CompletionCandidate::new).collect()
    }

    fn names(&self, source: Source, current: &str) -> anyhow::Result<Vec<String>> {
        match source {
            Source::Nothing => Ok(Vec::new()),
            Source::Clusters => self.of_kinds(vec![(Kind::Cluster, String::new())]),
            Source::Objects => self.objects(current),
            Source::Rollouts => self.rollouts(&ROLLOUTS, current),
            Source::Deployments => {
                let [deployments, ..] = ROLLOUTS;
                self.rollouts(&[deployments], current)
            }
            Source::Namespaces => self.in_time(|names| async move {
                let client = connect::unasked(&names.server(), &names.environment).await?;
                let namespaces = GroupVersionKind::gvk("", "v1", "Namespace");
                listed(&Api::all_with(client, &ApiResource::from_gvk(&namespaces))).await
            }),
            Source::Contexts => connect::contexts(&self.server(), &self.environment),
            Source::TargetContexts => {
                let target = ServerArgs {
                    kubeconfig: self.value(&["--to-kubeconfig"]).map(PathBuf::from),
                    ..ServerArgs::default()
                };
                anyhow::ensure!(target.kubeconfig.is_some(), "no kubeconfig is named");
                connect::contexts(&target, &self.environment)
            }
            Source::Clouds => {
                let (file, _) = clouds_file(&self.environment)?;
                let text = std::fs::read_to_string(file)?;
                Ok(openstack::config::cloud_names(&text)?)
            }
            Source::Templates => {
                let flavors = generate::flavors();
                Ok(flavors.split(", ").map(str::to_owned).collect())
            }
            Source::Pages => Ok(docs::pages()?.into_iter().map(|page| page.name).collect()),
            Source::States => {
                let conditions = Type::ALL
                    .iter()
                    .map(|it| format!("condition={}", it.as_str()));
                let others = ["create", "delete"].map(str::to_owned);
                Ok(conditions.chain(others).collect())
            }
            Source::Options => Ok(self.options()),
        }
    }

    /// Value of the first of the flags before the cursor.
    fn value(&self, flags: &[&str]) -> Option<String> {
        let before = self.words.split_last()?.1;
        for (index, word) in before.iter().enumerate() {
            if flags.contains(&word.as_str()) {
                return before.get(index + 1).cloned();
            }
            if let Some((flag, value)) = word.split_once('=')
                && flags.contains(&flag)
            {
                return Some(value.to_owned());
            }
        }
        None
    }

    fn server(&self) -> ServerArgs {
        ServerArgs {
            kubeconfig: self.value(&["--kubeconfig"]).map(PathBuf::from),
            context: self.value(&["--context", "--kubeconfig-context"]),
            data_dir: DataDirArg {
                data_dir: self.value(&["--data-dir"]).map(PathBuf::from),
            },
        }
    }

    fn namespace(&self) -> String {
        let args = ConnectArgs {
            server: self.server(),
            given_namespace: self.value(&["--namespace", "-n"]),
            ..ConnectArgs::default()
        };
        let namespace = connect::namespace(&args, &self.environment);
        namespace.unwrap_or_else(|| "default".to_owned())
    }

    /// Kinds with a slash, clusters, or objects of the kind in the line: `machine/`, or `machine` before the current
    /// word.
    fn objects(&self, current: &str) -> anyhow::Result<Vec<String>> {
        let kind_of = |word: &str| {
            let word = word.to_ascii_lowercase();
            let mut kinds = Kind::ALL.into_iter();
            kinds.find(|kind| kind.as_str().to_ascii_lowercase() == word)
        };
        if let Some((word, _)) = current.split_once('/') {
            let Some(kind) = kind_of(word) else {
                return Ok(Vec::new());
            };
            return self.of_kinds(vec![(kind, format!("{word}/"))]);
        }
        let before = self.words.iter().rev().nth(1);
        if let Some(kind) = before.and_then(|word| kind_of(word)) {
            return self.of_kinds(vec![(kind, String::new())]);
        }
        let clusters = self.of_kinds(vec![(Kind::Cluster, String::new())]);
        let mut names = clusters.unwrap_or_default();
        let kinds = Kind::ALL.map(|kind| format!("{}/", kind.as_str().to_ascii_lowercase()));
        names.extend(kinds);
        Ok(names)
    }

    /// Objects of [`Kind`]s, each with the name of its kind, or with the short name if already used in the line.
    fn rollouts(&self, kinds: &[(Kind, &str)], current: &str) -> anyhow::Result<Vec<String>> {
        let written = current.split_once('/').map(|(word, _)| word);
        let prefixed = kinds
            .iter()
            .map(|(kind, short)| match written == Some(*short) {
                true => (*kind, format!("{short}/")),
                false => (*kind, format!("{}/", kind.as_str().to_ascii_lowercase())),
            });
        let wanted = prefixed
            .filter(|(_, prefix)| prefix.starts_with(current) || current.starts_with(prefix));
        self.of_kinds(wanted.collect())
    }

    /// Names of the objects of [`Kind`]s in the namespace, each with a prefix.
    fn of_kinds(&self, kinds: Vec<(Kind, String)>) -> anyhow::Result<Vec<String>> {
        self.in_time(|names| async move {
            let client = connect::unasked(&names.server(), &names.environment).await?;
            let namespace = names.namespace();
            let mut found = Vec::new();
            for (kind, prefix) in kinds {
                let resource = kind.resource();
                let api = Api::namespaced_with(client.clone(), &namespace, &resource);
                let of_kind = listed(&api).await?.into_iter();
                found.extend(of_kind.map(|name| format!("{prefix}{name}")));
            }
            Ok(found)
        })
    }

    /// Options of the service in the line, in the release of the line or the default one.
    fn options(&self) -> Vec<String> {
        let release = self.value(&["--release"]);
        let release = release.and_then(|name| deployer::Release::named(&name));
        let release = release.unwrap_or(deployer::Release::DEFAULT);
        let mut services = deployer::Service::ALL.into_iter();
        let service = services.find(|it| self.words.iter().any(|word| word == it.name()));
        let table = service.and_then(|service| release.table(service));
        let options = table.into_iter().flat_map(deployer::Table::all);
        options
            .map(|it| format!("{}.{}", it.section, it.name))
            .collect()
    }

    /// Result of a request, if in time.
    fn in_time<F>(
        &self,
        request: impl FnOnce(Self) -> F + Send + 'static,
    ) -> anyhow::Result<Vec<String>>
    where
        F: Future<Output = anyhow::Result<Vec<String>>>,
    {
        let names = self.clone();
        let (send, receive) = mpsc::channel();
        // On a thread of its own: neither a look-up of a name nor an exec plugin of a kubeconfig can be cancelled.
        std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build();
            let found = runtime.map_err(Into::into);
            let _ = send.send(found.and_then(|runtime| runtime.block_on(request(names))));
        });
        receive.recv_timeout(TIME)?
    }
}

/// Names of the objects of a list, from its first pages.
async fn listed(api: &Api<DynamicObject>) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    for _ in 0..PAGES {
        let page = api.list_metadata(&params).await?;
        let objects = page.items.into_iter();
        names.extend(objects.filter_map(|object| object.metadata.name));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => break,
        }
    }
    Ok(names)
}

/// True for a name of plain letters to a shell and a terminal, and no flag.
fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:+,=%".contains(c);
    name.len() <= LETTERS && !name.starts_with('-') && name.chars().all(is_plain)
}
