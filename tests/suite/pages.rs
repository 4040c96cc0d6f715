//! The commands of README.md and docs/*.md, run as they are written there.
//!
//! Each page is one shell script: its code blocks with commands of `ferrostack`, `kubectl`, `openstack` or `curl`, in their
//! order, in a home directory of its own. A page may need something first, such as the cloud `mine`; what goes on until it is
//! interrupted runs in the background. Where the kernel allows it, the script has a network and processes of its own, so that
//! the default ports are free.
//!
//! Left out are the commands of [`ELSEWHERE`], each of which is found in the script that runs it, and what begins with a
//! script of tests/, `cargo`, `ip` or a variable of ferrostack: these scripts, tests and examples are only looked up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use regex::Regex;
use tokio::process::Command;

use crate::forms;
use crate::process::{LIMIT, PROGRAM, kubectl, texts};

/// A page, and how its commands are run.
struct Page {
    name: &'static str,
    /// What the page takes for granted, as a script.
    prepare: &'static str,
    /// Whether its commands use fixed ports.
    ports: bool,
    /// What the commands print.
    prints: &'static [&'static str],
}

/// One cluster on a simulated cloud, in the background.
macro_rules! with_cluster {
    ($more:literal) => {
        concat!(
            "ferrostack up --detach --control-plane-machine-count 1 --worker-machine-count 1 >up.out\n",
            "export OS_CLIENT_CONFIG_FILE=~/.local/share/ferrostack/clouds.yaml\n",
            $more
        )
    };
}

/// One test for each page, and the list of pages.
macro_rules! pages {
    ($($test:ident: $page:expr;)*) => {
        fn pages() -> Vec<Page> {
            vec![$($page),*]
        }
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                runs_as_it_is_written($page).await;
            }
        )*
    };
}

