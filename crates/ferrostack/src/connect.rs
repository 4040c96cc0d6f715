//! Finds the running management API.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clusterapi::remote::{Connector, KubeconfigConnector};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use operator::client::{Limits, Settings};

use crate::cli::{ConnectArgs, ServerArgs};
use crate::endpoints::resume;
use crate::environment::Environment;
use crate::located::named_data_dir;
pub(crate) use crate::located::{data_dir, data_dir_flag};
pub(crate) use crate::shell::{quoted, quoted_text};

/// Version of the Cluster API kinds used by the commands.
const CLUSTER_API: &str = "cluster.x-k8s.io/v1beta2";

/// Source of the management API's kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// `--kubeconfig`.
    Flag(PathBuf),
    /// The variable KUBECONFIG.
    Variable(Vec<PathBuf>),
    /// Kubeconfig in a data directory; `named` unless the default one.
    DataDir { directory: PathBuf, named: bool },
}

/// [`Client`] of the management API, and the flags for printed commands to connect to the same one.
pub(crate) struct Management {
    pub(crate) client: Client,
    found: Found,
    context: Option<String>,
}

impl Management {
    /// Flags of kubectl to connect to this API, each preceded by a blank.
    pub(crate) fn kubectl_flags(&self) -> String {
        let mut flags = match &self.found {
            Found::Flag(path) => format!(" --kubeconfig {}", quoted(path)),
            Found::Variable(_) => String::new(),
            Found::DataDir { directory, .. } => {
                format!(" --kubeconfig {}", quoted(&directory.join("kubeconfig")))
            }
        };
        flags.push_str(&self.context_flag());
        flags
    }

    /// Flags of ferrostack to connect to this API, each preceded by a blank.
    pub(crate) fn flags(&self) -> String {
        let mut flags = match &self.found {
            Found::Flag(path) => format!(" --kubeconfig {}", quoted(path)),
            Found::DataDir { directory, named } if *named => {
                format!(" --data-dir {}", quoted(directory))
            }
            Found::Variable(_) | Found::DataDir { .. } => String::new(),
        };
        flags.push_str(&self.context_flag());
        flags
    }

    fn context_flag(&self) -> String {
        self.context
            .as_ref()
            .map(|name| format!(" --context {name}"))
            .unwrap_or_default()
    }
}

/// Given namespace, or else the namespace of the context in the kubeconfig, as with kubectl.
pub(crate) fn namespace(args: &ConnectArgs, environment: &Environment) -> Option<String> {
    if args.given_namespace.is_some() {
        return args.given_namespace.clone();
    }
    // What is wrong with it is told when it is used.
    let found = find(&args.server, environment).ok()?;
    let kubeconfig = kubeconfig(&found).ok()?;
    let context = args.server.context.as_ref();
    let context = context.or(kubeconfig.current_context.as_ref())?;
    let mut contexts = kubeconfig.contexts.iter();
    let named = contexts.find(|it| it.name == *context)?;
    let namespace = named.context.as_ref()?.namespace.clone();
    namespace.filter(|namespace| !namespace.is_empty())
}

/// [`Client`] of the management API, found through `--kubeconfig`, `--data-dir` or FERROSTACK_DATA_DIR, `KUBECONFIG`,
/// or the default data directory, in this order.
pub(crate) async fn management(
    args: &ServerArgs,
    environment: &Environment,
) -> anyhow::Result<Management> {
    let (client, address, found) = configured(args, environment).await?;
    match client.list_api_group_resources(CLUSTER_API).await {
        Ok(_) => Ok(Management {
            client,
            found,
            context: args.context.clone(),
        }),
        Err(kube::Error::Api(status)) if status.code == 404 => bail!(
            "the API server at {address} does not know Clusters: it is not the one of a `ferrostack up` or `ferrostack manager`. {}",
            advice(&found)
        ),
        Err(source) => {
            let next = match found {
                Found::DataDir { directory, .. } => {
                    format!("Start it: {}", resume(environment, &directory))
                }
                _ => advice(&found),
            };
            Err(no_answer(&address, source, &next))
        }
    }
}

