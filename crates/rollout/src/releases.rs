//! Work on a cloud: within its release, or in the phases of an upgrade, by the decisions of [`deployer::upgrade`].

use std::collections::BTreeMap;
use std::sync::Arc;

use api::openstack::UPGRADE_CHECK;
use api::openstack::v1alpha1::OpenStack;
use deployer::upgrade::{self, Phase, Recorded, Stages, Standing};
use deployer::{Cloud, Credentials, Graph, Parameters, Plan, Progress, Release, Swaps, Written};
use kube::{Client, ResourceExt as _};

use crate::operations::{self, Running, Stand};
use crate::problem::Problem;
use crate::record::{Entry, recorded};
use crate::rendered::Rendered;
use crate::view::Seen;

/// Reason against the object of a cloud.
pub(crate) enum Refused {
    /// Parameters that a release does not accept.
    Invalid(String),
    /// Release that cannot be reached from the current one.
    Conflict(String),
}

/// Work on a cloud.
pub(crate) enum Work {
    /// Creation, or a change within the release.
    Steady(Release, Arc<Graph>),
    /// A cloud with an operation that waits, and the reason.
    Waiting(Release, Arc<Graph>, String),
    /// A backup, a restore or a rotation.
    Operation(Release, Box<Running>),
    /// Way to another release.
    Upgrade {
        from: Release,
        to: Release,
        recorded: Recorded,
        stages: Arc<Stages>,
    },
    /// Checks of another release, without the way there.
    Check {
        from: Release,
        to: Release,
        recorded: Recorded,
        stages: Arc<Stages>,
    },
}

/// Next actions.
pub(crate) struct Turn {
    pub(crate) graph: Arc<Graph>,
    pub(crate) plan: Plan,
    pub(crate) progress: Progress,
    phase: Option<Phase>,
    is_over: bool,
    /// How far an operation is.
    pub(crate) stand: Option<Stand>,
    /// New content of Secrets of passwords and keys.
    pub(crate) swaps: Swaps,
}

impl Running {
    /// Next actions of the operation.
    fn turn(&self, seen: &Seen, known: &BTreeMap<String, Written>) -> Turn {
        let recorded = operations::recorded(&self.object);
        let turn = self.stages.turn(recorded, &seen.objects, &seen.pods, known);
        Turn {
            graph: Arc::new(turn.graph),
            plan: turn.plan,
            progress: turn.progress,
            phase: None,
            is_over: false,
            stand: Some(Stand {
                phase: turn.phase,
                end: turn.end,
                message: turn.message,
                report: self.stages.report(&seen.objects, &seen.pods),
            }),
            swaps: turn.swaps,
        }
    }
}

impl Work {
    /// Work that brings a cloud to its parameters.
    ///
    /// # Errors
    /// The reason why the parameters are [`Refused`].
    pub(crate) fn new(
        rendered: &Rendered,
        object: &OpenStack,
        cloud: &Cloud,
        held: &Credentials,
        seen: &Seen,
    ) -> Result<Self, Refused> {
        let recorded = recorded(object);
        let wanted = cloud.parameters.release;
        // Any other work would start programs on half of a database, or with passwords that are going.
        let before = operations::first(seen, &cloud.name);
        let steady = |release| {
            let mut cloud = cloud.clone();
            cloud.parameters.release = release;
            let graph = rendered.of(&cloud, held);
            match (operations::next(seen, &cloud, held, &graph), &before) {
                (None, _) => Ok(Self::Steady(release, graph)),
                (Some(Ok(running)), _) => Ok(Self::Operation(release, Box::new(running))),
                (Some(Err(why)), None) => Ok(Self::Waiting(release, graph, why)),
                (Some(Err(why)), Some(before)) => Err(Refused::Conflict(format!(
                    "{before}, and goes on when this is mended: {why}"
                ))),
            }
        };
        match upgrade::standing(recorded, wanted, held.uid(), &seen.objects) {
            Standing::Refused(why) => Err(Refused::Conflict(why)),
            Standing::Upgrade { from, .. } | Standing::Steady(from) if before.is_some() => {
                steady(from)
            }
            Standing::Upgrade { from, to, .. } => {
                only_the_release(object, from).map_err(Refused::Invalid)?;
                Ok(Self::Upgrade {
                    from,
                    to,
                    recorded,
                    stages: rendered.upgrade(cloud, from, held),
                })
            }
            Standing::Steady(from) => match checked(object, from) {
                None => steady(from),
                Some(Err(why)) => Err(Refused::Conflict(why)),
                Some(Ok((parameters, to))) => {
                    let cloud = Cloud {
                        parameters,
                        ..cloud.clone()
                    };
                    Ok(Self::Check {
                        from,
                        to,
                        recorded,
                        stages: rendered.upgrade(&cloud, from, held),
                    })
                }
            },
        }
    }

    /// Steps with accounts.
    pub(crate) fn accounts(&self) -> &Graph {
        match self {
            Self::Steady(_, graph) | Self::Waiting(_, graph, _) => graph,
            Self::Operation(_, running) => running.stages.whole(),
            Self::Upgrade { stages, .. } | Self::Check { stages, .. } => stages.accounts(),
        }
    }

