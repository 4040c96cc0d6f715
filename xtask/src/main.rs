//! Project tasks: `cargo xtask <task>`.
//!
//! ```text
//!   check [--since REF]      what has to hold before a commit: format, lints, generated files, rules, tests of what changed
//!   real-systems [--plan]    the steps on real systems that are due, and their record
//!   book [DIR]               the documentation as a book in HTML, by default to target/book
//!   codegen [--check]        CRDs under config/, and the messages of crates/csi-spec
//!   csi-side-by-side         one script played to the Go Cinder CSI driver and to ours
//!   storage-tests REPORT...  the storage tests of Kubernetes with the Cinder CSI driver, as a table
//!   keystone-side-by-side    one script and generated policies played to the Go webhook of Keystone and to ours
//!   dist [--target TRIPLE]   archives, packages and images of a release, with bills of materials and sums, to target/dist
//!   image [--binary FILE]    the image of a release alone
//!   man [DIR]                manual pages, by default to target/man/man1
//!   size [--binary FILE]     holds the size of the release binary to docs/project/benchmarks.md
//!   notices [--check]        licences and notices of what is in the program and not of the project
//!   test                     every test, with a test program for each processor at a time
//!   tidy                     rules that lints do not cover, with the invariants of ARCHITECTURE.md
//!   words                    pronouns and links in doc comments, per crate, which `tidy` holds to a list
//!   bench apiserver [--json] the embedded API server and kube-apiserver with etcd
//!   bench ccm [--json]       requests, time and memory of the cloud controller manager
//!   bench clusters [-o json] what each further cluster of one `ferrostack up` costs
//!   bench csi [--json]       the Cinder CSI driver and the Go one: requests, time and memory
//!   bench deployer [--json]  a cloud on Kubernetes: `ferrostack openstack up`
//!   bench keystone-auth [--json] the webhook of Keystone and the exec plugin, and the Go ones: rates, time, memory
//!   bench main-job [--json]  time, memory and requests of `ferrostack up`
//!   bench nodes [--json]     a real Kubernetes, and clusters of real machines
//!   bench scale [--json]     many clusters of several shapes: time, memory, what they cost at rest
//!   bench simulator [--json] size and speed of the simulated cloud
//!   bench weight [--json]    what a release build costs, and what the binary consists of, by crate
//! ```