/// [`Client`] of any cluster, found like the one of [`management`].
pub(crate) async fn cluster(
    args: &ServerArgs,
    environment: &Environment,
) -> anyhow::Result<Client> {
    let (client, address, found) = configured(args, environment).await?;
    match client.apiserver_version().await {
        Ok(_) => Ok(client),
        Err(source) => Err(no_answer(&address, source, &advice(&found))),
    }
}

/// [`Client`] of the cluster of a named kubeconfig, and of no other.
pub(crate) async fn named(
    kubeconfig: &Path,
    context: Option<&str>,
    environment: &Environment,
) -> anyhow::Result<Client> {
    let args = ServerArgs {
        kubeconfig: Some(kubeconfig.to_owned()),
        context: context.map(str::to_owned),
        ..ServerArgs::default()
    };
    let (client, address, _) = configured(&args, environment).await?;
    match client.apiserver_version().await {
        Ok(_) => Ok(client),
        Err(source) => {
            let next = format!("It was found in {}", quoted(kubeconfig));
            Err(no_answer(&address, source, &next))
        }
    }
}

/// Error of a first request, with the step to do `next` if nothing answers.
fn no_answer(address: &str, source: kube::Error, next: &str) -> anyhow::Error {
    match source {
        kube::Error::Api(status) => {
            anyhow::anyhow!(
                "the API server at {address} rejected the request: {}",
                status.message
            )
        }
        source => anyhow::anyhow!(
            "no API server answers at {address}: {}. {next}",
            root_cause(&source)
        ),
    }
}

/// Client with the address, and the source of the kubeconfig.
async fn configured(
    args: &ServerArgs,
    environment: &Environment,
) -> anyhow::Result<(Client, String, Found)> {
    let found = find(args, environment)?;
    let kubeconfig = kubeconfig(&found)?;
    let options = in_context(&kubeconfig, args.context.as_deref())?;
    let config = operator::client::configured(kubeconfig, &options, &environment.proxies()).await;
    let config = config.context("the kubeconfig cannot be used")?;
    let address = address(&config.cluster_url);
    let client = connected(config, "ferrostack")?;
    Ok((client, address, found))
}

/// [`Client`] of the found API server, without a request yet.
///
/// # Errors
/// If the kubeconfig cannot be used.
pub(crate) async fn unasked(
    args: &ServerArgs,
    environment: &Environment,
) -> anyhow::Result<Client> {
    let (client, _, _) = configured(args, environment).await?;
    Ok(client)
}

/// Contexts of the found kubeconfig.
///
/// # Errors
/// If there is no kubeconfig, or if it cannot be read.
pub(crate) fn contexts(
    args: &ServerArgs,
    environment: &Environment,
) -> anyhow::Result<Vec<String>> {
    let contexts = kubeconfig(&find(args, environment)?)?.contexts;
    Ok(contexts.into_iter().map(|context| context.name).collect())
}

/// The address of an API server without a login.
fn address(url: &http::Uri) -> String {
    let scheme = url.scheme_str().unwrap_or("https");
    format!("{scheme}://{}{}", operator::client::host(url), url.path())
}

/// Connects workload clusters.
pub(crate) fn to_workloads(environment: &Environment) -> Arc<dyn Connector> {
    Arc::new(KubeconfigConnector {
        proxies: Arc::new(environment.proxies()),
    })
}

/// [`Client`] of the API server of `config`, under the name `name`.
pub(crate) fn connected(config: Config, name: &str) -> anyhow::Result<Client> {
    let settings = Settings {
        name: name.to_owned(),
        limits: Limits::TRUSTED,
        shared: false,
    };
    operator::client::connected(config, &settings).context("the kubeconfig cannot be used")
}