    /// Next actions, from the known state of accounts.
    pub(crate) fn turn(&self, seen: &Seen, known: &BTreeMap<String, Written>) -> Turn {
        let turn = match self {
            Self::Steady(_, graph) | Self::Waiting(_, graph, _) => {
                let plan = deployer::plan(graph, &seen.objects);
                let progress = deployer::progress(graph, &plan, &seen.objects, &seen.pods, known);
                return Turn {
                    graph: Arc::clone(graph),
                    plan,
                    progress,
                    phase: None,
                    is_over: false,
                    stand: None,
                    swaps: Swaps::new(),
                };
            }
            Self::Operation(_, running) => return running.turn(seen, known),
            Self::Upgrade {
                recorded, stages, ..
            } => {
                let phase = self.begun(*recorded);
                stages.turn(phase, &seen.objects, &seen.pods, known)
            }
            Self::Check { stages, .. } => stages.check(&seen.objects, &seen.pods, known),
        };
        Turn {
            graph: Arc::new(turn.graph),
            plan: turn.plan,
            progress: turn.progress,
            phase: Some(turn.phase),
            is_over: turn.is_over,
            stand: None,
            swaps: Swaps::new(),
        }
    }

    /// Last recorded phase of the upgrade.
    fn begun(&self, recorded: Recorded) -> Phase {
        let ours = match self {
            Self::Upgrade { to, .. } => recorded.to == Some(*to),
            _ => false,
        };
        recorded.phase.filter(|_| ours).unwrap_or(Phase::Check)
    }

    /// True if the phase of a [`Turn`] is recorded already.
    pub(crate) fn is_recorded(&self, turn: &Turn) -> bool {
        match self {
            Self::Steady(..) | Self::Waiting(..) => true,
            Self::Operation(_, running) => {
                let phase = turn.stand.as_ref().map(|it| it.phase);
                operations::recorded(&running.object) == phase
            }
            Self::Upgrade { to, recorded, .. } | Self::Check { to, recorded, .. } => {
                recorded.to == Some(*to) && recorded.phase == turn.phase
            }
        }
    }

    /// Writes the status of each operation on the cloud that is not over.
    pub(crate) async fn operations(
        &self,
        client: &Client,
        seen: &Seen,
        cloud: &Cloud,
        turn: &Turn,
    ) -> Result<(), Problem> {
        let running = match (self, &turn.stand) {
            (Self::Operation(_, running), Some(stand)) => Some((&running.object, stand.clone())),
            _ => None,
        };
        let waits = match self {
            Self::Waiting(_, _, why) => why.clone(),
            Self::Operation(_, running) => {
                format!("operation {} comes before it", running.object.name_any())
            }
            Self::Upgrade { to, .. } => format!("it waits until the upgrade to {to} is over"),
            Self::Check { to, .. } => format!("it waits until the checks of {to} are over"),
            Self::Steady(..) => String::new(),
        };
        operations::write(client, seen, cloud, running, &waits).await
    }

    /// Warning of an upgrade before which no backup is made.
    pub(crate) fn unsaved(&self, seen: &Seen, cloud: &Cloud) -> Option<String> {
        let is_upgrade = matches!(self, Self::Upgrade { .. } | Self::Check { .. });
        if !is_upgrade || cloud.parameters.backup.is_some() {
            return None;
        }
        let last = match operations::last_backup(seen, &cloud.name) {
            Some((name, time)) => format!("the last one, {name}, is of {time}"),
            None => "none is known".to_owned(),
        };
        Some(format!(
            "backup: spec.backup is not set, so that none is made; {last}"
        ))
    }

    /// Record of a [`Turn`].
    pub(crate) fn entry(&self, turn: &Turn, warnings: Vec<String>) -> Entry {
        match *self {
            Self::Steady(release, _) | Self::Waiting(release, ..) => Entry::Of(release),
            Self::Operation(release, ref running) => running.entry(release, turn),
            Self::Upgrade { from, to, .. } => Entry::Upgrade {
                from,
                to,
                phase: turn.phase.unwrap_or(Phase::Check),
                is_over: turn.is_over,
                warnings,
            },
            Self::Check { from, to, .. } => Entry::Check {
                from,
                to,
                is_over: turn.is_over,
                warnings,
            },
        }
    }
}

impl Running {
    /// Record of a turn: in a restore the cloud is away, and in a rotation it has passwords that are going.
    fn entry(&self, release: Release, turn: &Turn) -> Entry {
        let spec = &self.object.spec;
        let word = match (&spec.restore, &spec.rotate) {
            (Some(_), _) => "restore",
            (_, Some(_)) => "rotation",
            _ => return Entry::Of(release),
        };
        match &turn.stand {
            Some(stand) if stand.end.is_none() => {
                let (name, phase) = (self.object.name_any(), stand.phase);
                let message = match stand.message.as_str() {
                    "" => String::new(),
                    message => format!(": {message}"),
                };
                Entry::Operating(release, format!("{word} {name}: {phase}{message}"))
            }
            _ => Entry::Of(release),
        }
    }
}

/// Checks that an upgrade changes nothing but the release.
///
/// # Errors
/// Fields of the new release alone.
fn only_the_release(object: &OpenStack, from: Release) -> Result<(), String> {
    let document = serde_json::to_value(object).unwrap_or_default();
    let later = upgrade::unknown_before(&document, from);
    match later.is_empty() {
        true => Ok(()),
        false => Err(later.join("; ")),
    }
}

/// [`Parameters`] of the release in the annotation [`UPGRADE_CHECK`], or the reason against them; `None` without the
/// annotation.
fn checked(object: &OpenStack, from: Release) -> Option<Result<(Parameters, Release), String>> {
    let name = object.annotations().get(UPGRADE_CHECK)?;
    let at = |why: String| format!("annotation {UPGRADE_CHECK}: {why}");
    let Some(to) = Release::named(name) else {
        return Some(Err(at(format!("there is no release {name}"))));
    };
    if let Err(why) = from.way_to(to) {
        return Some(Err(at(why)));
    }
    let mut document = serde_json::to_value(object).unwrap_or_default();
    document["spec"]["release"] = to.name().into();
    let parameters = deployer::checked(&document);
    Some(match parameters {
        Ok(parameters) => Ok((parameters, to)),
        Err(errors) => Err(at(errors.join("; "))),
    })
}
