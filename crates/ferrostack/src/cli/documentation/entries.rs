//! Examples and pages of the documentation, command by command.

mod machines;
mod openstack;

/// End of the help of a command.
pub(super) struct Entry {
    /// Words of the command, without the name of the program.
    pub(super) command: &'static str,
    /// Page in docs/, with a section.
    pub(super) page: &'static str,
    /// Purpose of an example, and the example. The short help has the first one, too.
    pub(super) examples: &'static [(&'static str, &'static str)],
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

/// Each [`Entry`] of all commands.
pub(super) fn all() -> impl Iterator<Item = &'static Entry> {
    ENTRIES
        .iter()
        .chain(&machines::ENTRIES)
        .chain(&openstack::ENTRIES)
}

const ENTRIES: [Entry; 66] = [
    entry(
        "",
        "README.md",
        &[("Create a cluster on a simulated OpenStack", "ferrostack up")],
    ),
    entry(
        "up",
        "first-cluster.md",
        &[
            (
                "Create a cluster on a simulated OpenStack, in the background",
                "ferrostack up --worker-machine-count 2 --detach",
            ),
            (
                "Create a cluster on a cloud of clouds.yaml",
                "ferrostack up --cloud mycloud",
            ),
            (
                "Create the clusters of your own manifests, in a script",
                "ferrostack up -f clusters/ --exit-when-ready --timeout 15m -o json",
            ),
        ],
    ),
    entry(
        "status",
        "first-cluster.md",
        &[(
            "Show what is running, for a script",
            "ferrostack status -o json",
        )],
    ),
    entry(
        "down",
        "first-cluster.md",
        &[(
            "Stop the `up` of a data directory",
            "ferrostack down --data-dir ./data",
        )],
    ),
    entry(
        "apply",
        "first-cluster.md",
        &[
            (
                "Apply all manifests of a directory, and one from a URL",
                "ferrostack apply -f clusters/ -f https://example.org/addon.yaml",
            ),
            (
                "Apply manifests from standard input",
                "ferrostack generate cluster two | ferrostack apply -f -",
            ),
            (
                "Show what would change",
                "ferrostack apply -f clusters/ --diff",
            ),
        ],
    ),
    entry(
        "wait",
        "first-cluster.md",
        &[
            (
                "Wait until a cluster is available",
                "ferrostack wait cluster/demo --for condition=Available --timeout 20m",
            ),
            (
                "Wait until a machine is gone",
                "ferrostack wait machine/demo-md-0-x --for delete",
            ),
        ],
    ),
    entry(
        "events",
        "why.md",
        &[
            ("List the events of all objects", "ferrostack events"),
            (
                "Follow the warnings about a machine",
                "ferrostack events machine/demo-md-0-x --types Warning --watch",
            ),
        ],
    ),
    entry(
        "logs",
        "why.md",
        &[
            (
                "Follow the log of an `up` in the background",
                "ferrostack logs --follow",
            ),
            (
                "Print the last lines of the console of a machine's server",
                "ferrostack logs machine/demo-md-0-x --tail 50",
            ),
        ],
    ),
    entry(
        "init",
        "manager.md",
        &[
            (
                "Install everything in the cluster of a kubeconfig, with two managers",
                "ferrostack init --kubeconfig admin.conf --image example.org/ferrostack:1 --wait-providers",
            ),
            (
                "Install only the infrastructure provider, beside the Go controllers of Cluster API",
                "ferrostack init --infrastructure openstack --image example.org/ferrostack:1",
            ),
        ],
    ),
    entry(
        "init list-images",
        "manager.md",
        &[(
            "List the images for a registry of your own",
            "ferrostack init list-images -o json",
        )],
    ),
    entry(
        "manager",
        "manager.md",
        &[
            (
                "Run one of several managers",
                "ferrostack manager --leader-elect",
            ),
            (
                "Run outside of the cluster, on a machine that the cluster reaches",
                "ferrostack manager --webhook-addr :9443 --webhook-url https://192.0.2.1:9443",
            ),
            (
                "Run only the infrastructure provider",
                "ferrostack manager --providers infrastructure --leader-elect",
            ),
        ],
    ),
    entry(
        "cloud-controller-manager",
        "cloud-controller-manager.md",
        &[(
            "Run outside of the cluster",
            "ferrostack cloud-controller-manager --cloud-config cloud.conf --kubeconfig admin.conf",
        )],
    ),
    entry(
        "client-keystone-auth",
        "keystone-login.md",
        &[
            (
                "Print a token for an entry of clouds.yaml, and keep it",
                "ferrostack client-keystone-auth --os-cloud mycloud --cache",
            ),
            (
                "Let kubectl do so",
                "ferrostack generate kubeconfig --keystone --os-cloud mycloud --cache",
            ),
        ],
    ),
    entry(
        "cinder-csi-plugin",
        "cinder-csi.md",
        &[
            (
                "Run the controller service, whose sidecars are on the same socket",
                "ferrostack cinder-csi-plugin --endpoint unix:///csi/csi.sock --cloud-config cloud.conf --provide-node-service=false",
            ),
            (
                "Run the node service, which needs no credentials",
                "ferrostack cinder-csi-plugin --endpoint unix:///csi/csi.sock --provide-controller-service=false",
            ),
        ],
    ),
    entry(
        "csi",
        "cinder-csi.md#commands",
        &[(
            "Print what is wrong with the storage of a cluster",
            "ferrostack csi check --cloud-config cloud.conf --kubeconfig admin.conf",
        )],
    ),
    entry(
        "csi check",
        "cinder-csi.md#csi-check",
        &[(
            "Print what is wrong, for a script",
            "ferrostack csi check --cloud-config cloud.conf --kubeconfig admin.conf -o json",
        )],
    ),
    entry(
        "csi orphans",
        "cinder-csi.md#csi-orphans",
        &[
            (
                "List what nothing in the cluster names",
                "ferrostack csi orphans --cloud-config cloud.conf --kubeconfig admin.conf --cluster kubernetes",
            ),
            (
                "Delete of it what is older than a week, in a script",
                "ferrostack csi orphans --cloud-config cloud.conf --kubeconfig admin.conf --cluster kubernetes --older-than 168h --delete --yes",
            ),
        ],
    ),
    entry(
        "k8s-keystone-auth",
        "keystone-authentication.md",
        &[(
            "Run beside an API server, with files alone",
            "ferrostack k8s-keystone-auth --tls-cert-file tls.crt --tls-private-key-file tls.key --keystone-url https://keystone.example.org:5000 --keystone-policy-file policies.json",
        )],
    ),
    entry(
        "keystone-auth",
        "keystone-authentication.md#policies",
        &[(
            "See why a policy does not permit a request",
            "ferrostack keystone-auth explain --policy policies.json --role member --project demo --verb get --resource pods/exec -n default",
        )],
    ),
    entry(
        "keystone-auth explain",
        "keystone-authentication.md#policies",
        &[(
            "See why a policy does not permit a request",
            "ferrostack keystone-auth explain --policy policies.json --role member --project demo --verb get --resource pods/exec -n default",
        )],
    ),
    entry(
        "keystone-auth check",
        "keystone-authentication.md#policies",
        &[(
            "Check a policy and the flags of the API server",
            "ferrostack keystone-auth check --policy policies.json --apiserver /etc/kubernetes/manifests/kube-apiserver.yaml",
        )],
    ),
    entry(
        "cloud-conf",
        "cloud-controller-manager.md",
        &[(
            "Print every error of a file",
            "ferrostack cloud-conf check cloud.conf",
        )],
    ),
    entry(
        "cloud-conf check",
        "cloud-controller-manager.md",
        &[(
            "Print every error of a file",
            "ferrostack cloud-conf check cloud.conf",
        )],
    ),
    entry(
        "cloud-conf generate",
        "cloud-controller-manager.md",
        &[(
            "Use an entry of clouds.yaml",
            "ferrostack cloud-conf generate --cloud mycloud > cloud.conf",
        )],
    ),
    entry(
        "generate",
        "templates.md",
        &[(
            "Generate a cluster on a cloud of clouds.yaml",
            "ferrostack generate cluster demo --cloud mycloud > demo.yaml",
        )],
    ),
    entry(
        "generate cluster",
        "templates.md",
        &[
            (
                "Fill in values from a cloud",
                "ferrostack generate cluster demo --cloud mycloud > demo.yaml",
            ),
            (
                "List the variables, and where their values come from",
                "ferrostack generate cluster demo --list-variables",
            ),
            (
                "Use a template of cluster-api-provider-openstack",
                "ferrostack generate cluster demo --cloud mycloud --from cluster-template.yaml",
            ),
            (
                "Use a template in the management cluster, and write to a file",
                "ferrostack generate cluster demo --from-config-map templates --write-to demo.yaml",
            ),
        ],
    ),
    entry(
        "generate yaml",
        "templates.md",
        &[
            (
                "Substitute the variables in the manifests of an addon",
                "ferrostack generate yaml --from https://example.org/addon.yaml",
            ),
            (
                "List the variables of a template",
                "ferrostack generate yaml --from addon.yaml --list-variables -o json",
            ),
        ],
    ),
    entry(
        "generate manager",
        "manager.md",
        &[
            (
                "Prepare a cluster for a manager",
                "ferrostack generate manager | kubectl apply --server-side -f -",
            ),
            (
                "Write a base of kustomize",
                "ferrostack generate manager --image registry.example.net/ferrostack:0.1.0 --kustomize base",
            ),
        ],
    ),
    entry(
        "generate monitoring",
        "manager.md#monitoring",
        &[(
            "Have the managers watched by the Prometheus of the cluster",
            "ferrostack generate monitoring | kubectl apply --server-side -f -",
        )],
    ),
    entry(
        "generate chart",
        "helm.md",
        &[("Write the chart", "ferrostack generate chart chart")],
    ),
    entry(
        "generate cloud-controller-manager",
        "cloud-controller-manager.md",
        &[(
            "Use the credentials of clouds.yaml",
            "ferrostack generate cloud-controller-manager --cloud mycloud | kubectl apply --server-side -f -",
        )],
    ),
    entry(
        "generate cinder-csi-plugin",
        "cinder-csi.md",
        &[
            (
                "Use the credentials of clouds.yaml",
                "ferrostack generate cinder-csi-plugin --cloud mycloud | kubectl apply --server-side -f -",
            ),
            (
                "Keep the values of the Go driver's chart",
                "ferrostack generate cinder-csi-plugin --values values.yaml | kubectl apply --server-side -f -",
            ),
        ],
    ),
    entry(
        "generate kubeconfig",
        "keystone-login.md#the-kubeconfig",
        &[
            (
                "Log in with an entry of clouds.yaml",
                "ferrostack generate kubeconfig --keystone --os-cloud mycloud --cache",
            ),
            (
                "Write a whole kubeconfig, whose cluster names its Keystone",
                "ferrostack generate kubeconfig --keystone --server https://192.0.2.1:6443 --certificate-authority ca.crt --keystone-url https://keystone.example.com/v3 --write-to kubeconfig",
            ),
        ],
    ),
    entry(
        "generate keystone-auth",
        "keystone-authentication.md",
        &[(
            "Run the webhook beside an API server",
            "ferrostack generate keystone-auth --keystone-url https://keystone.example.org:5000 --static-pod",
        )],
    ),
    entry(
        "convert",
        "templates.md#converting-manifests",
        &[
            (
                "Convert manifests from v1beta1 to v1beta2",
                "ferrostack convert old.yaml --output new.yaml",
            ),
            (
                "Convert standard input back to v1beta1",
                "ferrostack convert --to v1beta1",
            ),
            (
                "Show what would change in the manifests of a directory",
                "ferrostack convert -f manifests --diff",
            ),
        ],
    ),
    entry(
        "describe",
        "first-cluster.md",
        &[(
            "Show what a cluster is waiting for",
            "ferrostack describe cluster demo",
        )],
    ),
    entry(
        "describe cluster",
        "first-cluster.md",
        &[
            (
                "Show what a cluster is waiting for",
                "ferrostack describe cluster demo",
            ),
            (
                "Show all clusters of all namespaces",
                "ferrostack describe cluster -A",
            ),
            (
                "Show every condition that reports a problem",
                "ferrostack describe cluster demo --show-conditions all!",
            ),
            (
                "Show the conditions of all machines, and every change",
                "ferrostack describe cluster demo --show-conditions Machine --watch",
            ),
            (
                "Show every object, with each machine in its own line",
                "ferrostack describe cluster demo --grouping=false --show-machinesets --show-templates --show-resourcesets --echo",
            ),
        ],
    ),
    entry(
        "why",
        "why.md",
        &[
            (
                "Explain what a cluster is waiting for",
                "ferrostack why demo",
            ),
            (
                "Print the root cause for one machine, for a script",
                "ferrostack why machine/demo-md-0-x7k2p -o json",
            ),
            (
                "Explain the machine of a Node",
                "ferrostack why node demo-md-0-x7k2p",
            ),
        ],
    ),
    entry(
        "get",
        "first-cluster.md",
        &[("List all clusters", "ferrostack get clusters -A")],
    ),
    entry(
        "get clusters",
        "first-cluster.md",
        &[
            (
                "List all clusters, with their endpoints",
                "ferrostack get clusters -A -o wide",
            ),
            ("Watch one cluster", "ferrostack get clusters demo --watch"),
        ],
    ),
    entry(
        "get kubeconfig",
        "first-cluster.md",
        &[
            (
                "Write the kubeconfig to a file",
                "ferrostack get kubeconfig demo --write-to demo.kubeconfig",
            ),
            (
                "Add a context to your kubeconfig",
                "ferrostack get kubeconfig demo --merge",
            ),
        ],
    ),
    entry(
        "delete",
        "manager.md#upgrading-and-deleting",
        &[
            ("Delete a cluster", "ferrostack delete cluster demo --wait"),
            (
                "Delete the managers that run in a cluster, and what they need",
                "ferrostack delete --all",
            ),
        ],
    ),
    entry(
        "upgrade",
        "manager.md#upgrading-and-deleting",
        &[("Show what would be installed", "ferrostack upgrade plan")],
    ),
    entry(
        "upgrade plan",
        "manager.md#upgrading-and-deleting",
        &[(
            "Show what would be installed, for a script",
            "ferrostack upgrade plan --kubeconfig admin.conf -o json",
        )],
    ),
    entry(
        "upgrade apply",
        "manager.md#upgrading-and-deleting",
        &[(
            "Upgrade with managers that run in the cluster",
            "ferrostack upgrade apply --image example.org/ferrostack:2",
        )],
    ),
    entry(
        "config",
        "manager.md#upgrading-and-deleting",
        &[(
            "List the providers of this program",
            "ferrostack config repositories",
        )],
    ),
    entry(
        "config repositories",
        "manager.md#upgrading-and-deleting",
        &[(
            "List the providers, for a script",
            "ferrostack config repositories -o json",
        )],
    ),
    entry(
        "generate provider",
        "manager.md#upgrading-and-deleting",
        &[
            (
                "Print the manifests of the infrastructure provider",
                "ferrostack generate provider --infrastructure openstack",
            ),
            (
                "Describe the infrastructure provider",
                "ferrostack generate provider --infrastructure openstack --describe",
            ),
        ],
    ),
    entry(
        "generate repository",
        "clusterctl.md#installing-with-clusterctl",
        &[
            (
                "Write the files of all providers",
                "ferrostack generate repository releases",
            ),
            (
                "Write those of the infrastructure provider, with an image in a registry of yours",
                "ferrostack generate repository releases --infrastructure openstack --image registry.example.net/ferrostack:0.1.0",
            ),
        ],
    ),
    entry(
        "delete cluster",
        "leftovers.md",
        &[
            (
                "Wait until everything is deleted",
                "ferrostack delete cluster demo --wait",
            ),
            (
                "Show what would be deleted, with what Services and claims created",
                "ferrostack delete cluster demo --with services,volumes --dry-run",
            ),
        ],
    ),
    entry(
        "plan",
        "plan.md",
        &[
            (
                "Show what a manifest would create in the cloud, and whether the quota has room for it",
                "ferrostack plan -f cluster.yaml",
            ),
            (
                "Show what would be written for a cluster, for a script",
                "ferrostack plan cluster demo -o json",
            ),
        ],
    ),
    entry(
        "plan cluster",
        "plan.md",
        &[(
            "Show what would be written for a cluster as it is stored",
            "ferrostack plan cluster demo",
        )],
    ),
    entry(
        "adopt",
        "adopt.md",
        &[(
            "Show what would be taken over of a cluster of cluster-api-provider-openstack",
            "ferrostack adopt cluster demo --dry-run",
        )],
    ),
    entry(
        "adopt cluster",
        "adopt.md",
        &[
            (
                "Show what would be marked, and why",
                "ferrostack adopt cluster demo --dry-run",
            ),
            ("Take a cluster over", "ferrostack adopt cluster demo"),
        ],
    ),
    entry(
        "audit",
        "leftovers.md#audit",
        &[
            (
                "Find what is in a cloud and has no owner any more, for a script",
                "ferrostack audit --cloud mycloud -o json",
            ),
            (
                "Delete it, where no other management cluster uses the project",
                "ferrostack audit --cloud mycloud --alone --delete --yes",
            ),
        ],
    ),
    entry(
        "env",
        "templates.md#values-from-the-cloud",
        &[(
            "Set the variables for templates that another program reads",
            "eval \"$(ferrostack env --cloud mycloud)\"",
        )],
    ),
    entry(
        "move",
        "move.md",
        &[
            (
                "Move to the cluster of another kubeconfig",
                "ferrostack move --to-kubeconfig target.kubeconfig",
            ),
            (
                "Show what would be moved, and what prevents the move",
                "ferrostack move --to-kubeconfig target.kubeconfig --dry-run -o json",
            ),
            (
                "Write clusters to files",
                "ferrostack move --to-directory backup",
            ),
        ],
    ),
    entry(
        "admin",
        "apiserver.md#backups",
        &[(
            "Back up the data directory",
            "ferrostack admin backup demo.backup",
        )],
    ),
    entry(
        "admin backup",
        "apiserver.md#backups",
        &[(
            "Back up the data directory",
            "ferrostack admin backup demo.backup",
        )],
    ),
    entry(
        "admin restore",
        "apiserver.md#backups",
        &[(
            "Restore into another data directory",
            "ferrostack admin restore demo.backup --data-dir ./restored",
        )],
    ),
    entry(
        "simulate",
        "simulator.md",
        &[(
            "Run a cloud for the openstack client",
            "ferrostack simulate --clouds-file clouds.yaml",
        )],
    ),
    entry(
        "simulate guests",
        "test-cloud.md",
        &[(
            "Boot nodes on a cloud with fake hypervisors",
            "ferrostack simulate guests --cloud admin",
        )],
    ),
    entry(
        "completion",
        "install.md#completion",
        &[(
            "Load completions in this shell",
            "source <(ferrostack completion bash)",
        )],
    ),
    entry(
        "version",
        "apiserver.md",
        &[(
            "Print the versions, for a script",
            "ferrostack version -o json",
        )],
    ),
    entry(
        "docs",
        "README.md",
        &[
            ("Read the page about templates", "ferrostack docs templates"),
            ("Find a word in all pages", "ferrostack docs --search quota"),
        ],
    ),
    entry(
        "man",
        "install.md",
        &[(
            "Install the manual pages for this user",
            "ferrostack man ~/.local/share/man/man1",
        )],
    ),
];