/// [`Client`] alone, for commands that print no commands.
pub(crate) async fn client(args: &ServerArgs, environment: &Environment) -> anyhow::Result<Client> {
    Ok(management(args, environment).await?.client)
}

/// Innermost cause, such as `Connection refused`. The outer errors only name layers of the client.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn advice(found: &Found) -> String {
    match found {
        Found::Variable(paths) => {
            let paths: Vec<String> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            format!(
                "It was found through KUBECONFIG={}; name another with --data-dir or --kubeconfig",
                paths.join(":")
            )
        }
        Found::Flag(path) => format!("It was found through --kubeconfig {}", path.display()),
        Found::DataDir { directory, .. } => {
            format!(
                "It was found through the data directory {}",
                directory.display()
            )
        }
    }
}

fn find(args: &ServerArgs, environment: &Environment) -> anyhow::Result<Found> {
    if let Some(path) = &args.kubeconfig {
        return Ok(Found::Flag(environment.working_dir.join(path)));
    }
    let named = named_data_dir(&args.data_dir, environment).is_some();
    Ok(match environment.non_empty("KUBECONFIG") {
        Some(paths) if !named => Found::Variable(std::env::split_paths(paths).collect()),
        _ => Found::DataDir {
            directory: data_dir(&args.data_dir, environment)?,
            named,
        },
    })
}

fn kubeconfig(found: &Found) -> anyhow::Result<Kubeconfig> {
    match found {
        Found::Flag(path) => read(std::slice::from_ref(path)),
        Found::Variable(paths) => read(paths),
        Found::DataDir { directory, .. } => {
            let path = directory.join("kubeconfig");
            if !path.exists() {
                bail!(
                    "there is no {}: start `ferrostack up` first, or name a data directory with --data-dir or a kubeconfig with --kubeconfig",
                    path.display()
                );
            }
            read(&[path])
        }
    }
}

/// [`KubeConfigOptions`] for a context, or the current one; the context must exist.
pub(crate) fn in_context(
    kubeconfig: &Kubeconfig,
    context: Option<&str>,
) -> anyhow::Result<KubeConfigOptions> {
    if let Some(name) = context {
        check_context(kubeconfig, name)?;
    }
    Ok(KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    })
}

fn check_context(kubeconfig: &Kubeconfig, name: &str) -> anyhow::Result<()> {
    let known: Vec<&str> = kubeconfig
        .contexts
        .iter()
        .map(|context| context.name.as_str())
        .collect();
    if known.contains(&name) {
        return Ok(());
    }
    bail!(
        "there is no context `{name}` in the kubeconfig; there are: {}",
        known.join(", ")
    )
}

/// Reads [`Kubeconfig`] files, merged as in kubectl for `KUBECONFIG`.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Kubeconfig> {
    let mut merged = Kubeconfig::default();
    for path in paths.iter().filter(|path| !path.as_os_str().is_empty()) {
        let next = read_one(path)?;
        merged = merged
            .merge(next)
            .context("the kubeconfig files cannot be merged")?;
    }
    Ok(merged)
}