pages! {
    commands_of_the_readme: Page {
        name: "README.md",
        prepare: "",
        ports: false,
        prints: &["Ready after", "cluster.cluster.x-k8s.io/demo", "demo-control-plane-", "ACTIVE"],
    };
    commands_of_the_page_on_the_api_server: Page {
        name: "docs/reference/apiserver.md",
        prepare: with_cluster!(""),
        ports: false,
        prints: &["FILE: ", "restored: "],
    };
    // Helm itself is in the script of tests/.
    commands_of_the_page_on_helm: Page {
        name: "docs/guides/helm.md",
        prepare: "helm() { test -s chart/Chart.yaml; }\n",
        ports: false,
        prints: &[],
    };
    commands_of_the_page_on_the_cloud_controller_manager: Page {
        name: "docs/guides/cloud-controller-manager.md",
        prepare: with_cluster!("sed 's/^  simulated:/  mine:/' $OS_CLIENT_CONFIG_FILE >clouds.yaml
            unset OS_CLIENT_CONFIG_FILE
            ferrostack get kubeconfig demo >admin.conf
            export KUBECONFIG=$PWD/admin.conf\n"),
        ports: true,
        prints: &["cloud.conf is valid", "daemonset.apps/openstack-cloud-controller-manager created",
            "leading as ",
            "stopped",
        ],
    };
    commands_of_the_page_on_cluster_classes: Page {
        name: "docs/guides/clusterclass.md",
        prepare: with_cluster!("export KUBECONFIG=~/.local/share/ferrostack/kubeconfig\n"),
        ports: false,
        prints: &["clusterclass.cluster.x-k8s.io/small created", "cluster.cluster.x-k8s.io/team condition met", "KubeadmControlPlane", "modified", "cluster team is gone"],
    };
    commands_of_the_page_on_cluster_resource_sets: Page {
        name: "docs/guides/cluster-resource-sets.md",
        prepare: with_cluster!("export KUBECONFIG=~/.local/share/ferrostack/kubeconfig
            kubectl create configmap a -o yaml --dry-run=client >calico.yaml
            kubectl create secret generic b -o yaml --dry-run=client >secret.yaml\n"),
        ports: false,
        prints: &["clusterresourceset.addons.cluster.x-k8s.io/cni created", "cluster.cluster.x-k8s.io/demo labeled"],
    };
    commands_of_the_page_on_clusterctl: Page {
        name: "docs/guides/clusterctl.md",
        prepare: "",
        ports: false,
        prints: &["wrote cluster-api, bootstrap-kubeadm, control-plane-kubeadm, infrastructure-openstack"],
    };
    commands_of_the_page_on_keystone: Page {
        name: "docs/guides/keystone-authentication.md",
        prepare: "ferrostack up --detach --keystone-auth --control-plane-machine-count 1 --worker-machine-count 1 >up.out\n",
        ports: false,
        prints: &["Username", "demo"],
    };
    commands_of_the_page_on_logging_in_with_keystone: Page {
        name: "docs/guides/keystone-login.md",
        prepare: "printf 'of no importance' >ca.crt\n",
        ports: false,
        prints: &["--os-cloud=mycloud", "client.authentication.k8s.io/exec"],
    };
    commands_of_the_page_on_what_clusters_leave_behind: Page {
        name: "docs/guides/leftovers.md",
        prepare: with_cluster!(""),
        ports: false,
        prints: &["would delete 1 Cluster, 1 OpenStackCluster", "k8s-clusterapi-cluster-default-demo", "cluster demo is gone",
            "Nothing is found.", "\"findings\""],
    };
    commands_of_the_page_on_the_manager: Page {
        name: "docs/guides/manager.md",
        // With the kinds of the Prometheus operator, whose schemas are its own.
        prepare: with_cluster!("ferrostack get kubeconfig demo >FILE
            export KUBECONFIG=$PWD/FILE
            for kind in ServiceMonitor PrometheusRule; do
                plural=$(echo ${kind}s | tr A-Z a-z)
                echo '{\"apiVersion\": \"apiextensions.k8s.io/v1\", \"kind\": \"CustomResourceDefinition\",
                    \"metadata\": {\"name\": \"'$plural.monitoring.coreos.com'\"}, \"spec\": {\"group\": \"monitoring.coreos.com\",
                    \"names\": {\"kind\": \"'$kind'\", \"plural\": \"'$plural'\"}, \"scope\": \"Namespaced\", \"versions\": [{\"name\": \"v1\",
                    \"served\": true, \"storage\": true, \"schema\": {\"openAPIV3Schema\": {\"type\": \"object\",
                    \"x-kubernetes-preserve-unknown-fields\": true}}}]}}' | kubectl apply -f -
            done\n"),
        ports: true,
        prints: &["serviceaccount/ferrostack-manager serverside-applied", "leading as ", "stopped"],
    };
    commands_of_the_page_on_moving: Page {
        name: "docs/guides/move.md",
        // The target is another `up`, with no cluster, on the cloud of the first one.
        prepare: with_cluster!("printf 'apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n' >nothing.yaml
            export KUBERNETES_VERSION=v1.34.2 OPENSTACK_DNS_NAMESERVERS=9.9.9.9
            ferrostack up --data-dir target --cloud simulated -f nothing.yaml >target.out 2>&1 &
            until grep -q 'management API at' target.out; do sleep 0.1; done
            cp target/kubeconfig target.kubeconfig\n"),
        ports: false,
        prints: &["moves: Cluster/demo", "of namespace default have moved: Cluster demo", "are written, and go on here"],
    };
    commands_of_the_page_on_openstack: Page {
        name: "docs/guides/openstack.md",
        prepare: with_cluster!("cp ~/.local/share/ferrostack/kubeconfig mycluster
            export KUBECONFIG=$PWD/mycluster
            kubectl config rename-context $(kubectl config current-context) mycluster
            kubectl create namespace openstack\n"),
        ports: false,
        prints: &["cpu_allocation_ratio = 4.0", "rabbit_quorum_queue", "+ Secret openstack-accounts",
            "simulated: nothing is started", "cloud cloud, release 2026.1: ready", "deleted; volumes"],
    };
    commands_of_the_page_on_upgrades_of_openstack: Page {
        name: "docs/guides/openstack-upgrade.md",
        prepare: "echo 'release: \"2025.1\"' >cloud.yaml
            ferrostack openstack up -f cloud.yaml >up.out 2>&1 &
            until grep -q '^ready after' up.out; do sleep 0.1; done\n",
        ports: false,
        prints: &["the checks of 2026.1 pass; nothing is changed", "upgraded 2025.1 → 2026.1"],
    };
    commands_of_the_page_on_backups_of_openstack: Page {
        name: "docs/guides/openstack-backup.md",
        prepare: "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout backup.key -out backup.pem -days 2 -subj /CN=backup 2>openssl.out
            printf 'release: \"2026.1\"\\nbackup:\\n  claimName: backups\\n  certificate: |\\n' >cloud.yaml
            sed 's/^/    /' backup.pem >>cloud.yaml
            ferrostack openstack up -f cloud.yaml >up.out 2>&1 &
            until grep -q '^ready after' up.out; do sleep 0.1; done
            printf 'apiVersion: v1\\nkind: PersistentVolumeClaim\\nmetadata: {name: backups, namespace: openstack}\\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\\n' >claim.yaml
            kubectl --kubeconfig ~/.local/share/ferrostack-openstack/kubeconfig apply -f claim.yaml\n",
        ports: false,
        prints: &["before-the-move: done (Backup", "done (Check", ": backup before-the-move"],
    };
    commands_of_the_page_on_rotation_of_openstack: Page {
        name: "docs/guides/openstack-rotation.md",
        prepare: "echo 'release: \"2026.1\"' >cloud.yaml
            ferrostack openstack up -f cloud.yaml >up.out 2>&1 &
            until grep -q '^ready after' up.out; do sleep 0.1; done\n",
        ports: false,
        prints: &[": done (Make"],
    };
    commands_of_the_page_on_installation: Page {
        name: "docs/get-started/install.md",
        prepare: "",
        ports: false,
        prints: &["ferrostack 0.1.0", "first-cluster"],
    };
    commands_of_the_first_openstack: Page {
        name: "docs/get-started/first-openstack.md",
        prepare: "",
        ports: false,
        prints: &["cloud cloud, release 2026.1: ready", "cpu_allocation_ratio = 4.0", "nova waits for nova-api, which", "keystone"],
    };
    commands_of_the_page_on_a_real_openstack: Page {
        name: "docs/project/test-cloud.md",
        // In place of the real cloud a simulated one, whose servers run nothing, either. Its images have five versions.
        prepare: "ferrostack simulate --clouds-file clouds.yaml &
            until [ -s clouds.yaml ]; do sleep 0.1; done
            mkdir -p target/openstack
            sed -e 's/^  simulated:/  demo:/' -e 's/^  simulated-admin:/  admin:/' clouds.yaml >target/openstack/clouds.yaml
            export KUBERNETES_VERSION=v1.34.2 OPENSTACK_DNS_NAMESERVERS=9.9.9.9
            export CONTROL_PLANE_MACHINE_COUNT=1 WORKER_MACHINE_COUNT=1\n",
        ports: true,
        prints: &["guests on the servers of cloud admin", "leading as ", "cluster.cluster.x-k8s.io/demo condition met"],
    };
    commands_of_the_page_on_your_openstack: Page {
        name: "docs/guides/real-openstack.md",
        // The servers of this cloud boot as guests.
        prepare: "ferrostack simulate --guests --clouds-file simulated.yaml &
            until [ -s simulated.yaml ]; do sleep 0.1; done
            sed -e 's/^  simulated:/  mycloud:/' simulated.yaml >clouds.yaml
            export KUBERNETES_VERSION=v1.34.2 OPENSTACK_DNS_NAMESERVERS=9.9.9.9
            export CONTROL_PLANE_MACHINE_COUNT=1 WORKER_MACHINE_COUNT=1\n",
        ports: true,
        prints: &["Cluster/demo: Available is True", "demo-control-plane-", "ACTIVE", "would delete 1 Cluster", "cluster demo is gone",
            "Nothing is found."],
    };
    commands_of_the_first_cluster: Page {
        name: "docs/get-started/first-cluster.md",
        prepare: "",
        ports: false,
        prints: &[
            "Cluster/demo",
            "BootstrapConfig - KubeadmConfig/demo-control-plane-",
            "Cluster/demo is ready",
            "daemonset.apps/kube-proxy condition met",
            "deployment.apps/coredns condition met",
            "FailedScheduling",
            "Service default/web, port 8080: node demo-md-0-",
            "quota of instances: 4 of 4 used",
            "deleted by somebody else",
            "Server Version: v1.34.3",
            "Kubernetes control plane",
            "InfrastructureProvider",
            "OPENSTACK_EXTERNAL_NETWORK_ID",
            "cluster.cluster.x-k8s.io/capi-quickstart created",
            "cluster.cluster.x-k8s.io/capi-quickstart condition met",
            "node/capi-quickstart-control-plane-",
            "\"capi-quickstart\" deleted",
            "cluster demo is gone",
            "stopped; ",
        ],
    };
    commands_of_the_page_on_the_simulator: Page {
        name: "docs/project/simulator.md",
        prepare: "echo fail-with-body >.curlrc\n",
        ports: true,
        prints: &["nova-cmp1", "\"server_fault\"", "a has 192.0.2."],
    };
    commands_of_the_page_on_replacing_machines: Page {
        name: "docs/guides/rollouts.md",
        prepare: with_cluster!("export KUBECONFIG=~/.local/share/ferrostack/kubeconfig\n"),
        ports: false,
        prints: &["KubeadmControlPlane demo-control-plane: its machines are replaced", "MachineDeployment demo-md-0: paused",
            "MachineDeployment demo-md-0: resumed", "demo-md-0: goes back to the template of revision ",
            "MachineDeployment demo-md-0: rolled out", "REVISION  CURRENT  VERSION", "SERVER", "UPDATED"],
    };
    commands_of_the_page_on_recovery: Page {
        name: "docs/guides/recovery.md",
        prepare: with_cluster!("export KUBECONFIG=~/.local/share/ferrostack/kubeconfig
            NAME=demo-control-plane
            MACHINE=$(kubectl get machines -l cluster.x-k8s.io/control-plane -o name | cut -d/ -f2)\n"),
        ports: false,
        prints: &["etcd has lost its quorum: 1 of 3 voting members answers", "next: if the lost machines are gone for good, restart the etcd of Machine demo-control-plane-",
            "kubeadmcontrolplane.controlplane.cluster.x-k8s.io/demo-control-plane condition met"],
    };
    commands_of_the_page_on_templates: Page {
        name: "docs/guides/templates.md",
        prepare: with_cluster!("sed 's/^  simulated:/  mycloud:/' $OS_CLIENT_CONFIG_FILE >clouds.yaml
            unset OS_CLIENT_CONFIG_FILE
            export KUBERNETES_VERSION=v1.34.2 OPENSTACK_DNS_NAMESERVERS=9.9.9.9\n"),
        ports: false,
        prints: &["  - NAME   not set", "1 ConfigMap applied (server dry run)", "1 ConfigMap applied\n"],
    };
    commands_of_the_page_on_why: Page {
        name: "docs/guides/why.md",
        prepare: with_cluster!("export KUBECONFIG=~/.local/share/ferrostack/kubeconfig\n"),
        ports: false,
        prints: &["Cluster/demo is ready", "which has been failing for ", "next: raise the quota", "\"ready\": true",
            "LAST SEEN", "MachineDeployment/demo-md-0: Available is True", "Cloud-init", "2/2 ready"],
    };
}

/// Command that goes on beside the one before it, in a terminal of its own.
const BESIDE: &str =
    "ferrostack cloud-controller-manager --cloud-config cloud.conf --kubeconfig demo.kubeconfig";

/// Commands that go on until they are interrupted, and how to know that they have begun.
const SERVERS: [(&str, &str); 10] = [
    (
        "ferrostack up --cloud mycloud",
        "grep -q 'management API at' running.out",
    ),
    (BESIDE, "grep -q 'leading as' running.out"),
    ("ferrostack up", "grep -q 'Ready after' running.out"),
    (
        "ferrostack openstack up -f cloud.yaml",
        "grep -q '^ready after' running.out",
    ),
    (
        "ferrostack simulate --clouds-file clouds.yaml",
        "[ -s clouds.yaml ]",
    ),
    (
        "ferrostack simulate --clouds-file clouds.yaml --state-dir machines --guest-runner ./runner",
        "[ -s clouds.yaml ]",
    ),
    (
        "ferrostack cloud-controller-manager --cloud-config cloud.conf --kubeconfig admin.conf",
        "grep -q 'leading as' running.out",
    ),
    (
        "ferrostack cloud-controller-manager --cloud-config cloud.conf --cluster-cidr 10.244.0.0/16,fd00:244::/48",
        "grep -q 'leading as' running.out",
    ),
    (
        "ferrostack manager --kubeconfig FILE --leader-elect --webhook-addr 0.0.0.0:9443 --webhook-url https://ADDRESS:9443",
        "grep -q 'leading as' running.out",
    ),
    (
        "ferrostack manager --providers infrastructure --leader-elect",
        "grep -q 'leading as' running.out",
    ),
];

/// Commands that cannot be run here, each with the reason, and the script that runs it with the words it has there.
const ELSEWHERE: [(&str, &str, &str, &str); 6] = [
    (
        "kubectl apply --server-side --kustomize base",
        "it needs a cluster that has not these kinds",
        "tests/kubernetes/helm-install",
        "kustomize \"$work/base\"",
    ),
    (
        "ip netns exec guests ferrostack simulate guests --cloud admin --bind-range 198.51.100.0/24",
        "a network namespace with a name needs root, and its network a real cloud",
        "tests/openstack/end-to-end",
        "simulate guests --cloud admin",
    ),
    (
        "ferrostack up --cloud mine --install-ccm=registry.example.net/ferrostack:1",
        "it needs a data directory that is not in use, and a manifest for the cloud",
        "tests/suite/addons.rs",
        "--install-ccm=registry/ferrostack:1",
    ),
    (
        "ferrostack init --infrastructure openstack --image IMAGE",
        "it needs a core provider of another program",
        "tests/kubernetes/install",
        "init --infrastructure openstack",
    ),
    (
        "ferrostack upgrade plan --kubeconfig FILE",
        "it needs what `init` has installed",
        "tests/kubernetes/install",
        "upgrade plan",
    ),
    (
        "ferrostack upgrade apply --kubeconfig FILE --image IMAGE",
        "it needs what `init` has installed",
        "tests/kubernetes/install",
        "upgrade apply --image",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap()
}

/// The pages of docs/, but the records of decisions, by their paths from the root of the repository.
fn documentation() -> Vec<String> {
    let (mut pages, mut folders) = (Vec::new(), vec!["docs".to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().display());
            if entry.file_type().unwrap().is_dir() && name != "docs/adr" {
                folders.push(name);
            } else if name.ends_with(".md") {
                pages.push(name);
            }
        }
    }
    pages
}

/// The code blocks of a page, each with its language: fenced ones, and those that four blanks begin.
fn blocks(text: &str) -> Vec<(String, Vec<String>)> {
    let mut blocks: Vec<(String, Vec<String>)> = Vec::new();
    let mut fenced = false;
    let mut indented = false;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            fenced = !fenced;
            indented = false;
            if fenced {
                blocks.push((language.to_owned(), Vec::new()));
            }
            continue;
        }
        let code = match fenced {
            true => Some(line),
            false => line.strip_prefix("    "),
        };
        match (code, blocks.last_mut()) {
            (Some(code), Some((_, lines))) if fenced || indented => lines.push(code.to_owned()),
            (Some(code), _) => {
                blocks.push((String::new(), vec![code.to_owned()]));
                indented = true;
            }
            (None, _) => indented = indented && line.is_empty(),
        }
    }
    blocks
}

/// The commands of a block: its lines, of which those belong together that are within one pair of quotes or a document.
fn commands(lines: &[String]) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut end: Option<&str> = None;
    let mut open = false;
    for line in lines {
        // As `cargo run` does it.
        let line = line.replace("cargo run --release -- ", "ferrostack ");
        match commands.last_mut() {
            Some(last) if open || end.is_some() => last.push_str(&format!("\n{line}")),
            _ => commands.push(line.clone()),
        }
        if end == Some(line.as_str()) {
            end = None;
        } else if line.ends_with("<<'EOF'") {
            end = Some("EOF");
        }
        let last = bare(commands.last().map_or("", String::as_str));
        let quotes = last.matches('\'').count();
        open = end.is_none() && !last.contains("<<") && quotes % 2 == 1;
    }
    commands
}

/// Whether a command is one of the programs that pages are about.
fn is_tried(command: &str) -> bool {
    let start = r"(^|[|;&(]|\b(until|do|exec \S+))\s*([A-Z_]+=\S+\s+)*";
    let program = Regex::new(&format!(r"{start}(ferrostack|kubectl|openstack|curl)\s")).unwrap();
    program.is_match(bare(command))
}

/// Whether a command prepares others: variables, files, loops.
fn is_run(command: &str) -> bool {
    let others = ["tests/", "cargo ", "ip ", "FERROSTACK_"];
    !others.iter().any(|start| command.starts_with(start))
}

/// All commands of the blocks of `page` in which one is tried.
fn commands_of(page: &str) -> Vec<String> {
    blocks(&read(page))
        .into_iter()
        .filter(|(language, _)| ["", "sh"].contains(&language.as_str()))
        .map(|(_, lines)| commands(&lines))
        .filter(|commands| commands.iter().any(|command| is_tried(command)))
        .flatten()
        .collect()
}

fn elsewhere(command: &str) -> bool {
    ELSEWHERE.iter().any(|(known, ..)| *known == command)
}

/// A command without a comment at its end; nothing for a comment.
fn bare(command: &str) -> &str {
    if command.starts_with('#') {
        return "";
    }
    match command.split_once(" #") {
        Some((bare, _)) if !command.contains('\n') => bare.trim_end(),
        _ => command,
    }
}

/// The script of a page.
fn script(page: &Page) -> String {
    let mut script = String::from(
        "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\nrunning=\ntouch running.out\n\
         ends() { [ -z \"$running\" ] || { kill $running; wait $running; cat running.out; }; running=; }\n",
    );
    script.push_str(page.prepare);
    for command in commands_of(page.name) {
        let command = bare(&command);
        let server = SERVERS.iter().find(|(known, _)| *known == command);
        match server {
            Some((command, begun)) => {
                // Ctrl-C, and the next one; each ends without an error.
                let fresh = match begun.contains("clouds.yaml") {
                    true => "rm -f clouds.yaml\n",
                    false => "",
                };
                let before = match *command == BESIDE {
                    true => "",
                    false => "ends\n: >running.out\n",
                };
                script.push_str(&format!(
                    "{before}{fresh}{command} >>running.out &\nrunning=\"$running $!\"\n\
                     until {begun}; do kill -0 $running; sleep 0.2; done\n"
                ));
            }
            // Its status says that there is something to do.
            None if command.starts_with("ferrostack openstack plan") => {
                script.push_str(&format!("{command} || [ $? = 2 ]\n"));
            }
            None if is_run(command) && !elsewhere(command) => {
                script.push_str(&format!("{command}\n"));
            }
            None => {}
        }
    }
    script.push_str("ends\n");
    script
}

/// The beginning of a command that runs in a network and with processes of its own; `None` where the kernel does not allow it.
async fn isolation() -> Option<Vec<&'static str>> {
    let start = vec![
        "unshare",
        "--map-root-user",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
    ];
    let tried = Command::new(start[0])
        .args(&start[1..])
        .args(["ip", "link", "set", "lo", "up"])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .await;
    tried
        .is_ok_and(|output| output.status.success())
        .then_some(start)
}

async fn runs_as_it_is_written(page: Page) {
    let Some(kubectl) = kubectl() else { return };
    for program in ["/usr/bin/openstack", "/usr/bin/curl", "/usr/bin/jq"] {
        if !Path::new(program).exists() {
            skipped::because(format_args!("no {program}"));
            return;
        }
    }
    let isolation = isolation().await;
    if isolation.is_none() && page.ports {
        skipped::because(format_args!(
            "{} uses fixed ports, and no network namespace can be made",
            page.name
        ));
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let programs = home.join("bin");
    std::fs::create_dir(&programs).unwrap();
    for (name, program) in [
        ("ferrostack", Path::new(PROGRAM)),
        ("kubectl", kubectl.as_path()),
    ] {
        std::os::unix::fs::symlink(program.canonicalize().unwrap(), programs.join(name)).unwrap();
    }
    // The manifests that the page shows.
    for (language, lines) in blocks(&read(page.name)) {
        let kind = |kind: &str| lines.contains(&format!("kind: {kind}"));
        let name = match language == "yaml" {
            true if kind("OpenStack") => "cloud.yaml",
            true if kind("ClusterResourceSet") => "cni.yaml",
            true if kind("ClusterClass") => "class.yaml",
            true if kind("Cluster") => "cluster.yaml",
            _ => continue,
        };
        std::fs::write(home.join(name), lines.join("\n")).unwrap();
    }
    let mut start = isolation.clone().unwrap_or_default();
    start.extend(["bash", "-euo", "pipefail", "-c"]);
    // What is run, apart from what it prints.
    let trace = home.join("trace");
    let traced = format!("exec {{BASH_XTRACEFD}}>{}; set -x\n", trace.display());
    let loopback = match isolation {
        Some(_) => "ip link set lo up\n",
        None => "",
    };
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", programs.display());
    let output = Command::new(start[0])
        .args(&start[1..])
        .arg(format!("{traced}{loopback}{}", script(&page)))
        .env_clear()
        .env("HOME", home)
        .env("PATH", &path)
        .current_dir(home)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(LIMIT, output).await.unwrap().unwrap();
    let (out, err) = texts(&output);
    forms::check(&format!("the script of {}", page.name), &out);
    // While a script waits for an API server, kubectl logs that it is refused, in its form.
    let ours = err.lines().filter(|line| !line.contains("memcache.go"));
    let ours = ours.collect::<Vec<_>>().join("\n");
    forms::check(&format!("the script of {}", page.name), &ours);
    if isolation.is_none() {
        let mut down = Command::new(programs.join("ferrostack"));
        let _ = down.arg("down").env("HOME", home).output().await;
    }
    let trace = std::fs::read_to_string(&trace).unwrap_or_default();
    let end = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    };
    assert!(
        output.status.success(),
        "{}:\n{out}\n{}\n{}",
        page.name,
        end(&err),
        end(&trace)
    );
    for expected in page.prints {
        assert!(out.contains(expected), "{}: {expected}: {out}", page.name);
    }
}

#[test]
fn every_page_with_commands_is_run_and_what_is_not_run_here_is_run_elsewhere() {
    let mut names = documentation();
    names.push("README.md".to_owned());
    let with_commands: BTreeSet<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !commands_of(name).is_empty())
        .collect();
    let run: BTreeSet<&str> = pages().iter().map(|page| page.name).collect();
    assert_eq!(run, with_commands, "each page has a test");

    let all: Vec<String> = with_commands
        .iter()
        .flat_map(|page| commands_of(page))
        .collect();
    let tried = all.iter().filter(|command| is_tried(command)).count();
    assert!(tried > 60, "{tried} commands");
    for command in all.iter().filter(|command| is_tried(command)) {
        assert!(is_run(command) || elsewhere(command), "{command}");
    }
    for (server, _) in SERVERS {
        assert!(
            all.iter().any(|command| bare(command) == server),
            "{server}"
        );
    }
    for (command, why, script, words) in ELSEWHERE {
        assert!(all.iter().any(|known| known == command), "{command}");
        let text = read(script);
        assert!(text.contains(words), "{script} runs `{words}`, since {why}");
    }
}

/// Whether there is a file `directory/*/rest`.
fn is_in_a_crate(rest: &str) -> bool {
    let mut crates = std::fs::read_dir(root().join("crates")).unwrap();
    crates.any(|entry| entry.unwrap().path().join(rest).is_file())
}

/// Why what a command runs is not there; `None` if it is.
fn missing(command: &str) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let words: Vec<&str> = bare(command).split_whitespace().collect();
    let first = *words.first()?;
    if first.starts_with("tests/") {
        let file = std::fs::metadata(root().join(first)).ok();
        let runs =
            file.is_some_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
        return (!runs).then(|| format!("{first} is not a program"));
    }
    let after = |flag: &str| {
        let at = words.iter().position(|word| *word == flag)?;
        words.get(at + 1).copied()
    };
    if let Some(name) = after("--test").filter(|_| words.contains(&"cargo")) {
        let manifest = read("crates/ferrostack/Cargo.toml");
        let is_named = manifest.contains(&format!("name = \"{name}\""));
        let is_there = is_named || is_in_a_crate(&format!("tests/{name}.rs"));
        return (!is_there).then(|| format!("there is no test {name}"));
    }
    if let Some(name) = after("--example").filter(|_| words.contains(&"cargo")) {
        let is_there = is_in_a_crate(&format!("examples/{name}.rs"));
        return (!is_there).then(|| format!("there is no example {name}"));
    }
    None
}

#[test]
fn scripts_tests_and_examples_in_pages_are_there() {
    let mut seen = 0;
    for name in documentation() {
        let all = blocks(&read(&name));
        for command in all.iter().flat_map(|(_, lines)| commands(lines)) {
            assert_eq!(missing(&command), None, "{name}: {command}");
            seen += usize::from(!is_run(&command));
        }
    }
    assert!(seen > 20, "{seen} commands");
    for wrong in [
        "tests/nowhere up",
        "tests/suite",
        "cargo test --test nowhere",
        "cargo run --example nowhere",
    ] {
        assert!(missing(wrong).is_some(), "{wrong}");
    }
}

#[test]
fn commands_are_found_in_all_forms() {
    let page = "Text\n\n```\na\nferrostack up\n```\n\n    kubectl get a -d '{\n      b}'\n\n    # it's\n    cat > f <<'EOF'\n    it's\n    EOF\n    A=b openstack x # it's\n    ferrostack down\ntext\n";
    let found: Vec<Vec<String>> = blocks(page)
        .iter()
        .map(|(_, lines)| commands(lines))
        .collect();
    assert_eq!(found[0], ["a", "ferrostack up"]);
    assert_eq!(
        found[1],
        [
            "kubectl get a -d '{\n  b}'",
            "# it's",
            "cat > f <<'EOF'\nit's\nEOF",
            "A=b openstack x # it's",
            "ferrostack down"
        ]
    );
    for command in [
        "ferrostack up",
        "x=$(openstack server list)",
        "until ferrostack describe; do sleep 1; done",
        "OS_CLOUD=a openstack server list",
        "ferrostack generate manager | kubectl apply -f -",
        "ip netns exec guests ferrostack simulate",
    ] {
        assert!(is_tried(command), "{command}");
    }
    for command in [
        "tests/kubernetes/node up --api-server ferrostack",
        "# kubectl get",
        "cd kubectl ",
    ] {
        assert!(!is_tried(command), "{command}");
    }
}
