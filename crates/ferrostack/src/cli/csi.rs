//! Commands of the Cinder CSI driver.

use std::path::PathBuf;

use clap::Args;
use csi_spec::endpoint::Endpoint;

mod commands;
mod idle;
mod on_node;

pub(crate) use self::commands::{Csi, CsiCheck, CsiOrphans};
use self::idle::GoDriver;
pub(crate) use self::on_node::OnNode;
use super::Listen;
use super::idle::WithoutEffect;
use super::klog::Klog;
use super::manager::listen;

const NO_CLUSTER: &str = "the controller service alone asks an API server";
const NO_NODE: &str = "it is for the node service alone";
const NO_CONTROLLER: &str = "claims are read by the controller service alone";

/// Flags of the Go driver, by their names. Flags without an effect here are accepted, and listed in a line at the
/// start.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct CinderCsiPlugin {
    /// Socket of the driver: unix:///DIRECTORY/SOCKET or tcp://ADDRESS:PORT.
    #[arg(long, value_name = "ENDPOINT", required = true)]
    pub(crate) endpoint: Endpoint,
    /// Configuration files (cloud.conf), read as one; required with the controller service.
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    pub(crate) cloud_config: Vec<PathBuf>,
    /// Clouds to serve: NAME for the section [Global "NAME"] [default: that of [Global]].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) cloud_name: Vec<String>,
    /// Name of the Kubernetes cluster, which becomes metadata of its volumes.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) cluster: String,
    /// Volumes and nodes have zones.
    #[arg(long, value_name = "BOOL", default_value = "true", default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) with_topology: bool,
    /// Further topology of this node, between commas.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = pair)]
    pub(crate) additional_topology: Vec<(String, String)>,
    /// Serve volumes and snapshots.
    #[arg(long, value_name = "BOOL", default_value = "true", default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) provide_controller_service: bool,
    /// Serve mounts of this node.
    #[arg(long, value_name = "BOOL", default_value = "true", default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) provide_node_service: bool,
    /// Address of /metrics and /healthz, over plain HTTP, such as :8080 [default: none].
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true, value_parser = http_endpoint)]
    pub(crate) http_endpoint: Listen,
    /// Port of /healthz on all addresses, as livenessprobe serves it [default: none].
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) health_port: Option<u16>,
    /// Path of the socket as the kubelet sees it; the driver then registers itself, without node-driver-registrar.
    #[arg(long, value_name = "PATH")]
    pub(crate) kubelet_registration_path: Option<PathBuf>,
    /// Directory in which the kubelet looks for sockets of drivers, for --kubelet-registration-path.
    #[arg(long, value_name = "DIR", default_value = "/registration")]
    pub(crate) plugin_registration_path: PathBuf,
    /// Added to the User-Agent of requests to OpenStack; may be given more than once.
    #[arg(long, value_name = "TEXT")]
    pub(crate) user_agent: Vec<String>,
    /// Read scheduler hints from the annotations of claims.
    #[arg(long, value_name = "BOOL", default_value = "false", default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) pvc_annotations: bool,
    #[command(flatten)]
    pub(crate) on_node: OnNode,
    /// Kubeconfig of the cluster whose uid volumes get, and with --pvc-annotations of its claims [default: KUBECONFIG, then the
    /// service account of the pod].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", visible_alias = "kubeconfig-context")]
    pub(crate) context: Option<String>,
    /// URL of the API server; takes precedence over the one in the kubeconfig.
    #[arg(long, value_name = "URL")]
    pub(crate) master: Option<String>,
    /// Serve what the specification calls alpha: GetSnapshot, and the health of volumes, as the cloud and as nodes see it.
    #[arg(long)]
    pub(crate) alpha: bool,
    #[command(flatten)]
    pub(crate) klog: Klog,
    #[command(flatten)]
    pub(crate) idle: WithoutEffect<GoDriver>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateCsi {
    /// Entry of clouds.yaml; adds the Secret cloud-config with its credentials.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: Option<String>,
    /// Namespace of the driver.
    #[arg(short, long, default_value = crate::defaults::KUBE_SYSTEM)]
    pub(crate) namespace: String,
    /// Container image of ferrostack.
    #[arg(long, value_name = "IMAGE", default_value = crate::defaults::IMAGE)]
    pub(crate) image: String,
    /// Values file of the Go driver's Helm chart, openstack-cinder-csi: what it sets is set here, too, and misspelt keys
    /// are refused.
    #[arg(long, value_name = "FILE")]
    pub(crate) values: Option<PathBuf>,
    /// The controller reads scheduler hints from the annotations of claims, as with `pvcAnnotations: true` in the values.
    #[arg(long)]
    pub(crate) pvc_annotations: bool,
    #[command(flatten)]
    pub(crate) on_node: OnNode,
}