fn read_one(path: &Path) -> anyhow::Result<Kubeconfig> {
    if !path.exists() {
        bail!(
            "cannot use kubeconfig {}: there is no such file",
            path.display()
        );
    }
    Kubeconfig::read_from(path).with_context(|| format!("cannot use kubeconfig {}", path.display()))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::cli::DataDirArg;
    use crate::pki::self_issued;

    fn found(args: ServerArgs, variables: &[(&str, &str)]) -> Found {
        let mut environment = Environment::with(variables);
        environment.working_dir = PathBuf::from("/here");
        find(&args, &environment).unwrap()
    }

    #[test]
    fn the_namespace_is_that_of_the_context_where_none_is_given() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kubeconfig");
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts:\n\
            - {name: a, context: {cluster: c, user: u, namespace: team}}\n\
            - {name: b, context: {cluster: c, user: u}}\n";
        std::fs::write(&file, text).unwrap();
        let of = |given: Option<&str>, context: Option<&str>| {
            let args = ConnectArgs {
                server: ServerArgs {
                    kubeconfig: Some(file.clone()),
                    context: context.map(str::to_owned),
                    ..ServerArgs::default()
                },
                given_namespace: given.map(str::to_owned),
                ..ConnectArgs::default()
            };
            namespace(&args, &Environment::with(&[]))
        };
        assert_eq!(of(None, None).as_deref(), Some("team"));
        assert_eq!(of(Some("other"), None).as_deref(), Some("other"));
        assert_eq!(of(None, Some("b")), None);
    }

    fn data(path: &str) -> ServerArgs {
        ServerArgs {
            data_dir: DataDirArg {
                data_dir: Some(PathBuf::from(path)),
            },
            ..ServerArgs::default()
        }
    }

    fn named(directory: &str) -> Found {
        Found::DataDir {
            directory: PathBuf::from(directory),
            named: true,
        }
    }

    #[test]
    fn a_data_directory_that_is_named_comes_before_kubeconfig() {
        let kubeconfig = ("KUBECONFIG", "/a:/b");
        let variable = ("FERROSTACK_DATA_DIR", "/variable");
        assert_eq!(found(data("d"), &[kubeconfig, variable]), named("/here/d"));
        assert_eq!(
            found(ServerArgs::default(), &[kubeconfig, variable]),
            named("/variable")
        );
        assert_eq!(
            found(ServerArgs::default(), &[kubeconfig]),
            Found::Variable(vec!["/a".into(), "/b".into()])
        );
        let flag = ServerArgs {
            kubeconfig: Some("k".into()),
            ..ServerArgs::default()
        };
        assert_eq!(
            found(flag, &[kubeconfig, variable]),
            Found::Flag("/here/k".into())
        );
        assert_eq!(
            found(ServerArgs::default(), &[("HOME", "/home/x")]),
            Found::DataDir {
                directory: "/home/x/.local/share/ferrostack".into(),
                named: false
            }
        );
    }

    /// The error of a connection to `server`, whose certificate is checked with `authority`.
    async fn unanswered(server: &str, authority: &str) -> String {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kubeconfig");
        let (_, issued) = self_issued("client", vec!["client".to_owned()]).unwrap();
        let key = issued.key.expose_secret();
        let text =
            crate::commands::get::kubeconfig::admin(server, authority, &issued.certificate, key);
        std::fs::write(&file, text).unwrap();
        let args = ServerArgs {
            kubeconfig: Some(file),
            ..ServerArgs::default()
        };
        let error = client(&args, &Environment::with(&[])).await.err().unwrap();
        operator::words::chain(&*error)
    }

    #[tokio::test]
    async fn a_server_that_cannot_be_reached_is_reported_with_the_cause() {
        let (authority, identity) = self_issued("a", vec!["127.0.0.1".to_owned()]).unwrap();
        let (another, _) = self_issued("b", vec!["127.0.0.1".to_owned()]).unwrap();
        let refused = unanswered("https://127.0.0.1:1", &authority).await;
        assert!(
            refused
                .starts_with("no API server answers at https://127.0.0.1:1/: Connection refused. "),
            "{refused}"
        );
        let unknown = unanswered("https://nowhere.invalid:1", &authority).await;
        assert!(unknown.contains("failed to lookup address"), "{unknown}");

        let key = identity.key.expose_secret();
        let config = apiserver::server_config(&identity.certificate, key, None).unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(config);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("https://{}", listener.local_addr().unwrap());
        let serve = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let _ = acceptor.accept(stream).await;
        });
        let untrusted = unanswered(&server, &another).await;
        serve.await.unwrap();
        assert!(
            untrusted.contains("invalid peer certificate") && !untrusted.contains("client error"),
            "{untrusted}"
        );
    }
}
