//! Examples and addresses of the documentation, which stand at the end of the help of every command.

use std::ffi::OsString;
use std::fmt::Write;

use clap::{Command, CommandFactory, FromArgMatches};

use super::Cli;
use super::groups::grouped;

/// Where the documentation is published: the `homepage` of the package.
const BASE: &str = concat!(env!("CARGO_PKG_HOMEPAGE"), "/docs/");

/// The end of the help of a command.
struct Entry {
    /// The words of the command, without the name of the program.
    command: &'static str,
    /// The page in docs/, with a section.
    page: &'static str,
    /// What an example does, and the example. The first one stands in the short help, too.
    examples: &'static [(&'static str, &'static str)],
}

const fn entry(
    command: &'static str,
    page: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> Entry {
    Entry {
        command,
        page,
        examples,
    }
}

const ENTRIES: [Entry; 58] = [
    entry(
        "",
        "simulated-cluster.md",
        &[("A cluster on a simulated OpenStack", "ferrostack up")],
    ),
    entry(
        "up",
        "simulated-cluster.md",
        &[
            (
                "A cluster on a simulated OpenStack, in the background",
                "ferrostack up --worker-machine-count 2 --detach",
            ),
            ("On a cloud of clouds.yaml", "ferrostack up --cloud mycloud"),
            (
                "Manifests of your own, in a script",
                "ferrostack up -f clusters/ --exit-when-ready --timeout 15m -o json",
            ),
        ],
    ),
    entry(
        "status",
        "simulated-cluster.md",
        &[("What runs, for a script", "ferrostack status -o json")],
    ),
    entry(
        "down",
        "simulated-cluster.md",
        &[(
            "Stop what runs on a data directory",
            "ferrostack down --data-dir ./data",
        )],
    ),
    entry(
        "apply",
        "simulated-cluster.md",
        &[
            (
                "All manifests of a directory, and one of a URL",
                "ferrostack apply -f clusters/ -f https://example.org/addon.yaml",
            ),
            (
                "Standard input",
                "ferrostack generate cluster two | ferrostack apply -f -",
            ),
        ],
    ),
    entry(
        "init",
        "manager.md",
        &[
            (
                "In the cluster of a kubeconfig, with two managers",
                "ferrostack init --kubeconfig admin.conf --image example.org/ferrostack:1 --wait-providers",
            ),
            (
                "The infrastructure provider alone, beside the Go controllers of Cluster API",
                "ferrostack init --infrastructure openstack --image example.org/ferrostack:1",
            ),
        ],
    ),
    entry(
        "init list-images",
        "manager.md",
        &[(
            "For a registry of your own",
            "ferrostack init list-images -o json",
        )],
    ),
    entry(
        "manager",
        "manager.md",
        &[
            (
                "One of several managers",
                "ferrostack manager --leader-elect",
            ),
            (
                "Beside a cluster that reaches this machine",
                "ferrostack manager --webhook-addr :9443 --webhook-url https://192.0.2.1:9443",
            ),
            (
                "The infrastructure provider alone",
                "ferrostack manager --providers infrastructure --leader-elect",
            ),
        ],
    ),
    entry(
        "cloud-controller-manager",
        "cloud-controller-manager.md",
        &[(
            "Outside of the cluster",
            "ferrostack cloud-controller-manager --cloud-config cloud.conf --kubeconfig admin.conf",
        )],
    ),
    entry(
        "cloud-conf",
        "cloud-controller-manager.md",
        &[(
            "Every error of a file",
            "ferrostack cloud-conf check cloud.conf",
        )],
    ),
    entry(
        "cloud-conf check",
        "cloud-controller-manager.md",
        &[(
            "Every error of a file",
            "ferrostack cloud-conf check cloud.conf",
        )],
    ),
    entry(
        "cloud-conf generate",
        "cloud-controller-manager.md",
        &[(
            "From clouds.yaml",
            "ferrostack cloud-conf generate --cloud mycloud > cloud.conf",
        )],
    ),
    entry(
        "openstack",
        "openstack.md",
        &[(
            "The configuration of every service",
            "ferrostack openstack config -f cloud.yaml",
        )],
    ),
    entry(
        "openstack up",
        "openstack.md",
        &[
            (
                "A simulated cloud, to rehearse a file of parameters",
                "ferrostack openstack up -f cloud.yaml --set network.mtu=9000",
            ),
            (
                "A cloud in a cluster",
                "ferrostack openstack up -f cloud.yaml --context mycluster --exit-when-ready",
            ),
        ],
    ),
    entry(
        "openstack status",
        "openstack.md",
        &[(
            "What each step waits for",
            "ferrostack openstack status --context mycluster",
        )],
    ),
    entry(
        "openstack why",
        "openstack.md#why-it-is-not-ready",
        &[
            (
                "Every first cause in a cloud",
                "ferrostack openstack why --context mycluster",
            ),
            (
                "What one program waits for in the end",
                "ferrostack openstack why nova-api --context mycluster",
            ),
        ],
    ),
    entry(
        "openstack clouds-yaml",
        "openstack.md#logging-in",
        &[(
            "Log in to a cloud in a cluster",
            "ferrostack openstack clouds-yaml --context mycluster > clouds.yaml",
        )],
    ),
    entry(
        "openstack apply",
        "openstack.md#the-plan",
        &[(
            "What was looked at, and nothing else",
            "ferrostack openstack apply --plan 3f2a0b1c9d8e7f60 -f cloud.yaml --context mycluster",
        )],
    ),
    entry(
        "openstack delete",
        "openstack.md",
        &[
            (
                "The cloud, not its data",
                "ferrostack openstack delete --context mycluster",
            ),
            (
                "Everything, with volumes, passwords and keys",
                "ferrostack openstack delete --context mycluster --purge-data",
            ),
        ],
    ),
    entry(
        "openstack config",
        "openstack.md",
        &[
            (
                "The configuration of every service",
                "ferrostack openstack config -f cloud.yaml",
            ),
            (
                "What an option takes, its value and the reason",
                "ferrostack openstack config nova --explain scheduler.workers",
            ),
        ],
    ),
    entry(
        "openstack plan",
        "openstack.md",
        &[
            (
                "What would be done in a cluster",
                "ferrostack openstack plan -f cloud.yaml --context mycluster",
            ),
            (
                "All that a cloud consists of",
                "ferrostack openstack plan -f cloud.yaml --empty",
            ),
        ],
    ),
    entry(
        "generate",
        "templates.md",
        &[(
            "A cluster on a cloud of clouds.yaml",
            "ferrostack generate cluster demo --cloud mycloud > demo.yaml",
        )],
    ),
    entry(
        "generate cluster",
        "templates.md",
        &[
            (
                "With values from the cloud",
                "ferrostack generate cluster demo --cloud mycloud > demo.yaml",
            ),
            (
                "The variables, and where their values come from",
                "ferrostack generate cluster demo --list-variables",
            ),
            (
                "From a template of cluster-api-provider-openstack",
                "ferrostack generate cluster demo --cloud mycloud --from cluster-template.yaml",
            ),
            (
                "From a template in the management cluster, to a file",
                "ferrostack generate cluster demo --from-config-map templates --write-to demo.yaml",
            ),
        ],
    ),
    entry(
        "generate yaml",
        "templates.md",
        &[
            (
                "The manifests of an addon",
                "ferrostack generate yaml --from https://example.org/addon.yaml",
            ),
            (
                "The variables of a template",
                "ferrostack generate yaml --from addon.yaml --list-variables -o json",
            ),
        ],
    ),
    entry(
        "generate manager",
        "manager.md",
        &[(
            "Prepare a cluster",
            "ferrostack generate manager | kubectl apply --server-side -f -",
        )],
    ),
    entry(
        "generate cloud-controller-manager",
        "cloud-controller-manager.md",
        &[(
            "With the credentials of clouds.yaml",
            "ferrostack generate cloud-controller-manager --cloud mycloud | kubectl apply --server-side -f -",
        )],
    ),
    entry(
        "convert",
        "templates.md#converting-manifests",
        &[
            (
                "Manifests in v1beta1 to v1beta2",
                "ferrostack convert old.yaml --output new.yaml",
            ),
            (
                "Standard input, and back",
                "ferrostack convert --to-version v1beta1",
            ),
        ],
    ),
    entry(
        "describe",
        "simulated-cluster.md",
        &[(
            "What a cluster waits for",
            "ferrostack describe cluster demo",
        )],
    ),
    entry(
        "describe cluster",
        "simulated-cluster.md",
        &[
            (
                "What a cluster waits for",
                "ferrostack describe cluster demo",
            ),
            (
                "All clusters of all namespaces",
                "ferrostack describe cluster -A",
            ),
            (
                "Every condition that is not true",
                "ferrostack describe cluster demo --show-conditions all!",
            ),
            (
                "The conditions of all machines, until interrupted",
                "ferrostack describe cluster demo --show-conditions Machine --watch",
            ),
            (
                "Everything there is, each machine in its own line",
                "ferrostack describe cluster demo --grouping=false --show-machinesets --show-templates --show-resourcesets --echo",
            ),
        ],
    ),
    entry(
        "why",
        "why.md",
        &[
            ("What a cluster waits for", "ferrostack why demo"),
            (
                "The last cause of one machine, for a script",
                "ferrostack why machine/demo-md-0-x7k2p -o json",
            ),
            (
                "The machine of a Node",
                "ferrostack why node demo-md-0-x7k2p",
            ),
        ],
    ),
    entry(
        "get",
        "simulated-cluster.md",
        &[("All clusters", "ferrostack get clusters -A")],
    ),
    entry(
        "get clusters",
        "simulated-cluster.md",
        &[
            (
                "All clusters, with their endpoints",
                "ferrostack get clusters -A -o wide",
            ),
            (
                "One cluster, at every change",
                "ferrostack get clusters demo --watch",
            ),
        ],
    ),
    entry(
        "get kubeconfig",
        "simulated-cluster.md",
        &[
            (
                "To a file",
                "ferrostack get kubeconfig demo > demo.kubeconfig",
            ),
            (
                "As a context of your kubeconfig",
                "ferrostack get kubeconfig demo --merge",
            ),
        ],
    ),
    entry(
        "delete",
        "manager.md#upgrading-and-deleting",
        &[
            ("A cluster", "ferrostack delete cluster demo --wait"),
            (
                "The managers that run in a cluster, and what they need",
                "ferrostack delete --all",
            ),
        ],
    ),
    entry(
        "upgrade",
        "manager.md#upgrading-and-deleting",
        &[("What would be installed", "ferrostack upgrade plan")],
    ),
    entry(
        "upgrade plan",
        "manager.md#upgrading-and-deleting",
        &[(
            "For a script",
            "ferrostack upgrade plan --kubeconfig admin.conf -o json",
        )],
    ),
    entry(
        "upgrade apply",
        "manager.md#upgrading-and-deleting",
        &[(
            "With managers that run in the cluster",
            "ferrostack upgrade apply --image example.org/ferrostack:2",
        )],
    ),
    entry(
        "config",
        "manager.md#upgrading-and-deleting",
        &[(
            "The providers of this program",
            "ferrostack config repositories",
        )],
    ),
    entry(
        "config repositories",
        "manager.md#upgrading-and-deleting",
        &[("For a script", "ferrostack config repositories -o json")],
    ),
    entry(
        "generate provider",
        "manager.md#upgrading-and-deleting",
        &[
            (
                "The infrastructure provider",
                "ferrostack generate provider --infrastructure openstack",
            ),
            (
                "What it is",
                "ferrostack generate provider --infrastructure openstack --describe",
            ),
        ],
    ),
    entry(
        "delete cluster",
        "simulated-cluster.md",
        &[(
            "Until all of it is gone",
            "ferrostack delete cluster demo --wait",
        )],
    ),
    entry(
        "env",
        "templates.md#values-from-the-cloud",
        &[(
            "For templates that another program reads",
            "eval \"$(ferrostack env --cloud mycloud)\"",
        )],
    ),
    entry(
        "rollout",
        "rollouts.md",
        &[(
            "Replace the machines of a MachineDeployment",
            "ferrostack rollout restart machinedeployment/demo-md-0",
        )],
    ),
    entry(
        "rollout restart",
        "rollouts.md",
        &[(
            "Replace all machines of a cluster",
            "ferrostack rollout restart kubeadmcontrolplane/demo-control-plane machinedeployment/demo-md-0",
        )],
    ),
    entry(
        "rollout pause",
        "rollouts.md",
        &[(
            "Replace no more machines",
            "ferrostack rollout pause machinedeployment/demo-md-0",
        )],
    ),
    entry(
        "rollout resume",
        "rollouts.md",
        &[(
            "Go on",
            "ferrostack rollout resume machinedeployment/demo-md-0",
        )],
    ),
    entry(
        "rollout undo",
        "rollouts.md",
        &[
            (
                "Back to the template before",
                "ferrostack rollout undo machinedeployment/demo-md-0",
            ),
            (
                "Back to an earlier one",
                "ferrostack rollout undo machinedeployment/demo-md-0 --to-revision 3",
            ),
        ],
    ),
    entry(
        "topology",
        "clusterclass.md",
        &[(
            "What a changed class would change",
            "ferrostack topology plan -f class.yaml",
        )],
    ),
    entry(
        "topology plan",
        "clusterclass.md",
        &[
            (
                "What a changed class would change",
                "ferrostack topology plan -f class.yaml",
            ),
            (
                "Of one cluster, for a script",
                "ferrostack topology plan -f class.yaml --cluster team -o json",
            ),
        ],
    ),
    entry(
        "move",
        "move.md",
        &[
            (
                "To the cluster of another kubeconfig",
                "ferrostack move --to-kubeconfig target.kubeconfig",
            ),
            (
                "What would move, and what stands in the way",
                "ferrostack move --to-kubeconfig target.kubeconfig --dry-run -o json",
            ),
            (
                "To files, and from there to another cluster",
                "ferrostack move --to-directory backup",
            ),
        ],
    ),
    entry(
        "admin",
        "apiserver.md#backups",
        &[("A backup", "ferrostack admin backup demo.backup")],
    ),
    entry(
        "admin backup",
        "apiserver.md#backups",
        &[("A backup", "ferrostack admin backup demo.backup")],
    ),
    entry(
        "admin restore",
        "apiserver.md#backups",
        &[(
            "Beside what there is",
            "ferrostack admin restore demo.backup --data-dir ./restored",
        )],
    ),
    entry(
        "simulate",
        "simulator.md",
        &[(
            "A cloud for the openstack client",
            "ferrostack simulate --clouds-file clouds.yaml",
        )],
    ),
    entry(
        "simulate guests",
        "real-openstack.md",
        &[(
            "Nodes on a cloud with fake hypervisors",
            "ferrostack simulate guests --cloud admin",
        )],
    ),
    entry(
        "completion",
        "simulated-cluster.md",
        &[("In this shell", "source <(ferrostack completion bash)")],
    ),
    entry(
        "version",
        "apiserver.md",
        &[("For a script", "ferrostack version -o json")],
    ),
    entry(
        "man",
        "simulated-cluster.md",
        &[("For this user", "ferrostack man ~/.local/share/man/man1")],
    ),
];

/// The command line, with groups, examples and addresses.
pub(crate) fn command() -> Command {
    documented(Cli::command(), "")
}

/// Parses arguments; help, versions and mistakes end the process.
pub(crate) fn parse(arguments: Vec<OsString>) -> Cli {
    let mut command = command();
    let mut matches = command.clone().get_matches_from(arguments);
    match Cli::from_arg_matches_mut(&mut matches) {
        Ok(cli) => cli,
        Err(error) => error.format(&mut command).exit(),
    }
}

fn documented(command: Command, path: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    let command = names.into_iter().fold(command, |command, name| {
        let below = format!("{path} {name}").trim_start().to_owned();
        command.mut_subcommand(name, |sub| documented(sub, &below))
    });
    let command = grouped(command);
    match ENTRIES.iter().find(|entry| entry.command == path) {
        Some(entry) => command
            .after_help(short(entry))
            .after_long_help(long(entry)),
        None => command,
    }
}

fn short(entry: &Entry) -> String {
    let example = entry.examples.first().map_or("", |(_, example)| example);
    let command = format!("ferrostack {}", entry.command);
    format!(
        "Example: {example}\nMore options and examples: {} --help",
        command.trim_end()
    )
}

fn long(entry: &Entry) -> String {
    let mut text = String::from("Examples:\n");
    for (what, example) in entry.examples {
        let _ = writeln!(text, "  # {what}\n  {example}");
    }
    let _ = write!(text, "\nDocumentation: {BASE}{}", entry.page);
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// Every command with its path, groups of commands too.
    fn all(command: &Command, path: &str, into: &mut Vec<(String, Command)>) {
        into.push((path.to_owned(), command.clone()));
        for below in command.get_subcommands() {
            let path = format!("{path} {}", below.get_name());
            all(below, path.trim_start(), into);
        }
    }

    fn commands() -> Vec<(String, Command)> {
        let mut found = Vec::new();
        all(&command(), "", &mut found);
        found
    }

    #[test]
    fn every_help_has_examples_that_can_be_parsed_and_the_address_of_a_page() {
        for (path, mut command) in commands() {
            let entries = ENTRIES.iter().filter(|entry| entry.command == path).count();
            assert_eq!(entries, 1, "`{path}`");
            let (short, long) = (
                command.render_help().to_string(),
                command.render_long_help().to_string(),
            );
            assert!(short.contains("Example: "), "{path}: {short}");
            assert!(long.contains("Examples:\n  # "), "{path}: {long}");
            assert!(long.contains("\nDocumentation: https://"), "{path}: {long}");
            for text in [&short, &long] {
                assert!(
                    !text.contains("docs/adr") && !text.contains("(docs/"),
                    "{text}"
                );
            }
        }
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
        for entry in &ENTRIES {
            let (page, section) = entry.page.split_once('#').unwrap_or((entry.page, ""));
            let text = std::fs::read_to_string(format!("{docs}{page}")).unwrap();
            let heading = |line: &str| {
                let title = line.trim_start_matches('#').trim().to_lowercase();
                line.starts_with('#') && title.replace(' ', "-") == section
            };
            assert!(
                section.is_empty() || text.lines().any(heading),
                "{}",
                entry.page
            );
            for (_, line) in entry.examples {
                let plain = line.trim_start_matches("source <(").trim_end_matches(')');
                for part in plain.split('|').map(str::trim) {
                    let part = part.split(" > ").next().unwrap();
                    if part.starts_with("ferrostack ") {
                        let parsed = Cli::try_parse_from(part.split_whitespace());
                        parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
                    }
                }
            }
        }
    }

    #[test]
    fn options_stand_in_groups_and_the_short_help_is_shorter() {
        for (path, mut command) in commands() {
            if command.has_subcommands() && path != "simulate" {
                continue;
            }
            let headings: std::collections::BTreeSet<_> = command
                .get_arguments()
                .filter(|arg| !arg.is_positional() && !arg.is_hide_set())
                .filter_map(|arg| arg.get_help_heading())
                .collect();
            let ungrouped: Vec<_> = command
                .get_arguments()
                .filter(|arg| !arg.is_positional() && !arg.is_hide_set())
                .filter(|arg| arg.get_help_heading().is_none())
                .map(|arg| arg.get_id().to_string())
                .filter(|id| id != "help" && id != "version")
                .collect();
            assert!(ungrouped.len() < 4, "{path}: {ungrouped:?}");
            let options = command
                .get_arguments()
                .filter(|arg| !arg.is_hide_set())
                .count();
            assert!(options < 6 || headings.len() >= 2, "{path}: {headings:?}");
            let lines = |text: String| text.lines().count();
            let short = lines(command.render_help().to_string());
            let long = lines(command.render_long_help().to_string());
            assert!(
                short < long && short <= 60,
                "{path}: {short} of {long} lines"
            );
        }
    }

    #[test]
    fn whatever_reads_a_kubeconfig_takes_its_context_by_the_name_in_clusterctl_too() {
        let mut seen = 0;
        for (path, command) in commands() {
            let named = |id: &str| command.get_arguments().find(|arg| arg.get_id() == id);
            if named("kubeconfig").is_none() {
                continue;
            }
            let context = named("context").unwrap_or_else(|| panic!("{path} has no --context"));
            let aliases = context.get_all_aliases().unwrap_or_default();
            assert!(aliases.contains(&"kubeconfig-context"), "{path}");
            seen += 1;
        }
        assert!(seen > 15, "{seen}");
    }

    #[test]
    fn the_flags_are_consistent() {
        command().debug_assert();
    }
}
