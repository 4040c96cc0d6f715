//! Application credentials for the programs of a cluster, on request by an annotation of the OpenStackCluster.
//!
//! Each program has a credential of its own, with access rules for its requests and nothing else. The provider makes it
//! with the credentials of the cluster, renews it in time, and revokes it with the cluster.
//!
//! ```text
//!   wanted   the request in annotations
//!   record   credentials that were made, with their secrets
//!   plan     record and Keystone compared: the next step (pure)
//!   store    the Secrets with the record and with the manifests for the workload cluster
//! ```

mod plan;
mod record;
mod store;
mod wanted;

use std::time::Duration;

use api::conditions::{self, Reason, Status, Type};
use api::core::v1beta2::Cluster;
use api::infra::v1beta2::OpenStackCluster;
use api::k8s_openapi::jiff::Timestamp;
use cloud_conf::{Program, access};
use kube::ResourceExt;
use openstack::identity::{AccessRule, ApplicationCredential, NewApplicationCredential, Place};
use openstack::{Cloud, ErrorKind};
use operator::retry::When;

use self::plan::{Seen, Step};
use self::record::{Entry, Owner, Record, current};
use self::store::Kept;
pub use self::store::{name_in_workload, name_of_manifests};
use self::wanted::{ALL, Wanted, word};
use crate::claims::SOON;
use crate::context::{Context, Error, kept, namespace};
use crate::credentials;
use crate::identity::{CLUSTER_ID, Identity, Mark};
use crate::problem::Problem;

const ABOUT: Type = Type::ApplicationCredentialsReady;
/// Limit of the steps of a program in one reconcile.
const MOST: usize = 32;

/// True if the annotations of `object` ask for a credential of `program`.
#[must_use]
pub fn is_asked_for(object: &OpenStackCluster, program: Program) -> bool {
    Wanted::of(object).is_ok_and(|wanted| wanted.has(program))
}

/// Makes, renews and revokes credentials of a cluster; the result is a condition of its own in `next`. Returns the time
/// until the next step, if it is known.
pub(crate) async fn reconcile(
    ctx: &Context,
    object: &OpenStackCluster,
    next: &mut OpenStackCluster,
    cluster: &Cluster,
) -> Option<Duration> {
    let id = Identity::for_object(object, CLUSTER_ID)?;
    let is_known = kept::reported(object, ABOUT).is_some();
    let wanted = match Wanted::of(object) {
        Ok(wanted) if wanted.is_nothing() && !is_known => return None,
        Ok(_) if !is_known => {
            // Stored before anything is created: the condition is what the end looks for.
            let text = "application credentials are being made";
            let verdict = (Status::False, Reason::Creating, text);
            kept::condition(next, ctx.now(), ABOUT, verdict);
            return Some(SOON);
        }
        Ok(wanted) => Ok(wanted),
        Err(text) => Err(Problem::new(ABOUT, Reason::InvalidClusterSpec, text)),
    };
    let work = match wanted {
        Ok(wanted) => in_time(ctx, object, Some(cluster), id, &wanted).await,
        Err(problem) => Err(problem.into()),
    };
    report(ctx, object, next, work).await
}

/// Revokes all credentials of a cluster that is deleted, when its machines are gone.
///
/// # Errors
/// [`Problem`] with the cloud, with the credentials that are left.
pub(crate) async fn end(
    ctx: &Context,
    object: &OpenStackCluster,
    cloud: &Cloud,
    id: Identity,
) -> Result<(), Error> {
    let is_asked_for = Wanted::of(object).is_ok_and(|wanted| !wanted.is_nothing());
    if !is_asked_for && kept::reported(object, ABOUT).is_none() {
        return Ok(());
    }
    let nothing = Wanted::nothing();
    let mut work = Work::new(ctx, object, None, cloud, id, &nothing).await?;
    work.take_steps().await?;
    ctx.looks.forget(id);
    work.warn_of_others().await;
    Ok(())
}

/// Text and time of a look.
struct Outcome {
    text: String,
    due: Option<Timestamp>,
    /// True if nothing is left of credentials that nobody wants.
    is_over: bool,
}

