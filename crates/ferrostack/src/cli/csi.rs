//! The command of the Cinder CSI driver.

use std::path::PathBuf;

use clap::Args;
use csi_spec::endpoint::Endpoint;

use super::Listen;
use super::manager::listen;
use super::values::of_klog;

const NO_ANNOTATIONS: &str = "scheduler hints from annotations of claims are not built";
const NO_CLUSTER: &str = "nothing is asked of an API server";
const ONE_LOG: &str = "the log goes to standard error as text; --log and --v choose what is in it";

/// Flags of the Go driver, by their names. Those that change nothing here are accepted, and a line at start names them.
#[derive(Debug, Args)]
pub(crate) struct CinderCsiPlugin {
    /// Socket of the driver: unix:///DIRECTORY/SOCKET or tcp://ADDRESS:PORT.
    #[arg(long, value_name = "ENDPOINT", required = true)]
    pub(crate) endpoint: Endpoint,
    /// Configuration files (cloud.conf), which are read as one; required with the controller service.
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
    /// Log level of klog: errors with 0, what is done from 1 on, details from 5 on; --log takes precedence.
    #[arg(short = 'v', long = "v", value_name = "N", default_value_t = 0)]
    pub(crate) verbosity: u8,
    #[command(flatten)]
    idle: WithoutEffect,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateCsi {
    /// Entry of clouds.yaml; adds the Secret cloud-config with its credentials.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: Option<String>,
    /// Namespace of the driver.
    #[arg(short, long, default_value = crate::ccm::manifests::NAMESPACE)]
    pub(crate) namespace: String,
    /// Container image of ferrostack.
    #[arg(long, value_name = "IMAGE", default_value = crate::ccm::manifests::IMAGE)]
    pub(crate) image: String,
}

/// Flags of the Go driver that change nothing here.
#[derive(Debug, Args)]
struct WithoutEffect {
    #[arg(long, hide = true, value_name = "BOOL", default_missing_value = "true", num_args = 0..=1, require_equals = true)]
    pvc_annotations: Option<bool>,
    #[arg(long, hide = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[arg(
        long,
        hide = true,
        value_name = "NAME",
        visible_alias = "kubeconfig-context"
    )]
    context: Option<String>,
    #[arg(long, hide = true, value_name = "URL")]
    master: Option<String>,
    #[arg(long, hide = true, value_name = "N")]
    kube_api_qps: Option<f32>,
    #[arg(long, hide = true, value_name = "N")]
    kube_api_burst: Option<i64>,
    #[arg(long, hide = true, value_name = "DURATION")]
    min_resync_period: Option<String>,
    #[arg(long, hide = true, value_name = "ID")]
    nodeid: Option<String>,
    #[arg(long, hide = true, value_name = "BOOL", default_missing_value = "true", num_args = 0..=1, require_equals = true)]
    node_service_no_os_client: Option<bool>,
    #[arg(long, hide = true, value_name = "DURATION")]
    log_flush_frequency: Option<String>,
    #[arg(long, hide = true, value_name = "LIST")]
    vmodule: Option<String>,
}

impl CinderCsiPlugin {
    /// What `--log` would be for the level of klog.
    pub(crate) fn log_filter(&self) -> &'static str {
        of_klog(self.verbosity)
    }

    /// The flags that were given and change nothing, each with the reason.
    pub(crate) fn without_effect(&self) -> Vec<(&'static str, &'static str)> {
        let idle = &self.idle;
        let all = [
            (
                idle.pvc_annotations == Some(true),
                ("--pvc-annotations", NO_ANNOTATIONS),
            ),
            (idle.kubeconfig.is_some(), ("--kubeconfig", NO_CLUSTER)),
            (idle.context.is_some(), ("--context", NO_CLUSTER)),
            (idle.master.is_some(), ("--master", NO_CLUSTER)),
            (idle.kube_api_qps.is_some(), ("--kube-api-qps", NO_CLUSTER)),
            (
                idle.kube_api_burst.is_some(),
                ("--kube-api-burst", NO_CLUSTER),
            ),
            (
                idle.min_resync_period.is_some(),
                ("--min-resync-period", NO_CLUSTER),
            ),
            (
                idle.nodeid.is_some(),
                (
                    "--nodeid",
                    "the id of a node is that of its server, from its metadata",
                ),
            ),
            (
                idle.node_service_no_os_client.is_some(),
                (
                    "--node-service-no-os-client",
                    "the node service never asks the cloud",
                ),
            ),
            (
                idle.log_flush_frequency.is_some(),
                ("--log-flush-frequency", ONE_LOG),
            ),
            (idle.vmodule.is_some(), ("--vmodule", ONE_LOG)),
        ];
        let given = all.into_iter().filter(|(given, _)| *given);
        given.map(|(_, flag)| flag).collect()
    }
}

/// As the Go driver reads it: an empty text is none.
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
        assert_eq!(args.http_endpoint, Listen::Off);
        assert_eq!(args.health_port, None);
        assert_eq!(args.log_filter(), "error");
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
        assert_eq!(args.log_filter(), "info");
        assert!(args.without_effect().is_empty());
    }

    #[test]
    fn flags_that_change_nothing_are_accepted_and_named() {
        let flags = [
            "--pvc-annotations",
            "--kubeconfig=k",
            "--context=c",
            "--master=https://m",
            "--kube-api-qps=5",
            "--kube-api-burst=10",
            "--min-resync-period=12h",
            "--nodeid=n",
            "--node-service-no-os-client=true",
            "--log-flush-frequency=5s",
            "--vmodule=a=2",
        ];
        let args = parsed(&flags).unwrap();
        let named: Vec<&str> = args.without_effect().into_iter().map(|it| it.0).collect();
        let name = |flag: &&'static str| flag.split('=').next().unwrap();
        assert_eq!(named, flags.iter().map(name).collect::<Vec<_>>());
        // Off is what it is anyway.
        let off = parsed(&["--pvc-annotations=false"]).unwrap();
        assert!(off.without_effect().is_empty());
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