mod bench;
mod book;
mod check;
mod cluster;
mod codegen;
mod csi;
mod differences;
mod dist;
mod executables;
mod https;
mod invariants;
mod keystone;
mod linked;
mod lints;
mod man;
mod memory;
mod metrics;
mod notices;
mod protos;
mod real_systems;
mod simulated;
mod size;
mod stopwatch;
mod syntax;
mod test;
mod tidy;
mod versions;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "xtask", about = "Tasks of the project")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check what changed: format, clippy, generated files, the rules of `tidy`, and tests.
    ///
    /// The first failure ends the check and prints the command to repeat the step. All tests of a changed crate run,
    /// and the unit tests of each crate that uses a changed one. Of the scenarios of the suite (tests/suite) the
    /// changed ones run, the commands of pages after a change of a page or script, and the main job after a change of
    /// the crate ferrostack: the whole suite would take too long for a check. `.ci/run` runs every test; `--full` runs
    /// every test of all affected crates.
    Check(check::Arguments),
    /// Run the steps on real systems that are due (.ci/real-systems.yaml), and record the passes in
    /// docs/project/real-systems.md.
    RealSystems(real_systems::Arguments),
    /// Write the generated files, or check that they are up to date.
    Codegen {
        /// Change nothing; fail if a file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Write the documentation as a book in HTML, with search.
    Book {
        /// Directory for the output.
        #[arg(default_value = "target/book")]
        directory: PathBuf,
    },
    /// Play one script to the Go Cinder CSI driver and to ours, and compare answers and remaining objects. Needs root.
    CsiSideBySide(csi::side_by_side::Arguments),
    /// Show results of the storage tests of Kubernetes, or write the table to docs/project/runs/csi-storage-tests.md.
    StorageTests(csi::storage_tests::Arguments),
    /// Play one script and generated policies to the Go webhook of Keystone and to ours, and compare the answers.
    KeystoneSideBySide(keystone::side_by_side::Arguments),
    /// Build a release: for each target an archive, a package for Debian and an image, with bills of materials; the
    /// files for clusterctl; and the checksums of all.
    Dist(dist::Arguments),
    /// Build images alone: archives in the layout of OCI, without a daemon and without a base image.
    Image(dist::Arguments),
    /// Write the manual pages of `ferrostack`.
    Man {
        /// Directory for the output.
        #[arg(default_value = "target/man/man1")]
        directory: PathBuf,
    },
    /// Write the licences and notices of the crates in the program, and of bundled code.
    Notices {
        /// Write nothing; fail if a crate lacks the text of its licence.
        #[arg(long)]
        check: bool,
        /// For the program of this target [default: this machine's].
        #[arg(long, value_name = "TRIPLE")]
        target: Option<String>,
        /// File for the output.
        #[arg(default_value = "target/dist/THIRD_PARTY_NOTICES")]
        file: PathBuf,
    },
    /// Run every test of the workspace, as `cargo test --workspace` does, with a test program for each processor at a time.
    Test(test::Arguments),
    /// Check rules that lints do not cover: file lengths, module names, the invariants of ARCHITECTURE.md.
    Tidy,
    /// Count pronouns and links in the doc comments of each crate, or list the lines of one crate that begin with a
    /// relative clause.
    Words {
        /// Crate for the list of lines.
        #[arg(value_name = "CRATE")]
        krate: Option<String>,
        /// Write improved counts to xtask/words.txt.
        #[arg(long, conflicts_with = "krate")]
        lower: bool,
    },
    /// Hold the size of the release binary to the last entry of docs/project/benchmarks.md.
    Size {
        /// Judge this program instead of the built release one.
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
    },
    /// Measure.
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// The embedded API server and kube-apiserver with etcd: speed, start, memory.
    Apiserver(bench::apiserver::Arguments),
    /// The cloud controller manager with many Services and nodes: requests, time, memory.
    Ccm(bench::ccm::Arguments),
    /// `ferrostack up` of many clusters with 1 control plane machine each: cost of a further cluster.
    Clusters(bench::clusters::Arguments),
    /// Converts 1000 objects of the oldest version of the OpenStack kinds to the stored one, and back.
    Conversions {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// The Cinder CSI driver, and the Go one beside it: requests, time, memory. Needs root.
    Csi(bench::csi::Arguments),
    /// `ferrostack openstack up`, simulated and on a real node: time, memory, requests, a changed option.
    Deployer(bench::deployer::Arguments),
    /// The webhook of Keystone and the exec plugin, and the Go ones beside them: rates, time, memory.
    KeystoneAuth(bench::keystone_auth::Arguments),
    /// `ferrostack up` of one cluster with 3 control plane and 3 worker machines.
    MainJob {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        /// Measure this program instead of building the release one.
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        /// Leave out the requests of idle minutes, which take a quarter of an hour.
        #[arg(long)]
        no_idle: bool,
    },
    /// A real Kubernetes of one node, and clusters of 1 + 1 and 3 + 2 real machines: times and memory. Needs root.
    Nodes {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        /// Measure this program instead of building the release one.
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
    },
    /// `ferrostack up` of many clusters of several shapes: time, one cluster more, memory, cost at rest.
    Scale(bench::scale::Arguments),
    /// The simulated cloud with 10 000 servers: memory, a large list, mixed requests.
    Simulator {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        /// Measure this program instead of building the release one.
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
    },
    /// A release build from nothing: processor time, and the size of the binary, by crate.
    Weight {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.task {
        Task::Check(arguments) => check::run(&root(), &arguments),
        Task::RealSystems(arguments) => real_systems::run(&root(), &arguments),
        Task::Codegen { check } => codegen::run(&root(), check),
        Task::CsiSideBySide(arguments) => csi::side_by_side::run(&root(), &arguments),
        Task::StorageTests(arguments) => csi::storage_tests::run(&root(), &arguments),
        Task::KeystoneSideBySide(arguments) => keystone::side_by_side::run(&root(), &arguments),
        Task::Dist(arguments) => dist::run(&root(), &arguments),
        Task::Image(arguments) => dist::images(&root(), &arguments),
        Task::Notices {
            check,
            target,
            file,
        } => notices::run(&root(), target, &file, check),
        Task::Book { directory } => book::write(&root(), &directory),
        Task::Man { directory } => man::write(&root(), &directory),
        Task::Size { binary } => size::run(&root(), binary),
        Task::Test(arguments) => test::run(&root(), &arguments),
        Task::Tidy => tidy::run(&root()),
        Task::Words { lower: true, .. } => tidy::words::lower(&root()),
        Task::Words { krate, .. } => {
            tidy::words::report(&root(), krate.as_deref()).and_then(|text| print(&text))
        }
        Task::Bench(Bench::Apiserver(arguments)) => bench::apiserver::run(&root(), &arguments),
        Task::Bench(Bench::Ccm(arguments)) => bench::ccm::run(&root(), arguments),
        Task::Bench(Bench::Clusters(arguments)) => bench::clusters::run(&root(), &arguments),
        Task::Bench(Bench::Conversions { json }) => bench::conversions::run(&root(), json),
        Task::Bench(Bench::Csi(arguments)) => bench::csi::run(&root(), &arguments),
        Task::Bench(Bench::Deployer(arguments)) => bench::deployer::run(&root(), &arguments),
        Task::Bench(Bench::KeystoneAuth(arguments)) => {
            bench::keystone_auth::run(&root(), &arguments)
        }
        Task::Bench(Bench::MainJob {
            json,
            binary,
            no_idle,
        }) => bench::main_job::run(&root(), binary, json, !no_idle),
        Task::Bench(Bench::Nodes { json, binary }) => bench::nodes::run(&root(), binary, json),
        Task::Bench(Bench::Scale(arguments)) => bench::scale::run(&root(), &arguments),
        Task::Bench(Bench::Simulator { json, binary }) => {
            bench::simulator::run(&root(), binary, json)
        }
        Task::Bench(Bench::Weight { json }) => bench::weight::run(&root(), json),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Root directory of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}

/// Prints a line on standard error.
fn report(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints text on standard output.
fn print(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