async fn report(
    ctx: &Context,
    object: &OpenStackCluster,
    next: &mut OpenStackCluster,
    work: Result<Outcome, Error>,
) -> Option<Duration> {
    let now = ctx.now();
    match work {
        Ok(outcome) if outcome.is_over => {
            let status = next.status.get_or_insert_default();
            conditions::remove(&mut status.conditions, ABOUT);
            None
        }
        Ok(outcome) => {
            let verdict = (Status::True, Reason::Ready, outcome.text.as_str());
            kept::condition(next, now, ABOUT, verdict);
            let due = outcome.due?.duration_since(now);
            Some(Duration::try_from(due).unwrap_or_default().max(SOON))
        }
        Err(Error::Problem(problem)) => {
            let verdict = (Status::False, problem.reason, problem.message.as_str());
            kept::condition(next, now, ABOUT, verdict);
            kept::announce(ctx, object, next, &problem).await;
            match problem.when {
                When::After(pause) => Some(pause),
                _ => Some(crate::context::FALLBACK),
            }
        }
        Err(error) => {
            tracing::debug!("application credentials: {error}");
            Some(Duration::from_secs(1))
        }
    }
}

/// Takes the steps that are due.
async fn in_time(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: Option<&Cluster>,
    id: Identity,
    wanted: &Wanted,
) -> Result<Outcome, Error> {
    let identity_ref = &object.spec.identity_ref;
    let cloud = credentials::cloud(ctx.access(), &namespace(object), identity_ref).await?;
    let mut work = Work::new(ctx, object, cluster, &cloud, id, wanted).await?;
    let is_due = work.due()?.is_some_and(|due| due <= ctx.now());
    if is_due || ctx.looks.is_due(id) {
        let taken = work.take_steps().await;
        work.deliver().await?;
        taken?;
        ctx.looks.note(id);
    } else {
        work.deliver().await?;
    }
    work.outcome()
}

/// Credentials of one cluster in one reconcile.
struct Work<'a> {
    ctx: &'a Context,
    object: &'a OpenStackCluster,
    cloud: &'a Cloud,
    id: Identity,
    wanted: &'a Wanted,
    user: String,
    project: String,
    /// Roles of credentials.
    roles: Vec<String>,
    rules: Vec<(Program, Vec<AccessRule>, String)>,
    kept: Kept,
    record: Record,
    manifests: Kept,
    /// Time since when the manifests are in the workload cluster.
    applied: Option<Timestamp>,
}

impl<'a> Work<'a> {
    async fn new(
        ctx: &'a Context,
        object: &'a OpenStackCluster,
        cluster: Option<&Cluster>,
        cloud: &'a Cloud,
        id: Identity,
        wanted: &'a Wanted,
    ) -> Result<Self, Error> {
        let token = cloud
            .session
            .token()
            .await
            .map_err(|it| failed("log in", &it))?;
        let project = cloud.session.project_id().await;
        let project = project.map_err(|it| failed("log in", &it))?;
        let kept = Kept::record(ctx, object).await?;
        let record = kept.entries()?;
        let manifests = Kept::manifests(ctx, object).await?;
        let applied = manifests.in_use(ctx, cluster).await?;
        let roles = roles(&token.roles);
        let mut rules = Vec::new();
        for program in ALL {
            let of_program = access::rules(program, &places(cloud, program).await?);
            let sum = sum(&of_program, &roles);
            rules.push((program, of_program, sum));
        }
        Ok(Self {
            ctx,
            object,
            cloud,
            id,
            wanted,
            user: token.user_id.clone(),
            project,
            roles,
            rules,
            kept,
            record,
            manifests,
            applied,
        })
    }

    fn entries(&self, program: Program) -> &[Entry] {
        let entries = self.record.get(word(program));
        entries.map(Vec::as_slice).unwrap_or_default()
    }

    fn seen<'s>(&'s self, program: Program, mark: &'s str) -> Seen<'s> {
        let rules = self.rules.iter().find(|it| it.0 == program);
        Seen {
            now: self.ctx.now(),
            mark,
            owner: Owner {
                user: &self.user,
                project: &self.project,
                rules: rules.map_or("", |it| &it.2),
            },
            is_wanted: self.wanted.has(program),
            in_use: self.manifests.name_for(program).zip(self.applied),
        }
    }

    fn mark(&self, program: Program) -> String {
        format!("{} {}", word(program), Mark::cluster(self.id).suffix())
    }

    /// Time of the next step of any program; `None` if nothing is to be done.
    fn due(&self) -> Result<Option<Timestamp>, Error> {
        let due = ALL.into_iter().filter_map(|program| {
            let mark = self.mark(program);
            plan::due(self.entries(program), &self.seen(program, &mark))
        });
        Ok(due.min())
    }