impl CinderCsiPlugin {
    /// Given flags without an effect, each with the reason.
    pub(crate) fn without_effect(&self) -> Vec<(String, &'static str)> {
        let no_cluster = !self.provide_controller_service;
        let all = [
            (
                self.pvc_annotations && !self.provide_controller_service,
                "--pvc-annotations",
                NO_CONTROLLER,
            ),
            (
                no_cluster && self.kubeconfig.is_some(),
                "--kubeconfig",
                NO_CLUSTER,
            ),
            (
                no_cluster && self.context.is_some(),
                "--context",
                NO_CLUSTER,
            ),
            (no_cluster && self.master.is_some(), "--master", NO_CLUSTER),
        ];
        let given = all.into_iter().filter(|(given, ..)| *given);
        let mut given: Vec<_> = given.map(|(_, flag, why)| (flag.to_owned(), why)).collect();
        if !self.provide_node_service {
            let of_nodes = self.on_node.flags().into_iter();
            given.extend(of_nodes.map(|(flag, _)| (flag.to_owned(), NO_NODE)));
        }
        given
            .into_iter()
            .chain(self.idle.given().iter().cloned())
            .collect()
    }
}

/// [`Listen`] address as read by the Go driver: an empty text means none.
fn http_endpoint(text: &str) -> Result<Listen, String> {
    match text {
        "" => Ok(Listen::Off),
        text => listen(text),
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=');
    let pair = pair.filter(|(key, _)| !key.trim().is_empty());
    let (key, value) = pair.ok_or_else(|| format!("`{text}` is not a pair such as KEY=VALUE"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use cloud_conf::{CloudConf, MetadataSource};

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        args: CinderCsiPlugin,
    }

    fn parsed(flags: &[&str]) -> Result<CinderCsiPlugin, String> {
        let words = ["cinder-csi-plugin", "--endpoint=unix://csi/csi.sock"];
        let words = words.into_iter().chain(flags.iter().copied());
        let program = Program::try_parse_from(words);
        Ok(program.map_err(|error| error.to_string())?.args)
    }

    #[test]
    fn flags_and_their_defaults_are_those_of_the_go_driver() {
        let args = parsed(&[]).unwrap();
        assert_eq!(args.endpoint, Endpoint::Unix("/csi/csi.sock".into()));
        assert!(args.cloud_config.is_empty() && args.cloud_name.is_empty());
        assert_eq!(args.cluster, "");
        assert!(args.with_topology);
        assert!(args.provide_controller_service && args.provide_node_service);
        assert!(!args.pvc_annotations && !args.alpha);
        assert_eq!(args.http_endpoint, Listen::Off);
        assert_eq!(args.health_port, None);
        assert_eq!(args.klog.log_filter(), "error");
        let args = parsed(&[
            "--cloud-config=a,b",
            "--cloud-config",
            "c",
            "--cloud-name=one",
            "--cloud-name=two",
            "--cluster=blue",
            "--with-topology=false",
            "--additional-topology=a=b,example.com/rack= r=1",
            "--http-endpoint=:8080",
            "--provide-controller-service",
            "--provide-node-service=false",
            "--user-agent=x",
            "--health-port=9808",
            "--kubelet-registration-path=/var/lib/kubelet/plugins/cinder.csi.openstack.org/csi.sock",
            "-v=4",
        ]);
        let args = args.unwrap();
        let files: Vec<PathBuf> = ["a", "b", "c"].map(PathBuf::from).into();
        assert_eq!(args.cloud_config, files);
        assert_eq!(args.cloud_name, ["one", "two"]);
        assert_eq!(args.cluster, "blue");
        assert!(!args.with_topology && !args.provide_node_service);
        let pairs = [("a", "b"), ("example.com/rack", "r=1")];
        assert_eq!(
            args.additional_topology,
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
        let all = "0.0.0.0:8080".parse().unwrap();
        assert_eq!(args.http_endpoint, Listen::On(all));
        assert_eq!(args.health_port, Some(9808));
        assert_eq!(args.klog.log_filter(), "info");
        assert!(args.without_effect().is_empty());
    }

    #[test]
    fn the_last_of_a_flag_counts_as_in_go() {
        let args = parsed(&[
            "--cluster=a",
            "--cluster=b",
            "-v=1",
            "--v=5",
            "--with-topology=false",
            "--with-topology",
            "--cloud-name=one",
            "--cloud-name=two",
        ]);
        let args = args.unwrap();
        assert_eq!(args.cluster, "b");
        assert_eq!(args.klog.log_filter(), "debug");
        assert!(args.with_topology);
        assert_eq!(args.cloud_name, ["one", "two"]);
    }

    #[test]
    fn flags_of_the_cluster_change_nothing_on_nodes() {
        let flags = ["--kubeconfig=k", "--context=c", "--master=https://m"];
        let named = |flags: &[&str]| -> Vec<String> {
            let given = parsed(flags).unwrap().without_effect();
            given.into_iter().map(|it| it.0).collect()
        };
        // Volumes have the uid of the cluster.
        assert!(named(&flags).is_empty());
        let mut node = flags.to_vec();
        node.push("--provide-controller-service=false");
        assert_eq!(named(&node), ["--kubeconfig", "--context", "--master"]);
        assert!(named(&["--pvc-annotations=false"]).is_empty());
        let node = ["--pvc-annotations", "--provide-controller-service=false"];
        assert_eq!(named(&node), ["--pvc-annotations"]);
    }

    #[test]
    fn options_of_nodes_come_before_cloud_conf() {
        let flags = |flags: &[&str]| parsed(flags).unwrap().on_node;
        let text = "[Global]\nauth-url = https://k\nuser-id = u\npassword = p\ntenant-id = t\n\
                    [BlockStorage]\nnode-volume-attach-limit = 20\n[Metadata]\nsearch-order = metadataService\n";
        let conf = CloudConf::parse(text, cloud_conf::Program::CinderCsi)
            .unwrap()
            .conf;
        let none = CloudConf::default();
        let (drive, service) = (MetadataSource::ConfigDrive, MetadataSource::MetadataService);
        let absent = flags(&[]);
        assert_eq!((absent.limit(&none), absent.limit(&conf)), (None, Some(20)));
        assert_eq!(absent.order(&none), [drive, service]);
        assert_eq!(absent.order(&conf), [service]);
        let all = ["--node-volume-attach-limit=0", "--search-order=configDrive"];
        let given = flags(&all);
        assert_eq!(
            (given.limit(&conf), given.order(&conf)),
            (None, &[drive][..])
        );
        assert_eq!(
            flags(&["--node-volume-attach-limit=9"]).limit(&conf),
            Some(9)
        );
        let written = |it: OnNode| {
            it.flags()
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
        };
        assert_eq!(written(given).collect::<Vec<_>>(), all);
        let of_conf = [
            "--node-volume-attach-limit=20",
            "--search-order=metadataService",
        ];
        assert_eq!(
            written(OnNode::from_conf(&conf)).collect::<Vec<_>>(),
            of_conf
        );
        assert_eq!(OnNode::from_conf(&none), absent);
        let mut beside = all.to_vec();
        beside.push("--provide-node-service=false");
        let idle = parsed(&beside).unwrap().without_effect();
        assert_eq!(idle.len(), 2);
        assert_eq!(idle[0].0, "--node-volume-attach-limit");
    }

    #[test]
    fn values_that_are_none_are_refused() {
        for (flag, words) in [
            (
                "--endpoint=/csi/csi.sock",
                "is neither unix:///DIRECTORY/SOCKET",
            ),
            ("--endpoint=http://a:1", "nor tcp://ADDRESS:PORT"),
            ("--with-topology=maybe", "invalid value 'maybe'"),
            (
                "--additional-topology=zone",
                "`zone` is not a pair such as KEY=VALUE",
            ),
            (
                "--additional-topology==zone",
                "`=zone` is not a pair such as KEY=VALUE",
            ),
            ("--http-endpoint=8080", "`8080` is not an address such as"),
            ("--health-port=0", "0 is not in 1..=65535"),
            ("--node-volume-attach-limit=257", "257 is not in 0..=256"),
            ("--search-order=disk", "`disk` is neither configDrive nor"),
            ("--search-order=", "the list is empty"),
            (
                "--logging-format=json",
                "unexpected argument '--logging-format'",
            ),
        ] {
            let words_of = |flag: &str| match flag.starts_with("--endpoint") {
                true => Program::try_parse_from(["csi", flag]).map(|it| it.args),
                false => {
                    Program::try_parse_from(["csi", "--endpoint=tcp://:1", flag]).map(|it| it.args)
                }
            };
            let error = words_of(flag).unwrap_err().to_string();
            assert!(error.contains(words), "{flag}: {error}");
        }
        let error = Program::try_parse_from(["csi"]).unwrap_err().to_string();
        assert!(error.contains("--endpoint <ENDPOINT>"), "{error}");
    }
}