    /// Takes the steps of all programs. What fails for one does not stop the others.
    ///
    /// # Errors
    /// The first failure.
    async fn take_steps(&mut self) -> Result<(), Error> {
        let identity = self.cloud.session.identity();
        let existing = identity.application_credentials().await;
        let mut existing =
            existing.map_err(|it| failed("list application credentials of the user", &it))?;
        let mut first = Ok(());
        for program in ALL {
            let taken = self.take_steps_of(program, &mut existing).await;
            first = first.and(taken);
        }
        first
    }

    /// Takes steps of a program until none is left.
    async fn take_steps_of(
        &mut self,
        program: Program,
        existing: &mut Vec<ApplicationCredential>,
    ) -> Result<(), Error> {
        let mark = self.mark(program);
        for _ in 0..MOST {
            let seen = self.seen(program, &mark);
            let Some(step) = plan::next(self.entries(program), existing, &seen) else {
                break;
            };
            match step {
                Step::Add => self.add(program).await?,
                Step::Create(at) => existing.push(self.create(program, at).await?),
                Step::Try(at, id) => self.try_out(program, at, id).await?,
                Step::Forget(at) => {
                    let forget = |entries: &mut Vec<Entry>| drop(entries.remove(at));
                    self.change(program, forget).await?;
                }
                Step::Revoke(id) => {
                    let identity = self.cloud.session.identity();
                    let revoked = identity.delete_application_credential(&id).await;
                    revoked.map_err(|it| refused(program, "revoke", &it))?;
                    existing.retain(|it| it.id != id);
                }
            }
        }
        Ok(())
    }

    /// Changes the record of a program, and stores it.
    async fn change(
        &mut self,
        program: Program,
        change: impl FnOnce(&mut Vec<Entry>) + Send,
    ) -> Result<(), Error> {
        let entries = self.record.entry(word(program).to_owned()).or_default();
        change(entries);
        self.record.retain(|_, entries| !entries.is_empty());
        self.kept.save(self.object, &self.record).await
    }

    async fn add(&mut self, program: Program) -> Result<(), Error> {
        let start = format!("ferrostack-{}-{}", word(program), self.id);
        let mark = self.mark(program);
        let seen = self.seen(program, &mark);
        let entry = Entry::new(&start, &seen.owner, seen.now, self.wanted.lifetime);
        self.change(program, |entries| entries.push(entry)).await
    }

    async fn create(&self, program: Program, at: usize) -> Result<ApplicationCredential, Error> {
        let Some(entry) = self.entries(program).get(at) else {
            return Err(Error::Behind);
        };
        let of_program = self.rules.iter().find(|it| it.0 == program);
        let cluster = self.object.name_any();
        let text = format!("Made by ferrostack for OpenStackCluster {cluster}:");
        let new = NewApplicationCredential {
            name: entry.name.clone(),
            description: format!("{text} {}", self.mark(program)),
            secret: entry.secret().clone(),
            roles: self.roles.clone(),
            expires_at: entry.expires_at,
            access_rules: of_program.map(|it| it.1.clone()).unwrap_or_default(),
        };
        let identity = self.cloud.session.identity();
        let created = identity.create_application_credential(&new).await;
        let created = created.map_err(|it| refused(program, "create", &it))?;
        let (reason, text) = ("ApplicationCredentialCreated", format!("made {}", new.name));
        self.ctx
            .recorder
            .normal(self.object, reason, "Create", &text)
            .await;
        Ok(created)
    }

    /// Logs in with a credential and reads a list of each service; then the id is recorded.
    async fn try_out(&mut self, program: Program, at: usize, id: String) -> Result<(), Error> {
        if let Some(entry) = self.entries(program).get(at) {
            let mut tried = entry.clone();
            tried.id = Some(id.clone());
            let config = store::with(self.cloud.session.config(), &tried);
            let doing = format!(
                "log in with the new application credential of {}",
                word(program)
            );
            let cloud = self.ctx.clouds.get(&config).await;
            let session = cloud.map_err(|it| failed(&doing, &it))?.session;
            for (service, route) in access::lists(program) {
                if !session
                    .has(service)
                    .await
                    .map_err(|it| failed(&doing, &it))?
                {
                    continue;
                }
                match session.try_list(service, route).await {
                    // The service has other reasons than the access rules: policy, or a fault of today.
                    Err(error) if error.kind() != ErrorKind::Unauthenticated => {
                        tracing::debug!("{service}: {error}");
                    }
                    Err(error) => return Err(unenforced(program, service, &error).into()),
                    Ok(()) => {}
                }
            }
        }
        let record = |entries: &mut Vec<Entry>| {
            if let Some(entry) = entries.get_mut(at) {
                entry.id = Some(id);
            }
        };
        self.change(program, record).await
    }

    /// Writes the manifests for the workload cluster.
    async fn deliver(&mut self) -> Result<(), Error> {
        let now = self.ctx.now();
        let wanted = ALL.into_iter().filter(|program| self.wanted.has(*program));
        let credentials: Vec<_> = wanted
            .filter_map(|program| {
                let entries = self.record.get(word(program))?;
                Some((program, current(entries, now)?))
            })
            .collect();
        let cloud = self.cloud.session.config();
        self.manifests
            .deliver(self.object, cloud, &credentials, now)
            .await
    }

    fn outcome(&self) -> Result<Outcome, Error> {
        let now = self.ctx.now();
        let mut texts = Vec::new();
        for program in ALL.into_iter().filter(|it| self.wanted.has(*it)) {
            if let Some(entry) = current(self.entries(program), now) {
                let until = entry.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ");
                texts.push(format!("{} until {until}", word(program)));
            }
        }
        Ok(Outcome {
            text: texts.join(", "),
            due: self.due()?,
            is_over: self.wanted.is_nothing() && self.record.is_empty(),
        })
    }

    /// An event about credentials of another user, which stay until they expire.
    async fn warn_of_others(&self) {
        let left = self
            .record
            .values()
            .flatten()
            .filter(|it| it.user != self.user);
        let left: Vec<_> = left
            .map(|it| format!("{} until {}", it.name, it.expires_at))
            .collect();
        if left.is_empty() {
            return;
        }
        let text = format!(
            "Application credentials of a user whose credentials the cluster had before stay until they expire: {}",
            left.join(", ")
        );
        let recorder = &self.ctx.recorder;
        let reason = "ApplicationCredentialsLeft";
        recorder.warning(self.object, reason, "Delete", &text).await;
    }
}

/// Places of the services of a program.
async fn places(cloud: &Cloud, program: Program) -> Result<Vec<Place>, Problem> {
    let mut places = Vec::new();
    for service in access::services(program) {
        let place = cloud.session.place(service).await;
        places.extend(place.map_err(|it| failed("read the catalog", &it))?);
    }
    Ok(places)
}

/// Roles of a credential, sorted: those of the user without `admin`, which no program needs. None, for all, if the user
/// has no other.
fn roles(of_user: &[String]) -> Vec<String> {
    let roles = of_user.iter().filter(|role| *role != "admin");
    let mut roles: Vec<String> = roles.cloned().collect();
    roles.sort();
    roles
}

/// Sum of access rules and roles (FNV-1a): other ones, of another release, catalog or user, need another credential.
fn sum(rules: &[AccessRule], roles: &[String]) -> String {
    let texts = rules
        .iter()
        .flat_map(|rule| [&rule.service, &rule.method, &rule.path])
        .chain(roles);
    let bytes = texts.flat_map(|text| text.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn failed(doing: &str, error: &openstack::Error) -> Problem {
    let reason = match credentials::is_authentication(error) {
        true => Reason::OpenStackAuthenticationFailed,
        false => Reason::OpenStackError,
    };
    Problem::cloud(ABOUT, reason, doing, error)
}

/// Keystone's refusal to create or to revoke a credential.
fn refused(program: Program, what: &str, error: &openstack::Error) -> Problem {
    let doing = format!("{what} an application credential for {}", word(program));
    if error.kind() != ErrorKind::Denied {
        return failed(&doing, error);
    }
    let message = format!(
        "{}. Give the Secret that identityRef names a password, or an application credential made with --unrestricted",
        error.cause(&doing).trim_end_matches('.')
    );
    Problem::new(ABOUT, Reason::OpenStackAuthenticationFailed, message)
}

/// A service that refuses each credential with access rules.
fn unenforced(program: Program, service: openstack::Service, error: &openstack::Error) -> Problem {
    let message = format!(
        "{}. The {service} service refuses application credentials with access rules, as it does without `service_type` in \
         [keystone_authtoken] of its configuration: ask the cloud's operator for it, or remove the annotation {}; {} keeps \
         what it has",
        error
            .cause("try the new application credential")
            .trim_end_matches('.'),
        api::names::APPLICATION_CREDENTIALS_ANNOTATION,
        word(program)
    );
    Problem::new(ABOUT, Reason::OpenStackError, message)
}
